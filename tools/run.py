"""Set up a virtual environment and run pde_nb in it, from a plain Python.

    python3 tools/run.py COMMAND [its options]    does `pde COMMAND`, as train, compare or report
    python3 tools/run.py test [options of tools/check.py]

The environment is .venv, or the folder that PDE_VENV names. It is made on first use and
brought up to date when settings.ini, setup.py, pyproject.toml or constraints.txt change.
"""

# Only the standard library is used, and nothing that Python 3.6 cannot parse: an old Python is to
# say what is wrong, not to stop at a syntax error.

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INPUTS = ("settings.ini", "setup.py", "pyproject.toml", "constraints.txt")  # what decides what is installed
COMMANDS = "train predict eval data report reproduce diagnose compare methods test".split()
OLDEST = (3, 10)
VERSION = ".".join(map(str, sys.version_info[:3]))


def check_python():
    """End the program where this Python is too old or cannot make virtual environments."""
    if sys.version_info < OLDEST:
        sys.exit(
            f"error: pde_nb needs Python 3.10 or newer and this is {VERSION} ({sys.executable}).\n"
            "Run the same line with a newer Python, for example: python3.12 tools/run.py test"
        )
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(
            f"error: this Python ({sys.executable}) lacks {' and '.join(missing)}, so it cannot make an "
            f"environment.\nOn Debian or Ubuntu: sudo apt install python{VERSION.rpartition('.')[0]}-venv\n"
            "Elsewhere: install Python from python.org, Homebrew, conda or pyenv and run the line with it."
        )


def program(venv, name):
    """The path of a program of an environment."""
    return str(venv / "Scripts" / f"{name}.exe" if os.name == "nt" else venv / "bin" / name)


def works(venv):
    """Whether an environment is one of this version of Python, with pip."""
    code = f"import pip, sys; sys.exit(sys.version_info[:3] != {sys.version_info[:3]!r})"
    try:
        return (
            subprocess.run([program(venv, "python"), "-c", code], stderr=subprocess.DEVNULL).returncode == 0
        )
    except OSError:
        return False


def call(command, failure):
    """Run a command; end the program with its exit status where it fails."""
    status = subprocess.run(command, cwd=str(ROOT)).returncode
    if status:
        print(f"error: {failure} (exit status {status} of: {' '.join(command)})", file=sys.stderr)
        sys.exit(status)


def make_environment(venv, ours):
    """Make an environment in a folder that is empty, or that an earlier call of this has made."""
    if venv.exists() and not (ours or (venv.is_dir() and not any(venv.iterdir()))):
        sys.exit(
            f"error: {venv} is no environment of Python {VERSION} with pip, and was made by other means: "
            "delete it, run with its Python, or name another place in PDE_VENV."
        )
    if Path(sys.prefix).resolve() == venv.resolve():
        sys.exit(f"error: {venv} has to be made afresh, while its own Python runs: type `deactivate` first")
    shutil.rmtree(str(venv), ignore_errors=True)
    venv.mkdir(parents=True)
    (venv / "pde_nb-setup.json").write_text("{}")  # ours, from its first moment on
    call([sys.executable, "-m", "venv", str(venv)], "the environment could not be made")


def set_up(venv, extra):
    """Make an environment hold this project with an extra; nothing is done where it does already."""
    digest = hashlib.sha256(b"\0".join((ROOT / name).read_bytes() for name in INPUTS)).hexdigest()
    wanted = {"python": VERSION, "root": str(ROOT), "inputs": digest}
    stamp = venv / "pde_nb-setup.json"
    try:
        done = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        done = {}
    wanted["extras"] = sorted({extra, *done.get("extras", ())})
    if done == wanted and os.path.exists(program(venv, "pde")):
        return
    print(f"Setting up {venv} with Python {VERSION}", flush=True)
    if not works(venv):
        make_environment(venv, stamp.exists())
    pip = [program(venv, "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    call(
        [*pip, "-c", "constraints.txt", "-e", f".[{','.join(wanted['extras'])}]"],
        "pip could not install pde_nb; its own message is above. Check the network connection and the free "
        "disk space,\nthen run the same line again: it goes on from there",
    )
    stamp.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")


def replace_process(command):
    """Go on as a command; on Windows, which cannot, wait for it and return its exit status."""
    if os.name == "nt":
        return subprocess.call(command)
    return os.execv(command[0], command)


def main(args):
    if not args or args[0] not in COMMANDS:
        known = not args or args[0] in ("-h", "--help")
        print(
            __doc__.strip()
            if known
            else f"error: unknown command {args[0]!r}: say one of {', '.join(COMMANDS)}"
        )
        return 0 if args and known else 2
    check_python()
    venv = Path(os.environ.get("PDE_VENV") or ROOT / ".venv").expanduser().absolute()
    set_up(venv, "dev" if args[0] == "test" else "train")
    tests = [program(venv, "python"), str(ROOT / "tools" / "check.py"), *args[1:]]
    command = tests if args[0] == "test" else [program(venv, "pde"), *args]
    return replace_process(command)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)
