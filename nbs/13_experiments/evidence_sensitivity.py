"""Reading and showing methods over a grid of settings, for the page on them; see evidence.py."""

from dataclasses import dataclass

import numpy as np
from evidence import FOLDER
from matplotlib.lines import Line2D

from pde_nb.core.style import COLOURS, SMALL, new_figure
from pde_nb.core.tables import Table, escape_plot, percent
from pde_nb.records.seals import read_measurement

NEAR = 0.02  # two points
DRAWS = 100  # of small validations, in the record


def worst_groups(correct, total):
    "The lowest accuracy of a group that has examples, in [0, 1]; (…, groups) → (…)."
    filled = total > 0
    return (correct[..., filled] / total[filled]).min(-1)


@dataclass(frozen=True, eq=False)
class MethodGrid:
    "What a method came to with every setting; a run without a model has nothing right."

    title: str
    settings: tuple[dict, ...]
    val: np.ndarray  # (settings, seeds, groups) right predictions
    val_total: np.ndarray  # (groups,)
    test: np.ndarray
    test_total: np.ndarray
    failed: np.ndarray  # (settings, seeds)
    seconds: float
    small: dict  # rows of each group → how many small validations chose each setting, (settings,)

    @property
    def figures(self):
        "Worst-group accuracy of each setting on test in [0, 1], mean over seeds."
        return worst_groups(self.test, self.test_total).mean(1)

    @property
    def chosen(self) -> int:
        "The setting that validation chooses: the best worst group, of equals the best mean over groups."
        worst = worst_groups(self.val, self.val_total).mean(-1)
        filled = self.val_total > 0
        mean = (self.val[..., filled] / self.val_total[filled]).mean((-1, -2))
        return int(np.where(worst > worst.max() - 1e-12, mean, -1.0).argmax())


def read_grids() -> dict[str, dict[str, MethodGrid]]:
    "Methods by name, by task."
    tasks = read_measurement(FOLDER.parent / "sensitivity.json")["tasks"]
    return {task: {name: read_grid(g) for name, g in of["grids"].items()} for task, of in tasks.items()}


def read_grid(plain: dict) -> MethodGrid:
    "One method of a record."
    arrays = {name: np.array(plain[name]) for name in ("val", "val_total", "test", "test_total", "failed")}
    small = {int(size): np.array(times) for size, times in plain["small"].items()}
    return MethodGrid(
        plain["title"], tuple(plain["settings"]), seconds=plain["seconds"], small=small, **arrays
    )


@dataclass(frozen=True)
class GridSummary:
    "How a method depends on its settings: worst groups on test, and shares, in [0, 1]."

    title: str
    settings: int
    best: float
    median: float
    lowest: float
    near: float  # share of settings within `NEAR` of its best
    near_all: float  # within `NEAR` of the best of all methods
    chosen: float  # of the setting that the whole validation chooses
    small: dict[int, float]  # rows of each group → mean over what small validations choose
    failed: int  # runs that came to no model

    @property
    def cost(self) -> float:
        "What choosing by the whole validation costs: the best less the chosen."
        return self.best - self.chosen


def grid_summaries(grids: dict[str, MethodGrid]) -> dict[str, GridSummary]:
    "The summaries of all methods by name, the best median first."
    top = max(grid.figures.max() for grid in grids.values())
    found = {}
    for name, grid in grids.items():
        figures = grid.figures
        best = figures.max()
        found[name] = GridSummary(
            title=grid.title,
            settings=len(figures),
            best=float(best),
            median=float(np.median(figures)),
            lowest=float(figures.min()),
            near=float((figures >= best - NEAR - 1e-12).mean()),
            near_all=float((figures >= top - NEAR - 1e-12).mean()),
            chosen=float(figures[grid.chosen]),
            small={size: float(figures @ times / times.sum()) for size, times in grid.small.items()},
            failed=int(grid.failed.sum()),
        )
    return dict(sorted(found.items(), key=lambda item: -item[1].median))


def sensitivity_table(grids: dict[str, MethodGrid]) -> Table:
    "A row for each method, the best median first; in percent, costs in points."
    rows = []
    summaries = grid_summaries(grids)
    sizes = sorted({size for s in summaries.values() for size in s.small})
    for s in summaries.values():
        shares = [percent(share, 0, "") for share in (s.near, s.near_all)]
        spread = [percent(share, mark="") for share in (s.median, s.lowest, s.best)]
        picked = [percent(share, mark="") for share in (s.chosen, s.cost)]
        little = [percent(s.best - s.small[size], mark="") for size in sizes]
        rows.append((s.title, *spread, *shares, *picked, *little, s.failed))
    head = (
        *("method", "median", "lowest", "best", "near it", "near the best of all", "chosen", "cost"),
        *(f"cost at {size}" for size in sizes),
        "no model",
    )
    n = max(s.settings for s in summaries.values())
    caption = (
        f"Worst group on test over {n} settings, %. Near: share of settings within two points, %. Chosen: by "
        "the worst group on validation; cost: the best less that, in points; at 8: the mean over small "
        f"validations with so many rows of each group, {DRAWS} drawn. A run without a model counts as 0."
    )
    return Table(head, rows, caption=caption)


def stacked(x, width: float, most: float = 0.34):
    "Heights at which dots that are closer than a width lie beside one another, at most so far from 0."
    bins = np.floor(np.asarray(x) / width).astype(int)
    heights = np.zeros(len(bins))
    tallest = max(np.bincount(bins - bins.min()))
    step = min(0.12, 2 * most / max(tallest - 1, 1))
    for place in np.unique(bins):
        inside = np.flatnonzero(bins == place)
        heights[inside] = step * (np.arange(len(inside)) - (len(inside) - 1) / 2)
    return heights


def fig_sensitivity(panels: dict[str, dict[str, MethodGrid]], subject: str):
    "The worst group at every setting, a row for each method, the same order in every panel."
    medians = {}
    for grids in panels.values():
        for name, grid in grids.items():
            medians.setdefault(name, []).append(np.median(grid.figures))
    names = sorted(medians, key=lambda name: -np.mean(medians[name]))
    titles = {name: grid.title for grids in panels.values() for name, grid in grids.items()}
    fig, axes = new_figure(len(panels), 1.3 + 0.42 * len(names), 3.4)
    for ax, (title, grids) in zip(axes, panels.items()):
        width = max(np.ptp(np.concatenate([100 * grid.figures for grid in grids.values()])), 1) / 60
        for name, grid in grids.items():
            at, figures = names.index(name), 100 * grid.figures
            colour = COLOURS["subject" if name == subject else "method"]
            ax.plot([np.median(figures)] * 2, [at - 0.4, at + 0.4], color=COLOURS["average"], lw=1.4)
            ax.plot(figures, at + stacked(figures, width), "o", color=colour, ms=3.2, mew=0, alpha=0.7)
            ax.plot(figures[grid.chosen], at, "D", color=colour, ms=6.5, mec="white", mew=1.2)
        ax.set(yticks=range(len(names)), ylim=(len(names) - 0.5, -0.5), xlabel="worst group, test, %")
        ax.set_yticklabels([escape_plot(titles[name]) for name in names] if ax is axes[0] else [])
        ax.set_title(escape_plot(title), fontsize=SMALL + 1)
        ax.grid(axis="x", color="#e4e4e4", lw=0.7)
        ax.set_axisbelow(True)
    none = dict(ls="none", color=COLOURS["method"])
    legend = [
        Line2D([], [], marker="o", ms=4, label="a setting", **none),
        Line2D([], [], marker="|", ms=10, mew=1.4, label="median", ls="none", color=COLOURS["average"]),
        Line2D([], [], marker="D", ms=6, label="chosen on validation", **none),
    ]
    fig.legend(handles=legend, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL)
    return fig
