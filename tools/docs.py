"""Build the documentation site from the notebooks into _docs/, executing nothing and without the network.

    python tools/docs.py             # writes _docs/index.html
    python tools/docs.py --strict    # the same; whatever Sphinx warns of, as a dead link, is an error

The pages are the notebooks, a list of them for each folder, and the reference: what stands in the source of
every public function and class, with the comments behind its parameters.
"""

import argparse
import ast
import html
import re
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

import nbformat
from nbtext import from_root, reader_notebook
from sphinx.cmd.build import build_main

ROOT = Path(__file__).resolve().parent.parent
NBS, LIB = ROOT / "nbs", ROOT / "pde_nb"
REPOSITORY = "https://github.com/pde-nb/pde_nb/blob/main"
TOCTREE = "```{{toctree}}\n:hidden:\n:maxdepth: {depth}\n{caption}\n{entries}\n```\n"


def toctree(entries, caption="", depth=1):
    """A list of pages for the sidebar."""
    caption = f":caption: {caption}\n" if caption else ""
    return TOCTREE.format(depth=depth, caption=caption, entries="\n".join(entries))


def notebooks(folder=NBS):
    """The notebooks of a folder, by name."""
    return sorted(path for path in folder.glob("*.ipynb") if not path.name.startswith((".", "_")))


def folders():
    """The folders of nbs/ that hold notebooks, in reading order."""
    return [folder for folder in sorted(NBS.iterdir()) if folder.is_dir() and notebooks(folder)]


@cache
def head(path):
    """The title of a notebook and its summary."""
    cells = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4).cells
    text = cells[0].source if cells else ""
    title, summary = (re.search(rf"^{mark} +(.+)$", text, re.MULTILINE) for mark in ("#", ">"))
    return title[1] if title else path.stem, summary[1] if summary else ""


# ---- notebooks ------------------------------------------------------------------------------


def site_link(folder):
    """How links of the notebooks in a folder below nbs/ are rewritten: a folder has a page in the site, and
    what is not in the site is linked in the repository.
    """

    def change(target):
        path = from_root(target, Path("nbs", folder).as_posix())
        if (ROOT / path).is_dir() and path.startswith("nbs/"):
            return f"{target.rstrip('/')}/index.md"
        return target if path.startswith("nbs/") else f"{REPOSITORY}/{path}"

    return change


def add_alternatives(notebook):
    """Give every picture of a notebook its heading as a text for those who do not see it."""
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = ([heading, *re.findall(r"^#{1,6} +(.+)$", cell.source, re.MULTILINE)])[-1]
            heading = re.sub(r"[`*$]", "", heading)
            cell.source = cell.source.replace("![](", f"![{heading}](")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if any(kind.startswith("image/") for kind in data):
                cell.metadata["mystnb"] = {"image": {"alt": f"Figure: {heading}"}}
            if "text/html" in data:
                named = f'<img alt="Figure: {html.escape(heading)}"'
                page = "".join(data["text/html"])
                data["text/html"] = re.sub(r"<img(?![^>]*\balt=)", lambda _, named=named: named, page)


def fold_imports(notebook):
    """Show long cells of imports only when they are asked for: they are no way to begin a page."""
    for cell in notebook.cells:
        lines = cell.source.split("\n")
        if (
            cell.cell_type == "code"
            and len(lines) > 5
            and re.match(r"(from|import) ", lines[-1].strip(" )") or "")
        ):
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-input"]


def write_notebooks(source):
    """The notebooks as readers see them, and a page for each folder."""
    for folder in [NBS, *folders()]:
        place = folder.relative_to(NBS)
        (source / place).mkdir(parents=True, exist_ok=True)
        for path in notebooks(folder):
            notebook = reader_notebook(path, site_link(place))
            add_alternatives(notebook)
            fold_imports(notebook)
            if path == NBS / "index.ipynb":
                notebook.cells.append(nbformat.v4.new_markdown_cell(contents()))
            (source / place / path.name).write_text(nbformat.writes(notebook), encoding="utf-8")
        if folder != NBS:
            (source / place / "index.md").write_text(folder_page(folder), encoding="utf-8")
    for path in NBS.rglob("*.png"):
        (source / path.relative_to(NBS)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, source / path.relative_to(NBS))


def contents():
    """The sidebar."""
    single = [path.stem for path in notebooks() if path.stem != "index"]
    every = [f"{folder.name}/index" for folder in folders()]
    reference = toctree(["api/index"], "Reference")
    return toctree(["self", *single], "Start") + toctree(every, "Notebooks, in order") + reference


def folder_page(folder):
    """The notebooks of a folder with their summaries."""
    name = folder.name.replace("_", " ")
    lines = [f"# {name}", ""]
    for path in notebooks(folder):
        title, summary = head(path)
        lines.append(f"- [{title}]({path.name})  \n  {summary}")
    return "\n".join([*lines, "", toctree([path.stem for path in notebooks(folder)])])


# ---- the reference --------------------------------------------------------------------------


def modules():
    """The modules of the library that notebooks export, by their names below it."""
    names = {".".join(p.relative_to(LIB).with_suffix("").parts): p for p in sorted(LIB.rglob("*.py"))}
    return {name: path for name, path in names.items() if not name.rpartition(".")[2].startswith("_")}


def public(tree):
    """The functions and classes that a module lists in `__all__`, and its other public names."""
    listed = [ast.literal_eval(node.value) for node in tree.body
              if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]  # fmt: skip
    defined = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    return [node for node in defined if listed and node.name in listed[0]]


def signature(lines, node):
    """The lines of a definition above its docstring: names, types, defaults and the comments behind them."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return lines[first - 1 : node.body[0].lineno - 1]


def entry(lines, node):
    """How a function or class is called, and what it says of itself; of a class also fields and methods."""
    code = signature(lines, node)
    if isinstance(node, ast.ClassDef):
        methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
        fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
        if fields:
            code += lines[fields[0].lineno - 1 : fields[-1].end_lineno]
        for method in methods:
            if not method.name.startswith("_") or method.name == "__init__":
                said = (ast.get_docstring(method) or "").partition("\n\n")[0]
                code += ["", *signature(lines, method), *(f"        # {line}" for line in said.splitlines())]
    return f"## `{node.name}`\n\n```python\n{chr(10).join(code)}\n```\n\n{ast.get_docstring(node) or ''}\n"


def module_page(name, path):
    """The page of one module: its docstring, where it is explained, its public functions and classes."""
    text = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    parts = [f"# pde_nb.{name}", f"> {(ast.get_docstring(tree) or '').partition(chr(10))[0]}"]
    exported = re.search(r"File to edit: \S*?nbs/(\S+\.ipynb)", text)
    if exported:
        parts.append(f"Explained and tested in [{head(NBS / exported[1])[0]}](../{exported[1]}).")
    return "\n\n".join([*parts, *(entry(lines, node) for node in public(tree))]) + "\n"


def door_table():
    """The names that `import pde_nb` offers, each with the first sentence of its docstring."""
    rows = ["| name | what it is |", "|---|---|"]
    for node in ast.parse((LIB / "__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module in modules():
            tree = ast.parse(modules()[node.module].read_text(encoding="utf-8"))
            said = {item.name: ast.get_docstring(item) or "" for item in public(tree)}
            for alias in node.names:
                sentence = re.split(r"(?<=[.;:])\s", said.get(alias.name, ""), maxsplit=1)[0].rstrip(".;:")
                name = alias.asname or alias.name
                place = (
                    f"{node.module}.md#{alias.name.lower()}" if alias.name in said else f"{node.module}.md"
                )
                rows.append(
                    f"| [`{name}`]({place}) | {' '.join(sentence.split()).replace('|', chr(92) + '|')} |"
                )
    return "\n".join(rows)


def write_reference(source):
    """A page for each module, and their list."""
    (source / "api").mkdir()
    for name, path in modules().items():
        (source / "api" / f"{name}.md").write_text(module_page(name, path), encoding="utf-8")
    stay = "They are there after `import pde_nb`, and stay where they are. All else may move."
    parts = ["# The library, by module", "## The names for users", stay, door_table(), toctree(modules())]
    (source / "api" / "index.md").write_text("\n\n".join(parts), encoding="utf-8")


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--output", type=Path, default=ROOT / "_docs", help="folder of the site (_docs)")
    parser.add_argument("--strict", action="store_true", help="fail where Sphinx warns")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, site = Path(folder, "source"), Path(folder, "site")
        source.mkdir()
        write_notebooks(source)
        write_reference(source)
        flags = ["--quiet", *(["--fail-on-warning", "--keep-going"] if options.strict else [])]
        status = build_main([*flags, "-b", "html", "-c", str(ROOT / "docs"), str(source), str(site)])
        if status == 0:
            (site / ".nojekyll").touch()
            shutil.rmtree(site / ".doctrees", ignore_errors=True)
            shutil.rmtree(options.output, ignore_errors=True)
            shutil.move(site, options.output)
            print(f"built {options.output}/index.html")
    return status


if __name__ == "__main__":
    sys.exit(main())
