"""Results and tables of the pages on our own comparisons; the notebooks beside it import this module.

Everything is worked out from the records in results/evidence, so that no sentence outlives its record.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from statistics import median

import numpy as np
from IPython.display import Markdown

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
    settings_name,
)
from pde_nb.core.statistics import holm, summary
from pde_nb.core.tables import DASH, Table, fixed, percent, signed_text, spread_text
from pde_nb.report.page import Listing

FOLDER = Path(__file__).resolve().parents[2] / "results" / "evidence"
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
MODELS = {  # what was trained on each task
    "waterbirds": "MobileNetV2, 128 px",
    "waterbirds_features": "small network",
    "sick": "MiniLM",
    "adult": "small network",
    "coloured_mnist": "small CNN",
}
LINEAR = {  # DFR on the frozen features themselves, with either penalty
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
    **LINEAR,
}
FURTHER_OF = {
    "sick": ("pde_unlimited",),
    "coloured_mnist": ("pde_fixed_capped", "subsample_whole", "subsample_capped"),
    "waterbirds_features": tuple(LINEAR),
}
INSTEAD = {  # task and method → what stands for the method where verdicts are counted
    ("coloured_mnist", "subsample"): "subsample_capped",  # a set as large as the one PDE begins with
    ("waterbirds_features", "dfr"): "dfr_l1",  # a last layer on the features is what DFR is
    ("waterbirds_features", "dfr_tr"): "dfr_tr_l1",
}
SEEDS = 5  # that a verdict needs
ALPHA = 0.05  # of all verdicts together
FEWER = 0.9  # share of the looks at validation that the one behind must have
TWO_STAGES = "lff", "jtt", "eiil"
NO_BREAK = "\N{NO-BREAK SPACE}"
KINDS = "pde", "pde_unlimited", "pde_fixed", "pde_fixed_capped", "pde_balanced"  # of PDE


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
    if key == "waterbirds_features":
        found |= read_results(FOLDER / "linear", [name for name in names if name in LINEAR])
    results = {name: replace(result, title=method_title(name)) for name, result in found.items()}
    missing = tuple(method_title(name) for name in names if name not in found)
    return Task(TASKS[key], results, missing)


@cache
def whole_task(key: str) -> Task:
    "All that was run on a task: the usual methods, those of `FURTHER_OF`, and the simple references."
    task = read_task(key, FURTHER_OF.get(key, ()))
    return replace(task, results=task.results | read_results(FOLDER / "references" / key))


def read_variations(*places: str) -> dict[str, Result]:
    "The results in a folder below results/evidence, each called by its name."
    found = read_results(FOLDER.joinpath(*places))
    return {name: replace(result, title=name) for name, result in found.items()}


def markdown(*parts) -> Markdown:
    "Tables, lists of sentences and paragraphs, one below the other."
    texts = []
    for part in parts:
        if isinstance(part, Table):
            texts.append(unbroken(part).markdown())
        elif isinstance(part, Listing):
            texts.append(part.markdown())
        elif isinstance(part, str):
            texts.append(part)
        else:
            texts.append("\n".join(f"- {sentence}" for sentence in part))
    return Markdown("\n\n".join(text for text in texts if text))


FIGURE = re.compile(r"[-+−–±×%.,()\[\]\d ]+( of [\d.]+)?")


def unbroken(table: Table) -> Table:
    "The table with blanks in figures that no line is broken at."
    rows = [
        tuple(str(c).replace(" ", NO_BREAK) if FIGURE.fullmatch(str(c)) else c for c in row)
        for row in table.rows
    ]
    return replace(table, rows=tuple(rows))


def by_worst(results: dict[str, Result], key: str = "worst_group") -> dict[str, Result]:
    "The results, the best mean first."
    return dict(sorted(results.items(), key=lambda item: -over_seeds(item[1], key).mean))


# Numbers


def passes_text(result: Result) -> str:
    "Passes to the selected epoch and in all, mean over seeds."
    best, end = (over_seeds(result, key).mean for key in ("passes_to_best", "passes"))
    return f"{best:.1f} of {end:.1f}"


def looks(result: Result) -> float:
    "How often a run looked at validation, mean over seeds."
    return float(np.mean([len(trial.curve) for trial in result.trials]))


def looks_per_pass(result: Result) -> float:
    "The same for each pass over the training set."
    return float(np.mean([len(trial.curve) / trial.passes for trial in result.trials]))


def looks_text(result: Result) -> str:
    "How often a run looked at validation, and in parentheses for each pass."
    n = looks(result)
    return f"{n:.0f} ({looks_per_pass(result):.1f})" if n > 1 else "1"


# Verdicts


def verdict(one: Result, other: Result, d: Difference) -> str:
    """Of the first minus the second, p corrected: 'ahead', 'behind' or 'not told apart'; or why there is
    none: 'single pass', fewer seeds than five, or 'unequal looks'."""
    if any(r.method["name"] in TWO_STAGES and looks(r) <= 1 for r in (one, other)):
        return "single pass"
    if d.n < SEEDS:
        return f"{d.n} seeds"
    if not d.p_holm < ALPHA:
        return "not told apart"
    winner, loser = (one, other) if d.mean > 0 else (other, one)
    several = min(looks(winner), looks(loser)) > 1  # a regression is chosen by other means
    if several and looks_per_pass(loser) < FEWER * looks_per_pass(winner):
        return "unequal looks"
    return "ahead" if d.mean > 0 else "behind"


@cache
def family(base: str, key: str) -> dict[tuple[str, str], Difference]:
    "A method minus every other one on every task, by title and name, p corrected for all of them together."
    return corrected([whole_task(task) for task in TASKS], base, key)


def corrected(tasks: list[Task], base: str, key: str) -> dict[tuple[str, str], Difference]:
    "A method minus every other one, by title of the task and name, p corrected by Holm."
    found = {}
    for task in tasks:
        others = [name for name in task.results if name != base] if base in task else []
        found |= {(task.title, name): paired(task[base], task[name], key) for name in others}
    ps = holm([d.p for d in found.values()])
    return {pair: replace(d, p_holm=p) for (pair, d), p in zip(found.items(), ps)}


def difference(task: Task, other: str, base: str = "pde", key: str = "worst_group") -> Difference:
    "One of the family of its base; of a task that is on no record, of those within the task."
    known = task.title in TASKS.values()
    found = family(base, key) if known else corrected([task], base, key)
    return found[task.title, other]


def verdict_on(task: Task, other: str, base: str = "pde", key: str = "worst_group") -> str:
    "The verdict on a method and another one of a task."
    return verdict(task[base], task[other], difference(task, other, base, key))


def verdicts(name: str) -> dict[str, str]:
    "The verdict on PDE and a method, by task that it ran on; see `INSTEAD`."
    found = {}
    for key in TASKS:
        task, other = whole_task(key), INSTEAD.get((key, name), name)
        if other in task:
            found[key] = verdict_on(task, other)
        elif name in task:
            found[key] = "not run"
    return found


# Tables of a task


def differences_table(task: Task, base: str = "pde", keys: dict | None = None) -> Table:
    "What a method is ahead of each other one, in points, in the order of the accuracies."
    keys = keys or {"worst_group": "worst group", "average": "average"}
    first = next(iter(keys))
    rows = []
    for name, result in by_worst(task.results, first).items():
        if name != base:
            cells = [points_text(paired(task[base], result, key)) for key in keys]
            d = difference(task, name, base, first)
            rows.append((result.title, *cells, p_text(d), verdict(task[base], result, d)))
    head = (f"{method_title(base)} minus", *keys.values(), "p (Holm)", f"by the {keys[first]}")
    return Table(head, tuple(rows), "l" + "r" * (len(keys) + 1) + "l")


def cost_table(results: dict[str, Result]) -> Table:
    "What each run cost, and what choosing the learning rate on validation was based on."
    rows = []
    for result in results.values():
        chosen, other = [], []
        for attempt in result.tried:
            text = f"{settings_name(attempt.settings)}: {fixed(100 * attempt.val_worst_group)}"
            (chosen if attempt.settings == result.chosen else other).append(text)
        gaps = [f.val_worst_group - f.worst_group for f in seed_figures(result)]
        seconds = f"{median(trial.seconds for trial in result.trials):.0f}"
        cells = ", ".join(chosen), ", ".join(other), signed_text(summary(gaps))
        rows.append((result.title, passes_text(result), looks_text(result), seconds, *cells))
    head = (
        "method",
        "best after, passes",
        "looks at validation (a pass)",
        "seconds",
        "chosen: validation",
        "not chosen",
        "validation − test",
    )
    return Table(head, tuple(rows), "lrrrllr")


def setting_text(settings: dict) -> str:
    "A few settings as code that may be broken between two of them."
    return ", ".join(f"`{name}={value}`" for name, value in settings.items()) or "as it is"


# Where a run is worst, and when it is best


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


def first_active(result: Result) -> int:
    "Examples in the active set of the first epoch."
    return result.trials[0].curve[0]["active"]


def share_to_best(result: Result) -> float:
    "The share of a run after which its best epoch came, mean over seeds."
    return float(np.mean([trial.passes_to_best / trial.passes for trial in result.trials]))


def course_table(task: Task) -> Table:
    "With what training begins, when it is at its best, and which group is the worst in most seeds."
    rows = []
    for result in task.results.values():
        begins, best = DASH, DASH
        if len(result.trials[0].curve) > 1:  # not a last layer alone, or a single pass
            begins, best = f"{first_active(result):,}", percent(share_to_best(result), 0)
        rows.append((result.title, begins, best, noise_of_test(result).group))
    head = ("method", "begins with, examples", "best after, share of the run", "worst group, most seeds")
    return Table(head, tuple(rows), "lrrl")


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


def expanded(result: Result) -> int:
    "In how many seeds the selected model is one of an expansion."
    return sum(trial.stage > 0 for trial in result.trials)


def expansion_table(task: Task) -> Table:
    "What expanding came to on validation, for each kind of PDE."
    rows = []
    for name in KINDS:
        if name in task:
            result = task[name]
            ends = [warm_and_end(trial) for trial in result.trials]
            warm, end = (spread_text(summary(column)) for column in zip(*ends))
            selected = f"{expanded(result)} of {len(ends)}"
            rows.append((result.title, selected, warm, end))
    head = ("", "seeds that keep a model of an expansion", "best of the warm-up", "in the end")
    return Table(head, tuple(rows))


def decline_table(task: Task) -> Table:
    "How far the worst group on validation falls from its best epoch to the last one, mean over seeds."
    rows = []
    for result in task.results.values():
        if looks(result) <= 1:
            continue
        courses = [trial.curve for trial in result.trials]
        last = np.mean([course[-1]["val_worst_group_at_most"] for course in courses])
        best = np.mean([max(e["val_worst_group_at_most"] for e in c if e["best"]) for c in courses])
        rows.append((result.title, percent(best, mark=""), percent(last, mark="")))
    return Table(("method", "best epoch", "last epoch, at most"), tuple(rows))


# All tasks side by side


def models_text() -> str:
    "What was trained on each task."
    return f"Models: {'; '.join(f'{title}, {MODELS[key]}' for key, title in TASKS.items())}."


def overview_cell(task: Task, name: str) -> str:
    "The worst group of a method on a task; a dash where it was not run."
    if name not in task:
        return DASH
    result = task[name]
    text = spread_text(over_seeds(result, "worst_group"))
    return text if len(result.trials) == SEEDS else f"{text} ({len(result.trials)})"


COUNTED = "ahead", "not told apart", "behind"


def verdicts_table() -> Table:
    "On how many tasks PDE is ahead of each other method, not told apart from it, behind it, or not judged."
    rows = []
    for name, title in METHODS.items():
        if name != "pde":
            found = verdicts(name)
            counts = Counter(found.values())
            cells = [counts[word] or DASH for word in COUNTED]
            others = [f"{TASKS[key]} ({word})" for key, word in found.items() if word not in COUNTED]
            rows.append((title, *cells, ", ".join(others) or DASH))
    return Table(("PDE against", *COUNTED, "not counted"), tuple(rows), "lrrrl")


def warm_ups() -> tuple[int, int]:
    "How many of PDE's selected models on all tasks are of its warm-up, and how many there are."
    runs = [whole_task(key)["pde"] for key in TASKS]
    total = sum(len(result.trials) for result in runs)
    return total - sum(expanded(result) for result in runs), total
