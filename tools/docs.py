"""Build the documentation site from the notebooks into _docs/, executing nothing and without the network.

    python tools/docs.py             # writes _docs/index.html
    python tools/docs.py --strict    # the same; whatever Sphinx warns of, as a dead link, is an error

The pages are the notebooks, a list of them for each folder, and the names for users with their notebooks.
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
    text = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4).cells[0].source
    title, summary = (re.search(rf"^{mark} +(.+)$", text, re.MULTILINE) for mark in ("#", ">"))
    return title[1] if title else path.stem, summary[1] if summary else ""


# ---- notebooks ------------------------------------------------------------------------------


def site_link(folder):
    """How links of the notebooks in a folder below nbs/ are rewritten: a folder has a page in the site, and
    what is not in the site is linked in the repository."""

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
            for block in re.findall(r"\$\$.*?\$\$", cell.source, re.DOTALL):
                if r"\\" in block and r"\tag" in block:  # the site breaks lines where no number may stand
                    raise ValueError(f"\\tag in an equation of several lines; give it one line: {block}")
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


def write_notebooks(source):
    """The notebooks as readers see them, and a page for each folder."""
    for folder in [NBS, *folders()]:
        place = folder.relative_to(NBS)
        (source / place).mkdir(parents=True, exist_ok=True)
        for path in notebooks(folder):
            notebook = reader_notebook(path, site_link(place))
            add_alternatives(notebook)
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
    return toctree(["self", *single, "reference"], "Start") + toctree(every, "Notebooks, in order")


def folder_page(folder):
    """The notebooks of a folder with their summaries."""
    name = folder.name.replace("_", " ")
    lines = [f"# {name}", ""]
    for path in notebooks(folder):
        title, summary = head(path)
        lines.append(f"- [{title}]({path.name})  \n  {summary}")
    return "\n".join([*lines, "", toctree([path.stem for path in notebooks(folder)])])


def reference():
    """The names that `import pde_nb` offers, with a link to the notebook and a sentence of the docstring."""
    stay = "They are there after `import pde_nb`, and stay where they are. All else may move."
    lines = ["# The names for users", "", stay, "", "| name | what it is |", "|---|---|"]
    for node in ast.parse((LIB / "__init__.pyi").read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        text = (LIB / f"{node.module.replace('.', '/')}.py").read_text(encoding="utf-8")
        page = re.search(r"File to edit: \S*?nbs/(\S+\.ipynb)", text)[1]
        items = (item for item in ast.parse(text).body if hasattr(item, "name"))
        said = {item.name: ast.get_docstring(item) or "" for item in items}
        for name in (alias.name for alias in node.names):
            sentence = re.split(r"(?<=[.;:])\s", said[name], maxsplit=1)[0].rstrip(".;:")
            lines.append(f"| [`{name}`]({page}) | {' '.join(sentence.split()).replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


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
        (source / "reference.md").write_text(reference(), encoding="utf-8")
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
