"""Kills, damaged files, full disks and bad input, for all methods and commands.

    python tools/torture.py [kills|damage|disk|input|all] [--count N] [--seed S] [--jobs J] [--only NAME]
                            [--json results/torture.json] [--case ID] [--work DIR]

Every part tries cases that a seed decides, and judges each. `kills`: commands are killed at random moments,
given again, and must end with the files of an uninterrupted run. `damage`: files of runs are damaged, and
every command that reads them must refuse, naming file and remedy, or print the true figures. `disk`: the
disk is full, then room is made, and the same command must end as it would have. `input`: bad data and
options are refused in one line, without a traceback. Each judgement is logged at once; the same command
goes on where it was stopped. `--case ID` tries one case again and says all about it.

The exit status is 1 where a case failed.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from torture import damage, disk, inputs, kills, server  # noqa: E402
from torture.commands import ALWAYS, LOANS, Command, all_commands  # noqa: E402
from torture.material import make_material  # noqa: E402
from torture.places import Judged, Place, in_parallel, note, noted, place_at, reference  # noqa: E402
from torture.record import failure_lines, record_of, table_lines  # noqa: E402

from pde_nb.records.seals import write_sealed  # noqa: E402

PARTS = {"kills": kills, "damage": damage, "disk": disk, "input": inputs}
FULL = {"kills": 240, "damage": 330, "disk": 88, "input": 1000}  # cases, kills counted singly; all input


def run_case(place: Place, case: str) -> Judged:
    """Try one case by its name. A suite that breaks has not judged anything, and says so."""
    part, *rest = case.split(":")
    try:
        return PARTS[part].run_case(place, *rest)
    except (ValueError, OSError, KeyError) as e:
        return Judged(case, False, "not judged", f"{type(e).__name__}: {e}", 0)


def planned(place: Place, part: str, count: int | None, only: str, jobs: int) -> list[str]:
    """The cases of a part by name; the uninterrupted runs that they need are made."""
    n = FULL[part] if count is None else count
    if part != "damage":
        cases = PARTS[part].plan(place, n, only)
        make_references(place, PARTS[part].commands_of(cases), jobs)
        return cases
    make_references(place, damage.commands_of(only), jobs)
    names = [name for name in damage.exhibits() if only in name]
    in_parallel([lambda name=name: prepare_exhibit(place, name) for name in names], jobs)
    return damage.plan(place, n, only)


def make_references(place: Place, commands: list[Command], jobs: int):
    """Make the uninterrupted runs that are missing, those that others read first."""
    found = all_commands()
    first = {name: found[name] for command in commands for name in command.needs}
    for group in (first.values(), commands):
        missing = [c for c in group if not (place.runs / c.name / "seconds.json").exists()]
        if missing:
            print(f"{len(missing)} commands without interruption …", flush=True)
            in_parallel([lambda c=c: reference(place, c) and None for c in missing], jobs)


def prepare_exhibit(place: Place, name: str):
    """Make a folder that will be damaged, and ask its readers once."""
    exhibit = damage.exhibits()[name]
    damage.exhibit_folder(place, exhibit)
    readers = damage.lines_of(all_commands()[exhibit.command], exhibit)
    for reader, words in readers.items():
        damage.wanted_answer(place, exhibit, reader, words)


def try_cases(place: Place, cases: list[str], jobs: int):
    """Try the cases that the log does not have, and log each."""
    known = noted(place)
    left = [case for case in cases if case not in known]
    if len(left) < len(cases):
        print(f"{len(cases) - len(left)} of {len(cases)} cases were tried before", flush=True)

    def attempt(case: str):
        judged = run_case(place, case)
        note(place, judged)
        word = "ok    " if judged.ok else "FAILED"
        print(f"{word} {judged.seconds:5.1f} s  {case}  {judged.verdict}", flush=True)
        if not judged.ok:
            print(f"  | {judged.detail}", flush=True)

    in_parallel([lambda case=case: attempt(case) for case in left], jobs)


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("part", nargs="?", default="all", choices=(*PARTS, "all"))
    add("--count", type=int, help="kills, damaged places, full disks, inputs; default: the full counts")
    add("--seed", type=int, default=0, help="decides the cases; default 0")
    add("--jobs", type=int, default=1, help="cases at a time; default 1")
    add("--only", default="", metavar="NAME", help="cases whose command, method or name contains this")
    add("--json", metavar="FILE", help="write the record of all cases in the log")
    add("--case", metavar="ID", help="try one case again, whatever the log says")
    add("--work", default=str(ROOT / "runs" / "torture"), metavar="DIR", help="where the suite works")
    args = parser.parse_args()
    for name in ("count", "jobs"):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            parser.error(f"--{name} {getattr(args, name)}: give at least 1")
    if args.case and args.case.split(":")[0] not in PARTS:
        parser.error(f"--case {args.case}: begins with none of {', '.join(PARTS)}")
    return args


def main() -> int:
    args = options()
    place = place_at(Path(args.work), args.seed)
    place.runs.mkdir(parents=True, exist_ok=True)
    make_material(place.material)
    loans = place.argv(f"{LOANS} --method jtt --epochs 2 {ALWAYS} --out out".split())
    look = place.argv(LOANS.split())
    server.prepare(
        [("pde_train", loans), ("pde_report", ["out"]), ("pde_eval", ["out"]), ("pde_diagnose", look)]
    )
    if args.case:
        judged = run_case(place, args.case)
        print(f"{judged.id}: {judged.verdict}, {judged.seconds} s\n{judged.detail}")
        return int(not judged.ok)
    parts = list(PARTS) if args.part == "all" else [args.part]
    cases = []
    for part in parts:
        cases += planned(place, part, args.count, args.only, args.jobs)
    try_cases(place, cases, args.jobs)
    judged = noted(place)
    found = [judged[case] for case in cases]
    print("\n" + "\n".join([*table_lines(found), *failure_lines(found, args.seed)]))
    if args.json:
        write_sealed(args.json, record_of(place, list(judged.values())))
    return int(any(not one.ok for one in found))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on with the cases left", file=sys.stderr)
        sys.exit(130)
