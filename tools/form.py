"""The form of the code beyond what ruff knows: one statement does one thing.

    python tools/form.py [--count] [PATH ...]

PATH: notebooks, Python files, folders; default nbs, tools, benchmarks. A line for each place that has a
conditional expression inside another one, a lambda bound to a name, three or more names set by one statement
from as many expressions, a function of more than 45 lines, an exported cell of more than 60 lines, a line of
more than 110 characters, or a summary that makes the first line of its module longer than that. The exit
status is 1 where there is one.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = 110
FUNCTION = 45
CELL = 60
DIRECTIVE = re.compile(r"^\s*#\s*\|\s*exporti?\b", re.MULTILINE)
SUMMARY = re.compile(r"^> *(.+)$", re.MULTILINE)
MAGIC = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)


def cells(path: Path) -> Iterator[tuple[str, str]]:
    """Name and source of each piece of code in a file: the cells of a notebook, or all of a Python file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield "", text
        return
    found = json.loads(text)["cells"]
    code = [(cell.get("id", "?"), "".join(cell["source"])) for cell in found if cell["cell_type"] == "code"]
    summary = SUMMARY.search("".join(found[0]["source"]))
    if summary and any("| default_exp" in source for _, source in code):
        yield "summary", f'"""{summary[1]}"""'  # the first line of the module
    yield from code


def expressions_inside(node: ast.AST, kind: type) -> bool:
    """Whether an expression of a kind is inside `node`, not counting what is inside a nested function."""
    return any(isinstance(child, kind) for child in ast.walk(node))


def offences_of(node: ast.AST) -> Iterator[str]:
    """What is wrong with one node of a syntax tree."""
    if isinstance(node, ast.IfExp):
        parts = (node.test, node.body, node.orelse)
        if any(expressions_inside(part, ast.IfExp) for part in parts):
            yield "a conditional expression inside another"
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        yield "a lambda bound to a name"
    if isinstance(node, ast.Assign):
        for target in node.targets:
            pairs = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            if pairs and len(target.elts) > 2:
                yield f"{len(target.elts)} names set by one statement"
            if pairs and any(isinstance(value, ast.Lambda) for value in node.value.elts):
                yield "a lambda bound to a name"
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        length = node.end_lineno - node.lineno + 1
        if length > FUNCTION:
            yield f"the function {node.name} has {length} lines"


def offences(source: str) -> Iterator[tuple[int, str]]:
    """Line and description of every offence in a piece of code."""
    lines = source.split("\n")
    for number, line in enumerate(lines, 1):
        if len(line) > LINE:
            yield number, f"{len(line)} characters in a line"
    if DIRECTIVE.search(source) and len(lines) > CELL:
        yield 1, f"an exported cell of {len(lines)} lines"
    for node in ast.walk(ast.parse(MAGIC.sub(r"\1pass", source))):
        for what in offences_of(node):
            yield node.lineno, what


def files(places: list[str]) -> Iterator[Path]:
    """The notebooks and Python files at some places."""
    for place in map(Path, places):
        found = [place]
        if place.is_dir():
            found = sorted(path for ending in ("*.ipynb", "*.py") for path in place.rglob(ending))
        yield from (path for path in found if not any(part.startswith((".", "_")) for part in path.parts[1:]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = [str(ROOT / name) for name in ("nbs", "tools", "benchmarks")]
    parser.add_argument("places", nargs="*", default=default, help="files and folders; default all")
    parser.add_argument("--count", action="store_true", help="only how many there are in each file")
    options = parser.parse_args()
    total = 0
    for path in files(options.places):
        found = [f"{name}:{line}: {what}" for name, code in cells(path) for line, what in offences(code)]
        total += len(found)
        if options.count and found:
            print(f"{len(found):5}  {path}")
        elif not options.count:
            print("".join(f"{path}:{text}\n" for text in found), end="")
    print(f"{total} offences" if total else "nothing to mend", file=sys.stderr)
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
