"""Rules that end PDE's training sooner: what they save and what they lose.

    python tools/stopping.py replay --root FOLDER --out CURVES
    python tools/stopping.py try    --root FOLDER --out CURVES [--seeds 0 1 2 3 4] [--rules NAME ...]
    python tools/stopping.py judge  --curves CURVES --out results/stopping.json

FOLDER holds the prepared data of tools/evidence.py. `replay` makes the recorded runs of PDE with the
schedule auto on the quick tasks again, to the same curve, and keeps the test figure of every epoch that was
the best so far: what a run would have come to that had ended there. `try` makes whole runs by other rules,
for those that cannot be read off a curve. Lines are added to CURVES/replay.jsonl and CURVES/try.jsonl, and
no run is made twice. `judge` applies every rule to every curve and writes the record.
"""

import argparse
import json
import sys
import time
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from evidence import TASKS, Task, open_task, say

from pde_nb.algorithm.pacing import Pace
from pde_nb.comparison.trials import Result
from pde_nb.core.files import surroundings
from pde_nb.methods.pde import PDE
from pde_nb.methods.registry import find_method
from pde_nb.records.seals import write_sealed
from pde_nb.runs.record import count_split
from pde_nb.runs.spec import build, decide
from pde_nb.training.loop import own_randomness
from pde_nb.training.run import Run

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE = ROOT / "results" / "evidence"
LOANS = Task(
    dict(data=str(ROOT / "examples" / "loans.csv"), label="granted", attribute=["district"]),
    passes=20,
    rates=(),
    fixed=None,
)
QUICK = "adult", "waterbirds_features"
TRIED = (*QUICK, "loans")


# ---- rules that a curve decides --------------------------------------------------------------------

# training ends once so many rounds, and such a share of the rounds to the best, have passed since the best
CUTS = {
    **{f"{d} rounds after the best": (0.0, d) for d in (6, 8, 10, 13, 16, 20, 24)},
    **{f"{c:g} of the way to the best + {d}": (c, d) for c, d in ((0.25, 10), (0.5, 8), (0.5, 13), (1, 8))},
}


def cut(bests: list[bool], share: float, rounds: int) -> tuple[int, int]:
    """How many rounds a run has that is cut so, and the best of them; `bests` says which were the best."""
    best = 0
    for i, better in enumerate(bests):
        best = i if better else best
        if i - best >= share * (best + 1) + rounds:
            return i + 1, best
    return len(bests), best


def is_open(trial) -> bool:
    """Whether some cut would end a recorded run before its best round: then its test figure is not known."""
    bests = [entry["best"] for entry in trial.curve]
    return any(cut(bests, *rule)[1] != trial.best_epoch for rule in list(CUTS.values())[3:])


# ---- runs -----------------------------------------------------------------------------------------


def course_of(run: Run) -> dict:
    """Train to the end: cost, validation and loss of every epoch, and the test figure of those that were
    the best so far."""
    rows, size = [], len(run.train_rows)
    with own_randomness(run):
        while not run.finished:
            for net in run.networks:
                net.train()
            left = run.steps()
            for i, batch in enumerate(left):
                run.train_step(batch, len(left) - i)
            weights = {name: t.detach().clone() for name, t in run.model.state_dict().items()}
            run.end_epoch()
            rows.append(epoch_row(run, weights))
    last = run.curve[-1]
    return dict(epochs=rows, passes=last["seen"] / size, best=run.best_epoch)


def epoch_row(run: Run, weights: dict) -> dict:
    """What is kept of the epoch that has just ended, whose weights these are."""
    entry = run.curve[-1]
    names = ("stage", "passes", "lr", "loss", "best", "val_worst_group_at_most")
    row = {name: entry[name] for name in names}
    if entry["best"]:
        now = {name: t.detach().clone() for name, t in run.model.state_dict().items()}
        run.model.load_state_dict(weights)
        row["test"] = float(count_split(run, "test").worst_group)
        run.model.load_state_dict(now)
    return row


def add_line(path: Path, row: dict):
    """Add a row to a file of rows."""
    with open(path, "a") as f:
        f.write(json.dumps(row) + "\n")


def lines(path: Path) -> list[dict]:
    """The rows of a file; none where it is not there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def stored() -> dict[str, Result]:
    """The recorded results of PDE with the schedule auto, by file."""
    found = {}
    for path in sorted(EVIDENCE.rglob("*.json")):
        if path.name == "synthetic.json":
            continue
        result = Result.read(path)
        if result.method.get("schedule") == "auto":
            found[str(path.relative_to(EVIDENCE))] = result
    return found


def task_of(name: str) -> str:
    """The task that a file of the evidence is of."""
    return next(part for part in Path(name).parts if part in TASKS)


def built(data, task: Task, method: PDE, seed: int, settings: dict) -> Run:
    """A run before its first step."""
    spec = decide(data, task.model, method, inputs=dict(task.inputs), seed=seed, device="cpu", **settings)
    return build(spec, data, bar=False)


def run_replay(args):
    """The recorded runs on the quick tasks once more."""
    path = args.out / "replay.jsonl"
    done = {(row["file"], row["seed"]): row for row in lines(path)}
    opened = {name: open_task(TASKS[name], args.root) for name in QUICK}
    known = {}  # curves that are the same need one run
    for name, result in stored().items():
        if task_of(name) not in QUICK:
            continue
        task, data = TASKS[task_of(name)], opened[task_of(name)]
        constants = {k: v for k, v in result.method.items() if k != "name"}
        for trial in result.trials:
            curve = task_of(name), json.dumps(trial.curve)
            row = done.get((name, trial.seed)) or known.get(curve)
            if row:
                known[curve] = row
                if (name, trial.seed) not in done:
                    add_line(path, dict(row, file=name, seed=trial.seed))
                continue
            if not is_open(trial):
                continue
            start, method = time.monotonic(), find_method(result.method["name"])(**constants)
            course = course_of(built(data, task, method, trial.seed, result.settings))
            same = [row["best"] for row in course["epochs"]] == [entry["best"] for entry in trial.curve]
            test = course["epochs"][course["best"]]["test"]
            same = same and test == float(trial.splits["test"].worst_group)
            seconds = round(time.monotonic() - start, 2)
            known[curve] = dict(file=name, seed=trial.seed, same=same, seconds=seconds, **course)
            add_line(path, known[curve])
            say(f"{name} seed {trial.seed}: {len(trial.curve)} epochs, the same {same}, {seconds} s")


# ---- rules that need runs ---------------------------------------------------------------------------


@dataclass
class Sooner(PDE):
    """PDE whose stages after the warm-up may be shorter, and that ends so many rounds after its best."""

    later: int | None = None  # rounds without a better model that end a stage after the warm-up
    most: int | None = None  # rounds without a better model that end training

    name = "pde_sooner"
    in_comparisons = False

    def after_epoch(self, epoch, val_worst_group, best):
        if best:
            self.at = epoch
        pace, stage = self.pacing.pace, self.pacing.stages[-1]
        if self.later is not None and stage.began:
            self.pacing.pace = replace(pace, rounds=self.later)
        back = super().after_epoch(epoch, val_worst_group, best)
        self.pacing.pace = pace
        if self.most is not None and epoch - self.at >= self.most:
            self.pacing.stages[-1] = replace(self.pacing.stages[-1], done=True)
        return back


RULES = {
    "as it is": {},
    **{f"rounds {r}": dict(rounds=r) for r in (6, 8)},
    **{f"later {k}": dict(later=k) for k in (2, 3, 4, 6)},
    **{f"rounds {r}, later {k}": dict(rounds=r, later=k) for r in (6, 8) for k in (2, 3, 4)},
    **{f"rounds 10, later {k}": dict(rounds=10, later=k) for k in (2, 3)},
    **{f"later {k}, one try": dict(later=k, tries=1) for k in (3, 6)},
}


def run_try(args):
    """Whole runs by each rule on the quick tasks."""
    path = args.out / "try.jsonl"
    done = {(row["task"], row["rule"], row["seed"]) for row in lines(path)}
    tasks = {**TASKS, "loans": LOANS}
    opened = {name: open_task(tasks[name], args.root) for name in TRIED}
    for seed in args.seeds:
        for rule in args.rules or RULES:
            for name in TRIED:
                if (name, rule, seed) in done:
                    continue
                settings = {}
                if name in QUICK:
                    settings = tasks[name].settings | Result.read(EVIDENCE / name / "pde.json").chosen
                start = time.monotonic()
                course = course_of(built(opened[name], tasks[name], Sooner(**RULES[rule]), seed, settings))
                seconds = round(time.monotonic() - start, 2)
                add_line(path, dict(task=name, rule=rule, seed=seed, seconds=seconds, **course))
                best = course["epochs"][course["best"]]
                passes = f"{best['passes']:.2f} of {course['passes']:.2f} passes"
                say(f"{name} {rule} seed {seed}: {100 * best['test']:.1f} %, {passes}, {seconds} s")


# ---- the record -------------------------------------------------------------------------------------

DROP = 0.3  # points of the worst group that a rule may cost on average


def case_of(name: str, result: Result) -> str:
    """The task of a file; runs without a budget are a case of their own where there are both."""
    return "sick, no budget" if name == "sick/pde_unlimited.json" else task_of(name)


def ended_itself(result: Result, trial) -> bool:
    """Whether a run was ended by its schedule, and not by its budget."""
    return result.method["epochs"] is None or trial.n_epochs < result.method["epochs"]


def cut_row(rule: tuple, result: Result, trial, tests: dict | None) -> dict:
    """What a cut makes of a recorded run: points lost on test, or on validation where test is not known."""
    curve = trial.curve
    n, best = cut([entry["best"] for entry in curve], *rule)
    last = curve[trial.best_epoch]["val_worst_group"]
    row = dict(saved=1 - curve[n - 1]["passes"] / trial.passes, other=best != trial.best_epoch)
    row |= dict(val=100 * (last - curve[best]["val_worst_group"]), itself=ended_itself(result, trial))
    known = not row["other"] or tests is not None
    lost = row["val"]
    if known:
        lost = 100 * (tests[trial.best_epoch] - tests[best]) if row["other"] else 0.0
    return dict(row, lost=lost, known=known)


def mean(values) -> float | None:
    """The mean, or None of nothing."""
    values = list(values)
    return float(np.mean(values)) if values else None


def cut_summary(rows: list[dict]) -> dict:
    """Means over runs: share of the examples that is saved, points that are lost."""
    return dict(
        runs=len(rows),
        itself=sum(row["itself"] for row in rows),
        other=sum(row["other"] for row in rows),
        saved=mean(row["saved"] for row in rows),
        saved_itself=mean(row["saved"] for row in rows if row["itself"]),
        val=mean(row["val"] for row in rows),
        stand_in=sum(not row["known"] for row in rows),
        lost=mean(row["lost"] for row in rows),
    )


def all_cuts(results: dict[str, Result], replayed: dict) -> dict:
    """Every cut on every recorded curve, by task."""
    found = {}
    for rule, values in CUTS.items():
        rows = {}
        for name, result in results.items():
            for trial in result.trials:
                tests = replayed.get((name, trial.seed))
                rows.setdefault(case_of(name, result), []).append(cut_row(values, result, trial, tests))
        found[rule] = {case: cut_summary(of) for case, of in rows.items()}
    return found


def stage_starts(curve: list[dict]) -> list[int]:
    """The epochs in which the stages of a curve began."""
    kinds = [(entry["stage"], entry["lr"]) for entry in curve]
    return [i for i in range(len(curve)) if i == 0 or kinds[i] != kinds[i - 1]]


def first_gains(results: dict[str, Result]) -> dict:
    """In which round of its stage the first better model came, counted over the stages after the warm-up
    of all recorded curves, by task; 0: in none. For expansions and for steps back."""
    found = {}
    for name, result in results.items():
        for trial in result.trials:
            curve = trial.curve
            starts = [*stage_starts(curve), len(curve)]
            for begin, end in zip(starts[1:], starts[2:]):
                kind = "expansion" if curve[begin]["stage"] > curve[begin - 1]["stage"] else "step back"
                at = next((i - begin + 1 for i in range(begin, end) if curve[i]["best"]), 0)
                of = found.setdefault(case_of(name, result), {}).setdefault(kind, {})
                of[str(at)] = of.get(str(at), 0) + 1
    return found


def at_risk(results: dict[str, Result], later: int) -> dict:
    """What shorter later stages may cost, from recorded curves, by task: points of validation between the
    best model and the best one before a stage would have ended sooner. What comes after that is not known
    without a run, so this is the most that is lost. Of the constants as they are."""
    found = {}
    for name, result in results.items():
        usual = {k: v for k, v in result.method.items() if k in asdict(Pace())}
        if usual != {k: v for k, v in asdict(Pace()).items() if k in usual} or result.method["name"] != "pde":
            continue
        for trial in result.trials:
            lost = risk_of(trial.curve, trial.best_epoch, later, sum(result.train_counts))
            found.setdefault(case_of(name, result), []).append(lost)
    rows = found.items()
    return {case: dict(runs=len(of), other=sum(v > 0 for v in of), val=mean(of)) for case, of in rows}


def risk_of(curve: list[dict], best: int, later: int, n_train: int) -> float:
    """The most points of validation that later stages of so many rounds cost one run."""
    example = 1 / n_train  # in passes over the training set
    starts = [*stage_starts(curve), len(curve)]
    for begin, end in zip(starts[1:], starts[2:]):
        active = curve[begin]["active"]
        whole = int(np.ceil(active * example / (curve[begin]["passes"] - curve[begin - 1]["passes"])))
        since = begin - 1
        for i in range(begin, end - 1):
            since = i if curve[i]["best"] else since
            if i - since >= max(later, whole):
                before = max(j for j in range(i + 1) if curve[j]["best"])
                return 100 * (curve[best]["val_worst_group"] - curve[before]["val_worst_group"])
    return 0.0


def tried_rows(rows: list[dict]) -> list[dict]:
    """What the record keeps of whole runs by other rules."""
    kept = []
    for row in rows:
        best = row["epochs"][row["best"]]
        what = {name: row[name] for name in ("task", "rule", "seed", "best", "passes")}
        figures = dict(stage=best["stage"], rounds=len(row["epochs"]), passes_to_best=best["passes"])
        kept.append(what | figures | dict(val=best["val_worst_group_at_most"], test=best["test"]))
    return kept


def run_judge(args):
    """Everything into the record."""
    results = stored()
    replays = lines(args.curves / "replay.jsonl")
    tests = {}
    for row in replays:
        if not row["same"]:
            sys.exit(f"{row['file']} seed {row['seed']}: made again, it is another run.")
        of_epoch = {i: epoch["test"] for i, epoch in enumerate(row["epochs"]) if "test" in epoch}
        tests[row["file"], row["seed"]] = of_epoch
    tried = tried_rows(lines(args.curves / "try.jsonl"))
    record = dict(
        surroundings=surroundings(),
        constants=asdict(Pace()),
        curves=sum(len(result.trials) for result in results.values()),
        replayed=len(replays),
        seconds=dict(replay=sum(row["seconds"] for row in replays)),
        cuts=all_cuts(results, tests),
        cut_values={name: list(values) for name, values in CUTS.items()},
        first_gains=first_gains(results),
        at_risk={str(k): at_risk(results, k) for k in (2, 3, 4, 6, 8)},
        rules=RULES,
        tried=tried,
    )
    record["seconds"]["try"] = sum(row["seconds"] for row in lines(args.curves / "try.jsonl"))
    write_sealed(args.out, record)
    say(f"{record['curves']} curves, {len(tried)} runs by other rules, into {args.out}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["replay", "try", "judge"])
    parser.add_argument("--root", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--curves", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    parser.add_argument("--rules", nargs="+")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    if args.what != "judge":
        args.out.mkdir(parents=True, exist_ok=True)
    dict(replay=run_replay, judge=run_judge, **{"try": run_try})[args.what](args)


if __name__ == "__main__":
    main()
