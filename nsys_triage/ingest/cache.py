"""Finished exports, kept between runs: named by the content of the report and the nsys that exported it.

Only files that carry such a name are ever looked at or removed, so any folder may serve. Exports hold the
environment and the command line of the recorded job: the folder and the files are for their owner alone.
"""

import fcntl
import hashlib
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from nsys_triage.errors import CacheError, InputError
from nsys_triage.ingest.files import publish, why
from nsys_triage.ingest.sqlite_file import inspect
from nsys_triage.ingest.version import Version

CACHE_VARIABLE: Final = "NSYS_TRIAGE_CACHE"
_EXPORT_NAME = re.compile(r"[0-9a-f]{40}-[0-9.]+\.sqlite")
_WORK_PREFIX: Final = "nsys-triage-export-"
_LOCK_NAME: Final = "lock"
_CHUNK_BYTES: Final = 1 << 20

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the cache holds."""

    exports: int
    size_bytes: int  # exports and unfinished ones


@dataclass(frozen=True, slots=True)
class Cache:
    """The cache in one folder, which is made when it is first written to."""

    folder: Path

    @classmethod
    def locate(cls, given: Path | None = None) -> Self:
        """The cache in the folder given, else in that of NSYS_TRIAGE_CACHE, else in the user's own."""
        if given is None and os.environ.get(CACHE_VARIABLE):
            given = Path(os.environ[CACHE_VARIABLE])
        if given is None:
            from platformdirs import user_cache_path

            given = user_cache_path("nsys-triage", appauthor=False)
        return cls(given.absolute())

    def path_of(self, content: str, nsys: Version) -> Path:
        """Where the export of the report with that content by that nsys is kept."""
        return self.folder / f"{content}-{nsys}.sqlite"

    def find(self, content: str, nsys: Version) -> Path | None:
        """A complete, unfiltered export of the report with that content by that nsys, or None."""
        path = self.path_of(content, nsys)
        try:
            return path if path.is_file() and not inspect(path).filtered else None
        except (InputError, OSError) as error:
            _log.info("cached export is not used: %s", error)
            return None

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """A new private folder to export into; gone when the block ends. Raises `CacheError`.

        A lock tells it from what a killed process has left behind, which is removed here too.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._remove_leftovers()
            work = Path(tempfile.mkdtemp(prefix=_WORK_PREFIX, dir=self.folder))
        except OSError as error:
            raise self._unusable(error) from error
        lock = None
        try:
            # the lock goes with the process, however it ends
            with suppress(OSError):
                lock = os.open(work / _LOCK_NAME, os.O_CREAT | os.O_RDWR, 0o600)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)
            if lock is not None:
                os.close(lock)

    def publish(self, finished: Path, content: str, nsys: Version) -> Path:
        """Takes a verified export into the cache; where another process was first, its export is used."""
        target = self.path_of(content, nsys)
        try:
            finished.chmod(0o600)
            try:
                publish(finished, target, force=False)
            except FileExistsError:
                # rows may come in another order there: who reads it already must go on with the same file
                if self.find(content, nsys) is None:
                    publish(finished, target, force=True)
        except OSError as error:
            raise self._unusable(error) from error
        return target

    def usage(self) -> Usage:
        """Number and size of what is kept; zero where the folder does not exist."""
        try:
            exports = [path.stat().st_size for path in self._exports()]
            unfinished = [
                p.stat().st_size for work in self._workspaces() for p in work.glob("*") if p.is_file()
            ]
        except OSError as error:
            raise self._unusable(error) from error
        return Usage(len(exports), sum(exports) + sum(unfinished))

    def clear(self) -> Usage:
        """Removes every export and what killed processes left; returns what went. Raises `CacheError`."""
        before = self.usage()
        try:
            for path in self._exports():
                path.unlink(missing_ok=True)
            self._remove_leftovers()
        except OSError as error:
            raise self._unusable(error) from error
        after = self.usage()
        return Usage(before.exports - after.exports, before.size_bytes - after.size_bytes)

    def _exports(self) -> list[Path]:
        return sorted(
            p for p in self.folder.glob("*.sqlite") if _EXPORT_NAME.fullmatch(p.name) and p.is_file()
        )

    def _workspaces(self) -> list[Path]:
        return sorted(p for p in self.folder.glob(f"{_WORK_PREFIX}*") if p.is_dir() and not p.is_symlink())

    def _remove_leftovers(self) -> None:
        for work in self._workspaces():
            try:
                lock = os.open(work / _LOCK_NAME, os.O_RDWR)
            except OSError:  # without a lock file: just being made, or just being removed
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(work, ignore_errors=True)
            except OSError:
                _log.debug("%s is in use", work.name)
            finally:
                os.close(lock)

    def _unusable(self, error: OSError) -> CacheError:
        return CacheError(
            f"the cache folder {self.folder} cannot be used: {why(error)}: name another one with --cache-dir."
        )


def content_identity(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """A hash of the content, 40 hexadecimal digits (BLAKE2b, 160 bits); `progress` gets the percentage.

    Measured with a file of 1 GB in the page cache: 1.1 GB/s; `nsys export` takes about 4 MB/s of a report.
    """
    digest = hashlib.blake2b(digest_size=20)
    with path.open("rb", buffering=0) as stream:
        size_bytes = os.fstat(stream.fileno()).st_size
        done_bytes = 0
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
            done_bytes += len(chunk)
            if progress:
                progress(min(100, 100 * done_bytes // max(1, size_bytes)))
    return digest.hexdigest()
