"""Tables and sentences of the page on speed, from the records in benchmarks/records."""

import textwrap
from pathlib import Path

from evidence import markdown
from evidence_text import joined
from IPython.display import Markdown

from pde_nb.benchmarks.whole_runs import duration, whole_run_report
from pde_nb.core.tables import Table, percent
from pde_nb.records.seals import read_measurement

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "records"
GPU = {  # records that need a GPU, in words
    "levers": "the levers of a step",
    "together": "several seeds at once",
    "checks": "whether it is the same run",
    "accuracy": "accuracy beside wall time",
}
WIDTH = 96  # characters of a line of a report


def read_record(name: str) -> dict | None:
    "A record; None where it was not run."
    path = FOLDER / f"{name}.json"
    return read_measurement(path) if path.exists() else None


def machine_text(r: dict) -> str:
    "What a record was made on."
    where = r["surroundings"]
    torch = where["versions"]["torch"]
    return (
        f"On {r.get('device', 'cpu')}, {where['processor']}, {where['cores']} cores, torch {torch}, "
        f"revision {where['revision']}."
    )


def shown(name: str, text) -> Markdown:
    "A record as text or table with its machine; nothing where there is none, which `not_run_text` says."
    r = read_record(name)
    return markdown(text(r), machine_text(r)) if r else Markdown("")


def report(name: str) -> Markdown:
    "A whole run in lines that fit the page; nothing where there is no record."
    r = read_record(name)
    if not r:
        return Markdown("")
    lines = []
    for line in whole_run_report(r).splitlines():
        lines += textwrap.wrap(line, WIDTH, subsequent_indent="  ") if len(line) > WIDTH else [line]
    return markdown("```text\n" + "\n".join(lines) + "\n```", machine_text(r))


def not_run_text() -> str:
    "What has no record."
    missing = [what for name, what in GPU.items() if read_record(name) is None]
    return f"**Not run**, for want of a GPU: {joined(missing)}." if missing else ""


# In short


def short_lines() -> list[str]:
    "What each record comes to, in a sentence; those that are not there are left out."
    lines = []
    for what, name, text in LINES:
        r = read_record(name)
        if r:
            lines.append(f"**{what}**: {text(r)}.")
    return lines


def agrees(row: dict) -> bool:
    "Whether pruned evaluation selected the epoch and the weights of full evaluation."
    best = row["best_epoch"]
    return best["full"] == best["pruned"] and row["same_weights"]


def selected_text(r: dict) -> str:
    "What pruned evaluation selects, and how much less it looks at."
    looked = {k: sum(x["evaluated"][k] for x in r["rows"]) for k in ("full", "pruned")}
    same = all(agrees(row) for row in r["rows"])
    what = "the same epoch and the same weights" if same else "**not always the same epoch**"
    return (
        f"{what} as with full evaluation in {len(r['rows'])} seeds, with "
        f"{looked['full'] / looked['pruned']:.1f} times fewer examples evaluated"
    )


def late_text(r: dict) -> str:
    "What a late choice looks at beside full and pruned evaluation, and what the run takes."
    first = {row["way"]: row for row in reversed(r["rows"])}
    full, pruned, least = (first[way] for way in ("full", "pruned", "least"))
    same = len({(row["best_epoch"], row["weights"]) for row in r["rows"]}) == 1
    what = "the same epoch and the same weights" if same else "**not the same epoch**"
    seconds = [sum(row["seconds"].values()) for row in (full, pruned, least)]
    return (
        f"{what} as with full evaluation, with {full['evaluated'] / least['evaluated']:.0f} times fewer rows "
        f"evaluated ({pruned['evaluated'] / least['evaluated']:.1f} times fewer than pruned), in "
        f"{seconds[0] / seconds[2]:.1f} times less processor time ({seconds[1] / seconds[2]:.1f} times less "
        "than pruned), training included"
    )


def late_table(r: dict) -> Table:
    "One run validated in three ways: the selected epoch, the rows looked at, processor seconds."
    rows = []
    for row in r["rows"]:
        seconds = row["seconds"]
        times = f"{seconds['validation']:.1f} s", f"{seconds['training']:.1f} s"
        rows.append((row["way"], row["best_epoch"], f"{row['evaluated']:,}", *times))
    head = ("evaluate", "best epoch", "rows of validation evaluated", "validation", "training")
    return Table(head, tuple(rows))


def input_text(r: dict) -> str:
    "How much faster the cache is than each other way."
    others = [(name, rate) for name, rate in r["rates"].items() if name != "cached"]
    return joined([f"{r['rates']['cached'] / rate:.0f} times as fast as {name}" for name, rate in others])


def spuco_text(r: dict) -> str:
    "Time and weights beside spuco's."
    apart = max(r["weights_apart"].values())
    weights = "the same weights" if apart == 0 else f"weights that differ by {apart:.0e}"
    ratios = [f"{s['spuco'] / s['ours']:.1f} times less time for {what}" for what, s in r["seconds"].items()]
    return f"{weights}, {joined(ratios)}, in one run"


LINES = (
    ("Pictures from the cache, CPU", "cpu_input", input_text),
    ("Evaluation that stops early, the paper's schedule on frozen features", "cpu_selection", selected_text),
    ("The best of several epochs chosen at once, coloured MNIST", "selection_coloured_mnist", late_text),
    ("Beside spuco", "spuco", spuco_text),
)


# Tables


def spuco_table(r: dict) -> str:
    "Seconds and weights beside spuco."
    rows = []
    for name, s in r["seconds"].items():
        ratio = f"{s['spuco'] / s['ours']:.1f}×"
        apart = f"{r['weights_apart'][name]:.0e}" if r["weights_apart"][name] else "0"
        rows.append((name, f"{s['spuco']:.1f} s", f"{s['ours']:.1f} s", ratio, apart))
    what = f"{r['data']}, {r['epochs']} epochs, {r['shown']:,} examples shown, {r['n_val']:,} in validation"
    return Table(("", "spuco", "pde_nb", "ratio", "weights apart by"), tuple(rows), caption=what).markdown()


def selection_table(r: dict) -> Table:
    "The selected epoch and the examples looked at with full and with pruned evaluation."
    rows = []
    for x in r["rows"]:
        best = f"{x['best_epoch']['full']} / {x['best_epoch']['pruned']}"
        looked = [f"{x['evaluated'][k]:,}" for k in ("usual", "full", "pruned")]
        rows.append((x["seed"], best, "yes" if x["same_weights"] else "NO", *looked))
    head = ("seed", "best epoch, full / pruned", "same weights", "evaluated: usual loop", "full", "pruned")
    return Table(head, tuple(rows))


def rates_table(r: dict) -> Table:
    "Examples per second of several ways, and each to the first."
    first = next(iter(r["rates"].values()))
    rows = [(name, f"{rate:,.0f}", f"{rate / first:.2f}×") for name, rate in r["rates"].items()]
    return Table(("", "examples per second", "to the first"), tuple(rows))


def same_table(r: dict) -> Table:
    "How far losses and weights of two ways are apart."
    rows = []
    for x in r["rows"]:
        losses = f"{x['losses_apart']:.1e}" if "losses_apart" in x else ""
        rows.append((x["name"], x.get("best_epoch", ""), losses, f"{x['weights_apart']:.1e}"))
    return Table(("", "best epoch", "largest difference of a loss", "weights apart by"), tuple(rows))


def wall_time_table(r: dict) -> Table:
    "The worst group with its interval, and the time of all seeds."
    rows = []
    for name, m in r["methods"].items():
        s = m["summary"]
        mean, low, high = (percent(s[key], mark="") for key in ("mean", "low", "high"))
        rows.append((name, f"{mean} [{low}, {high}]", duration(m["seconds"])))
    return Table(("method", "worst group on the test set, %", "five seeds in"), tuple(rows))


def ratio_text(ratio: dict) -> str:
    "A ratio with its ends."
    return f"{ratio['middle']:.2f}× ({ratio['low']:.2f}–{ratio['high']:.2f})"


def machine_levers(r: dict) -> Table:
    "How many times faster each lever is on one machine, beside the plain run, and whether it gives the same."
    rows = []
    for row in r["pilot"]["rows"]:
        name = row["name"] + (" (wall)" if row["wall"] else "")
        cells = ratio_text(row["training"]), ratio_text(row["looking"]), f"{row['first']:.1f} s"
        rows.append((name, *cells, f"{max(row['apart']):.0e}", "yes" if row["same"] else "no"))
    head = ("lever", "training", "evaluation", "first step", "apart", "same figures")
    caption = f"{r['data']}: {r['model']}, {r['kind']}, batches of {r['pilot']['batch']}, on {r['device']}"
    return Table(head, tuple(rows), caption=caption)


def memory_table(r: dict) -> Table:
    "How much faster a step is with other settings of memory than as this library has them."
    rows = [(row["name"], ratio_text(row)) for row in r["memory"]]
    return Table(("memory", "training, to as it is"), tuple(rows))
