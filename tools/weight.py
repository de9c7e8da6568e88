"""What the project weighs beside its goals; it may only become lighter.

python tools/weight.py            # the table; status 1 where a figure is above tools/weight.json
python tools/weight.py --write    # lower the figures of tools/weight.json to those of today
"""

import json
import re
import sys
from collections import Counter
from dataclasses import fields
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = Path(__file__).with_suffix(".json")
GOALS = {
    "lines of the library": 18_000,
    "modules": 110,
    "packages": 14,
    "methods attached by @patch": 30,
    "notebooks": 120,
    "lines of demo and test in notebooks": 14_000,
    "lines of tools, docs and plain scripts": 3_000,
    "console scripts": 1,
    "options and settings": 65,
}
EXPORTED = re.compile(r"^\s*#\s*\|\s*(exporti?|default_exp)\b", re.MULTILINE)


def lines(paths) -> int:
    """Lines of text files."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def library() -> list[Path]:
    """What is installed, the index of nbdev apart."""
    kinds = (".py", ".j2", ".css", ".js", ".html")
    return [p for p in sorted((ROOT / "pde_nb").rglob("*")) if p.suffix in kinds and p.stem != "_modidx"]


def demo_lines(notebook: Path) -> int:
    """Lines of code that are not exported."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return sum(len(source.splitlines()) for source in code if not EXPORTED.search(source))


def names() -> set[str]:
    """What can be typed: options of the commands, and settings of training, of schedules and of methods."""
    from pde_nb.algorithm.expansion import Schedule
    from pde_nb.cli.app import app, sets
    from pde_nb.methods.registry import METHODS
    from pde_nb.training.settings import Settings

    commands = [part[name] for part in (app, sets) for name in part if not name.startswith("-")]
    found = {field.name for owner in (Schedule, Settings, *METHODS.values()) for field in fields(owner)}
    for command in commands:
        if command.default_command:
            arguments = command.assemble_argument_collection(parse_docstring=False)
            found |= {one.name.strip("-").replace("-", "_") for one in arguments if one.name[:2] == "--"}
    return found


def today() -> dict[str, int]:
    """The figures of this checkout."""
    files = library()
    code = [path for path in files if path.suffix == ".py"]
    notebooks = [p for p in sorted((ROOT / "nbs").rglob("*.ipynb")) if ".ipynb_checkpoints" not in p.parts]
    plain = [p for folder in ("tools", "docs", "benchmarks") for p in (ROOT / folder).rglob("*.py")]
    scripts = re.search(
        r"^console_scripts = (.*(?:\n +.*)*)", (ROOT / "settings.ini").read_text(), re.MULTILINE
    )
    figures = (
        lines(files),
        len([path for path in code if path.stem != "__init__"]),
        len({path.parent for path in code} - {ROOT / "pde_nb"}),
        sum(path.read_text(encoding="utf-8").count("\n@patch") for path in code),
        len(notebooks),
        sum(map(demo_lines, notebooks)),
        lines([*plain, *sorted((ROOT / "nbs").rglob("*.py"))]),
        len(scripts[1].split()),
        len(names()),
    )
    return dict(zip(GOALS, figures))


def faults() -> list[str]:  # a line for every figure that is above the committed one
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    return [
        f"{name}: {n:,}, and {kept[name]:,} were committed" for name, n in today().items() if n > kept[name]
    ]


def by_package() -> list[tuple[str, int]]:
    """Lines of each package, the heaviest first."""
    found = Counter()
    for path in library():
        found[path.relative_to(ROOT / "pde_nb").parent.parts[:1]] += lines([path])
    return [(*at, n) if at else ("(top)", n) for at, n in found.most_common()]


def main():
    figures = today()
    for name, n in figures.items():
        print(f"{name:40} {n:8,}   goal {GOALS[name]:8,}")
    print("lines by package: " + ", ".join(f"{name} {n:,}" for name, n in by_package()))
    if "--write" in sys.argv[1:]:
        kept = json.loads(KEPT.read_text(encoding="utf-8"))
        lower = {name: min(n, kept[name]) for name, n in figures.items()}
        KEPT.write_text(json.dumps(lower, indent=1) + "\n", encoding="utf-8")
    found = faults()
    print(*found, sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
