"""The commands that are tried, as data. A new one is a line here; new methods come by themselves.

In an argv, {data} stands for the folder of `torture.material`, and {runs} for the folder of the references,
where the folder of each uninterrupted command lies under its name. A command runs in an empty folder.
"""

import shlex
from dataclasses import dataclass

LOANS = "--data {data}/loans.csv --label granted --attribute district"
BIRDS = "--data {data}/birds --label bird --attribute place --model small_cnn --size 16"
PIXELS = "--data {data}/pixels.npz --label y --attribute place"
ALWAYS = "--checkpoint-every 0"
SYNTHETIC = "--seeds 1 --jobs 1"
CLAIMS = "--claims lemma:grad 'lemma:tensor power update' sigma_0"


@dataclass(frozen=True)
class Command:
    """A command whose files must be equal at the end, whatever happened on the way."""

    name: str
    line: str  # program and argv
    readers: tuple[str, ...] = ()  # names in READERS: what is asked of its files; 'again' is the line itself
    ignore: tuple[str, ...] = ()  # names of files that may differ
    long: bool = True  # whether it takes long enough to be killed, and writes more than one file
    needs: tuple[str, ...] = ()  # names of commands whose folders it reads

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line)


RUN = ("again", "eval", "report", "mistakes")
READERS = {
    "eval": "pde_eval out --json -",
    "report": "pde_report out --no-mistakes",
    "mistakes": "pde_report out --split val",
    "first": f"pde_train {LOANS} --method jtt --epochs 12 --first out/first --out other {ALWAYS}",
    "seed0": "pde_report out/seed0 --no-mistakes",
    "both": "pde_report out/seed0 out/seed1 --no-mistakes",
    "trials": "pde_report out/erm/lr=0.01-seed0 out/pde/lr=0.01-seed0 --no-mistakes",
    "list": "pde_reproduce --list --records out",
    "cached": f"pde_train {BIRDS} --method erm --epochs 3 --cache cache --out other",
    "cached-eval": "pde_eval out --json - --cache cache",
    "cached-report": "pde_report out --cache cache --attention 0",
}


def train_command(method: str, settings: tuple[str, ...]) -> Command:
    """Training by a method, whose settings are these."""
    epochs = " --epochs 12" if "epochs" in settings else ""
    line = f"pde_train {LOANS} --method {method}{epochs} {ALWAYS} --out out --json figures.json"
    return Command(f"train-{method}", line, RUN)


OTHERS = (
    Command(
        "train-known",
        f"pde_train {LOANS} --attribute-known 150 --method pde --epochs 8 {ALWAYS} --out out",
        RUN,
    ),
    Command(
        "train-known-seeds",
        f"pde_train {LOANS} --attribute-known val --method jtt --epochs 4 --seeds 2 {ALWAYS} --out out",
        ("again", "seed0", "both"),
    ),
    Command(
        "train-inferred",
        f"pde_train {LOANS} --groups spare --method group_dro --epochs 8 {ALWAYS} --out out",
        RUN,
    ),
    Command(
        "train-rarely",
        f"pde_train {LOANS} --method jtt --epochs 12 --checkpoint-every 30 --out out",
        (*RUN, "first"),
    ),
    Command(
        "train-seeds",
        f"pde_train {LOANS} --method pde --epochs 8 --seeds 2 {ALWAYS} --out out --json figures.json",
        ("again", "seed0", "both"),
    ),
    Command(
        "train-pixels",
        f"pde_train {PIXELS} --model small_cnn --method group_dro --epochs 4 {ALWAYS} --out out",
        RUN,
    ),
    Command(
        "train-pictures",
        f"pde_train {BIRDS} --method pde --epochs 6 --cache cache {ALWAYS} --out out",
        ("again", "cached", "cached-eval", "cached-report"),
    ),
    Command(
        "compare",
        f"pde_compare {LOANS} --methods erm pde jtt --seeds 2 --tries 2 --budget 2 --out out",
        ("again", "trials"),
    ),
    Command(
        "compare-known",
        f"pde_compare {LOANS} --attribute-known 150 --methods erm pde --seeds 1 --tries 1 --budget 1 "
        "--out out",
        ("again",),
    ),
    Command(
        "compare-all",
        f"pde_compare {LOANS} --seeds 1 --tries 1 --budget 1 --out out",
        (),
    ),
    Command(
        "reproduce-runs",
        f"pde_reproduce tab:stage {LOANS} --seeds 1 --scale 0.02 --passes 2 --out out --json label.json",
        ("again", "list"),
    ),
    Command(
        "reproduce-synthetic",
        f"pde_reproduce tab:synthetic {SYNTHETIC} --out out --json label.json --markdown label.md",
        ("again", "list"),
    ),
    Command(
        "reproduce-counts", f"pde_reproduce tab:app-datanum {LOANS} --out out", ("again", "list"), long=False
    ),
    Command(
        "synthetic",
        f"pde_synthetic {SYNTHETIC} --methods PDE --no-figures --out out --json rows.json",
        ("again",),
    ),
    Command("synthetic-figures", f"pde_synthetic {SYNTHETIC} --out out --json rows.json", ()),
    Command("theory", f"pde_theory --jobs 1 {CLAIMS} --json theory.json", ("again",)),
    Command("phase", "pde_phase --quick --jobs 1 --out out", ("again",)),
    Command("diagnose", f"pde_diagnose {LOANS} --json diagnosis.json --figure diagnosis.png", ("again",)),
    Command("diagnose-columns", "pde_diagnose --data {data}/loans.csv --label granted --json diagnosis.json"),
    Command(
        "report",
        "pde_report {runs}/train-pde/cwd/out --out report.html",
        long=False,
        needs=("train-pde",),
    ),
    Command(
        "eval",
        "pde_eval {runs}/train-erm/cwd/out --json figures.json",
        long=False,
        needs=("train-erm",),
    ),
)


def all_commands() -> dict[str, Command]:
    """Every command by name, those of the methods of the registry first."""
    from pde_nb.methods.registry import METHODS

    methods = [train_command(name, tuple(cls.setting_names())) for name, cls in METHODS.items()]
    return {command.name: command for command in (*methods, *OTHERS)}
