"""The whole test run: `nbdev_test` over the notebooks, and what it does not look at.

    python tools/check.py                        # everything
    python tools/check.py 02_algorithm lint      # notebooks whose path has this in it, and checks by name
    python tools/check.py --flags slow data      # also the cells with these flags

Checks: export (the notebooks give the library, and are clean), lint and format (ruff), imports (the order
of the packages, by import-linter), readme, weight, site (the strict build: links and anchors). The
last line says how many passed; the exit status is 0 only where something ran and nothing failed.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import weight

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
QUIET = dict(TQDM_DISABLE="1", MPLBACKEND="agg", PYTHONWARNINGS="ignore:::nbdev,ignore:resource_tracker")
QUIET |= dict(OMP_NUM_THREADS="1", TORCH_CPP_LOG_LEVEL="ERROR", HF_HUB_OFFLINE="1")  # no hub is asked
PATHS = dict(PYTHONPATH=str(ROOT), PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}")


def run(*command, show=False):
    """Run a program of this environment in the project; what it printed, and whether it succeeded."""
    how = dict(cwd=ROOT, env=os.environ | QUIET | PATHS, text=True, encoding="utf-8", errors="replace")
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = []
    with subprocess.Popen([str(BIN / command[0]), *command[1:]], **how, **pipes) as process:
        for line in process.stdout:
            said.append(line)
            if show:
                print(line, end="", flush=True)
    return "".join(said), process.returncode == 0


def asked(*command):
    """A check that passes where a program does."""
    return lambda: run(*command)


def digest():
    """One number for all notebooks, modules and what nbdev writes beside them."""
    files = [*ROOT.glob("nbs/**/*.ipynb"), *ROOT.glob("pde_nb/**/*.py"), ROOT / "pyproject.toml"]
    return {str(f.relative_to(ROOT)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files if f.exists()}


def check_export():
    """Exporting and cleaning the notebooks change nothing; no module is left that none exports."""
    before = digest()
    said = [run(name)[0] for name in ("nbdev_export", "nbdev_clean")]
    after = digest()
    lines = [f"{name} was not what nbdev_export and nbdev_clean write; it is now: commit it"
             for name in before | after if before.get(name) != after.get(name)]  # fmt: skip
    exported = {name for text in map(Path.read_text, ROOT.glob("nbs/**/*.ipynb"))
                for name in re.findall(r"\| *default_exp ([\w.]+)", text)}  # fmt: skip
    for path in ROOT.glob("pde_nb/**/*.py"):
        name = ".".join(path.relative_to(ROOT / "pde_nb").with_suffix("").parts)
        if not path.stem.startswith("_") and name not in exported:
            lines.append(f"{path.relative_to(ROOT)} is exported by no notebook; delete it")
    return "\n".join([*lines, *(filter(None, said) if lines else ())]), not lines


CHECKS = {
    "export": check_export,
    "lint": asked("ruff", "check", "nbs", "tools", "benchmarks", "docs", "setup.py"),
    "format": asked("ruff", "format", "--check", "--quiet", "nbs", "tools", "benchmarks", "docs", "setup.py"),
    "imports": asked("lint-imports"),
    "readme": asked("python", "tools/readme.py", "--check"),
    "weight": lambda: ("\n".join(found := weight.faults()), not found),
    "site": lambda: run("python", "tools/docs.py", "--strict", "--output", tempfile.mkdtemp()),
}


def fails(name):
    """Whether a check fails; it prints what came of it."""
    said, good = CHECKS[name]()
    lines = [] if good else [f"  | {line}" for line in said.splitlines()[-60:]]
    print("\n".join([f"{name:<8} {'ok' if good else 'FAILED'}", *lines]), flush=True)
    return not good


def notebooks(names):
    """The notebooks whose path below nbs/ has one of these in it; all where nothing is named."""
    paths = sorted(path.relative_to(ROOT / "nbs").as_posix() for path in (ROOT / "nbs").rglob("*.ipynb"))
    paths = [path for path in paths if not any(part.startswith((".", "_")) for part in path.split("/"))]
    return [path for path in paths if not names or any(name.removeprefix("nbs/") in path for name in names)]


def test_notebooks(paths, everything, flags, workers):
    """Run notebooks with `nbdev_test`, which shows what fails; how many failed."""
    command = ["nbdev_test", "--n_workers", str(workers), *(["--flags", " ".join(flags)] if flags else [])]
    if everything:
        return count_failed(*run(*command, show=True))
    failed = 0
    for path in paths:  # nbdev_test takes a folder or one notebook
        print(path, flush=True)
        failed += count_failed(*run(*command, "--path", f"nbs/{path}", show=True))
    return failed


def count_failed(said, good):
    """How many notebooks `nbdev_test` names as failed."""
    _, _, names = said.partition("nbdev Tests Failed On The Following Notebooks:")
    return 0 if good else max(1, len(re.findall(r"\.ipynb", names)))


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("names", nargs="*", help="notebooks and checks; default: all")
    parser.add_argument("--flags", nargs="+", default=[], metavar="FLAG", help="also run cells flagged so")
    parser.add_argument(
        "-j", "--jobs", type=int, default=min(4, os.cpu_count() or 1), help="processes at a time"
    )
    options = parser.parse_args()
    checks = [name for name in CHECKS if not options.names or name in options.names]
    named = [name for name in options.names if name not in CHECKS]
    paths = notebooks(named) if named or not options.names else []
    if named and not paths:
        parser.error(
            f"no notebook has {' or '.join(named)} in its path, and the checks are {', '.join(CHECKS)}"
        )
    began = time.monotonic()
    failed = "export" in checks and fails("export")  # it may write what the others read
    with ThreadPoolExecutor(1) as beside:  # the notebooks
        found = beside.map(fails, [name for name in checks if name != "export"])
        if paths:
            failed += test_notebooks(paths, not named, options.flags, options.jobs)
    failed += sum(found)
    total = len(checks) + len(paths)
    print(f"\n{total - failed} passed, {failed} failed, in {time.monotonic() - began:.0f} s")
    return 0 if total and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
