"""What the levers of a CPU are worth: memory layout and precision in training, the cache for input. On real Waterbirds pictures.

    python benchmarks/cpu.py --root FOLDER --out FOLDER [--size 128] [--cache FOLDER]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pde_nb.bench_train import input_rates, lever_rates
from pde_nb.data import read_waterbirds
from pde_nb.fit import prepare
from pde_nb.methods import Method
from pde_nb.records import surroundings, write_json


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--root", required=True)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--size", type=int, default=128)
    p.add_argument("--cache")
    args = p.parse_args()
    data = read_waterbirds(args.root)

    def make(changes):
        inputs = dict(size=args.size, augment=("flip",), **({"cache": args.cache} if args.cache else {}))
        return prepare("mobilenet_v2", data, Method(1), weights=None, device="cpu", changes=dict(batch_size=64, lr=1e-4, **changes), inputs=inputs, bar=False)[0]

    for name, rates in (("cpu_input", input_rates(make({}), data, 256, 5)), ("cpu_levers", lever_rates(make, steps=4, repeats=5))):
        write_json(args.out / f"{name}.json", dict(rates=rates, model="mobilenet_v2", size=args.size, surroundings=surroundings()))
        print(name, {k: round(v, 1) for k, v in rates.items()}, flush=True)


if __name__ == "__main__":
    main()
