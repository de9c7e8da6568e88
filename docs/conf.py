"""Sphinx settings; tools/docs.py builds with them."""

import re
from configparser import ConfigParser
from pathlib import Path

_settings = ConfigParser(delimiters=["="])
_settings.read(Path(__file__).resolve().parent.parent / "settings.ini", encoding="utf-8")
_settings = _settings["DEFAULT"]

project = _settings["title"]
author = _settings["author"]
copyright = _settings["copyright"]
release = _settings["version"]
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc"]
nb_execution_mode = "off"
nb_render_markdown_format = "myst"  # tables in Markdown outputs
nb_merge_streams = True
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
# A notebook may open at any heading level after its title.
suppress_warnings = ["myst.header"]

# The signatures are documented without the large libraries installed.
autodoc_mock_imports = ["torch", "torchvision", "transformers", "wilds", "filelock", "safetensors", "pandas", "datasets", "PIL"]
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False, "ignore-module-all": False}

html_theme = "sphinx_book_theme"
html_title = project
html_theme_options = {
    "repository_url": _settings["git_url"],
    "repository_branch": _settings["branch"],
    "path_to_docs": _settings["nbs_path"],
    "use_repository_button": True,
}

_MARKDOWN = re.compile(r"(?P<tick>`+)(?P<code>.+?)(?P=tick)|\$(?P<math>[^$]+)\$|(?P<special>[*|\\]|_(?=\W|$))")


def _as_rst(match):
    if match["code"]:
        return f"``{match['code']}``"
    if match["math"]:
        return f":math:`{match['math']}`"
    return "\\" + match["special"]


def docstring_to_rst(app, what, name, obj, options, lines):
    """Docstrings are written in Markdown: turn the little of it that they use into reStructuredText."""
    lines[:] = [_MARKDOWN.sub(_as_rst, line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", docstring_to_rst)
