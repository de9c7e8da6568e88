"""Measure what an attribute label is worth: the methods of tools/evidence.py, with labels on some rows only.

    python tools/labels.py TASK       --root FOLDER --out FOLDER [--conditions val val-300] [--methods pde]
    python tools/labels.py most_wrong --root FOLDER --out FOLDER
    python tools/labels.py check      --root FOLDER

FOLDER of --root is that of tools/evidence.py. A condition says where the attribute is known: `full` in
training and validation, `val` in validation, `val-300` on 300 random rows of validation (drawn with the seed
of the run), `none` nowhere; test rows are always judged by their true groups. The groups of the other rows
are predicted, or inferred where no label is left; where nothing is found to infer, the methods that need no
groups of training choose their epoch by the worst class. The learning rate is the one that results/evidence
has on record for the task and the method: nothing is tuned anew, so no condition is tuned on labels that it
lacks.

Each method writes OUT/TASK/CONDITION/METHOD.json after every seed, and goes on where it was when the command
is given again; where the library refuses, what it says stands there as the outcome of the seed. `most_wrong`
trains PDE on the two quickest tasks with other bounds for the rows that its balanced warm-up may be drawn
from, into OUT/most_wrong; `check` says whether the runs of results/evidence serve as the condition `full`.
"""

import argparse
import sys
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
from evidence import QUICK, TASKS, Task, contenders, open_task, say

from pde_nb.algorithm.groups import Groups, Overlap, group_names
from pde_nb.comparison.comparison import Contender, contender_spec
from pde_nb.comparison.trials import Result, Trial, spec_differences
from pde_nb.core.files import surroundings
from pde_nb.grouping.predicted import MOST_WRONG, predict_groups, trusted_rows
from pde_nb.grouping.representation import represent
from pde_nb.records.seals import read_measurement, write_sealed
from pde_nb.runs.fit import fit_spec
from pde_nb.runs.grouped import network_of, with_groups
from pde_nb.sources.data import Data
from pde_nb.sources.known import only_known
from pde_nb.sources.splits import SPLITS

RECORDS = Path(__file__).resolve().parents[1] / "results" / "evidence"
KNOWN = {  # condition → as `only_known` has it
    "full": "",
    "val": "val",
    "val-300": "val:300:{seed}",
    "val-100": "val:100:{seed}",
    "val-30": "val:30:{seed}",
    "none": "none",
}
USES_GROUPS = "pde", "group_dro", "subsample"  # of training
OTHERS = "erm", "jtt", "eiil", "lff", "dfr"  # the same with training labels and without
BOUNDS = 0.05, 0.1, 0.2, 0.3, 1.0
BOUNDED = "val", "val-300", "val-100"


@dataclass(frozen=True, eq=False)
class Study:
    """A task with its data, all labels known, and the places that it is run in."""

    name: str
    task: Task
    data: Data
    root: Path
    work: Path  # where representations and first stages are kept

    @property
    def network(self) -> dict:
        """What every run of the task has in common."""
        weights = str(self.root / self.task.weights) if self.task.weights else "pretrained"
        return dict(model=self.task.model, weights=weights, inputs=dict(self.task.inputs))


def open_study(name: str, args) -> Study:
    """The task, opened."""
    work = args.work or args.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    return Study(name, TASKS[name], open_task(TASKS[name], args.root), args.root, work)


# Groups


@lru_cache(4)
def found_groups(study: Study, text: str) -> Data:
    """The data as somebody has it who knows the attribute there alone, with groups.

    Raises `ValueError` where none are found."""
    if not text:
        return study.data
    partial = only_known(study.data, text)
    if text == "none":
        return with_groups(partial, "infer", **study.network, bar=False)
    given = study.network
    network = network_of(study.data, given["model"], "pde", None, "auto", given["inputs"])
    keep = study.work / f"{study.name}.safetensors"
    return predict_groups(partial, represent(study.data, weights=given["weights"], **network, keep=keep))


def by_class(data: Data) -> Data:
    """The data without its attribute: trained and chosen by class, judged on test by the true groups."""
    groups = data.train_groups
    classes = Groups(data.y.astype(np.int64), groups.variables[:1], groups.values[:1])
    test = data.split == 2
    of_class = (data.y[:, None] == np.arange(data.n_classes)) & ~test[:, None]
    of_group = (groups.ids[:, None] == np.arange(groups.n_groups)) & test[:, None]
    names = (*(f"class {name}" for name in data.classes), *group_names(groups))
    judged = Overlap(np.concatenate([of_class, of_group], 1), names)
    return replace(data, attributes={}, train_groups=classes, eval_groups=judged)


def bounded(data: Data, most_wrong: float) -> Data:
    """The data with another bound for the rows that a balanced warm-up may be drawn from."""
    if data.guess is None or data.guess.how != "probe":
        return data
    groups = data.train_groups
    trusted = np.zeros(len(data), bool)
    for split in SPLITS:
        rows = data.rows(split)
        trusted[rows] = trusted_rows(groups.ids[rows], data.guess.certainty[rows], most_wrong)
    guess = replace(data.guess, record=data.guess.record | dict(most_wrong=most_wrong))
    return replace(data, train_groups=replace(groups, trusted=trusted), guess=guess)


def probe_figures(data: Data) -> dict:
    """What the library says of the groups that it found; {} where all were known."""
    if data.guess is None:
        return {}
    record = data.guess.record
    probes = {}
    for name, of in record.get("attributes", {}).items():
        kept = "strength", "temperature", "helped", "figures", "notes"
        probes[name] = {key: of[key] for key in kept}
    rest = {key: record[key] for key in ("seen", "check", "sizes", "thresholds") if key in record}
    return dict(how=data.guess.how, judged=data.guess.judged, attributes=probes, **rest)


def true_figures(known: Data, found: Data) -> dict:
    """By split: rows of each true group, of each group found, right ones, and the same of the sure rows.

    Rows that were labelled by hand are left out. {} where all were known, or groups are of another kind."""
    same = found.train_groups.shape == known.train_groups.shape
    if found.guess is None or found.guess.how != "probe" or not same:
        return {}
    true, groups = known.train_groups.ids, found.train_groups
    sure = np.ones(len(true), bool) if groups.trusted is None else groups.trusted
    figures = dict(names=group_names(groups))
    for code, split in enumerate(SPLITS):
        rows = (found.split == code) & ~found.guess.labelled
        right = rows & (groups.ids == true)
        kinds = dict(true=rows, found=rows, right=right, sure=rows & sure, sure_right=right & sure)
        if rows.any():
            figures[split] = {}
        for kind, of in kinds.items() if rows.any() else ():
            ids = true if kind == "true" else groups.ids
            figures[split][kind] = np.bincount(ids[of], minlength=groups.n_groups).tolist()
    return figures


# Runs


def chosen_rate(name: str, method: str) -> dict:
    """The settings that were chosen for a task and a method, on record."""
    return Result.read(RECORDS / name / f"{method}.json").chosen


def one_run(study: Study, data: Data, method: str, seed: int) -> dict:
    """What a run came to."""
    by_label = len(data.train_groups.variables) == 1  # no budget of a method then depends on groups
    contender = contenders(study.task, study.data if by_label else data)[method]
    settings = chosen_rate(study.name, method)
    spec = contender_spec(contender, data, settings=settings, seed=seed, **study.network)
    fit = fit_spec(spec, data, first_in=study.work / "first", bar=False)
    found = Trial.of_run(fit.record).to_dict()
    del found["curve"]
    return found | dict(method=spec.config()["method"])


def outcome(study: Study, data: Data | ValueError, method: str, seed: int) -> dict:
    """A run, or why there is none."""
    refused = dict(seed=seed, refused=str(data))
    if isinstance(data, ValueError):
        return refused
    groups = dict(groups=probe_figures(data), true=true_figures(study.data, data))
    try:
        return dict(refused=None, **one_run(study, data, method, seed), **groups)
    except ValueError as error:
        return refused | dict(refused=str(error), **groups)


# Records


def head_of(study: Study, condition: str, method: str, most_wrong: float) -> dict:
    """What all seeds of a record have in common."""
    there = Result.read(RECORDS / study.name / f"{method}.json")
    return dict(
        task=study.name,
        condition=condition,
        name=method,
        most_wrong=most_wrong,
        chosen=there.chosen,
        settings=there.settings,
        model=there.model,
        weights=there.weights,
        inputs=there.inputs,
        data=study.data.name,
        data_digest=study.data.digest,
    )


def trials_there(path: Path, head: dict) -> list[dict]:
    """The outcomes that a record holds. Stops where it is of something else."""
    if not path.exists():
        return []
    record = read_measurement(path)
    other = [key for key, value in head.items() if record[key] != value]
    if other:
        sys.exit(f"{path} differs in {', '.join(other)}: name another folder.")
    return record["trials"]


def add_trial(path: Path, head: dict, trial: dict):
    """Write a record with one more outcome."""
    trials = sorted([*trials_there(path, head), trial], key=lambda t: t["seed"])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_sealed(path, dict(head, surroundings=surroundings(), trials=trials))


def outcome_text(trial: dict) -> str:
    """An outcome in a line."""
    if trial["refused"] is not None:
        return f"refused: {trial['refused']}"
    test = trial["splits"]["test"]
    worst = min(c / n for c, n in zip(test["correct"], test["total"]) if n)
    return f"worst group on test {100 * worst:5.1f} %, {trial['seconds']:.0f} s"


def run_seed(study: Study, condition: str, paths: dict[str, Path], seed: int, most_wrong: float):
    """The outcomes of one seed that are not there, of the methods whose records have these paths."""
    heads = {method: head_of(study, condition, method, most_wrong) for method in paths}
    missing = [
        method
        for method, path in paths.items()
        if seed not in [t["seed"] for t in trials_there(path, heads[method])]
    ]
    if not missing:
        return
    try:
        data = bounded(found_groups(study, KNOWN[condition].format(seed=seed)), most_wrong)
    except ValueError as error:
        data = error
    for method in missing:
        alone = isinstance(data, ValueError) and condition == "none" and method in OTHERS
        trial = outcome(study, by_class(study.data) if alone else data, method, seed)
        add_trial(paths[method], heads[method], trial)
        say(f"{study.name} {condition} {paths[method].stem} seed {seed}: {outcome_text(trial)}")


def methods_under(condition: str, asked) -> list[str]:
    """The methods that are run under a condition; in `val` the others are those of `full`."""
    known = USES_GROUPS if condition == "val" else (*USES_GROUPS, *OTHERS)
    return [name for name in known if asked is None or name in asked]


def run_task(args):
    """Conditions, seeds and methods of one task."""
    study = open_study(args.task, args)
    for seed, condition in product(range(args.seeds), args.conditions or [*KNOWN][1:]):
        methods = methods_under(condition, args.methods)
        paths = {m: args.out / study.name / condition / f"{m}.json" for m in methods}
        run_seed(study, condition, paths, seed, args.most_wrong)


def run_bounds(args):
    """PDE with other bounds for the rows of its warm-up."""
    for name in args.tasks or QUICK:
        study = open_study(name, args)
        for seed, condition, bound in product(range(args.seeds), args.conditions or BOUNDED, BOUNDS):
            path = args.out / "most_wrong" / name / condition / f"{bound:g}.json"
            run_seed(study, condition, dict(pde=path), seed, bound)


def shared_part(here: dict, there: dict) -> dict:
    """What the first says of the keys that both have, in dictionaries within them too."""
    shared = {}
    for key in here.keys() & there.keys():
        nested = isinstance(here[key], dict) and isinstance(there[key], dict)
        shared[key] = shared_part(here[key], there[key]) if nested else here[key]
    return shared


def run_check(args):
    """In which settings that both know the runs on record differ from the condition `full`."""
    for name, task in TASKS.items():
        study = Study(name, task, open_task(task, args.root), args.root, args.root)
        known = contenders(task, study.data)
        for method in (*USES_GROUPS, *OTHERS):
            earlier = Result.read(RECORDS / name / f"{method}.json")
            contender = Contender(known[method].method, (earlier.chosen,), task.settings)
            spec = contender_spec(contender, study.data, **study.network)
            differ = spec_differences(earlier.spec, shared_part(spec.config(), earlier.spec))
            say(f"{name} {method}: {len(earlier.trials)} seeds; {'; '.join(differ) or 'the same'}")


OTHER_RUNS = {"most_wrong": run_bounds, "check": run_check}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=[*TASKS, *OTHER_RUNS])
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", type=Path, help="where representations are kept; OUT/work unless told")
    parser.add_argument("--conditions", nargs="+", choices=KNOWN)
    parser.add_argument("--methods", nargs="+", choices=[*USES_GROUPS, *OTHERS])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, help="of most_wrong")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most-wrong", type=float, default=MOST_WRONG)
    args = parser.parse_args()
    if args.task != "check" and args.out is None:
        parser.error("--out is missing: the folder for the records.")
    warnings.simplefilter("ignore", UserWarning)
    OTHER_RUNS.get(args.task, run_task)(args)


if __name__ == "__main__":
    main()
