"""Run every method over one grid of settings on three real tasks, and seal what came of it.

    python tools/sensitivity.py run  --root FOLDER --out FOLDER [--tasks NAME ...] [--methods NAME ...] [--seeds 1]
    python tools/sensitivity.py seal --out FOLDER --record FILE [--tasks NAME ...]
    python tools/sensitivity.py features --root FOLDER

FOLDER of --root holds the prepared data of tools/evidence.py. The tasks are its two quick ones, with half of
its budget, and SICK as frozen sentence embeddings: `features` makes sick_features.npz there, of both sentences,
their distance and their product. A run that is there is not made again; `run` may be given with more methods
and seeds later, and `seal` takes all that is there.
"""

import argparse
import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch
from evidence import say

from pde_nb.analysis.sensitivity import sensitivity
from pde_nb.cli.opening import open_data
from pde_nb.grouping.representation import represent
from pde_nb.methods.pde import PDE
from pde_nb.sources.data import Data

METHODS = ("pde", "group_dro", "subsample", "erm", "pde_fixed", "resampling", "jtt", "lff", "eiil")
FEATURES = "sick_features.npz"


@dataclass(frozen=True)
class Task:
    """A data set as `open_data` takes it."""

    data: str  # below the root
    label: str
    attribute: str
    passes: int  # the whole budget

    def open(self, root: Path) -> Data:
        return open_data(data=str(root / self.data), label=self.label, attribute=[self.attribute])


TASKS = {
    "waterbirds_features": Task("waterbirds_features.npz", "y", "place", passes=10),
    "sick_features": Task(FEATURES, "contradiction", "negation", passes=10),
    "adult": Task("adult.csv", "income", "sex", passes=4),
}


def chosen(name: str):
    """A method by the name of its record."""
    return PDE(schedule="fixed") if name == "pde_fixed" else name


def run_tasks(args):
    """Every method on every task: the first four methods everywhere before the others."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    opened = {}
    parts = [args.methods[:4], args.methods[4:]]
    for n_seeds, part, task in product(range(1, args.seeds + 1), parts, args.tasks):
        if task not in opened:
            opened[task] = TASKS[task].open(args.root)
        for name in part:
            say(f"{task}: {name}")
            methods = {name: chosen(name)}
            sensitivity(
                opened[task],
                args.out / task,
                methods,
                range(n_seeds),
                TASKS[task].passes,
                say=say,
                device="cpu",
            )


def make_features(args):
    """SICK as frozen sentence embeddings of both sentences, their distance and their product."""
    seen = {}
    for name in ("sentence_A", "sentence_B"):
        data = open_data(
            data=str(args.root / "sick.csv"), label="contradiction", attribute=["negation"], text=[name]
        )
        seen[name] = represent(data, model="minilm").x
    u, v = seen.values()
    x = np.concatenate([u, v, np.abs(u - v), u * v], 1).astype("float32")
    negation = data.train_groups.ids % 2
    np.savez(args.root / FEATURES, x=x, contradiction=data.y, negation=negation, split=data.split)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--root", type=Path, required=True)
    run.add_argument("--out", type=Path, required=True)
    run.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    run.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    run.add_argument("--seeds", type=int, default=1)
    features = commands.add_parser("features")
    features.add_argument("--root", type=Path, required=True)
    args = parser.parse_args()
    dict(run=run_tasks, features=make_features)[args.command](args)


if __name__ == "__main__":
    main()
