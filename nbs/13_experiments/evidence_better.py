"""Tables, sentences and the picture of the page on changes of PDE; see evidence.py.

The records are those of tools/better.py of revision 82d7c948, one for each contender, task and part of
the protocol.
"""

from dataclasses import dataclass, replace

import numpy as np
from evidence import FOLDER, TASKS
from evidence_pictures import fig_fitted, summary_row, within_range
from evidence_text import joined, number_text

from pde_nb.comparison.paired import Difference, paired, points_text
from pde_nb.comparison.trials import Result, accuracy_by_group, over_seeds, read_results
from pde_nb.core.statistics import holm
from pde_nb.core.tables import DASH, Table, fixed, spread_text

BETTER = FOLDER.parent / "better"
DEVELOPED = "waterbirds_features", "adult"
KNOWN = {"pde": "PDE", "pde_balanced": "PDE balanced", "subsample": "Subsample", "group_dro": "GroupDRO"}
TRIED = {  # candidate → its record and those of its variants: name → how the page calls it
    "draws": {
        "draws_3": "3 draws",
        "draws_5": "5 draws",
        "draws_3_anew": "3 draws, momentum always anew",
        "draws_5_anew": "5 draws, momentum always anew",
        "draws_3_all": "3 draws, all averaged",
        "draws_5_all": "5 draws, all averaged",
        "draws_3_momentum": "3 draws, all averaged, momentum too",
        "draws_5_momentum": "5 draws, all averaged, momentum too",
    },
    "average": {
        "average": "average of 5 rounds",
        "average_2": "average of 2 rounds",
        "average_15": "average of 15 rounds",
        "average_on": "average of 5 rounds, goes on from it",
    },
    "balanced": {"balanced": "balanced rounds"},
    "group_dro": {
        "expansion_dro": "expansion with GroupDRO",
        "expansion_dro_10": "the same, weights ten times as fast",
        "expansion_dro_all": "the same, rounds not balanced",
    },
    "redraw": {"redraw": "rows drawn anew per stage"},
    "refit": {
        "refit": "last layer again",
        "refit_10": "last layer again, ten sets",
        "refit_checked": "last layer again if better on validation",
    },
    "body_lr": {"body_lr": "body at 0.1 of the rate", "body_lr_3": "body at 0.3 of the rate"},
}
JOINS: dict[str, str] = {}  # record of a join → how the page calls it
GAIN, BEHIND = 0.01, 0.01  # of rule 6


@dataclass(frozen=True)
class Part:
    "The records of one part of the protocol."

    results: dict[str, dict[str, Result]]  # task → name of the record → result

    def __getitem__(self, task: str) -> dict[str, Result]:
        return self.results[task]

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.results)

    def complete(self, name: str) -> bool:
        "Whether a contender was run on all tasks with all seeds of PDE."
        seeds = [[t.seed for t in r[name].trials] if name in r else None for r in self.results.values()]
        return seeds == [[t.seed for t in r["pde"].trials] for r in self.results.values()]


def read_part(part: str, tasks=DEVELOPED) -> Part:
    "The records of a part; titles are given where they are shown."
    return Part({task: read_results(BETTER / part / task) for task in tasks})


def title(name: str) -> str:
    "How the page calls a record."
    for names in (KNOWN, JOINS, *TRIED.values()):
        if name in names:
            return names[name]
    return name


# Differences to PDE


def gains(part: Part, name: str, base: str = "pde") -> dict[str, Difference]:
    "What a contender gains over PDE, or another one, on each task; p is corrected over the tasks."
    found = {task: paired(part[task][name], part[task][base]) for task in part.tasks}
    corrected = holm([d.p for d in found.values()])
    return {task: replace(d, p_holm=p) for (task, d), p in zip(found.items(), corrected)}


def mean_gain(part: Part, name: str, base: str = "pde") -> float:
    "The mean over the tasks of what a contender gains; in [-1, 1]."
    found = gains(part, name, base)
    return sum(d.mean for d in found.values()) / len(found)


def stays(part: Part, name: str) -> bool:
    "Rule 6: at least one point gained on the mean of the tasks, nowhere more than one behind."
    lowest = min(d.mean for d in gains(part, name).values())
    return round(mean_gain(part, name), 9) >= GAIN and round(lowest, 9) >= -BEHIND


def tried_names(part: Part) -> list[str]:
    "All records of candidates and their variants that are complete."
    return [name for names in TRIED.values() for name in names if part.complete(name)]


def best_variant(part: Part, candidate: str) -> str:
    "The record of a candidate, or of its variant, that gains most on the mean."
    return max(
        (name for name in TRIED[candidate] if part.complete(name)), key=lambda name: mean_gain(part, name)
    )


# Tables


def task_table(part: Part, task: str) -> Table:
    "Every contender on one task, with what it gains over PDE; the most gained first."
    results = part[task]
    found = {name: paired(result, results["pde"]) for name, result in results.items() if name != "pde"}
    rows = [(title("pde"), *figure_cells(results["pde"]), "", "")]
    for name in sorted(found, key=lambda name: -found[name].mean):
        p = fixed(gains(part, name)[task].p_holm, 2) if part.complete(name) else DASH
        rows.append((title(name), *figure_cells(results[name]), points_text(found[name]), p))
    head = (TASKS[task], "worst group", "on validation", "rate", "passes", "minus PDE", "p (Holm)")
    return Table(head, tuple(rows))


def figure_cells(result: Result) -> tuple[str, ...]:
    "Worst group on test and on validation, the rate that was chosen, and passes to the best and in all."
    worst, val = (spread_text(over_seeds(result, key)) for key in ("worst_group", "val_worst_group"))
    best, end = (over_seeds(result, key).mean for key in ("passes_to_best", "passes"))
    return worst, val, f"{result.chosen['lr']:g}", f"{best:.1f} of {end:.1f}"


def decision_table(part: Part) -> Table:
    "Rule 6 for each candidate and variant."
    rows = []
    for candidate, names in TRIED.items():
        for name in names:
            if part.complete(name):
                cells = [fixed(100 * d.mean, sign="+") for d in gains(part, name).values()]
                mean = fixed(100 * mean_gain(part, name), 2, sign="+")
                rows.append((candidate, title(name), *cells, mean, "yes" if stays(part, name) else "no"))
    head = ("candidate", "tried", *(TASKS[task] for task in part.tasks), "mean", "stays?")
    return Table(head, tuple(rows), "ll" + "r" * (len(part.tasks) + 1) + "l")


def groups_table(part: Part, task: str, names) -> Table:
    "The test accuracy of every group, in percent, mean over seeds."
    first = part[task]["pde"].trials[0].splits["test"]
    rows = [(title(n), *(fixed(100 * a) for a in accuracy_by_group(part[task][n]))) for n in names]
    return Table((TASKS[task], *first.names), tuple(rows))


# Sentences


def tried_candidates(part: Part) -> list[str]:
    "The candidates of which some form is complete."
    return [c for c, names in TRIED.items() if any(part.complete(name) for name in names)]


def tried_sentence(part: Part) -> str:
    "How much was tried."
    n = len(tried_names(part))
    return (
        f"{number_text(len(tried_candidates(part))).capitalize()} candidates were run on both tasks, in "
        f"{n} forms. With so many, the best figure among them flatters itself."
    )


def not_run_text(part: Part) -> str:
    "Which forms were run on one task alone, and which were written and not run."
    partly, never = [], []
    for name in (name for names in TRIED.values() for name in names):
        there = [TASKS[task] for task in part.tasks if name in part[task]]
        if there and not part.complete(name):
            partly.append(f"{title(name)} ({joined(there)})")
        if not there:
            never.append(title(name))
    texts = []
    if partly:
        texts.append(f"Run on one task alone, and so not judged: {joined(partly)}.")
    if never:
        texts.append(f"Written and not run: {'; '.join(never)}.")
    return " ".join(texts)


def open_text(part: Part) -> str:
    "The candidates of which no form is complete, and what they would have to gain where they were not run."
    parts = []
    for candidate in TRIED:
        if candidate in tried_candidates(part):
            continue
        for name in TRIED[candidate]:
            for task in part.tasks:
                if name in part[task]:
                    d = paired(part[task][name], part[task]["pde"])
                    needed = 100 * (GAIN * len(part.tasks) - d.mean)
                    parts.append(
                        f"{title(name)} has {points_text(d)} on {TASKS[task]}, and would need "
                        f"{fixed(needed, sign='+')} on the other task to stay"
                    )
    return f"**Open, since it was run on one task alone:** {'; '.join(parts)}." if parts else ""


def kept_candidates(part: Part) -> list[str]:
    "The candidates that stay, by their best form."
    return [c for c in tried_candidates(part) if stays(part, best_variant(part, c))]


def mean_text(part: Part, name: str) -> str:
    "The mean gain of a contender over PDE, in points."
    return fixed(100 * mean_gain(part, name), 2, sign="+")


def outcome_sentences(part: Part) -> list[str]:
    "What the development came to."
    best = max(tried_names(part), key=lambda name: mean_gain(part, name))
    kept = kept_candidates(part)
    sentences = []
    if kept:
        sentences.append(f"**{joined([f'`{c}`' for c in kept])} stay{'s' * (len(kept) == 1)}** by rule 6.")
    else:
        sentences.append(
            f"**No candidate that was run on both tasks earns its place.** The best form, {title(best)}, "
            f"gains {mean_text(part, best)} points on the mean, and at least {100 * GAIN:.0f} was "
            f"asked for. So none of these stays (rule 6){then_text(part)}"
        )
    if open_text(part):
        sentences.append(open_text(part))
    ahead, behind = (told_apart(part, verdict) for verdict in ("ahead", "behind"))
    n = len(tried_names(part)) * len(part.tasks)
    sentences.append(
        f"Told apart from PDE after Holm's correction over all {n} differences of candidates: "
        f"ahead {ahead}; behind {behind}."
    )
    return sentences


def limits_text(part: Part) -> str:
    "What the protocol could not have found, whatever the runs came to."
    wide = [(d.high - d.low) / 2 for name in tried_names(part) for d in gains(part, name).values()]
    lost = points_text(gains(part, "refit")["waterbirds_features"])
    return (
        f"With five seeds half the width of an interval is {100 * float(np.median(wide)):.1f} points on the "
        "median, and rules 6 to 8 ask for one, a half and two: a gain of that size on one task may be there "
        "and not be seen, and one that is seen may be chance. `refit` fits the last layer on the very rows "
        f"that the body was trained on, so its {lost} on Waterbirds features says nothing about refitting on "
        "rows held out. Of whole runs neither weights nor outputs were averaged: `draws` and `average` "
        "average weights within one run, so what an ensemble is worth is open."
    )


def then_text(part: Part) -> str:
    "What follows where nothing stays."
    if open_text(part):
        return "; whether there is anything to join and to confirm (rule 7) waits for what is open."
    return ", nothing is joined (rule 7), there is no new setting to confirm, and PDE stays as it is."


def told_apart(part: Part, verdict: str) -> str:
    "The candidates and tasks on one side of zero, after the correction for all of them together."
    each = {(name, task): d for name in tried_names(part) for task, d in gains(part, name).items()}
    corrected = holm([d.p for d in each.values()])
    found = [
        f"{title(name)} on {TASKS[task]} ({points_text(d)})"
        for ((name, task), d), p in zip(each.items(), corrected)
        if p < 0.05 and d.verdict == verdict
    ]
    return "; ".join(found) or "none"


def decision_sentences(part: Part) -> list[str]:
    "What rule 6 says of the best form of each candidate."
    sentences = []
    for candidate in tried_candidates(part):
        name = best_variant(part, candidate)
        each = [f"{points_text(d)} on {TASKS[task]}" for task, d in gains(part, name).items()]
        verdict = "stays" if stays(part, name) else "does not stay"
        sentences.append(
            f"`{candidate}` {verdict}: {title(name)} is {mean_text(part, name)} on the mean ({joined(each)})."
        )
    return sentences


def reason_sentences(part: Part) -> list[str]:
    "What the records say about where PDE loses, and what a candidate would have to change."
    sentences = []
    for task in part.tasks:
        pde = part[task]["pde"]
        val, test = (over_seeds(pde, key).mean for key in ("val_worst_group", "worst_group"))
        groups = 100 * accuracy_by_group(pde)
        warm = sum(trial.stage == 0 for trial in pde.trials)
        passes = over_seeds(pde, "passes").mean
        sentences.append(
            f"{TASKS[task]}: the groups lie between {groups.min():.1f} and {groups.max():.1f} %; the worst "
            f"group has {100 * val:.1f} % on validation and {100 * test:.1f} % on test; the chosen model is "
            f"of the warm-up in {warm} of {len(pde.trials)} runs; {passes:.1f} of 20 passes were used."
        )
    return sentences


def flattery_table(part: Part, task: str) -> Table:
    "What validation promised and what test shows, and how often validation was asked; most promised first."
    names = sorted(part[task], key=lambda name: -promised(part[task][name]))
    rows = []
    for name in names:
        result = part[task][name]
        val, test = (over_seeds(result, key) for key in ("val_worst_group", "worst_group"))
        asked = np.mean([trial.n_epochs for trial in result.trials])
        warm = sum(trial.stage == 0 for trial in result.trials)
        promise = fixed(100 * promised(result), sign="+")
        figures = (fixed(100 * val.mean), fixed(100 * test.mean), promise, fixed(100 * test.sd))
        rows.append((title(name), *figures, f"{asked:.0f}", f"{warm} of {len(result.trials)}"))
    head = ("validation", "test", "validation minus test", "sd over seeds", "rounds", "of the warm-up")
    return Table((TASKS[task], *head), tuple(rows))


def promised(result: Result) -> float:
    "By how much the worst group on validation is above that on test, mean over seeds."
    return over_seeds(result, "val_worst_group").mean - over_seeds(result, "worst_group").mean


def orientation_text(part: Part) -> str:
    "Subsample and GroupDRO in the results, where they were not run with the seeds of development."
    parts = []
    for task in part.tasks:
        known = read_results(FOLDER / task, ("pde", "subsample", "group_dro"))
        absent = [name for name in ("subsample", "group_dro") if name not in part[task]]
        if absent:
            figures = [f"{title(n)} {fixed(100 * over_seeds(known[n], 'worst_group').mean)}" for n in absent]
            own = fixed(100 * over_seeds(known["pde"], "worst_group").mean)
            parts.append(f"{TASKS[task]}: {joined(figures)}, and PDE {own}")
    if not parts:
        return ""
    return f"For orientation, with seeds 0 to 4 in [the results](00_results.ipynb): {'; '.join(parts)} %."


def revisions_text(part: Part) -> str:
    "The states of the source that the runs came from."
    found = {r.surroundings["revision"] or "–" for results in part.results.values() for r in results.values()}
    return f"Revisions of the runs: {', '.join(sorted(found))}."


# The picture


def fig_gains(part: Part, names):
    "What each contender gains over PDE, a panel per task."
    panels = {}
    for task in part.tasks:
        ds = {name: within_range(gains(part, name)[task]) for name in names}
        panels[TASKS[task]] = [summary_row(title(name), d, name in JOINS) for name, d in ds.items()]
    return fig_fitted(panels, ["points, minus PDE"] * len(panels), range(len(panels)), order=False)
