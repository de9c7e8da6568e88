"""Run the real tasks: every method, five seeds, the same small budget of tuning.

    python tools/evidence.py TASK --root FOLDER --out FOLDER [--methods NAME ...] [--seeds 5]

FOLDER of --root holds the prepared data (tools/prepare.py) and, for Waterbirds, the official folder and the weights.
A run that was cut off goes on where it was when the command is given again. Each method writes OUT/METHOD.json.
"""

import argparse
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from pde_nb.auto import AutoPDE, BalancedPDE
from pde_nb.compare import Contender, contend
from pde_nb.data import Data
from pde_nb.expansion import Schedule
from pde_nb.group_dro import GroupDRO
from pde_nb.groups import balanced_counts
from pde_nb.methods import Method
from pde_nb.pde import PDE
from pde_nb.reweighting import Resampling
from pde_nb.subsample import Subsample
from pde_nb.train_commands import open_data


@dataclass
class Task:
    """A data set, a model, the settings that all methods share, and the budget."""

    open: dict  # for open_data, with names relative to the root
    passes: int  # budget: training examples shown, in units of the training set
    lrs: tuple  # tried on the first seed
    hand: PDE  # the schedule set by hand
    model: str | None = None
    weights: str | None = None  # a file below the root
    inputs: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)


TASKS = {
    "waterbirds": Task(
        dict(data="waterbirds"), 2, (1e-3, 3e-3), PDE(None, Schedule(18, 30, 2, n_expansions=7), 0.3),
        "mobilenet_v2", "mobilenet_v2.safetensors", dict(size=128), dict(channels_last=True, weight_decay=1e-3, batch_size=64)),
    "waterbirds_features": Task(
        dict(data="waterbirds_features.npz", label="y", attribute=["place"]), 20, (1e-3, 1e-2), PDE(None, Schedule(60, 22, 4, n_expansions=40), 0.3)),
    "sick": Task(
        dict(data="sick.csv", label="contradiction", attribute=["negation"], text=["sentence_A", "sentence_B"]), 2, (5e-5, 1e-4),
        PDE(None, Schedule(15, 20, 2, n_expansions=7), 0.3), "minilm", None, {}, dict(batch_size=32, bf16=True, eval_batch=64)),
    "adult": Task(dict(data="adult.csv", label="income", attribute=["sex"]), 20, (1e-3, 1e-2), PDE(None, Schedule(20, 470, 4, n_expansions=10), 0.3)),
    "coloured_mnist": Task(
        dict(data="coloured_mnist.npz", label="y", attribute=["colour"]), 2, (1e-2, 3e-2),
        PDE(None, Schedule(40, 100, 2, n_expansions=20), 0.3), "small_cnn", None, {}, dict(channels_last=True)),
}


def contenders(task: Task, data: Data) -> dict:
    """The methods, each within the budget of examples."""
    groups = data.groups("train")
    once = int(balanced_counts(groups.counts, None, "skip").sum())
    methods = dict(erm=Method(task.passes), subsample=Subsample(task.passes * len(groups) // once, empty="skip"), resampling=Resampling(task.passes),
                   group_dro=GroupDRO(task.passes), pde_hand=task.hand)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        most = task.passes * len(groups) // AutoPDE().begin(groups, 0).round_size
    methods |= dict(pde_auto=AutoPDE(most), pde_balanced=BalancedPDE(most))
    return {name: Contender(m, tuple(dict(lr=lr) for lr in task.lrs), task.settings) for name, m in methods.items()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("task", choices=TASKS)
    p.add_argument("--root", type=Path, required=True)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--methods", nargs="+")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--cache", help="where decoded pictures are kept")
    args = p.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    task = TASKS[args.task]
    where = dict(task.open, root=str(args.root / "waterbirds128")) if task.open["data"] == "waterbirds" else dict(task.open, data=str(args.root / task.open["data"]))
    data = open_data(**where)
    known = contenders(task, data)
    for name in args.methods or known:
        if name not in known:
            sys.exit(f"--methods {name}: there are {', '.join(known)}.")
        contend(name, known[name], data, range(args.seeds), args.out / args.task, say=lambda text: print(text, flush=True), model=task.model,
                weights=str(args.root / task.weights) if task.weights else None if task.model != "minilm" else "pretrained",
                inputs=dict(task.inputs, **({"cache": args.cache} if args.cache else {})))


if __name__ == "__main__":
    main()
