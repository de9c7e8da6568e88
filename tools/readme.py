"""Write README.md from nbs/index.ipynb; with --check, only say whether it is current."""

import base64
import re
import sys
from pathlib import Path

from nbtext import from_root, reader_notebook

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = "nbs/index.ipynb"
HEADER = (
    f"<!-- Generated from {NOTEBOOK} by tools/readme.py: edit the notebook, then run `python "
    "tools/readme.py`. -->"
)


def shown(output, pictures):
    """An output as Markdown, in the one form that a page can show; its picture joins the others."""
    data = output.get("data", {})
    for kind in ("text/html", "text/markdown"):
        if kind in data:
            return data[kind]
    if "image/png" in data:
        path = f"nbs/images/index_{len(pictures)}.png"
        pictures[path] = base64.b64decode(data["image/png"])
        return f"![{output.metadata.get('alt', 'Figure')}]({path})"
    text = data.get("text/plain", output.get("text", ""))
    return f"```text\n{text.strip(chr(10))}\n```"


def generated():
    """What the notebook gives: {path: bytes} of README.md and its pictures."""
    parts, pictures = [HEADER], {}
    for cell in reader_notebook(ROOT / NOTEBOOK, lambda target: from_root(target, "nbs")).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        if "remove-input" not in cell.metadata.get("tags", ()):
            parts.append(f"```python\n{cell.source}\n```")
        parts += [shown(output, pictures) for output in cell.outputs]
    text = "\n\n".join(part.strip() for part in parts) + "\n"
    return {"README.md": re.sub(r"\n{3,}", "\n\n", text).encode()} | pictures


def main():
    wanted = generated()
    stale = [path for path, content in wanted.items()
             if not (ROOT / path).exists() or (ROOT / path).read_bytes() != content]  # fmt: skip
    stale += [path for path in map(str, (ROOT / "nbs" / "images").glob("index_*.png"))
              if Path(path).relative_to(ROOT).as_posix() not in wanted]  # fmt: skip
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path} is not what {NOTEBOOK} gives: run `python tools/readme.py` and commit it.")
        return bool(stale)
    for path in stale:
        (ROOT / path).unlink(missing_ok=True)
        if path in wanted:
            (ROOT / path).write_bytes(wanted[path])
    print("\n".join(f"wrote {path}" for path in stale) or "README.md is current")
    return 0


if __name__ == "__main__":
    sys.exit(main())
