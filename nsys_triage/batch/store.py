"""The output folder: one page and one JSON file per job, and what is known of files that have been looked at.

A job is done where its JSON file is there: that is renamed into its place whole, after the page, and its name ends in a
hash of the content, the options and the tool's version. So nothing else has to be kept, and a process may be killed at
any time.
"""

import fcntl
import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from nsys_triage import __version__
from nsys_triage.batch.messages import Done, Looked, Options
from nsys_triage.errors import OutputError
from nsys_triage.ingest.files import base_name, whole_file, why
from nsys_triage.result.codec import json_schema

JOBS: Final = "jobs"
STATE: Final = ".nsys-triage"
_LOOKED: Final = "looked.jsonl"
_KEY_DIGITS: Final = 16
_NAME: Final = re.compile(rf"(.+)-([0-9a-f]{{{_KEY_DIGITS}}})\.json")
_FILE: Final = re.compile(rf"(.+-[0-9a-f]{{{_KEY_DIGITS}}})\.(?:json|html)")
_MOST_NAME: Final = 80


@cache
def _version() -> str:
    """The tool and the format of its results."""
    schema = msgspec.json.encode(json_schema(), order="deterministic")
    return f"{__version__} {hashlib.blake2b(schema, digest_size=16).hexdigest()}"


def key_of(contents: Sequence[str], options: Options) -> str:
    """What tells a job from all others: its traces' contents in order, the options, the tool and its result format."""
    facts = msgspec.json.encode([_version(), options, list(contents)], order="deterministic")
    return hashlib.blake2b(facts, digest_size=_KEY_DIGITS // 2).hexdigest()


def safe_name(text: str, key: str) -> str:
    """A file name without suffix: letters, digits and `._-` of the text, and the key, which makes it unique."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", plain)[:_MOST_NAME].strip("._-")
    return f"{stem or 'trace'}-{key}"


class Store:
    """The output folder of a batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobs = folder / JOBS
        self._state = folder / STATE

    def prepare(self, *, force: bool) -> None:
        """Make the folder. Raises `OutputError` where it cannot be, or where it holds other things, unless `force`."""
        name = base_name(self.folder)
        try:
            if self.folder.is_dir() and not self._state.is_dir() and any(self.folder.iterdir()) and not force:
                raise OutputError(
                    f"{name} holds files that no batch has written: choose another folder for -o, or use it all"
                    " the same with --force."
                )
            self.jobs.mkdir(parents=True, exist_ok=True)
            self._state.mkdir(exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"{name} cannot be used for the output: {why(error)}: choose another folder for -o."
            ) from error

    @contextmanager
    def locked(self, part: str) -> Iterator[None]:
        """Keep other runs of the same part out. Raises `OutputError` where one is at work."""
        descriptor = os.open(self._state / f"lock-{part}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise OutputError(
                f"another batch is writing to {base_name(self.folder)}: wait for it, or choose another folder for -o."
            ) from error
        except OSError:  # file systems without locks
            pass
        try:
            self._sweep(part)
            yield
        finally:
            os.close(descriptor)

    def _sweep(self, part: str) -> None:
        """Remove what killed runs left unfinished, where no other part is at work."""
        for other in self._state.glob("lock-*"):
            if other.name != f"lock-{part}":
                with other.open("rb") as held:
                    try:
                        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except OSError:
                        return
        for leftover in [*self.folder.glob(".nsys-triage-*.tmp"), *self.jobs.glob(".nsys-triage-*.tmp")]:
            leftover.unlink(missing_ok=True)

    # --- jobs ---------------------------------------------------------------------------------------------------

    def done(self) -> dict[str, str]:
        """Names of finished jobs by key."""
        found = {}
        with suppress(FileNotFoundError):
            names = sorted(entry.name for entry in os.scandir(self.jobs))
            there = set(names)
            for name in names:
                match = _NAME.fullmatch(name)
                if match and f"{name[:-5]}.html" in there:
                    found[match[2]] = name[:-5]
        return found

    def left_over(self, names: Set[str]) -> int:
        """How many pages and results there are of other jobs than these, by name: of earlier runs."""
        found = (_FILE.fullmatch(entry.name) for entry in os.scandir(self.jobs))
        return sum(match is not None and match[1] not in names for match in found)

    def keep(self, name: str, done: Done) -> None:
        """Write a job's page and JSON, each whole or not at all, the JSON last. Raises `OutputError`."""
        for suffix, data in (("html", done.html), ("json", done.json)):
            with whole_file(self.jobs / f"{name}.{suffix}", force=True) as temporary:
                temporary.write_bytes(data)

    def read(self, name: str) -> bytes:
        """A finished job's JSON."""
        return (self.jobs / f"{name}.json").read_bytes()

    # --- looks --------------------------------------------------------------------------------------------------

    def looked(self) -> dict[tuple[str, int, str], Looked]:
        """What is known of files by place, size and version; lines that a killed run left torn are passed over."""
        found: dict[tuple[str, int, str], Looked] = {}
        with suppress(FileNotFoundError):
            for line in (self._state / _LOOKED).read_bytes().splitlines():
                with suppress(msgspec.DecodeError):
                    place, size_bytes, version, looked = msgspec.json.decode(
                        line, type=tuple[str, int, str, Looked]
                    )
                    found[place, size_bytes, version] = looked
        return found

    def remember(self, place: str, size_bytes: int, version: str, looked: Looked) -> None:
        """Keep what is known of a file. Raises `OutputError`."""
        line = msgspec.json.encode((_hidden(place), size_bytes, version, looked))
        try:
            # one write each, so that parts of an array do not get into each other's lines
            descriptor = os.open(
                self._state / _LOOKED, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600
            )
            try:
                os.write(descriptor, b"\n" + line + b"\n")
            finally:
                os.close(descriptor)
        except OSError as error:
            raise OutputError(
                f"{base_name(self.folder)} cannot be written: {why(error)}: choose another folder for -o."
            ) from error


def _hidden(place: str) -> str:
    """A hash of a place: the user's folders stay out of the output."""
    return hashlib.blake2b(os.fsencode(place), digest_size=20).hexdigest()


def known(
    looks: dict[tuple[str, int, str], Looked], place: str, size_bytes: int, version: str
) -> Looked | None:
    """What `Store.looked` knows of a file as it is now."""
    return looks.get((_hidden(place), size_bytes, version))
