"""Sentences and pictures of the page on a shift within the smallest group; see evidence_shift.py."""

import math
from statistics import mean

import numpy as np
from evidence import METHODS
from evidence_shift import (
    HELP,
    ORDER,
    OTHERS,
    SETTINGS,
    SHOWN,
    answered,
    complete,
    difference,
    figure_of,
    firm_gains,
    gains,
    protection,
    values,
)
from evidence_text import joined
from shifted_world import shifted_world

from pde_nb.core.statistics import Summary, summary
from pde_nb.core.style import COLOURS, SMALL, new_figure
from pde_nb.core.tables import fixed, signed_text

# Sentences


def shift_cost(record: dict, task: str, name: str, what: str = "worst") -> Summary | None:
    "What one kind costs beside a fair part of the same size, paired by seed."
    return difference(*(values(record["runs"][task, c, name], what) for c in ("kind", "fair")))


def fewer_cost(record: dict, task: str, name: str) -> Summary | None:
    "What a fair part costs beside all rows, paired by seed."
    return difference(values(record["runs"][task, "fair", name]), complete(task, name)["worst"])


def points(found: Summary) -> str:
    "A difference in points with its interval and its seeds."
    return f"{signed_text(found)} points ({found.n} seed{'s' * (found.n > 1)})"


def collapse_text(record: dict) -> str:
    "What the shift costs PDE, where validation has it too and where it is fair."
    both, fair = [], []
    for task, title in SHOWN.items():
        before = values(record["runs"][task, "fair", "pde"])
        lost = difference(values(record["help"][task, "kind", "validationbiased"]), before)
        both.append(f"{title} {points(lost)}")
        fair.append(f"{title} {points(shift_cost(record, task, 'pde'))}")
    return (
        f"**Does PDE collapse?** Where validation is as biased as training, the shift costs: "
        f"{'; '.join(both)}. With a fair validation: {'; '.join(fair)}."
    )


def rows_text(record: dict) -> str:
    "Whether fewer rows or the shift cost more, in PDE."
    parts = []
    for task, title in SHOWN.items():
        fewer, shift = fewer_cost(record, task, "pde"), shift_cost(record, task, "pde")
        more = "fewer rows cost more" if fewer.mean < shift.mean else "the shift costs more"
        more += " by the mean"
        if fewer.high > 0 and shift.high > 0:
            more = "neither cost is told apart from zero"
        parts.append(
            f"on {title} {more}: {signed_text(fewer)} for fewer rows, {signed_text(shift)} for the shift"
        )
    return f"**Fewer rows or the shift?** For PDE, {'; '.join(parts)}."


COMPARED = "group_dro", "subsample", "dfr"


def others_text(record: dict) -> str:
    "What the shift costs the left-out kind with PDE, minus what it costs it with other methods."
    found = {}
    for task, title in SHOWN.items():
        conditions = (record["runs"], task, "kind"), (record["runs"], task, "fair")
        found |= {(title, m): cost_difference(conditions, m) for m in COMPARED}
    world = (record["synthetic"], "world", "1"), (record["synthetic"], "world", "0")
    found |= {("the small world", m): cost_difference(world, m) for m in COMPARED}
    parts = {}
    for (title, m), d in found.items():
        if d is not None:
            parts.setdefault(title, []).append(f"{METHODS[m]} {points(d)}")
    said = "; ".join(f"{title}: {', '.join(texts)}" for title, texts in parts.items())
    apart = [f"{METHODS[m]} on {title}" for (title, m), d in found.items() if d and d.low * d.high > 0]
    answer = "These seeds cannot tell"
    answer += f", but for {joined(apart)} (nothing is corrected)" if apart else ""
    return f"**Is PDE worse off than others?** {answer}. The cost to the left-out kind, PDE's minus: {said}."


def cost_difference(conditions, name: str) -> Summary | None:
    "What the shift costs the left-out kind with PDE, minus the same with another method, paired by seed."
    costs = []
    for method in ("pde", name):
        shifted, before = (values(runs[task, c, method], "left") for runs, task, c in conditions)
        costs.append({seed: shifted[seed] - before[seed] for seed in shifted.keys() & before.keys()})
    return difference(*costs)


def help_text(record: dict) -> str:
    "What helps on both tasks."
    firm = firm_gains(record)
    tried = len(SETTINGS)
    if firm:
        return f"**What helps?** Of {tried} settings, on both tasks: {joined(HELP[name] for name in firm)}."
    best = max(SETTINGS, key=lambda name: mean_gain(record, name))
    most = fixed(100 * mean_gain(record, best), sign="+")
    answer = f"**What helps? Nothing that was tried**: none of {tried} settings gains on both tasks"
    return f"{answer} with intervals above zero. The best is “{HELP[best]}”, {most} on their mean."


def instead_text(record: dict) -> str:
    "Whether another method in PDE's place does better with one kind of rows."
    parts = []
    for task, title in SHOWN.items():
        base = values(record["runs"][task, "kind", "pde"])
        found = {m: difference(values(record["runs"][task, "kind", m]), base) for m in OTHERS}
        known = [f"{METHODS[m]} {points(d)}" for m, d in found.items() if d is not None]
        parts.append(f"{title}: {', '.join(known)}")
    return f"**Another method?** Worst group minus PDE, with one kind of rows: {'; '.join(parts)}."


def warmup_text(record: dict) -> str:
    "Whether the smallest group gets worse within the warm-up."
    parts = []
    for task, title in SHOWN.items():
        for condition, what in dict(fair="a fair part", kind="one kind").items():
            lost = late_loss(record, task, condition)
            if lost is not None:
                parts.append(f"{title}, {what}: {points(lost)}")
    question = "**Does the warm-up learn its rows by heart?** The smallest group on test, end of the warm-up"
    return f"{question} minus the chosen round: {'; '.join(parts)}."


def late_loss(record: dict, task: str, condition: str) -> Summary | None:
    "The accuracy of the smallest group at the end of the warm-up, minus that of the chosen round."
    runs = [r for r in record["curves"] if (r["task"], r["condition"]) == (task, condition)]
    both = [{r["seed"]: figure_of(r[at], "smallest") for r in runs} for at in ("warmup_end", "chosen")]
    return difference(*both)


def mean_gain(record: dict, name: str) -> float:
    "The gain of a setting, mean over the tasks; minus infinity where a task lacks it."
    found = gains(record)
    if any((task, name) not in found for task in SHOWN):
        return -math.inf
    return mean(found[task, name].mean for task in SHOWN)


def protection_text(record: dict) -> str:
    "What choosing on validation that is not biased is worth."
    parts = []
    for task, title in SHOWN.items():
        found = protection(record, task, "kind")
        biased = gains(record).get((task, "validationbiased"))
        if found is not None:
            parts.append(f"{title}: the chosen round against the last of the warm-up {points(found)}")
        if biased is not None:
            parts.append(f"{title}: validation as biased as training {points(biased)}")
    return f"**What does validation protect?** Worst group on test. {'; '.join(parts)}."


def seen_text(record: dict) -> str:
    "Whether a diagnosis sees the shift."
    found = {}
    for case in record["cases"]:
        spread, alarm, *_ = case["spreads"]["kind"][0]
        found[SHOWN[case["task"]]] = f"{spread:.2f}{', called alike' if alarm else ', not called alike'}"
    said = "; ".join(f"{title} {text}" for title, text in found.items())
    return (
        f"**Would a diagnosis have told?** Spread of the rows of one kind, near 1 for a fair sample: {said}."
    )


def findings(record: dict) -> list[str]:
    "What the page comes to, sceptical sentences first."
    texts = collapse_text, rows_text, others_text, warmup_text, protection_text
    return [text(record) for text in (*texts, help_text, instead_text, seen_text)]


def missing_texts(record: dict) -> list[str]:
    "What has fewer than five seeds, by task."
    lines = []
    for task, title in SHOWN.items():
        few = []
        for name in ORDER:
            n = min(len(record["runs"][task, c, name]) for c in ("fair", "kind"))
            if n < 5:
                few.append(f"{METHODS[name]} {n}")
        if few:
            lines.append(f"{title}, seeds that both have a fair part and one kind: {', '.join(few)}")
    return lines


# Pictures


def fig_world():
    "The smallest training group of the small world, fair and of one kind only, before its test rows."
    fig, axes = new_figure(2, 2.7, 2.7)
    for ax, bias in zip(axes, (0.0, 1.0)):
        data, _ = shifted_world(bias, 0)
        x, ids = data.inputs.x, data.train_groups.ids
        for split, look in (
            (2, dict(s=5, color="#cccccc", label="test")),
            (0, dict(s=14, color=COLOURS["spurious"], label="training")),
        ):
            rows = (data.split == split) & (ids == 2)
            ax.scatter(x[rows, 1], x[rows, 2], lw=0, **look)
        ax.set(xlabel="second input", xlim=(-3.5, 6.5), ylim=(-3.5, 6.5))
        ax.set_title(f"bias {bias:g}", fontsize=SMALL + 1)
    axes[0].set_ylabel("third input")
    axes[1].legend(fontsize=SMALL, frameon=False, loc="upper right")
    return fig


LOOKS = {
    "all": dict(color="#999999", marker="o", label="all rows"),
    "fair": dict(color=COLOURS["core"], marker="s", label="fair part"),
    "kind": dict(color=COLOURS["spurious"], marker="D", label="one kind"),
}


def fig_shift(record: dict):
    "The worst group on test of every method, with all rows, a fair part and one kind; bars: 95 % intervals."
    fig, axes = new_figure(len(SHOWN), 3.6, 3.0)
    for ax, (task, title) in zip(axes, SHOWN.items()):
        names = answered(record, task)[::-1]
        for at, name in enumerate(names):
            for step, (condition, look) in zip((0.24, 0, -0.24), LOOKS.items()):
                found = complete(task, name)["worst"]
                if condition != "all":
                    found = values(record["runs"][task, condition, name])
                draw_interval(ax, at + step, found, look)
        ax.set(yticks=range(len(names)), ylim=(-0.6, len(names) - 0.4), xlabel="worst group on test, %")
        ax.set_yticklabels([METHODS[name] for name in names])
        ax.set_title(title, fontsize=SMALL + 1)
    handles = [ax.plot([], [], ls="", ms=5, **look)[0] for look in LOOKS.values()]
    fig.legend(
        handles,
        [look["label"] for look in LOOKS.values()],
        loc="outside lower center",
        ncols=3,
        fontsize=SMALL,
        frameon=False,
    )
    return fig


def draw_interval(ax, at: float, found: dict[int, float], look: dict):
    "The mean over seeds, and its interval where there is one."
    if not found:
        return
    s = summary(list(found.values()))
    ax.plot(100 * s.mean, at, ls="", ms=4.5, color=look["color"], marker=look["marker"])
    if s.n > 1:
        ax.plot([100 * max(0.0, s.low), 100 * min(1.0, s.high)], [at, at], lw=1, color=look["color"])


def fig_course(record: dict):
    "The rounds of PDE with one kind of rows, first seed: both kinds and the worst group on test."
    fig, axes = new_figure(len(SHOWN), 2.9, 3.2)
    for ax, (task, title) in zip(axes, SHOWN.items()):
        runs = [r for r in record["curves"] if (r["task"], r["condition"], r["seed"]) == (task, "kind", 0)]
        if not runs:
            continue
        course = runs[0]["course"]
        lines = {"kept": ("kept kind", COLOURS["core"]), "left": ("left-out kind", COLOURS["spurious"])}
        for key, (label, colour) in {**lines, "test_worst": ("worst group", "#222222")}.items():
            ax.plot(100 * np.array(course[key]), color=colour, lw=1.3, label=label)
        ax.axvline(runs[0]["warmup_rounds"] - 0.5, color="#999999", lw=1, ls=":")
        ax.plot(
            runs[0]["chosen"]["round"] - 1,
            100 * course["test_worst"][runs[0]["chosen"]["round"] - 1],
            "v",
            color="#222222",
            ms=6,
        )
        ax.set(xlabel="round", ylim=(40, 100))
        ax.set_title(title, fontsize=SMALL + 1)
    axes[0].set_ylabel("accuracy on test, %")
    axes[-1].legend(fontsize=SMALL, frameon=False, loc="lower right")
    return fig
