"""Tables, sentences and pictures of the page on PDE that sets its own schedule; see evidence.py.

Figures of the synthetic experiment are shares in [0, 1], as in results/evidence/synthetic.json.
"""

from dataclasses import dataclass, replace

import numpy as np
from evidence import (
    FOLDER,
    METHODS,
    TASKS,
    Task,
    method_title,
    passes_text,
    read_task,
    read_variations,
    setting_text,
)
from evidence_pictures import cut_intervals, fig_fitted, summary_row, within_range
from evidence_text import ONE_POINT, distance_sentence, joined, loss_verdict, number_text, runs_ended

from pde_nb.comparison.trials import Result, over_seeds, p_text, paired, points_text, settings_name
from pde_nb.core.statistics import Summary, holm, summary
from pde_nb.core.style import Row
from pde_nb.core.tables import Table, fixed, percent, signed_text, spread_text
from pde_nb.records.seals import read_measurement

FURTHER = "pde_unlimited", "pde_fixed_capped"
KINDS = "pde", "pde_balanced", "pde_fixed"
LIKE = (("sick", "pde_unlimited", "pde_fixed"), ("coloured_mnist", "pde", "pde_fixed_capped"))
PLAIN = "as-is"
FAR = 20.0  # points: beyond these a distance squeezes the others


def read_tasks() -> dict[str, Task]:
    "The results of all tasks."
    return {key: read_task(key, FURTHER) for key in TASKS}


def constants_text(tasks: dict[str, Task], name: str) -> str:
    "The constants of the rules in the runs of a method, and the state of the source that they ran from."
    results = [task[name] for task in tasks.values() if name in task]
    settings = [
        {k: v for k, v in r.method.items() if k not in ("name", "epochs", "schedule")} for r in results
    ]
    used = sorted({setting_text(values) for values in settings})
    revisions = ", ".join(sorted({r.surroundings["revision"] or "–" for r in results}))
    warning = " — **not the same on all tasks**" if len(used) > 1 else ""
    return f"{method_title(name)}: {' and '.join(used)}{warning}; revisions {revisions}."


# The distance to a schedule set by hand


def distance_pairs(tasks: dict[str, Task]) -> dict[str, tuple[Result, Result]]:
    "Every comparison of a kind of PDE with one whose schedule was set by hand, by its name."
    pairs = {}
    for one in ("pde", "pde_balanced"):
        for task in tasks.values():
            if one in task:
                name = task.title if one == "pde" else f"{task.title}, balanced"
                pairs[name] = (task[one], task["pde_fixed"])
    for key, one, other in LIKE:
        what = "unlimited" if one == "pde_unlimited" else "against capped"
        pairs[f"{TASKS[key]}, {what}"] = (tasks[key][one], tasks[key][other])
    return pairs


def distance_table(tasks: dict[str, Task]) -> Table:
    "Both worst groups, their difference, and whether at most one point is lost."
    rows = []
    for name, (one, other) in distance_pairs(tasks).items():
        worst = (spread_text(over_seeds(result, "worst_group")) for result in (one, other))
        d = paired(one, other)
        rows.append((name, *worst, points_text(d), loss_verdict(d)))
    return Table(("", "itself", "by hand", "difference", "at most a point lost?"), tuple(rows), "lrrrl")


def distance_rows(tasks: dict[str, Task]) -> tuple[list[Row], list[Row]]:
    "The rows of `fig_distances`, and those that lie too far to the right for it."
    pairs = distance_pairs(tasks)
    rows = [summary_row(name, within_range(paired(*pair)), True) for name, pair in pairs.items()]
    return [row for row in rows if row.figure <= FAR], [row for row in rows if row.figure > FAR]


def fig_distances(tasks: dict[str, Task]):
    "How far PDE that sets itself is above the schedule set by hand; one point below is dotted."
    near, _ = distance_rows(tasks)
    title = "PDE minus PDE by hand"
    fig = fig_fitted({title: near}, ["points in the worst group"], [0], order=False)
    fig.set_size_inches(6.4, fig.get_figheight())
    fig.axes[0].axvline(-100 * ONE_POINT, color="#333333", lw=1.0, ls=":")
    return fig


def far_text(tasks: dict[str, Task]) -> str:
    "What the picture of distances shows, what it cuts, and what lies too far out for it."
    near, far = distance_rows(tasks)
    text = "Dots are means over five seeds, lines their 95 % intervals; the dotted line is one point below."
    cuts = cut_intervals(near, "+")
    if cuts:
        text += f" An arrow: the interval goes on, for {'; '.join(cuts)}."
    if far:
        text += f" Not drawn, far to the right: {joined([f'{row.name} ({row.figure:+.1f})' for row in far])}."
    return f"*{text}*"


def tried_text(result: Result) -> str:
    "The worst group on validation with each setting that was tried; the chosen one says so."
    parts = []
    for attempt in result.tried:
        chosen = " (chosen)" if attempt.settings == result.chosen else ""
        parts.append(f"{settings_name(attempt.settings)}: {fixed(100 * attempt.val_worst_group)}{chosen}")
    return ", ".join(parts)


def rates_tried(tasks: dict[str, Task]) -> Table:
    "The learning rates that both kinds of PDE tried."
    rows = [(task.title, tried_text(task["pde"]), tried_text(task["pde_fixed"])) for task in tasks.values()]
    head = ("worst group on validation, first seed", METHODS["pde"], METHODS["pde_fixed"])
    return Table(head, tuple(rows), "lll")


def state_note(one: Result, other: Result) -> str:
    "A warning where two records of the same runs differ: one of them is of an earlier state of the library."
    a, b = ({trial.seed: trial.to_dict()["splits"] for trial in result.trials} for result in (one, other))
    if all(a[seed] == b[seed] for seed in a.keys() & b.keys()):
        return ""
    return (
        "**These runs are of another state of the library than those of the comparison: "
        "their figures for the same settings differ.**"
    )


def rates_parts(tasks: dict[str, Task], key: str = "waterbirds_features") -> list:
    "Every kind of PDE with every rate on all seeds: a table, differences at the same rate, and a warning."
    found = read_variations("rates", key)
    rows = []
    for name, result in found.items():
        method, rate = name.split(",", 1)
        worst = (spread_text(over_seeds(result, k)) for k in ("val_worst_group", "worst_group"))
        rows.append((method_title(method), rate, *worst, f"{over_seeds(result, 'passes').mean:.1f}"))
    sentences = []
    for rate in dict.fromkeys(name.split(",", 1)[1] for name in found):
        for one in ("pde", "pde_balanced"):
            d = paired(found[f"{one},{rate}"], found[f"pde_fixed,{rate}"])
            pair = f"{method_title(one)} minus {METHODS['pde_fixed']}, both with `{rate}`"
            sentences.append(f"{pair}: {points_text(d, 2)} points.")
    fewest = min(tasks[key]["pde"].trials[0].splits["val"].total)
    sentences.append(f"One example more or less is {100 / fewest:.2f} points of validation's smallest group.")
    chosen = [(tasks[key][k], found[f"{k},{settings_name(tasks[key][k].chosen)}"]) for k in KINDS]
    notes = [state_note(one, other) for one, other in chosen]
    head = ("method", "rate", "worst group, validation", "worst group, test", "passes")
    return [Table(head, tuple(rows), "llrrr"), sentences, max(notes)]


def best_other_table(tasks: dict[str, Task]) -> Table:
    "PDE with the schedule auto against the best other method by the mean on the test set."
    found = {}
    for task in tasks.values():
        others = {name: result for name, result in task.results.items() if not name.startswith("pde")}
        best = max(others.values(), key=lambda result: over_seeds(result, "worst_group").mean)
        found[task.title, best.title] = paired(task["pde"], best)
    corrected = holm([d.p for d in found.values()])
    rows = []
    for (titles, d), p in zip(found.items(), corrected):
        d = replace(d, p_holm=p)
        verdict = d.verdict if p < 0.05 else "not told apart"
        rows.append((*titles, points_text(d), p_text(d), verdict))
    head = ("task", "best other method", f"{METHODS['pde']} minus it", "p (Holm)", "verdict")
    return Table(head, tuple(rows), "llrrl")


def cost_table(tasks: dict[str, Task]) -> Table:
    "Passes of each kind of PDE, to the selected epoch and in all, and how many runs ended by themselves."
    rows = []
    for task in tasks.values():
        cells = [passes_text(task[name]) if name in task else "–" for name in KINDS]
        rows.append((task.title, *cells, "{} of {}".format(*runs_ended(task["pde"]))))
    head = ("best after, passes", *(method_title(name) for name in KINDS), "PDE ended by itself")
    return Table(head, tuple(rows))


# The synthetic experiment


@dataclass(frozen=True)
class Synthetic:
    "The records of the synthetic experiment."

    rows: list[dict]  # `auto` and `fixed` of each preset, case and seed
    varied: list[dict]  # with one constant changed

    @property
    def kinds(self) -> list[tuple[str, int]]:
        "Presets and cases; the released preset first."
        return sorted({(r["preset"], r["case"]) for r in self.rows}, key=lambda k: (k[0] != "released", k))

    def of(self, preset: str, case: int) -> list[dict]:
        "The rows of a preset and a case."
        return [r for r in self.rows if (r["preset"], r["case"]) == (preset, case)]


def read_synthetic() -> Synthetic:
    "The records of the synthetic experiment."
    record = read_measurement(FOLDER / "synthetic.json")
    return Synthetic(record["rows"], record["varied"])


def column(rows: list[dict], side: str, key: str) -> np.ndarray:
    "One figure of all rows; `side` is 'auto' or 'fixed'."
    return np.array([row[side][key] for row in rows])


def failed_warmups(rows: list[dict], side: str) -> list[int]:
    "The seeds whose warm-up failed."
    return [row["seed"] for row in rows if not row[side]["warmup"]["learned"]]


def passes_range(passes: np.ndarray) -> str:
    "Median and range."
    return f"{np.median(passes):,.0f} ({passes.min():,.0f} to {passes.max():,.0f})"


def at_most_a_point_below(rows: list[dict]) -> int:
    "In how many rows the schedule auto is at most one point below the preset's."
    auto, by_hand = (np.round(column(rows, side, "worst_group"), 6) for side in ("auto", "fixed"))
    return int((np.round(auto - by_hand, 6) >= -ONE_POINT).sum())


def kind_name(preset: str, case: int) -> str:
    "A preset and a case in words."
    return f"{preset}, case {case}"


def synthetic_table(synthetic: Synthetic) -> Table:
    "The worst group without a schedule against that with the preset's."
    rows = []
    for kind in synthetic.kinds:
        these = synthetic.of(*kind)
        auto, by_hand = (column(these, side, "worst_group") for side in ("auto", "fixed"))
        average = column(these, "auto", "average") - column(these, "fixed", "average")
        within = f"{at_most_a_point_below(these)} of {len(these)}"
        worst = (spread_text(summary(auto)), spread_text(summary(by_hand)))
        both = (signed_text(summary(auto - by_hand)), signed_text(summary(average)))
        rows.append((kind_name(*kind), *worst, *both, within))
    head = ("worst group, %", "no schedule", "the preset's", "difference", "of the average", "seeds within 1")
    return Table(head, tuple(rows))


def synthetic_cost_table(synthetic: Synthetic) -> Table:
    "Failed warm-ups and passes without a schedule and with the preset's."
    rows = []
    for kind in synthetic.kinds:
        these = synthetic.of(*kind)
        failed = [len(failed_warmups(these, side)) for side in ("auto", "fixed")]
        cost, cost_by_hand = (column(these, side, "passes") for side in ("auto", "fixed"))
        fewer = f"{(cost < cost_by_hand).sum()} of {len(these)}"
        expanded = f"{(column(these, 'auto', 'best_stage') > 0).sum()} of {len(these)}"
        passes = (passes_range(cost), passes_range(cost_by_hand))
        rows.append((kind_name(*kind), " / ".join(map(str, failed)), *passes, fewer, expanded))
    head = (
        "no schedule / the preset's",
        "failed warm-ups",
        "passes: median (range)",
        "the preset's",
        "seeds with fewer",
        "seeds that keep an expansion",
    )
    return Table(head, tuple(rows))


def fig_synthetic(synthetic: Synthetic):
    "What is gained in the worst group without a schedule, and the share of the preset's passes."
    worst, cost = [], []
    for kind in synthetic.kinds:
        these = synthetic.of(*kind)
        auto, by_hand = (column(these, side, "worst_group") for side in ("auto", "fixed"))
        worst.append(summary_row(kind_name(*kind), summary(auto - by_hand), True))
        passes = column(these, "auto", "passes") / column(these, "fixed", "passes")
        cost.append(summary_row(kind_name(*kind), summary(passes), True))
    panels = {
        "gained in the worst group": worst,
        "passes, of the preset's": cost,
    }
    fig = fig_fitted(
        panels, ["points, no schedule minus the preset's", "%, mean over seeds"], [0], order=False
    )
    fig.axes[0].axvline(-100 * ONE_POINT, color="#333333", lw=1.0, ls=":")
    fig.axes[1].set_xlim(0, None)
    return fig


def dearest_sentence(synthetic: Synthetic) -> str:
    "The run that cost the most beside its schedule."
    row = max(synthetic.rows, key=lambda r: r["auto"]["passes"] / r["fixed"]["passes"])
    auto, by_hand = row["auto"], row["fixed"]
    return (
        f"The dearest run beside its schedule ({row['preset']}, case {row['case']}, seed {row['seed']}) "
        f"took {auto['passes']:,.0f} passes instead of {by_hand['passes']:,.0f}. Its warm-up alone had "
        f"{auto['warmup']['iterations']:,} iterations, the preset's {by_hand['warmup']['iterations']:,}; its "
        f"worst group came to {percent(auto['worst_group'])} instead of {percent(by_hand['worst_group'])}."
    )


# What the constants are worth


@dataclass(frozen=True)
class Change:
    "What changing one constant does, paired by seed."

    name: str
    worst: Summary  # difference of the worst group, in [-1, 1]
    average: Summary | None  # difference of the average; None where it was not kept
    passes: float  # mean, with the change
    failed: int | None = None  # warm-ups, of the synthetic experiment

    @property
    def moves(self) -> bool:
        "Whether its worst group differs by as much as is shown."
        ends = (self.worst.mean, self.worst.low, self.worst.high)
        return any(fixed(100 * end) != "0.0" for end in ends)


def task_changes(key: str) -> list[Change]:
    "One constant at a time on a task."
    found = read_variations("sensitivity", key)
    changes = []
    for name, result in found.items():
        if name != PLAIN:
            worst, average = (paired(result, found[PLAIN], k) for k in ("worst_group", "average"))
            changes.append(Change(name, worst, average, over_seeds(result, "passes").mean))
    return changes


def synthetic_changes(synthetic: Synthetic, case: int) -> list[Change]:
    "One constant at a time on the synthetic experiment."
    runs = by_change(synthetic, case)
    changes = []
    for name, seeds in runs.items():
        if name != PLAIN:
            worst = summary(
                [run["worst_group"] - runs[PLAIN][seed]["worst_group"] for seed, run in seeds.items()]
            )
            failed = sum(not run["warmup"]["learned"] for run in seeds.values())
            passes = float(np.mean([run["passes"] for run in seeds.values()]))
            changes.append(Change(name, worst, None, passes, failed))
    return changes


def by_change(synthetic: Synthetic, case: int) -> dict[str, dict[int, dict]]:
    "The varied runs of a case: change → seed → run."
    found = {}
    for row in synthetic.varied:
        if row["case"] == case:
            found.setdefault(settings_name(row["change"]), {})[row["seed"]] = row
    return found


def changes_parts(title: str, changes: list[Change], plain_passes: float) -> list:
    "A sentence on changes that move nothing, and a table of those that do."
    moving = [change for change in changes if change.moves]
    still = [change for change in changes if not change.moves]
    parts = [f"**{title}**: {changes_text(changes)}"]
    if moving:
        rows = []
        for c in sorted(moving, key=lambda c: c.worst.mean):
            average = signed_text(c.average) if c.average else "–"
            rows.append((c.name, signed_text(c.worst), average, f"{c.passes:.1f}"))
        head = ("change", "worst group", "average", f"passes ({plain_passes:.1f} without)")
        parts.append(without_dashes(Table(head, tuple(rows))))
    if still:
        names = joined([f"`{change.name}` ({change.passes:.1f} passes)" for change in still])
        parts.append(f"The mean and its interval stay within 0.05 points with {names}.")
    failed = sum(change.failed or 0 for change in changes)
    if changes[0].failed is not None:
        parts.append(f"Failed warm-ups with any of these changes: {failed or 'none'}.")
    return parts


def without_dashes(table: Table) -> Table:
    "A table without the columns that hold nothing but dashes."
    keep = [k for k in range(len(table.head)) if any(row[k] != "–" for row in table.rows)]

    def kept(row):
        return tuple(row[k] for k in keep)

    return Table(kept(table.head), tuple(map(kept, table.rows)))


def changes_text(changes: list[Change]) -> str:
    "How far any change of a constant moves the worst group."
    low, high = (pick(changes, key=lambda c: c.worst.mean) for pick in (min, max))
    ends = [f"{fixed(100 * c.worst.mean, sign='+')} (`{c.name}`)" for c in (low, high)]
    clear = [f"`{c.name}`" for c in changes if c.worst.low > 0 or c.worst.high < 0]
    told = (
        f"only {joined(clear)} is told apart from no change" if clear else "none is told apart from no change"
    )
    return f"{len(changes)} changes move the worst group by {' to '.join(ends)} points on the mean; {told}."


def sensitivity_parts(tasks: dict[str, Task], key: str) -> list:
    "One constant at a time on a task, and a warning where its runs are of another state."
    plain = read_variations("sensitivity", key)[PLAIN]
    passes = over_seeds(plain, "passes").mean
    return [*changes_parts(TASKS[key], task_changes(key), passes), state_note(plain, tasks[key]["pde"])]


def varied_parts(synthetic: Synthetic, case: int) -> list:
    "One constant at a time on the synthetic experiment."
    plain = by_change(synthetic, case)[PLAIN].values()
    passes = float(np.mean([run["passes"] for run in plain]))
    title = f"Synthetic experiment, `released`, case {case}"
    return changes_parts(title, synthetic_changes(synthetic, case), passes)


# What it comes to


def summary_sentences(tasks: dict[str, Task], synthetic: Synthetic) -> list[str]:
    "The answers to the three questions of the page."
    verdicts = {task.title: loss_verdict(paired(task["pde"], task["pde_fixed"])) for task in tasks.values()}
    yes, still_open = ([title for title in verdicts if verdicts[title] == v] for v in ("yes", "open"))
    cheaper = [t.title for t in tasks.values() if passes_mean(t["pde"]) < passes_mean(t["pde_fixed"])]
    rows = synthetic.rows
    fewer = (column(rows, "auto", "passes") < column(rows, "fixed", "passes")).sum()
    failed, failed_by_hand = (len(failed_warmups(rows, side)) for side in ("auto", "fixed"))
    near = at_most_a_point_below(rows)
    return [
        f"**Real tasks.** On {number_text(len(yes))} of {number_text(len(verdicts))} ({joined(yes)}) a loss "
        f"of more than one point against the schedule set by hand is ruled out{open_text(still_open)}.",
        f"**Synthetic experiment.** In {near} of {len(rows)} runs it is at most one point below the preset's "
        f"schedule. {failed or 'No'} warm-up failed; with the presets' schedules {failed_by_hand} did.",
        f"**Cost.** Fewer passes than the presets' schedules in {fewer} of {len(rows)} synthetic runs; fewer "
        f"than the schedule set by hand on {joined(cheaper)}, and more on the other tasks.",
    ]


def open_text(titles: list[str]) -> str:
    "The tasks on which the question stays open."
    return f"; on {joined(titles)} five seeds cannot say" if titles else ""


def like_sentences(tasks: dict[str, Task]) -> list[str]:
    "The two comparisons in which both sides had the same."
    return [
        f"{TASKS[key]}: {distance_sentence(tasks[key][one], tasks[key][other])}" for key, one, other in LIKE
    ]


def passes_mean(result: Result) -> float:
    "Passes in all, mean over seeds."
    return over_seeds(result, "passes").mean
