"""Build the source archive and the wheel, the same bits every time.

    python tools/release.py --out dist             # from the files that git tracks
    python tools/release.py --twice --out dist     # and once more: fails where a bit differs
    python tools/release.py --tag v0.1.0           # only: is everything written for this release?

All times in the archives are SOURCE_DATE_EPOCH, or the time of the commit; owners and permissions are plain.
The same files, setuptools and Python give the same bits.
"""

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from project import settings, version_faults

ROOT = Path(__file__).resolve().parent.parent
BUILD = """
import sys
from setuptools import build_meta
out = sys.argv[1]
build_meta.build_sdist(out)
build_meta.build_wheel(out)
"""


class ReleaseError(Exception):
    """What keeps a release from being made, and the remedy."""


def git(*args):
    """What git prints; '' where this is no repository."""
    done = subprocess.run(["git", "-C", str(ROOT), *args], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def epoch():
    """Seconds since 1970 that stand for the time of the release: 1980 at least, as zip files ask for."""
    given = os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct").strip()
    if not given.isdigit():
        raise ReleaseError("the time of the release is unknown: set SOURCE_DATE_EPOCH to seconds since 1970")
    return max(int(given), 315_619_200)


def tracked():
    """Paths of the files that belong to the project."""
    names = git("ls-files", "-z").split("\0")
    found = [name for name in names if name and (ROOT / name).is_file()]
    if not found:
        raise ReleaseError(f"{ROOT} is no git checkout: build from one")
    return found


def copy_tree(folder):
    """The project's files alone, with plain permissions."""
    for name in tracked():
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy)
        copy.chmod(0o644)


def plain_member(member, seconds):
    """A member of a tar archive without owner, and with the release's time."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = seconds
    member.mode = 0o755 if member.isdir() else 0o644
    member.pax_headers = {}
    return member


def repack(path, seconds):
    """Write a .tar.gz anew: in the order of its names, without what differs from build to build."""
    body = io.BytesIO()
    with (
        tarfile.open(path, "r:gz") as old,
        tarfile.open(fileobj=body, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            data = old.extractfile(member) if member.isreg() else None
            new.addfile(plain_member(member, seconds), data)
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=seconds) as packed:
        packed.write(body.getvalue())


def build(out):
    """Build both archives into the folder `out`; returns {name: SHA-256}."""
    seconds = epoch()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        copy, made = Path(name, "source"), Path(name, "made")
        copy_tree(copy)
        made.mkdir()
        mask = os.umask(0o022)
        try:
            env = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds), "PYTHONHASHSEED": "0"}
            command = [sys.executable, "-c", BUILD, str(made)]
            done = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True)
        finally:
            os.umask(mask)
        if done.returncode:
            raise ReleaseError(f"setuptools could not build:\n{done.stdout}{done.stderr}")
        archives = sorted(made.iterdir())
        if len(archives) != 2:
            raise ReleaseError(
                f"setuptools built {len(archives)} archives, not two:\n{done.stdout}{done.stderr}"
            )
        for path in archives:
            if path.name.endswith(".tar.gz"):
                repack(path, seconds)
            shutil.copyfile(path, out / path.name)
    return {path.name: hashlib.sha256((out / path.name).read_bytes()).hexdigest() for path in archives}


def tag_faults(tag):
    """What is not as a release of this tag needs it."""
    version = settings()["version"]
    lines = version_faults()
    if tag != f"v{version}":
        lines.append(
            f"the tag is {tag} and settings.ini says {version}: tag v{version}, or change the version"
        )
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)}, \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE):
        lines.append(f"CHANGELOG.md has no heading `## {version}, YYYY-MM-DD`: give the release its day")
    return lines


def main(args=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where to put the archives")
    parser.add_argument("--twice", action="store_true", help="build twice and compare")
    parser.add_argument("--tag", help="only check that all is written for the release of this tag")
    options = parser.parse_args(args)
    if bool(options.tag) == bool(options.out):
        parser.error("give --out FOLDER to build, or --tag vX.Y.Z to check")
    if options.tag:
        lines = tag_faults(options.tag)
        print("\n".join(lines) if lines else f"{options.tag}: all is written", file=sys.stderr)
        return 1 if lines else 0
    try:
        made = build(options.out)
        with tempfile.TemporaryDirectory() as name:
            again = build(Path(name)) if options.twice else made
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("".join(f"{digest}  {options.out / name}\n" for name, digest in made.items()), end="")
    if again != made:
        print(f"error: two builds differ: {made} and {again}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
