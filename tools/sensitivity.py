"""Run every method over one grid of settings on three real tasks, and seal what came of it.

    python tools/sensitivity.py features --root FOLDER
    python tools/sensitivity.py run      --root FOLDER --out FOLDER [--tasks NAME ...] [--methods NAME ...]
    python tools/sensitivity.py seal     --root FOLDER --out FOLDER --record FILE

FOLDER of --root holds the prepared data of tools/evidence.py. The tasks are its two quick ones, with a half
and a fifth of its budget, and SICK as frozen sentence embeddings: `features` makes sick_features.npz there,
the distance and the product of those of both sentences. A run that is there is not repeated, so `run` may be
given with more methods or --seeds later; `seal` takes the methods that are whole. Methods without a
schedule that depends on the budget train once for all lengths: a shorter run begins a longer one.
"""

import argparse
import sys
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch
from evidence import say

from pde_nb.cli.opening import open_data
from pde_nb.comparison.grid import REMEDY, Asked, Point, points_of, sensitivity, usual_grid
from pde_nb.comparison.sensitivity import DRAWS, GridRun, MethodGrid, grid_of, grid_to_plain
from pde_nb.comparison.trials import settings_name
from pde_nb.core.files import surroundings
from pde_nb.core.shared import work_once
from pde_nb.grouping.representation import represent
from pde_nb.methods.pde import PDE
from pde_nb.methods.registry import method_title
from pde_nb.records.seals import read_sealed, write_sealed
from pde_nb.runs.record import count_split
from pde_nb.runs.spec import build
from pde_nb.sources.data import Data
from pde_nb.speed.stackable import alone_because
from pde_nb.speed.stacked import train_members
from pde_nb.training.loop import NoModel, train
from pde_nb.training.outputs import predict
from pde_nb.training.run import Run
from pde_nb.training.selection import memberships

METHODS = ("pde", "group_dro", "subsample", "erm", "pde_fixed", "resampling", "jtt", "lff", "eiil")
CUT = "pde", "group_dro", "subsample", "erm", "resampling"  # of which a shorter run begins a longer one
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
    "sick_features": Task(FEATURES, "contradiction", "negation", passes=4),
    "adult": Task("adult.csv", "income", "sex", passes=4),
}


def chosen(name: str):
    """A method by the name of its record."""
    return PDE(schedule="fixed") if name == "pde_fixed" else name


@dataclass(frozen=True, eq=False)
class Cut:
    """What the best epoch so far was when a shorter run would have ended."""

    weights: dict | None
    seconds: float


class Cutter:
    """Keeps what the best epoch was when a shorter run would have ended, and writes that when a run has."""

    each_epoch = True

    def __init__(self, grid: Asked, points: list[Point], out: Path):
        self.grid = grid
        self.points = points  # the shortest first
        self.out = out
        self.ends = [grid.spec(point).method.epochs for point in points]
        self.cuts = []

    def __call__(self, run: Run, force: bool = False):
        while run.step == 0 and len(self.cuts) < len(self.ends) and run.epoch >= self.ends[len(self.cuts)]:
            self.cuts.append(Cut(run.best_weights, run.seconds))

        if force and run.finished:
            left = len(self.ends) - len(self.cuts)
            self.write(run, self.cuts + [Cut(run.best_weights, run.seconds)] * left)

    def write(self, run: Run, cuts: list[Cut]):
        """Write what each length came to, or compare it with what is there."""
        for point, cut in zip(self.points, cuts, strict=True):
            found = run_of_cut(run, cut, point.named)
            path = point.path(self.out)
            path.parent.mkdir(parents=True, exist_ok=True)
            plain = dict(found.to_dict(), config=self.grid.spec(point).config())
            if path.exists():
                check_alike(path, plain)
            else:
                write_sealed(path, plain)
        last = self.points[-1]
        say(f"{last.method} {settings_name(last.settings)} seed {last.seed}: {cuts[-1].seconds:.0f} s")


def run_of_cut(run: Run, cut: Cut, settings: dict) -> GridRun:
    """What a run that ended there came to."""
    if cut.weights is None:
        why = f"no model to return: {run.stopped} before the first epoch was over."
        return GridRun(settings, run.seed, round(cut.seconds, 1), failed=why)
    run.model.load_state_dict(cut.weights)
    rows = run.data.rows("val")
    told = predict(run.model, run.source, rows, run.settings.eval_batch, run.autocast)
    counts = (count_split(run, split) for split in ("val", "test"))
    return GridRun(settings, run.seed, round(cut.seconds, 1), *counts, told == run.data.y[rows])


def run_lengths(asked: Asked, settings: list[list[Point]], out: Path):
    """All lengths of each setting in one run: a shorter one is the first part of a longer one.

    The runs step together where they have the bits that they have alone.
    """
    settings = [points for points in settings if not all(point.path(out).exists() for point in points)]
    with work_once():  # one copy of the inputs for all
        runs = [build(asked.spec(points[-1]), asked.data, bar=False) for points in settings]
    cutters = [Cutter(asked, points, out) for points in settings]
    whys = [alone_because(run) for run in runs]
    stacked = [i for i, why in enumerate(whys) if why is None]
    train_members([runs[i] for i in stacked], [cutters[i] for i in stacked])
    for run, cutter, why in zip(runs, cutters, whys, strict=True):
        if why:
            with suppress(NoModel):  # which its file says
                train(run, cutter, bar=False)


def check_alike(path: Path, plain: dict):
    """A run that was made for itself came to the same."""
    there = read_sealed(path, "a run of a grid", REMEDY)
    for key in ("val", "test", "right", "failed"):
        if there.get(key) != plain.get(key):
            sys.exit(f"{path}: {key} differs from the first part of a longer run.")
    say(f"{path.name}: as the first part of a longer run")


def run_methods(task: str, names: list[str], seed: int, data: Data, out: Path):
    """Methods over the grid, with one seed: those of which a shorter run begins a longer one at once."""
    grid, passes = usual_grid(data.inputs.kind), TASKS[task].passes
    cut = [name for name in names if name in CUT]
    asked = Asked(data, {name: chosen(name) for name in cut}, "auto", dict(device="cpu"))
    points = points_of(cut, grid, passes, [seed])
    by_setting = {}
    for point in reversed(points):  # the shortest first
        by_setting.setdefault((point.method, settings_name(point.settings)), []).append(point)
    run_lengths(asked, list(by_setting.values()), out)
    for name in names:
        if name not in CUT:
            sensitivity(data, out, {name: chosen(name)}, range(seed + 1), passes, say=say, device="cpu")


def run_tasks(args):
    """Every method on every task: the first four methods everywhere before the others."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    opened = {}
    parts = [part for part in (args.methods[:4], args.methods[4:]) if part]
    for seed, part, task in product(range(args.seeds), parts, args.tasks):
        if task not in opened:
            opened[task] = TASKS[task].open(args.root)
        say(f"{task}: {', '.join(part)}, seed {seed}")
        run_methods(task, part, seed, opened[task], args.out / task)


def made_grids(task: Task, folder: Path, root: Path) -> dict[str, MethodGrid]:
    """The methods of which every setting was run, with as many seeds as all settings have."""
    member = memberships(task.open(root).evaluation("val"))
    grids = {}
    for name in METHODS:
        found = [read_sealed(path, "a run of a grid", REMEDY) for path in (folder / name).glob("*.json")]
        runs = sorted(map(GridRun.from_dict, found), key=in_grid)
        times = Counter(run.seed for run in runs)
        whole = {seed for seed, n in times.items() if n == len(usual_grid("features"))}
        runs = [run for run in runs if run.seed in whole]
        if runs:
            title = method_title(found[0]["config"]["method"])
            grids[name] = grid_of(title, runs, member)
            say(f"{folder.name}: {grids[name]}")
    return grids


def in_grid(run: GridRun) -> tuple:
    """What runs are sorted by: the settings, then the seed."""
    return -run.settings["passes"], run.settings["lr"], run.settings["weight_decay"], run.seed


def seal(args):
    """Write the record: counts by group of every setting, and what small validations choose."""
    tasks = {}
    for name in args.tasks:
        grids = made_grids(TASKS[name], args.out / name, args.root)
        plain = {method: grid_to_plain(grid) for method, grid in grids.items()}
        tasks[name] = dict(passes=TASKS[name].passes, grids=plain)
    write_sealed(args.record, dict(surroundings=surroundings(), draws=DRAWS, tasks=tasks))


def make_features(args):
    """SICK as frozen embeddings of its sentences: distance and product of the two, by coordinate."""
    seen = {}
    for name in ("sentence_A", "sentence_B"):
        data = open_data(
            data=str(args.root / "sick.csv"), label="contradiction", attribute=["negation"], text=[name]
        )
        seen[name] = represent(data, model="minilm").x
    u, v = seen.values()
    x = np.concatenate([np.abs(u - v), u * v], 1).astype("float32")
    negation = data.train_groups.ids % 2
    np.savez(args.root / FEATURES, x=x, contradiction=data.y, negation=negation, split=data.split)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    jobs = dict(features=make_features, run=run_tasks, seal=seal)
    asked = {name: commands.add_parser(name) for name in jobs}
    for command in asked.values():
        command.add_argument("--root", type=Path, required=True)
    for name in ("run", "seal"):
        asked[name].add_argument("--out", type=Path, required=True)
        asked[name].add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    asked["run"].add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    asked["run"].add_argument("--seeds", type=int, default=1)
    asked["seal"].add_argument("--record", type=Path, required=True)
    args = parser.parse_args()
    jobs[args.command](args)


if __name__ == "__main__":
    main()
