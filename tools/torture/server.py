"""Commands of the library in processes that need not import it: each is forked from this one.

`prepare` imports everything, on one thread; `start` forks a process that calls a command's function as its
console script would. The clock that the library reads stands still, and git is not asked, so that runs
which are equal write files that are equal, seconds included.
"""

import contextlib
import ctypes
import importlib
import io
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 240  # seconds after which a command hangs
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SET_PARENT_DEATH_SIGNAL = 1  # of prctl, on Linux
NOBODY = 65534


@dataclass(frozen=True)
class Bounds:
    """What a process may not do."""

    largest: int | None = None  # bytes that a file may have
    nobody: bool = False  # whether it runs as a user who may read and write only what all may


class StillClock:
    """The module `time`, but for its clocks, which stand still."""

    def __getattr__(self, name):
        return getattr(time, name)

    def monotonic(self) -> float:
        return 1000.0

    perf_counter = time = monotonic


def function_of(program: str):
    """What runs a command: `pde_train` is the command `train` of `pde`."""
    from pde_nb.cli.entry import begin

    return partial(begin, program)


def prepare(warm: list[tuple[str, list[str]]]):
    """Import everything on one thread, run some commands to load what they load late, and stop the clock."""
    for name in ONE_THREAD:
        os.environ[name] = "1"
    os.environ["MPLBACKEND"] = "Agg"
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[name] = "1"
    import torch
    import tqdm

    torch.set_num_threads(1)
    tqdm.tqdm.monitor_interval = 0  # else it starts a thread, which a fork does not take along
    from pde_nb.console.program import MODULES

    for module in MODULES.values():
        importlib.import_module(f"pde_nb.{module}")
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for program, argv in warm:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                status = call(program, argv)
            if status:
                raise SystemExit(f"torture: {program} {' '.join(argv)} ended with {status}; mend that first.")
        os.chdir(home)
    stand_still()


def no_revision() -> None:
    """What the library finds out about the revision."""


def stand_still():
    """Let the modules of the library see a clock that stands still, and no revision."""
    from pde_nb.core import files

    files._revision = no_revision
    for name, module in list(sys.modules.items()):
        if name.startswith("pde_nb") and getattr(module, "time", None) is time:
            module.time = StillClock()


def call(program: str, argv: list[str]) -> int:
    """Call a command in this process; its exit status, 1 after a traceback."""
    sys.argv = [program, *argv]
    try:
        function_of(program)(list(argv))
    except SystemExit as e:
        if isinstance(e.code, str):
            print(e.code, file=sys.stderr)
            return 1
        return e.code or 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


@dataclass
class Process:
    """A command that was started."""

    pid: int
    folder: Path  # where its stdout and stderr go
    status: int | None = None  # as subprocess has it: negative for a signal

    def poll(self) -> int | None:
        """The status, or None while it runs."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def wait(self, seconds: float = PATIENCE) -> int | None:
        """The status; None for one that did not end in time, and was killed."""
        end = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > end:
                self.kill()
                return None
            time.sleep(0.004)
        return self.status

    def kill(self, which: int = signal.SIGKILL):
        """Send a signal, if it still runs; after SIGKILL, nothing of it is left."""
        if self.poll() is not None:
            return
        os.kill(self.pid, which)
        if which != signal.SIGKILL:
            return
        _, status = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # those that it has started

    def text(self, name: str) -> str:
        """What it wrote to `stdout` or `stderr`."""
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def start(
    program: str,
    argv: list[str],
    cwd: Path,  # where it runs
    logs: Path,  # folder for stdout and stderr
    bounds: Bounds = Bounds(),
) -> Process:
    """Fork a process that runs a command."""
    logs.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Process(pid, logs)
    status = 1
    try:
        become_command(cwd, logs, bounds)
        status = call(program, argv)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(status)


def become_command(cwd: Path, logs: Path, bounds: Bounds):
    """In the new process: a session, signals, standard streams and limits of its own."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(logs / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        os.dup2(file, number)
    sys.stdin = open(os.devnull)
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)
    os.chdir(cwd)
    if bounds.largest is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bounds.largest, bounds.largest))
    if bounds.nobody:
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def finish(program: str, argv: list[str], cwd: Path, logs: Path, bounds: Bounds = Bounds()) -> Process:
    """Run a command to its end; status None where it hung."""
    process = start(program, argv, cwd, logs, bounds)
    process.status = process.wait()
    return process
