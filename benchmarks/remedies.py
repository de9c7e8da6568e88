"""Run the contenders of `nbs/16_experiments/06_remedies.ipynb` by the rules written there.

    python benchmarks/remedies.py TASK --root FOLDER --out FOLDER [--only NAME ...] [--seeds N] [--device D]

FOLDER of --root holds waterbirds_features.npz (x, y, place, split), adult.csv, sick.csv, coloured_mnist.npz,
waterbirds_v1.0 and mobilenet_v2.safetensors.
Each contender writes OUT/TASK/NAME.json with what half A of test shows, and OUT/TASK/half_b/NAME.json with
the other half, which only a command that goes on reads. One that was cut off goes on with the next seed.
"""

import argparse
import base64
import os
import time
import warnings
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from math import ceil
from pathlib import Path

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_sample_weight

from pde_nb import open_data
from pde_nb.algorithm.groups import balanced_subset, random_rank
from pde_nb.algorithm.metrics import count_correct, group_mean
from pde_nb.algorithm.schedule import ExpansionSchedule, Stage
from pde_nb.core.seals import read_measurement, surroundings, write_sealed
from pde_nb.data.inputs import make_source
from pde_nb.methods.base import Method
from pde_nb.methods.baselines import GroupDRO, Resampling, Subsample
from pde_nb.methods.pde import PDE
from pde_nb.networks.heads import embeddings
from pde_nb.networks.models import default_model, input_settings, make_model
from pde_nb.prediction.predictor import outputs
from pde_nb.training.fit import robust_fit
from pde_nb.training.presets import DEFAULTS
from pde_nb.training.trainer import Trainer, train

FOLDS, SUBSETS = 5, 10
STRENGTHS = 1.0, 0.1, 0.01, 0.001
BUDGETS = 3  # of the task, that a base with an addition may use


@dataclass(frozen=True)
class Task:
    "A data set, a network, the settings that all share, and the budget of a base."

    open: dict
    passes: int  # over the training set
    rates: tuple
    model: str | None = None
    settings: dict = field(default_factory=dict)
    mean: bool = False  # whether the figure is the mean of the groups, in place of the worst one
    device: str = "cpu"
    weights: str = "pretrained"
    inputs: dict = field(default_factory=dict)


QUICK = 1e-3, 1e-2  # learning rates
PLAIN = dict(batch_size=64, weight_decay=1e-3, bf16=True)
FLIPPED = dict(size=224, augment=("flip", "crop"))
SENTENCES = ["sentence_A", "sentence_B"]
TASKS = {
    "waterbirds_features": Task(
        dict(data="waterbirds_features.npz", label="y", attribute="place"), 20, QUICK
    ),
    "adult": Task(dict(data="adult.csv", label="income", attribute="sex"), 20, QUICK),
    "sick": Task(
        dict(data="sick.csv", label="contradiction", attribute="negation", text=SENTENCES),
        *(2, (5e-5, 1e-4), "minilm", dict(batch_size=32, bf16=True)),
    ),
    "coloured_mnist": Task(
        dict(data="coloured_mnist.npz", label="y", attribute="colour"),
        *(2, (1e-2, 3e-2), "small_cnn", {}, True),
    ),
    "waterbirds_224": Task(
        dict(data="waterbirds", root="."),
        *(6, (1e-3,), "mobilenet_v2", PLAIN, False, "cpu", "mobilenet_v2.safetensors", FLIPPED),
    ),
}


# ---- methods whose length is given, and that are judged as often as PDE ------------------------


@dataclass
class Pieces(Method):
    "Plain training that is judged after each piece of a pass; an epoch is a piece."

    piece: int = 64  # examples, whole batches

    def order(self, epoch):
        done, at = divmod(epoch, ceil(len(self.groups) / self.piece))
        return super().order(done)[at * self.piece : (at + 1) * self.piece]

    def within(self, passes, groups, n_val=0):
        return replace(self, epochs=round(passes * ceil(len(groups) / self.piece)))


@dataclass
class ResamplingPieces(Pieces, Resampling):
    "Every group equally often."


@dataclass
class GroupDROPieces(Pieces, GroupDRO):
    "Weights that follow the loss."


class Replayed(ExpansionSchedule):
    "Stages of a schedule that set itself, as they were noted: nothing is chosen."

    def __init__(self, plan, stages, size, epochs):
        super().__init__(plan, None, 0)
        self.stages, self.round_size, self.epochs = stages, size, epochs

    def order(self, epoch=None):
        epoch = self.epoch if epoch is None else epoch
        active, began = self.active(epoch), self.at(epoch).began
        first = (epoch - began) * self.round_size
        last = first + self.round_size
        streams = (
            np.random.default_rng([self.plan.seed, 71, began, k]) for k in range(-(-last // len(active)))
        )
        return np.concatenate([rng.permutation(active) for rng in streams])[first:last]

    @property
    def n_epochs(self):
        return self.epochs


@dataclass
class NotedPDE(PDE):
    "PDE along the stages that an earlier run has noted."

    noted: tuple = ()  # number of the expansion, factor of the rate, passes over its active set
    keeps = "last"

    def make_pacing(self):
        plan = ExpansionSchedule.auto(self.groups, 1, self.seed).plan
        size, stages, epoch = len(plan.active(0)), [], 0
        for number, factor, passes in self.noted:
            number = min(number, plan.n_stages - 1)
            stages.append(Stage(number, epoch, factor))
            epoch += max(1, round(passes * len(plan.active(number)) / size))
        return Replayed(plan, stages, size, epoch)


class GroupScores(torch.nn.Module):
    "A network with a score for every group; in evaluation mode, with one for every class."

    def __init__(self, net, n_classes):
        super().__init__()
        self.net, self.n_classes = net, n_classes

    def forward(self, x):
        scores = self.net(x)
        if self.training:
            return scores
        return scores.reshape(len(scores), self.n_classes, -1).logsumexp(2)


class Adjusted:
    "The loss of adjusted logits, with the shares of the groups in the active set."

    def batch_loss(self, batch):
        ids = self.groups.ids[self.pacing.active()]
        shares = np.bincount(ids, minlength=self.groups.n_groups) / len(ids)
        adjusted = batch.scores + self.tau * torch.tensor(np.log(np.maximum(shares, 1e-8))).to(batch.scores)
        vars(batch)["losses"] = torch.nn.functional.cross_entropy(adjusted, batch.groups, reduction="none")
        return batch.losses.mean()


@dataclass
class AdjustedPDE(Adjusted, PDE):
    "PDE with adjusted logits."

    tau: float = 1.0


@dataclass
class AdjustedAll(Adjusted, Pieces):
    "All rows from the start, with adjusted logits."

    tau: float = 1.0


IN_PIECES = dict(erm=Pieces, resampling=ResamplingPieces, group_dro=GroupDROPieces, all_gla=AdjustedAll)

# ---- what a run says ---------------------------------------------------------------------------


def half_a(data):
    "Which test rows are of half A."
    return random_rank(data.groups("test"), np.random.default_rng(43)) % 2 == 0


def fold_of(data, seed):
    "The part of validation that each of its rows belongs to."
    return random_rank(data.groups("val"), np.random.default_rng([seed, 44])) % FOLDS


def judged(data, rows, scores):
    "Worst group, and mean of the groups, of the scores of some rows."
    counts = count_correct(scores.argmax(1), data.y[rows], data.train_groups.part(rows))
    return float(counts.worst_group), group_mean(counts.correct, counts.total)


class Study:
    "A task with its seed: how its bases and additions are run."

    def __init__(self, task, data, seed, chosen):
        self.task, self.data, self.seed, self.chosen = task, data, seed, chosen
        self.settings = replace(DEFAULTS[data.inputs.kind], **task.settings)
        self.val, self.test = data.rows("val"), data.rows("test")
        self.all_groups = data.groups("train")
        self.piece = PDE().begin(self.all_groups, 0, len(self.val)).pacing.round_size
        self.piece = max(1, self.piece // self.settings.batch_size) * self.settings.batch_size
        self.key = (lambda pair: pair[::-1]) if task.mean else (lambda pair: pair)

    def method(self, base, budgets=1):
        "A base within so many budgets."
        method = dict(subsample=Subsample(), pde=PDE(), gla=AdjustedPDE()).get(base)
        method = method or IN_PIECES[base](piece=self.piece)
        if "tau" in self.chosen.get(base, {}):
            method = replace(method, tau=self.chosen[base]["tau"])
        return method.within(budgets * self.task.passes, self.all_groups, len(self.val))

    def network(self, data, seed, n=None):
        "What makes batches of some data, and a network with a score for each of `n`: the classes, if None."
        model = self.task.model or default_model(data.inputs)
        how = input_settings(model, data.inputs.kind) | self.task.inputs
        how |= dict(device=self.task.device, progress=False)
        source = make_source(data, **how)
        how = dict(kind=source.kind, shape=source.shape, weights=self.task.weights, seed=seed)
        return source, make_model(model, n_classes=n or data.n_classes, **how)

    def run(self, method, base, data=None, seed=None, watch=None):
        "A trained run of a method."
        data, seed = self.data if data is None else data, self.seed if seed is None else seed
        grouped = base in ("gla", "all_gla")
        source, net = self.network(data, seed, data.train_groups.n_groups if grouped else None)
        net = GroupScores(net, data.n_classes) if grouped else net
        settings = replace(self.settings, lr=self.chosen[base]["lr"], evaluate="full" if watch else "pruned")
        trainer = Trainer(net, data, source, method, settings, seed)
        if watch:
            validate = trainer.validate

            def watched():
                found = validate()
                watch(trainer, found)
                return found

            trainer.validate = watched
        self.passes += train(trainer, bar=False).seen / len(self.all_groups)
        return trainer

    def scores(self, trainer, rows, forward=None):
        "What a run gives for some rows: probabilities, or what `forward` gives."
        forward = forward or (lambda x: trainer.model(x).float().softmax(1))
        return outputs(trainer.model, trainer.source, rows, 1024, trainer.autocast, forward).numpy()

    def both(self, trainer):
        "Probabilities of validation and of test."
        return self.scores(trainer, self.val), self.scores(trainer, self.test)

    def base(self, base):
        return self.both(self.run(self.method(base), base))

    def long(self, base):
        return self.both(self.run(self.method(base, BUDGETS), base))

    def x3(self, base):
        runs = [self.both(self.run(self.method(base), base, seed=self.seed + 1000 * k)) for k in range(3)]
        return [np.mean(part, 0) for part in zip(*runs)]

    def noted(self, base):
        "Train a base; from training groups to a method of the length that validation chose."
        trainer = self.run(self.method(base), base)
        pacing, best = trainer.method.pacing, trainer.best_epoch + 1
        if base == "pde":
            passes = pacing.round_size / pacing.plan.stops  # of a round, by stage
            gains = [s for s in pacing.stages if s.best is not None]
            path = [(s.number, s.lr_factor, (s.best - s.began + 1) * passes[s.number]) for s in gains]
            return lambda groups: NotedPDE(noted=tuple(path))
        if base == "subsample":
            return lambda groups: Noted(Subsample)(best)
        passes = best / ceil(len(self.all_groups) / self.piece)
        return lambda groups: Noted(IN_PIECES[base])(piece=self.piece).within(passes, groups)

    def with_validation(self, held):
        "The data with validation rows in training, but for those that are held."
        split = self.data.split.copy()
        split[self.val[~held]] = 0
        return replace(self.data, split=split)

    def refit(self, base):
        make = self.noted(base)
        held = random_rank(self.data.groups("val"), np.random.default_rng([self.seed, 45])) == 0
        data = self.with_validation(held)  # the trainer needs some validation: a row of every group
        trainer = self.run(make(data.groups("train")), base, data)
        return None, self.scores(trainer, self.test)

    def cf(self, base):
        make = self.noted(base)
        fold, on_val, on_test, k = fold_of(self.data, self.seed), None, [], 0
        while k < FOLDS:
            before = self.passes
            data = self.with_validation(fold == k)
            trainer = self.run(make(data.groups("train")), base, data)
            part = self.scores(trainer, self.val[fold == k])
            on_val = np.full((len(self.val), part.shape[1]), np.nan) if on_val is None else on_val
            on_val[fold == k] = part
            on_test.append(self.scores(trainer, self.test))
            k += 1
            if k > 1 and self.passes + (self.passes - before) > BUDGETS * self.task.passes:
                break
        self.notes.append(f"{k} folds")
        return on_val, np.mean(on_test, 0)

    def repair(self, base):
        "The best network of each stage, the last one, and that of the run, each with another last layer."
        kept = {}

        def watch(trainer, found):
            name = f"stage {trainer.method.pacing.at(trainer.epoch).number}"
            if name not in kept or found.beats(kept[name][0]):
                kept[name] = found.score, deepcopy(trainer.model.state_dict())
            kept["last"] = None, deepcopy(trainer.model.state_dict())

        trainer = self.run(self.method(base), base, watch=watch)
        kept["chosen"] = None, deepcopy(trainer.model.state_dict())
        found = []
        for name, (_, weights) in kept.items():
            trainer.model.load_state_dict(weights)
            rows = np.concatenate([self.val, self.test])
            x = self.scores(trainer, rows, lambda x: embeddings(trainer.model)(x).float())
            x = (x - x[: len(self.val)].mean(0)) / np.maximum(x[: len(self.val)].std(0), 1e-6)
            for C in STRENGTHS:
                on_val = self.cross_fitted(x, C)
                found.append((self.key(judged(self.data, self.val, on_val)), name, C, on_val, x))
        _, name, C, on_val, x = max(found, key=lambda one: one[0])
        self.notes.append(f"{name}, C={C:g}")
        n = len(self.val)
        return on_val, self.heads(x, rows, np.arange(n), np.arange(n, len(x)), C)

    def heads(self, x, rows, at, asked, C):
        "Probabilities of the mean of regressions on balanced subsets; `rows` of the data are those of x."
        y, groups = self.data.y[rows], self.data.train_groups.part(rows)
        rng, total = np.random.default_rng([self.seed, 46]), np.zeros((len(asked), self.data.n_classes))
        for _ in range(SUBSETS):
            subset = at[balanced_subset(groups.part(at), rng)]
            model = LogisticRegression(C=C, max_iter=1000).fit(x[subset], y[subset])
            total[:, model.classes_] += model.predict_proba(x[asked])
        return total / SUBSETS

    def cross_fitted(self, x, C):
        "Probabilities of each validation row by heads that have not seen it."
        fold, n = fold_of(self.data, self.seed), len(self.val)
        on_val = np.zeros((n, self.data.n_classes))
        for k in range(FOLDS):
            at, asked = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            on_val[asked] = self.heads(x, self.val, at, asked, C)
        return on_val

    def auto(self, base):
        "What `method='auto'` takes, with the plain settings of the library."
        how = dict(weights=self.task.weights, inputs=self.task.inputs, device=self.task.device)
        fit = robust_fit(self.task.model, self.data, "auto", seed=self.seed, bar=False, **how)
        self.passes += fit.record.curve[-1]["passes"]
        self.notes += [note for note in fit.record.notes if note.startswith("auto: ")]
        return self.both(fit.selected)

    # models of scikit-learn

    @cache
    def encoded(self):
        "Rows as numbers; pictures as what enters the last layer of the network before any training."
        rows = np.arange(len(self.data))
        if self.data.inputs.kind != "pictures":
            return make_source(self.data, progress=False).batch(rows).cpu().numpy()
        source, net = self.network(self.data, self.seed)
        net = net.to(self.task.device).eval()
        x = outputs(net, source, rows, 512, nullcontext, embeddings(net)).numpy()
        train = x[self.data.rows("train")]
        return (x - train.mean(0)) / np.maximum(train.std(0), 1e-6)

    def fitted(self, base, with_val=False):
        "A linear head, logistic regression or boosted trees, their setting chosen on validation."
        data, train_rows = self.data, self.data.rows("train")
        settings = dict(trees=(0.1, 0.03)).get(base, STRENGTHS)
        fold = fold_of(data, self.seed)
        tries = []
        for setting in settings:
            if not with_val:
                on_val = self.predicted(base, setting, train_rows, self.val)
            else:
                parts = [
                    (np.concatenate([train_rows, self.val[fold != k]]), self.val[fold == k])
                    for k in range(FOLDS)
                ]
                said = [self.predicted(base, setting, *part) for part in parts]
                on_val = np.zeros((said[0].shape[0], len(self.val), data.n_classes))
                for k, one in enumerate(said):
                    on_val[:, fold == k] = one
            tries += [(self.key(judged(data, self.val, p)), setting, n, p) for n, p in enumerate(on_val)]
        _, setting, n, on_val = max(tries, key=lambda one: one[0])
        rows = np.concatenate([train_rows, self.val]) if with_val else train_rows
        self.notes.append(f"{setting:g}" + (f", {n + 1} trees" if base == "trees" else ""))
        return on_val, self.predicted(base, setting, rows, self.test)[n]

    def predicted(self, base, setting, rows, asked):
        "Probabilities (numbers of trees, rows, classes); of a linear model for one number."
        x, data = self.encoded(), self.data
        if base == "heads":
            return self.heads(x, np.arange(len(x)), rows, asked, setting)[None]
        weights = compute_sample_weight("balanced", data.train_groups.ids[rows])
        if base == "logistic":
            model = LogisticRegression(C=setting, max_iter=1000)
            return model.fit(x[rows], data.y[rows], sample_weight=weights).predict_proba(x[asked])[None]
        how = dict(learning_rate=setting, max_iter=200, early_stopping=False, random_state=self.seed)
        model = HistGradientBoostingClassifier(**how).fit(x[rows], data.y[rows], sample_weight=weights)
        return np.stack(list(model.staged_predict_proba(x[asked])))

    def show(self, base, addition):
        "Run a contender; what it says of validation (None: not judged there) and of test."
        self.passes, self.notes, began = 0.0, [], time.perf_counter()
        if base in ("heads", "logistic", "trees"):
            on_val, on_test = self.fitted(base, addition == "val")
        else:
            on_val, on_test = getattr(self, addition)(base)
        return on_val, on_test, time.perf_counter() - began


@cache
def Noted(cls):
    "A method that keeps its last model."
    return type(f"Noted{cls.__name__}", (cls,), dict(keeps="last"))


ADDED = {
    "base": ("erm", "resampling", "group_dro", "subsample", "pde", "gla", "all_gla"),
    "long": ("subsample", "group_dro", "pde"),
    "x3": ("subsample", "group_dro", "pde"),
    "refit": ("subsample", "group_dro", "pde"),
    "cf": ("subsample", "group_dro", "pde"),
    "repair": ("erm", "subsample", "pde"),
}
FITTED = {"features": ("heads",), "pictures": ("heads",), "table": ("logistic", "trees")}


def contenders(data):
    "The name of each contender: its base and its addition."
    bases = FITTED.get(data.inputs.kind, ())
    found = {base: (base, "base") for base in bases} | {f"{base}_val": (base, "val") for base in bases}
    for addition, names in ADDED.items():
        for base in names:
            found[base if addition == "base" else f"{base}_{addition}"] = base, addition
    return found | dict(auto=("auto", "auto"))


def packed(hits, groups):
    "Which rows were right, group after group, eight to a byte, as text."
    return base64.b64encode(np.packbits(hits[np.argsort(groups.ids, kind="stable")]).tobytes()).decode()


def tuned(task, data, base, out, say):
    "The settings of a base that are the best on validation with the first seed; kept in a file."
    path = out / "tuned" / f"{base}.json"
    if not path.exists():
        tried = []
        taus = (0.5, 1.0, 1.5) if "gla" in base else (None,)
        ways = [dict(lr=lr) | ({} if tau is None else dict(tau=tau)) for lr, tau in product(task.rates, taus)]
        for one in ways if len(ways) > 1 else ():
            study = Study(task, data, 100, {base: one})
            on_val, *_ = study.show(base, "base")
            tried.append(dict(settings=one, score=list(study.key(judged(data, study.val, on_val)))))
        chosen = max(tried, key=lambda one: one["score"])["settings"] if tried else ways[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(path, dict(tried=tried, chosen=chosen))
        say(f"{base}: {chosen}")
    return read_measurement(path)["chosen"]


def run_contender(name, task, data, seeds, out, say):
    "Every seed of a contender that is still to be run."
    base, addition = contenders(data)[name]
    path, other = out / f"{name}.json", out / "half_b" / f"{name}.json"
    other.parent.mkdir(parents=True, exist_ok=True)
    trials, hidden = ([*read_measurement(p)["trials"]] if p.exists() else [] for p in (path, other))
    del hidden[len(trials) :]
    untuned = base in ("heads", "logistic", "trees", "auto")
    chosen = {} if untuned else {base: tuned(task, data, base, out, say)}
    first = half_a(data)
    halves = [data.train_groups.part(data.rows("test")[half]) for half in (first, ~first)]
    for seed in seeds[len(trials) :]:
        study = Study(task, data, seed, chosen)
        on_val, on_test, seconds = study.show(base, addition)
        hit = on_test.argmax(1) == data.y[study.test]
        promised = None
        if on_val is not None:
            seen = ~np.isnan(on_val).any(1)  # not all rows where folds were left out
            promised = judged(data, study.val[seen], on_val[seen])
        trials.append(
            dict(seed=seed, seconds=round(seconds, 2), passes=round(study.passes, 3), val=promised,
                 notes=study.notes, hits=packed(hit[first], halves[0]))
        )  # fmt: skip
        hidden.append(dict(seed=seed, hits=packed(hit[~first], halves[1])))
        about = dict(task=out.name, name=name, chosen=chosen.get(base), data=data.digest)
        for to, groups, found in zip((other, path), reversed(halves), (hidden, trials)):
            about["groups"] = dict(zip(groups.names, groups.counts.tolist()))
            write_sealed(to, dict(about, surroundings=surroundings(), trials=found))
        say(f"{name:20} {seed} {study.passes:.1f} passes, {seconds:.1f} s {study.notes}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--device", default="cpu", help="of the networks; default cpu")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    task = replace(TASKS[args.task], device=args.device)
    out = args.out.resolve() / args.task
    os.chdir(args.root)
    data = open_data(**task.open)
    for name in args.only or contenders(data):
        run_contender(name, task, data, range(100, 100 + args.seeds), out, partial(print, flush=True))


if __name__ == "__main__":
    main()
