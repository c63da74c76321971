"""Exports a report with `nsys export`, and believes it only when the export has been verified.

How nsys behaves (it ends with 0 and an empty file when the disk is full, and leaves partial files behind that
look whole): section 2 of the schema reference.
"""

import logging
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nsys_triage import units
from nsys_triage.errors import CacheError, ExportError, InputError
from nsys_triage.ingest.cache import Cache, content_identity
from nsys_triage.ingest.files import why
from nsys_triage.ingest.messages import export_failure
from nsys_triage.ingest.nsys import Nsys, export_command, knows_include_json
from nsys_triage.ingest.process import DeadlineError, Finished, run_group
from nsys_triage.ingest.sqlite_file import inspect

Progress = Callable[[str, int | None], None]
"""Called with what is being done and how much of it is done in percent, None where that is not known."""

# an export takes 3 to 58 times the size of its report (58: GPU metrics); this is what is asked for beforehand
_SPACE_FACTOR: Final = 5
_SPACE_EXTRA_BYTES: Final = 16_000_000
_PROGRESS = re.compile(rb"\r(?:Exporting|Processing) \d+ events: \[=*(\d+)%")
_PROGRESS_LINE = re.compile(r"\r[^\r\n]*")
_PROGRESS_TAIL: Final = 200


def export(
    report: Path, file: str, nsys: Nsys, cache: Cache, timeout_s: float | None, progress: Progress
) -> Path:
    """The verified SQLite export of a report, from the cache or made now; `file` is what messages call it.

    Raises `ExportError` where nsys gives no complete export, `CacheError` where the cache cannot be used.
    """
    before = _state(report, file)
    content = _identity(report, file, progress)
    cached = cache.find(content, nsys.version)
    if cached:
        _log.info("%s: using the export in the cache", file)
        return cached
    with cache.workspace() as work:
        _check_space(cache.folder, report.stat().st_size, file)
        output = work / "export.sqlite"
        progress(f"exporting {file}", None)
        _run(report, file, nsys, output, timeout_s, progress)
        if _state(report, file) != before:
            raise ExportError(f"{file} changed while it was exported: try again when it is complete.")
        return cache.publish(output, content, nsys.version)


def _run(
    report: Path, file: str, nsys: Nsys, output: Path, timeout_s: float | None, progress: Progress
) -> None:
    # absolute paths: nothing depends on the folder it runs in, and no name can be taken for an option
    command = [str(nsys.path), "export", "--type=sqlite", f"--output={output}"]
    if knows_include_json(nsys.path):
        command.append("--include-json=true")
    command.append(str(report.absolute()))
    _log.info("%s: exporting with nsys %s", file, nsys.version)
    _log.debug("%s", command)
    try:
        finished = run_group(command, output.parent, timeout_s, _ProgressReader(file, progress))
    except DeadlineError as error:
        raise ExportError(
            f"{file} was not exported within {units.time(round((timeout_s or 0) * 1e9))}: allow more with "
            f"--export-timeout, or run `{export_command(file)}` and give the .sqlite."
        ) from error
    except OSError as error:
        raise ExportError(
            f"nsys {nsys.version} cannot be run: {why(error)}: name another one with --nsys."
        ) from error
    _verify(finished, file, nsys, output)


def _verify(finished: Finished, file: str, nsys: Nsys, output: Path) -> None:
    """Return code, a file that opens, metadata with rows, nothing left out."""
    messages = _PROGRESS_LINE.sub("", finished.stderr)
    _log.debug("nsys ended with %d: %s", finished.return_code, messages.strip())
    if finished.return_code:
        raise export_failure(file, nsys.version, finished.return_code, messages)
    try:
        facts = inspect(output)
    except (InputError, OSError) as error:
        raise export_failure(file, nsys.version, 0, messages) from error
    if facts.filtered:
        raise ExportError(
            f"{file} was exported in part only by nsys {nsys.version}, though all of it was asked for: name "
            "another one with --nsys."
        )


class _ProgressReader:
    """Takes nsys' stderr in pieces of any size and passes the percentages on."""

    def __init__(self, file: str, progress: Progress) -> None:
        self._text = f"exporting {file}"
        self._progress = progress
        self._rest = b""
        self._last = -1

    def __call__(self, data: bytes) -> None:
        text = self._rest + data
        found = _PROGRESS.findall(text)
        self._rest = text[-_PROGRESS_TAIL:]
        percent = int(found[-1]) if found else self._last
        if percent > self._last:
            self._last = percent
            self._progress(self._text, min(100, percent))


def _identity(report: Path, file: str, progress: Progress) -> str:
    try:
        return content_identity(report, lambda percent: progress(f"reading {file}", percent))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {why(error)}: copy it again.") from error


def _state(report: Path, file: str) -> tuple[int, int, int]:
    try:
        status = os.stat(report)  # noqa: PTH116 - one call, whatever kind of path
    except OSError as error:
        raise InputError(f"{file} cannot be read any more: {why(error)}: copy it again.") from error
    return status.st_ino, status.st_size, status.st_mtime_ns


def _check_space(folder: Path, report_bytes: int, file: str) -> None:
    needed = _SPACE_FACTOR * report_bytes + _SPACE_EXTRA_BYTES
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise CacheError(f"the cache folder {folder} cannot be used: {why(error)}.") from error
    if free < needed:
        raise CacheError(
            f"{file} needs about {units.size(needed)} for its export and the cache folder {folder} has "
            f"{units.size(free)} left: free space, or name another folder with --cache-dir."
        )


_log = logging.getLogger(__name__)
