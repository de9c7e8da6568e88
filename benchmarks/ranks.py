"""What several processes make of one run: throughput per process, processor time, and the same results.

    python benchmarks/ranks.py --out benchmarks/records/ranks.json [--ranks 1 2 4] [--seeds 5]

Made-up data; processes on this machine, which speak through gloo, with one thread each. For each number of
processes and each network: training examples per second of the clock, in all and for each process; seconds
of the processor for a thousand examples, summed over the processes; and the selected epoch of every seed.
The time of the clock says little where processes have to share cores or other programs run: the record holds
the number of cores and the load. The last line says whether all numbers of processes came to the same.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pde_nb.core.checks import two_features
from pde_nb.core.files import surroundings
from pde_nb.records.seals import write_sealed

ROOT = Path(__file__).resolve().parent.parent
CASES = {  # what is trained: network, pictures or numbers, rows, size of a batch, settings
    "mlp": dict(model="mlp", side=0, n=4000, batch_size=256, epochs=20),
    "small_cnn": dict(model="small_cnn", side=16, n=900, batch_size=64, epochs=3),
}


# ---- one of the processes -----------------------------------------------------------------------


def made(side, n, seed=0):
    """Numbers, or pictures whose upper half shows the one feature and whose lower half the other."""
    from pde_nb.sources.data import from_arrays

    x, y, a = two_features(n, agree=0.9, noise=0.05, seed=seed)
    if side:
        halves = np.repeat(np.clip(120 + 30 * x, 0, 255), side // 2, axis=1)
        noise = np.random.default_rng(seed).integers(-20, 20, (n, 3, side, side))
        x = np.clip(halves[:, None, :, None] + noise, 0, 255).astype(np.uint8)
    return from_arrays(x, y, a, split=np.arange(n) % 10 // 8 + (np.arange(n) % 10 == 9), name="made up")


def measured(model, side, n, **options):
    """Examples, seconds of the clock and of this process's processor for one run."""
    import pde_nb

    data = made(side, n)
    before = time.process_time()
    fit = pde_nb.robust_fit(model, data, "erm", device="cpu", bar=False, **options)
    used = time.process_time() - before
    return dict(seen=fit.record.curve[-1]["seen"], seconds=fit.run.seconds, processor=used)


def chosen(seed):
    """The selected epoch, the length of the run and the counts of right test rows of a seed."""
    import pde_nb

    fit = pde_nb.robust_fit(
        "mlp", made(0, 500, seed), "pde", seed=seed, device="cpu", bar=False, batch_size=30
    )
    return [fit.record.best_epoch, len(fit.record.curve), fit.record.counts("test").correct.tolist()]


def work(args):
    """Do all of it as one process, and leave the result."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found = dict(
        cases={name: measured(**case) for name, case in CASES.items()},
        seeds=[chosen(seed) for seed in range(args.seeds)],
    )
    Path(args.worker, f"{os.environ.get('RANK', 0)}.json").write_text(json.dumps(found))


# ---- all of them --------------------------------------------------------------------------------


def with_processes(n, seeds):
    """What each of n processes came to."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={n}"] if n > 1 else []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *launcher, __file__, "--worker", folder, "--seeds", str(seeds)]
        env = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(ROOT))
        subprocess.run(command, env=env, check=True, stderr=subprocess.DEVNULL if n > 1 else None)
        return [json.loads(Path(folder, f"{rank}.json").read_text()) for rank in range(n)]


def summary(found, n):
    """Throughput and processor time of each network."""
    cases = {}
    for name in CASES:
        parts = [one["cases"][name] for one in found]
        seen, seconds = parts[0]["seen"], parts[0]["seconds"]
        processor = sum(part["processor"] for part in parts)
        rates = dict(per_second=seen / seconds, per_second_each=seen / seconds / n)
        cases[name] = dict(rates, processor_per_thousand=1000 * processor / seen)
    return cases


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return work(args)
    record = dict(cores=os.cpu_count(), ranks={}, surroundings=surroundings())
    for n in args.ranks:
        load = os.getloadavg()[0]
        found = with_processes(n, args.seeds)
        seeds = found[0]["seeds"]
        same = all(one["seeds"] == seeds for one in found)
        record["ranks"][str(n)] = dict(cases=summary(found, n), seeds=seeds, alike=same, load=round(load, 1))
        for name, case in record["ranks"][str(n)]["cases"].items():
            print(
                f"{n} processes, {name:9}: {case['per_second']:8,.0f} examples a second, "
                f"{case['per_second_each']:8,.0f} each, {case['processor_per_thousand']:.3f} s of the "
                f"processor for a thousand; load {load:.1f}"
            )
        print(
            f"{n} processes, epochs chosen by {args.seeds} seeds: {[best for best, *_ in seeds]}", flush=True
        )
    all_seeds = [entry["seeds"] for entry in record["ranks"].values()]
    record["same"] = all(seeds == all_seeds[0] for seeds in all_seeds)
    print("all came to the same" if record["same"] else "they did NOT come to the same")
    if args.out:
        write_sealed(args.out, record)
    return 0 if record["same"] else 1


if __name__ == "__main__":
    sys.exit(main())
