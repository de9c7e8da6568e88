"""Build the documentation site from the notebooks into _docs/, executing nothing and without the network."""

import argparse
import ast
import gc
import html
import os
import posixpath
import re
import shutil
import sys
import tempfile
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path

import nbformat
from nbtext import from_root, reader_notebook
from sphinx.cmd.build import build_main

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"

sys.path.append(str(ROOT / "docs"))

import pages  # noqa: E402
import reference  # noqa: E402
from faults import faults  # noqa: E402

# Without these, half of the reference would be missing.
NEEDED = ("torch", "torchvision", "transformers", "pandas", "filelock", "safetensors", "sphinx_copybutton")


def settings():
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    return parser["DEFAULT"]


def notebooks():
    """Paths below nbs/ of the notebooks in the site, in reading order: by folder, then by name."""
    found = (path.relative_to(NBS) for path in NBS.rglob("*.ipynb"))
    return sorted(path for path in found if not any(part.startswith((".", "_")) for part in path.parts))


def site_link(folder, repository):
    """How links of the notebooks in `folder` (relative to nbs/) are rewritten: what is not in the site
    points to `repository`.
    """

    def change(target):
        path = from_root(target, Path("nbs", folder).as_posix())
        room = path.removeprefix("nbs/")
        if room in pages.ROOMS:
            return posixpath.relpath(f"rooms/{room}.md", Path(folder).as_posix())
        return target if path.startswith("nbs/") else f"{repository}/{path}"

    return change


def figure_texts(lib):
    """What each function of the library that draws a figure says of it: {name: first sentence of its
    docstring}.
    """
    texts = {}
    for path in (ROOT / lib).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and "fig" in node.name and (said := ast.get_docstring(node)):
                said = re.split(r"(?<=[.;]) ", said.split("\n")[0].replace("`", ""), maxsplit=1)[0]
                texts[node.name] = said.rstrip(".;")
    return texts


def keep_together(markdown):
    """Markdown in which a figure and its spread, or the two ends of an interval, stay on one line of a
    table cell.
    """
    lines = markdown.split("\n")
    spread, ends = re.compile(r"(?<=\d) ± (?=\d)"), re.compile(r"(\[[-+−]?[\d.]+,) (?=[-+−]?[\d.]+\])")
    space = "\N{NO-BREAK SPACE}"
    fixed = (ends.sub(rf"\1{space}", spread.sub(f"{space}±{space}", line)) for line in lines)
    return "\n".join(new if line.startswith("|") else line for line, new in zip(lines, fixed))


def add_alternatives(notebook, texts):
    """Give every picture of a notebook a text for those who do not see it: what its function says, or its
    heading.
    """
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            found = re.findall(r"^#{1,6} +(.+)$", cell.source, re.MULTILINE)
            heading = re.sub(r"[`*$]", "", found[-1]) if found else heading
            cell.source = cell.source.replace("![](", f"![{heading}](")
            continue
        drawn = [texts[name] for name in reversed(re.findall(r"\b(\w+)\(", cell.source)) if name in texts]
        text = drawn[0] if drawn else f"Figure: {heading}"
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if any(kind.startswith("image/") for kind in data):
                cell.metadata["mystnb"] = {"image": {"alt": text}}
            if "text/markdown" in data:
                data["text/markdown"] = keep_together("".join(data["text/markdown"]))
            if "text/html" in data:
                named = f'<img alt="{html.escape(text)}"'
                data["text/html"] = re.sub(
                    r"<img(?![^>]*\balt=)", lambda _: named, "".join(data["text/html"])
                )


# Import cells of more lines than this are folded: they are no way to begin a page.
MOST_IMPORT_LINES = 4


def output_text(cell):
    """The plain text that a cell's stored outputs show."""
    texts = (output.get("text", output.get("data", {}).get("text/plain", "")) for output in cell.outputs)
    return "\n".join("".join(text) for text in texts)


def wrap_prose(notebook):
    """Let what a cell printed break at the edge of the page, unless it is set in columns."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and not re.search(r"\S {2,}\S", output_text(cell)):
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "wrap-output"]


def only_imports(source):
    """Whether a cell imports and does nothing else."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a magic
        return False
    return bool(body) and all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in body)


def fold_imports(notebook):
    """Show long cells of imports only when they are asked for."""
    for cell in notebook.cells:
        if cell.cell_type != "code" or cell.source.count("\n") < MOST_IMPORT_LINES:
            continue
        if only_imports(cell.source):
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-input"]
            cell.metadata["mystnb"] = {"code_prompt_show": "Imports", "code_prompt_hide": "Imports"}


def write_source(source):
    """Fill the folder `source` with what Sphinx builds from."""
    cfg = settings()
    repository = f"{cfg['git_url']}/blob/{cfg['branch']}"
    paths, texts = notebooks(), figure_texts(cfg["lib_path"])
    if Path("index.ipynb") not in paths:
        raise SystemExit("nbs/index.ipynb is missing: it is the first page of the site")
    if unknown := pages.outside(paths):
        raise SystemExit(f"nbs/{unknown[0]} has no section in the site: name it in ROOMS of docs/pages.py")
    for path in NBS.rglob("*"):
        if path.is_file() and path.suffix.lower() in (".png", ".jpg", ".jpeg", ".svg", ".gif"):
            copy = source / path.relative_to(NBS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    for path in paths:
        notebook = reader_notebook(NBS / path, site_link(path.parent, repository))
        add_alternatives(notebook, texts)
        fold_imports(notebook)
        wrap_prose(notebook)
        if path == Path("index.ipynb"):
            notebook.cells.insert(1, nbformat.v4.new_markdown_cell(pages.cards()))
            notebook.cells.append(nbformat.v4.new_markdown_cell(pages.contents(paths)))
        copy = source / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(nbformat.writes(notebook), encoding="utf-8")
    for name, text in pages.written_pages(paths).items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")


def replace_folder(new, old):
    """Put `new` in the place of the folder `old`."""
    if old.exists():
        shutil.rmtree(old)
    shutil.move(new, old)


def main(args=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=ROOT / "_docs", help="the folder to put the site in (default: _docs)"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="fail where Sphinx warns, a link is dead, an equation is not set, a picture has no text, or a "
        "page loads something from elsewhere",
    )
    options = parser.parse_args(args)
    lacking = [name for name in NEEDED if find_spec(name) is None]
    if lacking:
        print(
            f"the reference needs {', '.join(lacking)}: pip install -c constraints.txt -e '.[train,docs]'",
            file=sys.stderr,
        )
        return 1
    sys.path[0] = str(ROOT)
    reference.import_all(ROOT)
    gc.freeze()  # what is imported stays
    gc.set_threshold(200_000, 20, 20)  # nearly all that a build makes lives until its end
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as folder:
        source, site = Path(folder, "source"), Path(folder, "site")
        source.mkdir()
        write_source(source)
        flags = ["--quiet", *(["--fail-on-warning", "--keep-going"] if options.strict else [])]
        status = build_main([*flags, "-b", "html", "-c", str(ROOT / "docs"), str(source), str(site)])
        if status:
            return status
        (site / ".nojekyll").touch()
        shutil.rmtree(site / ".doctrees", ignore_errors=True)
        replace_folder(site, options.output)
    wrong = faults(options.output) + reference.unlisted(options.output)
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    if wrong and options.strict:
        return 1
    print(f"built {options.output}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
