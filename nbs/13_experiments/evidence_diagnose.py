"""Tables and pictures of the page on how often the diagnosis is right, from its cases."""

import warnings
from collections import Counter
from dataclasses import dataclass

import numpy as np
from evidence_text import number_text

from pde_nb.analysis.diagnosis import FAILING, Diagnosis, diagnose
from pde_nb.core.statistics import wilson_interval
from pde_nb.core.style import COLOURS, SMALL, Row, fig_rows, new_figure
from pde_nb.core.tables import DASH, Table
from pde_nb.phase.phase_plane import cell_sample, plane_axes
from pde_nb.phase.phase_record import plane_of
from pde_nb.sources.data import from_arrays
from pde_nb.theory.data_model import dense_patches


@dataclass(frozen=True)
class Case:
    "One data set: what was diagnosed, and what training did. Accuracies are in [0, 1]."

    family: str
    name: str
    erm: float  # worst part of plain training
    balanced: float  # worst part of the better balanced method
    fails: bool  # plain training is at least `FAILING` below
    verdict: str  # as in `Diagnosis`; the following are None where no attribute could be examined
    condition: str | None = None
    shortcut: str | None = None
    spurious_first: float | None = None
    v: float | None = None  # Cramér's V
    gap: float | None = None  # gain of the worst part of the probe
    seen: bool = False  # the case was looked at while the rules were made


@dataclass(frozen=True)
class VerdictHits:
    "Of the cases with a verdict, how many failed."

    verdict: str
    n: int  # cases
    fails: int
    low: float  # interval of 95 % of the share that fails; nan where there is no case
    high: float


def verdict_hits(cases: list[Case]) -> list[VerdictHits]:  # of likely, unclear and unlikely
    "How often plain training failed, by verdict."
    hits = []
    for verdict in ("likely", "unclear", "unlikely"):
        failed = [c.fails for c in cases if c.verdict == verdict]
        low, high = wilson_interval(sum(failed), len(failed))
        hits.append(VerdictHits(verdict, len(failed), sum(failed), float(low), float(high)))
    return hits


def make_case(
    family: str,
    name: str,
    erm: float,
    balanced: float,
    diagnosis: Diagnosis,
    seen: bool = False,
) -> Case:
    "What was diagnosed of the first attribute, beside what training did."
    known = dict(family=family, name=name, erm=erm, balanced=balanced, verdict=diagnosis.verdict, seen=seen)
    known["fails"] = bool(balanced - erm >= FAILING)
    attribute = diagnosis.attributes[0]
    found = attribute.examination
    if found is None:
        return Case(**known)
    first = found.spurious_first
    return Case(
        **known,
        condition=found.says.condition,
        shortcut=found.says.shortcut,
        spurious_first=None if first is None else round(first, 4),
        v=round(attribute.association.cramers_v, 4),
        gap=round(found.test.gap.value, 4),
    )


def synthetic_cases(
    phase: dict,  # record of `run_phase`
    seen=(),  # positions in its list of networks that were looked at before
) -> list[Case]:
    "A case for each cell with a trained network."
    plane = plane_of(phase)
    cases = []
    for i, network in enumerate(phase["network"]):
        data, x = _synthetic_data(plane, network, i)
        ratio, alpha_hat = plane.ratios[network["column"]], plane.alpha_hats[network["row"]]
        name = f"ratio {ratio:.2f}, alpha_hat {alpha_hat:.3f}"
        erm, balanced = network["erm"][-1], network["pde"][0]
        # x as the network sees it, not standardised
        cases.append(make_case("synthetic", name, erm, balanced, diagnose(data, x), i in seen))
    return cases


def _synthetic_data(plane, network, i):
    "The training examples of a cell in random order, a hundred each for validation and test; and its inputs."
    sample = cell_sample(plane, network["seed"], network["row"], network["column"])
    mixed = np.random.default_rng([9, i]).permutation(len(sample))
    y = (sample.y > 0).astype(int)[mixed]
    a = (sample.a > 0).astype(int)[mixed]
    x = dense_patches(sample).reshape(len(sample), -1)[mixed]
    split = np.zeros(len(sample), np.int8)
    split[:100] = 1
    split[100:200] = 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the small validation and test sets lack a group
        return from_arrays(x, y, {"a": a}, split, name="synthetic"), x


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
