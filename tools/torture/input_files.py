"""How the files of bad input are made: small functions of a folder with the material in it."""

import csv
import gzip
import io
import os
from pathlib import Path

import numpy as np


def rows_of(folder: Path) -> list[list[str]]:
    """The loans, head first."""
    with open(folder / "loans.csv", newline="", encoding="utf-8") as f:
        return list(csv.reader(f))


def text_of(rows: list[list[str]]) -> str:
    """Rows as CSV."""
    f = io.StringIO()
    csv.writer(f, lineterminator="\n").writerows(rows)
    return f.getvalue()


def cell(column: str, value: str, n: int = 1, name: str = "t.csv"):
    """A table in which the first n rows have a value in a column; n = -1: all rows."""

    def make(folder: Path):
        head, *rows = rows_of(folder)
        at = head.index(column)
        for row in rows[: n if n >= 0 else None]:
            row[at] = value
        (folder / name).write_text(text_of([head, *rows]), encoding="utf-8")

    return make


def renamed(column: str, name: str):
    """A table in which a column is called otherwise."""

    def make(folder: Path):
        head, *rows = rows_of(folder)
        head[head.index(column)] = name
        (folder / "t.csv").write_text(text_of([head, *rows]), encoding="utf-8")

    return make


def replaced(column: str, **values: str):
    """A table in which values of a column are replaced by others."""

    def make(folder: Path):
        head, *rows = rows_of(folder)
        at = head.index(column)
        for row in rows:
            row[at] = values.get(row[at], row[at])
        (folder / "t.csv").write_text(text_of([head, *rows]), encoding="utf-8")

    return make


def without(column: str):
    """A table that lacks a column."""

    def make(folder: Path):
        rows = rows_of(folder)
        at = rows[0].index(column)
        (folder / "t.csv").write_text(text_of([row[:at] + row[at + 1 :] for row in rows]), encoding="utf-8")

    return make


def numbered(column: str):
    """A table in which every value of a column is another word."""

    def make(folder: Path):
        head, *rows = rows_of(folder)
        at = head.index(column)
        for i, row in enumerate(rows):
            row[at] = f"v{i}"
        (folder / "t.csv").write_text(text_of([head, *rows]), encoding="utf-8")

    return make


def written(name: str, content: bytes | str):
    """A file with this content."""

    def make(folder: Path):
        data = content.encode() if isinstance(content, str) else content
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    return make


def changed(name: str, change):
    """A file with the bytes of the loans, changed by a function of bytes."""

    def make(folder: Path):
        (folder / name).write_bytes(change((folder / "loans.csv").read_bytes()))

    return make


def as_utf16(content: bytes) -> bytes:
    return content.decode().encode("utf-16")


def with_latin(content: bytes) -> bytes:
    return content.replace(b"house", b"ch\xe2teau", 1)


def with_mark(content: bytes) -> bytes:
    return b"\xef\xbb\xbf" + content


def with_crlf(content: bytes) -> bytes:
    return content.replace(b"\n", b"\r\n")


def with_semicolons(content: bytes) -> bytes:
    return content.replace(b",", b";")


def with_tabs(content: bytes) -> bytes:
    return content.replace(b",", b"\t")


def with_nul(content: bytes) -> bytes:
    return content.replace(b"house", b"ho\0se", 1)


def with_long_row(content: bytes) -> bytes:
    return content + b"1,2,3,4,5,6,7,8,9,10,11,12\n"


def with_short_row(content: bytes) -> bytes:
    return content + b"1,2,3\n"


def with_open_quote(content: bytes) -> bytes:
    return content + b'"1,2,3,4,house,north,yes,train\n'


def head_alone(content: bytes) -> bytes:
    return content.split(b"\n")[0] + b"\n"


def one_row(content: bytes) -> bytes:
    return b"\n".join(content.split(b"\n")[:2]) + b"\n"


def twice_named(content: bytes) -> bytes:
    return content.replace(b"savings", b"income", 1)


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def zipped_half(content: bytes) -> bytes:
    return zipped(content)[:-200]


def zipped_flipped(content: bytes) -> bytes:
    data = bytearray(zipped(content))
    data[len(data) // 2] ^= 0x55
    return bytes(data)


def parquet(change=None):
    """The loans as Parquet, their bytes changed."""

    def make(folder: Path):
        import pandas as pd

        pd.read_csv(folder / "loans.csv").to_parquet(folder / "t.parquet")
        if change:
            path = folder / "t.parquet"
            path.write_bytes(change(path.read_bytes()))

    return make


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def middle_flipped(content: bytes) -> bytes:
    data = bytearray(content)
    data[len(data) // 2] ^= 0x10
    return bytes(data)


def arrays(change=None, **others):
    """The features as a.npz with other arrays, whose bytes are changed; None leaves an array out."""

    def make(folder: Path):
        found = dict(np.load(folder / "features.npz"))
        found |= {name: value(found) if callable(value) else value for name, value in others.items()}
        kept = {name: value for name, value in found.items() if value is not None}
        np.savez(folder / "a.npz", **kept)
        if change:
            path = folder / "a.npz"
            path.write_bytes(change(path.read_bytes()))

    return make


def x_with(value: float):
    """The features with one value replaced."""

    def of(found):
        x = found["x"].copy()
        x[3, 2] = value
        return x

    return of


def x_as(kind: str):
    """The features as another kind of array."""

    def of(found):
        x = found["x"]
        kinds = {
            "one-dimensional": x[:, 0],
            "five-dimensional": x.reshape(180, 6, 1, 1, 1),
            "short": x[:100],
            "none": x[:0],
            "words": x.astype(str),
            "complex": x.astype(complex),
            "objects": x.astype(object),
            "scalar": np.float32(1),
            "dates": np.zeros(180, "datetime64[s]"),
            "bools": x > 0,
        }
        return kinds[kind]

    return of


def y_as(kind: str):
    """The labels as another kind of array."""

    def of(found):
        y = found["y"]
        kinds = {
            "fractions": y + 0.5 * np.linspace(0, 1, len(y)),
            "nan": np.where(np.arange(len(y)) == 3, np.nan, y.astype(float)),
            "constant": 0 * y,
            "two-dimensional": np.stack([y, y], 1),
            "words": np.array(["no", "yes"])[y],
            "negative": y - 1,
        }
        return kinds[kind]

    return of


def pictures(*changes):
    """The folder of pictures as p/, changed by functions of it."""

    def make(folder: Path):
        for change in changes:
            change(folder / "p")

    return make


def in_pictures(name: str, content: bytes | str):
    """A file among the pictures."""

    def change(folder: Path):
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return change


def cut_picture(folder: Path):
    path = folder / "007.png"
    path.write_bytes(path.read_bytes()[:200])


def lost_picture(folder: Path):
    (folder / "007.png").unlink()


def looped_picture(folder: Path):
    lost_picture(folder)
    os.symlink("007.png", folder / "007.png")


def folder_picture(folder: Path):
    lost_picture(folder)
    (folder / "007.png").mkdir()


def no_table(folder: Path):
    (folder / "metadata.csv").unlink()


def in_table(old: str, new: str):
    """A text of metadata.csv replaced, once."""

    def change(folder: Path):
        path = folder / "metadata.csv"
        path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")

    return change


def picture_as(mode: str, size: tuple[int, int] = (16, 16)):
    """One of the pictures in another mode or size."""

    def change(folder: Path):
        from PIL import Image

        Image.new(mode, size).save(folder / "007.png")

    return change


def moving_picture(folder: Path):
    from PIL import Image

    frames = [Image.new("RGB", (16, 16), (i, 0, 0)) for i in (0, 200)]
    frames[0].save(folder / "007.gif", save_all=True, append_images=frames[1:])
    in_table("007.png", "007.gif")(folder)


def vast_picture(folder: Path):
    """A picture that says that it has 30,000 × 30,000 pixels."""
    from PIL import Image

    Image.new("1", (30000, 30000)).save(folder / "007.png")


def linked(name: str, target: str):
    """A link."""

    def make(folder: Path):
        os.symlink(target, folder / name)

    return make


def made_folder(name: str):
    """An empty folder."""

    def make(folder: Path):
        (folder / name).mkdir(parents=True)

    return make


def both(*makers):
    """Several of these."""

    def make(folder: Path):
        for maker in makers:
            maker(folder)

    return make
