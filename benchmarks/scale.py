"""How the parts of a run grow: time and memory against rows, groups, classes, features and seeds.

    python benchmarks/scale.py --out results/scale.json [--cases rows groups] [--most 1000000]

Made-up data in .npy files for each size; all parts of a run are done one after the other in a process of its
own: open the data, plan, start, twenty steps, evaluate, write a checkpoint, take it up again, write what a
run leaves. Kept are the seconds of the processor and of the clock, the most memory that is no file's, and
the bytes and operations that were planned. `--most` leaves larger sizes out; cases that are not run keep what
the record has.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pde_nb.core.files import surroundings
from pde_nb.records.seals import read_measurement, write_sealed

USUAL = dict(rows=100_000, groups=4, classes=2, features=4, seeds=1)
SIZES = dict(
    rows=(1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    groups=(4, 64, 1_000, 10_000),
    classes=(2, 10, 100, 1_000),
    features=(4, 64, 512, 4_096),
    seeds=(1, 4, 16),
)
AT = dict(groups=dict(rows=1_000_000), classes=dict(rows=1_000_000), features=dict(rows=20_000))
STEPS = 20
BATCH = 128
# bytes of a row: class 8, group 8, split 1, attribute 8, position among the training rows 8; of a training
# row (7 of 10): its number, group, place in the plans of the spec and of the run, and three orders while it
# is drawn
PLANNED = 8 + 8 + 1 + 8 + 8 + 0.7 * 8 * (2 + 2 + 3)


# ---- one process --------------------------------------------------------------------------------


def anonymous() -> int:
    """Megabytes of this process that are no file's."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) // 1000


class Meter:
    """What each part takes, and the most memory since the start."""

    def __init__(self):
        self.parts = {}
        self.base = anonymous()
        self.most = 0
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        """Look at the memory every few milliseconds."""
        while True:
            self.most = max(self.most, anonymous() - self.base)
            time.sleep(0.005)

    @contextmanager
    def part(self, name: str):
        """Time a part."""
        cpu, clock = time.process_time(), time.perf_counter()
        yield
        took = dict(cpu=time.process_time() - cpu, clock=time.perf_counter() - clock)
        before = self.parts.get(name, dict(cpu=0, clock=0))
        self.parts[name] = {key: round(before[key] + took[key], 4) for key in took}

    def sums(self, **sums) -> dict:
        """The parts, some of them with what comes before them."""
        parts = dict(self.parts)
        for name, of in sums.items():
            took = {key: sum(self.parts[part][key] for part in of) for key in ("cpu", "clock")}
            parts[name] = {key: round(seconds, 4) for key, seconds in took.items()}
        return parts


def make_files(folder: Path, size: dict):
    """Labels, an attribute, a split and features, as .npy files."""
    rng = np.random.default_rng(0)
    n, classes = size["rows"], size["classes"]
    values = max(2, size["groups"] // classes)
    y = np.arange(n) % classes
    agree = rng.random(n) < 0.9
    a = np.where(agree, y % values, (np.arange(n) // classes) % values)
    # every group is in training; the others are drawn
    split = np.where(np.arange(n) < classes * values, 0, rng.choice(3, n, p=[0.7, 0.15, 0.15]))
    for name, column in dict(y=y, a=a, split=split.astype(np.int8)).items():
        np.save(folder / f"{name}.npy", column)
    shape = (n, size["features"])
    with open(folder / "x.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, dict(descr="<f4", fortran_order=False, shape=shape))
        for at in range(0, n, 65536):
            rng.standard_normal((min(65536, n - at), shape[1]), dtype=np.float32).tofile(file)


def measure(folder: Path, size: dict) -> dict:
    """All parts of a run, in this process."""
    import torch

    from pde_nb.algorithm.expansion import Schedule, expansion_plan
    from pde_nb.runs.spec import build, decide
    from pde_nb.sources.data import from_arrays
    from pde_nb.training.folder import Keeper, save_ledger, save_split

    torch.set_num_threads(1)
    columns = [np.load(folder / f"{name}.npy") for name in ("y", "a", "split")]
    meter = Meter()

    def opened():
        return from_arrays(str(folder / "x.npy"), *columns)

    def started(data, seed):
        spec = decide(data, "linear", "pde", seed=seed, device="cpu", batch_size=BATCH)
        return build(spec, data, bar=False)

    opened().digest  # the file is read once, and what it came to is kept
    with meter.part("open"):
        data = opened()
    with meter.part("plan"):
        expansion_plan(data.groups("train"), Schedule(2, 1000, 1, None, empty="skip"), 0)
    for seed in range(size["seeds"]):
        with meter.part("start"):
            run = started(data, seed)
        a_few_steps(run, meter)
        with Keeper(folder / f"run{seed}") as keeper:
            with meter.part("checkpoint"):
                keeper.write(run)
            again = started(opened(), seed)
            with meter.part("resume"):
                keeper.load(again)
    with meter.part("files"):
        save_split(folder / "split.csv", data)
        save_ledger(folder / "ledger.csv", run)
    weights = sum(p.numel() for p in run.model.parameters())
    plan = dict(megabytes=round(PLANNED * size["rows"] / 1e6, 2), operations_of_a_step=6 * weights * BATCH)
    parts = meter.sums(start=("open", "start"), resume=("open", "start", "resume"))
    return dict(size=size, parts=parts, megabytes=meter.most, base=meter.base, planned=plan)


def a_few_steps(run, meter: Meter):
    """Twenty steps, and the end of the epoch."""
    with meter.part("steps"):
        left = run.steps()
        for rows in (left * STEPS)[:STEPS]:
            run.train_step(rows, 2)
    with meter.part("evaluate"):
        run.end_epoch()


# ---- all sizes ----------------------------------------------------------------------------------


def run_process(size: dict) -> dict:
    """The figures of one size, from a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        make_files(Path(name), size)
        env = os.environ | {"PDE_CACHE": f"{name}/cache", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--measure", name, "--size", json.dumps(size)]
        done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(f"{size}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def exponents(case: str, rows: list[dict]) -> dict:
    """How what a size adds to the smallest one grows, by a line through the logarithms of the larger half."""
    sizes = [row["size"][case] for row in rows]
    found = {}
    for part in rows[0]["parts"]:
        found[part] = exponent(sizes, [row["parts"][part]["cpu"] for row in rows], 0.02)
    found["memory"] = exponent(sizes, [row["megabytes"] for row in rows], 8)
    return found


def exponent(sizes: list[int], values: list[float], least: float) -> float | None:
    """The slope over sizes that add `least` and a third to the value of the smallest; None for too few."""
    least = max(least, values[0] / 3)  # less is within what the same size takes from time to time
    points = [(math.log(s), math.log(v - values[0])) for s, v in zip(sizes, values) if v - values[0] > least]
    if len(points) < 2:
        return None
    x, y = np.array(points[-3:]).T
    return round(float(np.polyfit(x, y, 1)[0]), 3)


def main():
    """Measure what is asked for, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="results/scale.json")
    parser.add_argument("--cases", nargs="*", choices=SIZES, default=list(SIZES), help="none: fit anew")
    parser.add_argument("--most", type=int, default=10**9, help="leave out sizes above")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--size", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        warnings.simplefilter("ignore")
        print(json.dumps(measure(Path(args.measure), json.loads(args.size))))
        return
    cases = read_measurement(args.out)["cases"] if Path(args.out).exists() else {}
    for case in args.cases:
        rows = []
        for value in SIZES[case]:
            if value <= args.most:
                rows.append(run_process(USUAL | AT.get(case, {}) | {case: value}))
                print(case, value, rows[-1]["parts"], rows[-1]["megabytes"], flush=True)
        cases[case] = dict(rows=rows)
    for case, found in cases.items():
        found["exponents"] = exponents(case, found["rows"])
    write_sealed(args.out, dict(cases=cases, surroundings=surroundings()))


if __name__ == "__main__":
    main()
