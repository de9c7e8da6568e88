"""Where the suite works: the material, the uninterrupted runs, the log, and a folder for each case."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from torture.commands import Command, all_commands
from torture.server import ROOT, Bounds, Process, finish

SHARED_MEMORY = Path("/dev/shm")  # where files cost no disk time


@dataclass(frozen=True)
class Judged:
    """What a case came to."""

    id: str
    ok: bool
    verdict: str  # a word: equal, refused, traceback, silent, …
    detail: str = ""  # what is wrong, or was said
    tried: int = 1  # kills that struck, or readers that were asked
    seconds: float = 0.0


@dataclass(frozen=True)
class Place:
    """The folders of the suite, and what it was asked."""

    work: Path
    code: str  # digest of what the runs come from: references of other code are not used
    suite: str  # digest of code and suite: judgements of another suite are not used
    seed: int
    revision: str  # of the checkout, with a + when it has local changes

    @property
    def material(self) -> Path:
        return self.work / "data"

    @property
    def runs(self) -> Path:
        return self.work / f"runs-{self.code}"

    @property
    def log(self) -> Path:
        return self.work / f"log-{self.suite}-seed{self.seed}.jsonl"

    def rng(self, name: str) -> np.random.Generator:
        """Random numbers of a case: the same for the same seed and name."""
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def argv(self, words: list[str]) -> list[str]:
        """Words of a command with the folders put in."""
        return [word.format(data=self.material, runs=self.runs) if "{" in word else word for word in words]

    def finish(self, words: list[str], folder: Path, name: str = "log", bounds=Bounds()) -> Process:
        """Run a command to its end in `folder`/cwd; what it prints goes to `folder`/`name`."""
        program, *argv = self.argv(words)
        return finish(program, argv, folder / "cwd", folder / name, bounds)


def place_at(work: Path, seed: int) -> Place:
    """The place below a folder, for the code as it is now."""
    suite = ROOT / "tools" / "torture"
    makers = [suite / f"{name}.py" for name in ("commands", "material", "server")]
    library = sorted((ROOT / "pde_nb").rglob("*.py"))
    code = digest([*library, *makers])
    whole = digest([*library, *sorted(suite.glob("*.py"))])
    return Place(work.resolve(), code, whole, seed, revision())


def digest(files: list[Path]) -> str:
    """A digest of what files hold."""
    h = hashlib.sha256()
    for path in files:
        h.update(path.read_bytes())
    return h.hexdigest()[:12]


def revision() -> str:
    """The revision of the checkout; to be asked before `torture.server.prepare`."""
    from pde_nb.core.files import surroundings

    return surroundings()["revision"] or "unknown"


@contextlib.contextmanager
def scratch():
    """A folder with a folder cwd in it, removed at the end."""
    where = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="torture-", dir=where))
    try:
        (folder / "cwd").mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---- uninterrupted runs ------------------------------------------------------------------------


def reference(place: Place, command: Command) -> Path:
    """The folder of the uninterrupted run of a command: cwd, log, seconds.json. Made where it is missing."""
    folder = place.runs / command.name
    if (folder / "seconds.json").exists():
        return folder
    for name in command.needs:
        reference(place, all_commands()[name])
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "cwd").mkdir(parents=True)
    start = time.monotonic()
    process = place.finish(command.words, folder)
    if process.status != 0:
        raise ValueError(f"{command.name} ends with {process.status}: {process.text('stderr')[-500:]}")
    (folder / "seconds.json").write_text(json.dumps(time.monotonic() - start))
    return folder


def reference_seconds(folder: Path) -> float:
    """How long the uninterrupted run took."""
    return json.loads((folder / "seconds.json").read_text())


# ---- many cases --------------------------------------------------------------------------------


def in_parallel(tasks: list[Callable[[], None]], jobs: int):
    """Run tasks in forked processes, each the next one left. Raises `SystemExit` where a process broke."""
    import multiprocessing

    context = multiprocessing.get_context("fork")
    position = context.Value("i", 0)

    def work():
        while True:
            with position.get_lock():
                i = position.value
                position.value += 1
            if i >= len(tasks):
                return
            tasks[i]()

    workers = [context.Process(target=work, daemon=True) for _ in range(min(jobs, len(tasks)))]
    for worker in workers:
        worker.start()
    try:
        for worker in workers:
            worker.join()
    except BaseException:
        for worker in workers:
            worker.terminate()
        raise
    if any(worker.exitcode for worker in workers):
        raise SystemExit(
            "torture: a process of the suite broke; the same command goes on with the cases left."
        )


def note(place: Place, judged: Judged):
    """Append a judgement to the log, in one write."""
    line = json.dumps(asdict(judged)) + "\n"
    with open(place.log, "ab", buffering=0) as f:
        f.write(line.encode())


def noted(place: Place) -> dict[str, Judged]:
    """The judgements in the log by case; a line that was being written does not count."""
    found = {}
    if place.log.exists():
        for line in place.log.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError, TypeError):
                judged = Judged(**json.loads(line))
                found[judged.id] = judged
    return found


def mount(folder: Path, size: int, remount: bool = False) -> bool:
    """Put a file system of so many bytes on a folder, or change its size; whether that is possible."""
    options = f"{'remount,' if remount else ''}size={size}"
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        return subprocess.run(words, capture_output=True).returncode == 0
    except OSError:
        return False


def unmount(folder: Path):
    """Take a file system off a folder again."""
    subprocess.run(["umount", "-l", str(folder)], capture_output=True)
