"""Tables, sentences and figures of the pages on our own comparisons; the notebooks beside it import this
module.

Everything is worked out from the records in results/evidence, so that no sentence outlives its record.
"""

from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import median

import numpy as np
from IPython.display import Markdown

from pde_nb.analysis.paired import Difference, paired
from pde_nb.analysis.trials import Result, Trial, over_seeds, read_results, seed_figures, settings_name
from pde_nb.core.statistics import summary
from pde_nb.core.style import COLOURS, new_figure
from pde_nb.core.tables import DASH, Table, fixed, interval_text, signed_text, spread_text

FOLDER = Path(__file__).resolve().parents[2] / "results" / "evidence"
TASKS = {
    "waterbirds": "Waterbirds",
    "waterbirds_features": "Waterbirds, features",
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
    "pde_fixed": "PDE, schedule by hand",
    "pde": "PDE, schedule auto",
    "pde_balanced": "PDE, balanced rounds",
}
SETTINGS = {  # how the tasks are called where they stand side by side
    "waterbirds": "Waterbirds, MobileNetV2, 128 px",
    "waterbirds_features": "Waterbirds, frozen features",
    "sick": "SICK, MiniLM",
    "adult": "Adult",
    "coloured_mnist": "coloured MNIST",
}
FURTHER = {  # shown where they were run
    "pde_unlimited": "PDE, schedule auto, no budget",
    "pde_fixed_capped": "PDE, schedule by hand, capped set",
}
ONE_POINT = 0.01


@dataclass(frozen=True)
class Task:
    "The results of one task."

    title: str
    results: dict[str, Result]  # by the name of the record
    missing: tuple[str, ...] = ()  # titles of the methods that were not run

    def __getitem__(self, name: str) -> Result:
        return self.results[name]

    def __contains__(self, name: str) -> bool:
        return name in self.results


def method_title(name: str) -> str:
    "How the pages call a method."
    return {**METHODS, **FURTHER}.get(name, name)


def read_task(key: str, further=()) -> Task:
    "The results of a task: the usual methods, and some of `FURTHER`."
    names = (*METHODS, *further)
    found = read_results(FOLDER / key, names)
    results = {name: replace(result, title=method_title(name)) for name, result in found.items()}
    missing = tuple(method_title(name) for name in names if name not in found)
    return Task(TASKS[key], results, missing)


def read_variations(*places: str) -> dict[str, Result]:
    "The results in a folder below results/evidence, each called by its name."
    found = read_results(FOLDER.joinpath(*places))
    return {name: replace(result, title=name) for name, result in found.items()}


def markdown(*parts) -> Markdown:
    "Tables, lists of sentences and paragraphs, one below the other."
    texts = []
    for part in parts:
        if isinstance(part, Table):
            texts.append(part.markdown())
        elif isinstance(part, str):
            texts.append(part)
        else:
            texts.append("\n".join(f"- {sentence}" for sentence in part))
    return Markdown("\n\n".join(text for text in texts if text))


# Tables


def groups_table(task: Task) -> Table:
    "Examples of each group in training, validation and test."
    result = next(iter(task.results.values()))
    val, test = (result.trials[0].splits[split] for split in ("val", "test"))
    trains = result.train_counts or [DASH] * len(test.names)
    rows = zip(test.names, trains, val.total.tolist(), test.total.tolist())
    return Table(("group", "training", "validation", "test"), tuple(rows))


HEAD = (
    "method",
    "worst group, test [95 % of the mean]",
    "adjusted average",
    "average",
    "mean of groups",
    "worst group, validation",
    "chosen",
    "passes to the best / in all",
    "seconds a run",
)


def comparison_row(result: Result) -> tuple:
    "The cells of one method."
    worst = over_seeds(result, "worst_group")
    others = ("adjusted_average", "average", "group_mean", "val_worst_group")
    return (
        result.title,
        f"{spread_text(worst)} {interval_text(worst, low=0, high=1)}".rstrip(),
        *(spread_text(over_seeds(result, key)) for key in others),
        settings_name(result.chosen),
        passes_text(result),
        f"{median(trial.seconds for trial in result.trials):.0f}",
    )


def comparison_table(results: dict[str, Result]) -> Table:
    "Accuracies in percent and cost of each method; seconds are the median over seeds."
    return Table(HEAD, tuple(comparison_row(result) for result in results.values()), "lrrrrrlrr")


def passes_text(result: Result) -> str:
    "Passes to the selected epoch and in all, mean over seeds."
    best, end = (over_seeds(result, key).mean for key in ("passes_to_best", "passes"))
    return f"{best:.1f} / {end:.1f}"


def missing_text(task: Task) -> str:
    "What was not run; nothing where everything was."
    return f"Not run: {', '.join(task.missing)}." if task.missing else ""


KEYS = {"worst_group": "worst group", "average": "average", "passes": "passes in all"}


def paired_table(task: Task, base: str = "pde", keys: dict = KEYS) -> Table:
    "What a method is ahead of each other one, in points."
    rows = []
    for name, result in task.results.items():
        if name == base:
            continue
        cells = []
        for key in keys:
            scale = 1 if key == "passes" else 100
            cells.append(signed_text(paired(task[base], result, key), scale=scale))
        rows.append((result.title, *cells, paired(task[base], result).verdict))
    head = (f"{method_title(base)} minus", *keys.values(), "by the worst group")
    return Table(head, tuple(rows))


def choice_table(task: Task) -> Table:
    "What the choice of settings was based on, and what choosing by validation was worth."
    rows = []
    for result in task.results.values():
        chosen, other = [], []
        for attempt in result.tried:
            text = f"{settings_name(attempt.settings)}: {fixed(100 * attempt.val_worst_group)}"
            (chosen if attempt.settings == result.chosen else other).append(text)
        gaps = [f.val_worst_group - f.worst_group for f in seed_figures(result)]
        epochs = np.mean([trial.n_epochs for trial in result.trials])
        cells = (", ".join(chosen), ", ".join(other), signed_text(summary(gaps)), f"{epochs:.0f}")
        rows.append((result.title, *cells))
    head = ("method", "chosen: worst group, validation", "not chosen", "validation minus test")
    return Table((*head, "epochs looked at"), tuple(rows), "lllrr")


# Sentences


def distance_text(one: Result, other: Result, points: float = ONE_POINT) -> str:
    "Whether the first is at most so far below the second: the mean difference, and what its interval says."
    d = paired(one, other)
    where = mean_text(d.mean)
    if d.n == 1:
        return f"in one seed {where}"
    low, high = fixed(100 * d.low, sign="+"), fixed(100 * d.high, sign="+")
    return f"by the mean {where} (95 % interval {low} to {high}): {shown_text(d, points)}"


def mean_text(mean: float) -> str:
    "How far one method is above or below another, in points."
    size = fixed(abs(100 * mean))
    if size == "0.0":
        return "no difference"
    return f"{size} points {'above' if mean > 0 else 'below'}"


def shown_text(d: Difference, points: float) -> str:
    "What an interval says about the claim that a method is at most so far below another."
    if d.low >= -points:
        return "shown"
    return "refuted" if d.high < -points else "neither shown nor refuted"


VERDICTS = {
    "ahead": "is ahead of",
    "behind": "is behind",
    "not told apart": "is not told apart from",
    "one seed": "has one seed in common with",
}


def findings(task: Task, base: str = "pde", key: str = "worst_group", what: str = "worst group") -> list[str]:
    "What the paired differences say, one sentence for each verdict."
    differences = {r.title: paired(task[base], r, key) for name, r in task.results.items() if name != base}
    sentences = []
    for verdict, words in VERDICTS.items():
        others = [f"{title} ({signed_text(d)})" for title, d in differences.items() if d.verdict == verdict]
        if others:
            sentences.append(f"By the {what}, {method_title(base)} {words} {'; '.join(others)}.")
    return sentences


BESIDE = ("pde", "pde_fixed"), ("pde", "pde_fixed_capped"), ("pde_unlimited", "pde_fixed")


def lessons(task: Task) -> list[str]:
    """What came out: paired verdicts, the distance to the schedule set by hand, cost, what the test set
    can tell.
    """
    pde = task["pde"]
    sentences = findings(task) + findings(task, key="average", what="average")
    for one, other in BESIDE:
        if one in task and other in task:
            distance = distance_text(task[one], task[other])
            question = f"Is {task[one].title}, within one point of {task[other].title}?"
            sentences.append(f"{question} {distance[0].upper()}{distance[1:]}.")
    if "pde_fixed" in task:
        auto, by_hand = (over_seeds(task[name], "passes").mean for name in ("pde", "pde_fixed"))
        sentences.append(
            f"Cost: {auto:.1f} passes over the training set, {by_hand:.1f} with the schedule set by hand; "
            f"{end_text(pde)}."
        )
    return [*sentences, noise_text(pde)]


@dataclass(frozen=True)
class Noise:
    "The group of the test set that is the worst most often, and what the draw of its examples alone gives."

    group: str
    n: int
    sd: float  # standard deviation of its accuracy, in [0, 1]


def noise_of_test(result: Result) -> Noise:
    "What another draw of the worst group of the test set would do."
    tests = [trial.splits["test"] for trial in result.trials]
    worst = [counts.worst_index for counts in tests]
    which = max(worst, key=worst.count)
    n, p = int(tests[0].total[which]), float(np.mean([counts.accuracy[which] for counts in tests]))
    return Noise(tests[0].names[which], n, (p * (1 - p) / n) ** 0.5)


def noise_text(result: Result) -> str:
    "The noise of the test set, in words."
    noise = noise_of_test(result)
    if not noise.sd:
        mean = 100 * over_seeds(result, "worst_group").mean
        return (
            f"The worst group of {result.title}, {noise.group!r}, has the accuracy {mean:.0f} % in "
            "every seed: "
            "the mean of groups says more than the worst here."
        )
    return (
        f"The worst group of {result.title} is most often {noise.group!r} with {noise.n:,} test "
        "examples: the "
        f"draw of those examples alone has a standard deviation of {100 * noise.sd:.1f} points, "
        "which no interval "
        "above contains, since all runs share them (in a difference a part of it cancels)."
    )


# Stages of a run, and what expanding gained


@dataclass(frozen=True)
class Stage:
    "A stage of a run; one that gained nothing is stepped back from."

    number: int  # 0: the warm-up
    active: int  # examples
    lr: float
    begin: float  # in passes
    end: float
    epochs: int
    best: float | None  # the best worst group on validation so far, in [0, 1]; None where it gained nothing

    @property
    def gained(self) -> bool:
        return self.best is not None


def stages_of(trial: Trial) -> list[Stage]:
    "The stages of a run in their order. An active set may shrink, where a stage was stepped back from."
    stages, at = [], 0.0
    for (number, lr), entries in groupby(trial.curve, lambda entry: (entry["stage"], entry["lr"])):
        entries = list(entries)
        bests = [entry["val_worst_group_at_most"] for entry in entries if entry["best"]]
        end = entries[-1]["passes"]
        best = bests[-1] if bests else None
        stages.append(Stage(number, entries[0]["active"], lr, at, end, len(entries), best))
        at = end
    return stages


def warm_and_end(trial: Trial) -> tuple[float, float]:
    "The best worst group on validation of the warm-up, and of the whole run."
    bests = [stage.best for stage in stages_of(trial) if stage.gained]
    return bests[0], bests[-1]


def end_text(result: Result) -> str:
    "How many runs ended by themselves, and how many reached their budget of epochs."
    limit, n = result.method["epochs"], len(result.trials)
    cut = sum(limit is not None and trial.n_epochs >= limit for trial in result.trials)
    text = f"{n - cut} of {n} runs ended by themselves"
    return f"{text}, {cut} reached the budget" if cut else text


def gain_text(result: Result) -> str:
    "What expanding came to."
    ends = [warm_and_end(trial) for trial in result.trials]
    warm, end = (summary(column) for column in zip(*ends))
    gain = summary([after - before for before, after in ends])
    expanded = sum(trial.stage > 0 for trial in result.trials)
    return (
        f"{result.title}: in {expanded} of {len(ends)} seeds the selected model is one of the "
        "expansion; worst "
        f"group on validation {spread_text(warm)} at the best of the warm-up, {spread_text(end)} in the end "
        f"({fixed(100 * gain.mean, sign='+')})."
    )


PDES = "pde_fixed", "pde_fixed_capped", "pde", "pde_unlimited", "pde_balanced"


def reasons(task: Task) -> list[str]:
    "What the records say about why: expansion, balance while expanding, where and when each method is worst."
    sentences = [gain_text(task[name]) for name in PDES if name in task]
    sentences += contrasts(task)
    where = {result.title: noise_of_test(result).group for result in task.results.values()}
    for group in dict.fromkeys(where.values()):
        titles = "; ".join(title for title in where if where[title] == group)
        sentences.append(f"Worst group most often {group!r}: {titles}.")
    trained = [r for r in task.results.values() if len(r.trials[0].curve) > 1]  # not a last layer alone
    begins = "; ".join(f"{r.title} {first_active(r):,}" for r in trained)
    sentences.append(f"Examples in the set that training begins with: {begins}.")
    shares = "; ".join(f"{r.title} {100 * share_to_best(r):.0f} %" for r in trained)
    return [*sentences, f"At its best after this share of its run: {shares}."]


def first_active(result: Result) -> int:
    "Examples in the active set of the first epoch."
    return result.trials[0].curve[0]["active"]


def share_to_best(result: Result) -> float:
    "The share of a run after which its best epoch came, mean over seeds."
    return float(np.mean([trial.passes_to_best / trial.passes for trial in result.trials]))


def contrasts(task: Task) -> list[str]:
    "Differences between two methods that have all but one thing in common."
    same_start = (
        "pde" in task and "subsample" in task and first_active(task["pde"]) == first_active(task["subsample"])
    )
    expansion = "Balanced sets of different sizes, with and without expansion"
    if same_start:
        expansion = "The same balanced set with and without expansion"
    sentences = []
    for one, other, what in (
        ("pde", "subsample", expansion),
        ("pde_balanced", "pde", "Balanced rounds while expanding"),
        ("pde_balanced", "resampling", "Balanced rounds on a growing set and on all data at once"),
    ):
        if one in task and other in task:
            d = paired(task[one], task[other])
            pair = f"{task[one].title} minus {task[other].title}"
            sentences.append(f"{what}: {pair} {signed_text(d)} points in the worst group, {d.verdict}.")
    return sentences


def fig_stages(result: Result, seeds: int = 5):
    """Validation's worst group over one run of PDE with its stages (left), and the best so far of several
    seeds (right, without the beginning). Red: a stage that gained nothing, and was stepped back from.
    """
    fig, (left, right) = new_figure(2)
    draw_course(left, result.trials[0])
    shown = result.trials[:seeds]
    for trial in shown:
        draw_bests(right, trial)
    ends = [100 * warm_and_end(trial)[1] for trial in shown]
    left.set(xlabel="passes over the training set", ylabel="worst group, validation, %")
    right.set(xlabel="passes over the training set", ylim=(max(0, min(ends) - 15), max(ends) + 2))
    for ax in (left, right):
        ax.legend(fontsize=7, frameon=False, loc="lower right")
    return fig


def draw_course(ax, trial: Trial):
    "Every epoch of a run, its stages shaded, with the examples of the active set on top."
    exact = [entry for entry in trial.curve if entry["val_worst_group"] is not None]
    bounds = [entry for entry in trial.curve if entry["val_worst_group"] is None]
    for entries, look in (
        (bounds, dict(ms=2, color="#cccccc", label="at most")),
        (exact, dict(ms=3, color="k", label="exact")),
    ):
        values = [100 * entry["val_worst_group_at_most"] for entry in entries]
        ax.plot([entry["passes"] for entry in entries], values, "o", **look)
    for stage in stages_of(trial):
        paint = COLOURS["core"] if stage.gained else COLOURS["spurious"]
        ax.axvspan(stage.begin, stage.end, color=paint, alpha=0.1 if stage.number % 2 else 0.22, lw=0)
        above = dict(xycoords=("data", "axes fraction"), fontsize=6, rotation=60)
        ax.annotate(f"{stage.active:,}", (stage.begin, 1), **above)


def draw_bests(ax, trial: Trial):
    "The best so far over a run, with a mark where a stage began."
    bests = [entry for entry in trial.curve if entry["best"]]
    passes = [entry["passes"] for entry in bests]
    values = [100 * entry["val_worst_group_at_most"] for entry in bests]
    (line,) = ax.step(
        [*passes, trial.passes], [*values, values[-1]], where="post", lw=1, label=f"seed {trial.seed}"
    )
    for stage in stages_of(trial)[1:]:
        so_far = [value for at, value in zip(passes, values) if at <= stage.begin][-1]
        marker, paint = ("o", line.get_color()) if stage.gained else ("x", COLOURS["spurious"])
        ax.plot(stage.begin, so_far, marker, color=paint, ms=4)


# All tasks side by side


def overview_table() -> Table:
    "The worst group of every method on every task; in parentheses the number of seeds where it is not five."
    tasks = [read_task(key) for key in SETTINGS]
    rows = []
    for name, title in METHODS.items():
        rows.append((title, *(overview_cell(task, name) for task in tasks)))
    return Table(("", *SETTINGS.values()), tuple(rows))


def overview_cell(task: Task, name: str) -> str:
    "The worst group of a method on a task."
    if name not in task:
        return "not run"
    result = task[name]
    text = spread_text(over_seeds(result, "worst_group"))
    return text if len(result.trials) == 5 else f"{text} ({len(result.trials)})"


def overview_verdicts() -> str:
    "On how many tasks PDE with the schedule auto is ahead of each other method, in words."
    tasks = [read_task(key) for key in TASKS]
    parts = []
    for name, title in METHODS.items():
        if name == "pde":
            continue
        verdicts = [paired(task["pde"], task[name]).verdict for task in tasks if name in task]
        counts = (str(verdicts.count(verdict)) for verdict in ("ahead", "not told apart", "behind"))
        parts.append(f"{title} {' / '.join(counts)}")
    return (
        f"{METHODS['pde']} against each other method, paired by seed, on how many of these data "
        "sets it is ahead / "
        f"not told apart / behind (95 % intervals, not corrected for their number): {'; '.join(parts)}."
    )


def overview_distances() -> list[str]:
    "Whether the schedule auto is within one point of the one set by hand, task by task."
    sentences = []
    for key, title in SETTINGS.items():
        task = read_task(key)
        sentences.append(f"{title}: {distance_text(task['pde'], task['pde_fixed'])}")
    return sentences
