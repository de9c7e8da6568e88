"""Bad options and folders, as data, for every command; and all cases of bad input."""

from torture import input_files as make
from torture.input_data import (
    ARRAY_FILES,
    CMP,
    DG,
    PICTURE_FOLDERS,
    RR,
    TABLES,
    VALUES,
    A,
    Input,
    L,
    P,
)

REPORT = "pde_report train-erm/out --no-mistakes"
OTHER_BUDGET = CMP.replace("--out out", "--out compare/out")

WORDS = {"label": "label|class"}  # what a message must have, where that is not the name of the setting


def settings() -> list[Input]:
    """Settings of training that are out of range or no numbers."""
    wrong = {
        "epochs": ("0", "-1", "1.5", "nan", "many"),
        "lr": ("0", "-1", "nan", "inf", "fast", "1e300"),
        "batch-size": ("0", "-4", "18446744073709551616", "2.5"),
        "momentum": ("18446744073709551616", "1", "-1", "nan"),
        "weight-decay": ("-1", "nan", "inf"),
        "seed": ("-1", "18446744073709551616", "1.5"),
        "checkpoint-every": ("nan", "-1"),
        "optimiser": ("rmsprop",),
        "ties": ("coin",),
        "evaluate": ("never",),
        "eval-batch": ("0",),
        "patience": ("0", "-2"),
        "clip": ("0", "nan"),
        "bf16": ("perhaps",),
        "model": ("mpl", "resnet50"),
        "weights": ("absent.safetensors", "loans.csv"),
        "device": ("cuda:77", "toaster"),
        "method": ("emr", "pde_auto"),
        "train-by": ("county",),
        "features": ("salary", "granted"),
        "attribute": ("granted", "split"),
        "label": ("grant", "split"),
    }
    return [
        Input(
            f"train-{name}-{value}".replace(":", "-"),
            f"{L} --{name} {value}",
            word=WORDS.get(name, name.split("-")[0]),
        )
        for name, values in wrong.items()
        for value in values
    ]


# Options of training that mean nothing here, or contradict each other.
OPTIONS = (
    Input("train-nothing", "pde_train", word="--data"),
    Input("train-no-label", "pde_train --data loans.csv --attribute district", word="--label"),
    Input("train-no-attribute", "pde_train --data loans.csv --label granted", word="--attribute"),
    Input("train-unknown-option", L + " --epoochs 3", word="epoochs"),
    Input("train-out-empty", L.replace("--out out", "--out ''"), word="out"),
    Input("train-out-is-file", L.replace("--out out", "--out loans.csv"), word="loans.csv"),
    Input("train-out-of-another", L.replace("--out out", "--out train-pde/out"), word="another run"),
    Input("train-json-is-folder", L + " --json q", word="q", make=make.made_folder("q")),
    Input("train-json-below-file", L + " --json loans.csv/x.json", word="loans.csv"),
    Input("train-resume-nothing", L + " --resume", word="resume"),
    Input("train-seeds-0", L + " --seeds 0", word="seeds"),
    Input("train-seeds-and-seed", L + " --seeds 2 --seed 1", word="seed"),
    Input("train-first-absent", L.replace("erm", "jtt") + " --first nowhere", word="nowhere"),
    Input("train-first-of-erm", L + " --first train-erm/out", word="first"),
    Input("train-first-unfit", L.replace("erm", "jtt") + " --first compare/out", word="compare"),
    Input("train-cache-of-table", L + " --cache c", word="cache"),
    Input("train-size-of-table", L + " --size 16", word="size"),
    Input("train-augment-of-table", L + " --augment flip", word="augment"),
    Input("train-tokens-of-table", L + " --max-tokens 9", word="max.tokens"),
    Input("train-root-of-table", L + " --root .", word="root"),
    Input("train-noise-of-table", L + " --known-noise drop", word="known-noise"),
    Input("train-terms-of-table", L + " --class-terms", word="class-terms"),
    Input("train-text-column-absent", L + " --text story", word="story"),
    Input("train-image-column-absent", L + " --image photo", word="photo"),
    Input("train-text-offline", L + " --text purpose", word="model|tokenizer|network", status=3),
    Input("train-preset-of-table", L + " --preset paper", word="preset"),
    Input("train-preset-unknown", L + " --preset best", word="preset"),
    Input("train-schedule-and-auto", L.replace("erm", "pde") + " --expand-by 3", word="expand-by"),
    Input("train-warmup-0", L.replace("erm", "pde") + " --schedule fixed --warmup-epochs 0", "ok"),
    Input(
        "train-warmup-negative", L.replace("erm", "pde") + " --schedule fixed --warmup-epochs -1", word="warm"
    ),
    Input("train-expand-by-0", L.replace("erm", "pde") + " --schedule fixed --expand-by 0", word="expand"),
    Input("train-setting-of-another", L + " --upweight 3", word="upweight"),
    Input("train-upweight-negative", L.replace("erm", "jtt") + " --upweight -3", word="upweight"),
    Input("train-eta-negative", L.replace("erm", "group_dro") + " --eta -1", word="eta"),
    Input("train-q-0", L.replace("erm", "lff") + " --q -1", word="q"),
    Input("train-benchmark-no-root", "pde_train --data waterbirds", word="root"),
    Input("train-benchmark-absent", "pde_train --data waterbirds --root .", word="waterbirds"),
    Input("train-benchmark-misspelt", "pde_train --data waterbird --root .", word="waterbirds"),
    Input(
        "train-config-folder",
        L.replace("--out out", "--out o"),
        word="config.json",
        make=make.made_folder("o/config.json"),
    ),
    Input(
        "train-checkpoint-text",
        L.replace("--out out", "--out o"),
        word="checkpoint",
        make=make.written("o/checkpoint.safetensors", "no"),
    ),
)


# What the commands that read runs are given.
READERS = (
    Input("eval-absent", "pde_eval nowhere", word="nowhere"),
    Input("eval-file", "pde_eval loans.csv", word="loans.csv"),
    Input("eval-empty-folder", "pde_eval q", word="q", make=make.made_folder("q")),
    Input("eval-split", "pde_eval train-erm/out --split all", word="split"),
    Input("eval-data-gone", "pde_eval train-erm/out --data gone.csv", word="gone.csv"),
    Input(
        "eval-data-other",
        "pde_eval train-erm/out --data t.csv",
        word="t.csv|data",
        make=make.cell("age", "99"),
    ),
    Input("eval-json-folder", "pde_eval train-erm/out --json q", word="q", make=make.made_folder("q")),
    Input("eval-comparison", "pde_eval compare/out", word="config.json"),
    Input("report-nothing", "pde_report", word="RUN"),
    Input("report-absent", "pde_report nowhere", word="nowhere"),
    Input("report-table", "pde_report loans.csv", word="loans.csv"),
    Input(
        "report-empty-record",
        "pde_report r/record.json",
        word="record",
        make=make.written("r/record.json", "{}"),
    ),
    Input(
        "report-list-record",
        "pde_report r/record.json",
        word="record",
        make=make.written("r/record.json", "[1]"),
    ),
    Input("report-comparison", "pde_report compare/out", word="compare"),
    Input("report-out-folder", REPORT + " --out q", word="q", make=make.made_folder("q")),
    Input("report-out-pdf", REPORT + " --out r.pdf", word="pdf"),
    Input("report-mistakes", "pde_report train-erm/out --mistakes -1", word="mistakes"),
    Input("report-attention", REPORT + " --attention 2", word="attention"),
    Input("report-masks", REPORT + " --masks p", word="masks"),
    Input("report-overview", REPORT + " --overview o.png", word="overview"),
    Input("report-split-train", REPORT + " --split train", word="split"),
    Input("report-device-for-two", "pde_report train-erm/out train-pde/out --device cpu", word="device"),
    Input("report-twice", "pde_report train-erm/out train-erm/out --no-mistakes", word="twice|same"),
    Input(
        "report-eval-of-unfinished",
        "pde_report o",
        word="finished|config",
        make=make.written("o/config.json", "{}"),
    ),
)


ERM = "train-erm/out"
# Files that may not be read, folders that may not be written to, and output that goes nowhere.
FORBIDDEN = (
    Input("unreadable-table", L, word="loans.csv", unreadable="loans.csv", status=3),
    Input("unreadable-arrays", A, word="a.npz", make=make.arrays(), unreadable="a.npz", status=3),
    Input("unreadable-diagnosed", DG, word="loans.csv", unreadable="loans.csv", status=3),
    Input("unreadable-picture", P, word="007.png", unreadable="p/007.png"),
    Input(
        "unreadable-config", f"pde_eval {ERM}", word="config.json", unreadable=f"{ERM}/config.json", status=3
    ),
    Input(
        "unreadable-record", f"pde_eval {ERM}", word="record.json", unreadable=f"{ERM}/record.json", status=3
    ),
    Input(
        "unreadable-model", f"pde_eval {ERM}", word="model", unreadable=f"{ERM}/model.safetensors", status=3
    ),
    Input(
        "unreadable-ledger",
        "pde_report train-pde/out",
        word="ledger",
        unreadable="train-pde/out/ledger.csv",
        status=3,
    ),
    Input("unwritable-train", L, word="write", unreadable=".", status=3),
    Input("unwritable-compare", CMP, word="write", unreadable=".", status=3),
    Input("unwritable-reproduce", RR, word="write", unreadable=".", status=3),
    Input("unwritable-json", DG + " --json d.json", word="write", unreadable=".", status=3),
    Input("unwritable-figure", DG + " --figure d.png", word="write", unreadable=".", status=3),
    Input("unwritable-report", f"pde_report {ERM} --out r.html", word="write", unreadable=".", status=3),
    Input("full-output-train", L, word="space|write|print", printed_to="/dev/full", status=3),
    Input("full-output-diagnose", DG, word="space|write|print", printed_to="/dev/full", status=3),
    Input("full-output-report", REPORT, word="space|write|print", printed_to="/dev/full", status=3),
)

# What pde_compare and pde_diagnose are given.
COMPARISONS = (
    Input("compare-method", CMP.replace("erm", "emr"), word="erm"),
    Input("compare-seeds", CMP + " --seeds 0", word="seeds"),
    Input("compare-budget-0", CMP + " --budget 0", word="budget"),
    Input("compare-budget-nan", CMP + " --budget nan", word="budget"),
    Input("compare-tries", CMP + " --tries 0", word="tries"),
    Input("compare-tune-empty", CMP + " --tune lr=", word="tune"),
    Input("compare-tune-unknown", CMP + " --tune speed=1,2", word="speed"),
    Input("compare-tune-twice", CMP + " --tune lr=1 lr=2", word="twice"),
    Input("compare-tune-word", CMP + " --tune lr=fast", word="lr"),
    Input("compare-out-file", CMP.replace("--out out", "--out loans.csv"), word="loans.csv"),
    Input(
        "compare-foreign-json",
        CMP.replace("--out out", "--out o"),
        "ok",
        make=make.written("o/notes.json", '{"hello": 1}'),
    ),
    Input("compare-other-budget", OTHER_BUDGET + " --budget 9", word="another comparison"),
    Input("diagnose-nothing", "pde_diagnose", word="--data"),
    Input("diagnose-label", DG.replace("granted", "grant"), word="granted"),
    Input("diagnose-embeddings", DG + " --embeddings loans.csv", word="loans.csv"),
    Input("diagnose-embeddings-absent", DG + " --embeddings e.npy", word="e.npy"),
    Input("diagnose-both", DG + " --embeddings e.npy --model mlp", word="embeddings"),
    Input("diagnose-weights", DG + " --weights w.pth", word="weights"),
    Input("diagnose-figure", DG + " --figure f.bmp", word="bmp"),
    Input("diagnose-max-examples", DG + " --max-examples 0", word="max.examples"),
    Input("diagnose-seed", DG + " --seed 100000000000000000000", word="seed"),
    Input(
        "diagnose-no-columns",
        "pde_diagnose --data t.csv --label granted",
        "ok",
        "no attribute could be examined",
        make.written(
            "t.csv", "granted,x\n" + "".join(f"{'yes' if i % 2 else 'no'},{i / 7}\n" for i in range(99))
        ),
    ),
)


# What the commands of the paper, the theory and the published data are given.
OTHERS = (
    Input("reproduce-nothing", "pde_reproduce", word="label"),
    Input("reproduce-label", "pde_reproduce tab:stages", word="tab:stage"),
    Input("reproduce-no-data", "pde_reproduce tab:stage", word="--data"),
    Input("reproduce-seeds", RR + " --seeds 0", word="seeds"),
    Input("reproduce-scale-0", RR + " --scale 0", word="scale"),
    Input("reproduce-scale-nan", RR + " --scale nan", word="scale"),
    Input("reproduce-passes", RR + " --passes -1", word="passes"),
    Input("reproduce-like", RR + " --like birds", word="birds"),
    Input("reproduce-lrs", RR + " --lrs 0", word="lr"),
    Input("reproduce-jobs", RR + " --jobs 2", word="jobs"),
    Input("reproduce-pictures", RR.replace("tab:stage", "tab:aug"), word="pictures"),
    Input("reproduce-synthetic-data", "pde_reproduce tab:synthetic --data loans.csv", word="data"),
    Input("reproduce-preset", "pde_reproduce tab:synthetic --preset best", word="preset"),
    Input("reproduce-set", "pde_reproduce tab:synthetic --set sigma=1", word="sigma"),
    Input(
        "reproduce-records",
        "pde_reproduce --list --records r",
        word="record.json",
        make=make.written("r/record.json", "{]"),
    ),
    Input("synthetic-method", "pde_synthetic --methods ERM3 --jobs 1", word="ERM3"),
    Input("synthetic-preset", "pde_synthetic --preset best", word="preset"),
    Input("synthetic-case", "pde_synthetic --case 3", word="case"),
    Input("synthetic-set-name", "pde_synthetic --set sigma=1", word="sigma"),
    Input("synthetic-set-nan", "pde_synthetic --set sigma_p=nan --seeds 1 --jobs 1", word="sigma_p"),
    Input("synthetic-set-form", "pde_synthetic --set sigma_p", word="sigma_p"),
    Input("synthetic-seeds", "pde_synthetic --seeds 0", word="seeds"),
    Input("synthetic-jobs", "pde_synthetic --jobs 0", word="jobs"),
    Input("synthetic-out", "pde_synthetic --out loans.csv --jobs 1", word="loans.csv"),
    Input("theory-claim", "pde_theory --claims lemma:graad", word="lemma:grad"),
    Input("theory-jobs", "pde_theory --jobs 0", word="jobs"),
    Input("theory-json", "pde_theory --json loans.csv/x.json --claims lemma:grad", word="loans.csv"),
    Input("phase-jobs", "pde_phase --jobs 0", word="jobs"),
    Input("phase-out", "pde_phase --out loans.csv", word="loans.csv"),
    Input("bench-nothing", "pde_bench", word="synthetic"),
    Input("bench-repeats", "pde_bench expansion --repeats 0", word="repeats"),
    Input("bench-share", "pde_bench train --share 0", word="share"),
    Input("bench-data", "pde_bench train --data fake:birds", word="fake"),
    Input("data-set", "pde_data check waterbird", word="waterbirds"),
    Input("data-check-absent", "pde_data check waterbirds --root .", status=1),
    Input("data-fetch-absent-archive", "pde_data fetch waterbirds --from none.tar.gz", word="none.tar.gz"),
    Input(
        "data-fetch-bad-archive",
        "pde_data fetch waterbirds --from a.tar.gz",
        word="a.tar.gz",
        make=make.written("a.tar.gz", b"\x1f\x8b\x08\x00123"),
    ),
    Input("data-write-alone", "pde_data check waterbirds --write w.csv", word="known-noise"),
    Input("data-all-of-fetch", "pde_data where waterbirds --all", word="--all"),
)


CASES = (
    *TABLES,
    *VALUES,
    *ARRAY_FILES,
    *PICTURE_FOLDERS,
    *settings(),
    *OPTIONS,
    *READERS,
    *FORBIDDEN,
    *COMPARISONS,
    *OTHERS,
)
