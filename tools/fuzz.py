"""Try the properties of the `*_properties` pages on new examples, and record how many there were.

    python tools/fuzz.py [PAGE ...] [--minutes 30] [--seed N] [--record FILE]

A page is named by a part of its path; without names, all. Each property has the same share of the time. A
line for each property says on how many examples it was tried and whether it held. The record holds the same,
with date, seed and source revision; a search of some pages replaces their lines in it and keeps the others.
The exit status is 1 where a property broke.
"""

import argparse
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"
RECORD = ROOT / "results" / "fuzzing.json"
SKIPPED = re.compile(r"^#\s*\|\s*(slow|data|gpu)\b", re.MULTILINE)
QUIET = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}


def pages(names: list[str]) -> list[str]:
    """The pages of properties, by their path below nbs/; those whose path has one of the names in it."""
    found = sorted(p.relative_to(ROOT / "nbs").as_posix() for p in ROOT.glob("nbs/*/*_properties.ipynb"))
    chosen = [page for page in found if not names or any(name in page for name in names)]
    if not chosen:
        raise SystemExit(f"no page is called {' or '.join(names)}; there are: {', '.join(found)}")
    return chosen


def sources(page: str) -> list[str]:
    """The code of a page that runs everywhere, cell by cell."""
    cells = json.loads((ROOT / "nbs" / page).read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [source for source in code if not SKIPPED.search(source)]


def state_properties(page: str):
    """Run the code of a page without trying its properties; the module that has collected them."""
    sys.path[:0] = [str(ROOT), str(TOOLS)]
    os.chdir((ROOT / "nbs" / page).parent)
    import properties

    properties.only_collect = True
    namespace = {"__name__": "__main__"}
    for source in sources(page):
        exec(compile(source, page, "exec"), namespace)
    return properties


def search_page(page: str, share: float, start: int, out: str):
    """In a process of its own: try each property of a page for its share of the time, in seconds."""
    stated = state_properties(page)
    found = [asdict(stated.try_for(p, share, start)) for p in stated.collected]
    Path(out).write_text(json.dumps(found), encoding="utf-8")


def count_properties(page: str) -> int:
    """How many properties a page states."""
    return sum(len(re.findall(r"^\s*@holds\(", source, re.MULTILINE)) for source in sources(page))


def searched(page: str, share: float, start: int) -> list[dict]:
    """What came of a page: a line for each property; one that says so where the page itself broke."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        command = [sys.executable, __file__, "--search", page, str(share), str(start), str(out)]
        done = subprocess.run(command, env={**os.environ, **QUIET}, capture_output=True, text=True)
        if out.exists():
            return [dict(page=page, **found) for found in json.loads(out.read_text(encoding="utf-8"))]
    broken = dict(name="the page itself", says="", examples=0, seconds=0.0, failure=done.stderr[-2000:])
    return [dict(page=page, **broken)]


def earlier(path: Path) -> list[dict]:
    """The properties of a record that is there."""
    sys.path.insert(0, str(ROOT))
    from pde_nb.records.seals import read_measurement

    return read_measurement(path)["properties"] if path.exists() else []


def write_record(path: Path, found: list[dict], searched_pages: list[str]):
    """Write what was found, in place of what the record says of these pages, and of pages that are gone."""
    sys.path.insert(0, str(ROOT))
    from pde_nb.records.seals import write_sealed

    others = set(pages([])) - set(searched_pages)
    kept = [line for line in earlier(path) if line["page"] in others]
    lines = sorted([*kept, *found], key=lambda line: line["page"])
    write_sealed(path, dict(command="python tools/fuzz.py", properties=lines))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", help="parts of their paths; default all")
    parser.add_argument("--minutes", type=float, default=30.0, help="for all pages together; default 30")
    parser.add_argument("--seed", type=int, help="of the examples; default a random one")
    parser.add_argument("--record", type=Path, default=RECORD, help="default results/fuzzing.json")
    options = parser.parse_args()
    start = secrets.randbelow(2**32) if options.seed is None else options.seed
    chosen = pages(options.pages)
    share = 60 * options.minutes / sum(map(count_properties, chosen))
    sys.path.insert(0, str(ROOT))
    from pde_nb.core.files import surroundings

    stamp = dict(
        date=datetime.now(timezone.utc).date().isoformat(), revision=surroundings()["revision"], seed=start
    )
    print(f"seed {start}, {share:.1f} s for each property", flush=True)
    everything = []
    for page in chosen:
        found = [{**line, **stamp} for line in searched(page, share, start)]
        everything += found
        for line in found:
            print(line_text(line), flush=True)
        write_record(options.record, found, [page])
    broken = sum(line["failure"] is not None for line in everything)
    total = sum(line["examples"] for line in everything)
    print(f"{len(everything)} properties, {total:,} examples, {broken} broke")
    return int(broken > 0)


def line_text(line: dict) -> str:
    """One property in a line; what broke it below."""
    end = f"BROKE\n{line['failure']}" if line["failure"] else "held"
    return f"{line['page']}  {line['name']}: {line['examples']:,} examples, {end}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--search"]:
        search_page(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        sys.exit(main())
