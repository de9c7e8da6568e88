"""Tables and pictures of the page on how often the diagnosis is right, from its cases."""

from collections import Counter

import numpy as np
from evidence_text import number_text

from pde_nb.core.style import COLOURS, SMALL, Row, fig_rows, new_figure
from pde_nb.core.tables import DASH, Table
from pde_nb.phase.phase_plane import plane_axes
from pde_nb.phase.phase_record import plane_of
from pde_nb.reproduction.known_answers import Case, verdict_hits

MARKS = {"likely": "s", "unclear": "D", "unlikely": "o"}  # of a diagnosis


def lost(case: Case) -> float:
    "How many points the worst part of plain training is below that of balanced training."
    return 100 * (case.balanced - case.erm)


# Tables


def hits_table(new: list[Case], old: list[Case]) -> Table:
    "Of the cases with each verdict, how many failed; those that were looked at before apart."
    rows = []
    for h, before in zip(verdict_hits(new), verdict_hits(old)):
        share = f"{100 * h.fails / h.n:.0f} % [{100 * h.low:.0f}, {100 * h.high:.0f}]" if h.n else DASH
        rows.append((h.verdict, f"{h.fails} of {h.n}", share, f"{before.fails} of {before.n}"))
    head = ("diagnosed", "plain training failed", "share [95 %]", "of those looked at before")
    return Table(head, tuple(rows))


def family_table(new: list[Case], old: list[Case]) -> Table:
    "How the verdicts of each family of cases came true."
    rows = []
    for part, note in ((new, ""), (old, ", looked at before")):
        for family in dict.fromkeys(case.family for case in part):
            rows.append(family_row(family + note, [case for case in part if case.family == family]))
    head = ("family", "cases", "failed", "right", "false alarms", "missed", "unclear")
    return Table(head, tuple(rows))


def family_row(name: str, cases: list[Case]) -> tuple:
    "The counts of one family."
    n = Counter((case.verdict, case.fails) for case in cases)
    right = n["likely", True] + n["unlikely", False]
    unclear = n["unclear", True] + n["unclear", False]
    failed = sum(case.fails for case in cases)
    return name, len(cases), failed, right, n["likely", False], n["unlikely", True], unclear


def tests_table(cases: list[Case]) -> Table:
    "How many cases failed by what each of the two tests says alone."
    model = [case for case in cases if case.family == "synthetic"]
    other = [case for case in cases if case.family != "synthetic"]
    rows = []
    for what, part in (("the paper's model", model), ("all else", other)):
        for test in ("condition", "shortcut"):
            said = Counter((getattr(case, test), case.fails) for case in part)
            cells = [failed_of(said[answer, True], said[answer, False]) for answer in ("yes", "open", "no")]
            rows.append((f"{test}, {what}", *cells))
    return Table(("failed, where the test says", "yes", "open", "no"), tuple(rows))


def failed_of(failed: int, not_failed: int) -> str:
    "So many of so many; a dash for none."
    total = failed + not_failed
    return f"{failed} of {total}" if total else DASH


def cases_table(cases: list[Case]) -> Table:
    "Every case off the plane: accuracies of the worst part in percent, and what was diagnosed."
    rows = []
    for case in cases:
        if case.family != "synthetic":
            accuracies = (
                f"{100 * case.erm:.0f}",
                f"{100 * case.balanced:.0f}",
                "yes" if case.fails else "no",
            )
            tests = (case.condition or DASH, case.shortcut or DASH)
            rows.append((case.family, case.name, *accuracies, case.verdict, *tests))
    head = ("family", "case", "plain", "balanced", "failed", "diagnosed", "condition", "shortcut")
    return Table(head, tuple(rows), "llrrllll")


# Sentences


def finding(cases: list[Case]) -> list[str]:
    "What the page comes to."
    found = {h.verdict: h for h in verdict_hits(cases)}
    likely, unclear, unlikely = (found[verdict] for verdict in MARKS)
    return [
        f"**Likely**: plain training failed in {likely.fails} of {likely.n} cases.",
        f"**Unlikely**: it failed in {number_text(unlikely.fails)} of {unlikely.n}, of which "
        f"{sum(c.verdict == unlikely.verdict and c.family == 'synthetic' for c in cases)} are cells of the "
        "synthetic plane.",
        f"**Unclear**: it failed in {unclear.fails} of {unclear.n}.",
    ]


# Pictures


def fig_hits(cases: list[Case]):
    "The share of failures by what was diagnosed, with its 95 % interval."
    rows = []
    for h in verdict_hits(cases):
        share = h.fails / h.n
        rows.append(Row(h.verdict, 100 * share, 100 * min(h.low, share), 100 * max(h.high, share)))
    fig = fig_rows({"by diagnosis": rows}, "cases in which plain training failed, %", order=False)
    fig.axes[0].set_xlim(-2, 102)
    fig.set_size_inches(5.4, fig.get_figheight())
    return fig


def fig_plane(phase: dict, cells: list[Case]):
    "Points lost by plain training over the plane of the paper's model, by shade; the diagnosis, by mark."
    plane = plane_of(phase)
    fig, [ax] = new_figure(1, 4.6, 5.6)
    plane_axes(ax, plane)
    places = [(plane.ratios[run["column"]], plane.alpha_hats[run["row"]]) for run in phase["network"]]
    shades = dict(cmap="Greys", vmin=0, vmax=100, s=42, edgecolors=COLOURS["average"], lw=0.9, zorder=3)
    for verdict, mark in MARKS.items():
        mine = [k for k, case in enumerate(cells) if case.verdict == verdict]
        at = np.array([places[k] for k in mine]).T
        points = ax.scatter(*at, c=[lost(cells[k]) for k in mine], marker=mark, clip_on=False, **shades)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    ax.set(xlim=(left - 0.03, right + 0.03), ylim=(low - 0.01, high + 0.01))
    fig.colorbar(points, label="points lost by ERM in the worst part")
    for verdict, mark in MARKS.items():
        ax.scatter([], [], c="white", marker=mark, edgecolors=COLOURS["average"], s=42, label=verdict)
    fig.legend(loc="outside lower center", fontsize=SMALL, ncols=3, frameon=False)
    return fig


def fig_lost(cases: list[Case]):
    "What plain training loses off the plane: a filled mark is a failure, a ring is none."
    fig, [ax] = new_figure(1, 2.6, 5.6)
    verdicts = [*MARKS][::-1]
    for row, verdict in enumerate(verdicts):
        mine = [case for case in cases if case.verdict == verdict and case.family != "synthetic"]
        shift = np.random.default_rng(row).uniform(-0.28, 0.28, len(mine))
        for case, up in zip(mine, shift):
            face = COLOURS["average"] if case.fails else "white"
            ax.plot(lost(case), row + up, MARKS[verdict], ms=5, mfc=face, mec=COLOURS["average"], alpha=0.8)
    ax.axvline(5, color="k", lw=1.0, ls=":")
    ax.set(yticks=range(3), xlabel="points that the worst part of plain training loses")
    ax.set_yticklabels(verdicts)
    return fig
