"""What a GPU is worth: the training parts of run.py on it, in float32 and with bfloat16.

    python benchmarks/gpu.py --out FOLDER [--root FOLDER]

Writes FOLDER/gpu.json, and FOLDER/gpu-bf16.json.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the records")
    parser.add_argument("--root", help="folder that holds waterbirds_v1.0; without it made-up pictures")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("gpu.py: there is no GPU that torch can use; benchmarks/run.py measures on a CPU.")
    args.out.mkdir(parents=True, exist_ok=True)
    script = Path(__file__).with_name("run.py")
    root = ["--root", args.root] if args.root else []
    for name, more in {"gpu": [], "gpu-bf16": ["--bf16"]}.items():
        command = [sys.executable, str(script), "waterbirds", "texts", *root, "--device", "cuda", *more]
        print(name, flush=True)
        subprocess.run([*command, "--out", str(args.out / f"{name}.json")], check=True)


if __name__ == "__main__":
    main()
