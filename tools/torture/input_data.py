"""Bad data, as data: the name of the case, how its files are made, the command, and what is expected."""

from collections.abc import Callable
from dataclasses import dataclass

from torture import input_files as make

T = "pde_train --data t.csv --label granted --attribute district --method erm --epochs 2 --out out"
L = T.replace("t.csv", "loans.csv")
A = "pde_train --data a.npz --label y --attribute place --method erm --epochs 2 --out out"
BIRDS = "--data p --label bird --attribute place --model small_cnn"
P = f"pde_train {BIRDS} --method erm --epochs 2 --cache c --out out"
LOANS = "--data loans.csv --label granted --attribute district"
CMP = f"pde_compare {LOANS} --methods erm --seeds 1 --tries 1 --budget 1 --out out"
DG = f"pde_diagnose {LOANS}"
RR = f"pde_reproduce tab:stage {LOANS} --seeds 1 --scale 0.02 --passes 1 --out out"
GZ = T.replace("t.csv", "t.csv.gz")
PARQUET = T.replace("t.csv", "t.parquet")


@dataclass(frozen=True)
class Input:
    """One case."""

    name: str
    line: str  # program and argv, in a folder with the material: loans.csv, features.npz, pixels.npz, p/
    expect: str = "refused"  # or ok
    word: str = ""  # a pattern that the message must have (where ok: what is printed)
    make: Callable | None = None
    status: int = 2  # of a refusal
    never: str = ""  # a pattern that must not be printed
    unreadable: str = ""  # a file that the command, run as nobody, may not read; '.': may not write to
    printed_to: str = ""  # in place of a file

    @property
    def pictures(self) -> bool:
        return " p " in self.line or self.name.startswith("picture")


# Tables that are damaged, incomplete or strange.
TABLES = (
    Input("table-empty", T, word="t.csv", make=make.written("t.csv", "")),
    Input("table-head-alone", T, word="row|example|empty", make=make.changed("t.csv", make.head_alone)),
    Input("table-one-row", T, make=make.changed("t.csv", make.one_row)),
    Input("table-absent", T, word="t.csv"),
    Input("table-is-folder", T, word="metadata|t.csv", make=make.made_folder("t.csv")),
    Input("table-link-to-nothing", T, word="t.csv", make=make.linked("t.csv", "nowhere.csv")),
    Input("table-link-to-itself", T, word="t.csv", make=make.linked("t.csv", "t.csv")),
    Input("table-binary", T, word="t.csv", make=make.written("t.csv", bytes(range(256)) * 40)),
    Input("table-nul", T, "ok", make=make.changed("t.csv", make.with_nul)),
    Input("table-utf16", T, word="t.csv", make=make.changed("t.csv", make.as_utf16)),
    Input("table-latin1", T, word="utf-8|UTF-8", make=make.changed("t.csv", make.with_latin)),
    Input("table-byte-mark", T, "ok", make=make.changed("t.csv", make.with_mark)),
    Input("table-crlf", T, "ok", make=make.changed("t.csv", make.with_crlf)),
    Input("table-semicolons", T, word="granted", make=make.changed("t.csv", make.with_semicolons)),
    Input("table-tabs", T, word="granted", make=make.changed("t.csv", make.with_tabs)),
    Input("table-long-row", T, word="t.csv", make=make.changed("t.csv", make.with_long_row)),
    Input("table-short-row", T, word="missing", make=make.changed("t.csv", make.with_short_row)),
    Input("table-open-quote", T, word="t.csv", make=make.changed("t.csv", make.with_open_quote)),
    Input("table-name-twice", T, word="income", make=make.changed("t.csv", make.twice_named)),
    Input("table-name-empty", T, "ok", make=make.renamed("age", "")),
    Input("table-gz", GZ, "ok", make=make.changed("t.csv.gz", make.zipped)),
    Input(
        "table-gz-half",
        GZ,
        word="t.csv.gz",
        make=make.changed("t.csv.gz", make.zipped_half),
    ),
    Input(
        "table-gz-flipped",
        GZ,
        word="t.csv.gz",
        make=make.changed("t.csv.gz", make.zipped_flipped),
    ),
    Input(
        "table-gz-none",
        GZ,
        word="t.csv.gz",
        make=make.written("t.csv.gz", b"\x1f\x8b\x08\x00123"),
    ),
    Input("table-parquet", PARQUET, "ok", make=make.parquet()),
    Input(
        "table-parquet-half",
        PARQUET,
        word="t.parquet",
        make=make.parquet(make.half),
    ),
    Input(
        "table-parquet-text",
        PARQUET,
        word="t.parquet",
        make=make.written("t.parquet", "a,b\n1,2\n"),
    ),
    Input(
        "table-other-ending",
        T.replace("t.csv", "t.xlsx"),
        word="csv",
        make=make.written("t.xlsx", "a,b\n1,2\n"),
    ),
)


# Tables with values that are missing, absurd or hostile.
VALUES = (
    Input("label-column-absent", T, word="granted", make=make.without("granted")),
    Input("attribute-column-absent", T, word="district", make=make.without("district")),
    Input("label-missing", T, word="granted", make=make.cell("granted", "")),
    Input("attribute-missing", T, "ok", make=make.cell("district", "")),
    Input("attribute-called-NA", T, word="NA", make=make.replaced("district", north="NA")),
    Input("label-one-class", T, word="granted|class", make=make.cell("granted", "yes", -1)),
    Input("attribute-one-value", T, "ok", make=make.cell("district", "north", -1)),
    Input("label-all-different", T, word="granted", make=make.numbered("granted")),
    Input("attribute-all-different", T, word="district", make=make.numbered("district")),
    Input("feature-all-different", T, "ok", make=make.numbered("purpose")),
    Input("feature-constant", T, "ok", make=make.cell("age", "40", -1)),
    Input("feature-missing", T, word="missing", make=make.cell("age", "")),
    Input("feature-missing-filled", T + " --missing fill", "ok", "age", make.cell("age", "")),
    Input("feature-word-filled", T + " --missing fill", "ok", make=make.cell("purpose", "")),
    Input("feature-all-missing", T + " --missing fill", "ok", make=make.cell("age", "", -1)),
    Input("feature-question-mark", T, word="income", make=make.cell("income", "?")),
    Input("feature-decimal-comma", T, word="income", make=make.cell("income", "29,1")),
    Input("feature-inf", T, word="income", make=make.cell("income", "inf")),
    Input("feature-1e308", T, word="income", make=make.cell("income", "1e308")),
    Input("feature-1e30", T, word="income", make=make.cell("income", "1e30")),
    Input("feature-2e64", T, word="income", make=make.cell("income", "18446744073709551616999")),
    Input("split-unknown", T, word="split", make=make.cell("split", "banana")),
    Input("split-missing", T, word="split", make=make.cell("split", "")),
    Input("split-no-train", T, word="train", make=make.replaced("split", train="test")),
    Input("split-no-val", T, "ok", "no validation split", make.replaced("split", val="test")),
    Input("split-no-test", T, "ok", make=make.replaced("split", test="val")),
    Input(
        "split-no-test-compared",
        CMP.replace("loans", "t"),
        word="test",
        make=make.replaced("split", test="val"),
    ),
    Input("split-all-train", T, "ok", "no test split", make.cell("split", "train", -1)),
    Input("name-with-pipe", CMP.replace("loans", "t"), "ok", make=make.replaced("district", north="A|B")),
    Input("name-with-script", T, "ok", make=make.replaced("district", north="<script>alert(1)</script>")),
    Input(
        "name-with-control",
        T,
        "ok",
        make=make.replaced("district", north="a\x1b[31mb"),
        never="\x1b\\[31m",
    ),
    Input("name-with-newline", T, "ok", make=make.replaced("district", north="a\nb")),
    Input("name-of-formula", T, "ok", make=make.replaced("district", north="=1+1")),
)


WRONG_X = (
    *(
        "one-dimensional",
        "five-dimensional",
        "short",
        "none",
        "words",
        "complex",
        "objects",
        "scalar",
        "dates",
    ),
)
WRONG_Y = "fractions", "nan", "constant", "two-dimensional"
# Arrays of the wrong kind, and damaged .npz files.
ARRAY_FILES = (
    *(Input(f"npz-x-{kind}", A, word="x", make=make.arrays(x=make.x_as(kind))) for kind in WRONG_X),
    *(Input(f"npz-y-{kind}", A, word="y", make=make.arrays(y=make.y_as(kind))) for kind in WRONG_Y),
    Input("npz-y-words", A, "ok", make=make.arrays(y=make.y_as("words"))),
    Input("npz-y-negative", A, "ok", make=make.arrays(y=make.y_as("negative"))),
    Input("npz-nan", A, word="nan|finite|missing", make=make.arrays(x=make.x_with(float("nan")))),
    Input("npz-inf", A, word="inf|finite", make=make.arrays(x=make.x_with(float("inf")))),
    Input("npz-1e30", A, "ok", "1e.?30", make.arrays(x=make.x_with(1e30))),
    Input("npz-no-x", A, word="x", make=make.arrays(x=None)),
    Input("npz-no-label", A, word="y", make=make.arrays(y=None)),
    Input("npz-no-attribute", A, word="place", make=make.arrays(place=None)),
    Input("npz-flipped", A, word="a.npz", make=make.arrays(make.middle_flipped)),
    Input("npz-half", A, word="a.npz", make=make.arrays(make.half)),
    Input("npz-empty", A, word="a.npz", make=make.written("a.npz", "")),
    Input("npz-text", A, word="a.npz", make=make.written("a.npz", "x,y\n1,2\n")),
    Input("npz-folder", A, word="a.npz", make=make.made_folder("a.npz")),
    Input(
        "npz-flipped-diagnosed",
        "pde_diagnose --data a.npz --label y --attribute place",
        word="a.npz",
        make=make.arrays(make.middle_flipped),
    ),
    Input("npz-root", A + " --root .", word="root", make=make.arrays()),
    Input("npz-text-column", A + " --text x", word="text", make=make.arrays()),
)


# Pictures that are missing, damaged, or no pictures.
PICTURE_FOLDERS = (
    Input("picture-good", P + " --size 16", "ok"),
    Input("picture-lost", P, word="007.png", make=make.pictures(make.lost_picture)),
    Input("picture-cut", P, word="007.png", make=make.pictures(make.cut_picture)),
    Input("picture-text", P, word="007.png", make=make.pictures(make.in_pictures("007.png", "hello"))),
    Input("picture-empty", P, word="007.png", make=make.pictures(make.in_pictures("007.png", ""))),
    Input("picture-folder", P, word="007.png", make=make.pictures(make.folder_picture)),
    Input("picture-loop", P, word="007.png", make=make.pictures(make.looped_picture)),
    Input("picture-vast", P, word="007.png", make=make.pictures(make.vast_picture)),
    Input("picture-moving", P, "ok", make=make.pictures(make.moving_picture)),
    Input("picture-grey", P, "ok", make=make.pictures(make.picture_as("L"))),
    Input("picture-alpha", P, "ok", make=make.pictures(make.picture_as("RGBA"))),
    Input("picture-16-bit", P, "ok", make=make.pictures(make.picture_as("I;16"))),
    Input("picture-one-pixel", P, "ok", make=make.pictures(make.picture_as("RGB", (1, 1)))),
    Input("picture-no-table", P, word="metadata", make=make.pictures(make.no_table)),
    Input(
        "picture-no-name-column",
        P,
        word="filename|column",
        make=make.pictures(make.in_table("filename", "shown")),
    ),
    Input("picture-name-missing", P, word="missing|name", make=make.pictures(make.in_table("007.png", ""))),
    Input("picture-outside", P, word=r"\.\./", make=make.pictures(make.in_table("007.png", "../../007.png"))),
    Input(
        "picture-table-binary",
        P,
        word="metadata",
        make=make.pictures(make.in_pictures("metadata.csv", bytes(range(256)))),
    ),
    Input("picture-size-0", P + " --size 0", word="size"),
    Input("picture-size-negative", P + " --size -3", word="size"),
    Input("picture-size-1", P + " --size 1", word="size|pixels"),
    Input("picture-cache-file", P.replace("--cache c", "--cache p/metadata.csv"), word="metadata.csv"),
    Input("picture-augment-word", P + " --augment spin", word="spin"),
    Input("picture-features", P + " --features place", word="features"),
)
