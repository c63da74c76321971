"""From the arguments of a user to single files: folders, globs, files and URLs, each with its name in outputs.

Folders that hold the user's files never reach an output, except for what is needed to tell two files apart: a file is
called by its path below the folder or glob that was given.
"""

import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nsys_triage.batch import remote
from nsys_triage.errors import UsageError
from nsys_triage.ingest.files import base_name, why

# what is looked at in a folder: by name, since a folder holds much else; what is named by itself is always looked at
_WANTED: Final = re.compile(r".+\.(nsys-rep|qdrep|qdstrm|sqlite)(\.(gz|xz|bz2|zst|zip))?", re.IGNORECASE)
_BESIDE: Final = ("-journal", "-wal", "-shm")  # SQLite's own files


@dataclass(frozen=True, slots=True)
class Found:
    """A file to look at."""

    place: str  # absolute path, or URL
    label: str  # what outputs call it
    folder: str  # of the place: ranks of one job lie in one folder
    size_bytes: int
    version: str  # changes when the file does


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file or folder of which nothing is known but why."""

    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Hit:
    place: str
    parts: tuple[str, ...]  # of the place
    below: int  # how many of the last parts are below what was given
    size_bytes: int
    version: str


def find(arguments: Sequence[str], leave_out: Path | None = None) -> tuple[list[Found], list[Unreadable]]:
    """All files of the arguments, each place once, by label; and what could not be read.

    `leave_out` is the output folder, which may lie in an input folder. Raises `UsageError` for an argument that names
    nothing, and for URLs where fsspec is not installed.
    """
    hits: dict[str, _Hit] = {}
    errors: list[tuple[tuple[str, ...], int, str]] = []
    out = os.path.realpath(leave_out) if leave_out else None
    for argument in arguments:
        found = _remote_hits(argument) if remote.is_url(argument) else _local_hits(argument, out, errors)
        for hit in found:
            hits.setdefault(hit.place, hit)
    places = [(hit.parts, hit.below) for hit in hits.values()] + [
        (parts, below) for parts, below, _ in errors
    ]
    labels = _labels(places)
    files = [
        Found(hit.place, label, hit.place.rpartition("/")[0], hit.size_bytes, hit.version)
        for hit, label in zip(hits.values(), labels, strict=False)
    ]
    bad = [
        Unreadable(label, reason) for (_, _, reason), label in zip(errors, labels[len(hits) :], strict=True)
    ]
    return sorted(files, key=lambda file: (file.label, file.place)), sorted(bad, key=lambda row: row.label)


def _labels(places: Sequence[tuple[tuple[str, ...], int]]) -> list[str]:
    """One label per place: what is below its argument, with more of its folders only where that is not unique."""
    shown = [max(1, below) for _, below in places]
    while True:
        tails = [parts[-n:] for (parts, _), n in zip(places, shown, strict=True)]
        counted = Counter(tails)
        again = [i for i, tail in enumerate(tails) if counted[tail] > 1 and shown[i] < len(places[i][0])]
        if not again:
            break
        for index in again:
            shown[index] += 1
    labels = ["/".join(base_name(Path(part)) for part in tail) for tail in tails]
    taken, seen = Counter(labels), Counter[str]()
    for index, label in enumerate(labels):  # names that differ in unprintable characters alone
        seen[label] += 1
        labels[index] = f"{label} ({seen[label]})" if taken[label] > 1 else label
    return labels


def _local_hits(
    argument: str, out: str | None, errors: list[tuple[tuple[str, ...], int, str]]
) -> Iterator[_Hit]:
    if os.path.isdir(argument):  # noqa: PTH112 - bytes that are no text stay as they are
        yield from _folder_hits(argument, out, errors)
    elif os.path.lexists(argument):
        yield from _file_hits([argument], argument, 1, errors)
    elif glob.has_magic(argument):
        yield from _glob_hits(argument, out, errors)
    else:
        raise UsageError(f"{base_name(Path(argument))} does not exist: check the path.")


def _glob_hits(
    pattern: str, out: str | None, errors: list[tuple[tuple[str, ...], int, str]]
) -> Iterator[_Hit]:
    matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - as the shell does it
    fixed = len(os.path.abspath(pattern[: re.search(r"[*?\[]", pattern).start()] + "x").split("/")) - 2  # type: ignore[union-attr] # noqa: PTH100
    files = [match for match in matches if not match.endswith(_BESIDE)]
    if not files:
        raise UsageError(f"nothing matches {pattern!r}: check the pattern.")
    for match in files:
        if os.path.isdir(match):  # noqa: PTH112
            yield from _folder_hits(match, out, errors)
        elif out is None or not _inside(match, out):
            below = len(os.path.abspath(match).split("/")) - 1 - fixed  # noqa: PTH100
            yield from _file_hits([match], match, below, errors)


def _folder_hits(
    folder: str, out: str | None, errors: list[tuple[tuple[str, ...], int, str]]
) -> Iterator[_Hit]:
    top = os.path.abspath(folder)  # noqa: PTH100 - links stay in the names

    def unreadable(error: OSError) -> None:
        place = os.path.abspath(os.fsdecode(error.filename or top))  # noqa: PTH100
        errors.append(
            (
                _parts(place),
                _depth(place, top),
                f"the folder cannot be read: {why(error)}: check its permissions.",
            )
        )

    for at, folders, names in os.walk(top, onerror=unreadable):
        folders.sort()
        if out is not None and os.path.realpath(at) == out:
            folders.clear()
            continue
        for name in sorted(names):
            if _WANTED.fullmatch(name):
                place = os.path.join(at, name)  # noqa: PTH118
                yield from _file_hits([place], place, _depth(place, top), errors)


def _file_hits(
    names: Iterable[str], shown: str, below: int, errors: list[tuple[tuple[str, ...], int, str]]
) -> Iterator[_Hit]:
    for name in names:
        place = os.path.abspath(name)  # noqa: PTH100
        try:
            status = os.stat(place)  # noqa: PTH116
        except OSError as error:
            reason = (
                f"{base_name(Path(shown))} cannot be read: {why(error)}: check the link, or copy it again."
            )
            errors.append((_parts(place), below, reason))
            continue
        yield _Hit(place, _parts(place), below, status.st_size, str(status.st_mtime_ns))


def _remote_hits(argument: str) -> Iterator[_Hit]:
    for file in remote.listed(argument, _WANTED.fullmatch):
        parts = tuple(part for part in file.place.partition("::")[0].split("/") if part)
        yield _Hit(file.place, parts, file.below, file.size_bytes, file.version)


def _parts(place: str) -> tuple[str, ...]:
    return tuple(part for part in place.split("/") if part) or ("/",)


def _depth(place: str, top: str) -> int:
    return len(_parts(place)) - (len(_parts(top)) if top != "/" else 0)


def _inside(path: str, folder: str) -> bool:
    return os.path.realpath(path).startswith(folder.rstrip("/") + "/")
