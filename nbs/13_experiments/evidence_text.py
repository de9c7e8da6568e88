"""Sentences of the pages on our own comparisons, worked out from the records; see evidence.py."""

from evidence import (
    COUNTED,
    INSTEAD,
    LINEAR,
    TASKS,
    Task,
    by_worst,
    difference,
    expanded,
    looks,
    method_title,
    noise_of_test,
    stages_of,
    verdict_on,
)

from pde_nb.comparison.trials import Difference, Result, over_seeds, paired, points_text
from pde_nb.core.tables import PAPER, fixed, percent

ONE_POINT = 0.01
NUMBERS = "none", "one", "two", "three", "four", "five", "six"
KEYS = {"worst_group": "worst group", "average": "average", "group_mean": "mean of groups"}


def joined(names) -> str:
    "Names in words: a, b and c."
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def number_text(n: int) -> str:
    "A small number in words."
    return NUMBERS[n] if n < len(NUMBERS) else str(n)


def missing_text(task: Task) -> str:
    "What was not run; nothing where everything was."
    return f"Not run: {joined(task.missing)}." if task.missing else ""


# What came out


def finding(task: Task, key: str = "worst_group") -> list[str]:
    "What a page comes to, in three or four sentences."
    others = [rival(task, "subsample"), "pde_fixed"]
    return [
        balance_text(task, key),
        *(against_text(task, other, key) for other in others if other in task),
        selection_text(task["pde"]),
    ]


def rival(task: Task, name: str) -> str:
    "The record that stands for a method on a task; see `INSTEAD`."
    keys = {title: key for key, title in TASKS.items()}
    return INSTEAD.get((keys.get(task.title), name), name)


def balance_text(task: Task, key: str) -> str:
    "What training on a balanced subset instead of all data is worth, and how often each was looked at."
    plain, balanced = (over_seeds(task[name], key).mean for name in ("erm", "subsample"))
    d = paired(task["subsample"], task["erm"], key)
    n = [f"{looks(task[name]):.0f}" for name in ("subsample", "erm")]
    return (
        f"**Subsample** has {percent(balanced)} by the {KEYS[key]}, ERM {percent(plain)}: {points_text(d)} "
        f"points, with {n[0]} looks at validation against {n[1]}."
    )


def against_text(task: Task, other: str, key: str) -> str:
    "PDE beside one other method."
    d, title = difference(task, other, key=key), task[other].title
    word = verdict_on(task, other, key=key)
    if word not in COUNTED:
        return f"**PDE minus {title}** is {points_text(d)} points, not counted: {word}."
    return f"**PDE {VERDICTS[word]} {title}**: {points_text(d)} points."


def selection_text(pde: Result) -> str:
    "Whether the selected models come from the warm-up or from an expansion."
    n, total = expanded(pde), len(pde.trials)
    if n == total:
        return "In every seed the selected model is from an expansion."
    where = "every seed" if n == 0 else f"{number_text(total - n)} of {number_text(total)} seeds"
    return (
        f"**In {where} the selected model is PDE's warm-up**, which is training on a balanced set that is "
        "stopped early."
    )


def distance_sentence(one: Result, other: Result, key: str = "worst_group") -> str:
    "How far one method is from another, and whether a loss of more than a point can be ruled out."
    return f"{one.title} is {distance_text(one, other, key)}."


def distance_text(one: Result, other: Result, key: str = "worst_group") -> str:
    "How far the first is above or below the second, and what the interval says about a loss of one point."
    d = paired(one, other, key)
    where = f"{level_text(d.mean)} {other.title}"
    if d.n == 1:
        return f"{where} in one seed"
    low, high = (fixed(100 * end, sign="+") for end in (max(d.low, -1.0), min(d.high, 1.0)))
    return f"{where} (95 % interval {low} to {high}): {LOSSES[loss_verdict(d)]}"


def level_text(mean: float) -> str:
    "How far one method is above or below another, in points."
    size = fixed(abs(100 * mean))
    if size == "0.0":
        return "level with"
    return f"{size} points {'above' if mean > 0 else 'below'}"


LOSSES = {
    "yes": "a loss of more than one point is ruled out",
    "open": "whether it loses a point stays open",
    "no": "it loses more than one point",
}


def loss_verdict(d: Difference, points: float = ONE_POINT) -> str:
    "Whether an interval says that at most so many points are lost: yes, no or open."
    if d.low >= -points:
        return "yes"
    return "no" if d.high < -points else "open"


VERDICTS = {"ahead": "is ahead of", "not told apart": "is not told apart from", "behind": "is behind"}


def verdict_sentences(task: Task, base: str = "pde", keys=("worst_group", "average")) -> list[str]:
    "Whom a method is ahead of, a sentence for each figure."
    sentences = []
    for key in keys:
        others = by_worst({name: r for name, r in task.results.items() if name != base}, key)
        found = {result.title: verdict_on(task, name, base, key) for name, result in others.items()}
        parts = []
        for word, words in VERDICTS.items():
            titles = [title for title in found if found[title] == word]
            if titles:
                parts.append(f"{words} {joined(titles)}")
        rest = [f"{title} ({word})" for title, word in found.items() if word not in COUNTED]
        parts += [f"is not counted against {joined(rest)}"] if rest else []
        sentences.append(f"By the {KEYS[key]}, {method_title(base)} {'; it '.join(parts)}.")
    return sentences


def cost_sentence(task: Task) -> str:
    "What PDE cost beside its schedule set by hand, and what ended its runs."
    auto = over_seeds(task["pde"], "passes").mean
    text = f"PDE showed the training set {auto:.1f} times over. {end_text(task['pde'])}"
    if "pde_fixed" in task:
        fixed_one = over_seeds(task["pde_fixed"], "passes").mean
        text += f" The schedule set by hand ends when it ends, here after {fixed_one:.1f} passes."
    return text


def runs_ended(result: Result) -> tuple[int, int]:
    "How many runs ended by themselves, and how many there were."
    limit, n = result.method["epochs"], len(result.trials)
    cut = sum(limit is not None and trial.n_epochs >= limit for trial in result.trials)
    return n - cut, n


def end_text(result: Result) -> str:
    "How many runs ended by themselves, and how many used up their budget."
    ended, n = runs_ended(result)
    if ended == 0:
        return "Every run used up its budget."
    if ended == n:
        return "Every run ended by itself."
    return f"{ended} of {n} runs ended by themselves, the others used up their budget."


def noise_text(result: Result) -> str:
    "The noise of the test set, in words."
    noise = noise_of_test(result)
    mean = over_seeds(result, "worst_group").mean
    if not noise.sd:
        return (
            f"The worst group of {result.title}, `{noise.group}`, is at {percent(mean, 0)} in every seed: "
            "the mean of groups says more here."
        )
    return (
        f"All seeds share one test set. The worst group of {result.title} is usually `{noise.group}`, with "
        f"{noise.n:,} examples; another draw of these would move its accuracy by {100 * noise.sd:.1f} points "
        "(one standard deviation), which no interval on this page contains."
    )


def lessons(task: Task, keys=("worst_group", "average")) -> list[str]:
    "What the tables say: whom PDE is ahead of, what it cost, what the test set can tell."
    return [*verdict_sentences(task, keys=keys), cost_sentence(task), noise_text(task["pde"])]


def contrasts(task: Task) -> list[str]:
    "Differences between two methods that have all but one thing in common."
    sentences = []
    for one, other, what in (
        ("pde", rival(task, "subsample"), "With and without expanding, from the same balanced set"),
        ("pde_balanced", "pde", "With and without balanced rounds while expanding"),
        ("pde_balanced", "resampling", "Balanced rounds on a growing set and on all data at once"),
        ("subsample_whole", "subsample", "With the whole budget and with a part of it"),
        ("subsample_capped", "subsample_whole", "With and without up to sixteen rows of a group"),
    ):
        if one in task and other in task:
            points = points_text(paired(task[one], task[other]))
            pair = f"{task[one].title} minus {task[other].title}"
            sentences.append(f"{what}: *{pair}* is {points} points in the worst group.")
    return sentences


def features_sentences(task: Task) -> list[str]:
    "DFR on frozen features beside DFR on the embedding of a network, and whether it agrees with the paper."
    if not set(LINEAR) <= task.results.keys():
        return ["DFR on the features themselves: not run."]
    worst = {name: over_seeds(result, "worst_group").mean for name, result in task.results.items()}
    lines = []
    for name in "dfr", "dfr_tr":
        a, b, c = (fixed(100 * worst[one]) for one in (name, f"{name}_l1", f"{name}_l2"))
        lines.append(
            f"**{task[name].title}** has {a} % on the network's embedding, {b} % (L1, as in its paper) "
            f"and {c} % (L2) on the features themselves."
        )
    printed = PAPER["tab:baselines"]["waterbirds"]
    ours = worst["dfr_l1"] > worst["pde"]
    theirs = printed["DFR (Val)"]["worst_group"] > printed["PDE"]["worst_group"]
    word = "above" if ours else "below"
    lines.append(
        f"On the features themselves DFR-Val (L1) is {word} PDE by the mean, "
        f"{'as' if ours == theirs else 'other than'} in the paper."
    )
    return lines


# Captions


def stages_caption(result: Result) -> str:
    "What the picture of stages shows, and the sizes of the active set of the first seed."
    sizes = [f"{stage.active:,}" for stage in stages_of(result.trials[0])]
    course = f"never grew beyond {sizes[0]} examples"
    if len(sizes) > 1:
        course = f"went {' → '.join(sizes)} examples"
    return (
        "*Left, the first seed: the worst group on validation after every epoch. Where evaluation stopped "
        "early because the epoch could not be the best, only a bound is known. A grey stage gained nothing "
        f"and was stepped back from; the active set {course}. Right, every seed: the best so far, the "
        "first seed in green. A dot is an expansion that gained, a cross one that did not.*"
    )
