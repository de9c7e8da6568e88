"""How to choose the epoch when validation is small: rules compared on the curves of real runs.

    python tools/small_validation.py curves  --root FOLDER --out CURVES [--tasks NAME ...] [--seeds 5]
    python tools/small_validation.py compare --curves CURVES --out results/small-validation.json

FOLDER holds the prepared data of tools/evidence.py, whose tasks and learning rates these are. `curves`
trains PDE with the schedule auto, ERM and GroupDRO, and keeps of every epoch the probability of the true
class and the prediction of every validation and test row: CURVES/TASK-METHOD-SEED.npz. Runs that are there
are not made again. `compare` draws small validations out of these rows and lets every rule choose.
"""

import argparse
import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from evidence import TASKS, contenders, open_task, say

from pde_nb.analysis.trials import Result
from pde_nb.sources.data import Data
from pde_nb.training.loop import own_randomness
from pde_nb.training.run import Run, outputs
from pde_nb.training.spec import build, decide

RESULTS = Path(__file__).resolve().parent.parent / "results"
METHODS = ("pde", "erm", "group_dro")


@dataclass(frozen=True)
class Plan:
    """What is recorded of a task."""

    seeds: int
    passes: int | None = None  # of ERM and GroupDRO; None: as in the evidence
    points: int = 1  # recorded in each epoch of ERM and GroupDRO
    cap: int | None = None  # rows of a group that are recorded; None: all


PLANS = {
    "waterbirds_features": Plan(5),
    "adult": Plan(5),
    "coloured_mnist": Plan(2, points=8, cap=60),
    "sick": Plan(2, passes=1, points=8, cap=400),
}


# ---- curves -------------------------------------------------------------------------------------


def recorded_rows(data: Data, cap: int | None) -> np.ndarray:
    """Rows of validation and test, at most `cap` of a group, in their order."""
    rows = np.concatenate([data.rows("val"), data.rows("test")])
    if cap is None:
        return rows
    order = np.random.default_rng(0).permutation(rows)
    ids = data.train_groups.ids[order]
    kept = [order[ids == g][:cap] for g in np.unique(ids)]
    return np.sort(np.concatenate(kept))


def true_class(run: Run, rows) -> tuple[np.ndarray, np.ndarray]:
    """Probability of the true class and whether it was predicted, of each row."""
    batch = max(run.settings.eval_batch, 64)
    scores = torch.cat(outputs(run.model, run.source, rows, batch, run.autocast, run.model)).float()
    y = torch.as_tensor(run.data.y[rows])
    p = scores.softmax(1)[torch.arange(len(y)), y]
    return p.numpy().astype(np.float16), (scores.argmax(1) == y).numpy()


def record_run(run: Run, points: int, rows) -> dict:
    """Train to the end; what every point of the curve says of the rows."""
    p, right, epochs, back = [], [], [], []

    def record(went_back=False):
        now = true_class(run, rows)
        p.append(now[0])
        right.append(now[1])
        epochs.append(run.epoch)
        back.append(went_back)

    with own_randomness(run):
        while not run.finished:
            for net in run.networks:
                net.train()
            left = run.steps()
            marks = {len(left) * k // points for k in range(1, points)}
            for i, batch in enumerate(left):
                run.train_step(batch, len(left) - i)
                if i + 1 in marks:
                    record()
            record()
            before = next(run.model.parameters()).detach().clone()
            run.end_epoch()
            back[-1] = not torch.equal(before, next(run.model.parameters()))
    chosen = [entry["best"] for entry in run.curve]
    return dict(p=np.stack(p), right=np.stack(right), epoch=epochs, back=back, best=chosen)


def make_curve(task: str, method: str, seed: int, data: Data, root: Path, out: Path):
    """One run, into its file."""
    path = out / f"{task}-{method}-{seed}.npz"
    if path.exists():
        return
    plan, of, start = PLANS[task], TASKS[task], time.monotonic()
    passes = of.passes if plan.passes is None or method == "pde" else plan.passes
    contender = contenders(replace(of, passes=passes), data)[method]
    chosen = Result.read(RESULTS / "evidence" / task / f"{method}.json").chosen
    settings = contender.fixed | chosen
    spec = decide(
        data, of.model, contender.method, inputs=dict(of.inputs), seed=seed, device="cpu", **settings
    )
    run = build(spec, data, bar=False)
    rows = recorded_rows(data, plan.cap)
    points = 1 if method == "pde" else plan.points
    found = record_run(run, points, rows)
    kept = dict(groups=data.train_groups.ids[rows], split=data.split[rows], y=data.y[rows], rows=rows)
    partial = path.with_suffix(".part.npz")
    np.savez_compressed(partial, **found, **kept)
    partial.replace(path)
    say(f"{path.stem}: {len(found['epoch'])} points, {len(rows)} rows, {time.monotonic() - start:.0f} s")


def run_curves(args):
    """All runs, the first seeds of every task before the others."""
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    tasks = args.tasks or list(PLANS)
    opened = {name: open_task(TASKS[name], args.root) for name in tasks}
    for seed in range(max(PLANS[name].seeds for name in tasks)):
        for name in tasks:
            if seed < min(PLANS[name].seeds, args.seeds):
                for method in METHODS:
                    make_curve(name, method, seed, opened[name], args.root, args.out)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    curves = commands.add_parser("curves")
    curves.add_argument("--root", type=Path, required=True)
    curves.add_argument("--out", type=Path, required=True)
    curves.add_argument("--tasks", nargs="+", choices=list(PLANS))
    curves.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    run_curves(args)


if __name__ == "__main__":
    main()
