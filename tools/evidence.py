"""Run the real tasks: every method, five seeds, the same small budget of tuning.

    python tools/evidence.py TASK        --root FOLDER --out FOLDER [--methods NAME ...] [--seeds 5]
    python tools/evidence.py sensitivity --root FOLDER --out FOLDER [--seeds 5]
    python tools/evidence.py rates       --root FOLDER --out FOLDER [--seeds 5]
    python tools/evidence.py upweight    --root FOLDER --out FOLDER [--seeds 5]
    python tools/evidence.py synthetic   --out FOLDER [--seeds 20]

FOLDER of --root holds the prepared data (tools/prepare.py: sick.csv, adult.csv, coloured_mnist.npz,
waterbirds_features.npz) and,
for Waterbirds, waterbirds128/ with the official folder in it and the weights mobilenet_v2.safetensors.
A run that was cut off goes on where it was when the command is given again. Each method writes
OUT/TASK/METHOD.json;
the constants of the schedule that sets itself are varied one at a time into OUT/sensitivity, on the two
quickest tasks
and with the learning rate that was chosen there, and on the synthetic experiment into
OUT/synthetic.json. `rates` runs the kinds of PDE on the quickest task with every
learning rate and all seeds, into OUT/rates: what the choice of the rate on one seed was worth.
`upweight` runs JTT on the two quickest
tasks with other weights of its mistakes than 20, into OUT/upweight.
"""

import argparse
import json
import sys
import time
import warnings
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from pde_nb.algorithm.expansion import Schedule
from pde_nb.algorithm.groups import balanced_counts
from pde_nb.algorithm.pacing import Pace
from pde_nb.analysis.comparison import Contender, contend, word
from pde_nb.benchmarks.synthetic_auto import auto_figures, auto_record
from pde_nb.cli.train import open_data
from pde_nb.core.files import surroundings, write_json
from pde_nb.methods.base import Method
from pde_nb.methods.group_dro import GroupDRO
from pde_nb.methods.pde import PDE
from pde_nb.methods.pde_auto import AutoPDE, BalancedPDE
from pde_nb.methods.reweighting import Resampling
from pde_nb.methods.subsample import Subsample
from pde_nb.report.contest import TWO_NETWORKS, two_networks
from pde_nb.sources.data import Data
from pde_nb.theory.experiment import PRESETS as SYNTHETIC


@dataclass
class Task:
    """A data set, a model, the settings that all methods share, and the budget."""

    open: dict  # for open_data, with names relative to the root
    passes: int  # budget: training examples shown, in units of the training set
    lrs: tuple  # tried on the first seed
    hand: PDE  # the schedule set by hand
    capped: Schedule | None = (
        None  # set by hand, from as many examples of a group as the schedule that sets itself begins with
    )
    most_epochs: int = (
        10_000  # of Subsample: where its set is tiny, the budget would be spent on evaluating it
    )
    model: str | None = None
    weights: str | None = None  # a file below the root
    inputs: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)


TASKS = {
    "waterbirds": Task(
        dict(data="waterbirds"),
        2,
        (1e-3, 3e-3),
        PDE(None, Schedule(18, 30, 2, n_expansions=7), 0.3),
        model="mobilenet_v2",
        weights="mobilenet_v2.safetensors",
        inputs=dict(size=128),
        settings=dict(channels_last=True, weight_decay=1e-3, batch_size=64),
    ),
    "waterbirds_features": Task(
        dict(data="waterbirds_features.npz", label="y", attribute=["place"]),
        20,
        (1e-3, 1e-2),
        PDE(None, Schedule(60, 22, 4, n_expansions=33), 0.3),
    ),
    "sick": Task(
        dict(
            data="sick.csv", label="contradiction", attribute=["negation"], text=["sentence_A", "sentence_B"]
        ),
        2,
        (5e-5, 1e-4),
        PDE(None, Schedule(15, 20, 2, n_expansions=7), 0.3),
        model="minilm",
        settings=dict(batch_size=32, bf16=True, eval_batch=64),
    ),
    "adult": Task(
        dict(data="adult.csv", label="income", attribute=["sex"]),
        20,
        (1e-3, 1e-2),
        PDE(None, Schedule(20, 470, 4, n_expansions=10), 0.3),
    ),
    "coloured_mnist": Task(
        dict(data="coloured_mnist.npz", label="y", attribute=["colour"]),
        2,
        (1e-2, 3e-2),
        PDE(None, Schedule(40, 100, 2, n_expansions=20), 0.3),
        Schedule(60, 200, 2, n_expansions=12, warmup_cap=16),
        150,
        model="small_cnn",
        settings=dict(channels_last=True),
    ),
}


def contenders(task: Task, data: Data) -> dict:
    """The methods, each within the budget of examples."""
    groups = data.groups("train")
    once = int(balanced_counts(groups.counts, None, "skip").sum())
    methods = dict(
        erm=Method(task.passes),
        subsample=Subsample(min(task.most_epochs, task.passes * len(groups) // once), empty="skip"),
        resampling=Resampling(task.passes),
        group_dro=GroupDRO(task.passes),
        pde_hand=task.hand,
    )
    methods |= {name: two_networks(name, task.passes) for name in TWO_NETWORKS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        most = task.passes * len(groups) // AutoPDE().begin(groups, 0, len(data.rows("val"))).round_size
    methods |= dict(pde_auto=AutoPDE(most), pde_balanced=BalancedPDE(most), pde_auto_free=AutoPDE())
    if task.capped:
        methods |= dict(pde_hand_capped=PDE(None, task.capped, task.hand.expansion_lr))
    return {
        name: Contender(m, tuple(dict(lr=lr) for lr in task.lrs), task.settings)
        for name, m in methods.items()
    }


VARIATIONS = (
    {},
    *(dict(rounds=v) for v in (6, 8, 24)),
    *(dict(waits=v) for v in (0.0, 0.5)),
    *(dict(growth=v) for v in (1.5, 4.0)),
    *(dict(slower=v) for v in (0.1, 1.0)),
    *(dict(tries=v) for v in (1, 3)),
)


def opened(task: Task, root: Path) -> Data:
    """The data of a task."""
    if task.open["data"] == "waterbirds":
        return open_data(**task.open, root=str(root / "waterbirds128"))
    return open_data(**dict(task.open, data=str(root / task.open["data"])))


def run_task(name: str, args):
    """Every method on one task."""
    task = TASKS[name]
    data = opened(task, args.root)
    known = contenders(task, data)
    for method in args.methods or known:
        if method not in known:
            sys.exit(f"--methods {method}: there are {', '.join(known)}.")
        contend(
            method,
            known[method],
            data,
            range(args.seeds),
            args.out / name,
            say=say,
            model=task.model,
            weights=str(args.root / task.weights) if task.weights else "pretrained",
            inputs=dict(task.inputs, **({"cache": args.cache} if args.cache else {})),
        )


def run_sensitivity(args):
    """One constant at a time, on the quickest tasks."""
    for name in ("waterbirds_features", "adult"):
        data = opened(TASKS[name], args.root)
        chosen = json.loads((args.out / name / "pde_auto.json").read_text())["chosen"]
        for change in VARIATIONS:
            contend(
                word(change),
                Contender(AutoPDE(**change), ({},), {**TASKS[name].settings, **chosen}),
                data,
                range(args.seeds),
                args.out / "sensitivity" / name,
                say=say,
            )


def run_rates(args):
    """Every kind of PDE with each learning rate on all seeds, on the quickest task."""
    name = "waterbirds_features"
    data = opened(TASKS[name], args.root)
    known = contenders(TASKS[name], data)
    for method, lr in product(("pde_auto", "pde_balanced", "pde_hand"), TASKS[name].lrs):
        tried = (dict(lr=lr),)
        contend(
            f"{method},{word(tried[0])}",
            Contender(known[method].method, tried, TASKS[name].settings),
            data,
            range(args.seeds),
            args.out / "rates" / name,
            say=say,
        )


def run_upweights(args):
    """JTT with smaller weights of what its first stage gets wrong, on the quickest tasks."""
    for name in ("waterbirds_features", "adult"):
        task = TASKS[name]
        data, tried = opened(task, args.root), tuple(dict(lr=lr) for lr in task.lrs)
        for weight in (2, 5):
            method = replace(two_networks("jtt", task.passes), upweight=weight)
            contend(
                word(dict(upweight=weight)),
                Contender(method, tried, task.settings),
                data,
                range(args.seeds),
                args.out / "upweight" / name,
                say=say,
            )


def run_synthetic(args):
    """The synthetic experiment: with the preset's schedule and without one, then one constant at a time."""
    start, seeds, rows = time.monotonic(), range(args.seeds), []
    for preset, case, seed in product(("released", "paper"), (1, 2), seeds):
        rows.append(auto_record(SYNTHETIC[preset], case, seed))
        say(
            f"{preset} case {case} seed {seed}: {rows[-1]['auto']['worst_group']:.1f} without a "
            f"schedule, {rows[-1]['hand']['worst_group']:.1f} with it"
        )
    varied = [
        dict(
            change=change,
            case=case,
            seed=seed,
            **auto_figures(SYNTHETIC["released"], case, seed, Pace(**change)),
        )
        for case, change, seed in product((1, 2), VARIATIONS, seeds)
    ]
    write_json(
        args.out / "synthetic.json",
        dict(
            surroundings=surroundings(), seconds=round(time.monotonic() - start, 1), rows=rows, varied=varied
        ),
    )


def say(text):
    print(text, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("task", choices=[*TASKS, "sensitivity", "rates", "upweight", "synthetic"])
    p.add_argument("--root", type=Path)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--methods", nargs="+")
    p.add_argument("--seeds", type=int)
    p.add_argument("--cache", help="where decoded pictures are kept")
    args = p.parse_args()
    if args.task != "synthetic" and args.root is None:
        p.error("--root is missing: the folder with the prepared data.")
    args.seeds = args.seeds or (20 if args.task == "synthetic" else 5)
    warnings.simplefilter("ignore", UserWarning)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.task == "synthetic":
        run_synthetic(args)
    elif args.task == "sensitivity":
        run_sensitivity(args)
    elif args.task == "rates":
        run_rates(args)
    elif args.task == "upweight":
        run_upweights(args)
    else:
        run_task(args.task, args)


if __name__ == "__main__":
    main()
