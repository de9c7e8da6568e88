"""Write the file that pde train reads from the raw files of four public data sets.

    python tools/prepare.py adult          --raw FOLDER --out adult.csv
    python tools/prepare.py sick           --raw FOLDER --out sick.csv
    python tools/prepare.py coloured_mnist --raw FOLDER --out coloured.npz [--agree 0.99] [--seed 0]
    python tools/prepare.py waterbirds_features --raw FOLDER --out features.npz --weights FILE [--size 224]

Nothing is downloaded: FOLDER holds the raw files. The official test rows are the split `test`. A
validation set is carved out of the other rows, the same share of every group, with a fixed seed. The
sizes of all groups are printed. The features are those of an ImageNet MobileNetV2 for the pictures of the
official Waterbirds folder, with its own split; this one needs the library, the others need numpy alone.
"""

import argparse
import csv
import gzip
import hashlib
import io
import os
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

SPLITS = ("train", "val", "test")

# ---- common to all ----------------------------------------------------------------------------


class RawError(Exception):
    """Raw files that cannot be used: what is wrong, and the remedy."""


def raw_file(folder, names, source, sha256=None):
    """The first of `names` that is in `folder`; a warning where its checksum is not the known one."""
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise RawError(f"{folder} has no file {' or '.join(names)}; it is part of {source}: place it there.")
    if sha256 and hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        warn(
            f"{path.name} is not the file that is known here (its SHA-256 differs); compare the counts below."
        )
    return path


def warn(text):
    print(f"warning: {text}", file=sys.stderr)


def carve(groups, share, seed):
    """Which examples go to validation: the share of all, and of every group the share up to one example."""
    groups = np.asarray(groups)
    rng = np.random.default_rng(seed)
    names, sizes = np.unique(groups, return_counts=True)
    take = np.floor(share * sizes).astype(int)
    most_short = np.argsort(take - share * sizes, kind="stable")
    take[most_short[: round(share * len(groups)) - take.sum()]] += 1
    chosen = np.zeros(len(groups), bool)
    for group, number in zip(names, take):
        chosen[rng.permutation(np.flatnonzero(groups == group))[:number]] = True
    return chosen


def with_split(rest, test, groups, share, seed):
    """All rows with their split as a last column: validation is a share of every group of the rest."""
    held_out = carve(groups, share, seed)
    rows = [[*row, "val" if chosen else "train"] for row, chosen in zip(rest, held_out)]
    return rows + [[*row, "test"] for row in test]


def write(path, data):
    """Write bytes to a file that is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_csv(path, header, rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    write(path, text.getvalue().encode("utf-8"))


def print_groups(header, rows, label, attribute):
    """Print how many examples each group has in each split."""
    at = [header.index(name) for name in (label, attribute, "split")]
    counts = Counter(tuple(row[i] for i in at) for row in rows)
    for y, a in sorted({key[:2] for key in counts}):
        sizes = "  ".join(f"{split} {counts[y, a, split]:6,}" for split in SPLITS)
        print(f"{label}={y:<6} {attribute}={a:<7} {sizes}")


def share_value(value):
    """A share of the command line: a number in [0, 1]."""
    number = float(value)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{value} is not a share; give a number from 0 to 1")
    return number


# ---- adult: census income by sex --------------------------------------------------------------

ADULT_COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
).split()
ADULT_SOURCE = "the data set Adult of the UCI repository"
ADULT_SHA256 = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "0543912af15c52ba12336b042c8f9f96541d6134d9b3d48dba647281fb2b39d1",
}
ADULT_VALIDATION = 0.2


def adult_rows(folder, name):
    """The rows of a raw file, its label without the dot that ends it in adult.test."""
    path = raw_file(folder, [name], ADULT_SOURCE, ADULT_SHA256[name])
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fields = [field.strip() for field in line.split(",")]
        if number == 1 and (line.startswith("|") or fields[0] == "age"):
            continue  # the first line of adult.test is a remark or a header, from one source or another
        if not line.strip():
            continue
        fields[-1] = fields[-1].rstrip(".")
        if len(fields) != len(ADULT_COLUMNS) or fields[-1] not in ("<=50K", ">50K"):
            raise RawError(
                f"{name}, line {number}: not the 15 fields of a person with an income; get the file again."
            )
        rows.append(fields)
    return rows


def adult(options):
    """All columns are kept; `?`, which marks what is not known, stays a value of its own."""
    train, test = (adult_rows(options.raw, name) for name in ADULT_SHA256)
    sex = ADULT_COLUMNS.index("sex")
    rows = with_split(train, test, [row[-1] + row[sex] for row in train], ADULT_VALIDATION, options.seed)
    header = [*ADULT_COLUMNS, "split"]
    write_csv(options.out, header, rows)
    print_groups(header, rows, "income", "sex")


# ---- sick: contradiction by negation ----------------------------------------------------------

SICK_SOURCE = "the data set SICK of SemEval-2014 task 1"
SICK_SHA256 = {
    "SICK_train.txt": "266cf8047149bd1d68138dd30439f3122bff30069740ac6705bb6197d9f1b48e",
    "SICK_trial.txt": "5a88cfb62f8c6bd2a3cce0f2421ba2cb8c2be5ab4a800f6f01e2c64aafb7db56",
    "SICK_test_annotated.txt": "2b8aa806658d6fc23c6824c83776c2d4fee7556000817b5ec0f982861413b7d0",
}
SICK_VALIDATION = 0.3  # more than the official trial set, which has ten contradictions without a negation
NEGATION = re.compile(
    r"\b(no|not|nobody|nothing|never|none|nowhere|neither|nor|without|cannot)\b|n't", re.IGNORECASE
)


def sick_rows(folder, name):
    """Sentence pairs with label and attribute, each yes or no."""
    path = raw_file(folder, [name], SICK_SOURCE, SICK_SHA256[name])
    with path.open(encoding="utf-8", newline=None) as file:
        table = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    wanted = ("sentence_A", "sentence_B", "entailment_judgment")
    if not table or any(not row.get(column) for row in table for column in wanted):
        raise RawError(f"{name} lacks a column or a value of {', '.join(wanted)}; get the file again.")
    rows = []
    for row in table:
        first, second, judgement = (row[column] for column in wanted)
        negated = NEGATION.search(first) or NEGATION.search(second)
        rows.append(
            [first, second, "yes" if judgement == "CONTRADICTION" else "no", "yes" if negated else "no"]
        )
    return rows


def sick(options):
    """Whether the sentences contradict each other; the attribute is whether either holds a negation."""
    train, trial, test = (sick_rows(options.raw, name) for name in SICK_SHA256)
    rest = train + trial
    rows = with_split(rest, test, [row[2] + row[3] for row in rest], SICK_VALIDATION, options.seed)
    header = ["sentence_A", "sentence_B", "contradiction", "negation", "split"]
    write_csv(options.out, header, rows)
    print_groups(header, rows, "contradiction", "negation")


# ---- coloured_mnist: digit by colour ----------------------------------------------------------

MNIST_SOURCE = "MNIST, as mnist.npz or as its four IDX files"
MNIST_FILES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
MNIST_CLASSES = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)  # of the 60,000
MNIST_VALIDATION = 1 / 6  # 10,000 of the 60,000

# Red, green, blue, yellow, magenta, cyan, orange, white, brown, violet.
COLOURS = np.array(
    [
        (230, 30, 30),
        (40, 170, 50),
        (50, 80, 255),
        (250, 230, 40),
        (255, 70, 210),
        (50, 230, 235),
        (255, 140, 20),
        (255, 255, 255),
        (140, 85, 45),
        (130, 40, 170),
    ],
    np.uint8,
)


def colour_digits(x, y, agree, rng):
    """Grey digits in colour: each class has its own, and shows it with probability `agree`.

    x (n, h, w) uint8 and y (n,) classes 0 … 9 give pictures (n, 3, h, w) uint8 and colours (n,) 0 … 9.
    A digit that does not show its own colour has one of the nine others, all equally likely: `agree=0.1`
    makes the colour independent of the class. Raises `ValueError` for other digits, classes or shares.
    """
    x = np.asarray(x)
    y = np.asarray(y).astype(np.int64)
    if x.ndim != 3 or x.dtype != np.uint8 or y.shape != x.shape[:1]:
        raise ValueError(
            f"x is {x.dtype} {x.shape} and y {y.shape}; give 8-bit digits (n, h, w) and one class each."
        )
    if y.size and not 0 <= y.min() <= y.max() < len(COLOURS):
        raise ValueError(
            f"classes from {y.min()} to {y.max()}; there are {len(COLOURS)} colours, for 0 to 9."
        )
    if not 0 <= agree <= 1:
        raise ValueError(f"agree={agree}; give a probability, from 0 to 1.")
    other = (y + rng.integers(1, len(COLOURS), len(y))) % len(COLOURS)
    colour = np.where(rng.random(len(y)) < agree, y, other)
    pictures = np.empty((len(y), 3, *x.shape[1:]), np.uint8)
    for channel in range(3):
        shade = COLOURS[colour, channel].astype(np.uint16)[:, None, None]
        pictures[:, channel] = (x * shade + 127) // 255
    return pictures, colour


def idx_array(path):
    """The array of an IDX file of bytes, compressed or not."""
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    shape = np.frombuffer(data, ">u4", data[3], 4) if data[:3] == b"\0\0\x08" else ()
    if not len(shape) or len(data) != 4 + 4 * len(shape) + np.prod(shape, dtype=np.int64):
        raise RawError(f"{path.name} is not a whole IDX file of bytes; get the file again.")
    return np.frombuffer(data, np.uint8, -1, 4 + 4 * len(shape)).reshape(shape)


def mnist_arrays(folder):
    """Training and test digits and classes."""
    if (folder / "mnist.npz").is_file():
        with np.load(folder / "mnist.npz", allow_pickle=False) as file:
            missing = MNIST_FILES.keys() - set(file.files)
            if missing:
                raise RawError(f"mnist.npz has no {', '.join(sorted(missing))}; get the file again.")
            arrays = [file[name] for name in MNIST_FILES]
    else:
        names = [["mnist.npz", name, f"{name}.gz"] for name in MNIST_FILES.values()]
        arrays = [idx_array(raw_file(folder, choice, MNIST_SOURCE)) for choice in names]
    if tuple(np.bincount(arrays[1], minlength=10)) != MNIST_CLASSES:
        warn("these are not the 60,000 training digits of MNIST (the classes have other sizes).")
    return arrays


def coloured_mnist(options):
    """Ten classes and ten colours: the colour goes with the class in training only."""
    x_train, y_train, x_test, y_test = mnist_arrays(options.raw)
    held_out = carve(y_train, MNIST_VALIDATION, options.seed)
    split = np.concatenate([held_out, np.full(len(y_test), 2)]).astype(np.int8)
    x = np.concatenate([x_train, x_test])
    y = np.concatenate([y_train, y_test]).astype(np.int64)
    pictures = np.empty((len(y), 3, *x.shape[1:]), np.uint8)
    colour = np.empty(len(y), np.int64)
    by_chance = 1 / len(COLOURS)
    for code, agree in enumerate((options.agree, by_chance, by_chance)):
        rows = np.flatnonzero(split == code)
        rng = np.random.default_rng([options.seed, code])
        pictures[rows], colour[rows] = colour_digits(x[rows], y[rows], agree, rng)
    file = io.BytesIO()
    np.savez_compressed(file, x=pictures, y=y, colour=colour, split=split)
    write(options.out, file.getbuffer())
    print_colours(y, colour, split)


def print_colours(y, colour, split):
    """Print how many digits of each split have the colour of their class, and how large the groups are."""
    for code, name in enumerate(SPLITS):
        mine = split == code
        sizes = np.bincount(10 * y[mine] + colour[mine], minlength=100)
        own = (y[mine] == colour[mine]).sum()
        print(f"{name:<6} {mine.sum():6,} digits, {own:6,} in the colour of their class, ", end="")
        print(f"groups of {sizes.min()} to {sizes.max()}")


# ---- waterbirds_features: what enters the last layer of a pretrained network -------------------


def waterbirds_features(options):
    """Pooled features of an ImageNet MobileNetV2 for all pictures of Waterbirds."""
    from pde_nb.published.published import read_waterbirds

    try:
        data = read_waterbirds(options.raw)
        x = picture_features(data, options.weights, options.size)
    except ValueError as error:
        raise RawError(str(error)) from None
    file = io.BytesIO()
    np.savez(file, x=x, y=data.y, place=np.asarray(data.attributes["place"]), split=data.split)
    write(options.out, file.getbuffer())
    print(data.describe())


def picture_features(data, weights, size, batch=64):
    """What enters the last layer of the network, for every picture: (n, features) float32."""
    import torch

    from pde_nb.inputs.inputs import make_source
    from pde_nb.networks.heads import embeddings
    from pde_nb.networks.models import make_model

    source = make_source(data, size=size, device="cpu")
    shapes = dict(n_classes=1000, kind="pictures", shape=source.shape)
    features = embeddings(make_model("mobilenet_v2", **shapes, weights=str(weights)).eval())
    parts = []
    with torch.no_grad():
        for start in range(0, len(data), batch):
            rows = np.arange(start, min(start + batch, len(data)))
            parts.append(features(source.batch(rows)))
    return torch.cat(parts).numpy().astype(np.float32)


# ---- the command ------------------------------------------------------------------------------

SUFFIXES = {adult: ".csv", sick: ".csv", coloured_mnist: ".npz", waterbirds_features: ".npz"}


def add_command(commands, function, raw):
    """A command with the options that all have."""
    command = commands.add_parser(function.__name__, help=function.__doc__, description=function.__doc__)
    command.set_defaults(function=function, seed=0)
    command.add_argument("--raw", type=Path, required=True, metavar="FOLDER", help=raw)
    command.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write")
    return command


def command_parser():
    """The options of all commands."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    drawn = [add_command(commands, f, "where the raw files are") for f in (adult, sick, coloured_mnist)]
    for command in drawn:
        command.add_argument("--seed", type=int, default=0, help="of all that is drawn (default: 0)")
    agree = "how often a training digit has its class's colour (default: 0.99)"
    drawn[-1].add_argument("--agree", type=share_value, default=0.99, help=agree)
    features = add_command(commands, waterbirds_features, "holds the official folder")
    weights = "of the network, .safetensors or .pth"
    features.add_argument("--weights", type=Path, required=True, metavar="FILE", help=weights)
    features.add_argument("--size", type=int, default=224, help="pixels of a picture side (default: 224)")
    return parser


def main(arguments=None):
    parser = command_parser()
    options = parser.parse_args(arguments)
    suffix = SUFFIXES[options.function]
    if options.out.suffix != suffix:
        parser.error(
            f"--out {options.out}: {options.command} writes a {suffix} file; give a name that ends so"
        )
    if options.seed < 0:
        parser.error(f"--seed {options.seed}: give 0 or larger")
    try:
        options.function(options)
    except (RawError, OSError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
