"""The pages of the site that no notebook is: sections, rooms, the reference; and what a start page adds."""

import ast
import html
import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import reference

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
LIB = reference.LIB

# Folders of notebooks, each a room: its name, and what is in it.
ROOMS = {
    "01_core": ("Core", "Arguments, statistics, files, tables and the style of the pictures."),
    "01_records": ("Records", "How a file is sealed and checked, and what a run folder holds."),
    "02_algorithm": ("Algorithm", "Groups, metrics, the expansion and its schedule."),
    "03_theory": ("The paper's theory", "The data model, the network, the experiments, an explorer."),
    "03_phase": ("Phase diagram", "Which feature is learned first, for every strength and share."),
    "04_proofs": ("Proofs", "The paper's claims, derived, and checked by numerics and computer algebra."),
    "05_columns": ("Columns", "What a column of a table is, and which of its cells do not fit."),
    "05_sources": ("Data", "Tables, pictures, texts and arrays as one type, in memory or on the disk."),
    "05_published": ("Published data sets", "Waterbirds, CelebA, CivilComments: fetched, checked and read."),
    "05_inputs": ("Inputs", "From pictures, texts and columns to the batches that a network gets."),
    "06_networks": ("Networks", "Models by name, weights, and what a device can do."),
    "07_grouping": (
        "Group labels that are missing",
        "Groups predicted from a few labels, or found without any.",
    ),
    "07_labelling": ("Labelling", "Which rows to label by hand, and what the labels tell."),
    "07_methods": ("Methods", "PDE and the methods that it is compared with, a notebook each."),
    "07_prediction": ("Prediction", "New rows: read, encoded, predicted, written to a file."),
    "08_training": ("Training", "A run and the loop: its state, validation, selection, checkpoints."),
    "08_runs": (
        "Runs",
        "The settings of the paper, from a specification to a finished folder, the one call.",
    ),
    "08_deployment": ("In use", "Estimator, other data, export, model card."),
    "09_analysis": ("Analysis", "Diagnosis before training; mistakes, attention and predictions after it."),
    "09_comparison": ("Comparison", "Methods side by side: paired seeds, several settings, a search."),
    "10_pages": ("Pages", "Blocks, charts, HTML and Markdown: how a report is written down."),
    "10_report": ("Reports", "Pages on a run, on several runs, on a comparison."),
    "11_reproduction": ("Reproduction", "The paper's tables and figures by their labels, and known answers."),
    "12_cli": ("Commands", "One notebook for each command, and how commands fail."),
    "13_experiments": ("Experiments", "Records of long runs: what was found, on which data."),
}
GUIDES, RESULTS = "14_guides", "13_experiments"

# To understand the method, in this order, one sitting each; (name in the list, notebook).
READING = (
    ("1 · Groups", "02_algorithm/01_groups"),
    ("2 · Metrics", "02_algorithm/02_metrics"),
    ("3 · The data model", "03_theory/01_data_model"),
    ("4 · The network", "03_theory/02_network"),
    ("5 · The expansion", "02_algorithm/03_expansion"),
    ("6 · The experiment", "03_theory/07_experiment"),
    ("7 · Proofs (to understand)", "04_proofs/11_gradients"),
    ("7 · Methods (to use)", "07_methods/01_base"),
    ("8 · The loop", "08_training/05_trainer"),
    ("Then: your own data", "14_guides/01_own_table"),
)

EXPLORER = "explorer.html"  # in docs/static when it is built


@dataclass(frozen=True)
class Head:
    """What a notebook says of itself first."""

    title: str
    summary: str


@cache
def head(path):
    """The `Head` of the notebook at a path below nbs/."""
    cells = json.loads((NBS / path).read_text(encoding="utf-8"))["cells"]
    text = "".join(cells[0]["source"]) if cells else ""
    title = re.search(r"^# +(.+)$", text, re.MULTILINE)
    summary = re.search(r"^> *(.+)$", text, re.MULTILINE)
    return Head(title[1] if title else Path(path).stem, summary[1] if summary else "")


def is_test(path):
    """Whether a notebook holds tests in bulk, which stand at the end of their section."""
    return bool(re.search(r"_tests$|^20_properties$", path.stem))


def in_room(paths, folder):
    """The notebooks of a folder: those to read, and those of tests."""
    here = [path for path in paths if path.parent == Path(folder)]
    return [path for path in here if not is_test(path)], [path for path in here if is_test(path)]


def outside(paths):
    """Folders of notebooks that the site has no section for."""
    return sorted({path.parent.as_posix() for path in paths} - {*ROOMS, GUIDES, "."})


def page_of(path):
    return Path(path).with_suffix("").as_posix()


def toctree(caption, entries, depth=1):
    """A list of pages for the sidebar; each entry is a page, or (name, page)."""
    lines = [entry if isinstance(entry, str) else f"{entry[0]} <{entry[1]}>" for entry in entries]
    named = [f":caption: {caption}"] if caption else []
    return "\n".join(["```{toctree}", ":hidden:", f":maxdepth: {depth}", *named, "", *lines, "```"])


def short(title):
    """The title of a how-to page, below a heading that says how to already."""
    plain = title.removeprefix("How to ")
    return plain[:1].upper() + plain[1:]


def contents(paths):
    """The sections of the sidebar, for the start page."""
    guides = [(short(head(path).title), page_of(path)) for path in paths if path.parent == Path(GUIDES)]
    rooms = [
        (name, f"rooms/{folder}")
        for folder, (name, _) in ROOMS.items()
        if folder != RESULTS and any(in_room(paths, folder))
    ]
    single = [page_of(path) for path in paths if path.parent == Path() and path.stem != "index"]
    results = [f"{RESULTS}/00_results", ("Experiments, one by one", f"rooms/{RESULTS}")]
    trees = [
        toctree("Start", [("What it is", "self"), *single]),
        toctree("How to", guides) if guides else "",
        toctree("Reading path", READING),
        toctree("Notebooks, by room", rooms),
        toctree("Results", results),
        toctree("Reference", [("The library, by module", "api/index")]),
    ]
    return "\n\n".join(filter(None, trees))


def listing(paths, up):
    """Notebooks with their summaries, as a list; `up` leads from the page to nbs/."""
    lines = []
    for path in paths:
        about = head(path)
        lines.append(f"- [{about.title}]({up}{path.as_posix()})  \n  {about.summary}")
    return "\n".join(lines)


def room_page(paths, folder):
    """The page of a room: what is in it, notebook by notebook, tests last."""
    name, about = ROOMS[folder]
    read, tests = in_room(paths, folder)
    if folder == RESULTS:
        read = [path for path in read if path.stem != "00_results"]
    package = folder.partition("_")[2]
    parts = [f"# {name}", f"> {about}"]
    if (ROOT / LIB / package).is_dir():
        parts.append(f"These notebooks export [`{LIB}.{package}`](../api/{package}/index.md).")
    parts.append(listing(read, "../"))
    if tests:
        parts += ["## Tests", listing(tests, "../")]
    parts.append(toctree("", [f"/{page_of(path)}" for path in (*read, *tests)]))
    return "\n\n".join(parts) + "\n"


# ---- the start page -------------------------------------------------------------------------


def card(target, title, text):
    return (
        f'<a class="card-link" href="{target}"><strong>{html.escape(title)}</strong> {html.escape(text)}</a>'
    )


def cards():
    """Where to go from the start page, as links that are seen at once."""
    has_explorer = (ROOT / "docs" / "static" / EXPLORER).exists()
    explorer = f"_static/{EXPLORER}" if has_explorer else "03_theory/14_explore.html"
    shown = [
        card("14_guides/01_own_table.html", "Use it", "A table of your own, from the file to a report."),
        card(
            "02_algorithm/01_groups.html",
            "Understand it",
            "Eight notebooks in order, from groups to the loop.",
        ),
        card(explorer, "See it move", "Sliders for the paper's model of two features."),
        card("13_experiments/00_results.html", "Judge it", "All results in one place, with intervals."),
        card("api/index.html", "Look it up", "Every function, with its parameters and errors."),
    ]
    return "\n".join(['<nav class="card-row" aria-label="Where to go">', *shown, "</nav>"])


# ---- the reference --------------------------------------------------------------------------


def source_notebook(module):
    """Path below nbs/ of the notebook that a module was exported from; None for one written by hand."""
    text = module.read_text(encoding="utf-8")
    found = re.search(r"File to edit: \S*?([^/\s]+/[^/\s]+\.ipynb)", text)
    return Path(found[1]) if found else None


def module_files():
    """{module below the library: file} of what notebooks export, in the order of the notebooks."""
    found = []
    for file in (ROOT / LIB).rglob("*.py"):
        notebook = source_notebook(file)
        if notebook:
            found.append((notebook, ".".join(file.relative_to(ROOT / LIB).with_suffix("").parts), file))
    return {module: file for _, module, file in sorted(found)}


def first_line(file):
    """What a module says of itself."""
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0]


def module_page(module, file):
    """The page of one module: its docstring, its public names, its constants."""
    notebook = source_notebook(file)
    up = "../" * (module.count(".") + 1)
    parts = [
        f"# {LIB}.{module}",
        f"> {first_line(file)}",
        f"Explained and tested in [{head(notebook).title}]({up}{notebook.as_posix()}).",
        f"```{{eval-rst}}\n.. automodule:: {LIB}.{module}\n```",
    ]
    for name in reference.TAKEN.get(module, ()):
        parts.append(f"```{{eval-rst}}\n.. autoclass:: {LIB}.{module}.{name}\n```")
    constants = reference.constants(file, f"{LIB}.{module}")
    if constants:
        parts += ["## Constants", f"```{{eval-rst}}\n{constants}\n```"]
    return "\n\n".join(parts) + "\n"


def package_page(package, modules):
    """The page of one package: its modules."""
    folder = next(folder for folder in ROOMS if folder.partition("_")[2] == package)
    lines = [f"- [`{name}`]({name}.md): {first_line(file)}" for name, file in modules.items()]
    parts = [f"# {LIB}.{package}", f"> {ROOMS[folder][1]}", "\n".join(lines), toctree("", [*modules])]
    return "\n\n".join(parts) + "\n"


def door_table():
    """The names that `import pde_nb` offers, each with where it is described and its first sentence."""
    library = sys.modules[LIB]
    lines = ["| name | what it is |", "|---|---|"]
    for name in sorted(library.__all__, key=str.swapcase):  # functions first
        thing = getattr(library, name)
        if isinstance(thing, str):
            continue
        text = (thing.__doc__ or "").strip().partition("\n\n")[0]
        said = re.split(r"(?<=[.;:]) ", " ".join(text.split()), maxsplit=1)[0]
        said = said.rstrip(".;:").replace("|", "\\|")
        lines.append(f"| {{py:obj}}`{name} <{thing.__module__}.{thing.__name__}>` | {said} |")
    return "\n".join(lines)


def reference_pages():
    """{path below the source folder: text} of the reference."""
    packages, adapters = {}, {}
    for module, file in module_files().items():
        package, _, name = module.partition(".")
        if name:
            packages.setdefault(package, {})[name] = file
        else:
            adapters[module] = file
    pages = {f"api/{name}.md": module_page(name, file) for name, file in adapters.items()}
    for package, modules in packages.items():
        pages[f"api/{package}/index.md"] = package_page(package, modules)
        pages |= {
            f"api/{package}/{name}.md": module_page(f"{package}.{name}", file)
            for name, file in modules.items()
        }
    lines = [
        f"- [`{LIB}.{package}`]({package}/index.md): {len(modules)} modules"
        for package, modules in packages.items()
    ]
    lines += [f"- [`{LIB}.{name}`]({name}.md): {first_line(file)}" for name, file in adapters.items()]
    parts = [
        "# The library, by module",
        f"> What `import {LIB}` offers, and every public function with its parameters, result and errors.",
        "## The names for users",
        f"They are there after `import {LIB}`, and stay where they are. All else may move.",
        door_table(),
        "## All modules",
        "\n".join(lines),
        toctree("", [*(f"{package}/index" for package in packages), *adapters]),
    ]
    return pages | {"api/index.md": "\n\n".join(parts) + "\n"}


def written_pages(paths):
    """{path below the source folder: text} of all pages that are no notebook."""
    rooms = {
        f"rooms/{folder}.md": room_page(paths, folder) for folder in ROOMS if any(in_room(paths, folder))
    }
    return rooms | reference_pages()
