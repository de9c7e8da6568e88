"""Small data that the commands are tried on, the same in every run of the suite."""

import csv
from collections import Counter
from pathlib import Path

import numpy as np

from torture.server import ROOT

SHARE = 0.12  # of the example table that is kept of each split and group
LEAST = 12  # rows of each


def make_material(folder: Path):
    """Write the loans, pixels, features and pictures into a folder, unless they are there."""
    if (folder / "complete").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_loans(folder / "loans.csv")
    write_arrays(folder)
    write_pictures(folder / "birds")
    (folder / "complete").touch()


def write_loans(path: Path):
    """A part of the example table, from the beginning of each split and group."""
    with open(ROOT / "examples" / "loans.csv", newline="", encoding="utf-8") as f:
        head, *rows = csv.reader(f)
    where = [head.index(name) for name in ("split", "granted", "district")]

    def cell(row):
        return tuple(row[i] for i in where)

    sizes, seen = Counter(map(cell, rows)), Counter()
    kept = []
    for row in rows:
        if seen[cell(row)] < max(LEAST, SHARE * sizes[cell(row)]):
            kept.append(row)
        seen[cell(row)] += 1
    with open(path, "w", newline="", encoding="utf-8") as f:
        csv.writer(f, lineterminator="\n").writerows([head, *kept])


def drawn_groups(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Label, attribute and split of n examples: the attribute agrees with the label in most of training."""
    rng = np.random.default_rng(seed)
    split = np.arange(n) % 3
    y = np.arange(n) // 3 % 2
    agree = rng.random(n) < np.where(split == 0, 0.8, 0.5)
    return y, np.where(agree, y, 1 - y), split


def write_arrays(folder: Path):
    """Pixels and features as .npz."""
    y, a, split = drawn_groups(180, 0)
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 200, (180, 3, 8, 8), dtype=np.uint8)
    pixels[:, 0] += (40 * y).astype(np.uint8)[:, None, None]
    pixels[:, 1] += (50 * a).astype(np.uint8)[:, None, None]
    np.savez(folder / "pixels.npz", x=pixels, y=y, place=a, split=split)
    features = rng.normal(size=(180, 6)).astype(np.float32)
    features[:, 0] += y
    features[:, 1] += 2 * a
    np.savez(folder / "features.npz", x=features, y=y, place=a, split=split)


def write_pictures(folder: Path, n: int = 60):
    """A folder of small pictures with metadata.csv."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    y, a, split = drawn_groups(n, 2)
    rng = np.random.default_rng(3)
    names = np.array(["train", "val", "test"])[split]
    lines = ["filename,bird,place,split"]
    for i in range(n):
        pixels = rng.integers(0, 200, (16, 16, 3), dtype=np.uint8)
        pixels[..., 0] += np.uint8(50 * y[i])
        pixels[..., 1] += np.uint8(50 * a[i])
        Image.fromarray(pixels).save(folder / f"{i:03}.png")
        lines.append(f"{i:03}.png,{('land', 'water')[y[i]]},{('wood', 'lake')[a[i]]},{names[i]}")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
