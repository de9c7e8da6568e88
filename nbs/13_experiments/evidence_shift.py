"""Record and tables of the page on a shift within the smallest group; see evidence.py.

All training rows of that group are on record in results/evidence, the other conditions in results/shift.json.
"""

from collections import defaultdict
from functools import cache
from itertools import product, takewhile
from statistics import mean, median

import numpy as np
from evidence import FOLDER, METHODS, TASKS, read_task

from pde_nb.comparison.trials import seed_figures
from pde_nb.core.statistics import Summary, summary
from pde_nb.core.tables import DASH, Table, fixed, percent, signed_text
from pde_nb.records.seals import read_measurement

RECORD = FOLDER.parent / "shift.json"
SHOWN = {"adult": "Adult", "waterbirds_features": "Waterbirds features"}
CONDITIONS = {"all": "all rows", "fair": "fair part", "kind": "one kind", "line": "far end"}
ORDER = (
    "pde",
    "pde_balanced",
    "subsample",
    "group_dro",
    "resampling",
    "dfr",
    "dfr_tr",
    "jtt",
    "eiil",
    "lff",
    "erm",
)
FEATURES = "waterbirds_features"


# Records


def read_shift() -> dict:
    "The record, with the runs by task, condition and name: (task, condition, name) → seed → run."
    record = read_measurement(RECORD)
    for key in ("runs", "help", "synthetic"):
        record[key] = by_name(record[key])
    return record


def by_name(rows: list[dict]) -> dict[tuple, dict[int, dict]]:
    "Runs by task, condition and name, and then by seed."
    found = defaultdict(dict)
    for row in rows:
        found[row["task"], row["condition"], row["name"]][row["seed"]] = row
    return found


FIGURES = {
    "worst": "worst group",
    "smallest": "smallest group",
    "kept": "the kind that was kept",
    "left": "the kind that was left out",
}


def figure_of(run: dict, what: str) -> float:
    "An accuracy of a run on test, in [0, 1]: one of `FIGURES`."
    if what == "worst":
        return min(c / n for c, n in zip(run["correct"], run["total"]))
    right, n = np.add(run["kept"], run["left"]) if what == "smallest" else run[what]
    return float(right / n)


def values(runs: dict[int, dict], what: str = "worst") -> dict[int, float]:
    "An accuracy of each seed."
    return {seed: figure_of(run, what) for seed, run in runs.items()}


read_once = cache(read_task)


def complete(task: str, name: str, group: int = 2) -> dict[str, dict[int, float]]:
    "Worst and smallest group of a method with all rows, from results/evidence: what → seed → value."
    result = read_once(task)[name]
    found = {"worst": {f.seed: f.worst_group for f in seed_figures(result)}, "smallest": {}}
    for trial in result.trials:
        test = trial.splits["test"]
        found["smallest"][trial.seed] = float(test.correct[group] / test.total[group])
    return found


def difference(one: dict[int, float], other: dict[int, float]) -> Summary | None:
    "The first minus the second, paired by seed; None with fewer than two common seeds: one is no answer."
    seeds = sorted(one.keys() & other.keys())
    return summary([one[s] - other[s] for s in seeds]) if len(seeds) > 1 else None


# Tables


def case_table(record: dict) -> Table:
    "The smallest group of each task, how many rows stay, and how many are in both parts that are biased."
    rows = []
    for case in record["cases"]:
        n = case["rows"]
        cells = f"`{case['group']}`", f"{n['all']:,}", f"{n['kind']:,}", str(case["both"])
        rows.append((SHOWN[case["task"]], *cells))
    return Table(("", "smallest group", "rows", "that stay", "of one kind and far end"), tuple(rows), "llrrr")


def mean_text(found: dict[int, float]) -> str:
    "The mean over seeds in percent; how many there are, where not five; a dash for one or none."
    if len(found) < 2:
        return DASH
    few = f" ({len(found)})" if len(found) != 5 else ""
    return f"{percent(mean(found.values()), 1)}{few}".replace(" %", "")


def change_text(found: Summary | None) -> str:
    "A difference in points with its interval."
    return DASH if found is None else signed_text(found)


def answered(record: dict, task: str) -> list[str]:
    "The methods that have two seeds or more with a fair part and with one kind."
    return [m for m in ORDER if min(len(record["runs"][task, c, m]) for c in ("fair", "kind")) > 1]


def runs_table(record: dict, task: str) -> Table:
    "The worst group on test with all rows, a fair part and one kind, and what fewer rows and the shift cost."
    rows = []
    for name in answered(record, task):
        all_ = complete(task, name)["worst"]
        fair, kind = (values(record["runs"][task, c, name]) for c in ("fair", "kind"))
        cells = [*map(mean_text, (all_, fair, kind))]
        cells += [change_text(difference(fair, all_)), change_text(difference(kind, fair))]
        rows.append((METHODS[name], *cells))
    head = ("worst group on test, %", *[*CONDITIONS.values()][:3], "fewer rows", "shift")
    return Table(head, tuple(rows), "lrrrrr")


def kinds_table(record: dict, task: str) -> Table:
    "The smallest group on test and both kinds in it, with a fair part and with one kind."
    rows = []
    for name in answered(record, task):
        runs = {c: record["runs"][task, c, name] for c in ("fair", "kind")}
        cells = [mean_text(values(runs[c], what)) for what, c in product(("kept", "left"), runs)]
        changes = [
            change_text(difference(values(runs["kind"], what), values(runs["fair"], what)))
            for what in ("smallest", "left")
        ]
        rows.append((METHODS[name], *cells, *changes))
    head = ("accuracy on test, %", "kept kind, fair", "shifted", "left-out kind, fair", "shifted")
    return Table((*head, "shift: group", "shift: left-out kind"), tuple(rows), "lrrrrrr")


def world_table(record: dict) -> Table:
    "Every method in the small world: worst group and left-out kind, by bias."
    biases = sorted({condition for _, condition, _ in record["synthetic"]}, key=float)
    rows = []
    for name in ORDER:
        runs = [record["synthetic"]["world", bias, name] for bias in biases]
        cells = [mean_text(values(of, what)) for what, of in product(("worst", "left"), runs)]
        lost = [difference(values(runs[-1], what), values(runs[0], what)) for what in ("worst", "left")]
        rows.append((METHODS[name], *cells, *map(change_text, lost)))
    heads = [f"{what}, bias {bias}" for what, bias in product(("worst group", "second kind"), biases)]
    return Table(("in %", *heads, "worst group, 1 − 0", "second kind, 1 − 0"), tuple(rows), "l" + "r" * 8)


# What helps

HELP = {  # name of the record → what the page says
    "weight_decay=0.01": "weight decay 0.01 for 0.0001",
    "weight_decay=0.1": "weight decay 0.1",
    "lr_per_10": "a tenth of the learning rate",
    "rounds=3": "stages end after 3 idle rounds, not 12",
    "growth=8": "expansions grow × 8, not × 2",
    "rounds=3,growth=8": "both",
    "fixed": "fixed schedule within the budget",
    "fixed,capx4": "the same, warm-up set up to 4 × the smallest group",
    "fixed,5epochs": "the same, 5 epochs of warm-up",
    "validationbiased": "validation as biased as training",
}
SETTINGS = [*HELP][:-1]  # what a user may choose; the last is the opposite of a help
OTHERS = "pde_balanced", "dfr", "subsample", "group_dro"


def help_table(record: dict) -> Table:
    "PDE with one kind of rows and other settings, and other methods there: minus PDE, paired by seed."
    rows = []
    for name, title in {**HELP, **{m: METHODS[m] for m in OTHERS}}.items():
        cells = []
        for task in SHOWN:
            kind = "runs" if name in OTHERS else "help"
            cells += help_cells(record["runs"][task, "kind", "pde"], record[kind][task, "kind", name])
        rows.append((title, *cells))
    heads = [f"{title}: {what}" for title in SHOWN.values() for what in ("worst group", "left-out kind")]
    return Table(("minus PDE, points (seeds)", *heads), tuple(rows), "lrrrr")


def help_cells(base: dict, runs: dict) -> list[str]:
    "The differences to PDE, in the worst group and in the kind that was left out."
    found = [difference(values(runs, what), values(base, what)) for what in ("worst", "left")]
    return [DASH if d is None else f"{signed_text(d)} ({d.n})" for d in found]


def gains(record: dict, what: str = "worst") -> dict[tuple[str, str], Summary]:
    "What each setting gains over PDE with one kind of rows, by task and name."
    found = {}
    for task, name in product(SHOWN, HELP):
        base, runs = record["runs"][task, "kind", "pde"], record["help"][task, "kind", name]
        d = difference(values(runs, what), values(base, what))
        if d is not None:
            found[task, name] = d
    return found


def firm_gains(record: dict, what: str = "worst") -> list[str]:
    "The settings that gain on both tasks with intervals above zero."
    found = gains(record, what)
    names = [name for name in SETTINGS if all((task, name) in found for task in SHOWN)]
    return [name for name in names if all(found[task, name].low > 0 for task in SHOWN)]


# What validation protects


def protection_table(record: dict) -> Table:
    "PDE: the worst group on test of the chosen round, of the end of the warm-up, and of the best round."
    rows = []
    for task, condition in product(SHOWN, ("all", "fair", "kind")):
        runs = [r for r in record["curves"] if (r["task"], r["condition"]) == (task, condition)]
        if not runs:
            continue
        places = [
            {r["seed"]: figure_of(r[at], "worst") for r in runs} for at in ("chosen", "warmup_end", "best")
        ]
        group = [{r["seed"]: figure_of(r[at], "smallest") for r in runs} for at in ("chosen", "warmup_end")]
        gain = change_text(difference(places[0], places[1]))
        rows.append(
            (SHOWN[task], CONDITIONS[condition], *map(mean_text, places), gain, *map(mean_text, group))
        )
    head = ("worst group on test, %", "training", "chosen", "end of warm-up", "best on test")
    return Table((*head, "chosen − end", "smallest group: chosen", "end"), tuple(rows), "llrrrrrr")


def protection(record: dict, task: str, condition: str) -> Summary | None:
    "What the chosen round is above the end of the warm-up, in the worst group on test."
    runs = [r for r in record["curves"] if (r["task"], r["condition"]) == (task, condition)]
    both = [{r["seed"]: figure_of(r[at], "worst") for r in runs} for at in ("chosen", "warmup_end")]
    return difference(*both)


# How often rows are shown


def warmups(task: str) -> list[dict]:
    "Every warm-up of PDE in results/evidence: rounds, and showings until within a point of its best."
    from pde_nb.algorithm.schedule import round_size

    result = read_once(task)["pde"]
    found = []
    for trial in result.trials:
        rounds = [*takewhile(lambda entry: entry["stage"] == 0, trial.curve)]  # a step back comes later
        warm = rounds[0]["active"]
        per_round = round_size(warm, trial.splits["val"].n) / warm
        better = [(e["epoch"], e["val_worst_group"]) for e in rounds if e["best"]]
        near = next(epoch for epoch, value in better if value >= better[-1][1] - 0.01)
        found.append(dict(rounds=len(rounds), per_round=per_round, near=(near + 1) * per_round))
    return found


def smallest_rows(task: str) -> int:
    "Training rows of the smallest group."
    return min(n for n in read_once(task)["pde"].train_counts if n)


def showings_table() -> Table:
    "How often the warm-ups on record have shown each row of the smallest group."
    rows = []
    for task, title in TASKS.items():
        found = warmups(task)
        per_round = found[0]["per_round"]
        near = sorted(w["near"] for w in found)
        lengths = sorted(w["rounds"] * per_round for w in found)
        cells = f"{per_round:g}", f"{13 * per_round:g}", f"{lengths[0]:g} to {lengths[-1]:g}"
        rows.append((title, f"{smallest_rows(task):,}", *cells, f"{near[0]:g} to {near[-1]:g}"))
    head = ("showings of a row", "smallest group", "a round", "before any end", "whole warm-up")
    return Table((*head, "within a point of its best"), tuple(rows))


def usual_rounds() -> float:
    "The median number of rounds of all warm-ups on record."
    return median(w["rounds"] for task in TASKS for w in warmups(task))


def most_needed(least: int = 48) -> float:
    "The most showings that a warm-up needed where the smallest group has so many rows."
    return max(w["near"] for task in TASKS if smallest_rows(task) >= least for w in warmups(task))


def loss_table(record: dict) -> Table:
    "When the loss of the smallest group on validation is least in the warm-up, and how far it rises."
    rows = []
    for task, condition in product(SHOWN, ("all", "fair", "kind")):
        runs = [r for r in record["curves"] if (r["task"], r["condition"]) == (task, condition)]
        if not runs:
            continue
        shown = sorted(r["least_loss"] * r["per_round"] for r in runs)
        ends = mean(r["warmup_rounds"] * r["per_round"] for r in runs)
        losses = [mean(r["val_loss"][i] for r in runs) for i in (0, 1)]
        train = mean(r["train_loss"][1] for r in runs)
        cells = f"{shown[0]:g} to {shown[-1]:g}", f"{ends:.0f}", *(f"{v:.2f}" for v in losses), f"{train:.3f}"
        rows.append((SHOWN[task], CONDITIONS[condition], str(len(runs)), *cells))
    head = ("", "training", "seeds", "least loss after, showings", "warm-up ends after")
    return Table((*head, "least loss", "loss at the end", "on training rows"), tuple(rows), "llrrrrrr")


# What a diagnosis sees


def spread_table(record: dict) -> Table:
    "How far the rows of the smallest group are from each other beside other rows of the class, as diagnosed."
    rows = []
    for case, condition in product(record["cases"], CONDITIONS):
        found = case["spreads"][condition]
        n = case["rows"]["kind" if condition == "fair" else condition]
        values_ = sorted(spread for spread, *_ in found)
        text = fixed(values_[0], 2) if len(values_) == 1 else f"{values_[0]:.2f} to {values_[-1]:.2f}"
        alarms = f"{sum(alarm for _, alarm, *_ in found)} of {len(found)}"
        least, usual = found[0][2:]
        rows.append(
            (SHOWN[case["task"]], CONDITIONS[condition], f"{n:,}", text, alarms, f"{least}", f"{usual}")
        )
    head = ("", "training", "rows", "spread", "called alike", "shown at least")
    return Table((*head, "in a usual warm-up"), tuple(rows), "llrrrrr")
