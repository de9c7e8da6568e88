"""Run the tests with the oldest versions that settings.ini admits, in an environment of their own.

    python tools/lowest.py                              # every notebook
    python tools/lowest.py 08_training imports          # some of them, or checks, by name or a part of it
    python tools/lowest.py --keep torch torchvision     # these as constraints.txt has them
    python tools/lowest.py --pins                       # only print the versions

A bound `name>=1.2` of the extra `dev` or of the base install becomes `name==1.2`; what has no lower bound is
limited as in settings.ini and constraints.txt. The environment is .venv-lowest, or the folder that PDE_LOWEST
names. `--keep` is for what cannot be had at its bound, such as a torch that is older than this Python.
"""

import argparse
import os
import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<mark>[<>=!~]*)(?P<version>.*)")


def requirements():
    """All requirements of the base install and of the extra `dev`, by name, as {name: (mark, version)}."""
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    cfg = parser["DEFAULT"]
    found = {}
    for text in (cfg["requirements"] + " " + cfg["dev_requirements"]).split():
        match = REQUIREMENT.fullmatch(text)
        lower = match["mark"] in (">=", "==")
        if lower or match["name"] not in found:
            found[match["name"]] = (match["mark"], match["version"])
    return found


def limits():
    """The lines of constraints.txt, by name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    matches = (REQUIREMENT.fullmatch(line) for line in lines if line and not line.startswith("#"))
    return {match["name"].lower(): match[0] for match in matches}


def pins(keep=()):
    """One constraint for each requirement: its lower bound, or else what constraints.txt says."""
    known = limits()
    lines = []
    for name, (mark, version) in requirements().items():
        bound = mark in (">=", "==") and name not in keep
        if bound:
            lines.append(f"{name}=={version}")
        elif name.lower() in known:
            lines.append(known[name.lower()])
        elif mark:
            lines.append(f"{name}{mark}{version}")
    return lines


def program(venv):
    """The Python of an environment."""
    return venv / "Scripts" / "python.exe" if os.name == "nt" else venv / "bin" / "python"


def make(venv, lines):
    """Make the environment hold the working tree with these versions, where it does not already."""
    wanted = "\n".join(lines) + "\n"
    file = venv / "lowest.txt"
    if file.exists() and file.read_text(encoding="utf-8") == wanted:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
    part = venv / "lowest.part"
    part.write_text(wanted, encoding="utf-8")
    pip = [str(program(venv)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(part), "-e", ".[dev]"], cwd=ROOT, check=True)
    os.replace(part, file)


def main(args=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="notebooks and checks, by name or a part of it")
    parser.add_argument("--keep", nargs="+", default=[], metavar="PACKAGE", help="not at its bound")
    parser.add_argument("--pins", action="store_true", help="print the versions and run nothing")
    options = parser.parse_args(args)
    unknown = sorted(set(options.keep) - requirements().keys())
    if unknown:
        parser.error(f"--keep {' '.join(unknown)}: settings.ini requires no package of that name")
    lines = pins(options.keep)
    if options.pins:
        print("\n".join(lines))
        return 0
    venv = Path(os.environ.get("PDE_LOWEST") or ROOT / ".venv-lowest").expanduser().absolute()
    try:
        make(venv, lines)
    except subprocess.CalledProcessError as error:
        print(f"error: the environment {venv} could not be made; the message is above", file=sys.stderr)
        return error.returncode
    return subprocess.run(
        [str(program(venv)), str(ROOT / "tools" / "check.py"), *(options.names or ["/"])]
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
