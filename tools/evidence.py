"""Run the real tasks: every method, five seeds, the same small budget of tuning.

    python tools/evidence.py TASK        --root FOLDER --out FOLDER [--methods NAME ...] [--seeds 5]
    python tools/evidence.py sensitivity --root FOLDER --out FOLDER [--seeds 5]
    python tools/evidence.py rates       --root FOLDER --out FOLDER [--seeds 5]
    python tools/evidence.py upweight    --root FOLDER --out FOLDER [--seeds 5]
    python tools/evidence.py linear      --root FOLDER --out FOLDER [--seeds 5]
    python tools/evidence.py seeds       --root FOLDER --out FOLDER
    python tools/evidence.py references  --root FOLDER --out FOLDER [--seeds 5]
    python tools/evidence.py synthetic   --out FOLDER [--seeds 20]

FOLDER of --root holds the prepared data (tools/prepare.py: sick.csv, adult.csv, coloured_mnist.npz,
waterbirds_features.npz) and, for Waterbirds, waterbirds128/ with the official folder in it and the weights
mobilenet_v2.safetensors. A run that was cut off goes on where it was when the command is given again.

Each method writes OUT/TASK/METHOD.json. `sensitivity` varies the constants of the schedule that sets
itself one at a time, on the two quickest tasks and with the learning rate that was chosen there, into
OUT/sensitivity; `rates` runs the kinds of PDE on the quickest task with every learning rate and all
seeds, into OUT/rates: what the choice of the rate on one seed was worth; `upweight` runs JTT on the two
quickest tasks with other weights of its mistakes than 20, into OUT/upweight; `linear` runs DFR on the
frozen features themselves, with either penalty, into OUT/linear; `seeds` runs PDE, its simplest rivals and
the references with 20 seeds on the features and 15 on examples/loans.csv, into OUT/seeds; `references` fits
the models of scikit-learn that take the task, into OUT/references; `synthetic` runs the synthetic experiment
into OUT/synthetic.json.

Plain training, group resampling and GroupDRO are evaluated as often as PDE's warm-up is: a pass is cut into
pieces of whole batches, and validation chooses among all of them.
"""

import argparse
import sys
import time
import warnings
from dataclasses import dataclass, field, replace
from itertools import product
from math import ceil
from pathlib import Path

from pde_nb.algorithm.expansion import Schedule
from pde_nb.algorithm.schedule import Pace
from pde_nb.cli.opening import open_data
from pde_nb.comparison.comparison import Contender, contend
from pde_nb.comparison.references import references_for, run_reference
from pde_nb.comparison.trials import Result, settings_name
from pde_nb.core.files import surroundings
from pde_nb.methods.base import Method
from pde_nb.methods.group_dro import GroupDRO
from pde_nb.methods.pde import PDE
from pde_nb.methods.registry import find_method
from pde_nb.methods.reweighting import Resampling
from pde_nb.methods.subsample import Subsample
from pde_nb.presets.presets import DEFAULTS
from pde_nb.records.seals import write_sealed
from pde_nb.reproduction.synthetic_auto import auto_figures, auto_record
from pde_nb.sources.data import Data
from pde_nb.theory.experiment import SYNTHETIC_PRESETS


@dataclass(frozen=True)
class Task:
    """A data set, a model, the settings that all methods share, and the budget."""

    open: dict  # for open_data, with names relative to the root
    passes: int  # budget: training examples shown, in units of the training set
    rates: tuple  # learning rates, tried on the first seed
    fixed: Schedule  # set by hand
    capped: Schedule | None = None  # set by hand, begins with as many of a group as the schedule auto does
    most_epochs: int = 10_000  # of Subsample: where its set is tiny, evaluating it would take the budget
    model: str | None = None
    weights: str | None = None  # a file below the root
    inputs: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)

    @property
    def tried(self) -> tuple[dict, ...]:
        """The settings that are tried for each method."""
        return tuple(dict(lr=rate) for rate in self.rates)


ROOT = Path(__file__).resolve().parents[1]
EXPANSION_LR = 0.3  # of the schedules set by hand
TASKS = {
    "waterbirds": Task(
        dict(data="waterbirds"),
        passes=2,
        rates=(1e-3, 3e-3),
        fixed=Schedule(18, 30, 2, n_expansions=7),
        model="mobilenet_v2",
        weights="mobilenet_v2.safetensors",
        inputs=dict(size=128),
        settings=dict(channels_last=True, weight_decay=1e-3, batch_size=64),
    ),
    "waterbirds_features": Task(
        dict(data="waterbirds_features.npz", label="y", attribute=["place"]),
        passes=20,
        rates=(1e-3, 1e-2),
        fixed=Schedule(60, 22, 4, n_expansions=33),
    ),
    "sick": Task(
        dict(
            data="sick.csv", label="contradiction", attribute=["negation"], text=["sentence_A", "sentence_B"]
        ),
        passes=2,
        rates=(5e-5, 1e-4),
        fixed=Schedule(15, 20, 2, n_expansions=7),
        model="minilm",
        settings=dict(batch_size=32, bf16=True, eval_batch=64),
    ),
    "adult": Task(
        dict(data="adult.csv", label="income", attribute=["sex"]),
        passes=20,
        rates=(1e-3, 1e-2),
        fixed=Schedule(20, 470, 4, n_expansions=10),
    ),
    "coloured_mnist": Task(
        dict(data="coloured_mnist.npz", label="y", attribute=["colour"]),
        passes=2,
        rates=(1e-2, 3e-2),
        fixed=Schedule(40, 100, 2, n_expansions=20),
        capped=Schedule(60, 200, 2, n_expansions=12, warmup_cap=16),
        most_epochs=150,
        model="small_cnn",
        settings=dict(channels_last=True),
    ),
}
QUICK = "waterbirds_features", "adult"
WITHIN = "lff", "eiil", "jtt", "dfr", "dfr_tr", "pde", "pde_balanced"  # methods that the budget alone decides


@dataclass
class Pieces(Method):
    """A method that is evaluated after each piece of a pass; an epoch is a piece."""

    piece: int = 64  # examples, whole batches

    def order(self, epoch):
        done, at = divmod(epoch, ceil(len(self.groups) / self.piece))
        return super().order(done)[at * self.piece : (at + 1) * self.piece]

    def within(self, passes, groups, n_val=0):
        return replace(self, epochs=passes * ceil(len(groups) / self.piece))


@dataclass
class ERMPieces(Pieces):
    """Plain training."""


@dataclass
class ResamplingPieces(Pieces, Resampling):
    """Group resampling."""


@dataclass
class GroupDROPieces(Pieces, GroupDRO):
    """GroupDRO."""


IN_PIECES = dict(erm=ERMPieces, resampling=ResamplingPieces, group_dro=GroupDROPieces)


def contenders(task: Task, data: Data) -> dict[str, Contender]:
    """The methods by the name of their record, each within the budget of examples."""
    budget = (task.passes, data.groups("train"), len(data.rows("val")))
    methods: dict[str, Method] = {name: find_method(name)().within(*budget) for name in WITHIN}
    batch = task.settings.get("batch_size", DEFAULTS[data.inputs.kind].batch_size)
    piece = methods["pde"].epoch_size(*budget[1:]) // batch * batch
    for name, cls in IN_PIECES.items():
        methods[name] = cls(piece=piece).within(*budget)
    subsample = Subsample(empty="skip").within(*budget)
    methods["subsample"] = replace(subsample, epochs=min(task.most_epochs, subsample.epochs))
    if task.most_epochs < subsample.epochs:
        methods["subsample_whole"] = subsample  # the whole budget, however long evaluating it takes
    methods["pde_unlimited"] = PDE()
    methods["pde_fixed"] = PDE(schedule=task.fixed, expansion_lr=EXPANSION_LR)
    if task.capped:
        methods["subsample_capped"] = replace(subsample, cap=task.capped.warmup_cap).within(*budget)
        methods["pde_fixed_capped"] = PDE(schedule=task.capped, expansion_lr=EXPANSION_LR)
    settings = {name: task.settings for name in methods}
    if "subsample_whole" in methods:
        settings["subsample_whole"] = task.settings | dict(evaluate="least")  # the same epoch, in less time
    return {name: Contender(method, task.tried, settings[name]) for name, method in methods.items()}


VARIATIONS = (
    {},
    *(dict(rounds=v) for v in (6, 8, 24)),
    *(dict(waits=v) for v in (0.0, 0.5)),
    *(dict(growth=v) for v in (1.5, 4.0)),
    *(dict(slower=v) for v in (0.1, 1.0)),
    *(dict(tries=v) for v in (1, 3)),
)


def open_task(task: Task, root: Path) -> Data:
    """The data of a task."""
    if task.open["data"] == "waterbirds":
        return open_data(**task.open, root=str(root / "waterbirds128"))
    return open_data(**dict(task.open, data=str(root / task.open["data"])))


def open_loans() -> Data:
    """The made-up table of the README."""
    return open_data(data=str(ROOT / "examples" / "loans.csv"), label="granted", attribute=["district"])


def say(text):
    """Print at once, for those who follow a log."""
    print(text, flush=True)


def run_task(name: str, args):
    """Every method on one task."""
    task = TASKS[name]
    data = open_task(task, args.root)
    known = contenders(task, data)
    inputs = dict(task.inputs)
    if args.cache:
        inputs["cache"] = args.cache
    weights = str(args.root / task.weights) if task.weights else "pretrained"
    common = dict(model=task.model, weights=weights, inputs=inputs)
    for method in args.methods or known:
        if method not in known:
            sys.exit(f"--methods {method}: there are {', '.join(known)}.")
        contend(method, known[method], data, range(args.seeds), args.out / name, say, **common)


def run_sensitivity(args):
    """One constant at a time, on the quickest tasks."""
    for name in QUICK:
        task = TASKS[name]
        data = open_task(task, args.root)
        fixed = task.settings | Result.read(args.out / name / "pde.json").chosen
        for change in VARIATIONS:
            contender = Contender(PDE(**change), ({},), fixed)
            out = args.out / "sensitivity" / name
            contend(settings_name(change), contender, data, range(args.seeds), out, say)


def run_rates(args):
    """Every kind of PDE with each learning rate on all seeds, on the quickest task."""
    name = "waterbirds_features"
    task = TASKS[name]
    data = open_task(task, args.root)
    known = contenders(task, data)
    for method, tried in product(("pde", "pde_balanced", "pde_fixed"), task.tried):
        contender = Contender(known[method].method, (tried,), task.settings)
        label = f"{method},{settings_name(tried)}"
        contend(label, contender, data, range(args.seeds), args.out / "rates" / name, say)


def run_upweights(args):
    """JTT with smaller weights of what its first stage gets wrong, on the quickest tasks."""
    for name in QUICK:
        task = TASKS[name]
        data = open_task(task, args.root)
        jtt = contenders(task, data)["jtt"]
        for weight in (2, 5):
            contender = replace(jtt, method=replace(jtt.method, upweight=weight))
            out = args.out / "upweight" / name
            contend(settings_name(dict(upweight=weight)), contender, data, range(args.seeds), out, say)


def run_linear(args):
    """DFR on the frozen features, with the penalty of the paper and with the other one."""
    task = TASKS["waterbirds_features"]
    data = open_task(task, args.root)
    known = contenders(task, data)
    for method, penalty in product(("dfr", "dfr_tr"), ("l1", "l2")):
        contender = replace(known[method], method=replace(known[method].method, penalty=penalty))
        contend(
            f"{method}_{penalty}",
            contender,
            data,
            range(args.seeds),
            args.out / "linear",
            say,
            model="linear",
        )


def run_seeds(args):
    """PDE and its simplest rivals with more seeds: on the features within the budget, on loans as typed."""
    task = TASKS["waterbirds_features"]
    data = open_task(task, args.root)
    known = contenders(task, data)
    out = args.out / "seeds"
    for name in "pde", "subsample":
        contend(name, known[name], data, range(20), out / "waterbirds_features", say)
    for name in references_for(data):
        run_reference(name, data, range(20), out / "waterbirds_features", say)
    loans = open_loans()
    for name in "pde", "subsample", "group_dro", "resampling", "reweighting", "erm":
        contend(name, Contender(name), loans, range(15), out / "loans", say)
    for name in references_for(loans):
        run_reference(name, loans, range(15), out / "loans", say)


def run_references(args):
    """What scikit-learn makes of the tasks that are tables or features."""
    for name in QUICK:
        data = open_task(TASKS[name], args.root)
        for reference in references_for(data):
            run_reference(reference, data, range(args.seeds), args.out / "references" / name, say)


def run_synthetic(args):
    """The synthetic experiment: with the preset's schedule and without one, then one constant at a time."""
    start, seeds = time.monotonic(), range(args.seeds)
    rows, varied = [], []
    for preset, case, seed in product(("released", "paper"), (1, 2), seeds):
        row = auto_record(SYNTHETIC_PRESETS[preset], case, seed)
        rows.append(row)
        worst = [100 * row[side]["worst_group"] for side in ("auto", "fixed")]
        say(f"{preset} case {case} seed {seed}: {worst[0]:.1f} without a schedule, {worst[1]:.1f} with it")
    for case, change, seed in product((1, 2), VARIATIONS, seeds):
        found = auto_figures(SYNTHETIC_PRESETS["released"], case, seed, Pace(**change))
        varied.append(dict(change=change, case=case, seed=seed, **found))
    seconds = round(time.monotonic() - start, 1)
    record = dict(surroundings=surroundings(), seconds=seconds, rows=rows, varied=varied)
    write_sealed(args.out / "synthetic.json", record)


OTHERS = {
    "sensitivity": run_sensitivity,
    "rates": run_rates,
    "upweight": run_upweights,
    "linear": run_linear,
    "seeds": run_seeds,
    "references": run_references,
    "synthetic": run_synthetic,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=[*TASKS, *OTHERS])
    parser.add_argument("--root", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--cache", help="where decoded pictures are kept")
    args = parser.parse_args()
    if args.task != "synthetic" and args.root is None:
        parser.error("--root is missing: the folder with the prepared data.")
    args.seeds = args.seeds or (20 if args.task == "synthetic" else 5)
    warnings.simplefilter("ignore", UserWarning)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.task in OTHERS:
        OTHERS[args.task](args)
    else:
        run_task(args.task, args)


if __name__ == "__main__":
    main()
