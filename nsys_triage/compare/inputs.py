"""What BEFORE and AFTER are: a trace, a result, or a folder of repeats or of a job's ranks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from nsys_triage.errors import InputError, UsageError
from nsys_triage.ingest import ExportSettings, Source, open_source
from nsys_triage.ingest.files import base_name, why
from nsys_triage.metrics.rank_parts import RANK_VARIABLES, WORLD_VARIABLES, environment_number
from nsys_triage.result.codec import decode
from nsys_triage.result.compare_model import Note
from nsys_triage.result.model import SCHEMA, Result
from nsys_triage.trace import metadata
from nsys_triage.trace.read import Database

Progress = Callable[[str, int | None], None]
_TRACES: Final = (".sqlite", ".nsys-rep", ".qdrep")
_HEAD_BYTES: Final = 4_096
_MOST_RESULT_BYTES: Final = 512 << 20


@dataclass(frozen=True, slots=True)
class RunInput:
    """One run: a result that was made before, or the traces to analyse together."""

    files: tuple[str, ...]  # base names
    result: Result | None = None
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class SideRuns:
    """The runs of one side, and how they were taken."""

    name: str
    runs: tuple[RunInput, ...]
    taken_as: Literal["one run", "repeats", "ranks of one job", "repeats of a job"]
    notes: tuple[Note, ...] = ()


def open_side(path: Path, settings: ExportSettings, progress: Progress | None = None) -> SideRuns:
    """The runs behind a path. In a folder every file is one run, unless the traces say that they are ranks of one job.

    They do where each was recorded with a WORLD_SIZE above 1 and a rank of its own. Folders in the folder are runs.
    Raises `UsageError` where there is nothing to compare, `InputError` for a file that cannot be read.
    """
    name = base_name(path)
    if not path.is_dir():
        return SideRuns(name, (_file(path, settings, progress),), "one run")
    files, ignored = _files(path)
    folders = sorted(p for p in _entries(path) if p.is_dir() and not p.name.startswith(".") and _files(p)[0])
    if not files and not folders:
        raise UsageError(
            f"{name} holds no trace and no result: give a folder of .nsys-rep, .sqlite or .json files."
        )
    if files and folders:
        raise UsageError(
            f"{name} holds both files and folders of runs: put each run into a folder of its own."
        )
    notes = [_ignored(name, ignored)] if ignored else []
    if folders:
        runs = [_folder(folder, settings, progress) for folder in folders]
        return SideRuns(
            name, tuple(runs), "repeats of a job" if len(runs) > 1 else "ranks of one job", tuple(notes)
        )
    singles = [_file(file, settings, progress) for file in files]
    ranks = [_rank(run) for run in singles]
    if len(singles) > 1 and all(rank is not None for rank in ranks):
        known = [rank for rank in ranks if rank is not None]
        if len(set(known)) < len(known):
            raise UsageError(
                f"{name} holds several runs of several ranks: put the ranks of each run into a folder of its own."
            )
        notes.append(_taken(name, len(singles), "ranks of one job", "each was recorded as another rank"))
        return SideRuns(name, (_joined(singles),), "ranks of one job", tuple(notes))
    if len(singles) == 1:
        return SideRuns(name, tuple(singles), "one run", tuple(notes))
    notes.append(
        _taken(name, len(singles), "repeats of one run", "they do not say that they are ranks of one job")
    )
    return SideRuns(name, tuple(singles), "repeats", tuple(notes))


def is_result(path: Path) -> bool:
    """Whether a file is JSON by its content: it begins with an object."""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    except OSError:
        return False


def read_result(path: Path) -> Result:
    """The result in a JSON file. Raises `InputError` where it is none, of another version, or damaged."""
    name = base_name(path)
    try:
        if path.stat().st_size > _MOST_RESULT_BYTES:
            raise InputError(f"{name} is too large for a result of nsys-triage: give the trace itself.")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{name} cannot be read: {why(error)}: check its permissions or copy it again."
        ) from error
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{name} is no result of this version of nsys-triage ({SCHEMA}): make it with"
            " `nsys-triage report TRACE --json FILE`, or give the trace itself."
        ) from error


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise InputError(
            f"{base_name(folder)} cannot be read: {why(error)}: check its permissions."
        ) from error


def _files(folder: Path) -> tuple[list[Path], int]:
    """The traces and results of a folder, and how many files are neither.

    Of a report and its export beside it, as nsys leaves them, the export is taken.
    """
    files = [p for p in _entries(folder) if p.is_file() and not p.name.startswith(".")]
    traces = [p for p in files if p.suffix.lower() in _TRACES]
    exported = {p.stem for p in traces if p.suffix.lower() == ".sqlite"}
    kept = [p for p in traces if p.suffix.lower() == ".sqlite" or p.stem not in exported]
    results = [p for p in files if p.suffix.lower() == ".json" and _says_result(p)]
    return sorted([*kept, *results]), len(files) - len(traces) - len(results)


def _says_result(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return SCHEMA.encode() in file.read(_HEAD_BYTES)
    except OSError:
        return False


def _file(path: Path, settings: ExportSettings, progress: Progress | None) -> RunInput:
    if path.is_file() and is_result(path):
        return RunInput((base_name(path),), result=read_result(path))
    return RunInput((base_name(path),), sources=(open_source(path, settings, progress),))


def _folder(folder: Path, settings: ExportSettings, progress: Progress | None) -> RunInput:
    """A folder that is one run: a file, or the traces of a job's ranks."""
    runs = [_file(file, settings, progress) for file in _files(folder)[0]]
    if len(runs) > 1 and any(run.result is not None for run in runs):
        raise UsageError(
            f"{base_name(folder)} holds several results: make one of the job's ranks with `nsys-triage report`."
        )
    return _joined(runs)


def _joined(runs: Sequence[RunInput]) -> RunInput:
    if len(runs) == 1:
        return runs[0]
    return RunInput(
        tuple(file for run in runs for file in run.files),
        sources=tuple(s for run in runs for s in run.sources),
    )


def _rank(run: RunInput) -> int | None:
    """The rank that a trace was recorded as, of a job of more than one; None for a result."""
    if run.result is not None:
        return None
    (source,) = run.sources
    database = Database(source.path)
    info = metadata.capture_info(
        database,
        metadata.session(database),
        file=source.file,
        kind=source.kind,
        capture_version=None,
        filtered=False,
    )
    world = environment_number(info.environment, WORLD_VARIABLES)
    return environment_number(info.environment, RANK_VARIABLES) if world is not None and world > 1 else None


def _taken(folder: str, count: int, what: str, reason: str) -> Note:
    return Note(
        id="taken-as", level="info", text=f"The {count} files of {folder} were taken as {what}: {reason}."
    )


def _ignored(folder: str, count: int) -> Note:
    noun = "file" if count == 1 else "files"
    return Note(id="ignored-files", level="info", text=f"{count} other {noun} of {folder} left out.")
