"""Write public data sets in the form that pde_train takes, from the files as they are published.

    python tools/prepare.py adult         --raw DIR --out FILE.csv
    python tools/prepare.py sick          --raw DIR --out FILE.csv
    python tools/prepare.py coloured_mnist --raw DIR --out FILE.npz [--agree 0.99] [--seed 0]

adult           DIR holds adult.data and adult.test (UCI). Label income, attribute sex; the test rows are the test split,
                and every sixth training row of each group, in the order of the file, is validation.
sick            DIR holds SICK_train.txt, SICK_trial.txt and SICK_test_annotated.txt. Label contradiction, attribute
                negation (a word such as no, not or nobody in either sentence). Trial is too small to select a model on,
                so every fourth row of train and trial together, in each group, is validation.
coloured_mnist  DIR holds mnist.npz (x_train, y_train, x_test, y_test). Ten classes, ten colours: in training a digit has
                the colour of its class with probability --agree; in validation (the last 10,000 training digits) and
                test the colour says nothing.
"""

import argparse
import csv
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

ADULT = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
).split()
NEGATION = re.compile(r"\b(no|not|nobody|nothing|never|none|nowhere|neither|nor|without|cannot)\b|n't", re.IGNORECASE)
COLOURS = np.array(
    [
        (230, 25, 75), (60, 180, 75), (255, 225, 25), (0, 130, 200), (245, 130, 48),
        (145, 30, 180), (70, 240, 240), (240, 50, 230), (170, 110, 40), (255, 255, 255),
    ],
    np.uint8,
)  # fmt: skip


def carve(keys, every):
    """'val' for every n-th row of each key, in order, and 'train' for the others."""
    seen, split = Counter(), []
    for key in keys:
        split.append("val" if seen[key] % every == every - 1 else "train")
        seen[key] += 1
    return split


def found(folder, *names):
    """The paths of the raw files; SystemExit where one is missing."""
    paths = [Path(folder, name) for name in names]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        sys.exit(f"prepare.py: {folder} has no {', '.join(missing)}")
    return paths


def write_csv(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def report(splits, *columns):
    """Print how many rows each group has in each split."""
    counts = Counter(zip(splits, *columns))
    for group in sorted({key[1:] for key in counts}):
        print(*group, *(f"{split} {counts[(split, *group)]:,}" for split in ("train", "val", "test")), sep="  ")


def adult_rows(path):
    """The rows of an Adult file, stripped; header lines and what is not a row are left out."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file)]
    rows = [row for row in rows if len(row) == len(ADULT) and row[0].isdigit()]
    return [[*row[:-1], row[-1].rstrip(".")] for row in rows]


def adult(args):
    train, test = map(adult_rows, found(args.raw, "adult.data", "adult.test"))
    split = carve([(row[-1], row[ADULT.index("sex")]) for row in train], 6) + ["test"] * len(test)
    rows = train + test
    write_csv(args.out, [*ADULT, "split"], [[*row, part] for row, part in zip(rows, split)])
    report(split, [row[-1] for row in rows], [row[ADULT.index("sex")] for row in rows])


def sick_rows(path):
    """(sentence A, sentence B, contradiction, negation) of each pair of a SICK file."""
    with open(path, encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    pairs = [(row["sentence_A"], row["sentence_B"], row["entailment_judgment"].strip()) for row in table]
    word = ("no", "yes")
    return [(a, b, word[j == "CONTRADICTION"], word[bool(NEGATION.search(a) or NEGATION.search(b))]) for a, b, j in pairs]


def sick(args):
    train, trial, test = map(sick_rows, found(args.raw, "SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"))
    rows = train + trial + test
    split = carve([row[2:] for row in train + trial], 4) + ["test"] * len(test)
    header = ["sentence_A", "sentence_B", "contradiction", "negation", "split"]
    write_csv(args.out, header, [[*row, part] for row, part in zip(rows, split)])
    report(split, [row[2] for row in rows], [row[3] for row in rows])


def colour_digits(x, y, agree, rng):
    """Grey digits (n, 28, 28) in colour (n, 3, 28, 28), and the colour of each: its class's with probability `agree`."""
    colour = np.where(rng.random(len(y)) < agree, y, rng.integers(0, len(COLOURS), len(y)))
    shade = COLOURS[colour][:, :, None, None].astype(np.uint16)
    return (x[:, None].astype(np.uint16) * shade // 255).astype(np.uint8), colour


def coloured_mnist(args):
    (path,) = found(args.raw, "mnist.npz")
    raw, rng = np.load(path, allow_pickle=False), np.random.default_rng(args.seed)
    n_train = len(raw["y_train"]) - 10_000
    if n_train < 1:
        sys.exit(f"prepare.py: mnist.npz has {len(raw['y_train']):,} training digits; 10,000 are for validation")
    x, y = np.concatenate([raw["x_train"], raw["x_test"]]), np.concatenate([raw["y_train"], raw["y_test"]]).astype(int)
    split = np.repeat(["train", "val", "test"], [n_train, 10_000, len(raw["y_test"])])
    train = split == "train"
    # A colour that is drawn at random is the class's own one time in ten, so less is drawn at random.
    share = (args.agree - 0.1) / 0.9
    first, second = colour_digits(x[train], y[train], share, rng), colour_digits(x[~train], y[~train], 0.0, rng)
    pictures, colour = (np.concatenate(parts) for parts in zip(first, second))
    with open(args.out, "wb") as file:
        np.savez_compressed(file, x=pictures, digit=y, colour=colour, split=split)
    for part in ("train", "val", "test"):
        rows = split == part
        print(f"{part}: {rows.sum():,} digits, {100 * (colour == y)[rows].mean():.2f} % in the colour of their class")


TASKS = {"adult": adult, "sick": sick, "coloured_mnist": coloured_mnist}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--raw", required=True, help="folder of the published files")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--agree", type=float, default=0.99, help="coloured_mnist: share in the colour of their class")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if not 0.1 <= args.agree <= 1:
        parser.error(f"--agree {args.agree}: from 0.1, where the colour says nothing, to 1")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    TASKS[args.task](args)
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
