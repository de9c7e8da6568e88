"""Results, tables and the picture of the page on Waterbirds with 224 pixels; see evidence.py.

The records are those of tools/full_size.py, one for each method; beside them stand the paper's printed
figures and our own records with 128 pixels.
"""

import math
from dataclasses import dataclass, replace
from statistics import mean

from evidence import FOLDER, passes_text, read_task
from evidence_pictures import BACK
from evidence_text import joined, number_text

from pde_nb.comparison.trials import (
    Difference,
    Result,
    Trial,
    over_seeds,
    p_text,
    paired,
    points_text,
    read_results,
    seed_figures,
)
from pde_nb.core.statistics import holm
from pde_nb.core.style import COLOURS, SMALL, new_figure
from pde_nb.core.tables import DASH, PAPER, Table, fixed, spread_text

FULL_SIZE = FOLDER.parent / "full_size"
METHODS = {  # name of the record → how the page calls it
    "erm": "ERM",
    "erm_long": "ERM, 18 passes",
    "subsample": "Subsample",
    "group_dro": "GroupDRO",
    "dfr": "DFR-Val",
    "pde_paper": "PDE, the paper's schedule, failed",
    "pde": "PDE",
    "draws_3": "PDE, 3 draws",
}
PRINTED = {  # name of the record → row of tab:baselines
    "erm": "ERM",
    "erm_long": "ERM",
    "subsample": "Subsample",
    "group_dro": "GroupDRO",
    "dfr": "DFR (Val)",
    "pde_paper": "PDE",
}
LONGER = "erm_long", "pde_paper"  # that show more examples than the others
OURS = "pde", "draws_3"  # that are set beside each other method
SEEDS = 3  # that are asked for
PARTS = (1 / 3, 2 / 3, 1.0)  # of a run, at which the best so far is looked at
SETTLED = 1.0  # points that the last third may still have gained
EARLY = 0.25  # of a run: where the best epoch comes before, the run is past its best
UNEQUAL = 3  # times as many looks at validation, beyond which no verdict is given


@dataclass(frozen=True)
class Found:
    "The records that are there."

    results: dict[str, Result]  # by the name of the record
    smaller: dict[str, Result]  # the same methods with 128 pixels

    def __getitem__(self, name: str) -> Result:
        return self.results[name]

    @property
    def trained(self) -> dict[str, Result]:
        "Those whose network learned something: all but the paper's schedule."
        return {name: result for name, result in self.results.items() if name != "pde_paper"}


def read_full_size() -> Found:
    "The records of all methods that were run, and those with smaller pictures."
    read = read_results(FULL_SIZE, METHODS)
    results = {name: replace(result, title=METHODS[name]) for name, result in read.items()}
    return Found(results, read_task("waterbirds").results)


# Sentences


def runs_sentence(found: Found) -> str:
    "Which methods ran with how many seeds, and what is not run."
    if set(found.results) == set(METHODS) and {len(r.trials) for r in found.results.values()} == {SEEDS}:
        return f"{number_text(SEEDS).capitalize()} seeds of each of the {number_text(len(METHODS))} methods."
    by_number: dict[int, list[str]] = {}
    for result in found.results.values():
        by_number.setdefault(len(result.trials), []).append(result.title)
    parts = []
    for n, titles in sorted(by_number.items(), reverse=True):
        seeds = "one seed" if n == 1 else f"{number_text(n)} seeds"
        parts.append(f"{joined([f'*{title}*' for title in titles])} with {seeds}")
    text = f"**Runs so far:** {'; '.join(parts)}."
    missing = [title for name, title in METHODS.items() if name not in found.results]
    if missing:
        text += f" Not run: {joined(missing)}."
    if min(by_number) < SEEDS or missing:
        text += " With one seed or two, differences of a few points say nothing."
    return text


def front_sentences(found: Found) -> list[str]:
    "PDE beside the two methods that matter most, what the correction leaves, and the looks."
    every = differences(found)
    dfr, subset = paired(found["dfr"], found["pde"]), every["pde", "subsample"]
    least = min(d.p_holm for d in every.values())
    beyond = sum(d.p_holm < 0.05 for d in every.values())
    return [
        f"**DFR-Val, which fits its last layer to validation, minus PDE: {points_text(dfr)} points** in "
        "the worst group on test.",
        f"**PDE minus Subsample, plain training on its balanced set: {points_text(subset)} points**; the "
        f"selected model is of PDE's warm-up in {warmup_text(found['pde'])}, and with three draws in "
        f"{warmup_text(found['draws_3'])}.",
        f"**After Holm's correction** over the {number_text(len(every))} differences of "
        f"[this page](#what-can-be-told-apart) {beyond or 'none'} is beyond chance at 5 % (the least "
        f"corrected p is {fixed(least, 3)}).",
        f"**Looks at validation differ:** {looks(found['group_dro']):.0f} in a run of GroupDRO, "
        f"{looks(found['pde']):.0f} of PDE and {looks(found['subsample']):.0f} of Subsample.",
    ]


def warmup_text(result: Result) -> str:
    "In how many seeds the selected model is one of the warm-up."
    n = sum(trial.stage == 0 for trial in result.trials)
    return f"{number_text(n)} of {number_text(len(result.trials))} seeds"


def warmup_best(result: Result) -> list[int]:
    "The best epoch of the warm-up of each seed, by validation; the first is 0."
    return [
        max(i for i, entry in enumerate(trial.curve) if entry["best"] and entry["stage"] == 0)
        for trial in result.trials
    ]


def failed_sentence(found: Found) -> str:
    "Why the row with the paper's schedule says nothing about that schedule."
    result = found["pde_paper"]
    settings = f"{result.chosen['lr']:g} and {result.settings['weight_decay']:g}"
    length = sum(entry["stage"] == 0 for entry in result.trials[0].curve)
    at = joined([str(1 + epoch) for epoch in warmup_best(result)])
    first = min(result.trials, key=lambda trial: trial.best_epoch)
    steps = math.ceil(first.curve[0]["active"] / result.settings["batch_size"])
    return (
        f"*{result.title}*: with the learning rate and weight decay that the paper has for a ResNet-50, "
        f"{settings}, this network did not train. Of the {length} epochs of the warm-up the best one was "
        f"number {at} (a seed each), and seed {first.seed} keeps the model of epoch {1 + first.best_epoch}, "
        f"after {number_text(steps)} steps. Nothing follows from it about the schedule, and no other figure "
        "of this page has it."
    )


def percents(*names: str) -> str:
    "Methods with their worst group on test in percent, mean over seeds."
    found = read_full_size()
    shown = [(found[name].title, over_seeds(found[name], "worst_group").mean) for name in names]
    return joined([f"{fixed(100 * mean)} % ({title})" for title, mean in shown])


# Tables


def seeds_text(result: Result) -> str:
    "The worst group on test of each seed, in percent."
    return ", ".join(fixed(100 * row.worst_group) for row in seed_figures(result))


def beside_paper(found: Found) -> Table:
    "Ours and the paper's figures, in percent."
    printed = PAPER["tab:baselines"]["waterbirds"]
    rows = []
    for name, result in found.results.items():
        ours = over_seeds(result, "worst_group"), over_seeds(result, "adjusted_average")
        paper = printed.get(PRINTED.get(name, ""), {})
        theirs = [fixed(100 * paper[key]) if paper else DASH for key in ("worst_group", "adjusted_average")]
        cells = spread_text(ours[0]), theirs[0], spread_text(ours[1]), theirs[1]
        rows.append((result.title, seeds_text(result), *cells))
    head = ("method", "each seed", "worst group", "the paper's", "adjusted average", "the paper's")
    return Table(head, tuple(rows), "llrrrr")


def differences(found: Found) -> dict[tuple[str, str], Difference]:
    "Ours minus each other method, worst group on test, paired by seed; p corrected for all of them together."
    pairs = [(one, other) for one in OURS for other in found.results if other not in (one, *LONGER)]
    pairs.remove(("pde", "draws_3"))  # the other way round is there
    one_by_one = {pair: paired(found[pair[0]], found[pair[1]]) for pair in pairs}
    corrected = holm([d.p for d in one_by_one.values()])
    return {pair: replace(d, p_holm=p) for (pair, d), p in zip(one_by_one.items(), corrected)}


def differences_table(found: Found) -> Table:
    "Ours minus each other method, in points."
    rows = []
    for (one, other), d in differences(found).items():
        said = verdict(found[one], found[other], d)
        rows.append((found[one].title, found[other].title, points_text(d), p_text(d), said))
    return Table(("method", "minus", "points", "p (Holm)", ""), tuple(rows), "llrrl")


def looks(result: Result) -> float:
    "How often validation was looked at, mean over seeds."
    return mean(len(trial.curve) for trial in result.trials)


def verdict(one: Result, other: Result, d: Difference) -> str:
    "That of the interval where it is beyond chance after the correction, if both had about as many looks."
    few, many = sorted((looks(one), looks(other)))
    if many > UNEQUAL * few:
        return "unequal looks"
    return d.verdict if d.p_holm < 0.05 else "not told apart"


def beside_smaller(found: Found) -> Table:
    "The worst group with 224 and with 128 pixels, in percent."
    rows = []
    for name, result in found.results.items():
        if name in found.smaller:
            small = found.smaller[name]
            pair = over_seeds(result, "worst_group"), over_seeds(small, "worst_group")
            gain = 100 * (pair[0].mean - pair[1].mean)
            means = over_seeds(result, "average"), over_seeds(small, "average")
            averages = [fixed(100 * mean.mean) for mean in means]
            rows.append((result.title, *map(spread_text, pair), f"{gain:+.1f}", *averages))
    head = ("method", "224 px", "128 px", "points", "average, 224 px", "average, 128 px")
    return Table(head, tuple(rows), "lrrrrr")


def best_at(trial: Trial, share: float) -> float:
    "The best worst group on validation up to a share of the run's passes, in [0, 1]."
    end = share * trial.passes + 1e-9
    exact = [e for e in trial.curve if e["val_worst_group"] is not None and e["passes"] <= end]
    return max((entry["val_worst_group"] for entry in exact), default=float("nan"))


def settled_table(found: Found) -> Table:
    "The best so far on validation after each third of a run, mean over seeds, in percent."
    rows = []
    for result in found.trained.values():
        if len(result.trials[0].curve) < len(PARTS):
            continue  # judged once, after its regression
        values = [100 * mean(best_at(t, p) for t in result.trials) for p in PARTS]
        gain = values[-1] - values[-2]
        early = sum(t.passes_to_best < EARLY * t.passes for t in result.trials)
        state = "settled" if gain <= SETTLED else "still gaining"
        state = "past its best" if 2 * early > len(result.trials) else state
        cells = passes_text(result), f"{early} of {len(result.trials)}", f"{looks(result):.0f}"
        rows.append((result.title, *cells, *map(fixed, values), f"{gain:+.1f}", state))
    head = ("method", "best after, passes", "before a quarter", "looks", "a third", "two thirds", "the end")
    return Table((*head, "last third", ""), tuple(rows), "lrrrrrrrl")


def longer_sentence(found: Found) -> str:
    "What three times as many passes are worth to plain training, on the seeds that have both."
    if "erm_long" not in found.results:
        return ""
    of_each = [{row.seed: row for row in seed_figures(found[name])} for name in ("erm", "erm_long")]
    seeds = sorted(of_each[0].keys() & of_each[1].keys())
    worst = [joined([fixed(100 * of[seed].worst_group) for seed in seeds]) for of in of_each]
    long = found["erm_long"].trials
    gain = 100 * sum(best_at(t, PARTS[-1]) - best_at(t, PARTS[-2]) for t in long) / len(long)
    slow = "still gains" if gain > SETTLED else "gains no more than a point"
    return (
        f"Plain training gains for long: with 18 passes instead of six its worst group on test is at "
        f"{worst[1]} % instead of {worst[0]} % (seeds {joined([str(seed) for seed in seeds])}), and on "
        f"validation it {slow} in the last third of these, too."
    )


# Picture


def fig_courses(found: Found):
    "The worst group on validation over the run, each seed; the best so far as a line."
    shown = [r for r in found.trained.values() if len(r.trials[0].curve) >= len(PARTS)]
    fig, axes = new_figure(len(shown), 2.6, 9.2 / max(len(shown), 1))
    for ax, result in zip(axes, shown):
        for trial in result.trials:
            draw_trial(ax, trial)
        ax.set(ylim=(0, 100), xlim=(0, None), xlabel="passes")
        ax.set_title(result.title.replace(", ", ",\n"), fontsize=SMALL)
    axes[0].set_ylabel("worst group, validation, %")
    return fig


def draw_trial(ax, trial: Trial):
    "Every epoch that was evaluated in full, and the best so far."
    exact = [entry for entry in trial.curve if entry["val_worst_group"] is not None]
    passes = [entry["passes"] for entry in exact]
    values = [100 * entry["val_worst_group"] for entry in exact]
    ax.plot(passes, values, "o", ms=2.5, color=BACK, mec=COLOURS["average"], mew=0.5)
    best = [max(values[: i + 1]) for i in range(len(values))]
    ends = [*passes, trial.passes], [*best, best[-1]]
    ax.step(*ends, where="post", color=COLOURS["subject"], lw=1.2)
