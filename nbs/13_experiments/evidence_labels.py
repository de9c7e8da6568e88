"""Records, tables, sentences and pictures of the page on what an attribute label is worth; see evidence.py.

All labels known is on record in results/evidence, the other conditions in results/labels.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from statistics import mean

import numpy as np
from evidence import FOLDER, METHODS, TASKS, read_task
from evidence_text import joined, number_text

from pde_nb.comparison.trials import over_seeds, p_value, seed_figures
from pde_nb.core.statistics import Summary, holm, summary
from pde_nb.core.style import COLOURS, SMALL, new_figure
from pde_nb.core.tables import DASH, Table, fixed, interval_text, percent, signed_text
from pde_nb.records.seals import read_measurement

LABELS = FOLDER.parent / "labels"
CONDITIONS = {  # as the folders of the records have it → as the page does
    "full": "training and validation",
    "val": "validation",
    "val-300": "300 rows",
    "val-100": "100 rows",
    "val-30": "30 rows",
    "none": "none",
}
ORDER = "pde", "group_dro", "subsample", "dfr", "jtt", "eiil", "lff", "erm"
USES_GROUPS = "pde", "group_dro", "subsample"  # of training; the others are in `val` as in `full`
WITHOUT = "jtt", "eiil", "lff"  # made for training groups that are missing
SEEDS = 5
NEAR, HALF_NEAR = 3.0, 5.0  # points below all labels, with the labels of validation, and with 300 rows
ENOUGH_TASKS = 3
SHORT = 2.0  # passes, in which LfF, JTT and EIIL cannot show what they do


@dataclass(frozen=True)
class Runs:
    "What the seeds of a method came to under a condition."

    worst: dict[int, float] = field(default_factory=dict)  # seed → worst group on test, in [0, 1]
    refused: dict[int, str] = field(default_factory=dict)  # seed → what the library said
    trials: tuple[dict, ...] = ()  # those of the record that ran; () for what results/evidence has

    @property
    def summary(self) -> Summary | None:
        "Mean and interval over seeds; None where no seed ran."
        return summary([*self.worst.values()]) if self.worst else None


Found = dict[str, dict[str, dict[str, Runs]]]  # task → condition → method


# Records


def worst_of(trial: dict) -> float:
    "The worst group on test of a trial of a record, in [0, 1]."
    test = trial["splits"]["test"]
    return min(c / n for c, n in zip(test["correct"], test["total"]) if n)


def read_runs(path) -> Runs:
    "The runs of a record; none where it is not there."
    if not path.exists():
        return Runs()
    trials = read_measurement(path)["trials"]
    ran = tuple(t for t in trials if t["refused"] is None)
    refused = {t["seed"]: t["refused"] for t in trials if t["refused"] is not None}
    return Runs({t["seed"]: worst_of(t) for t in ran}, refused, ran)


def read_all() -> Found:
    "All runs, by task, condition and method."
    found = {}
    for key in TASKS:
        task = read_task(key)
        full = {m: Runs({f.seed: f.worst_group for f in seed_figures(task[m])}) for m in ORDER}
        found[key] = {"full": full}
        for condition in [*CONDITIONS][1:]:
            folder = LABELS / key / condition
            runs = {method: read_runs(folder / f"{method}.json") for method in ORDER}
            if condition == "val":
                runs |= {method: full[method] for method in ORDER if method not in USES_GROUPS}
            found[key][condition] = runs
    return found


def repeat_text() -> str:
    "How many runs with all labels were made again, and how many of those have the counts on record."
    same, n = 0, 0
    for path in sorted(LABELS.glob("*/full/*.json")):
        earlier = {t.seed: t.to_dict() for t in read_task(path.parent.parent.name)[path.stem].trials}
        for trial in read_runs(path).trials:
            n += 1
            same += trial["splits"]["test"] == earlier[trial["seed"]]["splits"]["test"]
    return f"Of the runs with all labels, {n} were made again: {same} have every count of those on record."


def difference(one: Runs, other: Runs) -> Summary | None:
    "The first minus the second, paired by seed; None where no seed has both."
    seeds = sorted(one.worst.keys() & other.worst.keys())
    return summary([one.worst[s] - other.worst[s] for s in seeds]) if seeds else None


# Tables


def runs_text(runs: Runs) -> str:
    "Mean and interval over seeds in percent; how many seeds ran, where not all five, or were refused."
    found = runs.summary
    said = []
    if runs.worst and len(runs.worst) + len(runs.refused) != SEEDS:
        said.append(f"{len(runs.worst)} seed{'s' * (len(runs.worst) > 1)}")
    if runs.refused:
        said.append(f"{len(runs.refused)} refused")
    mark = f" ({', '.join(said)})" if said else ""
    if found is None:
        return f"{DASH}{mark}"
    return f"{fixed(100 * found.mean)} {interval_text(found, low=0, high=1)}".rstrip() + mark


def task_table(found: Found, key: str) -> Table:
    "The worst group on test of each method under each condition, in percent."
    there = [c for c in CONDITIONS if any(r.worst or r.refused for r in found[key][c].values())]
    rows = []
    for method in ORDER:
        rows.append((METHODS[method], *(runs_text(found[key][c][method]) for c in there)))
    return Table(("attribute known on", *(CONDITIONS[c] for c in there)), tuple(rows))


def loss_table(found: Found) -> Table:
    "The methods that use training groups under each condition, minus themselves with all labels, in points."
    rows = []
    for method, key in product(USES_GROUPS, TASKS):
        full = found[key]["full"][method]
        losses = [difference(found[key][c][method], full) for c in [*CONDITIONS][1:]]
        if any(d is not None for d in losses):
            rows.append((METHODS[method], TASKS[key], *map(loss_text, losses)))
    return Table(("points (seeds)", "", *[*CONDITIONS.values()][1:]), tuple(rows), "llrrrrr")


def loss_text(d: Summary | None) -> str:
    "A difference with its interval and its seeds; a dash for none."
    return DASH if d is None else f"{signed_text(d)} ({d.n})"


# Targets


def near_text(found: Found, condition: str, points: float, needed: int) -> str:
    "Whether PDE stays near all labels on so many tasks, with the differences."
    losses = {TASKS[key]: difference(of[condition]["pde"], of["full"]["pde"]) for key, of in found.items()}
    there = {title: d for title, d in losses.items() if d is not None}
    near = [title for title, d in there.items() if 100 * d.mean >= -points]
    firm = [title for title, d in there.items() if d.n >= FIRM]
    settled = len(set(near) & set(firm)), len(set(near) | (losses.keys() - set(firm)))
    answer = verdict(len(near), needed, len(losses) - len(there), settled)
    parts = [f"{title} {fixed(100 * d.mean, sign='+')}{few_text(d.n)}" for title, d in there.items()]
    sentence = f"PDE is within {points:g} points of all labels on {number_text(len(near))} of "
    sentence += f"{number_text(len(losses))} tasks: {'; '.join(parts)}."
    missing = [title for title, d in losses.items() if d is None]
    sentence += f" Not run: {joined(missing)}." if missing else ""
    ruled_out = sum(d.n > 1 and 100 * d.low >= -points for d in there.values())
    sentence += f" By the intervals, a loss of more than {points:g} points is ruled out on "
    sentence += f"{number_text(ruled_out)} of them"
    lost = [f"{title} ({signed_text(d)})" for title, d in there.items() if d.n > 1 and d.high < 0]
    sentence += f". **The whole interval is below zero on {joined(lost)}**." if lost else "."
    return f"**{answer}, by the mean**, with {WORDS[condition]}. {sentence}"


def few_text(n: int) -> str:
    "How many seeds, where it is not five."
    return "" if n == SEEDS else f" ({n} seed{'s' * (n > 1)})"


WORDS = {"val": "the labels of validation alone", "val-300": "300 labelled rows"}


FIRM = 3  # seeds, without which an answer holds so far only


def verdict(n: int, needed: int, open_: int, settled: tuple[int, int]) -> str:
    """Yes, no or open: so many of those needed are there, and so many are not known. "So far" where it would
    not hold with the least and the most that tasks of enough seeds leave possible."""
    least, most = settled
    if n >= needed:
        return "Yes" if least >= needed else "Yes, so far"
    if n + open_ >= needed:
        return "Open"
    return "No" if most < needed else "No, so far"


def ahead_text(found: Found, condition: str = "val") -> str:
    "Whether PDE is ahead of the methods that need no training groups, where those have time to train."
    long = [key for key in found if passes_of(key) > SHORT]
    runs = {key: found[key][condition] for key in long}
    pairs = {(m, key): (of["pde"], of[m]) for key, of in runs.items() for m in WITHOUT}
    each = {pair: difference(*both) for pair, both in pairs.items()}
    corrected = holm([paired_p(*both) for both in pairs.values()])
    told = sum(p < 0.05 and d.low > 0 for p, d in zip(corrected, each.values()))
    behind = [f"{METHODS[m]} on {TASKS[key]}" for (m, key), d in each.items() if d.mean <= 0]
    names = joined([METHODS[m] for m in WITHOUT])
    answer = f"{'No' if behind else 'Yes'}, on {joined([TASKS[key] for key in long])}"
    text = f"**{answer}**: with the same labels, "
    text += f"PDE is ahead of {names} by the mean"
    text += f", but for {joined(behind)}" if behind else ""
    text += f"; after Holm's correction over these {len(pairs)} comparisons in {told}. The other "
    text += (
        f"{number_text(len(found) - len(long))} tasks do not count: of {SHORT:g} passes in all, one is left "
    )
    return text + "for what these methods do after their first stage, or for each network of LfF."


def passes_of(key: str) -> float:
    "The passes over the training set that plain training has on a task."
    return over_seeds(read_task(key)["erm"], "passes").mean


def paired_p(one: Runs, other: Runs) -> float:
    "The p-value of the paired t-test over the seeds that both have."
    seeds = sorted(one.worst.keys() & other.worst.keys())
    return p_value(np.array([one.worst[s] - other.worst[s] for s in seeds]))


def target_texts(found: Found) -> list[str]:
    "The targets, with yes, no or open."
    return [
        near_text(found, "val", NEAR, len(TASKS)),
        ahead_text(found),
        near_text(found, "val-300", HALF_NEAR, ENOUGH_TASKS),
    ]


# The groups that were predicted


def quality(trial: dict, kinds: tuple[str, str]) -> float | None:
    "The share of right rows in the worst group of training, of those of a kind; None where there are none."
    split = trial["true"].get("train")
    if not split:
        return None
    right, of = (split[kind] for kind in kinds)
    shares = [r / n for r, n in zip(right, of) if n]
    return min(shares) if shares else None


def mean_text(values: Iterable[float | None]) -> str:
    "The mean of what is there, in percent."
    there = [value for value in values if value is not None]
    return percent(mean(there), mark="") if there else DASH


def probe_accuracy(trial: dict) -> float | None:
    "The cross-fitted accuracy that the library reports; None without a probe."
    probes = trial["groups"].get("attributes", {})
    return min((of["figures"]["accuracy"] for of in probes.values()), default=None)


def quality_table(found: Found) -> Table:
    "What the library says of its probe, and what the predicted training groups are in truth, in percent."
    rows = []
    for key, title in TASKS.items():
        for condition in ("val", "val-300", "val-100", "val-30"):
            trials = found[key][condition]["pde"].trials
            if trials:
                said = mean_text(probe_accuracy(t) for t in trials)
                cells = [
                    mean_text(quality(t, kinds) for t in trials)
                    for kinds in (("right", "found"), ("sure_right", "sure"), ("right", "true"))
                ]
                rows.append((title, CONDITIONS[condition], said, *cells, judged_text(trials)))
    head = ("task", "known on", "probe", "precision", "of the sure rows", "recall", "epoch chosen by")
    return Table(head, tuple(rows), "llrrrrl")


def judged_text(trials) -> str:
    "Which rows of validation the epoch was chosen by."
    kinds = sorted({t["groups"]["judged"]["val"] for t in trials})
    return joined([JUDGES[kind] for kind in kinds])


JUDGES = {"labelled": "labelled rows", "some": "the labelled rows alone", "predicted": "predicted groups too"}


# Refusals, and where it hurt


def refusal_texts(found: Found) -> list[str]:
    "What was refused: how often, and the beginning of what the library said."
    lines = []
    for key, of in found.items():
        for condition, methods in of.items():
            said = [text for runs in methods.values() for text in runs.refused.values()]
            if said:
                ran = sum(len(runs.worst) for runs in methods.values())
                where = f"{TASKS[key]}, {CONDITIONS[condition]}"
                lines.append(f"{where}: {len(said)} of {len(said) + ran} runs, first “{said[0]}”")
    return lines


def empty_texts(found: Found) -> list[str]:
    "Where the probe named no training row at all of some groups, in the first such seed."
    lines = []
    for key, condition in product(TASKS, CONDITIONS):
        for trial in found[key][condition]["pde"].trials:
            train = trial["true"].get("train", {"true": [], "found": []})
            lost = sum(n > 0 and not m for n, m in zip(train["true"], train["found"]))
            if lost:
                where = f"{TASKS[key]}, {CONDITIONS[condition]}, seed {trial['seed']}"
                worst = percent(worst_of(trial))
                lines.append(f"{where}: {lost} of {len(train['true'])} groups, worst group on test {worst}")
                break
    return lines


def hurt_texts(found: Found) -> list[str]:
    "Where a method with predicted or inferred groups is below plain training with as many labels."
    lines = []
    for key, condition, method in product(TASKS, [*CONDITIONS][1:], ORDER[:-1]):
        if condition == "val" and method not in USES_GROUPS:
            continue
        runs = found[key][condition]
        d = difference(runs[method], runs["erm"])
        if d is not None and d.mean < 0:
            where = f"{METHODS[method]} on {TASKS[key]}, {CONDITIONS[condition]}"
            lines.append(f"{where}: {signed_text(d)} points ({d.n})")
    return lines


# What was changed between the runs


def changes_table(found: Found, folder: str) -> Table:
    "PDE before a change of the library and after all of them, and the difference, paired by seed."
    rows = []
    for path in sorted((LABELS / folder).glob("*/*/pde.json")):
        key, condition = path.parent.parent.name, path.parent.name
        before, after = read_runs(path), found[key][condition]["pde"]
        cells = [runs_text(before), runs_text(after), loss_text(difference(after, before))]
        rows.append((TASKS[key], CONDITIONS[condition], *cells))
    head = ("PDE, worst group on test", "known on", "before", "after", "points (seeds)")
    return Table(head, tuple(rows), "llrrr")


# The bound of the sure rows


BOUNDS = "0.05", "0.1", "0.2", "0.3", "1"


def bound_table() -> Table:
    "PDE with each bound, by task and condition, and the mean distance to the bound of 0.1."
    tables = {}
    for path in sorted((LABELS / "most_wrong").glob("*/*/*.json")):
        place = path.parent.parent.name, path.parent.name
        tables.setdefault(place, {})[path.stem] = read_runs(path)
    places = sorted(tables, key=lambda p: ([*TASKS].index(p[0]), [*CONDITIONS].index(p[1])))
    rows = []
    for bound in BOUNDS:
        cells, apart = [], []
        for place in places:
            runs = tables[place].get(bound, Runs())
            cells.append(runs_text(Runs(runs.worst)) if runs.worst else DASH)
            base = tables[place].get("0.1", Runs())
            apart += [runs.worst[s] - base.worst[s] for s in runs.worst.keys() & base.worst.keys()]
        rows.append((bound, *cells, signed_text(summary(apart)) if apart else DASH))
    head = [f"{TASKS[task]}, {CONDITIONS[condition]}" for task, condition in places]
    return Table(("bound", *head, "minus 0.1, all runs"), tuple(rows))


# The picture


def fig_labels(found: Found):
    "The worst group of PDE against the number of labelled rows, between plain training and all labels."
    fig, axes = new_figure(len(TASKS), 2.7, 2.15)
    for ax, (key, title) in zip(axes, TASKS.items()):
        draw_task(ax, found[key])
        ax.set_title(title, fontsize=SMALL + 1)
        ax.set_xlabel("labelled rows")
    axes[0].set_ylabel("worst group on test, %")
    handles, names = axes[0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False)
    return fig


PLACES = {"val-30": 0, "val-100": 1, "val-300": 2, "val": 3}  # place on the axis


def draw_task(ax, of: dict[str, dict[str, Runs]]):
    "One task: a diamond for the mean of PDE, a dot for each seed, and lines of what it lies between."
    colour = COLOURS["subject"]
    look = dict(ms=5.5, color=colour, label="PDE, groups predicted")
    means = {at: of[condition]["pde"].summary for condition, at in PLACES.items()}
    there = [at for at, found in means.items() if found is not None]
    ax.plot(there, [100 * means[at].mean for at in there], "D-", lw=1.0, **look)
    for condition, at in PLACES.items():
        values = [100 * value for value in of[condition]["pde"].worst.values()]
        ax.plot([at] * len(values), values, "o", ms=2.5, mew=0, color=colour, alpha=0.6)
    best = max((of["full"][m].summary for m in WITHOUT), key=mean_of)
    lines = {
        "PDE, all labels": (of["full"]["pde"].summary, colour, "-"),
        "best of JTT, EIIL, LfF": (best, COLOURS["method"], "--"),
        "ERM": (of["full"]["erm"].summary, COLOURS["spurious"], ":"),
    }
    for label, (found, shade, dash) in lines.items():
        ax.axhline(100 * found.mean, color=shade, ls=dash, lw=1.2, zorder=0, label=label)
    ax.set(xticks=range(4), xlim=(-0.5, 3.5))
    ax.set_xticklabels(["30", "100", "300", "all"])


def mean_of(found: Summary) -> float:
    return found.mean
