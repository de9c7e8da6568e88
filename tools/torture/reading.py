"""What a command says of its files, and whether that is a refusal, the truth, or something else."""

import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from torture.equality import differences, steady
from torture.server import Process

JUDGED_BAD = 1  # exit statuses
REFUSED = 2
ENVIRONMENT = 3
PAGES = (
    *(f"comparison.{suffix}" for suffix in ("md", "html", "tex", "png")),
    *(f"comparison-{table}.csv" for table in ("methods", "groups", "runs", "cost", "conditions")),
)
SAYS = re.compile(r"^pde_\w+: ", re.MULTILINE)
# Every message ends with what to do; a remedy has one of these words.
WORDS = """
    name give train delete remove restore make leave choose use take write wait mend drop add put lower
    install move copy download again check free anew run call must allowed needs
"""
REMEDY = re.compile(rf"\b({'|'.join(WORDS.split())})\b", re.IGNORECASE)
BARS = re.compile(r"^.*(it/s|s/it|\d+%\|).*$", re.MULTILINE)  # of progress, on the standard error
TIMES = re.compile(r"^[\d.]+ s on \d+ process(es)?\..*$", re.MULTILINE)  # how long it took


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    status: int | None
    stdout: str
    stderr: str

    @classmethod
    def of(cls, process: Process) -> "Answer":
        stderr = process.text("stderr").replace("\r", "\n")
        return cls(process.status, process.text("stdout"), TIMES.sub("", BARS.sub("", stderr)).strip())

    @classmethod
    def read(cls, path: Path) -> "Answer":
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path):
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")


def broken(answer: Answer) -> str:
    """The word for an answer that is never right; '' for none."""
    if answer.status is None:
        return "hang"
    if "Traceback (most recent call last)" in answer.stderr:
        return "traceback"
    if answer.status < 0:
        return "crash"
    return ""


def refusal_fault(
    answer: Answer, names: tuple[str, ...] = (), remedy: bool = True, status: int = REFUSED
) -> str:
    """What is wrong with a refusal: its status, its length, no file named, no remedy; '' for nothing."""
    if answer.status != status:
        return f"status {answer.status} instead of {status}"
    if len(SAYS.findall(answer.stderr)) != 1:
        return "not one message"
    message = answer.stderr[SAYS.search(answer.stderr).start() :]
    if message.count("\n") > 8:
        return f"a message of {message.count(chr(10)) + 1} lines"
    if names and not any(name in message for name in names):
        return f"it does not name {names[0]}"
    if remedy and not REMEDY.search(message):
        return "it names no remedy"
    return ""


def plain_lines(text: str) -> list:
    """The lines of what was printed; JSON as its steady value."""
    try:
        return [steady(json.loads(text))]
    except ValueError:
        return text.splitlines()


def judge(answer: Answer, wanted: Answer, names: tuple[str, ...], first: str = "") -> tuple[str, str]:
    """Verdict and detail of a command that read a damaged file; `names`: of the file; `first`: what the
    command printed when it made the files.

    `refused` and `true` are right; so is `said`, where a line names the file or what was done, and no other
    line is new, but for a method that a comparison leaves out; its status may be 1 then. `silent`: other
    lines than of the file as it was, and no word of it.
    """
    fault = broken(answer)
    if fault:
        return fault, last_lines(answer.stderr)
    listed = answer.status == JUDGED_BAD and wanted.status == 0  # a comparison, without what cannot be used
    if answer.status != wanted.status and not listed:
        wording = refusal_fault(answer, names)
        return ("wording", f"{wording}: {last_lines(answer.stderr)}") if wording else ("refused", "")
    got, true = plain_lines(answer.stdout), plain_lines(wanted.stdout)
    known = [*true, *plain_lines(first)]
    new = [line for line in got if line not in known]
    lost = [line for line in true if line not in got]
    if not new and not any(map(has_figures, lost)) and not listed:
        return "true", ""
    notices = [line for line in [*new, *answer.stderr.splitlines()] if is_notice(line, names)]
    unexplained = [
        line
        for line, below in zip(new, [*new[1:], ""])
        if line not in notices and not (str(line).startswith("#") and below in notices)
    ]
    left_out = any("not run" in line and any(name in line for name in names) for line in notices)
    if notices and (left_out or not unexplained):
        return "said", notices[0][:200]
    return (
        "silent",
        f"printed {str((unexplained or ['nothing'])[0])[:160]!r} for {str((lost or ['nothing'])[0])[:160]!r}",
    )


def has_figures(line) -> bool:
    """Whether there are numbers in a line; JSON has some."""
    return not isinstance(line, str) or bool(re.search(r"\d", line))


def is_notice(line, names: tuple[str, ...]) -> bool:
    """Whether a line says that a file was damaged, and names it or what is done instead."""
    if not isinstance(line, str):
        return False
    return any(name in line for name in names) or bool(
        re.search("damaged|not shown|not run|built again", line)
    )


def last_lines(text: str, most: int = 300) -> str:
    """The end of a text, in a line."""
    return " | ".join(text.strip().splitlines()[-3:])[-most:]


def tree_fault(
    folder: Path, wanted: Path, damaged: str, before: Path, said: bool, left_out: bool = False
) -> str:
    """What a command that ended well left otherwise than it should have; '' for nothing.

    The damaged file may be as it was damaged, where the command does not read it. Where a method was
    `left_out`, its files may be missing, and the damaged run may still have its checkpoint.
    """
    lines = []
    pages = PAGES if said else ()  # they lack what was left out
    notes = ("notes",) if said else ()
    checkpoint = f"{Path(damaged).parent.as_posix()}/checkpoint.safetensors was left behind"
    for line in differences(folder, wanted, pages, notes):
        name, file = line.split(" ", 1)[0], folder / damaged
        untouched = name == damaged or name.startswith(damaged + "/")
        as_damaged = untouched and (not file.exists() or not before.exists() or unchanged(file, before))
        if not as_damaged and not (left_out and (line.endswith(" is missing") or line == checkpoint)):
            lines.append(line)
    return "; ".join(lines)


def unchanged(file: Path, before: Path) -> bool:
    """Whether a file or a folder is as it was."""
    if file.is_dir() or before.is_dir():
        return file.is_dir() and before.is_dir()
    return file.read_bytes() == before.read_bytes()


def copy_tree(source: Path, target: Path):
    """Copy a folder to a place where there is none."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
