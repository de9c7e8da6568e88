"""Record, tables, sentences and pictures of the page on a shift within the smallest group; see evidence.py.

All training rows of that group are on record in results/evidence, the other conditions in results/shift.json.
"""

import math
from collections import defaultdict
from functools import cache
from itertools import product
from statistics import mean, median

import numpy as np
from evidence import FOLDER, METHODS, TASKS, read_task
from evidence_text import joined
from shifted_world import shifted_world

from pde_nb.analysis.trials import seed_figures
from pde_nb.core.seals import read_measurement
from pde_nb.core.statistics import Summary, summary
from pde_nb.core.style import COLOURS, SMALL, new_figure
from pde_nb.core.tables import DASH, Table, fixed, percent, signed_text

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
    "The first minus the second, paired by seed; None without a common seed."
    seeds = sorted(one.keys() & other.keys())
    return summary([one[s] - other[s] for s in seeds]) if seeds else None


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
    "The mean over seeds in percent; how many there are, where not five."
    if not found:
        return DASH
    few = f" ({len(found)})" if len(found) != 5 else ""
    return f"{percent(mean(found.values()), 1)}{few}".replace(" %", "")


def change_text(found: Summary | None) -> str:
    "A difference in points with its interval."
    return DASH if found is None else signed_text(found)


def runs_table(record: dict, task: str) -> Table:
    "The worst group on test with all rows, a fair part and one kind, and what fewer rows and the shift cost."
    rows = []
    for name in ORDER:
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
    for name in ORDER:
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
    from pde_nb.methods.schedules import round_size

    result = read_once(task)["pde"]
    found = []
    for trial in result.trials:
        rounds = [entry for entry in trial.curve if entry["stage"] == 0]
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


# Sentences

COLLAPSE = 20.0  # points of the worst group that a shift costs, from which on a page may speak of collapse


def shift_cost(record: dict, task: str, name: str, what: str = "worst") -> Summary | None:
    "What one kind costs beside a fair part of the same size, paired by seed."
    return difference(*(values(record["runs"][task, c, name], what) for c in ("kind", "fair")))


def fewer_cost(record: dict, task: str, name: str) -> Summary | None:
    "What a fair part costs beside all rows, paired by seed."
    return difference(values(record["runs"][task, "fair", name]), complete(task, name)["worst"])


def points(found: Summary) -> str:
    "A difference in points with its interval and its seeds."
    return f"{signed_text(found)} points ({found.n} seed{'s' * (found.n > 1)})"


def collapse_text(record: dict) -> str:
    "Whether the reported collapse is seen here."
    costs = {title: shift_cost(record, task, "pde") for task, title in SHOWN.items()}
    said = "; ".join(f"{title} {points(d)}" for title, d in costs.items())
    fallen = [title for title, d in costs.items() if 100 * d.mean < -COLLAPSE]
    answer = f"it does on {joined(fallen)}" if fallen else "it does not on either task"
    return f"**Does PDE collapse?** By {COLLAPSE:g} points or more {answer}. The shift alone costs: {said}."


def rows_text(record: dict) -> str:
    "Whether fewer rows or the shift cost more, in PDE."
    parts = []
    for task, title in SHOWN.items():
        fewer, shift = fewer_cost(record, task, "pde"), shift_cost(record, task, "pde")
        more = "fewer rows cost more" if fewer.mean < shift.mean else "the shift costs more"
        parts.append(
            f"on {title} {more}: {signed_text(fewer)} for fewer rows, {signed_text(shift)} for the shift"
        )
    return f"**Fewer rows or the shift?** For PDE, {'; '.join(parts)}."


def others_text(record: dict) -> str:
    "Whether the shift costs PDE more than the other methods that use training groups."
    parts = []
    for task, title in SHOWN.items():
        costs = {m: shift_cost(record, task, m, "left") for m in ("pde", "group_dro", "subsample")}
        known = {METHODS[m]: d for m, d in costs.items() if d is not None}
        parts.append(
            f"{title}: " + ", ".join(f"{m} {fixed(100 * d.mean, sign='+')}" for m, d in known.items())
        )
    question = "**Is PDE worse off than others?** What the shift costs the left-out kind, in points"
    return f"{question}: {'; '.join(parts)}."


def help_text(record: dict) -> str:
    "What helps on both tasks."
    firm = firm_gains(record)
    tried = len(SETTINGS)
    if firm:
        return f"**What helps?** Of {tried} settings, on both tasks: {joined(HELP[name] for name in firm)}."
    best = max(SETTINGS, key=lambda name: mean_gain(record, name))
    most = fixed(100 * mean_gain(record, best), sign="+")
    answer = f"**What helps? Nothing that was tried**: none of {tried} settings gains on both tasks"
    return f"{answer} with intervals above zero. The best is “{HELP[best]}”, {most} on their mean."


def mean_gain(record: dict, name: str) -> float:
    "The gain of a setting, mean over the tasks; minus infinity where a task lacks it."
    found = gains(record)
    if any((task, name) not in found for task in SHOWN):
        return -math.inf
    return mean(found[task, name].mean for task in SHOWN)


def protection_text(record: dict) -> str:
    "What choosing on validation that is not biased is worth."
    parts = []
    for task, title in SHOWN.items():
        found = protection(record, task, "kind")
        biased = gains(record).get((task, "validationbiased"))
        if found is not None:
            parts.append(f"{title}: the chosen round against the last of the warm-up {points(found)}")
        if biased is not None:
            parts.append(f"{title}: validation as biased as training {points(biased)}")
    return f"**What does validation protect?** Worst group on test, {'; '.join(parts)}."


def seen_text(record: dict) -> str:
    "Whether a diagnosis sees the shift."
    found = {}
    for case in record["cases"]:
        spread, alarm, *_ = case["spreads"]["kind"][0]
        found[SHOWN[case["task"]]] = f"{spread:.2f}{', called alike' if alarm else ', not called alike'}"
    said = "; ".join(f"{title} {text}" for title, text in found.items())
    return (
        f"**Would a diagnosis have told?** Spread of the rows of one kind, near 1 for a fair sample: {said}."
    )


def findings(record: dict) -> list[str]:
    "What the page comes to, sceptical sentences first."
    texts = collapse_text, rows_text, others_text, help_text, protection_text, seen_text
    return [text(record) for text in texts]


def missing_texts(record: dict) -> list[str]:
    "What has fewer than five seeds, by task."
    lines = []
    for task, title in SHOWN.items():
        few = []
        for name in ORDER:
            n = min(len(record["runs"][task, c, name]) for c in ("fair", "kind"))
            if n < 5:
                few.append(f"{METHODS[name]} {n}")
        if few:
            lines.append(f"{title}, seeds that both have a fair part and one kind: {', '.join(few)}")
    return lines


# Pictures


def fig_world():
    "The smallest training group of the small world, fair and of one kind only, before its test rows."
    fig, axes = new_figure(2, 2.7, 2.7)
    for ax, bias in zip(axes, (0.0, 1.0)):
        data, _ = shifted_world(bias, 0)
        x, ids = data.inputs.x, data.train_groups.ids
        for split, look in (
            (2, dict(s=5, color="#cccccc", label="test")),
            (0, dict(s=14, color=COLOURS["spurious"], label="training")),
        ):
            rows = (data.split == split) & (ids == 2)
            ax.scatter(x[rows, 1], x[rows, 2], lw=0, **look)
        ax.set(xlabel="second input", xlim=(-3.5, 6.5), ylim=(-3.5, 6.5))
        ax.set_title(f"bias {bias:g}", fontsize=SMALL + 1)
    axes[0].set_ylabel("third input")
    axes[1].legend(fontsize=SMALL, frameon=False, loc="upper right")
    return fig


LOOKS = {
    "all": dict(color="#999999", marker="o", label="all rows"),
    "fair": dict(color=COLOURS["core"], marker="s", label="fair part"),
    "kind": dict(color=COLOURS["spurious"], marker="D", label="one kind"),
}


def fig_shift(record: dict):
    "The worst group on test of every method, with all rows, a fair part and one kind; bars: 95 % intervals."
    fig, axes = new_figure(len(SHOWN), 3.6, 3.0)
    for ax, (task, title) in zip(axes, SHOWN.items()):
        names = [name for name in ORDER[::-1] if record["runs"][task, "kind", name]]
        for at, name in enumerate(names):
            for step, (condition, look) in zip((0.24, 0, -0.24), LOOKS.items()):
                found = complete(task, name)["worst"]
                if condition != "all":
                    found = values(record["runs"][task, condition, name])
                draw_interval(ax, at + step, found, look)
        ax.set(yticks=range(len(names)), ylim=(-0.6, len(names) - 0.4), xlabel="worst group on test, %")
        ax.set_yticklabels([METHODS[name] for name in names])
        ax.set_title(title, fontsize=SMALL + 1)
    handles = [ax.plot([], [], ls="", ms=5, **look)[0] for look in LOOKS.values()]
    fig.legend(
        handles,
        [look["label"] for look in LOOKS.values()],
        loc="outside lower center",
        ncols=3,
        fontsize=SMALL,
        frameon=False,
    )
    return fig


def draw_interval(ax, at: float, found: dict[int, float], look: dict):
    "The mean over seeds, and its interval where there is one."
    if not found:
        return
    s = summary(list(found.values()))
    ax.plot(100 * s.mean, at, ls="", ms=4.5, color=look["color"], marker=look["marker"])
    if s.n > 1:
        ax.plot([100 * max(0.0, s.low), 100 * min(1.0, s.high)], [at, at], lw=1, color=look["color"])


def fig_course(record: dict):
    "The rounds of PDE with one kind of rows, first seed: both kinds and the worst group on test."
    fig, axes = new_figure(len(SHOWN), 2.9, 3.2)
    for ax, (task, title) in zip(axes, SHOWN.items()):
        runs = [r for r in record["curves"] if (r["task"], r["condition"], r["seed"]) == (task, "kind", 0)]
        if not runs:
            continue
        course = runs[0]["course"]
        lines = {"kept": ("kept kind", COLOURS["core"]), "left": ("left-out kind", COLOURS["spurious"])}
        for key, (label, colour) in {**lines, "test_worst": ("worst group", "#222222")}.items():
            ax.plot(100 * np.array(course[key]), color=colour, lw=1.3, label=label)
        ax.axvline(runs[0]["warmup_rounds"] - 0.5, color="#999999", lw=1, ls=":")
        ax.plot(
            runs[0]["chosen"]["round"] - 1,
            100 * course["test_worst"][runs[0]["chosen"]["round"] - 1],
            "v",
            color="#222222",
            ms=6,
        )
        ax.set(xlabel="round", ylim=(40, 100))
        ax.set_title(title, fontsize=SMALL + 1)
    axes[0].set_ylabel("accuracy on test, %")
    axes[-1].legend(fontsize=SMALL, frameon=False, loc="lower right")
    return fig
