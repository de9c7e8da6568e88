"""A small world whose smallest training group is a biased part of it."""

import numpy as np

from pde_nb.sources.data import Data, from_arrays

SIZES = dict(
    train=(1500, 80, 32, 800), val=(120, 120, 60, 60), test=(600, 600, 600, 600)
)  # rows of each group
DIM = 20


def shifted_world(bias: float, seed: int) -> tuple[Data, np.ndarray]:
    """Data whose smallest training group is biased, and which sub-kind each row is of.

    The attribute moves the first input. Rows of class 0 have no sign of the class; those of class 1 have it
    in the second input (kind 0) or in the third (kind 1). Half of them are of either kind, but in the
    smallest training group, class 1 without the attribute, a share of (1 + bias) / 2 is of kind 0."""
    if not 0 <= bias <= 1:
        raise ValueError(f"bias={bias}; give a number from 0, a fair sample, to 1, one kind only.")
    rng = np.random.default_rng([7, seed])
    x, kind = [], []
    places = []
    for part, counts in SIZES.items():
        for group, n in enumerate(counts):
            first = (1 + bias) / 2 if part == "train" and group == 2 else 0.5
            kind.append((np.arange(n) >= round(n * first)).astype(int))
            x.append(inputs_of(group // 2, group % 2, kind[-1], rng))
            places += [(group // 2, group % 2, part)] * n
    columns = [np.array(column) for column in zip(*places)]
    data = from_arrays(np.concatenate(x), columns[0], {"place": columns[1]}, columns[2], name="shifted world")
    return data, np.concatenate(kind)


def inputs_of(y: int, a: int, kinds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    "Inputs of rows of one group."
    x = rng.standard_normal((len(kinds), DIM))
    x[:, 0] += 3 * (2 * a - 1)
    x[np.arange(len(kinds)), 1 + kinds] += 3 * y
    return x.astype(np.float32)
