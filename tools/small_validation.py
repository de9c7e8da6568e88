"""How to choose the epoch when validation is small: rules compared on the curves of real runs.

    python tools/small_validation.py curves  --root FOLDER --out CURVES [--tasks NAME ...] [--seeds 5]
    python tools/small_validation.py confirm --root FOLDER --out CURVES [--seeds 10]
    python tools/small_validation.py compare --root FOLDER --curves CURVES --out FILE [--tasks NAME ...]

FOLDER holds the prepared data of tools/evidence.py, whose tasks and learning rates these are. `curves`
trains PDE with the schedule auto, ERM and GroupDRO, and keeps of every epoch the probability of the true
class and the prediction of every validation and test row: CURVES/TASK-METHOD-SEED.npz. `confirm` trains PDE
on small validations of the two quick tasks under either rule of the library, into CURVES/confirm.json. Runs
that are there are not made again. `compare` draws small validations out of the recorded rows, lets every
rule choose, and writes the record; tasks that are not named stay in it as they are.
"""

import argparse
import json
import sys
import time
import warnings
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import torch
from scipy import sparse, special
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from evidence import QUICK, TASKS, open_task, say

from pde_nb.comparison.trials import Result
from pde_nb.core.files import surroundings
from pde_nb.inputs.inputs import make_source
from pde_nb.methods.registry import find_method
from pde_nb.records.seals import read_measurement, write_sealed
from pde_nb.runs.record import count_split
from pde_nb.runs.spec import build, decide
from pde_nb.sources.data import Data
from pde_nb.training.loop import own_randomness, train
from pde_nb.training.outputs import outputs
from pde_nb.training.run import Run
from pde_nb.training.selection import RULES

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
    "coloured_mnist": Plan(2, passes=1, points=8, cap=60),
    "sick": Plan(2, passes=1, points=8, cap=200),
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
    p, right = [], []
    epochs, back = [], []

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


def run_spec(task: str, method: str, seed: int, data: Data, **more):
    """A run with the settings that the evidence has chosen."""
    plan, of = PLANS[task], TASKS[task]
    passes = of.passes if plan.passes is None or method == "pde" else plan.passes
    bounded = find_method(method)().within(passes, data.groups("train"), len(data.rows("val")))
    chosen = Result.read(RESULTS / "evidence" / task / f"{method}.json").chosen
    settings = of.settings | chosen | more
    how = dict(inputs=dict(of.inputs), seed=seed, device="cpu")
    return decide(data, of.model, bounded, **how, **settings)


def make_curve(task: str, method: str, seed: int, data: Data, out: Path):
    """One run, into its file."""
    path = out / f"{task}-{method}-{seed}.npz"
    if path.exists():
        return
    plan, start = PLANS[task], time.monotonic()
    run = build(run_spec(task, method, seed, data, select="worst_group"), data, bar=False)
    rows = recorded_rows(data, plan.cap)
    points = 1 if method == "pde" else plan.points
    found = record_run(run, points, rows)
    kept = dict(groups=data.train_groups.ids[rows], split=data.split[rows], y=data.y[rows], rows=rows)
    partial = path.with_suffix(".part.npz")
    np.savez_compressed(partial, **found, **kept)
    partial.replace(path)
    say(f"{path.stem}: {len(found['epoch'])} points, {len(rows)} rows, {time.monotonic() - start:.0f} s")


def run_curves(args):
    """All runs, the first seed of every task and method before the others."""
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    tasks = args.tasks or list(PLANS)
    opened = {name: open_task(TASKS[name], args.root) for name in tasks}
    for seed in range(max(PLANS[name].seeds for name in tasks)):
        for name in tasks:
            if seed < min(PLANS[name].seeds, args.seeds):
                for method in args.methods:
                    make_curve(name, method, seed, opened[name], args.out)


# ---- whole runs ---------------------------------------------------------------------------------


CONFIRM = (("each", 8), ("total", 60))


CASE = ("task", "method", "kind", "size", "seed")


def thinned(data: Data, kind: str, size: int, seed: int) -> Data:
    """The data with a random part of its validation rows: so many of each group, or in all."""
    rng = np.random.default_rng([99, size, seed])
    rows = rng.permutation(data.rows("val"))
    kept = rows[:size]
    if kind == "each":
        ids = data.train_groups.ids[rows]
        kept = np.concatenate([rows[ids == g][:size] for g in np.unique(ids)])
    split = data.split.copy()
    split[data.rows("val")] = -1
    split[kept] = 1
    return replace(data, split=split)


def test_worst(task: str, method: str, seed: int, data: Data, small: Data, rule: str) -> float:
    """Worst group on test of a run that chooses its epoch on a small validation."""
    spec = run_spec(task, method, seed, data, select=rule)
    run = build(replace(spec, data_digest=small.digest), small, bar=False)
    return float(count_split(train(run, bar=False), "test").worst_group)


def run_confirm(args):
    """Whole runs of PDE on small validations, one for each rule; into confirm.json."""
    path = args.out / "confirm.json"
    done = json.loads(path.read_text()) if path.exists() else []
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    known = {tuple(row[key] for key in CASE) for row in done}
    opened = {name: open_task(TASKS[name], args.root) for name in QUICK}
    for seed, task, (kind, size) in product(range(args.seeds), QUICK, CONFIRM):
        what = dict(task=task, method="pde", kind=kind, size=size, seed=seed)
        if tuple(what.values()) in known:
            continue
        small = thinned(opened[task], kind, size, seed)
        found = {rule: test_worst(task, "pde", seed, opened[task], small, rule) for rule in RULES}
        counts = small.evaluation("val").counts
        done.append(dict(what, least=int(counts[counts > 0].min()), test=found))
        path.write_text(json.dumps(done))
        say(done[-1])


# ---- small validations --------------------------------------------------------------------------


N_DRAWS = 200
SIZES = (
    *(("total", n) for n in (30, 60, 100, 300, 1000)),  # drawn as the groups are
    *(("each", n) for n in (8, 15, 30, 60)),  # of each group
)
JOINED = (("total", 30), ("total", 100), ("total", 300))  # where rows without an attribute are added
PROBES = {"adult": 0.1, "waterbirds_features": 1e-3}  # strength C of the logistic probe


@dataclass(frozen=True, eq=False)
class Draws:
    """Random halves of the recorded rows, and small validations out of the first half of each."""

    groups: np.ndarray  # (rows,)
    halves: np.ndarray  # (draws, rows) whether a row may be in validation; the others are the test
    small: dict  # (kind, size) → for each draw the rows of its small validation


def draw_all(groups, natural) -> Draws:
    """All draws of a task; `natural`: rows of each group in its own validation."""
    halves, small = [], {}
    for d in range(N_DRAWS):
        rng = np.random.default_rng([0, d])
        half = np.zeros(len(groups), bool)
        for g in np.unique(groups):
            at = rng.permutation(np.flatnonzero(groups == g))
            half[at[: len(at) // 2]] = True
        halves.append(half)
        per = [rng.permutation(np.flatnonzero(half & (groups == g))) for g in range(len(natural))]
        for key, counts in counts_of_sizes(per, natural, rng).items():
            rows = [own[:n] for own, n in zip(per, counts)]
            small.setdefault(key, []).append(np.concatenate(rows))
    return Draws(groups, np.array(halves), small)


def counts_of_sizes(per, natural, rng) -> dict:
    """How many rows of each group a validation of each size has, where there are as many."""
    found = {}
    for kind, size in SIZES:
        if kind == "each" and min(map(len, per)) >= size:
            found[kind, size] = [size] * len(per)
        if kind == "total" and natural.sum() >= size:
            found[kind, size] = rng.multivariate_hypergeometric(natural, size)
    return found


def sums(values, rows, ids, n_groups, weights=None):
    """Sums of values (points, recorded rows) over the groups of each draw, (draws, groups, points); and of
    the weights, (draws, groups). Each draw has its rows, their groups, and their weights."""
    which = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
    columns, at = np.concatenate(rows), which * n_groups + np.concatenate(ids)
    weights = np.ones(len(columns)) if weights is None else np.concatenate(weights)
    shape = (len(rows) * n_groups, values.shape[1])
    table = sparse.csr_matrix((weights, (at, columns)), shape=shape)
    total = np.asarray(table.sum(1)).reshape(len(rows), n_groups)
    return np.asarray(table @ values.T).reshape(len(rows), n_groups, -1), total


@dataclass(frozen=True, eq=False)
class Seen:
    """What small validations show of a curve: sums over groups, (draws, groups, points)."""

    right: np.ndarray
    p: np.ndarray  # probability of the true class
    log: np.ndarray  # its logarithm
    sharp: dict  # exponent t → p^t / (p^t + (1 − p)^t)
    n: np.ndarray  # (draws, groups)
    back: np.ndarray  # (points,) after which training went back


# ---- rules: a score for each draw and point, the highest wins -------------------------------------


def means(total, n):
    """Means of groups; those without rows are 0."""
    return total / np.maximum(n, 1e-9)[:, :, None]


def lowest(values, n):
    """The lowest of the groups that have rows."""
    return np.where(n[:, :, None] > 0, values, np.inf).min(1)


def middle(values, n):
    """The mean of the groups that have rows."""
    has = n[:, :, None] > 0
    return np.where(has, values, 0).sum(1) / has.sum(1)


def shrunken(total, n, m):
    """Means of groups, each with m rows more that are like the mean of the groups."""
    prior = middle(means(total, n), n)[:, None]
    return (total + m * prior) / (n[:, :, None] + m)


def lower_wilson(total, n, z=1.645):
    """The lower end of Wilson's interval."""
    n = np.maximum(n, 1e-9)[:, :, None]
    p = total / n
    half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (p + z * z / (2 * n) - half) / (1 + z * z / n)


def lower_jeffreys(total, n):
    """The 5 % quantile of Jeffreys' posterior."""
    return special.betaincinv(total + 0.5, n[:, :, None] - total + 0.5, 0.05)


def softest(values, n, t):
    """A soft minimum over the groups: −log of the mean of exp(−t·accuracy), over t."""
    has = n[:, :, None] > 0
    return -np.log(np.where(has, np.exp(-t * values), 0).sum(1) / has.sum(1)) / t


def smoother(back, k):
    """(points, points): the mean over a point and the k − 1 before it, not beyond a step back."""
    part = np.r_[0, np.cumsum(back)[:-1]]
    table = np.zeros((len(back), len(back)))
    for i in range(len(back)):
        near = [j for j in range(max(0, i - k + 1), i + 1) if part[j] == part[i]]
        table[near, i] = 1 / len(near)
    return table


def rule_scores(seen: Seen) -> dict:
    """Every rule that needs nothing but the labelled rows."""
    n, right = seen.n, means(seen.right, seen.n)
    p = means(seen.p, n)
    smooth = {k: smoother(seen.back, k) for k in (3, 5)}
    scores = {"worst group": lowest(right, n)}
    scores |= {f"shrunken, m={m}": lowest(shrunken(seen.right, n, m), n) for m in (1, 2, 5, 10, 20)}
    scores["Wilson 95 %"] = lowest(lower_wilson(seen.right, n), n)
    scores["Jeffreys 95 %"] = lowest(lower_jeffreys(seen.right, n), n)
    scores |= {f"smooth, {k} epochs": lowest(right @ smooth[k], n) for k in smooth}
    scores |= {
        f"shrunken, m={m}, smooth, 3 epochs": lowest(shrunken(seen.right, n, m) @ smooth[3], n)
        for m in (2, 5, 10)
    }
    scores |= {f"soft minimum, t={t}": softest(right, n, t) for t in (5, 10, 20)}
    scores["mean of the groups"] = middle(right, n)
    scores["log loss"] = lowest(means(seen.log, n), n)
    scores["probability"] = lowest(p, n)
    scores["probability, smooth, 3 epochs"] = lowest(p @ smooth[3], n)
    scores["half and half"] = lowest((right + p) / 2, n)
    soft = means(seen.sharp[2], n)
    scores["soft"] = lowest(soft, n)
    scores["soft, t=4"] = lowest(means(seen.sharp[4], n), n)
    scores["soft, smooth, 3 epochs"] = lowest(soft @ smooth[3], n)
    scores |= {f"soft, shrunken, m={m}": lowest(shrunken(seen.sharp[2], n, m), n) for m in (2, 5)}
    return scores


# ---- validation rows without an attribute ---------------------------------------------------------


def probe_chances(task: str, draws: Draws, inputs, path: Path) -> dict:
    """Chance of the attribute 1 of every recorded row, by a logistic probe on the small validation of each
    draw: size → (draws, rows). Kept in a file."""
    if path.exists():
        return dict(np.load(path))
    inputs = (inputs - inputs.mean(0)) / (inputs.std(0) + 1e-6)
    y, a = draws.groups // 2, draws.groups % 2
    x = np.c_[inputs, 3.0 * (2 * y - 1)].astype(np.float32)
    found = {}
    for (kind, size), small in draws.small.items():
        if kind == "total":
            found[str(size)] = np.stack([chances_of(x, a, rows, PROBES[task]) for rows in small])
    np.savez_compressed(path, **found)
    return found


def chances_of(x, a, rows, strength):
    """Of one probe; the labelled rows as they are."""
    known = a[rows]
    chance = np.full(len(a), float(known[0]))
    if len(np.unique(known)) == 2:
        probe = LogisticRegression(C=strength, max_iter=50, tol=1e-3).fit(x[rows], known)
        chance = probe.predict_proba(x)[:, 1]
    chance[rows] = known
    return chance.astype(np.float16)


def joined(values, seen_total, seen_n, others, groups, chances, how):
    """Scores with the rows that have no attribute added to those that have: by the likelier value ('hard'),
    the same with its chance as weight ('certainty'), or to each value by its chance ('expected')."""
    ids, weights = [], []
    for own, chance in zip(others, chances):
        one = chance[own].astype(float)
        likely = one > 0.5
        if how == "hard":
            one = 1.0 * likely
        both = np.stack([1 - one, one])
        if how == "certainty":
            both *= np.stack([~likely, likely])
        weights.append(both.ravel())
        ids.append((2 * (groups[own] // 2) + np.array([[0], [1]])).ravel())
    twice = [np.tile(own, 2) for own in others]
    total, n = sums(values, twice, ids, seen_n.shape[1], weights)
    return lowest(means(seen_total + total, seen_n + n), seen_n + n > 1e-9)


def joined_scores(seen: Seen, right, others, groups, chances) -> dict:
    """Every rule that adds rows without an attribute: by the chances of a probe, and where the values of one
    in ten are wrong at random."""
    how = ("hard", "certainty", "expected") if chances is not None else ()
    scores = {
        f"probe, {kind}": joined(right, seen.right, seen.n, others, groups, chances, kind) for kind in how
    }
    wrong = np.random.default_rng(5).random((len(others), len(groups))) < 0.1
    simulated = np.where((groups % 2 == 1) ^ wrong, 0.9, 0.1)
    name = "one in ten wrong, expected"
    scores[name] = joined(right, seen.right, seen.n, others, groups, simulated, "expected")
    return scores


# ---- what the choices are worth -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Choices:
    """Worst group on test of what the rules choose on one curve, for every draw of one size."""

    least: np.ndarray  # (draws,) rows of the smallest group that is there
    whole: np.ndarray  # chosen on all of the half
    best: np.ndarray  # of the best epoch
    test: dict  # rule → (draws,)


def pick(score, tie):
    """The point with the highest score; of equal ones that with the better mean over groups."""
    return (score + 1e-6 * tie).argmax(1)


def curve_choices(curve: dict, draws: Draws, chances: dict) -> dict:
    """The choices of every rule on one curve, by the size of validation."""
    groups, at = draws.groups, np.arange(N_DRAWS)
    n_groups = groups.max() + 1
    right, p = curve["right"].astype(np.float32), curve["p"].astype(np.float32)
    sharp = {t: p**t / (p**t + (1 - p) ** t) for t in (2, 4)}

    def of_rows(values, rows):
        return sums(values, rows, [groups[own] for own in rows], n_groups)

    held = of_rows(right, [np.flatnonzero(~half) for half in draws.halves])
    test = lowest(means(*held), held[1])
    shown = of_rows(right, [np.flatnonzero(half) for half in draws.halves])
    whole = test[at, pick(lowest(means(*shown), shown[1]), middle(means(*shown), shown[1]))]
    found = {}
    for (kind, size), small in draws.small.items():
        total, n = of_rows(right, small)
        of = {t: of_rows(value, small)[0] for t, value in sharp.items()}
        logs = of_rows(np.log(np.clip(p, 1e-3, 1)), small)[0]
        seen = Seen(total, of_rows(p, small)[0], logs, of, n, curve["back"])
        scores = rule_scores(seen)
        if n_groups == 4 and (kind, size) in JOINED:
            others = [np.setdiff1d(np.flatnonzero(half), own) for half, own in zip(draws.halves, small)]
            scores |= joined_scores(seen, right, others, groups, chances.get(str(size)))
        tie = middle(means(total, n), n)
        chosen = {name: test[at, pick(score, tie)] for name, score in scores.items()}
        least = np.where(n > 0, n, np.inf).min(1)
        found[kind, size] = Choices(least, whole, test.max(1), chosen)
    return found


def interval(gains, rng, n=400) -> list[float]:
    """Mean and 95 % bootstrap interval of gains (runs, draws), over runs and the draws that they share."""
    many = []
    for _ in range(n):
        runs, columns = (rng.integers(0, m, m) for m in gains.shape)
        many.append(gains[runs][:, columns].mean())
    return [round(float(v), 5) for v in (gains.mean(), *np.quantile(many, (0.025, 0.975)))]


BINS = (1, 3, 6, 10, 20, 40, 80, 10**9)  # rows of the smallest group


def task_record(runs: dict) -> dict:
    """Every rule at every size, and the soft rule by the rows of the smallest group."""
    rng = np.random.default_rng(1)
    first = next(iter(runs.values()))
    sizes = []
    for key in first:
        of = [run[key] for run in runs.values()]
        base = np.array([one.test["worst group"] for one in of])
        gains = {name: np.array([one.test[name] for one in of]) - base for name in of[0].test}
        by_method = {}
        for method in sorted({name for name, _ in runs}):
            rows = [i for i, (name, _) in enumerate(runs) if name == method]
            by_method[method] = {name: round(float(g[rows].mean()), 5) for name, g in gains.items()}
        sizes.append(
            dict(
                kind=key[0],
                size=key[1],
                least=float(np.median(of[0].least)),
                worst_group=round(float(base.mean()), 5),
                regret=interval(np.array([one.whole for one in of]) - base, rng),
                best=round(float(np.mean([one.best for one in of])), 5),
                gains={name: interval(g, rng) for name, g in gains.items()},
                by_method=by_method,
            )
        )
    return dict(runs=[f"{method} {seed}" for method, seed in runs], sizes=sizes, by_least=by_least(runs))


def by_least(runs: dict) -> list[dict]:
    """Gains of some rules by the rows of the smallest group, over all sizes."""
    rng, found = np.random.default_rng(2), []
    keys = list(next(iter(runs.values())))
    least = np.concatenate([next(iter(runs.values()))[key].least for key in keys])
    for low, high in zip(BINS, BINS[1:]):
        inside = (least >= low) & (least < high)
        if inside.sum() < 50:
            continue
        row = dict(low=low, high=high, draws=int(inside.sum()), gains={})
        for name in ("soft", "soft, t=4", "half and half", "probability", "shrunken, m=5"):
            gains = np.array(
                [
                    np.concatenate([run[key].test[name] - run[key].test["worst group"] for key in keys])
                    for run in runs.values()
                ]
            )
            row["gains"][name] = interval(gains[:, inside], rng)
        found.append(row)
    return found


def confirm_record(path: Path) -> list[dict]:
    """Whole runs: worst group on test under the soft rule less that under the worst group, by size."""
    rows = json.loads(path.read_text()) if path.exists() else []
    rng, found = np.random.default_rng(3), []
    cases = sorted({tuple(row[key] for key in CASE[:4]) for row in rows})
    for case in cases:
        own = [row for row in rows if tuple(row[key] for key in CASE[:4]) == case]
        soft, plain = (np.array([row["test"][rule] for row in own]) for rule in reversed(RULES))
        gain = interval((soft - plain)[:, None], rng)
        what = dict(zip(CASE[:4], case), seeds=len(own))
        found.append(dict(what, worst_group=round(float(plain.mean()), 5), gain=gain))
    return found


def natural_counts(task: str) -> np.ndarray:
    """Rows of each group in the validation of the task."""
    return np.array(Result.read(RESULTS / "evidence" / task / "pde.json").trials[0].splits["val"].total)


def task_draws(task: str, curve: dict, args) -> tuple[Draws, dict]:
    """The draws of a task, which all its runs share, and the chances of its probe."""
    draws = draw_all(curve["groups"], natural_counts(task))
    if task not in PROBES:
        return draws, {}
    data = open_task(TASKS[task], args.root)
    inputs = np.asarray(make_source(data, device="cpu").batch(curve["rows"]))
    return draws, probe_chances(task, draws, inputs, args.curves / f"probe_{task}.npz")


def run_compare(args):
    """Every rule on every curve, into the record."""
    tasks = read_measurement(args.out)["tasks"] if args.out.exists() else {}
    for task in args.tasks:
        paths = sorted(args.curves.glob(f"{task}-*-*.npz"))
        paths = [path for path in paths if not path.stem.endswith(".part")]
        if not paths:
            continue
        draws, chances = task_draws(task, dict(np.load(paths[0])), args)
        runs = {}
        for path in paths:
            method, seed = path.stem.removeprefix(f"{task}-").rsplit("-", 1)
            runs[method, int(seed)] = curve_choices(dict(np.load(path)), draws, chances)
            say(path.stem)
        tasks[task] = task_record(runs)
    confirmed = confirm_record(args.curves / "confirm.json")
    plans = {task: asdict(PLANS[task]) for task in tasks}
    record = dict(surroundings=surroundings(), draws=N_DRAWS, plans=plans, tasks=tasks, confirmed=confirmed)
    write_sealed(args.out, record)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    curves = commands.add_parser("curves")
    curves.add_argument("--root", type=Path, required=True)
    curves.add_argument("--out", type=Path, required=True)
    curves.add_argument("--tasks", nargs="+", choices=list(PLANS))
    curves.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    curves.add_argument("--seeds", type=int, default=5)
    confirm = commands.add_parser("confirm")
    confirm.add_argument("--root", type=Path, required=True)
    confirm.add_argument("--out", type=Path, required=True)
    confirm.add_argument("--seeds", type=int, default=10)
    compare = commands.add_parser("compare")
    compare.add_argument("--root", type=Path, required=True)
    compare.add_argument("--curves", type=Path, required=True)
    compare.add_argument("--out", type=Path, required=True)
    compare.add_argument("--tasks", nargs="+", choices=list(PLANS), default=list(PLANS))
    args = parser.parse_args()
    dict(curves=run_curves, confirm=run_confirm, compare=run_compare)[args.command](args)


if __name__ == "__main__":
    main()
