"""Full disks: a command without room says so and leaves nothing half-written; with room, it ends well."""

import re
import time
from pathlib import Path

from torture.commands import Command, all_commands
from torture.equality import differences, files_of
from torture.places import Judged, Place, mount, reference, scratch, unmount
from torture.reading import ENVIRONMENT, JUDGED_BAD, PAGES, Answer, broken, last_lines, refusal_fault
from torture.server import Bounds

KINDS = ("tmpfs", "fsize")  # a small file system, or a limit on the size of each file
SMALLEST = 8 * 1024  # bytes
ROOM = 1 << 30
N_SIZES = 12
COMMANDS = (
    *("train-erm", "train-pde", "train-jtt", "train-pictures", "train-seeds", "compare"),
    *("reproduce-runs", "synthetic-figures", "theory", "diagnose", "report"),
)
HALF_WRITTEN = re.compile(r"(^|/)\.[^/]*-\d+\.[^/]*$")


def size_of(number: int, total: int, largest: int, kind: str) -> int:
    """The bytes that there are, growing with the number from the smallest to more than is needed."""
    most = 1.3 * (total if kind == "tmpfs" else largest)
    share = (number % N_SIZES) / (N_SIZES - 1)
    return int(SMALLEST * max(1.0, most / SMALLEST) ** share) // 4096 * 4096


def run_case(place: Place, name: str, kind: str, number: str) -> Judged:
    """Run a command with too little room, then with enough."""
    command = all_commands()[name]
    begin, folder = time.monotonic(), reference(place, command)
    sizes = [path.stat().st_size for path in files_of(folder / "cwd").values()]
    size = size_of(int(number), sum(sizes), max(sizes), kind)
    with scratch() as here:
        if kind == "tmpfs" and not mount(here / "cwd", size):
            return Judged(f"disk:{name}:{kind}:{number}", True, "not possible", "no right to mount", 0)
        try:
            verdict, faults = too_little(place, command, here, kind, size)
            faults += with_room(place, command, here, kind, folder)
        finally:
            if kind == "tmpfs":
                unmount(here / "cwd")
    detail = "; ".join(faults)
    seconds = round(time.monotonic() - begin, 1)
    return Judged(f"disk:{name}:{kind}:{number}", not faults, verdict, f"{size} bytes; {detail}", 1, seconds)


def too_little(place: Place, command: Command, here: Path, kind: str, size: int) -> tuple[str, list[str]]:
    """Verdict and faults of the command that has so many bytes."""
    bounds = Bounds(largest=size if kind == "fsize" else None)
    answer = Answer.of(place.finish(command.words, here, "log", bounds))
    left = [name for name in files_of(here / "cwd") if HALF_WRITTEN.search(name)]
    faults = [f"{name} was left half-written" for name in left]
    if broken(answer):
        return broken(answer), [*faults, f"{broken(answer)}: {last_lines(answer.stderr)}"]
    if answer.status == 0:
        return "enough", faults
    if answer.status == JUDGED_BAD and "cannot write" in answer.stdout:
        return "said", faults  # a comparison goes on, and lists what failed
    wording = refusal_fault(answer, status=ENVIRONMENT)
    if wording:
        return "wording", [*faults, f"{wording}: {last_lines(answer.stderr)}"]
    return "refused", faults


def with_room(place: Place, command: Command, here: Path, kind: str, folder: Path) -> list[str]:
    """What is wrong with the same command when there is room."""
    if kind == "tmpfs":
        mount(here / "cwd", ROOM, remount=True)
    process = place.finish(command.words, here, "again")
    if process.status != 0:
        return [f"with room it ends with {process.status}: {last_lines(process.text('stderr'))}"]
    found = differences(here / "cwd", folder / "cwd", command.ignore)
    if any(line.endswith(".json differs") for line in found):
        # a first stage that no run could share, as that run had failed, was trained by itself: it costs more
        found = differences(here / "cwd", folder / "cwd", (*command.ignore, *PAGES), ("part_of",))
    return [f"with room: {line}" for line in found]


def plan(place: Place, count: int, only: str = "") -> list[str]:
    """So many cases by name: sizes in turn, for every command and kind, spread over the sizes first."""
    pairs = [f"disk:{name}:{kind}" for name in COMMANDS if only in name for kind in KINDS]
    cases = [f"{pair}:{(5 * i + j) % N_SIZES}" for i in range(N_SIZES) for j, pair in enumerate(pairs)]
    return list(dict.fromkeys(cases))[:count]


def commands_of(cases: list[str]) -> list[Command]:
    """The commands whose uninterrupted runs some cases need."""
    return [all_commands()[name] for name in dict.fromkeys(case.split(":")[1] for case in cases)]
