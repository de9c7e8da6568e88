"""Kills: a command is killed some times, given again, and must end with the files of an uninterrupted run."""

import os
import re
import shutil
import signal
import time
from pathlib import Path

import numpy as np

from torture.commands import Command, all_commands
from torture.equality import differences
from torture.places import Judged, Place, reference, reference_seconds, scratch
from torture.server import Process, start

STRIKES = 4  # of a round
HOW = ("random", "aimed", "SIGTERM", "SIGINT", "twice")
SHARES = (0.62, 0.24, 0.05, 0.05, 0.04)
EVENTS = (
    ("temporary", re.compile(r"(^|/)\.[^/]*-\d+\.[^/]*$")),
    ("checkpoint", re.compile(r"checkpoint\.safetensors$")),
    ("model", re.compile(r"model\.safetensors$")),
    ("record", re.compile(r"record\.json$")),
    ("config", re.compile(r"config\.json$")),
    ("any", re.compile("")),
)  # what appears, and then the kill
AIMED_AT = 4  # at most so many events are awaited before the kill
ENDS_WITHIN = 60  # seconds from a polite signal to the end
STATUSES = {signal.SIGTERM: (130, -15, 0), signal.SIGINT: (130, 0)}


def case_names(only: str = "") -> list[str]:
    """Commands that are killed, as the middle of a case's name."""
    return [name for name, command in all_commands().items() if command.long and only in name]


def strike_kinds(rng: np.random.Generator) -> list[str]:
    """How a round is struck, one word for each strike."""
    return list(rng.choice(HOW, STRIKES, p=SHARES))


def run_case(place: Place, name: str, number: str) -> Judged:
    """One round: kills, the same command again, and a comparison with the uninterrupted run."""
    command = all_commands()[name]
    case = f"kills:{name}:{number}"
    begin, rng = time.monotonic(), place.rng(case)
    folder = reference(place, command)
    expected = reference_seconds(folder)
    with scratch() as here:
        struck, faults = 0, []
        said = []
        for kind in strike_kinds(rng):
            hit, fault, what = strike(place, command, here, kind, rng, expected, folder)
            struck += hit
            said.append(what)
            faults += fault
        process = place.finish(command.words, here)
        if process.status != 0:
            faults.append(f"given again it ends with {process.status}: {process.text('stderr')[-400:]}")
        else:
            faults += differences(here / "cwd", folder / "cwd", command.ignore)
    detail = "; ".join([*faults, f"strikes: {', '.join(said)}"])
    verdict = "unequal" if faults else "equal"
    return Judged(case, not faults, verdict, detail, struck, round(time.monotonic() - begin, 1))


def strike(place, command, here: Path, kind: str, rng, expected: float, folder: Path):
    """Start the command and end it; whether that struck, what is wrong, and how it was done.

    Where the command has ended first, its files are compared, removed, and the next attempt is earlier.
    """
    program, *argv = place.argv(command.words)
    share, faults = rng.random(), []
    event, pattern = EVENTS[rng.integers(len(EVENTS))]
    count = int(rng.integers(1, AIMED_AT + 1))
    for attempt in range(4):
        process = start(program, argv, here / "cwd", here / "struck")
        delay = share * expected * 0.6**attempt
        if kind == "aimed" and attempt == 0:
            what = f"{event} {count}"
            await_event(process, here / "cwd", pattern, count)
        else:
            what = f"{kind} {delay:.2f} s"
            await_time(process, delay)
        faults += end_by(process, kind)
        if process.status != 0:
            return 1, faults, what
        faults += [
            f"uninterrupted: {line}" for line in differences(here / "cwd", folder / "cwd", command.ignore)
        ]
        shutil.rmtree(here / "cwd")
        (here / "cwd").mkdir()
    return 0, faults, f"{what} too late"


def await_time(process: Process, delay: float):
    """Sleep so many seconds, or until the process has ended."""
    end = time.monotonic() + delay
    while process.poll() is None and time.monotonic() < end:
        time.sleep(min(0.01, max(0.0, end - time.monotonic())))


def await_event(process: Process, folder: Path, pattern: re.Pattern, count: int):
    """Wait until so many new files of a kind have appeared, or the process has ended."""
    seen = set(names_below(folder))
    while process.poll() is None:
        new = {name for name in names_below(folder) if name not in seen and pattern.search(name)}
        seen |= new
        count -= len(new)
        if count <= 0:
            return
        time.sleep(0.001)


def names_below(folder: Path) -> list[str]:
    """The paths of all files below a folder that others are writing to."""
    found = []
    for top, _, names in os.walk(folder):
        found += [os.path.join(top, name) for name in names]
    return found


def end_by(process: Process, kind: str) -> list[str]:
    """Send what a kind of strike sends, and wait for the end; what is wrong with it."""
    if kind in ("random", "aimed"):
        process.kill()
        return []
    which = signal.SIGTERM if kind == "SIGTERM" else signal.SIGINT
    while process.poll() is None and not process.text("stdout"):
        time.sleep(0.01)  # before its first word it has not begun
    process.kill(which)
    if kind == "twice":
        time.sleep(0.05)
        process.kill(which)
    end = time.monotonic() + ENDS_WITHIN
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    if process.poll() is None:
        process.kill()
        return [f"{kind} did not end it in {ENDS_WITHIN} s"]
    faults = []
    if "Traceback" in process.text("stderr"):
        faults.append(f"traceback after {kind}: {process.text('stderr')[-300:]}")
    elif process.status not in STATUSES[which]:
        faults.append(f"status {process.status} after {kind}")
    return faults


def plan(place: Place, count: int, only: str = "") -> list[str]:
    """So many strikes as names of rounds: every command in turn, in an order that the seed decides."""
    names, rounds = case_names(only), -(-count // STRIKES)
    names = list(place.rng("kills").permutation(names))
    return [f"kills:{names[i % len(names)]}:{i // len(names)}" for i in range(rounds) if names]


def commands_of(cases: list[str]) -> list[Command]:
    """The commands whose uninterrupted runs some cases need."""
    return [all_commands()[name] for name in dict.fromkeys(case.split(":")[1] for case in cases)]
