"""Sphinx settings; tools/docs.py builds with them."""

import html
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes

_settings = ConfigParser(delimiters=["="])
_settings.read(Path(__file__).resolve().parent.parent / "settings.ini", encoding="utf-8")
_settings = _settings["DEFAULT"]

project = _settings["title"]
author = _settings["author"]
copyright = _settings["copyright"]
release = _settings["version"]
language = "en"
smartquotes = False  # values such as 'auto' are copied from the reference

extensions = ["myst_nb", "sphinx_copybutton"]
nb_execution_mode = "off"
nb_render_markdown_format = "myst"  # tables in Markdown outputs
nb_merge_streams = True
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_dmath_double_inline = True  # $$ … $$ within a paragraph is an equation too
myst_heading_anchors = 4
# A notebook may open at any heading level after its title.
suppress_warnings = ["myst.header"]

# Code is copied; what it printed is not.
copybutton_selector = "div:not(.output) > div.highlight pre"
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["search.js"]
html_theme_options = {
    "repository_url": _settings["git_url"],
    "repository_branch": _settings["branch"],
    "path_to_docs": _settings["nbs_path"],
    "use_repository_button": True,
    "collapse_navbar": True,  # the pages of one folder, not of all
    "max_navbar_depth": 4,
    "navbar_persistent": [],  # the search field is in the sidebar
}

# Equations are set by MathJax, which this package brings along; without it the pages load it from a server.
if find_spec("sphinx-mathjax-offline"):
    extensions.append("sphinx-mathjax-offline")


def add_description(app, pagename, templatename, context, doctree):
    """Give a page the sentence below its title as its description, for those who search."""
    found = [f"{context.get('title', project)}: {project}"]
    if doctree is not None:
        kinds = nodes.block_quote, nodes.paragraph
        found = [node.astext() for kind in kinds for node in doctree.findall(kind)] or found
    text = html.escape(" ".join(found[0].split())[:300])
    context["metatags"] = f'{context.get("metatags", "")}<meta name="description" content="{text}">'


def setup(app):
    app.connect("html-page-context", add_description)
