"""What nsys says when an export fails, in one sentence each.

Messages: section 2.2 of the schema reference, measured with nsys 2022.4.2 and 2023.4.4.
"""

import re
import signal
from typing import Final

from nsys_triage.errors import ExportError
from nsys_triage.ingest.version import Version

_NEWER = re.compile(r"created in Nsight Systems version \(([^)]*)\), newer than your current version")
_NEWER_OLD_NSYS = re.compile(r"Version number is invalid: (\d{4}@\S+)")
_PATH = re.compile(r"(?<![\w./])/(?:[^\s'\"/]+/)+([^\s'\"/]+)")
_LONGEST: Final = 200
READS_ALL_UNNAMED: Final = (2023, 3, 1)
"""Reports up to this release say `1.` in their header instead of a version: who is as new reads them."""

# part of nsys' message, what it means, what to do
_MEANINGS: Final = (
    (
        "database or disk is full",
        "no space was left for its export",
        "free space, or choose another folder with --cache-dir",
    ),
    ("disk I/O error", "its export could not be written", "choose another folder with --cache-dir"),
    (
        "unable to open database file",
        "its export could not be written to the cache folder",
        "choose another folder with --cache-dir",
    ),
    (
        "database is locked",
        "the file system of the cache folder cannot lock files",
        "choose a folder on a local disk with --cache-dir",
    ),
    (
        "Section Table Reference magic number mismatch",
        "it is truncated or has been altered",
        "copy or download it again",
    ),
    ("decompression failed", "it is damaged", "copy or download it again"),
    ("ProtobufParseException", "it is damaged", "copy or download it again"),
    ("StreamSignature", "it is damaged", "copy or download it again"),
    ("Cannot read from stream", "it is damaged", "copy or download it again"),
    ("Version tag is not found", "it is not a report", "give the .nsys-rep that `nsys profile` wrote"),
    ("Invalid version prefix", "it is not a report", "give the .nsys-rep that `nsys profile` wrote"),
    ("File not found", "it is not there any more", "copy it again"),
)


def newer_than_nsys(file: str, capture: Version | None, nsys: Version) -> ExportError:
    """The error for a report from a newer nsys; `capture` None where only that is known."""
    recorded = f"nsys {capture}" if capture else "a newer nsys (2023.1 to 2023.3; its header hides which)"
    needed = ".".join(map(str, capture.release)) if capture else "2023.3.1"
    return ExportError(
        f"{file} was recorded with {recorded}, which nsys {nsys} cannot read: install Nsight "
        f"Systems {needed} or newer (and name it with --nsys), or export the report to SQLite where that is "
        "installed and give the .sqlite."
    )


def export_failure(file: str, nsys: Version, return_code: int, stderr: str) -> ExportError:
    """The error for an export that ended with `return_code` and these messages."""
    newer = _NEWER.search(stderr) or _NEWER_OLD_NSYS.search(stderr)
    if newer:
        return newer_than_nsys(file, Version.find(newer[1]), nsys)
    if "Data.SessionState" in stderr and nsys.release < READS_ALL_UNNAMED:
        return newer_than_nsys(file, None, nsys)
    for part, meaning, advice in _MEANINGS:
        if part in stderr:
            return ExportError(f"{file} was not exported by nsys {nsys}: {meaning}: {advice}.")
    if return_code < 0:
        return ExportError(
            f"{file} was not exported: nsys {nsys} was ended by {_signal_name(-return_code)}, perhaps "
            "because memory ran out: try again where there is more."
        )
    said = _first_line(stderr)
    reason = f"it said `{said}`" if said else f"it ended with code {return_code} and left no complete export"
    return ExportError(
        f"{file} was not exported by nsys {nsys}: {reason}: try a newer Nsight Systems with --nsys."
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _first_line(stderr: str) -> str:
    """The line that says most, without folders."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    line = next((line for line in lines if line.startswith("Exportation error:")), lines[0] if lines else "")
    text = _PATH.sub(r"\1", line.removeprefix("Exportation error:").strip())
    return "".join(char if char.isprintable() else " " for char in text)[:_LONGEST].rstrip(".")
