"""Sentences of the pages on our own comparisons, worked out from the records; see evidence.py."""

from evidence import (
    METHODS,
    TASKS,
    Task,
    by_worst,
    expanded,
    first_active,
    method_title,
    noise_of_test,
    read_task,
    stages_of,
)

from pde_nb.comparison.paired import Difference, paired, points_text
from pde_nb.comparison.trials import Result, over_seeds
from pde_nb.core.tables import fixed, percent

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
    pde = task["pde"]
    sentences = [balance_text(task, key), against_text(task, "subsample", key)]
    if "pde_fixed" in task:
        sentences.append(distance_sentence(pde, task["pde_fixed"], key))
    return [*sentences, selection_text(pde)]


def balance_text(task: Task, key: str) -> str:
    "What training on a balanced subset instead of all data is worth."
    plain, balanced = (over_seeds(task[name], key).mean for name in ("erm", "subsample"))
    d = paired(task["subsample"], task["erm"], key)
    ends = f"from {percent(plain)} to {percent(balanced)}"
    if d.verdict == "ahead":
        return f"**Balancing is worth {100 * d.mean:.0f} points**: Subsample lifts the {KEYS[key]} {ends}."
    return f"Subsample moves the {KEYS[key]} {ends}, which five seeds do not tell from no change."


def against_text(task: Task, other: str, key: str) -> str:
    "PDE beside one other method."
    d = paired(task["pde"], task[other], key)
    title = task[other].title
    if d.verdict == "not told apart":
        return f"**PDE is not told apart from {title}** in this budget: {points_text(d)} points."
    return f"**PDE is {d.verdict} {'of ' * (d.verdict == 'ahead')}{title}** by {points_text(d)} points."


def selection_text(pde: Result) -> str:
    "Whether the selected models come from the warm-up or from an expansion."
    n, total = expanded(pde), len(pde.trials)
    if n == 0:
        return "**No selected model is from an expansion**: what is measured here is PDE's warm-up."
    if n == total:
        return "In every seed the selected model is from an expansion."
    return f"In {number_text(n)} of {number_text(total)} seeds the selected model is from an expansion."


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
        others = {name: result for name, result in task.results.items() if name != base}
        verdicts = {r.title: paired(task[base], r, key).verdict for r in by_worst(others, key).values()}
        parts = []
        for verdict, words in VERDICTS.items():
            titles = [title for title in verdicts if verdicts[title] == verdict]
            if titles:
                parts.append(f"{words} {joined(titles)}")
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
    sentences = verdict_sentences(task, keys=keys)
    for one, other in (("pde", "pde_fixed_capped"), ("pde_unlimited", "pde_fixed")):
        if one in task and other in task:
            sentences.append(distance_sentence(task[one], task[other]))
    return [*sentences, cost_sentence(task), noise_text(task["pde"])]


def contrasts(task: Task) -> list[str]:
    "Differences between two methods that have all but one thing in common."
    same = "pde" in task and "subsample" in task
    same = same and first_active(task["pde"]) == first_active(task["subsample"])
    start = "from the same balanced set" if same else "from balanced sets of different sizes"
    sentences = []
    for one, other, what in (
        ("pde", "subsample", f"With and without expanding, {start}"),
        ("pde_balanced", "pde", "With and without balanced rounds while expanding"),
        ("pde_balanced", "resampling", "Balanced rounds on a growing set and on all data at once"),
        ("subsample_whole", "subsample", "With the whole budget and with a part of it"),
        ("pde", "subsample_whole", "Beside the whole budget"),
    ):
        if one in task and other in task:
            d = paired(task[one], task[other])
            pair = f"{task[one].title} minus {task[other].title}"
            sentences.append(f"{what}: *{pair}* is {points_text(d)} points in the worst group, {d.verdict}.")
    return sentences


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


# All tasks side by side


def overview_sentences() -> list[str]:
    "What PDE comes to on all tasks."
    tasks = [read_task(key) for key in TASKS]
    sentences = []
    for other in ("erm", "subsample"):
        differences = [paired(task["pde"], task[other]) for task in tasks]
        ahead = sum(d.verdict == "ahead" for d in differences)
        behind = sum(d.verdict == "behind" for d in differences)
        rest = len(tasks) - ahead - behind
        of = f"{number_text(len(tasks))} tasks"
        text = f"PDE is ahead of {METHODS[other]} on **{number_text(ahead)}** of {of}"
        if rest:
            text += f", and not told apart from it on {number_text(rest)}"
        sentences.append(f"{text}{f', and behind on {number_text(behind)}' if behind else ''}.")
    return sentences


def overview_distances() -> list[str]:
    "How far PDE is from the schedule set by hand, task by task."
    sentences = []
    for key, title in TASKS.items():
        task = read_task(key)
        sentences.append(f"{title}: {distance_text(task['pde'], task['pde_fixed'])}.")
    return sentences
