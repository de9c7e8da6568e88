"""Bad input: every command refuses it in one line that says what to do, or takes it, as the table says."""

import os
import re
import shutil
import time
from pathlib import Path

from torture.commands import Command, all_commands
from torture.input_cases import CASES
from torture.input_data import Input
from torture.places import Judged, Place, reference, scratch
from torture.reading import JUDGED_BAD, Answer, broken, last_lines, refusal_fault
from torture.server import Bounds

RUNS = ("train-erm", "train-pde", "train-jtt", "train-rarely", "compare", "reproduce-runs", "train-seeds")


def run_case(place: Place, name: str) -> Judged:
    """Make the input, give the command, and judge what it says."""
    case, begin = {case.name: case for case in CASES}[name], time.monotonic()
    with scratch() as here:
        if case.unreadable and os.getuid():
            return Judged(f"input:{name}", True, "not possible", "only root can be nobody", 0)
        lay_out(place, case, here / "cwd")
        if case.printed_to:
            (here / "log").mkdir()
            os.symlink(case.printed_to, here / "log" / "stdout")
        words = ["" if word == "''" else word for word in case.line.split()]
        bounds = Bounds(nobody=bool(case.unreadable))
        answer = Answer.of(place.finish(words, here, "log", bounds))
    verdict, detail = verdict_of(case, answer)
    ok = verdict == case.expect
    seconds = round(time.monotonic() - begin, 1)
    return Judged(f"input:{name}", ok, verdict, "" if ok else detail, 1, seconds)


def lay_out(place: Place, case: Input, folder: Path):
    """Put the material, the runs that a case names, and its own files into a folder."""
    for path in place.material.glob("*.*"):
        if case.unreadable:
            shutil.copy(path, folder / path.name)
        else:
            os.symlink(path, folder / path.name)
    if case.pictures:
        shutil.copytree(place.material / "birds", folder / "p")
    for run in RUNS:
        if re.search(rf"\b{run}/", case.line):
            source = reference(place, all_commands()[run]) / "cwd"
            shutil.copytree(source, folder / run)
    if case.make:
        case.make(folder)
    if case.unreadable:
        forbid(folder, case.unreadable)


def forbid(folder: Path, name: str):
    """Let all read and write below a folder, but not one file; '.': nothing may be written in the folder."""
    for path in (folder.parent, folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    (folder / name).chmod(0o555 if name == "." else 0)


def verdict_of(case: Input, answer: Answer) -> tuple[str, str]:
    """The verdict, as `expect` has it where all is well, and what is wrong."""
    if broken(answer):
        return broken(answer), last_lines(answer.stderr)
    if case.never and re.search(case.never, answer.stdout + answer.stderr):
        return "printed", f"{case.never!r} is in what it printed"
    if answer.status == 0:
        if case.expect == "ok" and case.word and not re.search(case.word, answer.stdout + answer.stderr):
            return "unsaid", f"{case.word!r} is not in what it printed"
        return "ok", f"accepted; {case.word!r} was to be refused: {last_lines(answer.stdout)}"
    if case.expect == "ok":
        return "refused", last_lines(answer.stderr)
    if answer.status != case.status:
        return "status", f"status {answer.status} instead of {case.status}: {last_lines(answer.stderr)}"
    usage = answer.stderr.startswith("usage: ")
    judged = usage or case.status == JUDGED_BAD  # no message, or one of the parser
    fault = "" if judged else refusal_fault(answer, remedy=False, status=case.status)
    if not fault and case.word and not re.search(case.word, answer.stderr, re.IGNORECASE):
        fault = f"{case.word!r} is not in the message"
    if fault:
        return "wording", f"{fault}: {last_lines(answer.stderr)}"
    return "refused", ""


def plan(place: Place, count: int, only: str = "") -> list[str]:
    """So many cases by name, spread over the table."""
    names = [case.name for case in CASES if only in case.name or only in case.line]
    if count >= len(names):
        return [f"input:{name}" for name in names]
    return [f"input:{names[i * len(names) // count]}" for i in range(count)]


def commands_of(cases: list[str]) -> list[Command]:
    """The commands whose uninterrupted runs some cases need."""
    lines = {case.name: case.line for case in CASES}
    asked = " ".join(lines[case.partition(":")[2]] for case in cases)
    return [all_commands()[name] for name in RUNS if f"{name}/" in asked]
