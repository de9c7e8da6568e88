"""Sentences of the page of all results, worked out from the records; see evidence.py."""

from collections import Counter

import numpy as np
from evidence import (
    COUNTED,
    FOLDER,
    FURTHER,
    LINEAR,
    METHODS,
    TASKS,
    by_worst,
    expanded,
    family,
    noise_of_test,
    verdicts,
    warm_ups,
    whole_task,
)
from evidence_full_size import read_full_size
from evidence_labels import difference, read_all
from evidence_text import joined, number_text

from pde_nb.comparison.paired import paired, points_text
from pde_nb.comparison.trials import Result, read_results, settings_name
from pde_nb.core.tables import fixed, signed_text
from pde_nb.records.seals import read_measurement


def overview_sentences() -> list[str]:
    "What PDE comes to on all tasks."
    warm, runs = warm_ups()
    ahead = [TASKS[key] for key, word in verdicts("subsample").items() if word == "ahead"]
    expanding = (
        "With five seeds it is nowhere ahead of Subsample, so expanding is not shown to add anything "
        "([with more seeds](#more-seeds))."
    )
    if ahead:
        expanding = f"It is ahead of Subsample on {joined(ahead)}."
    return [
        verdicts_text("erm"),
        verdicts_text("subsample"),
        f"**{warm} of {runs} selected models of PDE are its warm-up.** What was measured on these tasks is "
        f"mostly training on a balanced set that is stopped early. {expanding}",
    ]


def verdicts_text(name: str) -> str:
    "The verdicts on PDE and a method in words, and by the means."
    found = verdicts(name)
    counts = Counter(found.values())
    parts = [f"{word} on {number_text(counts[word])}" for word in COUNTED if counts[word]]
    if counts["ahead"]:
        warm = sum(w == "ahead" and not expanded(whole_task(key)["pde"]) for key, w in found.items())
        parts[0] += f" ({number_text(warm)} of them by warm-ups alone)"
    why = Counter({word: n for word, n in counts.items() if word not in COUNTED})
    parts += [f"without a verdict on {number_text(n)} ({word})" for word, n in why.items()]
    return f"**PDE against {METHODS[name]}**, of {number_text(len(found))} tasks: {joined(parts)}."


def rule_text() -> str:
    "When one method is ahead of another."
    noise = noise_of_test(whole_task("sick")["pde"])
    n = len(family("pde", "worst_group"))
    return (
        "**The rule here and on the page of each task.** PDE is *ahead* or *behind* where the "
        "paired difference in the worst group is beyond chance at 5 % after Holm's correction for all "
        f"{n} comparisons of PDE on the five tasks; otherwise the two are *not told apart*. "
        "A verdict stands between equals: five seeds, and for "
        "the one behind at least 0.9 times as many looks at validation in a pass (but for what is fitted "
        "once), else *unequal looks*; LfF, JTT and EIIL are left out where a *single pass* was all they had. "
        f"Intervals are over seeds, none over test rows: the worst group of {TASKS['sick']} has {noise.n} of "
        f"these, which alone makes ± {fixed(100 * noise.sd)} points (one standard deviation)."
    )


# What speaks against PDE, and what holds


def against_sentences() -> list[str]:
    "Where something simpler is as good or better, one by one."
    large = read_full_size()
    lines = [
        f"{large[name].title} minus PDE, Waterbirds at 224 pixels, {number_text(len(large[name].trials))} "
        f"seeds: {points_text(paired(large[name], large['pde']))} points ([there](25_full_size.ipynb))."
        for name in ("dfr", "subsample")
    ]
    for key, title in TASKS.items():
        task = whole_task(key)
        for name, result in task.results.items():
            if name in LINEAR or name not in METHODS | FURTHER:
                lines.append(
                    f"{result.title} minus PDE, {title}: {points_text(paired(result, task['pde']))}."
                )
    return lines


def more_seeds() -> list[str]:
    "PDE beside its simplest rivals with more seeds, with what validation chose."
    lines = []
    for key, title in (("waterbirds_features", TASKS["waterbirds_features"]), ("loans", LOANS)):
        found = read_results(FOLDER / "seeds" / key)
        pde = found.pop("pde")
        parts = [f"{points_text(paired(pde, r))} against {chosen_text(r)}" for r in by_worst(found).values()]
        lines.append(f"{chosen_text(pde)}, {title}, {len(pde.trials)} seeds: {'; '.join(parts)}.")
    return lines


def chosen_text(result: Result) -> str:
    "A method and the settings that validation chose, where it had a choice."
    return f"{result.title} (`{settings_name(result.chosen)}`)" if result.chosen else result.title


LOANS = "`loans.csv`, which is made up"
SETTLED = (
    "The constants of PDE's schedule were settled with earlier results of some of these tasks, test figures "
    "among them ([which](07_auto.ipynb)); the other methods had two learning rates.",
    "The bound of 0.2 on doubtful rows was chosen by test figures of two of the tasks "
    "([labels](19_labels.ipynb#which-rows-the-warm-up-is-drawn-from)).",
    "The bound of 0.9 of a diagnosis was set after a look at the two tasks that it was then tried on "
    "([shift](22_shift.ipynb)).",
    "The probe that predicts groups was changed after looking at first runs of these tasks "
    "([labels](19_labels.ipynb#what-was-changed-between-the-runs)).",
    "`later_rounds=3` was found by test figures, with a check on the task left out "
    "([stopping](21_stopping.ipynb)).",
)


def holds_sentences() -> list[str]:
    "What is strong here."
    found = read_all()
    alone, some, fewest = (labels_text(found, condition) for condition in ("val", "val-300", "val-30"))
    moved = [
        f"{METHODS[name]} {', '.join(moved_by_rate(name))}" for name in ("pde", "subsample", "group_dro")
    ]
    return [
        "**Few labels go a long way.** PDE with groups predicted from the labels of validation alone, minus "
        f"PDE with all labels, in points: {alone}. With 300 labelled rows: {some}; 30 are too few: {fewest} "
        "([what a label is worth](19_labels.ipynb)).",
        "**PDE hardly depends on the learning rate.** Over a factor of thirty it moves the worst group on "
        f"the features, SICK embeddings and Adult by so many points: {'; '.join(moved)} "
        "([settings](23_sensitivity.ipynb#which-setting-matters)).",
        "**Runs repeat.** The same run, made again, has the same weights to the bit "
        "([tested](../08_training/05_trainer.ipynb)), and so has one that was killed at any moment and "
        "resumed ([tested](../08_training/07_loop_tests.ipynb)).",
    ]


def labels_text(found, condition: str) -> str:
    "What PDE loses where the attribute is known on fewer rows, task by task."
    pairs = {TASKS[key]: (of[condition]["pde"], of["full"]["pde"]) for key, of in found.items()}
    losses = {title: difference(*pair) for title, pair in pairs.items()}
    return "; ".join(f"{title} {signed_text(d)}" for title, d in losses.items() if d)


def moved_by_rate(name: str) -> list[str]:
    "Points between the best and the worst learning rate, mean over other settings, by task."
    moved = []
    for task in read_measurement(FOLDER.parent / "sensitivity.json")["tasks"].values():
        grid = task["grids"][name]
        rates = np.array([settings["lr"] for settings in grid["settings"]])
        worst = (np.array(grid["test"]) / grid["test_total"]).min(-1).mean(1)
        means = [worst[rates == rate].mean() for rate in np.unique(rates)]
        moved.append(fixed(100 * np.ptp(means)))
    return moved
