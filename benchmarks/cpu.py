"""What the levers of a CPU are worth: memory layout and precision in training, the cache for input,
evaluation that stops early.

    python benchmarks/cpu.py --root FOLDER --out FOLDER [--size 128] [--cache FOLDER] [--parts cpu_input
    cpu_levers]
    python benchmarks/cpu.py --arrays FILE.npz --label NAME --attribute NAME --out FOLDER --parts
    cpu_selection

The first two on real Waterbirds pictures; the last on any arrays, with the paper's schedule of Waterbirds.
"""

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pde_nb.benchmarks.whole_runs import clocked, input_rates, lever_rates, sample_rows
from pde_nb.cli.train import open_arrays
from pde_nb.core.files import surroundings, write_json
from pde_nb.methods.base import Method
from pde_nb.sources.examples import Pictures
from pde_nb.sources.published import read_waterbirds
from pde_nb.training.fit import PRESETS, prepare
from pde_nb.training.loop import train

N = 256  # pictures that are decoded
LARGE = 500, 375  # pixels, about as large as the official pictures are


def enlarged(data, folder):
    """The data with larger copies of the pictures of `sample_rows`: where the files at hand are small,
    decoding them flatters the usual way.
    """
    names = np.array([f"{i}.jpg" for i in range(len(data))])
    for row in sample_rows(data, N)["train"]:
        Image.open(Path(data.inputs.root) / data.inputs.files[row]).convert("RGB").resize(
            LARGE, Image.Resampling.BICUBIC
        ).save(Path(folder) / names[row], quality=90)
    return replace(data, inputs=Pictures(Path(folder), names))


def incoming(run, data):
    """Pictures per second into a batch, by one process."""
    first = data.inputs.files[sample_rows(data, N)["train"][0]]
    own = "decoded, files of {} × {} pixels".format(*Image.open(Path(data.inputs.root) / first).size)
    as_they_are = input_rates(run, data, N, 5)
    with tempfile.TemporaryDirectory() as folder:
        large = input_rates(run, enlarged(data, folder), N, 5)
    return {
        "decoded, copies of {} × {} pixels".format(*LARGE): large["decoded"],
        own: as_they_are["decoded"],
        "cached": as_they_are["cached"],
    }


def pictures(args, names):
    """Examples per second with each lever."""
    data = read_waterbirds(args.root)

    def make(changes):
        inputs = dict(size=args.size, augment=("flip",), **({"cache": args.cache} if args.cache else {}))
        return prepare(
            "mobilenet_v2",
            data,
            Method(1),
            weights=None,
            device="cpu",
            changes=dict(batch_size=64, lr=1e-4, **changes),
            inputs=inputs,
            bar=False,
        )[0]

    measure = dict(
        cpu_input=lambda: incoming(make({}), data), cpu_levers=lambda: lever_rates(make, steps=4, repeats=5)
    )
    return {name: dict(rates=measure[name](), model="mobilenet_v2", size=args.size) for name in names}


def selection(args):
    """Full and pruned evaluation of the same training: the selected epoch, the weights, what was looked at."""
    data, preset = (
        open_arrays(args.arrays, args.label, [args.attribute], "split"),
        PRESETS["waterbirds", "pde", "paper"],
    )
    rows = []
    for seed in range(args.seeds):
        run = {}
        for how in ("full", "pruned"):
            run[how] = prepare(
                None,
                data,
                preset.method,
                seed=seed,
                device="cpu",
                changes=dict(lr=1e-2, batch_size=64, weight_decay=1e-4, eval_batch=64, evaluate=how),
                bar=False,
            )[0]
            clocked(lambda: train(run[how], bar=False))
        full, pruned = run["full"], run["pruned"]
        rows.append(
            dict(
                seed=seed,
                epochs=len(full.curve),
                best_epoch=dict(full=full.best_epoch, pruned=pruned.best_epoch),
                same_weights=all(
                    (full.best_weights[k] == v).all().item() for k, v in pruned.best_weights.items()
                ),
                evaluated=dict(
                    usual=len(full.curve) * (len(full.val_rows) + len(data.rows("test"))),
                    full=sum(c["evaluated"] for c in full.curve) + len(data.rows("test")),
                    pruned=sum(c["evaluated"] for c in pruned.curve) + len(data.rows("test")),
                ),
            )
        )
    return dict(data=data.name, schedule="paper, Waterbirds", rows=rows)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--root")
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--size", type=int, default=128)
    p.add_argument("--cache")
    p.add_argument("--arrays", type=Path)
    p.add_argument("--label")
    p.add_argument("--attribute")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument(
        "--parts",
        nargs="+",
        default=["cpu_input", "cpu_levers"],
        choices=["cpu_input", "cpu_levers", "cpu_selection"],
    )
    args = p.parse_args()
    wanted = [x for x in args.parts if x != "cpu_selection"]
    if wanted and not args.root:
        p.error("--root is missing: the folder that holds waterbirds_v1.0.")
    if "cpu_selection" in args.parts and not (args.arrays and args.label and args.attribute):
        p.error("--arrays, --label and --attribute are needed for cpu_selection.")
    found = pictures(args, wanted) if wanted else {}
    if "cpu_selection" in args.parts:
        found["cpu_selection"] = selection(args)
    for name, r in found.items():
        write_json(args.out / f"{name}.json", dict(r, surroundings=surroundings()))
        print(name, r.get("rates") or r["rows"], flush=True)


if __name__ == "__main__":
    main()
