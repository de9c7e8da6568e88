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
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INPUTS = ("settings.ini", "setup.py", "pyproject.toml", "constraints.txt")
OLDEST = (3, 10)
COMMANDS = "train predict eval data report reproduce diagnose compare methods test".split()


class SetupError(Exception):
    """A set-up that cannot go on: what went wrong and the remedy, and the exit status."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


def check_python():
    """Raise SetupError where this Python is too old or cannot make virtual environments."""
    if sys.version_info < OLDEST:
        raise SetupError(
            f"pde_nb needs Python 3.10 or newer and this is {sys.version.split()[0]} ({sys.executable}).\n"
            "Run the same line with a newer Python, for example: python3.12 tools/run.py test"
        )
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        raise SetupError(
            f"this Python ({sys.executable}) lacks {' and '.join(missing)}, "
            "so it cannot make a virtual environment.\n"
            f"On Debian or Ubuntu: sudo apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv\n"
            "Elsewhere: install Python from python.org, Homebrew, conda or pyenv and run the line with it."
        )


def venv_program(venv, name):
    """The path of a program in the environment `venv`."""
    return venv / "Scripts" / f"{name}.exe" if os.name == "nt" else venv / "bin" / name


def this_python():
    """What identifies the Python that environments are made from."""
    return f"{sys.version.split()[0]} in {os.path.realpath(sys.base_prefix)}"


def inputs_digest():
    """A digest of the files that decide what is installed."""
    digest = hashlib.sha256()
    for name in INPUTS:
        path = ROOT / name
        digest.update(name.encode() + b"\0" + (path.read_bytes() if path.exists() else b"missing") + b"\0")
    return digest.hexdigest()


def stamp_path(venv):
    return venv / "pde_nb-setup.json"


def read_stamp(venv):
    """The record of the last set-up of `venv`; {} where none was left, or it cannot be read."""
    try:
        stamp = json.loads(stamp_path(venv).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(venv, **stamp):
    temporary = stamp_path(venv).with_suffix(".tmp")
    temporary.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, stamp_path(venv))


def wanted_stamp(extras):
    return {
        "state": "ready",
        "python": this_python(),
        "root": str(ROOT),
        "inputs": inputs_digest(),
        "extras": sorted(extras),
    }


def is_ready(venv, stamp, wanted):
    """Whether `venv` holds what is wanted, more extras included."""
    same = all(stamp.get(key) == wanted[key] for key in ("state", "python", "root", "inputs"))
    complete = set(wanted["extras"]) <= set(stamp.get("extras", ()))
    present = all(venv_program(venv, name).exists() for name in ("python", "pde"))
    return same and complete and present


def runs(venv, *args):
    """Whether the environment's Python ends with status 0 on these arguments."""
    try:
        done = subprocess.run(
            [str(venv_program(venv, "python")), *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError:
        return False
    return done.returncode == 0


def has_pip(venv):
    return runs(venv, "-m", "pip", "--version")


def same_version(venv):
    return runs(venv, "-c", f"import sys; sys.exit(sys.version_info[:3] != {tuple(sys.version_info[:3])})")


def holds_files(folder):
    return any(path.is_file() or path.is_symlink() for path in folder.rglob("*"))


def remove_unusable(venv, stamp):
    """Delete an environment that cannot be built on. One that this script did not make and that works is
    kept.
    """
    if not venv.is_dir():
        if venv.exists() or venv.is_symlink():
            raise SetupError(f"{venv} is not a folder: move it away, or name another place in PDE_VENV")
        return
    ours = stamp.get("made", False)
    if runs(venv, "-c", ""):
        unfinished = stamp.get("state") == "installing" or not has_pip(venv)
        if same_version(venv) and not (ours and unfinished):
            return
        if not ours:
            raise SetupError(
                f"{venv} is an environment of another Python than this one ({this_python()}), "
                "made by other means.\n"
                "Delete it, run with its Python, or name another place in PDE_VENV."
            )
    elif not (ours or (venv / "pyvenv.cfg").is_file() or not holds_files(venv)):
        raise SetupError(
            f"{venv} is a folder of files and no virtual environment: name another place in PDE_VENV"
        )
    inside = Path(sys.prefix).resolve() == venv.resolve()
    if inside:
        raise SetupError(
            f"{venv} has to be made afresh and cannot be while its own Python runs this: type "
            "`deactivate` first"
        )
    print(f"{venv} is unfinished, broken or of another Python: making it afresh", flush=True)
    shutil.rmtree(venv)


def make_environment(venv):
    """Make `venv`, or give it pip where only that is missing."""
    if not runs(venv, "-c", ""):
        venv.mkdir(parents=True, exist_ok=True)
        write_stamp(venv, state="installing", made=True)
        call([sys.executable, "-m", "venv", str(venv)], "the environment could not be made")
    if not has_pip(venv):
        failure = (
            f"{venv} has no working pip and could not be given one; delete the folder and run this again"
        )
        call([str(venv_program(venv, "python")), "-m", "ensurepip", "--upgrade", "--default-pip"], failure)
        if not has_pip(venv):
            raise SetupError(failure)


def call(command, failure):
    """Run a command; raise SetupError with its exit status where it fails."""
    done = subprocess.run(command, cwd=ROOT)
    if done.returncode:
        raise SetupError(
            f"{failure} (exit status {done.returncode} of: {' '.join(command)})", done.returncode
        )


def install(venv, extras):
    """Install the working tree, with `extras`, into `venv`."""
    target = "." + (f"[{','.join(extras)}]" if extras else "")
    print(
        f"Setting up {venv} with Python {sys.version.split()[0]}: pip install -c constraints.txt -e {target}",
        flush=True,
    )
    python = str(venv_program(venv, "python"))
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    call(
        [*pip, "-c", "constraints.txt", "-e", target],
        "pip could not install pde_nb; its own message is above. Check the network connection and the free "
        "disk space,\nthen run the same line again: it goes on from there",
    )


def ready_environment(venv, extras):
    """Make `venv` hold this project with `extras`; nothing is done where it does already."""
    stamp, wanted = read_stamp(venv), wanted_stamp(extras)
    if is_ready(venv, stamp, wanted):
        return
    start = time.monotonic()
    remove_unusable(venv, stamp)
    wanted["extras"] = sorted({*extras, *read_stamp(venv).get("extras", ())})
    make_environment(venv)
    wanted["made"] = read_stamp(venv).get("made", False)
    write_stamp(venv, **{**wanted, "state": "installing"})
    try:
        install(venv, wanted["extras"])
    except SetupError:
        write_stamp(venv, **{**wanted, "state": "failed"})
        raise
    write_stamp(venv, **wanted)
    print(f"Set up in {time.monotonic() - start:.0f} s", flush=True)


def replace_process(command):
    """Go on as `command`; on Windows, which cannot, wait for it and return its exit status."""
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(command[0], command)
    return subprocess.call(command)


def main(args):
    if not args or args[0] not in COMMANDS:
        print(__doc__.strip(), file=sys.stdout if args[:1] in (["-h"], ["--help"]) else sys.stderr)
        if args and args[0] not in ("-h", "--help"):
            print(f"\nunknown command {args[0]!r}: say one of {', '.join(COMMANDS)}", file=sys.stderr)
        return 0 if args[:1] in (["-h"], ["--help"]) else 2
    command, *rest = args
    check_python()
    venv = Path(os.environ.get("PDE_VENV") or ROOT / ".venv").expanduser().absolute()
    ready_environment(venv, ("dev" if command == "test" else "train",))
    if command != "test":
        return replace_process([str(venv_program(venv, "pde")), command, *rest])
    return replace_process([str(venv_program(venv, "python")), str(ROOT / "tools" / "check.py"), *rest])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.status)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)
