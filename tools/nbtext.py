"""What readme.py and docs.py share: reading notebooks as readers see them, and rewriting their links."""

import posixpath
import re
from pathlib import Path

import nbformat

DIRECTIVE = re.compile(r"^\s*#\s*\|\s*([^\s:]+)\s*:?\s*(.*?)\s*$")
HIDE_CELL = {"hide", "default_exp"}
NOT_RELATIVE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//|/|#)", re.IGNORECASE)
CODE = r"^(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^(?P=fence)[^\n]*$|(?P<tick>`+)(?!`).*?(?<!`)(?P=tick)(?!`)"
INLINE_LINK = r"(?P<head>\]\(\s*<?)(?P<target>[^\s)>]+)"
REFERENCE = r"^(?P<head2>\[[^\]\n]+\]:\s*<?)(?P<target2>[^\s>]+)"
HTML_LINK = r"(?P<head3>\b(?:src|href)\s*=\s*[\"'])(?P<target3>[^\"']+)"
LINKS = re.compile("|".join((CODE, INLINE_LINK, REFERENCE, HTML_LINK)), re.DOTALL | re.MULTILINE)


def split_directives(source):
    """The leading `#|` directives of a code cell as {name: value}, and its source without them."""
    directives, lines = {}, source.split("\n")
    while lines and (not lines[0].strip() or DIRECTIVE.match(lines[0])):
        match = DIRECTIVE.match(lines.pop(0))
        if match:
            directives[match[1]] = match[2]
    return directives, "\n".join(lines)


def is_hidden(directives):
    """Whether readers are to see neither the cell nor its outputs."""
    return bool(HIDE_CELL & directives.keys()) or directives.get("include", "").lower() == "false"


def relink(markdown, change):
    """Markdown with `change` applied to every relative link target outside code."""

    def replace(match):
        for head, target in (("head", "target"), ("head2", "target2"), ("head3", "target3")):
            if match[target] and not NOT_RELATIVE.match(match[target]):
                return match[head] + change(match[target])
        return match[0]

    return LINKS.sub(replace, markdown)


def from_root(target, folder):
    """A link target that is relative to `folder`, as one relative to the repository's root."""
    path, mark, anchor = target.partition("#")
    return posixpath.normpath(posixpath.join(folder, path)) + mark + anchor


def reader_notebook(path, change_link):
    """The notebook at `path` without hidden cells and `#|` lines, its links rewritten by `change_link`."""
    notebook = nbformat.reads(Path(path).read_text(encoding="utf-8"), as_version=4)
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            directives, cell.source = split_directives(cell.source)
            if is_hidden(directives):
                continue
            if directives.get("echo", "").lower() == "false" or "hide_input" in directives:
                cell.metadata["tags"] = ["remove-input"]
            if directives.get("output", "").lower() == "false" or "hide_output" in directives:
                cell.outputs = []
            if not cell.source.strip() and not cell.outputs:
                continue
        elif cell.cell_type == "markdown":
            cell.source = relink(cell.source, change_link)
        cells.append(cell)
    notebook.cells = cells
    notebook.metadata.setdefault("language_info", {"name": "python"})
    return notebook
