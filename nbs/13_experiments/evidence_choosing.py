"""Tables, sentences and the picture of the page for somebody who must choose a method; see evidence.py."""

from dataclasses import dataclass
from statistics import mean

import numpy as np
from evidence import METHODS, TASKS, Task, read_task
from evidence_full_size import LONGER, read_full_size
from evidence_text import joined, number_text

from pde_nb.comparison.trials import over_seeds
from pde_nb.core.style import COLOURS, SMALL, new_figure
from pde_nb.core.tables import DASH, Table, fixed

CHOICE = tuple(name for name in METHODS if name not in ("pde_fixed", "pde_balanced"))
NEAR = 2.0  # points below the best of a data set that count as near it
PARTS = {  # parts whose attribute a method works with, beside choosing the epoch
    **dict.fromkeys(("erm", "jtt", "lff", "eiil"), ()),
    "dfr": ("val",),
    **dict.fromkeys(("subsample", "resampling", "group_dro", "dfr_tr", "pde"), ("train",)),
}
NEEDS = {  # parts whose attribute a method works with → in words
    (): "validation, to choose the epoch",
    ("val",): "validation, to choose and to fit",
    ("train",): "training and validation",
}
SHAPES = "o", "s", "D", "^", "v"


@dataclass(frozen=True)
class Standing:
    "How a method does on all tasks."

    name: str
    worst: dict[str, float]  # data set → worst group on test in percent, mean over seeds
    gaps: dict[str, float]  # data set → points below the best method there, ≥ 0
    passes: float  # over the training set, mean over tasks

    @property
    def gap(self) -> float:
        "Points below the best, mean over tasks."
        return mean(self.gaps.values())

    @property
    def title(self) -> str:
        return METHODS[self.name]

    @property
    def needs(self) -> str:
        "Where the attribute has to be known."
        return NEEDS[PARTS[self.name]]


def standings() -> list[Standing]:
    "All methods, the nearest to the best first; what could not run somewhere has no figure there."
    tasks = {key: read_task(key) for key in TASKS}
    worst = {name: worst_groups(tasks, name) for name in CHOICE}
    best = {key: max(of[key] for of in worst.values() if key in of) for key in tasks}
    found = []
    for name, of in worst.items():
        gaps = {key: best[key] - figure for key, figure in of.items()}
        passes = mean(over_seeds(tasks[key][name], "passes").mean for key in of)
        found.append(Standing(name, of, gaps, passes))
    return sorted(found, key=lambda standing: standing.gap)


def worst_groups(tasks: dict[str, Task], name: str) -> dict[str, float]:
    "The worst group of a method on each data set that it ran on, in percent."
    there = {key: task[name] for key, task in tasks.items() if name in task}
    return {key: 100 * over_seeds(result, "worst_group").mean for key, result in there.items()}


def standing_table(found: list[Standing]) -> Table:
    "Every method: points below the best, cost, and the labels that it needs."
    rows = []
    for one in found:
        near = sum(gap <= NEAR for gap in one.gaps.values())
        least = max(one.gaps, key=one.gaps.get)
        rows.append(
            (
                one.title,
                fixed(one.gap),
                f"{near} of {len(one.gaps)}",
                f"{fixed(one.gaps[least])} ({TASKS[least]})",
                fixed(one.passes),
                one.needs,
            )
        )
    head = ("method", "below the best", f"within {NEAR:g}", "farthest", "passes", "attribute needed in")
    return Table(head, tuple(rows), "lrrlrl")


def fig_standings(found: list[Standing]):
    "How far each method is below the best one, data set by data set."
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
    ax.set_xlabel("points below the best method of the data set, in the worst group")
    ax.legend(fontsize=SMALL, frameon=False, loc="upper right")
    return fig


def best_of(found: list[Standing], needs: tuple[str, ...]) -> Standing:
    "The method nearest to the best, among those that need the attribute in no other part."
    fits = [one for one in found if set(PARTS[one.name]) <= set(needs)]
    return fits[0]


def gain_text(found: list[Standing], needs: tuple[str, ...]) -> str:
    "What the best method under a condition gains over plain training, mean over tasks."
    one = best_of(found, needs)
    erm = next(other for other in found if other.name == "erm")
    gains = [one.worst[key] - erm.worst[key] for key in one.worst]
    low, high = min(gains), max(gains)
    return f"{one.title}: {mean(gains):+.1f} points beside ERM, from {low:+.1f} to {high:+.1f} by data set"


def situation_table(found: list[Standing]) -> Table:
    "By what is labelled: the method nearest to the best, and what it gains."
    rows = [
        ("validation", "methods for labels that are missing", gain_text(found, ())),
        ("validation", "the last layer fitted to validation too", gain_text(found, ("val",))),
        ("training and validation", "all", gain_text(found, ("train", "val"))),
    ]
    return Table(("attribute known in", "methods looked at", "nearest to the best"), tuple(rows))


def sceptical_sentences(found: list[Standing]) -> list[str]:
    "What speaks against choosing by these figures."
    winners = {key: min(found, key=lambda one: one.gaps.get(key, np.inf)).title for key in TASKS}
    names = sorted(set(winners.values()))
    pde = next(one for one in found if one.name == "pde")
    rank = 1 + found.index(pde)
    first, second = found[:2]
    lead = second.gap - first.gap
    easy = [key for key in TASKS if key != "coloured_mnist"]
    without = {one.title: mean(one.gaps[key] for key in easy) for one in found}
    nearest = min(without, key=without.get)
    return [
        f"**No method is best everywhere:** {number_text(len(names))} methods have the highest mean on one "
        f"of the {number_text(len(TASKS))} tasks or more ({joined(names)}).",
        f"**One data set decides the order.** By the mean over all, {first.title} is nearest to the best, "
        f"{lead:.1f} points before {second.title}. Without coloured MNIST, whose smallest group has one row, "
        f"{nearest} is nearest ({without[nearest]:.1f} points below the best; PDE {without['PDE']:.1f}).",
        f"**PDE is number {rank}** of {len(found)} by that mean, {pde.gap:.1f} points below the best; on "
        f"{TASKS[max(pde.gaps, key=pde.gaps.get)]} it is {max(pde.gaps.values()):.1f} points below.",
        "**All of them chose their epoch by the groups of validation.** What is left with few of these "
        "labels, or none, is on [another page](19_labels.ipynb). Without any, on the one task where all were "
        "tried, PDE, GroupDRO, Subsample and DFR-Val were refused.",
        larger_pictures(),
        "**Small models on two cores,** three to five seeds, one budget, two learning rates each. A larger "
        "network or a longer search may change the order.",
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


def figure_or_dash(one: Standing, key: str) -> str:
    "A figure of a table, or a dash."
    return fixed(one.worst[key]) if key in one.worst else DASH


def worst_table(found: list[Standing]) -> Table:
    "Worst group on test in percent, mean over seeds."
    rows = [(one.title, *(figure_or_dash(one, key) for key in TASKS)) for one in found]
    return Table(("method", *TASKS.values()), tuple(rows), "l" + "r" * len(TASKS))
