"""How time and memory grow with the size of the data: rows, features, groups, classes, texts, pictures.

    python benchmarks/sizes.py --out results/sizes.json [--cases rows features] [--most 100000] [--note TEXT]

Made-up data of three or four sizes for each case; each command runs in a process of its own, of which the
seconds of the processor and the peak of the memory are kept. `--most` leaves larger sizes out. Cases that
are not run keep what the record has of them.
"""

import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pde_nb.core.files import surroundings
from pde_nb.records.seals import read_measurement, write_sealed

LIMIT = 300  # seconds of the processor that one process may take
MADE = np.random.default_rng


# ---- data ---------------------------------------------------------------------------------------


def label_and_attribute(n, n_classes=2, n_values=2):
    """Codes that agree in nine of ten rows."""
    rng = MADE(0)
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    a = np.where(rng.random(n) < 0.9, y % n_values, rng.integers(0, n_values, n))
    a[:n_values] = np.arange(n_values)
    return y, a


def write_table(path, y, a, x):
    """A table with the columns y, a, x0, x1, …"""
    import pandas as pd

    columns = {"y": [f"class {v}" for v in y], "a": [f"value {v}" for v in a]}
    table = pd.DataFrame(columns).join(pd.DataFrame(x.astype("float32")).add_prefix("x"))
    table.to_csv(path, index=False, float_format="%.4g")


def make_features(folder, n, d, n_classes=2, n_values=2):
    """A table of n rows and d features, of which the first knows the class and the second the attribute."""
    y, a = label_and_attribute(n, n_classes, n_values)
    x = MADE(1).standard_normal((n, d), dtype=np.float32)
    x[:, 0] += 2 * (y - y.mean()) / y.std()
    x[:, 1] += 4 * (a - a.mean()) / a.std()
    write_table(folder / "data.csv", y, a, x)
    return ["--data", "data.csv", "--label", "y", "--attribute", "a"]


def make_rows(folder, n):
    """A million rows of ten features, or fewer."""
    return make_features(folder, n, 10)


def make_columns(folder, d):
    """Six hundred rows of many features."""
    return make_features(folder, 600, d)


def make_groups(folder, n_groups):
    """Two classes and an attribute of many values."""
    return make_features(folder, 100_000, 10, 2, n_groups // 2)


def make_classes(folder, n_classes):
    """Many classes and an attribute of two values."""
    return make_features(folder, 100_000, 10, n_classes, 2)


def make_text(folder, length):
    """Six hundred short texts, and one of so many characters."""
    import pandas as pd

    y, a = label_and_attribute(600)
    texts = [f"{'good' if v else 'bad'} film {'with' if w else 'without'} a dog" for v, w in zip(y, a)]
    texts[0] = ("many words and then more of them " * (length // 33 + 1))[:length]
    table = pd.DataFrame({"y": y, "a": a, "said": texts, "split": ["train", "train", "val", "test"] * 150})
    table.to_csv(folder / "data.csv", index=False)
    return ["--data", "data.csv", "--label", "y", "--attribute", "a", "--text", "said"]


def make_files(folder, n):
    """A folder of so many tiny pictures, with its table."""
    import pandas as pd
    from PIL import Image

    y, a = label_and_attribute(n)
    place = folder / "pictures"
    place.mkdir()
    Image.new("RGB", (8, 8)).save(place / "0.png")
    content = (place / "0.png").read_bytes()
    names = [f"{i}.png" for i in range(n)]
    for name in names:
        (place / name).write_bytes(content)
    pd.DataFrame({"file_name": names, "y": y, "a": a}).to_csv(place / "metadata.csv", index=False)
    return ["--data", "pictures", "--label", "y", "--attribute", "a"]


# ---- what is measured ---------------------------------------------------------------------------

COMMANDS = {
    "open": "from pde_nb.cli.opening import open_data as o; import sys; w = sys.argv; "
    "print(o(data=w[2], label=w[4], attribute=[w[6]], text=w[8:] or None).describe())",
    "diagnose": "from pde_nb.cli.diagnose import pde_diagnose as run; run()",
    "train": "from pde_nb.cli.train import pde_train as run; run()",
    "report": "from pde_nb.cli.report import pde_report as run; run()",
}
FURTHER = {
    "train": ["--method", "erm", "--epochs", "1", "--out", "run", "--device", "cpu"],
}


@dataclass(frozen=True)
class Case:
    """What grows, and what is done with it."""

    unit: str
    make: Callable  # (folder, size) → the options that open the data
    sizes: tuple[int, ...]
    commands: tuple[str, ...]


CASES = {
    "rows": Case(
        "rows of 10 features", make_rows, (10_000, 100_000, 1_000_000), ("diagnose", "train", "report")
    ),
    "features": Case(
        "features of 600 rows", make_columns, (200, 2_000, 6_000, 20_000), ("diagnose", "train")
    ),
    "groups": Case(
        "groups of 100,000 rows", make_groups, (10, 100, 1_000, 10_000), ("open", "train", "diagnose")
    ),
    "classes": Case(
        "classes of 100,000 rows", make_classes, (5, 50, 500, 5_000), ("open", "train", "diagnose")
    ),
    "text": Case(
        "characters in one of 600 texts", make_text, (10**4, 10**5, 10**6, 10**7), ("open", "diagnose")
    ),
    "files": Case("pictures in a folder", make_files, (2_000, 20_000, 200_000), ("open",)),
}


def limit_seconds():
    """End this process after so many seconds of the processor."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))


def measured(command, options, folder):
    """Seconds of the processor and of the clock, peak memory and status of one process."""
    words = [] if command == "report" else [*options, *FURTHER.get(command, ())]
    words = ["run", "--no-mistakes"] if command == "report" else words
    start = time.monotonic()
    with open(folder / "said.txt", "wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", COMMANDS[command], *words],
            cwd=folder,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": sys.path[0]},
            preexec_fn=limit_seconds,
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    found = dict(
        seconds=round(used.ru_utime + used.ru_stime, 2),
        clock=round(time.monotonic() - start, 2),
        megabytes=round(used.ru_maxrss / 1024),
        status=process.returncode,
    )
    if process.returncode:
        found["said"] = (folder / "said.txt").read_text(errors="replace").strip().split("\n")[-1][-300:]
    return found


# ---- how it grows -------------------------------------------------------------------------------


def exponent(sizes, values):
    """How what a size adds to the smallest one grows: from the last but one to the last; None below three.

    An addition of less than a tenth of the smallest is taken for a tenth, as it is within the noise.
    """
    if len(sizes) < 3:
        return None
    before, last = (max(value - values[0], values[0] / 10) for value in values[-2:])
    return round(math.log(last / before) / math.log(sizes[-1] / sizes[-2]), 2)


def run_case(case, most):
    """All sizes of a case up to the largest that is wanted, the smaller ones first."""
    rows = []
    for size in case.sizes:
        if size > most:
            continue
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            options = case.make(folder, size)
            for command in case.commands:
                row = dict(size=size, command=command, **measured(command, options, folder))
                rows.append(row)
                print(f"{size:>10,} {case.unit}: {command} {row}", flush=True)
    return dict(unit=case.unit, rows=rows, exponents=exponents(case.commands, rows))


def exponents(commands, rows):
    """How seconds and memory of each command grow, of the sizes that came to an end."""
    found = {}
    for command in commands:
        done = [row for row in rows if row["command"] == command and row["status"] == 0]
        sizes = [row["size"] for row in done]
        found[command] = {
            what: exponent(sizes, [row[what] for row in done]) for what in ("seconds", "megabytes")
        }
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--most", type=float, default=float("inf"))
    parser.add_argument("--note", default="", help="what else the machine was doing")
    args = parser.parse_args()
    record = read_measurement(args.out) if args.out.exists() else dict(cases={})
    for name in args.cases:
        result = run_case(CASES[name], args.most)
        record["cases"][name] = dict(result, note=args.note, surroundings=surroundings())
        write_sealed(args.out, record)


if __name__ == "__main__":
    main()
