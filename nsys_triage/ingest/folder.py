"""The traces in a folder that a user gives as one job."""

import re
from pathlib import Path
from typing import Final

from nsys_triage.errors import InputError, UsageError
from nsys_triage.ingest.files import base_name, why

_EXPORT: Final = ".sqlite"
_TRACES: Final = (".nsys-rep", ".qdrep", _EXPORT)


def traces_in(folder: Path) -> list[Path]:
    """The reports and exports in a folder, not in those below it, in the order in which people count: 2 before 10.

    Of a report and its export, which have one name but for the suffix, it is the export, where that is not older, else
    the report. Raises `UsageError` where there is none, and `InputError` where the folder cannot be read.
    """
    name = base_name(folder)
    try:
        found = [p for p in folder.iterdir() if _is_trace(p)]
        times = {path: path.stat().st_mtime_ns for path in found}
    except OSError as error:
        raise InputError(f"{name} cannot be read: {why(error)}: check its permissions.") from error
    if not found:
        raise UsageError(
            f"{name} holds no report and no export: name a folder of .nsys-rep or .sqlite files; `nsys-triage batch`"
            " looks into the folders below, too."
        )
    by_stem: dict[str, list[Path]] = {}
    for path in found:
        by_stem.setdefault(path.stem, []).append(path)
    chosen = [
        # a report that is newer than the export beside it is another recording
        max(same, key=lambda p: (times[p], p.suffix.lower() == _EXPORT, p.name))
        for same in by_stem.values()
    ]
    return sorted(chosen, key=_as_counted)


def _is_trace(path: Path) -> bool:
    return path.suffix.lower() in _TRACES and not path.name.startswith(".") and path.is_file()


def _as_counted(path: Path) -> tuple[list[tuple[int, str]], str]:
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], path.name
