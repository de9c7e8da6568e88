"""The whole test run: every notebook, and checks of what is made from the notebooks.

    python tools/check.py [names] [--flags slow data gpu] [-j 4] [--list]

Each notebook and each check counts as one test. The last line is `N passed, N failed`, with
`, N skipped` where cells said that they lack their data. The exit status is 0 only where
something ran and nothing failed.
"""

import argparse
import ast
import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from configparser import ConfigParser
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from pathlib import Path

import project
import release
import security
import weight

ROOT = Path(__file__).resolve().parent.parent
TIMES = ROOT / ".check_times.json"

# Modules that a base install can import, and what importing them must not bring in.
BASE_MODULES = (
    *(
        "core.arguments",
        "core.checks",
        "core.statistics",
        "core.files",
        "core.style",
        "core.tables",
        "core.paper",
    ),
    *("algorithm.groups", "algorithm.metrics", "algorithm.expansion", "algorithm.pacing"),
    *("theory.data_model", "theory.network", "theory.dynamics", "theory.noise_bounds"),
    *("theory.learning_times", "theory.warmup_times", "theory.experiment", "theory.experiment_table"),
    *("phase.phase_plane", "phase.phase", "phase.phase_record", "proofs.early_stage", "proofs.claims"),
    *("sources.examples", "sources.splits", "sources.data", "sources.tables"),
    *(
        "sources.hubs",
        "published.published",
        "published.download",
        "published.archives",
        "published.published_check",
        "published.published_fetch",
    ),
    *("training.selection", "console.program", "cli.shell", "cli.entry", "cli_data.data"),
)
HEAVY_MODULES = ("torch", "torchvision", "transformers", "sklearn", "matplotlib.pyplot")

# nbdev goes on, with a UserWarning, past a notebook that it cannot clean or export.
NBDEV_WARNINGS = ("-W", "ignore", "-W", "always::UserWarning")

# What most notebooks import, and what takes seconds: imported once, before any of them begins.
PACKAGES = (
    *("nbdev.test", "IPython", "fastcore.all", "numpy", "scipy.stats", "pandas", "matplotlib.pyplot"),
    *("sklearn.linear_model", "sklearn.metrics", "torch", "torch._dynamo"),
)

QUIET = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "PYTHONIOENCODING": "utf-8",
}


@dataclass(frozen=True)
class Outcome:
    """What one test came to. `ok` is None where there was nothing to run."""

    ok: bool | None
    detail: str = ""  # why it failed
    skipped: tuple[str, ...] = ()  # what cells said that they skipped
    note: str = ""


def settings(root=ROOT):
    parser = ConfigParser(delimiters=["="])
    parser.read(root / "settings.ini", encoding="utf-8")
    return parser["DEFAULT"]


CFG = settings()
LIB = CFG["lib_path"]
NBS = CFG["nbs_path"]


def quiet_environment():
    """The environment of a process of the tests."""
    return {name: value for name, value in os.environ.items() if name != "IN_TEST"} | QUIET


def python(*args, cwd=ROOT):
    """Run this Python in a fresh process; its output is captured as text."""
    return subprocess.run(
        [sys.executable, *args],
        cwd=cwd,
        env=quiet_environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )


def said(done):
    """All that a finished process printed."""
    return "\n".join(text.strip() for text in (done.stdout, done.stderr) if text.strip())


# ---- notebooks ------------------------------------------------------------------------------


def notebooks(root=ROOT):
    """Paths below nbs/ of the notebooks, by nbdev's rule: no part of the path starts with `.` or `_`."""
    found = (path.relative_to(root / NBS) for path in (root / NBS).rglob("*.ipynb"))
    return sorted(path for path in found if not any(part.startswith((".", "_")) for part in path.parts))


def run_notebook(path, flags, report):
    """In a process of its own: test the notebook with nbdev, and write what happened to the file `report`."""
    import nbdev.test

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nbdev would take Ctrl-C for a failing cell
    skip = set(CFG["tst_flags"].split()) - set(flags)
    seen = {"needs": []}

    class Recorder(nbdev.test.CaptureShell):
        """The shell of nbdev, which forgets stored outputs and keeps the notebook in sight."""

        def run_all(self, notebook, *args, preproc, **kwargs):
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    cell.outputs = []

            def skips(cell):
                seen["needs"] += unmet_needs(cell)
                skipped = preproc(cell) or bool(seen["needs"])
                seen["cell"] = seen.get("cell") if skipped else cell
                return skipped

            seen["notebook"] = notebook
            return super().run_all(notebook, *args, preproc=skips, **kwargs)

    nbdev.test.CaptureShell = Recorder
    passed, _ = nbdev.test.test_nb(path, skip_flags=sorted(skip), do_print=False, basepath=str(ROOT))
    code = [cell for cell in seen["notebook"].cells if cell.cell_type == "code"] if "notebook" in seen else []
    flagged = [flag for cell in code for flag in sorted(skip & set(cell.directives_))]
    result = {
        "passed": bool(passed),
        "ran": seen.get("cell") is not None,
        "cell": "" if passed or not seen.get("cell") else seen["cell"].source,
        "skipped": [*filter(None, map(skip_line, code)), *(f"skipped: needs {one}" for one in seen["needs"])],
        "flagged": {flag: flagged.count(flag) for flag in flagged},
    }
    Path(report).write_text(json.dumps(result), encoding="utf-8")


def unmet_needs(cell):
    """What a cell and all below it need, as in `#| needs torch>=2.9`, that is not installed here."""
    from packaging.requirements import Requirement

    unmet = []
    for text in (getattr(cell, "directives_", None) or {}).get("needs", ()):
        wanted = Requirement(text)
        try:
            here = metadata.version(wanted.name)
        except metadata.PackageNotFoundError:
            here = "none"
        if here == "none" or not wanted.specifier.contains(here, prereleases=True):
            unmet.append(f"{text} (here {here})")
    return unmet


def skip_line(cell):
    """The first line that a cell printed with `skipped: ` in front; None where it printed none."""
    texts = ("".join(output.get("text", "")) for output in cell.outputs if output.get("name") == "stdout")
    return next((line for line in "".join(texts).splitlines() if line.startswith("skipped: ")), None)


FORKS = sys.platform == "linux"  # elsewhere a fork is unsafe, or there is none


def imported_once():
    """Import what nearly every notebook imports, nothing of ours. Then, for each request that comes, fork a
    process for a notebook and print its exit status. Returns in that process alone: path, report, flags."""
    for name in PACKAGES:
        with suppress(ImportError):
            import_module(name)
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
            os.dup2(sys.stdin.fileno(), 0)
            for number, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            return Path(request["path"]), request["report"], request["flags"]
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    sys.exit(0)


class Forks(threading.local):
    """Processes that have imported the packages, one for each thread; every notebook gets a fork of it."""

    def __init__(self):
        command = [sys.executable, __file__, "--imported-once"]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.process = subprocess.Popen(command, cwd=ROOT, env=quiet_environment(), **pipes)
        self.process.stdout.readline()

    def run(self, path, report, flags):
        """What became of a notebook in a process of its own, as `python` has it."""
        outputs = {name: str(report.with_suffix(f".{name}")) for name in ("stdout", "stderr")}
        request = dict(path=str(path), report=str(report), flags=list(flags), **outputs)
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        texts = [Path(name).read_text(encoding="utf-8", errors="replace") for name in outputs.values()]
        return subprocess.CompletedProcess([str(path)], status, *texts)


@cache
def forks():
    """Made once; each thread that asks it has a process of its own."""
    return Forks()


def run_apart(path, report, flags):
    """Run a notebook in a process of its own, in which nothing of ours is imported before it."""
    if not FORKS:
        return python(__file__, "--run-notebook", str(path), str(report), *flags)
    return forks().run(path, report, flags)


def test_notebook(path, flags):
    """Run a notebook from a clean start, as nbdev_test does."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        done = run_apart(ROOT / NBS / path, report, flags)
        if not report.exists():
            return Outcome(
                False,
                f"the process ended with status {done.returncode} before the notebook did\n{said(done)}",
            )
        result = json.loads(report.read_text(encoding="utf-8"))
    flagged = [f"{count} {flag}" for flag, count in sorted(result["flagged"].items())]
    note = f"cells left out: {', '.join(flagged)}" if flagged else ""
    skipped = tuple(result["skipped"])
    if not result["passed"]:
        cell = "\n".join(f"    {line}" for line in result["cell"].splitlines())
        return Outcome(
            False, f"the cell that failed:\n\n{cell}\n\n{said(done)}" if cell else said(done), skipped, note
        )
    if not result["ran"]:
        return Outcome(None, note=note or "no cell to run")
    return Outcome(True, "", skipped, note)


# ---- checks ---------------------------------------------------------------------------------


def scratch_copy(folder, *names):
    """Copy files and folders of the working tree that exist into `folder`."""
    for name in names:
        source, copy = ROOT / name, Path(folder, name)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__"))
        elif source.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
    return Path(folder)


def python_files(folder):
    """The text of each Python file below `folder`, by its path there."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.py"))
    }


def check_export():
    """Exporting the notebooks into an empty library gives the library of the working tree."""
    hand_written = [f"{LIB}/__init__.py", f"{LIB}/__main__.py"]
    with tempfile.TemporaryDirectory() as folder:
        copy = scratch_copy(folder, "settings.ini", "pyproject.toml", NBS, *hand_written)
        done = python(
            *NBDEV_WARNINGS,
            "-c",
            "from nbdev import doclinks; doclinks.nbdev_export.__wrapped__(procs=[])",
            cwd=copy,
        )
        if done.returncode or "UserWarning" in done.stderr:
            return Outcome(False, f"the notebooks cannot be exported\n{said(done)}")
        exported, present = python_files(copy / LIB), python_files(ROOT / LIB)
        lines = [
            f"{LIB}/{name} is not there, and a notebook exports it"
            for name in sorted(exported.keys() - present.keys())
        ]
        lines += [
            f"{LIB}/{name} is stale: no notebook exports it; delete it"
            for name in sorted(present.keys() - exported.keys())
        ]
        shared = sorted(exported.keys() & present.keys())
        lines += [
            f"{LIB}/{name} differs from what its notebook exports"
            for name in shared
            if exported[name] != present[name]
        ]
        if (copy / "pyproject.toml").read_text(encoding="utf-8") != read_or_empty(ROOT / "pyproject.toml"):
            lines.append("pyproject.toml differs from what nbdev_export writes")
    remedy = "edit the notebooks, not the modules, then run `nbdev_export` and commit both"
    return Outcome(not lines, "\n".join([*lines, remedy]) if lines else "")


def read_or_empty(path):
    return path.read_text(encoding="utf-8") if path.exists() else ""


def check_clean():
    """Cleaning the notebooks changes nothing; no stored output shows a temporary path, or an error."""
    with tempfile.TemporaryDirectory() as folder:
        copy = scratch_copy(folder, "settings.ini", NBS)
        done = python(
            *NBDEV_WARNINGS, "-c", "from nbdev import clean; clean.nbdev_clean.__wrapped__()", cwd=copy
        )
        if done.returncode or "UserWarning" in done.stderr:
            return Outcome(False, f"the notebooks cannot be cleaned\n{said(done)}")
        unclean = [
            path
            for path in notebooks()
            if read_or_empty(copy / NBS / path) != read_or_empty(ROOT / NBS / path)
        ]
    lines = [f"{NBS}/{path.as_posix()} is not clean" for path in unclean]
    if lines:
        lines.append("run `nbdev_clean` and commit what it changes")
    for path in notebooks():
        lines += [
            f"{NBS}/{path.as_posix()}:{cell} {TEMPORARY_SHOWN}" for cell in temporary_paths(ROOT / NBS / path)
        ]
        lines += [
            f"{NBS}/{path.as_posix()}:{cell} {ERROR_SHOWN}" for cell in stored_errors(ROOT / NBS / path)
        ]
    return Outcome(not lines, "\n".join(lines))


TEMPORARY_SHOWN = (
    "shows a temporary path, another one in every run: work in that folder (os.chdir), and name files alone"
)
ERROR_SHOWN = "shows an error, of a run from another folder perhaps: run the notebook in its own folder"


def stored_errors(path):
    """The ids of the cells of a notebook whose stored outputs hold an error that ended the cell."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if any(output["output_type"] == "error" for output in cell.get("outputs", [])):
            yield cell.get("id", "?")


def temporary_paths(path):
    """The ids of the cells of a notebook whose stored outputs, but for pictures, show a path below /tmp/."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        outputs = cell.get("outputs", [])
        texts = [output.get("text", output.get("traceback", "")) for output in outputs]
        texts += [
            text
            for output in outputs
            for kind, text in output.get("data", {}).items()
            if not kind.startswith("image/") or kind == "image/svg+xml"
        ]
        if any("/tmp/" in shown_text(text) for text in texts):
            yield cell.get("id", "?")


def shown_text(text):
    """The text of an output, without the data of pictures in it."""
    whole = text if isinstance(text, str) else "".join(map(str, text))
    return re.sub(r"data:[a-z]+/[a-z+.-]+;base64,[A-Za-z0-9+/=]+", "", whole)


def check_lint():
    """The code has the form that ruff.toml asks for; the modules have no undefined names."""
    places = [name for name in (NBS, "tools", "benchmarks", "docs", "setup.py") if (ROOT / name).exists()]
    # F722: jaxtyping's shapes are no expressions; F811: `patch` gives several classes a method of one name.
    modules = (
        "check",
        "--isolated",
        "--select",
        "F",
        "--ignore",
        "F722,F811",
        "--output-format",
        "concise",
        LIB,
    )
    asked = {
        ("-m", "ruff", *modules): "edit the notebook that the module is exported from",
        ("-m", "ruff", "format", "--diff", "--quiet", *places): "run `ruff format`",
        (
            "-m",
            "ruff",
            "check",
            "--output-format",
            "concise",
            *places,
        ): "run `ruff check --fix`, mend the rest",
    }
    lines = []
    for command, remedy in asked.items():
        done = python(*command)
        if done.returncode:
            lines += [said(done), f"remedy: {remedy}"]
        if "F821" in done.stdout:
            lines.append("For a shape of one word, put a space before it, as in Float[Array, ' n'].")
    return Outcome(not lines, "\n".join(lines))


def exporting_notebooks():
    """The module that each notebook names in `#| default_exp`, as {module: notebook path}."""
    modules = {}
    for path in notebooks():
        try:
            cells = json.loads((ROOT / NBS / path).read_text(encoding="utf-8"))["cells"]
        except (ValueError, KeyError):
            continue  # the notebook's own test says what is wrong
        for cell in cells:
            found = re.search(r"^\s*#\s*\|\s*default_exp\s+(\S+)", "".join(cell["source"]), re.MULTILINE)
            if cell["cell_type"] == "code" and found:
                modules[found[1]] = path
    return modules


def number(path):
    """The numbers that a notebook's folder and name start with, as a tuple; None where one has none."""
    found = [re.match(r"\d+", part) for part in path.parts]
    return tuple(int(match[0]) for match in found) if all(found) else None


def imported_modules(source, package):
    """The modules of the library that `source` may import, as (line, dotted name below the library)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = (
                ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level]) if node.level else ""
            )
            base = ".".join(filter(None, [base, node.module]))
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name[len(LIB) + 1 :]) for name in names if name.startswith(LIB + "."))


def owner(name, modules):
    """The module that the dotted `name` is, or is something in; None where there is none."""
    parts = name.split(".")
    return next(
        (known for end in range(len(parts), 0, -1) if (known := ".".join(parts[:end])) in modules), None
    )


def check_imports():
    """A numbered notebook's module imports only modules of notebooks before it: by folder, then by number."""
    modules, lines = exporting_notebooks(), []
    numbered = {module: number(path) for module, path in modules.items()}
    for module, path in sorted(modules.items()):
        file = ROOT / LIB / (module.replace(".", "/") + ".py")
        if numbered[module] is None or not file.exists():
            continue  # a missing file is what the export check is for
        package = ".".join([LIB, *module.split(".")[:-1]])
        for line, name in imported_modules(file.read_text(encoding="utf-8"), package):
            place, other = f"{file.relative_to(ROOT).as_posix()}:{line}", owner(name, modules)
            if other is None:
                if not name.startswith("_"):
                    lines.append(f"{place} imports {LIB}.{name}, which no notebook exports")
            elif other != module and (numbered[other] is None or numbered[other] >= numbered[module]):
                later = modules[other].as_posix()
                lines.append(f"{place} ({path.as_posix()}) imports {LIB}.{other}, of the later {later}")
    remedy = (
        "a notebook imports only from those before it: move the code down, or raise the notebook's number"
    )
    return Outcome(not lines, "\n".join([*lines, remedy]) if lines else "")


def relative_links(path):
    """The targets of the relative links in the prose of a notebook or of a Markdown file, without anchors."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        prose = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in prose)
    targets = re.findall(r"\]\(\s*<?([^)\s>#]+)", re.sub(r"`[^`\n]*`", "", text))
    return [target for target in targets if not re.match(r"[a-z][a-z0-9+.-]*:|//|/", target, re.IGNORECASE)]


def check_links():
    """What the prose links to is there."""
    pages = [ROOT / NBS / path for path in notebooks()]
    pages += sorted(
        path for folder in (".", "results", "benchmarks") for path in (ROOT / folder).glob("*.md")
    )
    lines = [
        f"{page.relative_to(ROOT).as_posix()} links to {target}, which is not there"
        for page in pages
        for target in relative_links(page)
        if not (page.parent / target).exists()
    ]
    return Outcome(not lines, "\n".join(lines))


def check_readme():
    """README.md is what nbs/index.ipynb gives."""
    done = python("tools/readme.py", "--check")
    return Outcome(done.returncode == 0, said(done))


CLAIMS_RECORD = "results/theory.json"
CLAIMS_REMEDY = f"run `pde theory --json {CLAIMS_RECORD}`, and the notebooks that show claims"

# Of the record: what the claims look like when shown, the digest of the code now, and the quick ones again.
CLAIMS_NOW = """
import json, sys
from pde_nb.cli.theory import claims_digest
from pde_nb.records.seals import read_measurement
from pde_nb.proofs.claims import LABELS, check_claim, show_claim
record = read_measurement(sys.argv[1])
quick = [claim['label'] for claim in record['claims'] if claim['seconds'] <= 1 and claim['label'] in LABELS]
shown = [show_claim(claim) for claim in record['claims']]
found = [check_claim(label) for label in quick]
print(json.dumps(dict(record=record, digest=claims_digest(), labels=LABELS, shown=shown, quick=found)))
"""


def without_rounding(text):
    """Text in which numbers that are only rounding, below 1e-9, are all the same."""
    return re.sub(r"\d(?:\.\d+)?e-[1-9]\d", "0", text)


def wording(claim):
    """What a claim's record says, without its numbers."""
    parts = (claim[key] for key in ("verdict", "statement", "checked", "measured", "detail"))
    words = re.sub(r"[-−]?\d[\d.,e-]*", "#", " ".join(parts))
    return words, claim["printed"], claim["restated"]


def output_text(path):
    """All text in the stored outputs of a notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    texts = [output.get("text", output.get("data", {}).get("text/plain", "")) for output in outputs]
    return "\n".join("".join(text) for text in texts)


def stale_claims(claims, shown, text):
    """The labels of claims that a text shows otherwise than they are, in full or as a row of the table."""
    for claim, whole in zip(claims, shown):
        head = f"{claim['label']}  [{claim['kind']}]  "
        n_shown = len(re.findall(f"^{re.escape(head)}", text, re.MULTILINE))
        row = rf"^{re.escape(claim['label'])} +{re.escape(claim['kind'])} +"
        n_rows = len(re.findall(row, text, re.MULTILINE))
        same = without_rounding(text).count(without_rounding(whole))
        if same < n_shown or len(re.findall(f"{row}{claim['verdict']} ", text, re.MULTILINE)) < n_rows:
            yield claim["label"]


def check_claims():
    """The recorded claims are of the code as it is, and notebooks show them as they are recorded."""
    done = python("-c", CLAIMS_NOW, CLAIMS_RECORD)
    if done.returncode:
        return Outcome(False, said(done))
    now = json.loads(done.stdout)
    record, claims = now["record"], now["record"]["claims"]
    by_label = {claim["label"]: claim for claim in claims}
    lines = []
    if record.get("digest") != now["digest"]:
        lines.append(f"{CLAIMS_RECORD} was made by other code of the claims")
    if list(by_label) != now["labels"]:
        lines.append(f"{CLAIMS_RECORD} has other claims than the code")
    for claim in now["quick"]:
        if wording(claim) != wording(by_label[claim["label"]]):
            lines.append(f"{claim['label']}: {CLAIMS_RECORD} does not say what the code finds now")
    for path in notebooks():
        stale = stale_claims(claims, now["shown"], output_text(ROOT / NBS / path))
        lines += [f"{path.as_posix()} shows {label} otherwise than {CLAIMS_RECORD}" for label in stale]
    note = f"{len(now['quick'])} of {len(claims)} run again"
    return Outcome(not lines, "\n".join([*lines, CLAIMS_REMEDY]) if lines else "", note=note)


def check_import():
    """The modules of the base install import without the large libraries."""
    names = [LIB, *(f"{LIB}.{module}" for module in BASE_MODULES)]
    code = (
        f"import sys, {', '.join(names)}\nprint(*(name for name in {HEAVY_MODULES!r} if name in sys.modules))"
    )
    done = python("-c", code)
    if done.returncode:
        return Outcome(False, said(done))
    heavy = done.stdout.split()
    advice = "import it inside the function that needs it; `python -X importtime -c 'import ...'` finds it"
    lines = [f"importing {', '.join(BASE_MODULES)} brings in {', '.join(heavy)}", advice]
    return Outcome(not heavy, "\n".join(lines) if heavy else "")


DOOR = """
import inspect, sys, pde_nb
large = {'numpy', 'torch', 'matplotlib', 'pandas', 'scipy'}
heavy = sorted(large & {name.split('.')[0] for name in sys.modules})
print(*(f'import pde_nb brings in {name}' for name in heavy), sep='\\n')
for name in pde_nb.__all__:
    thing = getattr(pde_nb, name)
    if not inspect.getdoc(thing): print(f'pde_nb.{name} has no docstring')
    if name not in dir(pde_nb): print(f'dir(pde_nb) lacks {name}')
    if inspect.ismodule(thing): print(f'pde_nb.{name} is a module, not what its name promises')
if not 20 <= len(pde_nb.__all__) <= 40: print(f'{len(pde_nb.__all__)} names; 20 to 40 are meant')
"""


def check_door():
    """`import pde_nb` is light; every name that it offers is there, documented, and shown by dir()."""
    done = python("-c", DOOR)
    return Outcome(not done.returncode and not done.stdout.strip(), said(done))


def write_small_raw(folder):
    """Small files in the form of the raw ones that tools/prepare.py reads."""
    import numpy as np

    person = "39, ?, 77516, Bachelors, 13, Never-married, Sales, Husband, White, {}, 0, 0, 40, Cuba, {}{}\n"
    groups = [(sex, income) for sex in ("Female", "Male") for income in ("<=50K", ">50K")]
    (folder / "adult.data").write_text("".join(10 * [person.format(*group, "") for group in groups]) + "\n")
    (folder / "adult.test").write_text(
        "|a remark\n" + "".join(2 * [person.format(*group, ".") for group in groups])
    )
    pairs = [("Some bird isn't seen", "CONTRADICTION"), ('"A knot', "CONTRADICTION"), ("None", "NEUTRAL")]
    lines = ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"]
    lines += [f"{i}\tA bird\t{pair[0]}\t3\t{pair[1]}\n" for i, pair in enumerate(10 * pairs)]
    for part in ("train", "trial", "test_annotated"):
        (folder / f"SICK_{part}.txt").write_text("".join(lines))
    digits = np.arange(1230) % 10
    shapes = np.full((1230, 28, 28), 255, np.uint8)
    np.savez(folder / "mnist.npz", x_train=shapes, y_train=digits, x_test=shapes[:100], y_test=digits[:100])


def prepared_counts(folder):
    """Sizes of splits and groups in what tools/prepare.py wrote."""
    import csv
    from collections import Counter

    import numpy as np

    counts = {}
    for name, label, attribute in (("adult", "income", "sex"), ("sick", "contradiction", "negation")):
        with open(folder / f"{name}.csv", encoding="utf-8", newline="") as file:
            counts[name] = Counter((row["split"], row[label], row[attribute]) for row in csv.DictReader(file))
    with np.load(folder / "coloured.npz") as file:
        x, y, colour, split = (file[name] for name in ("x", "y", "colour", "split"))
    shades = x.max((2, 3))
    counts["digits"] = np.bincount(split).tolist(), x.shape, str(x.dtype), len(np.unique(shades, axis=0))
    counts["own colour"] = [float((y == colour)[split == code].mean().round(1)) for code in range(3)]
    counts["other colours"] = len(np.unique((colour - y)[split == 1] % 10))
    counts["one shade a colour"] = all(len(np.unique(shades[colour == c], axis=0)) == 1 for c in range(10))
    return counts


PREPARED = {
    "adult": {
        (split, income, sex): size
        for split, size in (("train", 8), ("val", 2), ("test", 2))
        for income in ("<=50K", ">50K")
        for sex in ("Female", "Male")
    },
    "sick": {
        (split, *group): size
        for split, size in (("train", 14), ("val", 6), ("test", 10))
        for group in (("yes", "yes"), ("yes", "no"), ("no", "yes"))
    },
    "digits": ([1025, 205, 100], (1330, 3, 28, 28), "uint8", 10),
    "own colour": [0.9, 0.1, 0.1],
    "other colours": 10,
    "one shade a colour": True,
}


def check_prepare():
    """tools/prepare.py gives the splits and groups that small raw files imply, and names a missing file."""
    outputs = {"adult": "adult.csv", "sick": "sick.csv", "coloured_mnist": "coloured.npz"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_small_raw(folder)
        for command, out in outputs.items():
            more = ["--agree", "0.9"] if command == "coloured_mnist" else []
            done = python("tools/prepare.py", command, "--raw", name, "--out", str(folder / out), *more)
            if done.returncode or "warning: " not in done.stderr:
                return Outcome(
                    False, f"{command} failed, or took small files for the real ones\n{said(done)}"
                )
        got = prepared_counts(folder)
        lines = [f"{key}: {got[key]}, not {wanted}" for key, wanted in PREPARED.items() if got[key] != wanted]
        (folder / "adult.test").unlink()
        done = python("tools/prepare.py", "adult", "--raw", name, "--out", str(folder / "other.csv"))
        if done.returncode != 1 or "adult.test" not in done.stderr or (folder / "other.csv").exists():
            lines.append(f"a missing raw file is not refused\n{said(done)}")
    return Outcome(not lines, "\n".join(lines))


def agreement(find):
    """A check that passes where a function names no fault."""

    def check():
        lines = find()
        return Outcome(not lines, "\n".join(lines))

    check.__doc__ = find.__doc__
    return check


# A page with one of each fault that docs/faults.py knows, and the words that name it.
BAD_PAGE = """<p>if $x > 0$ then <code>echo $HOME</code>, see <a href="gone.html">this</a> and
<a href="#nowhere">that</a></p><img src="x.png"><script src="https://example.org/x.js"></script>"""
BAD_PAGE_FAULTS = ("equation", "gone.html", "#nowhere", "alternative text", "example.org", "description")
FAULTS_OF = (
    "import sys; sys.path.append('docs'); import faults; print(*faults.faults(sys.argv[1]), sep='\\n')"
)


def check_site():
    """The documentation site builds without a warning; links, equations, pictures and the lists of parameters
    are whole."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bad.html").write_text(BAD_PAGE, encoding="utf-8")
        found = python("-c", FAULTS_OF, folder).stdout
        unseen = [words for words in BAD_PAGE_FAULTS if words not in found]
        if unseen or "HOME" in found:
            return Outcome(False, f"docs/faults.py does not see {unseen} of a bad page, or too much\n{found}")
        done = python("tools/docs.py", "--strict", "--output", str(Path(folder, "site")))
    return Outcome(done.returncode == 0, said(done))


def check_faults():
    """Every fault of tools/mutants.py has its place in the code, once, and its notebooks are there."""
    done = python("tools/mutants.py", "--list")
    return Outcome(done.returncode == 0, "" if done.returncode == 0 else said(done))


def relative_targets(markdown):
    """What a text in Markdown links to or shows, outside code, that is no full address."""
    text = re.sub(r"^```.*?^```|(`+)(?!`).*?(?<!`)\1(?!`)", "", markdown, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", text) + re.findall(r"(?:src|href)=[\"']([^\"']+)", text)
    return [target for target in targets if not re.match(r"[a-z][a-z0-9+.-]*:|#", target, re.IGNORECASE)]


def archive_faults(out):
    """What is wrong with the archives in the folder `out`: files that are missing or too many, dead links."""
    with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
        described = wheel.read(next(name for name in wheel.namelist() if name.endswith("/METADATA"))).decode()
    modules = {path for path in release.tracked() if path.startswith(f"{LIB}/")}
    lines = [f"the wheel lacks {name}" for name in sorted(modules - packed)]
    lines += [f"the wheel has {name}, which is no module" for name in sorted(packed - modules)]
    with tarfile.open(next(out.glob("*.tar.gz"))) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    wanted = {path for path in release.tracked() if path.startswith((f"{LIB}/", "examples/", "benchmarks/"))}
    wanted |= {
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "SECURITY.md",
        "settings.ini",
        "setup.py",
    }
    lines += [f"the source archive lacks {name}" for name in sorted(wanted - names)]
    text = described.partition("\n\n")[2]
    lines += [f"the package page would link to {target}" for target in relative_targets(text)]
    if len(re.findall(r"\]\(", text)) != len(re.findall(r"\]\(", (ROOT / "README.md").read_text("utf-8"))):
        lines.append("the package page has other links than README.md")
    return lines


def check_package():
    """Two builds give the same bits; the archives are complete; the package page has no relative link."""
    if not release.git("rev-parse", "--git-dir"):
        return Outcome(None, note="no git checkout")
    with tempfile.TemporaryDirectory() as folder:
        once, again = Path(folder, "once"), Path(folder, "again")
        try:
            made = [release.build(out) for out in (once, again)]
        except release.ReleaseError as error:
            return Outcome(False, str(error))
        lines = archive_faults(once)
    if made[0] != made[1]:
        lines.append(f"two builds differ: {made[0]} and {made[1]}")
    return Outcome(not lines, "\n".join(lines), note=f"{len(made[0])} archives, built twice")


CHECKS = {
    "export": check_export,
    "clean": check_clean,
    "lint": check_lint,
    "imports": check_imports,
    "links": check_links,
    "readme": check_readme,
    "claims": check_claims,
    "import": check_import,
    "door": check_door,
    "prepare": check_prepare,
    "site": check_site,
    "package": check_package,
    "security": agreement(security.all_faults),
    "versions": agreement(project.version_faults),
    "commands": agreement(project.command_faults),
    "workflows": agreement(project.workflow_faults),
    "pythons": agreement(project.python_faults),
    "faults": check_faults,
    "weight": agreement(weight.faults),
}
SLOW_CHECKS = ("site", "claims")  # which take as long as a notebook


# ---- the run --------------------------------------------------------------------------------


def all_tests(flags):
    """Every test by its name: a notebook's path below nbs/ without suffix, or a check's name."""
    tests = {
        path.with_suffix("").as_posix(): lambda path=path: test_notebook(path, flags) for path in notebooks()
    }
    return {**tests, **CHECKS}


def chosen(tests, names):
    """The tests that `names` ask for: one of exactly that name, else those whose names contain it."""
    wanted = set()
    for name in names:
        plain = name.removeprefix(f"{NBS}/").removesuffix(".ipynb")
        hits = {plain} if plain in tests else {test for test in tests if plain in test}
        if not hits:
            raise SystemExit(f"no test is called {name!r}; there are: {', '.join(tests)}")
        wanted |= hits
    return {name: test for name, test in tests.items() if name in wanted or not names}


def known_times():
    try:
        return json.loads(TIMES.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def keep_times(times):
    temporary = TIMES.with_suffix(".tmp")
    temporary.write_text(json.dumps(times, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(temporary, TIMES)


def timed(test):
    start = time.monotonic()
    try:
        outcome = test()
    except Exception as error:  # a check that breaks has failed, and the others go on
        outcome = Outcome(False, f"the check itself broke: {type(error).__name__}: {error}")
    return outcome, time.monotonic() - start


def report(name, outcome, seconds):
    word = {True: "ok", False: "FAILED", None: "nothing to run"}[outcome.ok]
    notes = [text for text in (outcome.note, *outcome.skipped) if text]
    print(f"{name:<28} {word:<7} {seconds:6.1f} s" + (f"  ({'; '.join(notes)})" if notes else ""), flush=True)
    if outcome.ok is False:
        print("\n".join(f"  | {line}" for line in outcome.detail.splitlines()), flush=True)


def run_tests(tests, workers):
    """Run the tests, the longest first, and report each as it ends."""
    times = known_times()
    quick = CHECKS.keys() - set(SLOW_CHECKS)
    order = sorted(tests, key=lambda name: -times.get(name, 0 if name in quick else 1e9))
    outcomes = {}
    pool = ThreadPoolExecutor(workers)
    try:
        futures = {pool.submit(timed, tests[name]): name for name in order}
        for future in as_completed(futures):
            name = futures[future]
            outcomes[name], times[name] = future.result()
            report(name, outcomes[name], times[name])
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    keep_times({name: round(seconds, 1) for name, seconds in times.items()})
    return outcomes


def summary(outcomes):
    counts = {
        word: sum(outcome.ok is value for outcome in outcomes.values())
        for word, value in (("passed", True), ("failed", False))
    }
    skipped = sum(len(outcome.skipped) for outcome in outcomes.values())
    line = f"{counts['passed']} passed, {counts['failed']} failed" + (
        f", {skipped} skipped" if skipped else ""
    )
    return line, counts["failed"] == 0 and counts["passed"] > 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", help="notebooks and checks to run, by name or a part of it (default: all)"
    )
    parser.add_argument(
        "--flags",
        nargs="+",
        default=[],
        metavar="FLAG",
        help="also run cells with these flags: slow, data, gpu",
    )
    parser.add_argument(
        "-j",
        "--jobs",
        type=int,
        default=min(4, os.cpu_count() or 1),
        help="processes at a time, of 1.5 GB at most (default: one for each core, up to 4)",
    )
    parser.add_argument("--list", action="store_true", help="name the tests and run none")
    options = parser.parse_args()
    unknown = sorted(set(options.flags) - set(CFG["tst_flags"].split()))
    if unknown:
        parser.error(
            f"unknown flag {', '.join(unknown)}: the flags are {CFG['tst_flags']}; "
            "write test names before --flags"
        )
    if options.jobs < 1:
        parser.error(f"-j must be at least 1, not {options.jobs}")
    tests = chosen(all_tests(options.flags), options.names)
    if options.list:
        print("\n".join(tests))
        return 0
    outcomes = run_tests(tests, options.jobs)
    failed = [name for name, outcome in outcomes.items() if outcome.ok is False]
    if failed:
        print(f"\nFailed: {', '.join(sorted(failed))}")
    line, good = summary(outcomes)
    sys.stderr.flush()
    print(f"\n{line}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run-notebook"]:
        sys.path.pop(0)  # the tools are not the project's modules
        run_notebook(Path(sys.argv[2]), sys.argv[4:], sys.argv[3])
        sys.exit(0)
    if sys.argv[1:] == ["--imported-once"]:
        sys.path.pop(0)
        notebook, record, asked = imported_once()
        run_notebook(notebook, asked, record)
        gc.freeze()  # else the end looks for cycles in every package, and copies each page of them
        sys.exit(0)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        os._exit(130)
