"""Write README.md from nbs/index.ipynb; with --check, only say whether it is current."""

import argparse
import base64
import os
import re
import sys
from pathlib import Path

from jinja2 import DictLoader
from nbconvert import MarkdownExporter
from nbtext import from_root, reader_notebook
from traitlets.config import Config

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = "nbs/index.ipynb"
HEADER = (
    f"<!-- Generated from {NOTEBOOK} by tools/readme.py: edit the notebook, then run `python "
    "tools/readme.py`. -->"
)
REMEDY = "run `python tools/readme.py` and commit what it changes"
SHOWN = ("text/html", "text/markdown", "image/png", "text/latex", "text/plain")

TEMPLATE = """{%- extends 'markdown/index.md.j2' -%}
{%- macro fenced(text) %}
```text
{{ text | strip_ansi | trim('\n') }}
```
{% endmacro -%}
{% block input -%}
{% if 'remove-input' not in cell.metadata.tags | default([]) %}{{ super() }}{% endif %}
{%- endblock %}
{% block stream %}{{ fenced(output.text) }}{% endblock %}
{% block data_text scoped %}{{ fenced(output.data['text/plain']) }}{% endblock %}
{% block error %}{{ fenced(output.ename ~ ': ' ~ output.evalue) }}{% endblock %}
{% block data_png %}
![{{ output.metadata.alt | default('Figure') }}]({{ output.metadata.filenames['image/png'] }})
{% endblock %}
"""


def keep_best_output(output):
    """Reduce an output to the one form of it that is shown."""
    data = output.get("data", {})
    best = next((kind for kind in SHOWN if kind in data), None)
    if data and best is None:
        raise ValueError(
            f"an output of {NOTEBOOK} has only the forms {sorted(data)}: README.md can show "
            f"{', '.join(SHOWN)}"
        )
    if best:
        output.data = {best: data[best]}
    return output


def take_pictures(notebook):
    """The notebook's PNG outputs as {path: bytes}; each output is given its path to refer to."""
    pictures = {}
    for cell in notebook.cells:
        for output in map(keep_best_output, cell.get("outputs", [])):
            if "image/png" in output.get("data", {}):
                path = f"nbs/images/index_{len(pictures)}.png"
                pictures[path] = base64.b64decode(output.data["image/png"])
                output.metadata["filenames"] = {"image/png": path}
    return pictures


def single_blank_lines(markdown):
    """Markdown with runs of blank lines outside fenced blocks made one."""
    blocks = re.split(r"(^```.*?^```[^\S\n]*$)", markdown, flags=re.DOTALL | re.MULTILINE)
    blocks[::2] = (re.sub(r"\n(?:[^\S\n]*\n){2,}", "\n\n", block) for block in blocks[::2])
    return "".join(blocks).strip() + "\n"


def generated_files():
    """What the notebook gives: {path: bytes} of README.md and its pictures."""
    notebook = reader_notebook(ROOT / NOTEBOOK, lambda target: from_root(target, "nbs"))
    pictures = take_pictures(notebook)
    exporter = MarkdownExporter(
        config=Config({"ExtractOutputPreprocessor": {"enabled": False}}),
        extra_loaders=[DictLoader({"readme.md.j2": TEMPLATE})],
        template_file="readme.md.j2",
    )
    body, _ = exporter.from_notebook_node(notebook)
    readme = single_blank_lines(HEADER + "\n\n" + body)
    return {"README.md": readme.encode("utf-8"), **pictures}


def on_disk():
    """The generated files there are now, as {path: bytes}."""
    paths = [ROOT / "README.md", *sorted((ROOT / "nbs" / "images").glob("index_*.png"))]
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths if path.exists()}


def differences(wanted, present):
    """One line for each file that is missing, stale or left over."""
    said = {path: "missing" for path in wanted.keys() - present.keys()}
    said.update({path: "left over" for path in present.keys() - wanted.keys()})
    said.update(
        {
            path: "stale"
            for path in wanted.keys() & present.keys()
            if wanted[path] != unix_lines(path, present[path])
        }
    )
    return [f"{path} is {word}" for path, word in sorted(said.items())]


def unix_lines(path, content):
    return content if path.endswith(".png") else content.replace(b"\r\n", b"\n")


def write(wanted, present):
    for path, content in wanted.items():
        target = ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(target.name + ".tmp")
        temporary.write_bytes(content)
        os.replace(temporary, target)
    for path in present.keys() - wanted.keys():
        (ROOT / path).unlink()


def main(args=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 where README.md is not current"
    )
    check = parser.parse_args(args).check
    if not (ROOT / NOTEBOOK).exists():
        print(f"{NOTEBOOK} is missing: README.md is made from it", file=sys.stderr)
        return 1
    wanted, present = generated_files(), on_disk()
    changes = differences(wanted, present)
    if check and changes:
        print("\n".join(changes) + f"\n{REMEDY}", file=sys.stderr)
        return 1
    if not check and changes:
        write(wanted, present)
    print(
        "README.md is current"
        if check or not changes
        else "\n".join(f"wrote: {line}" for line in changes).replace(" is ", " was ")
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
