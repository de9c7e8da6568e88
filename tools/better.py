"""Is there a better PDE? Every candidate by the protocol of nbs/13_experiments/20_better.ipynb.

    python tools/better.py development  TASK --root FOLDER [--methods NAME ...] [--seeds N]
    python tools/better.py confirmation TASK --root FOLDER [--methods NAME ...] [--seeds N]

TASK and FOLDER are those of tools/evidence.py, whose tasks, budgets and rates hold here too. Seeds are 10 to
14 for development and 0 to 4 for confirmation, of which N from the first on are run; the learning rate is
always tuned on the first. Each contender writes OUT/PART/TASK/NAME.json (OUT is results/better unless --out
names another folder) once all its seeds are done; its runs are kept below --runs (runs/better), and a command
that is given again goes on where it was. No run may show more examples than the budget has.
"""

import argparse
import sys
import warnings
from pathlib import Path

from candidates import AveragePDE, BodyLRPDE, GroupDROPDE, MomentumDrawsPDE, RedrawPDE, RefitPDE
from evidence import TASKS, Task, contenders, open_task, say

from pde_nb.comparison.comparison import Contender, contend
from pde_nb.comparison.trials import Result
from pde_nb.methods.base import Method
from pde_nb.methods.pde import PDE
from pde_nb.sources.data import Data

ROOT = Path(__file__).resolve().parents[1]
SEEDS = {"development": range(10, 15), "confirmation": range(5)}
KNOWN = {  # as in the results: name here → name there
    "pde": "pde",
    "subsample": "subsample",
    "group_dro": "group_dro",
    "balanced": "pde_balanced",
}
CANDIDATES: dict[str, Method] = {
    "draws_3": PDE(draws=3),
    "draws_5": PDE(draws=5),
    "average": AveragePDE(),
    "expansion_dro": GroupDROPDE(),
    "redraw": RedrawPDE(),
    "refit": RefitPDE(),
    "body_lr": BodyLRPDE(),
}
VARIANTS: dict[str, Method] = {  # tried within development only
    "draws_3_all": PDE(draws=3, soup="all"),
    "draws_5_all": PDE(draws=5, soup="all"),
    "draws_3_momentum": MomentumDrawsPDE(draws=3),
    "draws_5_momentum": MomentumDrawsPDE(draws=5),
    "average_2": AveragePDE(window=2.0),
    "average_15": AveragePDE(window=15.0),
    "average_on": AveragePDE(goes_on="average"),
    "expansion_dro_10": GroupDROPDE(eta=0.1),
    "expansion_dro_all": GroupDROPDE(by="none"),
    "refit_10": RefitPDE(subsets=10),
    "refit_checked": RefitPDE(checked=True),
    "body_lr_3": BodyLRPDE(body_lr=0.3),
}


def all_contenders(task: Task, data: Data) -> dict[str, Contender]:
    """The known methods, the candidates and their variants by name, each within the budget of the task."""
    budget = (task.passes, data.groups("train"), len(data.rows("val")))
    known = contenders(task, data)
    found = {name: known[there] for name, there in KNOWN.items()}
    for name, method in (CANDIDATES | VARIANTS).items():
        found[name] = Contender(method.within(*budget), task.tried, task.settings)
    return found


def check_cost(result: Result, task: Task):
    """Raises `ValueError` for a run that showed more examples than the budget has."""
    for trial in result.trials:
        if trial.passes > task.passes + 1e-9:
            raise ValueError(
                f"{result.title}, seed {trial.seed}: {trial.passes:.3f} passes, and the budget is "
                f"{task.passes}; the figure of this run does not count."
            )


def run_part(part: str, name: str, args):
    """Contenders on one task, with the seeds of development or of confirmation."""
    task = TASKS[name]
    data = open_task(task, args.root)
    known = all_contenders(task, data)
    inputs = dict(task.inputs)
    if args.cache:
        inputs["cache"] = args.cache
    weights = str(args.root / task.weights) if task.weights else "pretrained"
    common = dict(model=task.model, weights=weights, inputs=inputs, device=args.device)
    seeds = SEEDS[part][: args.seeds]
    for method in args.methods or (*KNOWN, *CANDIDATES):
        if method not in known:
            sys.exit(f"--methods {method}: there are {', '.join(known)}.")
        result = contend(method, known[method], data, seeds, args.runs / part / name, say, **common)
        check_cost(result, task)
        folder = args.out / part / name
        folder.mkdir(parents=True, exist_ok=True)
        result.write(folder / f"{method}.json")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=SEEDS)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--root", type=Path, required=True, help="the folder with the prepared data")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "better")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "better", help="where runs are kept")
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--seeds", type=int, help="how many, from the first; all five unless given")
    parser.add_argument("--cache", help="where decoded pictures are kept")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    args.runs.mkdir(parents=True, exist_ok=True)
    run_part(args.part, args.task, args)


if __name__ == "__main__":
    main()
