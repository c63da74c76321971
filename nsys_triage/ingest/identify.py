"""What a file is, told by its content and not by its name.

Formats: section 1 of the schema reference of the SQLite export (headers, trailer, completion marker).
"""

import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from nsys_triage.errors import InputError, UsageError
from nsys_triage.ingest.files import base_name, shell_name, why
from nsys_triage.ingest.sqlite_file import MAGIC as SQLITE_MAGIC
from nsys_triage.ingest.sqlite_file import inspect
from nsys_triage.ingest.version import Version

REPORT_MAGIC: Final = b"NVIDIA Tegra Profiler Report "
REPORT_END: Final = b"U3w[END]"
STREAM_MAGIC: Final = b"U3w[END]NVIDIA Nsight Systems Stream "
LFS_MAGIC: Final = b"version https://git-lfs"
_HEADER = re.compile(rb"NVIDIA Tegra Profiler Report ([0-9@]+)(?:-[0-9a-z]+)?\.\n")
_HEAD_BYTES: Final = 512

# first bytes, what it is, how to unpack it
_PACKED: Final = (
    (b"\x1f\x8b", "gzip", "gunzip -k"),
    (b"PK\x03\x04", "zip", "unzip"),
    (b"PK\x05\x06", "zip", "unzip"),
    (b"\xfd7zXZ\x00", "xz", "xz -dk"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -d"),
    (b"BZh", "bzip2", "bzip2 -dk"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "7z x"),
)


@dataclass(frozen=True, slots=True)
class Identity:
    """A file that can be analysed."""

    kind: Literal["report", "sqlite"]
    file: str  # base name
    capture_version: Version | None = None  # from a report's header, where it is (2023.3.3 and later)
    filtered: bool = False  # an export of chosen tables or times only


def identify(path: Path) -> Identity:
    """What the file is, by its head and its tail, of a SQLite file by its metadata too; opened read-only.

    Raises `UsageError` where it does not exist, and `InputError` with one sentence that says what to do next
    where it is nothing that can be analysed.
    """
    name = base_name(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{name} is a folder: name the reports or exports in it.")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{name} is not a regular file: name a report or an export on disk.")
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
            stream.seek(max(0, status.st_size - len(REPORT_END)))
            tail = stream.read()
    except FileNotFoundError as error:
        raise UsageError(f"{name} does not exist: check the path.") from error
    except NotADirectoryError as error:
        raise UsageError(f"{name} does not exist: a part of its path is a file, not a folder.") from error
    except OSError as error:
        raise InputError(
            f"{name} cannot be read: {why(error)}: check its permissions or copy it again."
        ) from error
    if head.startswith(SQLITE_MAGIC):
        return Identity("sqlite", name, filtered=inspect(path).filtered)
    if not head.startswith(REPORT_MAGIC):
        raise _refusal(name, head, status.st_size)
    if not tail.endswith(REPORT_END):
        raise _truncated(name)
    return Identity("report", name, capture_version=_header_version(head))


def _header_version(head: bytes) -> Version | None:
    """The version in a report's header; None for `1.`, which all reports up to 2023.3.1 say."""
    found = _HEADER.match(head)
    return Version.find(found[1].decode("ascii")) if found else None


def _refusal(name: str, head: bytes, size_bytes: int) -> InputError:
    """What else the file is, in one sentence."""
    shown = shell_name(name)
    if size_bytes == 0:
        return InputError(
            f"{name} is empty (0 bytes), as a failed export or copy leaves it: export or copy it again."
        )
    if head.startswith(STREAM_MAGIC):
        return InputError(
            f"{name} is a raw stream that is not a report yet: run `QdstrmImporter -i {shown}`, which is "
            "in the folder host-linux-x64 of Nsight Systems, and give the .nsys-rep that it writes."
        )
    if head.startswith(LFS_MAGIC):
        return InputError(
            f"{name} is a Git LFS pointer, not the file itself: run `git lfs pull` in its repository."
        )
    packed = _packed(name, head)
    if packed:
        what, command = packed
        return InputError(f"{name} is packed ({what}): unpack it first with `{command} {shown}`.")
    if REPORT_MAGIC.startswith(head):
        return _truncated(name)
    if not head.strip(b"\0"):
        # the header page is written last: an export that was killed has zeros there
        return InputError(
            f"{name} begins with zeros, as an unfinished export or copy does: wait until it is complete, or "
            "export or copy it again."
        )
    return InputError(
        f"{name} is neither an Nsight Systems report nor its SQLite export: give the .nsys-rep that "
        "`nsys profile` wrote, or what `nsys export --type=sqlite` made of it."
    )


def _packed(name: str, head: bytes) -> tuple[str, str] | None:
    """The format of an archive or compressed file and the command that unpacks it."""
    if head[257:262] == b"ustar":
        return "tar", "tar xf"
    for magic, what, command in _PACKED:
        if head.startswith(magic):
            tar = name.lower().endswith((".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".tar.zst"))
            return what, "tar xf" if tar else command
    return None


def _truncated(name: str) -> InputError:
    return InputError(
        f"{name} is truncated or altered (the end mark of a report is missing): copy or download it again, "
        "or record again if the recording was cut off."
    )
