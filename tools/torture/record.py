"""What a run of the suite came to: a table of its parts, its failures, and the record for the page."""

import re
import time
from collections import Counter

from torture.places import Judged, Place

KILLS = "kills"
ABSOLUTE = re.compile(r"(?<![\w.])/(?:[\w.@+-]+/)+")  # the folders of an absolute path


def parts_of(found: list[Judged]) -> list[dict]:
    """A row for each part: cases, kills or commands in them, passed, failed, verdicts."""
    rows = []
    for part in dict.fromkeys(one.id.partition(":")[0] for one in found):
        mine = [one for one in found if one.id.startswith(part + ":") and one.verdict != "not possible"]
        passed = sum(one.ok for one in mine)
        rows.append(
            dict(
                part=part,
                cases=len(mine),
                tried=sum(one.tried for one in mine),
                passed=passed,
                failed=len(mine) - passed,
                seconds=round(sum(one.seconds for one in mine)),
                verdicts=dict(Counter(one.verdict for one in mine).most_common()),
            )
        )
    return rows


def table_lines(found: list[Judged]) -> list[str]:
    """The table as text; `tried` counts kills, and commands that read a damaged file."""
    lines = [f"{'part':8} {'cases':>6} {'tried':>6} {'passed':>7} {'failed':>7} {'s':>6}  verdicts"]
    for row in parts_of(found):
        verdicts = ", ".join(f"{n} {verdict}" for verdict, n in row["verdicts"].items())
        numbers = f"{row['cases']:6} {row['tried']:6} {row['passed']:7} {row['failed']:7} {row['seconds']:6}"
        lines.append(f"{row['part']:8} {numbers}  {verdicts}")
    return lines


def command_line(case: str, seed: int) -> str:
    """The command that tries a case again."""
    quoted = f"'{case}'" if any(c in case for c in "=, ") else case
    return f"python tools/torture.py --seed {seed} --case {quoted}"


def failure_lines(found: list[Judged], seed: int) -> list[str]:
    """A line for each failure with what is wrong, and one that reproduces it."""
    lines = []
    for one in found:
        if not one.ok:
            lines += [f"{one.verdict}: {one.detail[:300]}", f"    {command_line(one.id, seed)}"]
    return lines


def record_of(place: Place, found: list[Judged]) -> dict:
    """The record for the page, as plain values."""
    from pde_nb.core.files import surroundings

    failures = [
        dict(
            id=one.id,
            verdict=one.verdict,
            detail=without_places(place, one.detail),
            command=command_line(one.id, place.seed),
        )
        for one in found
        if not one.ok
    ]
    around = surroundings() | dict(revision=place.revision)
    return dict(
        date=time.strftime("%Y-%m-%d"),
        revision=place.revision,
        seed=place.seed,
        surroundings=around,
        parts=parts_of(found),
        by_command=by_command(found),
        failures=failures,
    )


def by_command(found: list[Judged]) -> list[dict]:
    """Cases and kills of each command that was killed."""
    rows = {}
    for one in found:
        part, name, *_ = one.id.split(":")
        if part == KILLS:
            row = rows.setdefault(name, dict(command=name, rounds=0, kills=0, passed=0))
            row["rounds"] += 1
            row["kills"] += one.tried
            row["passed"] += one.ok
    return list(rows.values())


def without_places(place: Place, text: str) -> str:
    """A text without the names of folders of this machine."""
    return ABSOLUTE.sub("", text.replace(str(place.material), "DATA"))[:400]
