"""What the levers of a CPU are worth: memory layout and precision in training, the cache for input,
evaluation that stops early.

    python benchmarks/cpu.py --root FOLDER --out FOLDER [--size 128] [--cache FOLDER]
                             [--parts cpu_input cpu_levers]
    python benchmarks/cpu.py --arrays FILE.npz --label NAME --attribute NAME --out FOLDER
                             --parts cpu_selection [--seeds 5]

The first two on real Waterbirds pictures; the last on any arrays, with the paper's schedule of Waterbirds.
"""

import argparse
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pde_nb.benchmarks.fake_data import sample_rows
from pde_nb.benchmarks.levers import input_rates, lever_rates
from pde_nb.cli.opening import open_arrays
from pde_nb.core.files import surroundings, writable_folder
from pde_nb.methods.base import Method
from pde_nb.presets.presets import find_preset
from pde_nb.published.published import read_waterbirds
from pde_nb.records.seals import write_sealed
from pde_nb.runs.spec import build, decide
from pde_nb.sources.examples import Pictures
from pde_nb.training.loop import train

N = 256  # pictures that are decoded
LARGE = 500, 375  # pixels, about as large as the official pictures are
MODEL = "mobilenet_v2"

# ---- cpu_input, cpu_levers: on pictures -------------------------------------------------------


def picture_run(args, data, **settings):
    """A run on pictures."""
    inputs = dict(size=args.size, augment=("flip",))
    if args.cache:
        inputs["cache"] = args.cache
    options = dict(weights=None, device="cpu", inputs=inputs, batch_size=64, lr=1e-4)
    return build(decide(data, MODEL, Method(1), **options, **settings), data, bar=False)


def large_copies(data, folder):
    """The data with larger copies of the pictures of `sample_rows`.

    Where the files at hand are small, decoding them flatters the usual way.
    """
    names = np.array([f"{i}.jpg" for i in range(len(data))])
    for row in sample_rows(data, N)["train"]:
        image = Image.open(Path(data.inputs.root) / data.inputs.files[row]).convert("RGB")
        image.resize(LARGE, Image.Resampling.BICUBIC).save(Path(folder) / names[row], quality=90)
    return replace(data, inputs=Pictures(Path(folder), names))


def decoding_text(size):
    """What decoding files of a size is called."""
    return "decoded, files of {} × {} pixels".format(*size)


def cpu_input(args):
    """Pictures per second into a batch, by one process."""
    data = read_waterbirds(args.root)
    run = picture_run(args, data)
    first = data.inputs.files[sample_rows(data, N)["train"][0]]
    own_size = Image.open(Path(data.inputs.root) / first).size
    own = input_rates(run, data, N, 5)
    with tempfile.TemporaryDirectory() as folder:
        large = input_rates(run, large_copies(data, folder), N, 5)
    rates = {
        decoding_text(LARGE).replace("files", "copies"): large["decoded"],
        decoding_text(own_size): own["decoded"],
        "cached": own["cached"],
    }
    return dict(rates=rates, model=MODEL, size=args.size)


def cpu_levers(args):
    """Examples per second in training with each lever."""
    data = read_waterbirds(args.root)
    rates = lever_rates(lambda changes: picture_run(args, data, **changes), steps=4, repeats=5)
    return dict(rates=rates, model=MODEL, size=args.size)


# ---- cpu_selection: on arrays -----------------------------------------------------------------


def cpu_selection(args):
    """Full and pruned evaluation of the same training, over several seeds."""
    data = open_arrays(args.arrays, args.label, [args.attribute], "split")
    rows = [selection_row(data, seed) for seed in range(args.seeds)]
    return dict(data=data.name, schedule="paper, Waterbirds", rows=rows)


def selection_row(data, seed):
    """The epoch that each selects, whether the weights are the same, and what was looked at."""
    full = train(selection_run(data, seed, "full"), bar=False)
    pruned = train(selection_run(data, seed, "pruned"), bar=False)
    n_test = len(data.rows("test"))
    return dict(
        seed=seed,
        epochs=len(full.curve),
        best_epoch=dict(full=full.best_epoch, pruned=pruned.best_epoch),
        same_weights=all((full.best_weights[k] == v).all().item() for k, v in pruned.best_weights.items()),
        evaluated=dict(
            usual=len(full.curve) * (len(full.val_rows) + n_test),
            full=sum(entry["evaluated"] for entry in full.curve) + n_test,
            pruned=sum(entry["evaluated"] for entry in pruned.curve) + n_test,
        ),
    )


def selection_run(data, seed, evaluate):
    """A run with the paper's schedule of Waterbirds."""
    method = find_preset("waterbirds", "pde", "paper").method
    settings = dict(lr=1e-2, batch_size=64, weight_decay=1e-4, eval_batch=64, evaluate=evaluate)
    return build(decide(data, method=method, seed=seed, device="cpu", **settings), data, bar=False)


# ---- the command ------------------------------------------------------------------------------

PARTS = dict(cpu_input=cpu_input, cpu_levers=cpu_levers, cpu_selection=cpu_selection)


def parser():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a = p.add_argument
    a("--out", type=Path, required=True, metavar="FOLDER", help="where each part writes its record")
    a("--parts", nargs="+", default=["cpu_input", "cpu_levers"], choices=PARTS, help="default: the first two")
    a("--root", metavar="FOLDER", help="holds the official waterbirds_v1.0 folder")
    a("--size", type=int, default=128, help="pixels of a picture side; default 128")
    a("--cache", metavar="FOLDER", help="where decoded pictures are kept")
    a("--arrays", type=Path, metavar="FILE.npz", help="arrays for cpu_selection")
    a("--label", metavar="NAME", help="array of the label")
    a("--attribute", metavar="NAME", help="array that may be spurious")
    a("--seeds", type=int, default=5, help="of cpu_selection; default 5")
    return p


def options(argv=None):
    """What was asked for, checked."""
    p = parser()
    args = p.parse_args(argv)
    if {"cpu_input", "cpu_levers"} & set(args.parts) and not args.root:
        p.error("--root is missing: the folder that holds waterbirds_v1.0.")
    if "cpu_selection" in args.parts and not (args.arrays and args.label and args.attribute):
        p.error("--arrays, --label and --attribute are needed for cpu_selection.")
    writable_folder(args.out)
    return args


def main():
    args = options()
    warnings.simplefilter("ignore", UserWarning)  # the paper's schedule leaves examples out
    for name in args.parts:
        result = PARTS[name](args)
        write_sealed(args.out / f"{name}.json", dict(result, surroundings=surroundings()))
        print(name, result.get("rates") or result["rows"], flush=True)


if __name__ == "__main__":
    main()
