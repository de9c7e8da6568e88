"""Tables, sentences and the picture of the page for somebody who must choose a method; see evidence.py."""

from dataclasses import dataclass
from statistics import mean

from evidence import FURTHER, INSTEAD, LINEAR, METHODS, SEEDS, TASKS, Task, warm_ups, whole_task
from evidence_full_size import LONGER, read_full_size
from evidence_labels import LABELS, USES_GROUPS, read_runs
from evidence_text import joined, number_text

from pde_nb.comparison.trials import over_seeds
from pde_nb.core.statistics import Summary
from pde_nb.core.style import COLOURS, SMALL, new_figure
from pde_nb.core.tables import DASH, Table, fixed

CHOICE = tuple(name for name in METHODS if name not in ("pde_fixed", "pde_balanced"))
NEAR = 2.0  # points below the best of a task that count as near it
HARD = "sick", "coloured_mnist"  # where plain training is near 0
WITHOUT_HARD = " and ".join(TASKS[key] for key in HARD)
EASY = tuple(key for key in TASKS if key not in HARD)
FROM_VALIDATION = "erm", "jtt", "lff", "eiil", "dfr", "dfr_l1", "dfr_l2"  # need no attribute in training
BOTH = "training and validation"
SHAPES = "o", "s", "D", "^", "v"


@dataclass(frozen=True)
class Standing:
    "How a method does on all tasks."

    name: str
    worst: dict[str, float]  # task → worst group on test in percent, mean over seeds
    gaps: dict[str, float]  # task → points below the best method there, ≥ 0
    passes: float  # over the training set, mean over tasks

    @property
    def gap(self) -> float:
        "Points below the best, mean over tasks."
        return mean(self.gaps.values())

    @property
    def easy_gap(self) -> float:
        "The same without the tasks on which plain training is near 0."
        return mean(gap for key, gap in self.gaps.items() if key not in HARD)

    @property
    def title(self) -> str:
        return METHODS[self.name]


def record_of(task: Task, key: str, name: str) -> str:
    "The record that stands for a method on a task; the usual one where the other was not run."
    other = INSTEAD.get((key, name), name)
    return other if other in task else name


def standings() -> list[Standing]:
    "All methods, the nearest to the best first; what could not run somewhere has no figure there."
    tasks = {key: whole_task(key) for key in TASKS}
    runs = {}
    for name in CHOICE:
        there = {key: record_of(task, key, name) for key, task in tasks.items() if name in task}
        runs[name] = {key: tasks[key][record] for key, record in there.items()}
    worst = {
        name: {key: 100 * over_seeds(result, "worst_group").mean for key, result in of.items()}
        for name, of in runs.items()
    }
    best = {key: max(of[key] for of in worst.values() if key in of) for key in tasks}
    found = []
    for name, of in worst.items():
        gaps = {key: best[key] - figure for key, figure in of.items()}
        passes = mean(over_seeds(result, "passes").mean for result in runs[name].values())
        found.append(Standing(name, of, gaps, passes))
    return sorted(found, key=lambda standing: standing.gap)


def standing_table(found: list[Standing]) -> Table:
    "Every method: points below the best on all tasks and without some, and cost."
    rows = []
    for one in found:
        near = sum(gap <= NEAR for gap in one.gaps.values())
        least = max(one.gaps, key=one.gaps.get)
        rows.append(
            (
                one.title,
                fixed(one.gap),
                fixed(one.easy_gap),
                f"{near} of {len(one.gaps)}",
                f"{fixed(one.gaps[least])} ({TASKS[least]})",
                fixed(one.passes),
            )
        )
    head = (
        *("method", "below the best", f"without {WITHOUT_HARD}"),
        *(f"within {NEAR:g}", "farthest", "passes"),
    )
    return Table(head, tuple(rows), "lrrrlr")


def fig_standings(found: list[Standing]):
    "How far each method is below the best one, task by task."
    fig, (ax,) = new_figure(height=3.6, width=6.2)
    for row, one in enumerate(found):
        for shape, key in zip(SHAPES, TASKS):
            if key in one.gaps:
                colour = COLOURS["subject"] if one.name == "pde" else "#5f6b73"
                ax.plot(one.gaps[key], row, shape, color=colour, ms=5, alpha=0.8, mew=0)
        ax.plot([one.gap] * 2, [row - 0.3, row + 0.3], color="black", lw=2)
    for shape, title in zip(SHAPES, TASKS.values()):
        ax.plot([], [], shape, color="#5f6b73", ms=5, label=title)
    ax.set_yticks(range(len(found)), [one.title for one in found])
    ax.invert_yaxis()
    ax.set_xlabel("points below the best method of the task, in the worst group")
    ax.legend(fontsize=SMALL, frameon=False, loc="upper right")
    return fig


# By what is labelled


def worst_groups(name: str) -> dict[str, Summary]:
    "The worst group of a record on each task that it ran on, over seeds."
    tasks = {key: whole_task(key) for key in TASKS}
    return {key: over_seeds(task[name], "worst_group") for key, task in tasks.items() if name in task}


def predicted(name: str) -> dict[str, Summary]:
    "The same of a method whose training groups were predicted from those of validation."
    runs = {key: read_runs(LABELS / key / "val" / f"{name}.json").summary for key in TASKS}
    return {key: found for key, found in runs.items() if found}


def mean_text(found: Summary | None) -> str:
    "A mean in percent, and in brackets the number of seeds where it is not five; a dash for none."
    if found is None:
        return DASH
    return fixed(100 * found.mean) + (f" ({found.n})" if found.n != SEEDS else "")


def labels_table() -> Table:
    "The worst group of what can be run with the attribute in validation alone, and in training too."
    every = {name: result.title for key in TASKS for name, result in whole_task(key).results.items()}
    simple = {name: title for name, title in every.items() if name not in METHODS | FURTHER}
    titles = {name: every[name] for name in (*CHOICE, *LINEAR, "subsample_capped") if name in every} | simple
    alone = [name for name in titles if name in FROM_VALIDATION or "val" in name]
    rows = [("validation", titles[name], worst_groups(name)) for name in alone]
    rows += [("validation", f"{METHODS[name]}, groups predicted", predicted(name)) for name in USES_GROUPS]
    rows += [(BOTH, title, worst_groups(name)) for name, title in titles.items() if name not in alone]
    cells = []
    for where, title, worst in rows:
        figures = [mean_text(worst.get(key)) for key in TASKS]
        cells.append((where, title, *figures, gain_text(worst, TASKS), gain_text(worst, EASY)))
    head = ("attribute known in", "method", *TASKS.values(), "minus ERM", f"without {WITHOUT_HARD}")
    return Table(head, tuple(cells), "ll" + "r" * (len(TASKS) + 2))


def gain_text(worst: dict[str, float], keys) -> str:
    "Points beside plain training, mean over tasks; a dash where it did not run on all of them."
    plain = worst_groups("erm")
    if not set(keys) <= worst.keys():
        return DASH
    return f"{100 * mean(worst[key].mean - plain[key].mean for key in keys):+.1f}"


def validation_sentence() -> str:
    "PDE with predicted groups beside what else can be done with the labels of validation."
    ours = predicted("pde")
    parts = []
    for name in "eiil", "dfr":
        theirs = {key: worst_groups(record_of(whole_task(key), key, name))[key] for key in ours}
        above = sum(ours[key].mean > theirs[key].mean for key in ours)
        parts.append(f"{METHODS[name]} on {number_text(above)}")
    return (
        "**If it is known in validation, or on a few hundred rows:** "
        "[predict](../14_guides/10_few_labels.ipynb) the groups of the other rows, and run what needs them. "
        f"By the mean, PDE with predicted groups is above {joined(parts)} of {number_text(len(ours))} tasks "
        "([what a label is worth](19_labels.ipynb))."
    )


# Sentences


def tuning_sentence() -> str:
    "What to take if nothing can be tuned."
    return (
        "**If you cannot tune:** take Subsample, which depends least on its settings. PDE comes second, but "
        "on SICK embeddings validation chose the worst of its 48 settings, 8.5 points below its best; "
        "GroupDRO falls far behind with the wrong learning rate "
        "([48 settings of each](23_sensitivity.ipynb))."
    )


def sceptical_sentences(found: list[Standing]) -> list[str]:
    "What speaks against choosing by these figures."
    best = {key: min((one for one in found if key in one.gaps), key=lambda o: o.gaps[key]) for key in TASKS}
    names = sorted({one.title for one in best.values()})
    pde = next(one for one in found if one.name == "pde")
    first, nearest = found[0], min(found, key=lambda one: one.easy_gap)
    warm, runs = warm_ups()
    return [
        f"**No method is best everywhere:** {number_text(len(names))} methods have the highest mean on one "
        f"of the {number_text(len(TASKS))} tasks or more ({joined(names)}). Which gaps are beyond chance: "
        "[the verdicts](00_results.ipynb#real-data).",
        f"**By the mean** over all tasks {first.title} is nearest to the best ({fixed(first.gap)} points "
        f"below), without {WITHOUT_HARD}, where plain training is near zero, {nearest.title} "
        f"({fixed(nearest.easy_gap)}). PDE is {fixed(pde.gap)} and {fixed(pde.easy_gap)} points below.",
        f"**PDE here is mostly its warm-up:** {warm} of its {runs} selected models are. A balanced set and "
        "stopping early is what was measured.",
        "**All of them chose their epoch by the groups of validation,** and some looked there far more often "
        "than others. Without any of these labels, on the one task where all were tried, PDE, GroupDRO, "
        "Subsample and DFR-Val were refused ([fewer labels](19_labels.ipynb)).",
        larger_pictures(),
        "**Small models on two cores,** three to five seeds, equal examples at most, two learning rates "
        "each. A larger network or a longer search may change the order.",
    ]


def larger_pictures() -> str:
    "What the order was on Waterbirds with pictures of 224 pixels."
    found = read_full_size().results
    alike = [result for name, result in found.items() if name not in LONGER]
    worst = {result.title: over_seeds(result, "worst_group") for result in alike}
    order = sorted(worst, key=lambda title: -worst[title].mean)
    parts = [f"{title} {fixed(100 * worst[title].mean)}" for title in order]
    return (
        f"**With larger pictures and more passes the means have another order.** On Waterbirds with 224 "
        f"instead of 128 pixels and at most six passes, three seeds, in percent: "
        f"{'; '.join(parts)} ([seeds and intervals](25_full_size.ipynb#what-can-be-told-apart))."
    )
