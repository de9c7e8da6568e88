"""What it is worth to choose the rows that are labelled: a simulation on data whose attribute is known.

    python tools/labelling.py probe --root DIR --task waterbirds_features --out labelling.jsonl
    python tools/labelling.py train --root DIR --task waterbirds_features --out labelling.jsonl

Starting without a label, 50 validation rows are labelled in each round, at random or as
`pde_nb.labelling.sampling` says. `probe` says after each round what the probe of the groups is worth;
`train` trains PDE on the predicted groups of 100 and of 300 labels. A line of JSON for each result is
added to OUT.

    python tools/labelling.py seal --out labelling.jsonl

writes these lines as `results/labelling.json`, with a seal.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from evidence import TASKS, open_task

from pde_nb.grouping.guess import guess_attribute
from pde_nb.grouping.predicted import predict_groups
from pde_nb.grouping.representation import represent
from pde_nb.labelling.sampling import choose_rows
from pde_nb.records.seals import write_sealed
from pde_nb.runs.fit import robust_fit
from pde_nb.sources.blanks import value_codes
from pde_nb.sources.known import with_known_rows

ROUND = 50
MOST = 300
WAYS = ("random", "chosen")
RATES = {"waterbirds_features": 1e-2, "adult": 1e-3}
TRAINED = (100, 300)  # labels


def labels_in_rounds(x, y, truth, split, way, seed):
    """Codes after each round, −1 where not labelled, and the guess that they give (None: not yet)."""
    codes = np.full(len(y), -1)
    order = np.random.default_rng([seed, 3]).permutation(np.flatnonzero(split == 1))
    guess = None
    for done in range(0, MOST, ROUND):
        if way == "random":
            rows = order[done : done + ROUND]
        else:
            probability = None if guess is None else guess.probability
            rows = choose_rows(x, y, codes, split, ROUND, seed, probability=probability).rows
        codes[rows] = truth[rows]
        guess = guess_or_none(x, y, codes, split, way == "chosen")
        yield codes.copy(), guess


def guess_or_none(x, y, codes, split, chosen):
    """The guess, or None where the labels do not suffice yet."""
    try:
        return guess_attribute(x, y, codes, split, chosen=chosen)
    except ValueError:
        return None


def probe_figures(guess, y, truth, codes, split):
    """What a guess is worth on the training rows, of which the truth is known here."""
    known = codes >= 0
    n_values = int(truth.max()) + 1
    counts = np.bincount(
        (y * n_values + truth)[known & (split == 1)], minlength=(int(y.max()) + 1) * n_values
    )
    found = dict(labels=int(known.sum()), smallest=int(counts.min()))
    if guess is None:
        return found
    train = split == 0
    cells = []
    for c in range(int(y.max()) + 1):
        of_class = train & (y == c)
        rare = int(np.bincount(truth[of_class], minlength=n_values).argmin())
        true, said = of_class & (truth == rare), of_class & (guess.codes == rare)
        both = int((true & said).sum())
        expected = float(guess.probability[of_class, rare].sum())
        cells.append(dict(true=int(true.sum()), said=int(said.sum()), both=both, expected=expected))
    accuracy = float((guess.codes == truth)[train & ~known].mean())
    return found | dict(cross_fitted=guess.figures.accuracy, accuracy=accuracy, small_groups=cells)


def probe(task, root, seeds, add):
    """The figures of the probe after each round."""
    data = open_task(TASKS[task], root)
    x = represent(data).x
    (name,) = data.train_groups.variables[1:]
    truth = value_codes(data.attributes[name], data.train_groups.values[1])
    for seed in seeds:
        for way in WAYS:
            for codes, guess in labels_in_rounds(x, data.y, truth, data.split, way, seed):
                add(
                    kind="probe",
                    task=task,
                    way=way,
                    seed=seed,
                    **probe_figures(guess, data.y, truth, codes, data.split),
                )


def train(task, root, seeds, add):
    """The test accuracy of PDE on predicted groups."""
    data = open_task(TASKS[task], root)
    seen = represent(data)
    (name,) = data.train_groups.variables[1:]
    truth = value_codes(data.attributes[name], data.train_groups.values[1])
    for seed in seeds:
        for way in WAYS:
            for codes, _ in labels_in_rounds(seen.x, data.y, truth, data.split, way, seed):
                n = int((codes >= 0).sum())
                if n in TRAINED:
                    some = with_known_rows(data, (codes >= 0) | (data.split == 2))
                    whole = predict_groups(some, seen, chosen=way == "chosen")
                    fit = robust_fit(None, whole, "pde", lr=RATES[task], seed=seed, bar=False)
                    found = fit.record.figures("test")
                    add(
                        kind="train",
                        task=task,
                        way=way,
                        seed=seed,
                        labels=n,
                        worst=found.worst_group,
                        average=found.average,
                    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("probe", "train", "seal"))
    parser.add_argument("--root", type=Path, help="where the prepared data is")
    parser.add_argument("--task", choices=RATES)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.what == "seal":
        lines = args.out.read_text(encoding="utf-8").splitlines()
        write_sealed(Path("results/labelling.json"), dict(rows=[json.loads(line) for line in lines]))
        return
    if args.root is None or args.task is None:
        parser.error(f"{args.what} needs --root and --task")
    with open(args.out, "a", encoding="utf-8") as f:

        def add(**row):
            f.write(json.dumps(row) + "\n")
            f.flush()

        dict(probe=probe, train=train)[args.what](args.task, args.root, range(args.seeds), add)


if __name__ == "__main__":
    main()
