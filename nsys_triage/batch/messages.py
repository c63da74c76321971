"""What passes between the batch and the processes that work for it: plain data in MessagePack.

Paths are bytes, as in the file system: text in MessagePack is UTF-8, which the name of a file need not be.
"""

from typing import Final, Literal

import msgspec
from msgspec import Struct

FailureKind = Literal["input", "export", "window", "memory", "timeout", "crashed", "internal", "unfinished"]


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """How every trace is judged: what the command line says, as text, so that it can be sent and hashed."""

    window: str = "auto"
    thresholds: dict[str, float] = {}  # by "rule.name"


class Exporting(Struct, frozen=True, forbid_unknown_fields=True):
    """How reports are exported; it changes no result."""

    nsys: bytes | None = None  # paths
    cache_dir: bytes | None = None
    timeout_s: float | None = None


class LookTask(Struct, frozen=True, tag="look"):
    """Find out what a file is. `export` has a report exported, to read which rank it is."""

    place: bytes  # absolute path, or URL
    size_bytes: int
    version: str  # changes with the file: its time of change, or what a remote file system gives instead
    exporting: Exporting = Exporting()
    export: bool = False


class JobTask(Struct, frozen=True, tag="job"):
    """Analyse a trace, or the traces of a job's ranks."""

    places: list[bytes]
    options: Options
    exporting: Exporting = Exporting()


class Looked(Struct, frozen=True, tag="looked"):
    """A file that can be analysed."""

    kind: Literal["report", "sqlite"]
    content: str  # identity of the content, 40 hexadecimal digits
    filtered: bool = False
    capture_version: str | None = None
    ranks_read: bool = False  # whether rank and world size are known, or known not to be recorded
    rank: int | None = None
    world_size: int | None = None
    started_ns: int | None = None


class Done(Struct, frozen=True, tag="done"):
    """A result, which may say that the trace cannot be judged."""

    json: bytes
    html: bytes


class Failed(Struct, frozen=True, tag="failed"):
    """No result. `members` are inputs of a job, by position, that are to blame and could be left out: reasons."""

    kind: FailureKind
    reason: str
    members: dict[int, str] = {}


Task = LookTask | JobTask
Outcome = Looked | Done | Failed

_PACK: Final = msgspec.msgpack.Encoder()
_TASK: Final = msgspec.msgpack.Decoder(Task)
_OUTCOME: Final = msgspec.msgpack.Decoder(Outcome)


def packed(message: Task | Outcome) -> bytes:
    """The message as bytes."""
    return _PACK.encode(message)


def task_of(data: bytes) -> Task:
    """The task in the bytes. Raises `msgspec.ValidationError` where they are none."""
    return _TASK.decode(data)


def outcome_of(data: bytes) -> Outcome:
    """The outcome in the bytes. Raises `msgspec.ValidationError` where they are none."""
    return _OUTCOME.decode(data)
