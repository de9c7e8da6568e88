"""What the project says of itself in several places: one line for each place that disagrees.

python tools/project.py
"""

import ast
import json
import re
import sys
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAGIC = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)
OLDEST = (3, 10)
# Of later Pythons than the oldest: names that parse everywhere and are not there.
LATER = {
    *("tomllib", "datetime.UTC", "enum.StrEnum", "hashlib.file_digest", "itertools.batched", "typing.Self"),
    *("typing.override", "typing.assert_never", "contextlib.chdir", "asyncio.TaskGroup", "asyncio.Runner"),
    *("operator.call", "math.cbrt", "math.exp2", "math.sumprod", "ExceptionGroup", "BaseExceptionGroup"),
    *("warnings.deprecated", "pathlib.UnsupportedOperation", "logging.getLevelNamesMapping"),
}
LATER_METHODS = {"is_junction", "walk_up", "full_match", "add_note"}


def settings():
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    return parser["DEFAULT"]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


# ---- versions -------------------------------------------------------------------------------


def version_faults():
    """Places that name another version than settings.ini, and a change log without this version."""
    version = settings()["version"]
    places = {
        f"{settings()['lib_path']}/__init__.py": r'^__version__ = "([^"]+)"$',
        "CITATION.cff": r"^version: (\S+)$",
    }
    lines = []
    for name, pattern in places.items():
        found = re.search(pattern, text_of(name), re.MULTILINE)
        if not found or found[1] != version:
            lines.append(f"{name} says version {found and found[1]}, settings.ini {version}")
    headings = re.findall(r"^## (.+)$", text_of("CHANGELOG.md"), re.MULTILINE)
    wrong = [h for h in headings if not re.fullmatch(r"\d+\.\d+\.\d+, (unreleased|\d{4}-\d\d-\d\d)", h)]
    lines += [
        f"CHANGELOG.md: the heading {h!r} is not `X.Y.Z, YYYY-MM-DD` or `X.Y.Z, unreleased`" for h in wrong
    ]
    if not headings or not headings[0].startswith(f"{version}, "):
        lines.append(f"CHANGELOG.md does not begin with the version {version} of settings.ini")
    return lines


# ---- commands -------------------------------------------------------------------------------


def commands():
    """The commands of `pde`."""
    from pde_nb.console.program import WORDS

    return list(WORDS)


def command_faults():
    """Commands that tools/run.py does not know, or knows and pde does not have."""
    import run

    known, offered = set(run.EXTRAS) - {"test"}, set(commands())
    lines = [f"tools/run.py does not know the command {name}" for name in sorted(offered - known)]
    lines += [f"tools/run.py knows {name}, which pde does not have" for name in sorted(known - offered)]
    shown = set(re.findall(r"tools/run\.py (\w+)", run.__doc__))
    lines += [f"tools/run.py --help does not show {name}" for name in sorted(set(run.EXTRAS) - shown)]
    return lines


# ---- workflows ------------------------------------------------------------------------------

PINNED = re.compile(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")


def workflow_faults():
    """Workflows whose actions are not pinned, that keep credentials, or that leave permissions open."""
    lines = []
    for path in sorted((ROOT / ".github" / "workflows").glob("*.y*ml")):
        text, name = path.read_text(encoding="utf-8"), path.name
        used = re.findall(r"^\s*(?:- )?uses: (.+)$", text, re.MULTILINE)
        lines += [f"{name}: {use} is not pinned by hash and version" for use in used if not PINNED.match(use)]
        checkouts = len(re.findall(r"uses: actions/checkout@", text))
        if text.count("persist-credentials: false") != checkouts:
            lines.append(f"{name}: a checkout keeps its credentials")
        if not re.search(r"^permissions:\n  contents: read$", text, re.MULTILINE):
            lines.append(f"{name}: the permissions of all jobs are not `contents: read`")
        if text.count("timeout-minutes:") != text.count("runs-on:"):
            lines.append(f"{name}: a job has no time limit")
        if "secrets." in text:
            lines.append(f"{name}: uses a secret")
    pythons = re.search(r"python: \[(.+)\]", text_of(".github/workflows/test.yaml"))[1].replace('"', "")
    stated = re.search(r"^PYTHONS = \((.+)\)$", text_of("setup.py"), re.MULTILINE)[1].replace('"', "")
    if pythons != stated or pythons.split(", ")[0] != settings()["min_python"]:
        lines.append(
            f"test.yaml tests {pythons}; setup.py says {stated}, settings.ini {settings()['min_python']}"
        )
    return lines


# ---- Python versions ------------------------------------------------------------------------


def sources():
    """(place, text) of all code: modules, tools, benchmarks, cells of notebooks."""
    for folder in (settings()["lib_path"], "tools", "benchmarks", "docs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    for path in sorted((ROOT / settings()["nbs_path"]).rglob("*.ipynb")):
        if any(part.startswith((".", "_")) for part in path.relative_to(ROOT).parts):
            continue
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                place = f"{path.relative_to(ROOT).as_posix()}, cell {cell.get('id', '?')}"
                yield place, MAGIC.sub(r"\1pass", "".join(cell["source"]))


def later_names(tree):
    """Names in a syntax tree that the oldest Python does not have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name):
                yield f"{node.value.id}.{node.attr}"
            if node.attr in LATER_METHODS:
                yield f".{node.attr}"
        elif isinstance(node, ast.Name):
            yield node.id


def python_faults():
    """Code that the oldest Python cannot parse or that uses what it does not have."""
    lines = []
    refused = LATER | {f".{name}" for name in LATER_METHODS}
    for place, text in sources():
        try:
            tree = ast.parse(text, feature_version=OLDEST)
        except SyntaxError as error:
            lines.append(f"{place}, line {error.lineno}: Python 3.10 cannot parse it: {error.msg}")
            continue
        found = sorted(refused & set(later_names(tree)))
        lines += [f"{place}: {name} is not in Python 3.10" for name in found]
    return lines


FAULTS = (version_faults, command_faults, workflow_faults, python_faults)


def main():
    lines = [line for faults in FAULTS for line in faults()]
    print("\n".join(lines) if lines else "nothing disagrees")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
