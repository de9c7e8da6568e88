"""Whether two folders hold the same: files by their bytes, JSON without seconds, surroundings and seals."""

import json
import re
from pathlib import Path

# What differs from run to run though all is well: times (`checked`: of a picture cache), the machine, and
# the checksum over them.
VOLATILE = {"seconds", "surroundings", "sha256", "checked"}
LINK_FOLDER = re.compile(rb'href="[^"]*/')  # seen from the page, which is elsewhere


def files_of(folder: Path, ignore: tuple[str, ...] = ()) -> dict[str, Path]:
    """The files below a folder by their path there, but for locks; an empty folder counts as one."""
    found = {}
    for path in sorted(folder.rglob("*")):
        empty_folder = path.is_dir() and not any(path.iterdir())
        if (path.is_file() or empty_folder) and not path.name.endswith(".lock") and path.name not in ignore:
            found[path.relative_to(folder).as_posix()] = path
    return found


def steady(value, but: tuple[str, ...] = ()):
    """A JSON value without what differs from run to run, and without some other keys."""
    if isinstance(value, list):
        return [steady(item, but) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, item in value.items():
        if key not in VOLATILE and key not in but and not sealed(key, item):
            kept[key] = steady(item, but)
    return kept


def sealed(name: str, item) -> bool:
    """Whether this is the checksum of a file that has seconds in it."""
    return name.endswith(".json") and isinstance(item, str)


def same_file(one: Path, other: Path, but: tuple[str, ...] = ()) -> bool:
    """Whether two files say the same."""
    if one.is_dir() or other.is_dir():
        return one.is_dir() and other.is_dir()
    first, second = one.read_bytes(), other.read_bytes()
    if first == second:
        return True
    if one.suffix == ".safetensors":
        return tensors_of(first) == tensors_of(second)
    if one.suffix == ".html":
        return LINK_FOLDER.sub(b'href="', first) == LINK_FOLDER.sub(b'href="', second)
    if one.suffix != ".json":
        return False
    try:
        return steady(json.loads(first), but) == steady(json.loads(second), but)
    except ValueError:
        return False


def tensors_of(content: bytes):
    """Head and data of a safetensors file; the head is parsed, as its keys have no order."""
    length = int.from_bytes(content[:8], "little")
    try:
        return json.loads(content[8 : 8 + length]), content[8 + length :]
    except ValueError:
        return content


def differences(
    folder: Path,
    reference: Path,
    ignore: tuple[str, ...] = (),  # names of files
    but: tuple[str, ...] = (),  # keys of JSON that may differ
) -> list[str]:
    """What is missing in a folder, what was left there, and what is other than in the reference."""
    mine, theirs = files_of(folder, ignore), files_of(reference, ignore)
    lines = [f"{name} is missing" for name in theirs if name not in mine]
    lines += [f"{name} was left behind" for name in mine if name not in theirs]
    shared = [name for name in theirs if name in mine]
    return lines + [f"{name} differs" for name in shared if not same_file(mine[name], theirs[name], but)]
