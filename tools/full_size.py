"""Waterbirds with 224 × 224 pixels, all 11,788 pictures, MobileNetV2 from ImageNet, on a CPU.

    python tools/full_size.py --root FOLDER --runs FOLDER [--methods NAME ...] [--seeds 0 1 2]

FOLDER of --root holds waterbirds224/ with the official folder in it (pictures 256 pixels or larger at the
shorter side, or 224 × 224) and the weights mobilenet_v2.safetensors. Every method but the last two shows at
most 6 passes over the training set, with a learning rate of 1e-3: in results/evidence/waterbirds, with
128 pixels, validation chose it for each of them but `draws_3`, which was not run there. `pde_paper` is the
paper's own schedule and its own settings, in full: 16.8 passes. `erm_long` is plain training with 18 passes,
since it gains until the end of 6.

Each method writes OUT/METHOD.json when its seeds are done. Seeds that the file has already are not run again,
so a few can be made at a time, and by several processes where each has its own --runs. Runs are kept below
--runs: a command that was cut off goes on where it was.
"""

import argparse
import warnings
from dataclasses import dataclass
from pathlib import Path

from pde_nb.cli.opening import open_data
from pde_nb.comparison.comparison import Contender, Sharing, contend
from pde_nb.comparison.trials import Result, seeds_joined
from pde_nb.methods.base import Method
from pde_nb.methods.pde import PDE
from pde_nb.methods.registry import find_method
from pde_nb.methods.subsample import Subsample
from pde_nb.presets.waterbirds import BIRDS_PDE, BIRDS_SCHEDULE
from pde_nb.sources.data import Data

ROOT = Path(__file__).resolve().parents[1]
PASSES, LONG = 6, 18
RATE = dict(lr=1e-3)
SHARED = dict(channels_last=True, bf16=True, weight_decay=1e-3, batch_size=64)
PAPER_RATE = dict(lr=BIRDS_PDE.lr)
PAPER = dict(SHARED, weight_decay=BIRDS_PDE.weight_decay, batch_size=BIRDS_PDE.batch_size)
MODEL = dict(model="mobilenet_v2", inputs=dict(size=224))


def say(text):
    """Print at once, for those who follow a log."""
    print(text, flush=True)


@dataclass(frozen=True)
class Plan:
    """A method and the settings that its runs have."""

    method: Method
    rate: dict
    settings: dict


def plans(data: Data) -> dict[str, Plan]:
    """The methods by the name of their record, in the order in which they run."""
    shape = data.groups("train"), len(data.rows("val"))
    methods = {
        "erm": find_method("erm")(),
        "pde": PDE(),
        "subsample": Subsample(),
        "group_dro": find_method("group_dro")(),
        "dfr": find_method("dfr")(),
        "draws_3": PDE(draws=3),
    }
    found = {name: Plan(method.within(PASSES, *shape), RATE, SHARED) for name, method in methods.items()}
    paper = PDE(schedule=BIRDS_SCHEDULE, expansion_lr=0.01)
    long = find_method("erm")().within(LONG, *shape)
    return found | {"pde_paper": Plan(paper, PAPER_RATE, PAPER), "erm_long": Plan(long, RATE, SHARED)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, required=True, help="the folder with pictures and weights")
    parser.add_argument("--runs", type=Path, required=True, help="where runs are kept")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "full_size")
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--cache", help="where decoded pictures are kept")
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    data = open_data(data="waterbirds", root=str(args.root / "waterbirds224"))
    known = plans(data)
    common = dict(MODEL, weights=str(args.root / "mobilenet_v2.safetensors"), device="cpu")
    if args.cache:
        common["inputs"] = dict(MODEL["inputs"], cache=args.cache)
    contenders = {name: Contender(one.method, (one.rate,), one.settings) for name, one in known.items()}
    sharing = Sharing(contenders)  # plain training serves as the first stage of DFR
    for name in args.methods or known:
        if name not in known:
            parser.error(f"--methods {name}: there are {', '.join(known)}.")
        path = args.out / f"{name}.json"
        seeds = missing_seeds(path, args.seeds)
        if seeds:
            result = contend(name, contenders[name], data, seeds, args.runs, say, sharing=sharing, **common)
            keep(result, path)


def missing_seeds(path: Path, asked: list[int]) -> list[int]:
    """The seeds that the file of a result does not have yet."""
    there = {trial.seed for trial in Result.read(path).trials} if path.exists() else set()
    return [seed for seed in asked if seed not in there]


def keep(result: Result, path: Path):
    """Write a result, with the seeds that its file has already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    (seeds_joined(Result.read(path), result) if path.exists() else result).write(path)


if __name__ == "__main__":
    main()
