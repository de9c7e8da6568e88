"""Put faults into the library, one at a time, and see whether its notebooks notice.

    python tools/mutants.py [NAME ...] [--list]      # parts of the names of faults or modules; default all

Each fault replaces one piece of text in a module and in the notebook that it is exported from, in a copy of
the working tree. The notebook is run then and, where it passes, the properties of its folder. What noticed is
written to results/mutants.json. The exit status is 1 where more than two faults are not noticed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from check import BIN, QUIET, ROOT

RECORD = ROOT / "results" / "mutants.json"
SECONDS = 400  # that a notebook may take
FAULTS = {  # module → what would be wrong → the text, and what is put in its place
    "algorithm.metrics": {
        "the worst group is the best one": ("nanargmin(self.accuracy)", "nanargmax(self.accuracy)"),
        "the adjusted average leaves out groups with one example": ("sizes != 0", "sizes != 1"),
        "the mean of groups counts an empty group as 0": (
            "(correct[filled] / total[filled]).mean()",
            "(correct / np.maximum(total, 1)).mean()",
        ),
        "the worst group's interval forgets that it is a minimum": (
            "tail, tail / seen.sum())",
            "tail, tail)",
        ),
        "an example counts once for each of its groups": (
            "n_correct=int(hit.sum())",
            "n_correct=int(group_sum(hit, groups).sum())",
        ),
        "the exact upper bound takes the tail of the lower one": ("1 - tail_upper)", "1 - tail_lower)"),
    },
    "core.statistics": {
        "Wilson's interval is too wide for small groups": ("Z**2 / (4 * n**2)", "Z**2 / (4 * n)"),
    },
    "core.tables": {
        "a share in percent is cut off, not rounded": (
            "fixed(100 * value, places, sign)",
            "fixed(100 * value - 0.5 * 10**-places, places, sign)",
        ),
    },
    "comparison.trials": {
        "Holm's correction is Bonferroni's": ("np.arange(len(order), 0, -1)", "len(order)"),
        "a paired test is one-sided": ("(values, 0).pvalue)", "(values, 0).pvalue / 2)"),
        "the best method is named by the test set": (
            'for key in ("val_worst_group", "val_group_mean")',
            'for key in ("worst_group", "group_mean")',
        ),
    },
    "algorithm.groups": {
        "a balanced subset is empty where a group is": ("counts[counts > 0].min()", "counts.min()"),
        "an unknown value of an attribute passes for a known one": ("unknown.any():", "unknown.all():"),
    },
    "algorithm.expansion": {
        "expansions take one group after another, not in turns": (
            "np.lexsort((turn[groups.ids[unused]], rank[unused]))",
            "np.lexsort((rank[unused], turn[groups.ids[unused]]))",
        ),
        "a last, smaller expansion is never made": (" * full + [rest] * (rest > 0)", " * full"),
    },
    "algorithm.schedule": {
        "the warm-up lasts an epoch longer": (
            "self.warmup_end = self.epoch if epoch is None else epoch",
            "self.warmup_end = 1 + (self.epoch if epoch is None else epoch)",
        ),
        "a schedule gives every epoch in the same order": ('"order", epoch).perm', '"order", 0).perm'),
        "resumed batches begin their epoch anew": ("range(self.start, n_steps)", "range(n_steps)"),
        "a long stage ends as soon as a short one": ("one_pass, pace.waits * to_best)", "one_pass)"),
        "training ends one stage too late": ("n_without_gain >= pace.tries", "n_without_gain > pace.tries"),
    },
    "methods.baselines": {
        "GroupDRO favours the groups with low losses": ("torch.exp(self.eta", "torch.exp(-self.eta"),
    },
    "methods.base": {
        "balanced draws are as frequent as groups": ('"balanced", groups.ids', "None, groups.ids"),
    },
    "methods.jtt": {
        "JTT shows mistakes once too often": ("else self.upweight - 1", "else self.upweight"),
    },
    "methods.lff": {
        "LfF weighs what the biased network gets right": ("now[0] / (now", "now[1] / (now"),
    },
    "methods.eiil": {
        "EIIL's derivative has a wrong sign": (".sum(1) - z[", ".sum(1) + z["),
    },
    "methods.dfr": {
        "DFR's new last layer shifts the wrong way": ("bias - weight @ (mean", "bias + weight @ (mean"),
        "DFR fits to features that are not centred": ("(x[at] - mean) / scale, y", "x[at] / scale, y"),
    },
    "training.selection": {
        "of equal epochs the later one is chosen": ("total) <= best_mean", "total) < best_mean"),
        "an epoch loses only where every group does worse": ("(margin < 0).any()", "(margin < 0).all()"),
    },
    "training.checkpoints": {
        "a damaged checkpoint is read": ("!= checksum(text, tensors)", "< 0"),
    },
    "training.trainer": {
        "a resumed run has forgotten its momentum": (
            'self.optimiser.load_state_dict(state["optimiser"])',
            "self.optimiser.state.clear()",
        ),
        "a batch that is not full counts as full": ("seen += len(rows)", "seen += self.settings.batch_size"),
        "the learning rate ignores the method": ("pacing.at(self.epoch).lr_factor *", "1 *"),
    },
    "data.dataset": {
        "a split is not divided alike within groups": (
            "+ 0.5) / groups.counts[groups.ids]",
            "+ 0.5) / len(groups)",
        ),
    },
    "data.encoding": {
        "columns are scaled by the test rows too": ("rows[train[at : at + len(rows)]]", "rows[:]"),
        "a category that training lacks passes for another": ("column) >= 0", "column) >= -1"),
    },
    "theory.network": {
        "the gradient of the fast network has another factor": (
            "return -3 * (squares",
            "return -2 * (squares",
        ),
    },
    "theory.growth": {
        "the lower bound on a learning time is not below it": (
            "(1 / z0 - 1 / v) / M,",
            "(1 / z0 - 1 / v) / m,",
        ),
    },
}


def faulty(root: Path, module: str, old: str, new: str) -> dict[Path, str]:
    """The new text of the module and of its notebook. Ends the program unless the old text is there once."""
    path = root / "pde_nb" / (module.replace(".", "/") + ".py")
    text = path.read_text(encoding="utf-8")
    page = root / re.search(r"File to edit: [./]*(nbs/\S+\.ipynb)", text)[1]
    if text.count(old) != 1:
        sys.exit(f"{module}: {old!r} is {text.count(old)} times in the module; it must be once.")
    notebook = json.loads(page.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        cell["source"] = source.replace(old, new) if "#| export" in source else source
    return {path: text.replace(old, new), page: json.dumps(notebook)}


def run_page(root: Path, page: Path) -> tuple[bool, str]:
    """Run a notebook of the copy: whether it passed, and what it said."""
    without = {name: value for name, value in os.environ.items() if name != "PDE_DATA"}
    how = dict(cwd=root, env={**without, **QUIET, "PYTHONPATH": str(root)}, capture_output=True, text=True)
    try:
        done = subprocess.run([BIN / "nbdev_test", "--path", page], **how, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False, f"Error: it did not end within {SECONDS} s"
    return not done.returncode, done.stdout + done.stderr


def tried(root: Path, module: str, old: str, new: str) -> dict:
    """Put a fault in and run the notebooks, one after the other, until one notices."""
    texts = faulty(root, module, old, new)
    before = {path: path.read_text(encoding="utf-8") for path in texts}
    page = list(texts)[1]
    for notebook in dict.fromkeys([page, *sorted(page.parent.glob("*properties*.ipynb"))]):
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        passed, said = run_page(root, notebook)
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")
        if not passed:
            if not run_page(root, notebook)[0]:
                sys.exit(f"{notebook.name} fails without any fault: it could not tell one.\n{said}")
            cell = re.search(r"While Executing Cell #(\d+)", said)
            errors = [line.strip() for line in said.splitlines() if "Error" in line]
            name = notebook.relative_to(root / "nbs").with_suffix("").as_posix()
            return dict(caught=True, page=name, cell=cell[1] if cell else "", said=errors[-1][:160])
    return dict(caught=False, page="", cell="", said="")


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("names", nargs="*", help="parts of the names of faults or modules; default all")
    parser.add_argument("--list", action="store_true", help="only see that each fault has its place")
    options = parser.parse_args()
    every = [(module, name, *pieces) for module, faults in FAULTS.items() for name, pieces in faults.items()]
    named = [fault for fault in every if any(part in " ".join(fault[:2]) for part in options.names or [""])]
    for module, name, *pieces in named:
        faulty(ROOT, module, *pieces)
        print(f"{module}: {name}" if options.list else "", end="\n" if options.list else "")
    if options.list:
        return 0
    sys.path.insert(0, str(ROOT))
    from pde_nb.core.seals import read_measurement, write_sealed

    lines = {line["name"]: line for line in read_measurement(RECORD)["mutants"]} if RECORD.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        without = shutil.ignore_patterns(".git", "__pycache__", ".venv", "runs", "_docs")
        root = Path(shutil.copytree(ROOT, Path(folder, "copy"), ignore=without))
        for module, name, old, new in named:
            line = dict(name=name, module=module, old=old, new=new) | tried(root, module, old, new)
            lines[name] = line | dict(date=datetime.now(timezone.utc).date().isoformat())
            known = [lines[other] for _, other, *_ in every if other in lines]
            write_sealed(RECORD, dict(command="python tools/mutants.py", mutants=known))
            print(f"{name} ({module}): {line['page'] or 'NOT CAUGHT'} {line['said']}", flush=True)
    escaped = [name for _, name, *_ in named if not lines[name]["caught"]]
    print(f"{len(named) - len(escaped)} of {len(named)} caught; not caught: {escaped or 'none'}")
    return int(len(escaped) > 2)


if __name__ == "__main__":
    sys.exit(main())
