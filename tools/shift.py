"""Measure what a shift within the smallest group costs: its training rows are a biased part of it.

    python tools/shift.py runs      --root FOLDER --metadata FILE --out FOLDER [--tasks NAME ...]
    python tools/shift.py help      --root FOLDER --metadata FILE --out FOLDER [--tasks NAME ...]
    python tools/shift.py curves    --root FOLDER --metadata FILE --out FOLDER [--tasks NAME ...]
    python tools/shift.py synthetic --out FOLDER [--seeds 5]
    python tools/shift.py seal      --root FOLDER --metadata FILE --out FOLDER --record results/shift.json

FOLDER of --root is that of tools/evidence.py, FILE the metadata.csv of Waterbirds, which names the species.
Of the smallest training group only a part stays, the rest of it is left unused; validation and test are as
they were. `kind`: the rows of one sub-kind (gulls and terns; managers). `line`: as many rows, those furthest
along a direction (the first principal component of the group; age). `fair`: as many rows at random, drawn
anew for each seed. Learning rates and budgets are those of results/evidence.

`runs` trains every method, `help` PDE with other settings, `curves` records every round of PDE. Each run
writes a file of its own below OUT, and runs that are there are not made again; `seal` joins them.
"""

import argparse
import json
import sys
import time
import warnings
from dataclasses import dataclass, replace
from itertools import product, takewhile
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parent.parent / "nbs" / "13_experiments"))

from evidence import QUICK, TASKS, Task, contenders, open_task, say
from shifted_world import shifted_world

from pde_nb.algorithm.expansion import Schedule
from pde_nb.algorithm.groups import group_names
from pde_nb.analysis.diagnosis import diagnose
from pde_nb.comparison.trials import Result
from pde_nb.core.files import surroundings
from pde_nb.methods.base import Method
from pde_nb.methods.pde import PDE
from pde_nb.records.seals import write_sealed
from pde_nb.runs.fit import fit_spec
from pde_nb.runs.spec import build, decide
from pde_nb.sources.data import Data
from pde_nb.training.loop import own_randomness
from pde_nb.training.outputs import predict, probabilities
from pde_nb.training.run import Run

EVIDENCE = Path(__file__).resolve().parent.parent / "results" / "evidence"
METHODS = (
    *("pde", "subsample", "group_dro", "pde_balanced", "resampling", "dfr", "erm"),
    *("dfr_tr", "jtt", "eiil", "lff"),
)
LARIDS = "Gull", "Tern"  # last words of the names of species
MANAGERS = "Exec-managerial"


# ---- the data ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """A task with what divides its smallest training group."""

    name: str
    data: Data  # whole
    group: int  # the smallest one of training
    kind: np.ndarray  # (n,) bool: the sub-kind of which rows are kept
    line: np.ndarray  # (n,) float: the place of each row along the direction

    @property
    def rows(self) -> np.ndarray:
        """Training rows of the smallest group."""
        rows = self.data.rows("train")
        return rows[self.data.train_groups.ids[rows] == self.group]

    @property
    def n_kept(self) -> int:
        """How many of them are of the sub-kind."""
        return int(self.kind[self.rows].sum())

    @property
    def least(self) -> float:
        """The place on the line that the rows kept there have at least."""
        return float(np.sort(self.line[self.rows])[-self.n_kept])

    def side(self, condition: str) -> np.ndarray:
        """(n,) whether a row is on the side that training keeps."""
        return self.line >= self.least if condition == "line" else self.kind

    def kept(self, condition: str, seed: int) -> np.ndarray:
        """The training rows of the smallest group that stay."""
        if condition == "all":
            return self.rows
        if condition == "fair":
            return np.random.default_rng([31, seed]).choice(self.rows, self.n_kept, replace=False)
        order = self.rows[np.argsort(-self.line[self.rows], kind="stable")]
        return order[: self.n_kept] if condition == "line" else self.rows[self.kind[self.rows]]

    def part(self, condition: str, seed: int, biased_validation: bool = False) -> Data:
        """The data of a condition; `biased_validation`: the group is biased in validation, too."""
        split = self.data.split.copy()
        split[np.setdiff1d(self.rows, self.kept(condition, seed))] = -1
        if biased_validation:
            split[(split == 1) & (self.data.train_groups.ids == self.group) & ~self.side(condition)] = -1
        return replace(self.data, split=split)


def first_component(data: Data, rows) -> np.ndarray:
    """The place of each row along the first principal component of some rows, all columns standardised."""
    x, train = data.inputs.x, data.rows("train")
    x = (x - x[train].mean(0)) / np.maximum(x[train].std(0), 1e-6)
    _, _, directions = np.linalg.svd(x[rows] - x[rows].mean(0), full_matrices=False)
    return -(x - x[rows].mean(0)) @ directions[0]


def species(path: Path) -> np.ndarray:
    """The last word of the name of each bird's species: Gull, Tern, …"""
    import csv

    with open(path, newline="", encoding="utf-8") as f:
        names = [row["img_filename"].split("/")[0] for row in csv.DictReader(f)]
    return np.array([name.split("_")[-1] for name in names])


def open_case(name: str, args) -> Case:
    """A task, opened, with what divides its smallest group."""
    data = open_task(TASKS[name], args.root)
    counts = data.groups("train").counts
    group = int(counts.argmin())
    case = Case(name, data, group, np.ones(len(data), bool), np.zeros(len(data)))
    if name == "adult":
        columns = data.inputs.columns
        return replace(case, kind=columns["occupation"] == MANAGERS, line=np.asarray(columns["age"], float))
    kind = np.isin(species(args.metadata), LARIDS)
    return replace(case, kind=kind, line=first_component(data, case.rows))


# ---- runs -------------------------------------------------------------------------------------


def rate(name: str, method: str) -> dict:
    """The settings that results/evidence has chosen for a method."""
    return Result.read(EVIDENCE / name / f"{method}.json").chosen


def spec_of(case: Case, data: Data, method: Method, rate_of: str, seed: int, **changes):
    """A run of a method with the settings of the task."""
    task = TASKS[case.name]
    settings = task.settings | rate(case.name, rate_of) | changes
    return decide(data, task.model, method, inputs=dict(task.inputs), seed=seed, device="cpu", **settings)


def counts_of(case: Case, right: np.ndarray, rows: np.ndarray, side: np.ndarray) -> dict:
    """Right and all rows of each group, and of the smallest one on either side, kept and left."""
    ids = case.data.train_groups.ids[rows]
    n = case.data.train_groups.n_groups
    found = dict(correct=np.bincount(ids[right], minlength=n).tolist())
    found["total"] = np.bincount(ids, minlength=n).tolist()
    for name, on in dict(kept=side[rows], left=~side[rows]).items():
        mine = on & (ids == case.group)
        found[name] = [int((mine & right).sum()), int(mine.sum())]
    return found


def right_rows(run: Run, rows: np.ndarray) -> np.ndarray:
    """Whether each row is predicted as it should be."""
    return predict(run.model, run.source, rows, 1024) == run.data.y[rows]


def one_run(case: Case, condition: str, method: str, seed: int) -> dict:
    """What a method came to."""
    data = case.part(condition, seed)
    contender = contenders(TASKS[case.name], data)[method]
    return finish(case, condition, data, spec_of(case, data, contender.method, method, seed), seed)


def finish(case: Case, condition: str, data: Data, spec, seed: int) -> dict:
    """Train a run and count."""
    fit = fit_spec(spec, data, bar=False)
    record, side = fit.record, case.side(condition)
    found = dict(seed=seed, seconds=round(record.cost.seconds, 1), passes=record.cost.passes)
    found |= dict(best_epoch=record.best_epoch, n_epochs=len(record.curve))
    found["stage"] = record.curve[record.best_epoch]["stage"]
    for split in ("val", "test"):
        rows = data.rows(split)
        found[split] = counts_of(case, right_rows(fit.selected, rows), rows, side)
    recorded = record.evaluated["test"].correct.tolist()
    if found["test"]["correct"] != recorded:
        raise RuntimeError(f"{case.name}: counted {found['test']['correct']}, the run {recorded}")
    return found


# ---- what may help ----------------------------------------------------------------------------


HELP = {  # name → settings of PDE, changes of the run, or both
    "weight_decay=0.01": dict(run=dict(weight_decay=0.01)),
    "weight_decay=0.1": dict(run=dict(weight_decay=0.1)),
    "lr / 10": dict(lr=0.1),
    "rounds=3": dict(pde=dict(rounds=3)),
    "growth=8": dict(pde=dict(growth=8.0)),
    "rounds=3, growth=8": dict(pde=dict(rounds=3, growth=8.0)),
    "fixed": dict(fixed=dict()),
    "fixed, cap × 4": dict(fixed=dict(cap=4)),
    "fixed, 5 epochs": dict(fixed=dict(epochs=5)),
    "validation biased": dict(biased=True),
}


def helped_run(case: Case, condition: str, name: str, seed: int) -> dict:
    """PDE with other settings."""
    of = HELP[name]
    data = case.part(condition, seed, of.get("biased", False))
    method = pde_within(case, data, of)
    changes = dict(of.get("run", {}))
    if "lr" in of:
        changes["lr"] = rate(case.name, "pde")["lr"] * of["lr"]
    return finish(case, condition, data, spec_of(case, data, method, "pde", seed, **changes), seed)


def pde_within(case: Case, data: Data, of: dict) -> PDE:
    """PDE within the budget of the task, with the schedule that is asked for."""
    groups, passes = data.groups("train"), TASKS[case.name].passes
    if "fixed" not in of:
        return PDE(**of.get("pde", {})).within(passes, groups, len(data.rows("val")))
    method = PDE(schedule="fixed").within(passes, groups)
    if "epochs" in of["fixed"]:
        method = replace(method, schedule=replace(method.schedule, warmup_epochs=of["fixed"]["epochs"]))
    if "cap" in of["fixed"]:
        cap = of["fixed"]["cap"] * int(groups.counts.min())
        method = replace(method, schedule=capped(method.schedule, groups, cap, passes))
    return method


def capped(schedule, groups, cap: int, passes: float):
    """The schedule with a larger warm-up set, cut off where the budget ends."""
    warm = int(np.minimum(groups.counts, cap).sum())
    step = max(1, round(warm / 10))
    epochs = max(1, int(passes * len(groups) / 2 // warm))
    sizes = warm + step * np.arange(1, 1 + (len(groups) - warm) // step)
    n = int((epochs * warm + np.cumsum(2 * sizes) <= passes * len(groups)).sum())
    changes = dict(warmup_epochs=epochs, expand_by=step, n_expansions=n, warmup_cap=cap)
    return replace(schedule, **changes)


# ---- the synthetic world ----------------------------------------------------------------------


WORLD = Task({}, passes=20, rates=(1e-2,), fixed=Schedule(20, 30, 2, n_expansions=10))
BIASES = 0.0, 0.5, 1.0


def world_run(bias: float, method: str, seed: int) -> dict:
    """What a method comes to in the world with so strong a bias."""
    data, kind = shifted_world(bias, seed)
    group = int(data.groups("train").counts.argmin())
    case = Case("synthetic", data, group, kind == 0, np.zeros(len(data)))
    contender = contenders(WORLD, data)[method]
    spec = decide(data, None, contender.method, seed=seed, device="cpu", lr=WORLD.rates[0])
    return finish(case, "kind", data, spec, seed)


# ---- every round of PDE -----------------------------------------------------------------------


def curve_run(case: Case, condition: str, seed: int) -> dict:
    """PDE, with what every round does on validation and test."""
    data = case.part(condition, seed)
    method = contenders(TASKS[case.name], data)["pde"].method
    run = build(spec_of(case, data, method, "pde", seed), data, bar=False)
    pacing = run.method.pacing
    warm = len(pacing.plan.active(0))
    side, rounds = case.side(condition), []
    with own_randomness(run):
        while not run.finished:
            stage = run.method.stage(run.epoch)
            for net in run.networks:
                net.train()
            left = run.steps()
            for i, batch in enumerate(left):
                run.train_step(batch, len(left) - i)
            rounds.append(dict(stage=stage, **round_figures(case, run, side)))
            run.end_epoch()
            rounds[-1]["best"] = run.curve[-1]["best"]
    kept = int(data.groups("train").counts[case.group])
    return dict(seed=seed, per_round=pacing.round_size / warm, n=kept, warm=warm, rounds=rounds)


def round_figures(case: Case, run: Run, side) -> dict:
    """Accuracies and losses of a round; of the smallest group also on either side, and on training."""
    test, val = (run.data.rows(split) for split in ("test", "val"))
    train = case.rows[run.data.split[case.rows] == 0]
    found = dict(test=counts_of(case, right_rows(run, test), test, side))
    found["val"] = counts_of(case, right_rows(run, val), val, side)
    mine = val[case.data.train_groups.ids[val] == case.group]
    found["val_loss"] = round(loss_on(run, mine), 4)
    found["train_loss"] = round(loss_on(run, train), 4)
    return found


def loss_on(run: Run, rows) -> float:
    """The mean loss on some rows."""
    p = probabilities(run.model, run.source, rows)[np.arange(len(rows)), run.data.y[rows]]
    return float(-np.log(np.maximum(p, 1e-12)).mean())


# ---- the command ------------------------------------------------------------------------------


def ensure(path: Path, make, *what):
    """A result in its file, made unless it is there."""
    if path.exists():
        return
    start = time.monotonic()
    found = make(*what)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(found))
    partial.replace(path)
    test = found["rounds"][-1]["test"] if "rounds" in found else found["test"]
    label = "/".join((*path.parts[-4:-1], path.stem))
    say(f"{label}: worst group on test {100 * worst(test):.1f} %, {time.monotonic() - start:.0f} s")


def run_methods(args):
    """Every method under every condition, seed by seed."""
    cases = [open_case(name, args) for name in args.tasks or QUICK]
    for case, seed, method, condition in product(cases, range(args.seeds), args.methods, args.conditions):
        path = args.out / "runs" / case.name / condition / f"{method}-{seed}.json"
        ensure(path, one_run, case, condition, method, seed)


def run_help(args):
    """PDE with other settings."""
    cases = [open_case(name, args) for name in args.tasks or QUICK]
    for case, seed, name, condition in product(cases, range(args.seeds), args.settings, args.conditions):
        if HELP[name].get("biased") and condition == "fair":
            continue
        stem = name.replace(" / ", "_per_").replace(" ", "").replace("×", "x")
        path = args.out / "help" / case.name / condition / f"{stem}-{seed}.json"
        ensure(path, helped_run, case, condition, name, seed)


def run_curves(args):
    """Every round of PDE."""
    cases = [open_case(name, args) for name in args.tasks or QUICK]
    for case, seed, condition in product(cases, range(args.seeds), ("all", *args.conditions)):
        path = args.out / "curves" / case.name / condition / f"pde-{seed}.json"
        ensure(path, curve_run, case, condition, seed)


def run_synthetic(args):
    """Every method in the world, fair, biased and of one kind only."""
    for seed, method, bias in product(range(args.seeds), args.methods, BIASES):
        path = args.out / "synthetic" / "world" / f"{bias:g}" / f"{method}-{seed}.json"
        ensure(path, world_run, bias, method, seed)


# ---- the record ---------------------------------------------------------------------------------


def worst(counts: dict) -> float:
    """The accuracy of the worst group."""
    return min(c / n for c, n in zip(counts["correct"], counts["total"]))


def run_row(path: Path) -> dict:
    """What the record keeps of a run."""
    found = json.loads(path.read_text())
    task, condition = path.parts[-3:-1]
    name = path.stem.rpartition("-")[0]
    row = dict(task=task, condition=condition, name=name, val_worst=round(worst(found["val"]), 5))
    test = found["test"]
    row |= dict(correct=test["correct"], total=test["total"], kept=test["kept"], left=test["left"])
    return row | {key: found[key] for key in ("seed", "stage", "best_epoch", "n_epochs", "seconds")}


def curve_row(path: Path) -> dict:
    """What the record keeps of the rounds of PDE: the chosen one, the last of the warm-up, the best."""
    found = json.loads(path.read_text())
    rounds = found["rounds"]
    warm = [*takewhile(lambda r: r["stage"] == 0, rounds)]  # a step back to it comes later
    tests = [worst(r["test"]) for r in rounds]
    losses = [r["val_loss"] for r in warm]
    chosen = max(i for i, r in enumerate(rounds) if r["best"])
    places = dict(chosen=chosen, warmup_end=len(warm) - 1, best=int(np.argmax(tests)))
    row = dict(task=path.parts[-3], condition=path.parts[-2], seed=found["seed"], n=found["n"])
    row |= dict(per_round=found["per_round"], warmup_rounds=len(warm), least_loss=int(np.argmin(losses)) + 1)
    row["val_loss"] = [min(losses), losses[-1]]
    row["train_loss"] = [warm[row["least_loss"] - 1]["train_loss"], warm[-1]["train_loss"]]
    for name, at in places.items():
        test = rounds[at]["test"]
        row[name] = dict(round=at + 1, stage=rounds[at]["stage"], **test)
    if found["seed"] == 0:
        row["course"] = course_of(rounds)
    return row


def course_of(rounds: list[dict]) -> dict:
    """Figures of every round, for the picture."""
    found = dict(stage=[r["stage"] for r in rounds], best=[int(r["best"]) for r in rounds])
    found["test_worst"] = [round(worst(r["test"]), 4) for r in rounds]
    found["val_worst"] = [round(worst(r["val"]), 4) for r in rounds]
    for side in ("kept", "left"):
        found[side] = [round(r["test"][side][0] / max(1, r["test"][side][1]), 4) for r in rounds]
    return found | dict(val_loss=[r["val_loss"] for r in rounds])


def case_row(case: Case) -> dict:
    """What the parts of a task are."""
    kept = {c: case.kept(c, 0) for c in ("all", "kind", "line")}
    return dict(
        task=case.name,
        group=group_names(case.data.groups("train"))[case.group],
        rows={condition: len(rows) for condition, rows in kept.items()},
        both=len(np.intersect1d(kept["kind"], kept["line"])),
        data_digest=case.data.digest,
        spreads=spreads_of(case),
    )


def spreads_of(case: Case, seeds: int = 5) -> dict:
    """How alike a diagnosis finds the rows of the smallest group under each condition: spread and alarm."""
    found = {}
    for condition in ("all", "kind", "line", "fair"):
        found[condition] = []
        for seed in range(seeds if condition == "fair" else 1):
            rows = diagnose(case.part(condition, seed)).warmup
            found[condition].append([round(rows.spread, 4), rows.alike, rows.at_least, rows.typical])
    return found


def run_seal(args):
    """Join what was made into the record."""
    rows = {
        name: sorted((args.out / name).rglob("*.json")) for name in ("runs", "help", "synthetic", "curves")
    }
    for name in QUICK:
        path = args.out / "cases" / f"{name}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(case_row(open_case(name, args))))
    cases = [json.loads((args.out / "cases" / f"{name}.json").read_text()) for name in QUICK]
    record = dict(surroundings=surroundings(), cases=cases)
    for name, paths in rows.items():
        record[name] = [curve_row(p) if name == "curves" else run_row(p) for p in paths]
    write_sealed(args.record, record)
    say({name: len(record[name]) for name in rows})


COMMANDS = dict(seal=run_seal, runs=run_methods, help=run_help, curves=run_curves, synthetic=run_synthetic)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--metadata", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=QUICK)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--settings", nargs="+", default=[*HELP], choices=[*HELP], help="of `help`")
    parser.add_argument("--conditions", nargs="+", default=("kind", "fair"), choices=("kind", "fair", "line"))
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    torch.set_num_threads(1)
    COMMANDS[args.command](args)


if __name__ == "__main__":
    main()
