"""Properties: what must hold for all that can be drawn, tried on a few examples or for long on many.

A page states one with `holds`, which tries it on a few examples that are the same each time; `search` tries
those of a page on new ones, until its time is up, and says of each how many there were.
"""

import secrets
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib.util import find_spec

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import UnsatisfiedAssumption

FEW = 12  # examples of a property when a page is run
BATCH = 100  # examples of a property that a search tries in a row

# The examples of a page are the same each time, and its search begins with the seed that it prints.
COMMON = dict(
    deadline=None,
    database=None,
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)

collected: list["Property"] = []  # of the page that is running, in order
only_collect = False  # whether `holds` leaves the trying to `search`


@dataclass(frozen=True, eq=False)
class Property:
    """A statement, and what its values are drawn from."""

    name: str
    says: str  # in words
    test: Callable
    drawn: dict
    few: int


@dataclass(frozen=True)
class Tried:
    """What came of trying a property."""

    name: str
    says: str
    examples: int  # that it was tried on
    seconds: float
    failure: str | None = None  # what broke, with the example; None: nothing did

    def __str__(self):
        end = f"FAILED\n{self.failure}" if self.failure else "held"
        return f"{self.name}: {self.examples:,} examples in {self.seconds:.0f} s, {end}"


def holds(few: int = FEW, **drawn):
    """Decorator: the property holds for all that can be drawn; tried at once on `few` examples."""

    def state(test):
        found = Property(test.__name__, (test.__doc__ or "").strip(), test, drawn, few)
        collected[:] = [p for p in collected if p.name != found.name] + [found]
        if not only_collect:
            trial(found)()
        return test

    return state


def trial(p: Property, n: int | None = None, start: int | None = None, count=None, until=None) -> Callable:
    """A property as a function that tries it on `n` examples; from a seed, or the same ones each time."""

    broken = []  # once an example has broken it, it is made small, however late it is

    @wraps(p.test)
    def counting(**values):
        if until is not None and not broken and time.monotonic() > until:
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                p.test(**values)
        except UnsatisfiedAssumption:
            raise
        except Exception:
            broken.append(True)
            raise
        if count is not None:
            count.append(1)

    tried = given(**p.drawn)(counting)
    if start is not None:
        tried = seed(start)(tried)
    return settings(max_examples=n or p.few, derandomize=start is None, **COMMON)(tried)


def try_for(p: Property, seconds: float, start: int) -> Tried:
    """Try a property on new examples, until the time is up or one breaks it."""
    began = time.monotonic()
    count, failure = [], None
    turn = 0
    while failure is None and time.monotonic() - began < seconds:
        try:
            trial(p, BATCH, start + turn, count, began + seconds)()
        except Exception as error:
            failure = said(error)
        turn += 1
    return Tried(p.name, p.says, len(count), round(time.monotonic() - began, 1), failure)


def said(error: Exception) -> str:
    """An error with what hypothesis noted of its example, and where it was raised."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    text = "".join(traceback.format_exception_only(error)).strip()
    return f"{text}\nin {where.name}, line {where.lineno}"


def search(seconds: float, start: int | None = None) -> list[Tried]:
    """Try all properties of the page that is running, each for its share of the time; prints the seed."""
    start = secrets.randbelow(2**32) if start is None else start
    print(f"seed {start}")
    share = seconds / max(1, len(collected))
    return [try_for(p, share, start) for p in collected]


def installed(library: str) -> bool:
    """Whether a library is there to compare with; says that a comparison is skipped where it is not."""
    if find_spec(library) is None:
        print(f"skipped: no {library}")
        return False
    return True
