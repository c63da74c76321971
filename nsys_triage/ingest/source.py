"""From the file that a user gives to a SQLite export that can be read."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nsys_triage.errors import UsageError
from nsys_triage.ingest.cache import Cache
from nsys_triage.ingest.export import Progress, export
from nsys_triage.ingest.files import check_target, whole_file
from nsys_triage.ingest.identify import identify
from nsys_triage.ingest.nsys import choose_nsys


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """How reports are exported."""

    nsys: Path | None = None  # None: look for one
    cache_dir: Path | None = None  # None: the user's own
    keep_sqlite: Path | None = None  # where to put a copy of the export
    force: bool = False  # overwrite that copy
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A SQLite export that is complete, and what it came from."""

    path: Path  # of the SQLite file, absolute
    file: str  # base name of the file that the user gave
    kind: Literal["nsys-rep", "qdrep", "sqlite"]
    capture_version: str | None  # from a report's header; None for exports and for reports up to 2023.3.1
    filtered: bool  # an export of chosen tables or times: what is not there may have been left out


def open_source(path: Path, settings: ExportSettings, progress: Progress | None = None) -> Source:
    """The export behind `path`: the file itself where it is one, else made by nsys or taken from the cache.

    The user's file and its folder are only read. Raises `UsageError` for a missing file, `InputError` for one
    that cannot be analysed, `NsysMissingError` and `ExportError` where it cannot be exported, `CacheError`
    and `OutputError` where the cache or the copy cannot be written.
    """
    identity = identify(path)
    if identity.kind == "sqlite":
        if settings.keep_sqlite:
            raise UsageError(f"{identity.file} is an export already: leave --keep-sqlite out.")
        return Source(path.absolute(), identity.file, "sqlite", None, identity.filtered)
    kept = check_target(settings.keep_sqlite, (path,), settings.force) if settings.keep_sqlite else None
    nsys = choose_nsys(settings.nsys, identity.file, identity.capture_version)
    cache = Cache.locate(settings.cache_dir)
    exported = export(path, identity.file, nsys, cache, settings.timeout_s, progress or _silent)
    if kept:
        with whole_file(kept, settings.force) as temporary:
            shutil.copyfile(exported, temporary)
    return Source(
        path=exported,
        file=identity.file,
        kind="qdrep" if path.suffix.lower() == ".qdrep" else "nsys-rep",
        capture_version=str(identity.capture_version) if identity.capture_version else None,
        filtered=False,
    )


def _silent(text: str, percent: int | None) -> None:
    del text, percent
