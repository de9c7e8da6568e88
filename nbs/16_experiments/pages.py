"""Records of the runs as tables, for the result pages beside this file: figures, differences, verdicts."""

import io
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import PIL.Image
from IPython.display import Image, Markdown

from pde_nb.comparison.trials import holm, over_seeds, p_text, paired, points_text, read_results, worst_group
from pde_nb.core.seals import read_measurement
from pde_nb.core.tables import COLOURS, SMALL, Table, interval_text, new_figure, spread_text

RESULTS = Path(__file__).resolve().parents[2] / "results"
EVIDENCE = RESULTS / "evidence"
TASKS = {
    "waterbirds": "Waterbirds",
    "waterbirds_features": "Waterbirds features",
    "sick": "SICK",
    "adult": "Adult",
    "coloured_mnist": "Coloured MNIST",
}
METHODS = {  # name of the record → how the pages call it
    "erm": "ERM",
    "subsample": "Subsample",
    "resampling": "Group resampling",
    "group_dro": "GroupDRO",
    "lff": "LfF",
    "eiil": "EIIL",
    "jtt": "JTT",
    "dfr": "DFR-Val",
    "dfr_tr": "DFR-Tr",
    "pde": "PDE",
    "pde_fixed": "PDE by hand",
    "pde_balanced": "PDE balanced",
}
LINEAR = {
    "dfr_l1": "DFR-Val on the features (L1)",
    "dfr_l2": "DFR-Val on the features (L2)",
    "dfr_tr_l1": "DFR-Tr on the features (L1)",
    "dfr_tr_l2": "DFR-Tr on the features (L2)",
}
FURTHER = {  # on one task each
    "pde_unlimited": "PDE unlimited",
    "pde_fixed_capped": "PDE by hand, capped",
    "subsample_whole": "Subsample in full",
    "subsample_capped": "Subsample with a cap",
}
INSTEAD = {  # task and method → what stands for the method where verdicts are counted
    ("coloured_mnist", "subsample"): "subsample_capped",  # a set as large as the one PDE begins with
    ("waterbirds_features", "dfr"): "dfr_l1",  # a last layer on the features is what DFR is
    ("waterbirds_features", "dfr_tr"): "dfr_tr_l1",
}


@cache
def results_of(task: str) -> dict:
    "The results of a task by the name of their record: methods, then scikit-learn's models as references."
    found = read_results(EVIDENCE / task, METHODS | FURTHER)
    if task == "waterbirds_features":
        found |= read_results(EVIDENCE / "linear", LINEAR)
    for name, result in found.items():
        result.title = (METHODS | LINEAR | FURTHER)[name]
    return found | read_results(EVIDENCE / "references" / task)


def labelled(task: str, condition: str, method: str = "pde") -> pd.Series:
    "The worst group on test of each seed of a record in results/labels, in [0, 1], but for refused seeds."
    path = RESULTS / "labels" / task / condition / f"{method}.json"
    trials = read_measurement(path)["trials"] if path.exists() else []
    tests = {t["seed"]: t["splits"]["test"] for t in trials if t["refused"] is None}
    return pd.Series(
        {seed: min(c / n for c, n in zip(t["correct"], t["total"]) if n) for seed, t in tests.items()},
        dtype=float,
    )


def worst_of(result) -> pd.Series:
    "The worst group on test of each seed, in [0, 1]."
    return result.frame.set_index("seed").worst_group


def mean_of(result, key: str = "worst_group") -> float:
    "A figure of a result, mean over seeds."
    return over_seeds(result, key).mean


def evals(result) -> float:
    "How often a run was evaluated on validation, mean over seeds."
    return float(result.frame.curve.map(len).mean())


def by_worst(results: dict, key: str = "worst_group") -> dict:
    "The results, the best mean first."
    return dict(sorted(results.items(), key=lambda item: -mean_of(item[1], key)))


def show(rows, *head, align: str = "") -> Markdown:
    "A table of the page."
    return Markdown(Table(head, tuple(rows), align).markdown())


# Differences


def differences(pairs: dict, key: str = "worst_group") -> pd.DataFrame:
    """The first result minus the second of each pair, paired by seed: a row for each pair with mean, low and
    high in [-1, 1], seeds, the p of the t-test, p corrected by Holm over all of them, both as text."""
    found = {name: paired(one, other, key) for name, (one, other) in pairs.items()}
    frame = pd.DataFrame([vars(d) for d in found.values()], index=list(found))
    frame["p_holm"] = holm(frame.p.tolist())
    frame["points"] = [points_text(d) for d in found.values()]
    frame["p_text"] = [p_text(row) for row in frame.itertuples()]
    return frame


@cache
def family(key: str = "worst_group") -> pd.DataFrame:
    "PDE minus every other method on every task, by (task, name), corrected together, with the verdict."
    pairs = {
        (task, name): (results_of(task)["pde"], other)
        for task in TASKS
        for name, other in results_of(task).items()
        if name != "pde"
    }
    frame = differences(pairs, key)
    frame["verdict"] = [verdict(*both, d) for both, d in zip(pairs.values(), frame.itertuples())]
    return frame.set_index(pd.MultiIndex.from_tuples(pairs))


def verdict(one, other, d) -> str:
    """Of the first minus the second, p corrected: 'ahead', 'behind' or 'not told apart'; or why there is
    none: 'single pass', fewer seeds than five, or 'unequal evaluation' on validation in a pass."""
    if any(r.method["name"] in ("lff", "jtt", "eiil") and evals(r) <= 1 for r in (one, other)):
        return "single pass"
    if d.n < 5:
        return f"{d.n} seeds"
    if not d.p_holm < 0.05:
        return "not told apart"
    winner, loser = (one, other) if d.mean > 0 else (other, one)
    rate = [(r.frame.curve.map(len) / r.frame.passes).mean() if evals(r) > 1 else 0 for r in (loser, winner)]
    if min(rate) and rate[0] < 0.9 * rate[1]:
        return "unequal evaluation"
    return "ahead" if d.mean > 0 else "behind"


def points(task: str, one: str, other: str, key: str = "worst_group", places: int = 1) -> str:
    "A difference of two results of a task, in points."
    return points_text(paired(results_of(task)[one], results_of(task)[other], key), places)


# Parts of a run


def bests_by_stage(curve) -> pd.Series:
    "The best worst group on validation of each stage that gained, in their order; the warm-up comes first."
    curve = pd.DataFrame(curve)
    stage = (curve[["stage", "lr"]].diff() != 0).any(axis=1).cumsum()
    return curve[curve.best].groupby(stage).val_worst_group_at_most.last()


def expanded(result) -> int:
    "In how many seeds the selected model is one of an expansion."
    return sum(result.frame.stage > 0)


def passes_text(result) -> str:
    "Passes to the selected epoch and in all, mean over seeds."
    return " of ".join(f"{mean_of(result, key):.1f}" for key in ("passes_to_best", "passes"))


def accuracy_cells(result) -> tuple[str, ...]:
    "Worst group with its interval, average, adjusted average and mean of groups on test, in percent."
    worst = worst_group(result)
    others = [over_seeds(result, key) for key in ("average", "adjusted_average", "group_mean")]
    return (f"{spread_text(worst)} {interval_text(worst)}".rstrip(), *map(spread_text, others))


# Pictures


def fig_differences(panels: dict):
    "Dots and 95 % intervals, a panel for each {name: difference}; a line that ends at the frame goes on."
    names = list(next(iter(panels.values())))
    fig, axes = new_figure(len(panels), 0.9 + 0.24 * len(names), 3.4)
    for ax, (title, found) in zip(axes, panels.items()):
        means = 100 * np.array([d.mean for d in found.values()])
        ends = 100 * np.array([(d.low, d.high) for d in found.values()])
        for at, (mean, end) in enumerate(zip(means, ends)):
            ax.plot(end, [at, at], color=COLOURS["subject"], lw=1.6)
            ax.plot(mean, at, "D", ms=5, color=COLOURS["subject"])
        reach = max(np.ptp(means) / 2, 2.0)
        low = min(0, max(ends.min(), means.min() - reach))
        high = max(0, min(ends.max(), means.max() + reach))
        margin = 0.04 * (high - low)
        ax.axvline(0, color=COLOURS["average"], lw=0.8, zorder=0)
        ax.set(xlim=(low - margin, high + margin), xlabel="points in the worst group")
        ax.set(yticks=range(len(names)), yticklabels=names if ax is axes[0] else [])
        ax.set(ylim=(len(names) - 0.5, -0.5))
        ax.set_title(title, fontsize=SMALL + 1)
        ax.grid(axis="x", color="#e4e4e4", lw=0.7)
    return fig


def page_picture(fig, colours: int = 48, dpi: int = 76) -> Image:
    "A figure as a PNG with a palette: a third of the size at the same pixels."
    drawn, small = io.BytesIO(), io.BytesIO()
    fig.savefig(drawn, dpi=dpi)
    PIL.Image.open(drawn).convert("RGB").quantize(colours, PIL.Image.Quantize.MAXCOVERAGE).save(
        small, "PNG", optimize=True
    )
    return Image(small.getvalue())
