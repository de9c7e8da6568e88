"""Damage: a file of a run is changed, and every command that reads it must refuse or print what is true."""

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from torture.commands import READERS, Command, all_commands
from torture.equality import files_of
from torture.places import Judged, Place, reference, scratch
from torture.reading import JUDGED_BAD, Answer, copy_tree, judge, last_lines, tree_fault
from torture.server import start

WELL = ("true", "said", "refused")
BLOCK = 4096


# ---- what is damaged ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Exhibit:
    """The folder of a command, finished, or killed when a file had appeared."""

    name: str
    command: str
    until: str = ""  # killed when this file was there; '': finished
    only: tuple[str, ...] = ()  # ends of the names of files that are damaged; (): all


UNFINISHED = (
    Exhibit("unfinished-erm", "train-erm", "out/checkpoint.safetensors"),
    Exhibit("unfinished-pde", "train-pde", "out/checkpoint.safetensors"),
    Exhibit("unfinished-known", "train-known", "out/checkpoint.safetensors"),
    Exhibit("unfinished-jtt-first", "train-jtt", "out/first/checkpoint.safetensors"),
    Exhibit("unfinished-jtt-second", "train-jtt", "out/checkpoint.safetensors"),
    Exhibit("unfinished-eiil", "train-eiil", "out/checkpoint.safetensors"),
    Exhibit("unfinished-seeds", "train-seeds", "out/seed1/checkpoint.safetensors"),
    Exhibit("unfinished-compare", "compare", "out/pde/lr=0.01-seed0/record.json"),
    Exhibit("unfinished-reproduce", "reproduce-runs", "out/runs/pde.json"),
)
FINISHED = (
    *("train-erm", "train-pde", "train-jtt", "train-lff", "train-dfr", "train-seeds", "train-pixels"),
    *("train-known", "train-inferred", "compare-known"),
    *(
        "train-rarely",
        "train-pictures",
        "compare",
        "reproduce-runs",
        "reproduce-synthetic",
        "reproduce-counts",
    ),
    *("synthetic", "theory", "diagnose"),
)
# Files that are written and never read: what can happen to them is a folder in their place.
WRITTEN = (".png", ".html", ".tex", ".md", "split.csv", "figures.json", "rows.json", "label.json")


def exhibits() -> dict[str, Exhibit]:
    """All exhibits by name."""
    found = [Exhibit(name, name) for name in FINISHED]
    return {exhibit.name: exhibit for exhibit in (*found, *UNFINISHED)}


def exhibit_folder(place: Place, exhibit: Exhibit) -> Path:
    """The folder of an exhibit with a folder cwd in it; made where it is missing."""
    command = all_commands()[exhibit.command]
    finished = reference(place, command)
    if not exhibit.until:
        return finished
    folder = place.runs / exhibit.name
    if (folder / "complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "cwd").mkdir(parents=True)
    program, *argv = place.argv(command.words)
    process = start(program, argv, folder / "cwd", folder / "log")
    while process.poll() is None and not (folder / "cwd" / exhibit.until).exists():
        time.sleep(0.002)
    if process.status is not None:
        raise ValueError(f"{exhibit.name}: the command ended before {exhibit.until} was seen")
    process.kill()
    for path in (folder / "cwd").rglob(".*-*.*"):
        if path.is_file():
            path.unlink()  # half-written; the next command would remove it
    (folder / "complete").touch()
    return folder


def targets(place: Place, exhibit: Exhibit) -> list[str]:
    """The files of an exhibit that are damaged."""
    names = files_of(exhibit_folder(place, exhibit) / "cwd")
    return [name for name in names if not name.startswith("other")]


# ---- how it is damaged -------------------------------------------------------------------------


def flip(path: Path, rng, other: Path | None):
    """Another value for one byte."""
    content = bytearray(path.read_bytes())
    if content:
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def cut(path: Path, rng, other: Path | None):
    """A part of the file alone."""
    content = path.read_bytes()
    path.write_bytes(content[: int(rng.integers(max(1, len(content))))])


def zero(path: Path, rng, other: Path | None):
    """A block of zeros."""
    content = bytearray(path.read_bytes())
    at = int(rng.integers(max(1, len(content) - BLOCK + 1)))
    end = min(at + BLOCK, len(content))
    content[at:end] = bytes(end - at)
    path.write_bytes(content)


def digit(path: Path, rng, other: Path | None):
    """Another digit for one of the digits of a text."""
    content = bytearray(path.read_bytes())
    places = np.flatnonzero([48 <= byte <= 57 for byte in content])
    if len(places):
        at = rng.choice(places)
        content[at] = 48 + (content[at] - 48 + int(rng.integers(1, 10))) % 10
    path.write_bytes(content)


def empty(path: Path, rng, other: Path | None):
    """Nothing in the file."""
    path.write_bytes(b"")


def folder(path: Path, rng, other: Path | None):
    """A folder in place of the file."""
    path.unlink()
    path.mkdir()


def swap(path: Path, rng, other: Path | None):
    """The file of that name of another run."""
    if other is None:
        return flip(path, rng, other)
    shutil.copyfile(other, path)


def key(path: Path, rng, other: Path | None):
    """One key less in a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    holders = list(dictionaries(content))
    if holders:
        holder = holders[rng.integers(len(holders))]
        del holder[list(holder)[rng.integers(len(holder))]]
    path.write_text(json.dumps(content), encoding="utf-8")


def gone(path: Path, rng, other: Path | None):
    """No file."""
    path.unlink()


DAMAGE = {f.__name__: f for f in (flip, cut, zero, digit, empty, folder, swap, key, gone)}
TEXTS = (".json", ".csv", ".md")


def dictionaries(value):
    """All dictionaries in a JSON value that have keys, itself first."""
    if isinstance(value, dict) and value:
        yield value
    items = value.values() if isinstance(value, dict) else value
    if isinstance(value, (dict, list)):
        for item in items:
            yield from dictionaries(item)


def kinds_for(name: str) -> list[str]:
    """The kinds of damage that a file of this name can have."""
    if name.endswith(WRITTEN):
        return ["folder"]
    text = name.endswith(TEXTS)
    kinds = ["flip", "cut", "zero", "empty", "folder", "swap", "gone"]
    return kinds + ["digit"] * text + ["key"] * name.endswith(".json")


OTHERS = {"train-erm": "train-resampling", "train-jtt": "train-eiil", "compare": "compare-all"}
SOURCES = "train-erm", "train-pde", "train-jtt", "compare"


def other_file(place: Place, exhibit: Exhibit, name: str) -> Path | None:
    """A file of that name in a run of another kind; None where there is none."""
    for command in (OTHERS.get(exhibit.command, "train-erm"), *SOURCES):
        path = place.runs / command / "cwd" / name
        if command != exhibit.command and path.is_file():
            return path
    similar = sorted((place.runs / exhibit.command / "cwd").rglob(Path(name).name))
    return next((path for path in similar if not path.as_posix().endswith("/" + name)), None)


# ---- the case ----------------------------------------------------------------------------------


def lines_of(command: Command, exhibit: Exhibit) -> dict[str, list[str]]:
    """The commands that read an exhibit, by name."""
    readers = command.readers if not exhibit.until else ("again",)
    return {name: command.words if name == "again" else READERS[name].split() for name in readers}


def wanted_answer(place: Place, exhibit: Exhibit, reader: str, words: list[str]) -> tuple[Answer, Path]:
    """What a command says of the exhibit as it is, and the files that it leaves; asked once."""
    source = exhibit_folder(place, exhibit)
    folder = place.runs / f"{exhibit.name}@{reader}"
    if not (folder / "answer.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        copy_tree(source / "cwd", folder / "cwd")
        answer = Answer.of(place.finish(words, folder))
        if answer.status != 0:
            raise ValueError(f"{reader} of {exhibit.name}, undamaged: {last_lines(answer.stderr)}")
        answer.write(folder / "answer.json")
    return Answer.read(folder / "answer.json"), folder / "cwd"


def run_case(place: Place, name: str, file: str, kind: str, number: str) -> Judged:
    """Damage one file, and ask every command that reads it."""
    exhibit = exhibits()[name]
    case = f"damage:{name}:{file}:{kind}:{number}"
    begin, source = time.monotonic(), exhibit_folder(place, exhibit)
    readers = lines_of(all_commands()[exhibit.command], exhibit)
    with scratch() as here:
        copy_tree(source / "cwd", here / "damaged")
        DAMAGE[kind](here / "damaged" / file, place.rng(case), other_file(place, exhibit, file))
        found = {}
        for reader, words in readers.items():
            answer, tree = wanted_answer(place, exhibit, reader, words)
            copy_tree(here / "damaged", here / "cwd")
            first = (source / "log" / "stdout").read_text(encoding="utf-8") if reader == "again" else ""
            found[reader] = ask(place, here, words, answer, tree, file, first)
    faults = [
        f"{reader}: {verdict}: {detail}" for reader, (verdict, detail) in found.items() if verdict not in WELL
    ]
    order = ("silent", "traceback", "crash", "hang", "files", "wording", "refused", "said", "true")
    verdict = min((verdict for verdict, _ in found.values()), key=order.index)
    seconds = round(time.monotonic() - begin, 1)
    return Judged(case, not faults, verdict, "; ".join(faults), len(found), seconds)


def ask(
    place: Place, here: Path, words: list[str], wanted: Answer, tree: Path, file: str, first: str
) -> tuple[str, str]:
    """Verdict and detail of one command on the damaged folder."""
    answer = Answer.of(place.finish(words, here))
    names = (file, Path(file).name, f"{str(Path(file).parent)!r} holds another run")
    verdict, detail = judge(answer, wanted, names, first)
    if verdict in ("true", "said"):
        before, left_out = here / "damaged" / file, answer.status == JUDGED_BAD
        fault = tree_fault(here / "cwd", tree, file, before, verdict == "said", left_out)
        if fault:
            return "files", f"{fault}; it printed: {last_lines(answer.stdout)}"
    return verdict, detail


def plan(place: Place, count: int, only: str = "") -> list[str]:
    """So many cases by name: all places once, in an order that the seed decides, then all of them again."""
    places = []
    for name, exhibit in exhibits().items():
        if only in name:
            files = targets(place, exhibit)
            places += [f"damage:{name}:{file}:{kind}" for file in files for kind in kinds_for(file)]
    order = place.rng("damage").permutation(len(places))
    if not len(places):
        return []
    return [f"{places[order[i % len(places)]]}:{i // len(places)}" for i in range(count)]


def commands_of(only: str = "") -> list[Command]:
    """The commands whose uninterrupted runs the exhibits need, and those whose files are put into them."""
    names = [exhibit.command for name, exhibit in exhibits().items() if only in name]
    return [all_commands()[name] for name in dict.fromkeys([*names, *OTHERS.values(), *SOURCES])]
