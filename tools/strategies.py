"""What the property pages draw: tables, arrays, groups, schedules, states, records and command lines."""

import string

import numpy as np
from hypothesis import strategies as st

# ---- text ------------------------------------------------------------------------------------

# What breaks a table that is put together carelessly. Characters that cannot be seen, and marks that sit on
# the letter before, are left to the notebooks on tables.
SHARP = "|<>&\"'`*_~^$#\\%{}[]();,=+-@ "
LETTERS = st.characters(exclude_categories=("C", "Z", "M"), exclude_characters="\u115f\u1160\u3164\uffa0")
names = st.text(st.one_of(st.sampled_from(SHARP), LETTERS), min_size=1, max_size=12)
words = st.text(string.ascii_lowercase, min_size=1, max_size=6)

# ---- numbers ---------------------------------------------------------------------------------

shares = st.floats(0, 1)
seeds = st.integers(0, 2**31 - 1)
finite = st.floats(-1e6, 1e6, width=32)
# What a command or a table may be given in place of a number.
odd_numbers = st.one_of(
    st.integers(-(2**62), 2**62),
    st.floats(),
    st.booleans(),
    st.none(),
    st.sampled_from(["", "1", "x", "1,5", b"1", 1j, -0.0, np.float32(2), np.int8(3), [1], (1, 2)]),
    st.sampled_from([(), (1, None), ((1,),), {}, (0, 1), ("1",)]),
)


# ---- groups ----------------------------------------------------------------------------------


@st.composite
def label_columns(draw, least=1, most=60, attributes=st.integers(1, 2), values=st.integers(1, 4)):
    """Labels and attributes of the same examples: a list of (n,) integer arrays, the labels first."""
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(seeds))
    sizes = draw(st.lists(values, min_size=(k := 1 + draw(attributes)), max_size=k))
    return [rng.choice(size, n, p=rng.dirichlet(np.ones(size))) for size in sizes]


@st.composite
def groups(draw, full=False, **how):
    """A partition into groups; `full`: every group has an example."""
    from pde_nb.algorithm.groups import make_groups

    columns = draw(label_columns(**how))
    if full:
        shape = [int(column.max()) + 1 for column in columns]
        every = np.indices(shape).reshape(len(shape), -1)
        columns = [np.concatenate([column, more]) for column, more in zip(columns, every)]
    return make_groups(*columns)


@st.composite
def overlaps(draw, most=60):
    """Groups that may overlap, be empty, or leave examples out; some example is in one."""
    from pde_nb.algorithm.groups import Overlap

    n, k = draw(st.integers(1, most)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(seeds))
    member = rng.random((n, k)) < rng.random(k)
    member[0, 0] = True
    return Overlap(member, tuple(f"g{i}" for i in range(k)))


@st.composite
def judged(draw, overlapping=True, classes=3):
    """Predictions, labels and groups of the same examples."""
    made = draw(st.one_of(groups(), overlaps()) if overlapping else groups())
    rng = np.random.default_rng(draw(seeds))
    y = rng.integers(0, classes, len(made))
    wrong = rng.random(len(made)) < draw(shares)
    return np.where(wrong, (y + 1) % classes, y), y, made


# ---- schedules -------------------------------------------------------------------------------


@st.composite
def schedules(draw):
    """A schedule, and whether it names how many expansions there are."""
    from pde_nb.algorithm.expansion import Schedule

    by = draw(st.one_of(st.integers(1, 20), st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple)))
    return Schedule(
        warmup_epochs=draw(st.integers(0, 6)),
        expand_by=by,
        expand_every=draw(st.integers(1, 4)),
        n_expansions=None if isinstance(by, tuple) else draw(st.one_of(st.none(), st.integers(0, 6))),
        cap=draw(st.one_of(st.none(), st.integers(1, 12))),
        draw=draw(st.sampled_from(["groups", "uniform", "replacement", "redrawn", "listed"])),
    )


# ---- states ----------------------------------------------------------------------------------

KINDS = "float32", "float64", "int64", "uint8", "bool", "int32"


@st.composite
def numpy_arrays(draw):
    """A small array of one of the kinds that a state holds; it may be empty or have no axis."""
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    rng = np.random.default_rng(draw(seeds))
    return np.asarray(rng.normal(size=shape) * 100).astype(draw(st.sampled_from(KINDS)))


def tensors():
    """The same as a tensor."""
    import torch

    return numpy_arrays().map(lambda array: torch.from_numpy(array).clone())


def states(depth=12):
    """A nested state as a checkpoint holds it."""
    plain = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False),
        st.text(max_size=8),
    )
    keys = st.one_of(st.text(max_size=5), st.integers(), st.tuples(st.integers(), st.text(max_size=3)))

    def nested(inside):
        return st.one_of(
            st.lists(inside, max_size=4),
            st.lists(inside, max_size=4).map(tuple),
            st.dictionaries(keys, inside, max_size=4),
        )

    return st.recursive(st.one_of(plain, numpy_arrays(), tensors()), nested, max_leaves=depth)


# ---- records ---------------------------------------------------------------------------------


@st.composite
def split_counts(draw, group_names):
    """`GroupCounts` of a partition into the named groups; one of them has an example."""
    from pde_nb.algorithm.metrics import GroupCounts

    total = np.array([draw(st.integers(0, 300)) for _ in group_names])
    total[draw(st.integers(0, len(group_names) - 1))] += 1
    correct = np.array([draw(st.integers(0, int(n))) for n in total])
    return GroupCounts(correct, total, tuple(group_names), int(correct.sum()), int(total.sum()))


@st.composite
def curves(draw, n_groups):
    """The curve of a run: an entry for each epoch."""
    entries, best = [], -1.0
    for epoch in range(draw(st.integers(1, 5))):
        counted_ = [draw(st.integers(1, 40)) for _ in range(n_groups)]
        correct = [draw(st.integers(0, n)) for n in counted_]
        worst = min(c / n for c, n in zip(correct, counted_))
        entries.append(
            dict(
                epoch=epoch,
                stage=draw(st.integers(0, 2)),
                active=draw(st.integers(1, 500)),
                seen=500 * (epoch + 1),
                passes=float(epoch + 1),
                lr=draw(st.floats(1e-6, 1)),
                loss=draw(st.one_of(st.none(), st.floats(0, 50))),
                val_worst_group=draw(st.sampled_from([None, worst])),
                val_worst_group_at_most=worst,
                best=worst > best,
                evaluated=sum(counted_),
                correct=correct,
                counted=counted_,
            )
        )
        best = max(best, worst)
    return entries


@st.composite
def configs(draw, epochs: int):
    """The config of a run of plain training."""
    from dataclasses import asdict

    from pde_nb.methods.base import Method, describe
    from pde_nb.training.settings import Settings

    return dict(
        data=draw(names),
        data_digest="0123456789abcdef",
        train_by=None,
        inputs={},
        inputs_digest="123456789abcdef0",
        model="linear",
        own_model=False,
        weights="none",
        start="23456789abcdef01",
        method=describe(Method(epochs)),
        settings=asdict(Settings(lr=draw(st.floats(1e-6, 1)))),
        seed=draw(st.integers(0, 99)),
        device="cpu",
        torch="2.13.0",
    )


@st.composite
def records(draw, group_name=names):
    """The record of a run that may have been: consistent, with names of any kind."""
    from pde_nb.training.record import RunRecord

    group_names = draw(st.lists(group_name, min_size=2, max_size=5, unique=True))
    parts = draw(st.sampled_from([("val",), ("val", "test")]))
    train_counts = [draw(st.integers(1, 500)) for _ in group_names]
    curve = draw(curves(len(group_names)))
    return RunRecord(
        config=draw(configs(len(curve))),
        notes=draw(st.lists(names, max_size=2)),
        best_epoch=[entry["epoch"] for entry in curve if entry["best"]][-1],
        stopped=draw(st.one_of(st.none(), words)),
        seconds=draw(st.floats(0, 1e4).map(lambda s: round(s, 1))),
        n_train=sum(train_counts),
        train_counts=train_counts,
        evaluated={part: draw(split_counts(group_names)) for part in parts},
        curve=curve,
    )


# ---- tables ----------------------------------------------------------------------------------

table_cells = st.one_of(
    finite.map(str),
    words,
    st.sampled_from(
        ["", "NA", "?", "nan", "inf", "-", "1e308", "1,5", "yes", "no", "0", "1", "ja|nein", '"', "é"]
    ),
)


@st.composite
def csv_texts(draw):
    """The text of a CSV file: header, some rows, and now and then what should not be there."""
    n_columns = draw(st.integers(1, 5))
    head = draw(
        st.lists(
            st.sampled_from(["y", "a", "b", "x1", "x2", "split", "", "y"]),
            min_size=n_columns,
            max_size=n_columns,
        )
    )
    width = st.sampled_from([n_columns] * 9 + [n_columns - 1, n_columns + 1])
    lines = [",".join(head)]
    for _ in range(draw(st.integers(0, 12))):
        size = draw(width)
        lines.append(",".join(draw(st.lists(table_cells, min_size=size, max_size=size))))
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines) + draw(st.sampled_from(["", "\n"]))


@st.composite
def sound_tables(draw, least=24, most=80):
    """A dict of columns that can be trained on: label, attribute, split, numbers, a category."""
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(seeds))
    y = np.arange(n) % 2
    a = np.where(rng.random(n) < draw(st.floats(0.5, 1)), y, 1 - y)
    split = np.array(["train", "val", "test"])[(np.arange(n) // 4) % 3]
    scale = draw(st.sampled_from([1.0, 1e-3, 1e4]))
    return dict(
        y=np.array(["no", "yes"])[y].tolist(),
        a=np.array(["north", "south"])[a].tolist(),
        split=split.tolist(),
        x1=(scale * (y + rng.normal(size=n))).round(6).tolist(),
        x2=rng.normal(size=n).round(6).tolist(),
        kind=rng.choice(["p", "q", "r|s", "t,u"], n).tolist(),
    )
