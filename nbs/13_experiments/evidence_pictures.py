"""Pictures of the pages on our own comparisons: a dot and an interval per method; see evidence.py."""

import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import PIL.Image
from evidence import INSTEAD, TASKS, Task, stages_of, warm_and_end, whole_task
from IPython.display import Image
from matplotlib.figure import Figure

from pde_nb.comparison.trials import Difference, Result, Trial, over_seeds, paired
from pde_nb.core.statistics import Summary
from pde_nb.core.style import COLOURS, SMALL, Row, fig_rows, new_figure
from pde_nb.core.tables import escape_plot, interval_text

REACH = 0.5  # how far an interval may stretch the axis beyond the figures, as a share of their range
SLACK = 0.25  # an interval that reaches so much further, as a share of that, is not worth cutting
PALE = "#9aa3aa"  # what is only a bound
BACK = "#ececec"  # behind a stage that was stepped back from


# Rows


def within_range(d: Difference) -> Difference:
    "A difference of two accuracies with its interval cut to what there can be: 100 points either way."
    if d.n == 1:
        return d
    return replace(d, low=max(d.low, -1.0), high=min(d.high, 1.0))


def summary_row(name: str, s: Summary, subject: bool = False, hollow: bool = False) -> Row:
    "A row of a figure with its interval, in percent or points; an accuracy is cut to [0, 100] elsewhere."
    low, high = (s.mean, s.mean) if math.isnan(s.low) else (s.low, s.high)
    return Row(escape_plot(name), 100 * s.mean, 100 * low, 100 * high, subject, hollow)


def accuracy_row(result: Result, key: str, subject: bool = False) -> Row:
    "An accuracy on the test set, in percent, its interval within 0 and 100."
    row = summary_row(result.title, over_seeds(result, key), subject)
    return replace(row, low=max(row.low, 0.0), high=min(row.high, 100.0))


@dataclass(frozen=True)
class Panel:
    "Rows that fit on an axis, and which of their intervals were cut to make them fit."

    rows: list[Row]
    low: float  # of the axis
    high: float
    cut: dict[str, Row]  # name → the row before


def fitted(rows: list[Row]) -> Panel:
    "Rows on an axis that the figures decide: an interval that reaches far beyond all of them is cut."
    figures = [row.figure for row in rows]
    reach = max(REACH * (max(figures) - min(figures)), 2.0)
    low = axis_end([row.low for row in rows], min(figures), -reach)
    high = axis_end([row.high for row in rows], max(figures), reach)
    shown = [replace(row, low=max(row.low, low), high=min(row.high, high)) for row in rows]
    cut = {row.name: row for row, fits in zip(rows, shown) if row != fits}
    margin = 0.04 * max(high - low, 1.0)
    return Panel(shown, low - margin, high + margin, cut)


def axis_end(ends: list[float], figure: float, reach: float) -> float:
    "Where an axis ends: at the last end of an interval, or where all that reach further are cut."
    beyond = [(end - figure) / reach for end in ends]
    near = [share for share in beyond if share <= 1 + SLACK]
    share = max(near) if len(near) == len(beyond) else max(1.0, *near)
    return figure + share * reach


def fig_fitted(
    panels: dict[str, list[Row]], labels: list[str], zeros: Iterable[int] = (), order: bool = True
):
    "Rows on fitted axes: an arrow where an interval goes on, and a line at zero on some panels."
    fits = {title: fitted(rows) for title, rows in panels.items()}
    fig = fig_rows({title: panel.rows for title, panel in fits.items()}, labels[0], order=order)
    names = [tick.get_text() for tick in fig.axes[0].get_yticklabels()]
    for ax, panel, label in zip(fig.axes, fits.values(), labels):
        ax.set(xlim=(panel.low, panel.high), xlabel=label)
        for name, whole in panel.cut.items():
            row = next(row for row in panel.rows if row.name == name)
            draw_arrows(ax, names.index(name), row, whole)
    for number in zeros:
        ax = fig.axes[number]
        low, high = ax.get_xlim()
        margin = 0.04 * (high - low)
        ax.set_xlim(min(low, -margin), max(high, margin))
        ax.axvline(0, color=COLOURS["average"], lw=1.0, zorder=1)
    return fig


def draw_arrows(ax, at: int, row: Row, whole: Row):
    "An arrow at each end of an interval that goes on."
    colour = COLOURS["subject" if row.subject else "method"]
    for end, goes_on, mark in ((row.low, whole.low < row.low, "<"), (row.high, whole.high > row.high, ">")):
        if goes_on:
            ax.plot(end, at, mark, color=colour, ms=6)


# One task


def fig_methods(task: Task, key: str = "worst_group", what: str = "worst group"):
    "Every method with its interval (left), and what PDE is ahead of it, paired by seed (right)."
    return fig_fitted(
        method_rows(task, key, what), ["accuracy on the test set, %", "points, paired by seed"], [1]
    )


def method_rows(task: Task, key: str, what: str) -> dict[str, list[Row]]:
    "The rows of `fig_methods` by the title of their panel."
    accuracies = [accuracy_row(r, key, name == "pde") for name, r in task.results.items()]
    differences = []
    for name, result in task.results.items():
        if name != "pde":
            d = within_range(paired(task["pde"], result, key))
            differences.append(summary_row(result.title, d))
    return {what: accuracies, "PDE minus the method": differences}


def methods_caption(task: Task, key: str = "worst_group", what: str = "worst group") -> str:
    "What the dots and lines are, and which intervals were cut."
    text = (
        "Dots are means over seeds, lines their 95 % intervals; PDE is the green diamond. "
        "Right of zero PDE is ahead."
    )
    cuts = []
    for title, rows in method_rows(task, key, what).items():
        cuts += cut_intervals(rows, "+" if "minus" in title else "")
    if cuts:
        text += f" An arrow: the interval goes on, for {'; '.join(cuts)}."
    if cut_at_100(task, key):
        text += " No interval is drawn beyond what there can be: 0 and 100 %, 100 points either way."
    return f"*{text}*"


def cut_intervals(rows: list[Row], sign: str = "") -> list[str]:
    "The intervals that are cut in a picture, whole."
    cuts = []
    for name, row in fitted(rows).cut.items():
        whole = Summary(row.figure, 0.0, row.low, row.high, 2)
        cuts.append(f"{name} {interval_text(whole, scale=1, sign=sign)}")
    return cuts


def cut_at_100(task: Task, key: str) -> bool:
    "Whether the formula of some interval goes beyond what an accuracy or a difference of two can be."
    differences = [paired(task["pde"], result, key) for name, result in task.results.items() if name != "pde"]
    accuracies = [over_seeds(result, key) for result in task.results.values()]
    beyond = [d.low < -1 or d.high > 1 for d in differences]
    return any(beyond + [s.low < 0 or s.high > 1 for s in accuracies])


# The stages of a run


def fig_stages(result: Result):
    "Validation's worst group over one run of PDE with its stages (left), and the best so far of each seed."
    fig, (left, right) = new_figure(2, 3.1)
    draw_course(left, result.trials[0])
    for trial in result.trials[::-1]:
        draw_bests(right, trial, trial is result.trials[0])
    ends = [100 * warm_and_end(trial)[1] for trial in result.trials]
    left.set(xlabel="passes over the training set", ylabel="worst group, validation, %", xlim=(0, None))
    right.set(
        xlabel="passes over the training set", ylim=(max(0, min(ends) - 15), max(ends) + 2), xlim=(0, None)
    )
    left.set_title("the first seed, every epoch", fontsize=SMALL + 1)
    right.set_title("every seed, the best so far", fontsize=SMALL + 1)
    fig.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False
    )
    return fig


def draw_course(ax, trial: Trial, steps_back: bool = True):
    "Every epoch of a run; a line where a stage begins, grey where one was stepped back from."
    exact = [entry for entry in trial.curve if entry["val_worst_group"] is not None]
    bounds = [entry for entry in trial.curve if entry["val_worst_group"] is None]
    stepped_back = dict(color=BACK, lw=0, label="stage stepped back from")
    for stage in stages_of(trial):
        if stage.number or stage.begin:
            ax.axvline(stage.begin, color=COLOURS["average"], lw=0.8, ls=":")
        if steps_back and not stage.gained:
            ax.axvspan(stage.begin, stage.end, zorder=0, **stepped_back)
            stepped_back["label"] = None
    for entries, look in (
        (bounds, dict(ms=4, mfc="none", mec=PALE, label="a bound: evaluation stopped")),
        (exact, dict(ms=4.5, color=COLOURS["subject"], label="evaluated in full")),
    ):
        values = [100 * entry["val_worst_group_at_most"] for entry in entries]
        ax.plot([entry["passes"] for entry in entries], values, "o", **look)


def draw_bests(ax, trial: Trial, first: bool):
    "The best so far over a run: a dot where a stage began that gained, a cross where one did not."
    bests = [entry for entry in trial.curve if entry["best"]]
    passes = [entry["passes"] for entry in bests]
    values = [100 * entry["val_worst_group_at_most"] for entry in bests]
    colour, width = (COLOURS["subject"], 2.0) if first else (COLOURS["method"], 1.0)
    ax.step([*passes, trial.passes], [*values, values[-1]], where="post", lw=width, color=colour)
    for stage in stages_of(trial)[1:]:
        so_far = [value for at, value in zip(passes, values) if at <= stage.begin][-1]
        ax.plot(stage.begin, so_far, "o" if stage.gained else "x", color=colour, ms=5.5, mew=1.4)


# All tasks


def fig_overview():
    "What PDE is ahead of plain training and of a balanced subset, on every task that they ran on."
    panels = {}
    for other, title in (("erm", "PDE minus ERM"), ("subsample", "PDE minus Subsample")):
        rows = []
        for key, name in TASKS.items():
            task, record = whole_task(key), INSTEAD.get((key, other), other)
            if record in task:
                rows.append(summary_row(name, within_range(paired(task["pde"], task[record])), True))
        panels[title] = rows
    return fig_fitted(panels, ["points in the worst group"] * 2, [0, 1])


def page_picture(fig: Figure, colours: int = 64, dpi: int = 76) -> Image:
    """A figure for a page with many of them: a PNG with a palette, a third of the size at the same pixels."""
    drawn = io.BytesIO()
    fig.savefig(drawn, dpi=dpi)
    small = io.BytesIO()
    PIL.Image.open(drawn).convert("RGB").quantize(colours).save(small, "PNG", optimize=True)
    return Image(small.getvalue())
