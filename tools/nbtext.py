"""What readme.py and docs.py share: notebooks as readers see them, with their links rewritten."""

import posixpath
import re
from pathlib import Path

import nbformat

DIRECTIVE = re.compile(r"^# *\| *([^\s:]+).*\n?", re.MULTILINE)
# Code, which stays as it is, or the relative target of a link.
LINKS = re.compile(
    r"^```.*?^```[^\n]*$|(?P<tick>`+)(?!`).*?(?<!`)(?P=tick)(?!`)"
    r"|(?P<head>\]\(\s*)(?![a-z][a-z0-9+.-]*:|/|#)(?P<target>[^\s)]+)",
    re.DOTALL | re.MULTILINE,
)


def relink(markdown, change):
    """Markdown with `change` applied to every relative link target outside code."""
    return LINKS.sub(lambda m: m["head"] + change(m["target"]) if m["target"] else m[0], markdown)


def from_root(target, folder):
    """A link target that is relative to `folder`, as one relative to the repository's root."""
    path, mark, anchor = target.partition("#")
    return posixpath.normpath(posixpath.join(folder, path)) + mark + anchor


def reader_notebook(path, change_link):
    """The notebook at `path` without hidden cells and `#|` lines, its links rewritten by `change_link`."""
    notebook = nbformat.reads(Path(path).read_text(encoding="utf-8"), as_version=4)
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = relink(cell.source, change_link)
        else:
            directives = set(DIRECTIVE.findall(cell.source))
            cell.source = DIRECTIVE.sub("", cell.source)
            if directives & {"hide", "default_exp"}:
                continue
            if "echo" in directives:  # it is always `echo: false`: what the cell gives is shown alone
                cell.metadata["tags"] = ["remove-input"]
        cells.append(cell)
    notebook.cells = cells
    notebook.metadata.setdefault("language_info", {"name": "python"})
    return notebook
