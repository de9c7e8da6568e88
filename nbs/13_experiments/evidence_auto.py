"""Tables and sentences of the page on PDE that sets its own schedule, see evidence.py.

Figures of the synthetic experiment are shares in [0, 1], as in results/evidence/synthetic.json.
"""

from dataclasses import dataclass

import numpy as np
from evidence import (
    FOLDER,
    METHODS,
    ONE_POINT,
    TASKS,
    Task,
    distance_text,
    end_text,
    method_title,
    passes_text,
    read_task,
    read_variations,
)

from pde_nb.analysis.paired import paired
from pde_nb.analysis.trials import Result, over_seeds, settings_name
from pde_nb.core.seals import read_measurement
from pde_nb.core.statistics import Summary, summary
from pde_nb.core.style import COLOURS, new_figure
from pde_nb.core.tables import Table, fixed, signed_text, spread_text

FURTHER = "pde_unlimited", "pde_fixed_capped"
KINDS = "pde", "pde_balanced", "pde_fixed"
LIKE = (("sick", "pde_unlimited", "pde_fixed"), ("coloured_mnist", "pde", "pde_fixed_capped"))
PLAIN = "as-is"
QUICK = "waterbirds_features", "adult"


def read_tasks() -> dict[str, Task]:
    "The results of all tasks."
    return {key: read_task(key, FURTHER) for key in TASKS}


def constants_text(tasks: dict[str, Task], name: str) -> str:
    "The constants of the rules in the runs of a method, and the state of the source that they ran from."
    results = [task[name] for task in tasks.values() if name in task]
    settings = [
        {k: v for k, v in r.method.items() if k not in ("name", "epochs", "schedule")} for r in results
    ]
    used = sorted({settings_name(values) for values in settings})
    revisions = ", ".join(sorted({r.surroundings["revision"] or "–" for r in results}))
    warning = " — **not the same on all tasks**" if len(used) > 1 else ""
    return f"{method_title(name)}: {' and '.join(used)}{warning}; revisions {revisions}."


# The distance to a schedule set by hand


def distance_row(task: Task, one: str, other: str) -> tuple[str, ...]:
    "Both worst groups, their difference, and whether it is within one point."
    a, b = task[one], task[other]
    worst = (spread_text(over_seeds(result, "worst_group")) for result in (a, b))
    return (*worst, signed_text(paired(a, b)), distance_text(a, b))


def distance_table(tasks: dict[str, Task], one: str, other: str = "pde_fixed") -> Table:
    "A method against the schedule set by hand, on the tasks where both were run."
    rows = [(t.title, *distance_row(t, one, other)) for t in tasks.values() if one in t and other in t]
    head = ("task", method_title(one), method_title(other), "difference", "within one point?")
    return Table(head, tuple(rows), "lrrrl")


def like_table(tasks: dict[str, Task]) -> Table:
    "The two comparisons in which both sides had the same."
    rows = []
    for key, one, other in LIKE:
        a, b, difference, within = distance_row(tasks[key], one, other)
        rows.append((tasks[key].title, method_title(one), a, method_title(other), b, difference, within))
    head = ("task", "first", "worst group", "second", "worst group", "difference", "within one point?")
    return Table(head, tuple(rows), "llrlrrl")


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
            pair = f"{method_title(one)} minus {METHODS['pde_fixed']}, both with {rate}"
            sentences.append(f"{pair}: {signed_text(d, 2)}")
    fewest = min(tasks[key]["pde"].trials[0].splits["val"].total)
    sentences.append(f"one example in {fewest} is {100 / fewest:.2f} points of validation's smallest group")
    chosen = [(tasks[key][k], found[f"{k},{settings_name(tasks[key][k].chosen)}"]) for k in KINDS]
    notes = [state_note(one, other) for one, other in chosen]
    head = ("method", "rate", "worst group, validation", "worst group, test", "passes")
    return [Table(head, tuple(rows), "llrrr"), sentences, max(notes)]


def best_other_table(tasks: dict[str, Task]) -> Table:
    "PDE with the schedule auto against the best other method by the mean on the test set."
    rows = []
    for task in tasks.values():
        others = {name: result for name, result in task.results.items() if not name.startswith("pde")}
        best = max(others.values(), key=lambda result: over_seeds(result, "worst_group").mean)
        d = paired(task["pde"], best)
        rows.append((task.title, best.title, signed_text(d), d.verdict))
    return Table(("task", "best other method", f"{METHODS['pde']} minus it", "verdict"), tuple(rows), "llrl")


def cost_table(tasks: dict[str, Task]) -> Table:
    "Passes of each kind of PDE, to the selected epoch and in all, and what ended the runs."
    rows = []
    for task in tasks.values():
        cells = [passes_text(task[name]) if name in task else "–" for name in KINDS]
        rows.append((task.title, *cells, end_text(task["pde"])))
    head = ("task", *(method_title(name) for name in KINDS), f"what ended {METHODS['pde']}")
    return Table(head, tuple(rows), "lrrrl")


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


def failed_text(rows: list[dict], side: str) -> str:
    "How many warm-ups failed, and in which seeds."
    seeds = failed_warmups(rows, side)
    text = f"{len(seeds)} of {len(rows)}"
    if not seeds:
        return text
    return f"{text} (seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))})"


def passes_range(passes: np.ndarray) -> str:
    "Median and range."
    return f"{np.median(passes):.0f} ({passes.min():.0f} to {passes.max():.0f})"


def at_most_a_point_below(rows: list[dict]) -> int:
    "In how many rows the schedule auto is at most one point below the preset's."
    auto, by_hand = (np.round(column(rows, side, "worst_group"), 6) for side in ("auto", "fixed"))
    return int((np.round(auto - by_hand, 6) >= -ONE_POINT).sum())


def synthetic_table(synthetic: Synthetic) -> Table:
    "Without a schedule against the preset's, for each preset and case."
    rows = []
    for preset, case in synthetic.kinds:
        these = synthetic.of(preset, case)
        auto, by_hand = (column(these, side, "worst_group") for side in ("auto", "fixed"))
        cost, cost_by_hand = (column(these, side, "passes") for side in ("auto", "fixed"))
        rows.append(
            (
                f"{preset}, case {case}",
                spread_text(summary(auto)),
                spread_text(summary(by_hand)),
                signed_text(summary(auto - by_hand)),
                f"{at_most_a_point_below(these)} of {len(these)}",
                *(failed_text(these, side) for side in ("auto", "fixed")),
                *map(passes_range, (cost, cost_by_hand)),
                f"{(cost < cost_by_hand).sum()} of {len(these)}",
            )
        )
    head = (
        "",
        "worst group, no schedule",
        "the preset's",
        "difference, paired",
        "seeds at most one point below",
        "failed warm-ups, no schedule",
        "the preset's",
        "passes, no schedule: median (range)",
        "the preset's",
        "seeds with fewer",
    )
    return Table(head, tuple(rows))


def fig_synthetic(synthetic: Synthetic):
    "The worst group without a schedule against that with the preset's, a mark for each seed."
    presets = list(dict.fromkeys(preset for preset, _ in synthetic.kinds))
    fig, axes = new_figure(len(presets), 2.9)
    for ax, preset in zip(axes, presets):
        low = 100.0
        for case, paint in ((1, COLOURS["spurious"]), (2, COLOURS["core"])):
            rows = synthetic.of(preset, case)
            by_hand, auto = (100 * column(rows, side, "worst_group") for side in ("fixed", "auto"))
            ax.plot(by_hand, auto, "o", ms=4, alpha=0.6, color=paint, label=f"case {case}")
            low = min(low, by_hand.min() - 1, auto.min() - 1)
        ax.plot([low, 100], [low, 100], color="k", lw=0.7)
        ax.plot([low, 100], [low - 1, 99], color="k", lw=0.5, ls=":")
        ax.set(xlabel="worst group with the preset's schedule, %")
        ax.set_title(preset, fontsize=10)
    axes[0].set_ylabel("without a schedule, %")
    axes[0].legend(fontsize=8, frameon=False)
    return fig


def synthetic_sentence(synthetic: Synthetic, preset: str, case: int) -> str:
    "What came out for a preset and a case."
    rows = synthetic.of(preset, case)
    worst, average = (
        summary(column(rows, "auto", key) - column(rows, "fixed", key)) for key in ("worst_group", "average")
    )
    cost, cost_by_hand = (column(rows, side, "passes") for side in ("auto", "fixed"))
    within = "within" if worst.mean >= -ONE_POINT else "not within"
    expanded = (column(rows, "auto", "best_stage") > 0).sum()
    return (
        f"{preset}, case {case}: by the mean {within} one point of the preset's schedule "
        f"({signed_text(worst)}; "
        f"average {signed_text(average)}), {len(failed_warmups(rows, 'auto'))} failed warm-ups "
        "(with the schedule "
        f"{len(failed_warmups(rows, 'fixed'))}), {np.median(cost):.0f} passes against "
        f"{np.median(cost_by_hand):.0f} "
        f"in the median, and fewer in {(cost < cost_by_hand).sum()} seeds; the selected state is one of the "
        f"expansion in {expanded} of {len(rows)} seeds."
    )


def dearest_sentence(synthetic: Synthetic) -> str:
    "The run that cost the most beside its schedule."
    row = max(synthetic.rows, key=lambda r: r["auto"]["passes"] / r["fixed"]["passes"])
    auto, by_hand = row["auto"], row["fixed"]
    return (
        f"The dearest run beside its schedule: {row['preset']}, case {row['case']}, seed {row['seed']}, "
        f"{auto['passes']:.0f} passes against {by_hand['passes']:.0f}, of which the warm-up takes "
        f"{auto['warmup']['iterations']:,} iterations (the preset's: {by_hand['warmup']['iterations']:,}); "
        f"worst group {100 * auto['worst_group']:.1f} against {100 * by_hand['worst_group']:.1f}."
    )


# What the constants are worth


def sensitivity_parts(tasks: dict[str, Task], key: str) -> list:
    "One constant at a time on a task: a table, and a warning where its runs are of another state."
    found = read_variations("sensitivity", key)
    plain, rows = found[PLAIN], []
    for name in sorted(found, key=lambda name: (name != PLAIN, name)):
        result = found[name]
        d = paired(result, plain)
        verdict = "" if name == PLAIN or d.verdict == "not told apart" else d.verdict
        worst, average = (spread_text(over_seeds(result, k)) for k in ("worst_group", "average"))
        difference = "" if name == PLAIN else signed_text(d)
        rows.append((name, worst, difference, verdict, average, f"{over_seeds(result, 'passes').mean:.1f}"))
    head = ("change", "worst group, test", "difference", "", "average", "passes")
    table = Table(head, tuple(rows), "lrrlrr")
    return [f"**{TASKS[key]}**", table, state_note(plain, tasks[key]["pde"])]


def by_change(synthetic: Synthetic, case: int) -> dict[str, dict[int, dict]]:
    "The varied runs of a case: change → seed → run."
    found = {}
    for row in synthetic.varied:
        if row["case"] == case:
            found.setdefault(settings_name(row["change"]), {})[row["seed"]] = row
    return found


def change_summary(runs: dict[str, dict[int, dict]], name: str) -> Summary:
    "What a change does to the worst group, paired by seed."
    plain = runs[PLAIN]
    return summary([run["worst_group"] - plain[seed]["worst_group"] for seed, run in runs[name].items()])


def varied_parts(synthetic: Synthetic, case: int) -> list:
    "One constant at a time on the synthetic experiment."
    runs, rows = by_change(synthetic, case), []
    for name, seeds in runs.items():
        worst = spread_text(summary([run["worst_group"] for run in seeds.values()]))
        difference = "" if name == PLAIN else signed_text(change_summary(runs, name))
        bad = sum(not run["warmup"]["learned"] for run in seeds.values())
        passes = np.mean([run["passes"] for run in seeds.values()])
        rows.append((name, worst, difference, bad, f"{passes:.0f}"))
    head = ("change", "worst group", "difference", "failed warm-ups", "passes")
    return [f"**Synthetic, released, case {case}**", Table(head, tuple(rows))]


def extremes(differences: dict[str, Summary]) -> str:
    "The smallest and the largest mean of some differences, with their names."
    low, high = (pick(differences, key=lambda k: differences[k].mean) for pick in (min, max))
    ends = [f"{fixed(100 * differences[k].mean, sign='+')} ({k})" for k in (low, high)]
    return " to ".join(ends)


def constants_sentences(synthetic: Synthetic) -> list[str]:
    "How far any change of a constant moves the worst group."
    sentences = []
    for key in QUICK:
        found = read_variations("sensitivity", key)
        differences = {name: paired(r, found[PLAIN]) for name, r in found.items() if name != PLAIN}
        apart = [name for name, d in differences.items() if d.verdict in ("ahead", "behind")]
        sentences.append(
            f"{TASKS[key]}: {len(differences)} changes move the worst group by "
            f"{extremes(differences)} points on "
            f"the mean; told apart from the rules as they are: {', '.join(apart) or 'none'}."
        )
    for case in (1, 2):
        runs = by_change(synthetic, case)
        differences = {name: change_summary(runs, name) for name in runs if name != PLAIN}
        clear = [name for name, d in differences.items() if d.low > 0 or d.high < 0]
        sentences.append(
            f"Synthetic, case {case}: {len(differences)} changes move it by "
            f"{extremes(differences)}; interval "
            f"clear of zero: {', '.join(clear) or 'none'}."
        )
    return sentences


# What it comes to


def summary_sentences(tasks: dict[str, Task], synthetic: Synthetic) -> list[str]:
    "The answers to the three questions of the page."
    differences = {task.title: paired(task["pde"], task["pde_fixed"]) for task in tasks.values()}
    near = [title for title, d in differences.items() if d.mean >= -ONE_POINT]
    far = [title for title in differences if title not in near]
    sure = [title for title, d in differences.items() if d.low >= -ONE_POINT]
    cheaper = [t.title for t in tasks.values() if passes_mean(t["pde"]) < passes_mean(t["pde_fixed"])]
    sentences = [
        f"Within one point of the schedule set by hand by the mean: {names(near)}; not: {names(far)}.",
        f"Within one point by the whole interval: {names(sure)}.",
    ]
    for key, one, other in LIKE:
        pair = f"{method_title(one)} beside {method_title(other)}"
        sentences.append(f"{TASKS[key]}; {pair}: {distance_text(tasks[key][one], tasks[key][other])}.")
    rows = synthetic.rows
    fewer = (column(rows, "auto", "passes") < column(rows, "fixed", "passes")).sum()
    return [
        *sentences,
        f"Fewer passes than the schedule set by hand: {names(cheaper)}.",
        f"Synthetic: fewer passes than the schedule in {fewer} of {len(rows)} runs, at most one "
        "point below it in "
        f"{at_most_a_point_below(rows)}.",
        f"Synthetic: failed warm-ups without a schedule {failed_text(rows, 'auto')}, with the presets' "
        f"{len(failed_warmups(rows, 'fixed'))} of {len(rows)}.",
    ]


def names(titles: list[str]) -> str:
    "Some tasks in words."
    return "; ".join(titles) or "none"


def passes_mean(result: Result) -> float:
    "Passes in all, mean over seeds."
    return over_seeds(result, "passes").mean
