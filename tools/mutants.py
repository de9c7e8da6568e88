"""Put faults into the library, one at a time, and see whether its notebooks notice.

    python tools/mutants.py [NAME ...] [--again] [--record FILE] [--list]

Each fault is one replacement in an exported module and in the notebook that it is exported from, in a copy of
the working tree; it has to match exactly once in each. The notebooks that ought to notice are run as
tools/check.py runs them, without the cells that are slow or need data. A fault is caught by the first cell
that fails, or that does not end in time. Faults whose module and notebooks have not changed since they are in
the record are not tried again, so that an interrupted run goes on. The exit status is 1 where more than two
are not caught.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from check import QUIET, ROOT

LIB, NBS = "pde_nb", "nbs"
RECORD = ROOT / "results" / "mutants.json"
MAY_ESCAPE = 2
SECONDS = 400  # that a notebook may take


@dataclass(frozen=True)
class Mutant:
    """A fault: what is replaced in a module, and the notebooks that ought to notice."""

    name: str
    module: str  # as in `#| default_exp`
    old: str
    new: str
    pages: tuple[str, ...]  # below nbs/, without suffix


CORE = "01_core/20_properties"
ALGORITHM = "02_algorithm/20_properties"
THEORY = "03_theory/20_properties"
SOURCES = "05_sources/20_properties"
METHODS = "07_methods/20_properties"
TRAINING = "08_training/20_properties"
ANALYSIS = "09_comparison/20_properties"

METRICS = "02_algorithm/02_metrics"
FIGURES = (
    Mutant(
        "the worst group is the best one",
        "algorithm.metrics",
        "int(np.nanargmin(self.accuracy))",
        "int(np.nanargmax(self.accuracy))",
        (METRICS, ALGORITHM),
    ),
    Mutant(
        "the adjusted average leaves out groups with one training example",
        "algorithm.metrics",
        "used = weights != 0",
        "used = weights != 1",
        (METRICS, ALGORITHM),
    ),
    Mutant(
        "the mean of groups counts an empty group as 0",
        "algorithm.metrics",
        "float(accuracy[counts.total > 0].mean())",
        "float(np.nan_to_num(accuracy).mean())",
        (METRICS, ALGORITHM),
    ),
    Mutant(
        "the interval for the worst group forgets that it is a minimum",
        "algorithm.metrics",
        "tail, tail / seen.sum())",
        "tail, tail)",
        (METRICS, ALGORITHM),
    ),
    Mutant(
        "right predictions are counted once for each group of an example",
        "algorithm.metrics",
        "n_correct=int(hit.sum())",
        "n_correct=int(group_sum(hit, groups).sum())",
        (METRICS, ALGORITHM),
    ),
)
STATISTICS = (
    Mutant(
        "Wilson's interval is too wide for small groups",
        "core.statistics",
        "z**2 / (4 * n**2)",
        "z**2 / (4 * n)",
        ("01_core/03_statistics", CORE),
    ),
    Mutant(
        "the exact upper bound takes the tail of the lower one",
        "core.statistics",
        "1 - tail_upper)",
        "1 - tail_lower)",
        ("01_core/03_statistics", CORE, METRICS),
    ),
    Mutant(
        "Holm's correction is Bonferroni's",
        "core.statistics",
        "(len(order) - rank) * p[i]",
        "len(order) * p[i]",
        ("01_core/03_statistics", CORE),
    ),
    Mutant(
        "a paired test is one-sided",
        "comparison.paired",
        "float(stats.ttest_1samp(values, 0).pvalue)",
        "float(stats.ttest_1samp(values, 0).pvalue / 2)",
        ("09_comparison/05_paired", ANALYSIS),
    ),
    Mutant(
        "the best method is named by the test set",
        "comparison.paired",
        'return over_seeds(result, "val_worst_group").mean,',
        'return over_seeds(result, "worst_group").mean,',
        ("09_comparison/05_paired", ANALYSIS),
    ),
    Mutant(
        "a share in percent is cut off, not rounded",
        "core.tables",
        "return fixed(100 * value, places, sign) + mark",
        "return fixed(100 * value - 0.5 * 10**-places, places, sign) + mark",
        ("01_core/06_tables", CORE),
    ),
)
GROUPS = (
    Mutant(
        "a balanced subset of groups of which one is empty is empty",
        "algorithm.groups",
        "max(counts[counts > 0].min(), cap or 0)",
        "max(counts.min(), cap or 0)",
        ("02_algorithm/01_groups", ALGORITHM),
    ),
    Mutant(
        "the smallest group of a class is no minority",
        "algorithm.groups",
        "by_class.argmax(1)",
        "by_class.argmin(1)",
        ("02_algorithm/01_groups", ALGORITHM),
    ),
    Mutant(
        "an unknown value of an attribute passes for a known one",
        "algorithm.groups",
        "if unknown.any():",
        "if unknown.all():",
        ("02_algorithm/01_groups", ALGORITHM),
    ),
)
EXPANSION = (
    Mutant(
        "expansions take one group after another, not in turns",
        "algorithm.expansion",
        "rank[near] * groups.n_groups + turn[groups.ids[near]]",
        "turn[groups.ids[near]] * total + rank[near]",
        ("02_algorithm/03_expansion", ALGORITHM),
    ),
    Mutant(
        "the warm-up lasts an epoch longer",
        "algorithm.schedule",
        "self.epoch if epoch is None else epoch\n        every",
        "(self.epoch if epoch is None else epoch) + 1\n        every",
        ("02_algorithm/04_schedule", ALGORITHM),
    ),
    Mutant(
        "what is left for a last, smaller expansion is never used",
        "algorithm.expansion",
        "[schedule.expand_by] * full + [rest] * (rest > 0)",
        "[schedule.expand_by] * full",
        ("02_algorithm/03_expansion", ALGORITHM),
    ),
    Mutant(
        "a schedule gives every epoch in the same order",
        "algorithm.schedule",
        "default_rng([seed, epoch])",
        "default_rng([seed, 0])",
        ("02_algorithm/04_schedule", ALGORITHM),
    ),
    Mutant(
        "resumed batches begin their epoch anew",
        "algorithm.schedule",
        "if step >= start:",
        "if step >= start - 1:",
        ("02_algorithm/04_schedule", ALGORITHM),
    ),
    Mutant(
        "a long stage ends as soon as a short one",
        "algorithm.schedule",
        "max(rounds, whole, pace.waits * took)",
        "max(rounds, whole)",
        ("02_algorithm/04_schedule", ALGORITHM),
    ),
    Mutant(
        "training ends one stage too late",
        "algorithm.schedule",
        "if n_without_gain >= pace.tries:",
        "if n_without_gain > pace.tries:",
        ("02_algorithm/04_schedule", ALGORITHM),
    ),
)
LOSSES = (
    Mutant(
        "GroupDRO favours the groups with low losses",
        "methods.baselines",
        "self.q * torch.exp(self.eta",
        "self.q * torch.exp(-self.eta",
        ("07_methods/02_baselines", METHODS),
    ),
    Mutant(
        "GroupDRO adjusts by the size, not by its root",
        "methods.baselines",
        "counts.clamp_min(1).sqrt()",
        "counts.clamp_min(1)",
        ("07_methods/02_baselines", METHODS),
    ),
    Mutant(
        "weights of groups count the empty ones",
        "methods.base",
        "exists.sum() * groups.counts",
        "groups.n_groups * groups.counts",
        ("07_methods/01_base", "07_methods/02_baselines", METHODS),
    ),
    Mutant(
        "JTT shows mistakes once too often",
        "methods.jtt",
        'self.upweight - (self.copies == "paper")',
        "self.upweight",
        ("07_methods/07_jtt", METHODS),
    ),
    Mutant(
        "LfF weighs what the biased network gets right",
        "methods.lff",
        "return now[0] / (now[0] + now[1])",
        "return now[1] / (now[0] + now[1])",
        ("07_methods/08_lff", METHODS),
    ),
    Mutant(
        "EIIL's derivative has a wrong sign",
        "methods.eiil",
        ".sum(1) - z[np.arange(len(z)), y]",
        ".sum(1) + z[np.arange(len(z)), y]",
        ("07_methods/09_eiil", METHODS),
    ),
    Mutant(
        "DFR's new last layer shifts the wrong way",
        "methods.dfr",
        "bias - weight @ (mean / scale)",
        "bias + weight @ (mean / scale)",
        ("07_methods/10_dfr", METHODS),
    ),
)
TRAINED = (
    Mutant(
        "of equal epochs the later one is chosen",
        "training.selection",
        "mean < best_mean or (mean == best_mean and not earlier)",
        "mean < best_mean",
        ("08_training/01_selection", TRAINING),
    ),
    Mutant(
        "an epoch loses only where every group does worse",
        "training.selection",
        "if (margin < 0).any():",
        "if (margin < 0).all():",
        ("08_training/01_selection", TRAINING),
    ),
    Mutant(
        "a resumed run has other random numbers",
        "training.checkpoints",
        'torch.set_rng_state(state["cpu"])',
        "torch.get_rng_state()",
        ("08_training/02_checkpoints", TRAINING),
    ),
    Mutant(
        "a resumed run has forgotten its momentum",
        "training.trainer",
        'self.optimiser.load_state_dict(state["optimiser"])',
        "self.optimiser.state.clear()",
        ("08_training/05_trainer", TRAINING),
    ),
    Mutant(
        "a damaged checkpoint is read",
        "training.checkpoints",
        'if head.get("checksum") != str(',
        'if head.get("checksum") is None and str(',
        ("08_training/02_checkpoints", TRAINING),
    ),
    Mutant(
        "a batch that is not full counts as full",
        "training.trainer",
        "self.seen += len(rows)",
        "self.seen += self.settings.batch_size",
        ("08_training/05_trainer", TRAINING),
    ),
    Mutant(
        "the learning rate ignores what the method says",
        "training.trainer",
        "self.settings.lr * self.method.lr_factor(self.epoch) *",
        "self.settings.lr *",
        ("08_training/05_trainer", TRAINING),
    ),
)
DATA = (
    Mutant(
        "a split is not divided alike within groups",
        "sources.splits",
        "+ 0.5) / groups.counts[groups.ids]",
        "+ 0.5) / len(groups)",
        ("05_sources/01_splits", SOURCES),
    ),
    Mutant(
        "columns are scaled by the test rows too",
        "inputs.encoding",
        "rows.std(0, dtype=np.float64)",
        "x.std(0, dtype=np.float64)",
        ("05_inputs/07_encoding", SOURCES),
    ),
    Mutant(
        "a category that training lacks passes for another",
        "inputs.encoding",
        "*(known.get(value, -1) for value in found), -1",
        "*(known.get(value, 0) for value in found), -1",
        ("05_inputs/07_encoding", SOURCES),
    ),
)
CLAIMS = (
    Mutant(
        "the gradient of the fast network has another factor",
        "theory.network",
        "return -3 * (squares @ self.patches)",
        "return -2 * (squares @ self.patches)",
        ("03_theory/02_network", THEORY),
    ),
    Mutant(
        "the lower bound on a learning time is not below it",
        "proofs.tensor_power",
        "return (1 / z0 - 1 / v) / M,",
        "return (1 / z0 - 1 / v) / m,",
        ("04_proofs/02_tensor_power", THEORY),
    ),
)
MUTANTS = (*FIGURES, *STATISTICS, *GROUPS, *EXPANSION, *LOSSES, *TRAINED, *DATA, *CLAIMS)


def replaced(text: str, mutant: Mutant, where: str) -> str:
    """A text with the fault in it. Ends the program unless what it replaces is there exactly once."""
    times = text.count(mutant.old)
    if times != 1:
        raise SystemExit(f"{mutant.name!r}: {mutant.old!r} is {times} times in {where}; it must be once.")
    return text.replace(mutant.old, mutant.new)


def places(root: Path, mutant: Mutant) -> tuple[Path, Path]:
    """The module and the notebook that it is exported from."""
    module = root / LIB / (mutant.module.replace(".", "/") + ".py")
    page = re.search(r"File to edit: [./]*(nbs/\S+\.ipynb)", module.read_text(encoding="utf-8"))[1]
    return module, root / page


def faulty_cells(notebook: dict, mutant: Mutant) -> dict:
    """A notebook with the fault in the cell that exports the code."""
    exporting = [c for c in notebook["cells"] if "".join(c["source"]).lstrip().startswith("#| export")]
    with_it = [cell for cell in exporting if mutant.old in "".join(cell["source"])]
    if len(with_it) != 1:
        raise SystemExit(f"{mutant.name!r}: {len(with_it)} cells have {mutant.old!r}; it must be one.")
    source = replaced("".join(with_it[0]["source"]), mutant, "the cell")
    with_it[0]["source"] = source.splitlines(keepends=True)
    return notebook


def check_fit(root: Path, mutant: Mutant):
    """End the program unless a fault has its place in the code, and its notebooks are there."""
    faulty(root, mutant)
    for page in mutant.pages:
        if not (root / NBS / f"{page}.ipynb").exists():
            raise SystemExit(
                f"{mutant.name!r}: there is no notebook {page}; name the one that should notice."
            )


def faulty(root: Path, mutant: Mutant) -> dict[Path, str]:
    """The new text of the module and of the notebook."""
    module, notebook = places(root, mutant)
    cells = faulty_cells(json.loads(notebook.read_text(encoding="utf-8")), mutant)
    return {
        module: replaced(module.read_text(encoding="utf-8"), mutant, mutant.module),
        notebook: json.dumps(cells, indent=1, ensure_ascii=False),
    }


def copied_tree(folder: Path) -> Path:
    """A copy of the working tree without its history."""
    without = shutil.ignore_patterns(".git", "__pycache__", ".venv", ".ipynb_checkpoints", "runs", "_docs")
    return Path(shutil.copytree(ROOT, folder / "copy", ignore=without))


RUN_PAGE = """
import sys
from nbdev.test import test_nb
passed, _ = test_nb(sys.argv[1], skip_flags=["slow", "data", "gpu"], do_print=False, basepath=sys.argv[2])
sys.exit(not passed)
"""


def run_page(root: Path, page: str) -> dict:
    """Run a notebook of the copy; whether it passed, and the cell that failed."""
    path = root / NBS / f"{page}.ipynb"
    env = {name: value for name, value in os.environ.items() if name not in ("IN_TEST", "PDE_DATA")}
    env = {**env, **QUIET, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", RUN_PAGE, str(path), str(root)]
    try:
        done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return dict(passed=False, cell="", said=f"it did not end within {SECONDS} s")
    said = done.stdout + done.stderr
    number = re.search(r"While Executing Cell #(\d+)", said)
    cell = cell_id(path, int(number[1]) if number else None)
    return dict(passed=not done.returncode, cell=cell, said=last_line(said))


def cell_id(path: Path, number: int | None) -> str:
    """The id of the code cell that nbdev gives this number; '' where it names none."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells[number - 1]["id"] if number else ""


def last_line(text: str) -> str:
    """What a traceback ends with, on one line."""
    lines = [line.strip() for line in text.splitlines() if "Error" in line]
    return lines[-1][:160] if lines else ""


@contextmanager
def put_in(root: Path, mutant: Mutant):
    """Inside, the copy has the fault; afterwards it is whole."""
    new = faulty(root, mutant)
    before = {path: path.read_text(encoding="utf-8") for path in new}
    try:
        for path, text in new.items():
            path.write_text(text, encoding="utf-8")
        yield
    finally:
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")


def tried(root: Path, mutant: Mutant, sound: set[str]) -> dict:
    """Try a fault on its notebooks, one after the other, until one notices; `sound`: those known to pass
    without it."""
    began = time.monotonic()
    caught = dict(page="", cell="", said="")
    for page in mutant.pages:
        with put_in(root, mutant):
            found = run_page(root, page)
        if not found["passed"]:
            check_sound(root, page, sound)
            caught = dict(page=page, cell=found["cell"], said=found["said"])
            break
    return dict(caught=bool(caught["page"]), **caught, seconds=round(time.monotonic() - began, 1))


def check_sound(root: Path, page: str, sound: set[str]):
    """End the program where a notebook fails without any fault: it could not tell one."""
    if page in sound:
        return
    found = run_page(root, page)
    if not found["passed"]:
        raise SystemExit(f"{page} fails without any fault (cell {found['cell']}): {found['said']}")
    sound.add(page)


def digest(mutant: Mutant) -> str:
    """Of the fault, its module, and the code of its notebooks."""
    texts = [repr(mutant), places(ROOT, mutant)[0].read_text(encoding="utf-8")]
    for page in mutant.pages:
        cells = json.loads((ROOT / NBS / f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]
        texts += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def earlier(path: Path) -> dict[str, dict]:
    """The lines of a record that is there, by the name of the fault."""
    if not path.exists():
        return {}
    sys.path.insert(0, str(ROOT))
    from pde_nb.records.seals import read_measurement

    return {line["name"]: line for line in read_measurement(path)["mutants"]}


def write_lines(path: Path, lines: dict[str, dict]):
    """Write the record, in the order of the faults."""
    sys.path.insert(0, str(ROOT))
    from pde_nb.records.seals import write_sealed

    known = [lines[mutant.name] for mutant in MUTANTS if mutant.name in lines]
    write_sealed(path, dict(command="python tools/mutants.py", mutants=known))


def stamp() -> dict:
    """Date and source revision."""
    sys.path.insert(0, str(ROOT))
    from pde_nb.core.files import surroundings

    today = datetime.now(timezone.utc).date().isoformat()
    return dict(date=today, revision=surroundings()["revision"])


def try_all(mutants: list[Mutant], path: Path, lines: dict[str, dict]):
    """Try some faults, and write each into the record as soon as it is known."""
    with tempfile.TemporaryDirectory() as folder:
        root = copied_tree(Path(folder))
        for mutant in mutants:
            check_fit(root, mutant)  # every one, before the first is tried
        sound = set()
        for mutant in mutants:
            what = dict(name=mutant.name, module=mutant.module, old=mutant.old, new=mutant.new)
            lines[mutant.name] = dict(**what, **tried(root, mutant, sound), digest=digest(mutant), **stamp())
            write_lines(path, lines)
            print(line_text(lines[mutant.name]), flush=True)


def line_text(line: dict) -> str:
    """One fault in a line."""
    where = f"caught by {line['page']}, cell {line['cell']}" if line["caught"] else "NOT CAUGHT"
    return f"{line['name']} ({line['module']}): {where}, {line['seconds']:.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="parts of the names of faults, or of modules; default all")
    parser.add_argument("--again", action="store_true", help="also those that are in the record")
    parser.add_argument("--record", type=Path, default=RECORD, help="default results/mutants.json")
    parser.add_argument(
        "--list", action="store_true", help="say what there is; end with 1 where one does not fit"
    )
    options = parser.parse_args()
    named = [m for m in MUTANTS if not options.names or any(n in m.name + m.module for n in options.names)]
    if options.list:
        for mutant in named:
            check_fit(ROOT, mutant)
        print("\n".join(f"{m.module}: {m.name}" for m in named))
        return 0
    lines = earlier(options.record)
    known = {} if options.again else {name: line["digest"] for name, line in lines.items()}
    left = [mutant for mutant in named if known.get(mutant.name) != digest(mutant)]
    if left:
        try_all(left, options.record, lines)
    found = [lines[mutant.name] for mutant in named]
    escaped = [line["name"] for line in found if not line["caught"]]
    print(f"{len(found) - len(escaped)} of {len(found)} caught; not caught: {escaped or 'none'}")
    return int(len(escaped) > MAY_ESCAPE)


if __name__ == "__main__":
    sys.exit(main())
