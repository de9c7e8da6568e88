"""Build the documentation site from the notebooks into _docs/, executing nothing and without the network."""

import argparse
import ast
import html
import os
import re
import shutil
import sys
import tempfile
from configparser import ConfigParser
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import nbformat
from nbtext import from_root, reader_notebook
from sphinx.cmd.build import build_main

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
SECTIONS = {
    "01_core": "Core",
    "02_algorithm": "Algorithm",
    "03_theory": "The paper's theory",
    "04_proofs": "Proofs",
    "05_sources": "Data",
    "06_networks": "Networks",
    "07_methods": "Methods",
    "08_training": "Training",
    "09_analysis": "Analysis",
    "10_report": "Reports",
    "11_benchmarks": "Benchmarks",
    "11_console": "What is typed",
    "12_cli": "Commands",
    "13_experiments": "Experiments",
}


# Without these, half of the reference would be missing.
NEEDED = ("torch", "torchvision", "transformers", "pandas", "filelock", "safetensors")


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
        inside = path.startswith("nbs/") and not (NBS / target.partition("#")[0]).is_dir()
        return target if inside else f"{repository}/{path}"

    return change


def toctree(caption, pages):
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```"])


def contents(paths):
    """The table of contents: one toctree a section, and the reference."""
    trees = []
    for folder, caption in SECTIONS.items():
        pages = [path.with_suffix("").as_posix() for path in paths if path.parent == Path(folder)]
        if pages:
            trees.append(toctree(caption, pages))
    pages = [path.stem for path in paths if path.parent == Path() and path != Path("index.ipynb")]
    return "\n\n".join([*trees, toctree("Reference", [*pages, "api"])])


def reference(lib):
    """The page that documents every module of the library, in the order of the notebooks that export them."""
    exported = []
    for path in (ROOT / lib).rglob("*.py"):
        if match := source_notebook(path):
            module = ".".join(path.relative_to(ROOT / lib).with_suffix("").parts)
            exported.append((match[1], module))
    sections = [
        f"## {module}\n\n```{{eval-rst}}\n.. automodule:: {lib}.{module}\n```"
        for _, module in sorted(exported)
    ]
    return "\n\n".join(["# Reference", *sections]) + "\n"


def source_notebook(module):
    """The match whose first group is the notebook, with its folder, that `module` was exported from."""
    return re.search(r"File to edit: \S*?([^/\s]+/[^/\s]+\.ipynb)", module.read_text(encoding="utf-8"))


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


# The tags that load something; the rest of a page need not be parsed.
LOADING_TAGS = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|object|link)\b(?:[^>"']|"[^"]*"|'[^']*')*>""", re.IGNORECASE
)


class Page(HTMLParser):
    """What is wrong with a page of the site: pictures without a text, and what would be loaded from
    elsewhere.
    """

    LOADED = {
        **dict.fromkeys(("script", "img", "iframe", "source", "video", "audio"), "src"),
        "object": "data",
    }

    def __init__(self, text):
        super().__init__()
        self.faults = []
        for tag in LOADING_TAGS.findall(text):
            self.feed(tag)
            self.reset()  # what stands in a script is no part of the page

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        address = attrs.get(self.LOADED.get(tag, ""), "") or ""
        if tag == "link" and attrs.get("rel") in ("stylesheet", "preload", "icon", "shortcut icon"):
            address = attrs.get("href", "")
        if re.match(r"(https?:)?//", address):
            self.faults.append(f"<{tag}> loads {address}")
        if tag == "img" and ("alt" not in attrs or re.search(r"\.(png|svg|jpe?g)$", attrs["alt"] or "")):
            self.faults.append(f"<img> has no alternative text: {address[:80]}")


def faults(site):
    """One line for each fault of the pages of a site."""
    pages = sorted(Path(site).rglob("*.html"))
    return [
        f"{path.relative_to(site)}: {fault}"
        for path in pages
        for fault in Page(path.read_text(encoding="utf-8")).faults
    ]


def write_source(source):
    """Fill the folder `source` with what Sphinx builds from."""
    cfg = settings()
    repository = f"{cfg['git_url']}/blob/{cfg['branch']}"
    paths, texts = notebooks(), figure_texts(cfg["lib_path"])
    if Path("index.ipynb") not in paths:
        raise SystemExit("nbs/index.ipynb is missing: it is the first page of the site")
    for path in NBS.rglob("*"):
        if path.is_file() and path.suffix.lower() in (".png", ".jpg", ".jpeg", ".svg", ".gif"):
            copy = source / path.relative_to(NBS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    for path in paths:
        notebook = reader_notebook(NBS / path, site_link(path.parent, repository))
        add_alternatives(notebook, texts)
        if path == Path("index.ipynb"):
            notebook.cells.append(nbformat.v4.new_markdown_cell(contents(paths)))
        copy = source / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(nbformat.writes(notebook), encoding="utf-8")
    (source / "api.md").write_text(reference(cfg["lib_path"]), encoding="utf-8")


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
        help="fail where Sphinx warns, a picture has no text, or a page loads something from elsewhere",
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
    wrong = faults(options.output)
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    if wrong and options.strict:
        return 1
    print(f"built {options.output}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
