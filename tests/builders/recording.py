"""What a builder has planted so far: rows by table, with times and texts still to be resolved."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Self, TypedDict, Unpack

from tests.builders.schema import Column, has_table

US: Final = 1.0
MS: Final = 1_000.0
S: Final = 1_000_000.0
PID: Final = 4242
NOT_APPLICABLE: Final = 4_294_967_295  # streamId or eventId of a record that has none


@dataclass(frozen=True, slots=True)
class At:
    """A time in nanoseconds from the start of the capture; how it is stored depends on the export's clock."""

    ns: int


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is stored in StringIds; its column holds the id. Bytes need not be valid UTF-8."""

    value: str | bytes


@dataclass(frozen=True, slots=True)
class Raw:
    """A time in nanoseconds that is stored as it is, whatever the clock: for damaged rows."""

    ns: int | None


class Duration:
    """Stands for the length of the capture, where nsys closes ranges that were still open."""


Time = float | Raw | None
Row = dict[str, object]


class Where(TypedDict, total=False):
    """Where an event happens, as far as it differs from the builder's own place."""

    pid: int
    tid: int
    device: int
    context: int
    stream: int


@dataclass(frozen=True, slots=True)
class Place:
    """A thread of a process, and the stream that its work goes to."""

    pid: int = PID
    tid: int = PID
    device: int = 0
    context: int = 1
    stream: int = 7

    def with_(self, where: Where) -> "Place":
        """This place with some parts replaced; another process without a thread means its main thread."""
        if "pid" in where and "tid" not in where:
            where = {**where, "tid": where["pid"]}
        return replace(self, **where)


@dataclass(slots=True)
class Recording:
    """Everything that one export will hold."""

    version: str
    hardware: int
    vm: int
    shuffle_seed: int | None
    rows: defaultdict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    # what makes up the target, capture and export tables
    gpus: list[Row] = field(default_factory=list)
    cuda_devices: dict[int, dict[int, int]] = field(default_factory=dict)  # pid -> {CUDA ordinal: GPU}
    environment: dict[str, str] = field(default_factory=dict)
    capture_settings: list[tuple[str, str]] = field(default_factory=list)
    export_settings: dict[str, str] = field(default_factory=dict)
    system: dict[str, str] = field(default_factory=dict)  # TARGET_INFO_SYSTEM_ENV
    thread_names: dict[tuple[int, int], str] = field(default_factory=dict)
    process_names: dict[int, str] = field(default_factory=dict)
    # how it is stored
    duration_ns: int | None = None
    stored_shift_ns: int = 0  # added to every event time
    said_shift_ns: int = 0  # what the export says was added
    started_utc_ns: int = 1_780_300_800_123_456_789
    absent: set[str] = field(default_factory=set)
    present: list[str] = field(default_factory=list)
    absent_columns: set[tuple[str, str]] = field(default_factory=set)
    extra_columns: list[tuple[str, Column, object, int | None]] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    # counters
    correlations: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    domains: dict[tuple[int, str], int] = field(default_factory=dict)

    def add(self, table: str, row: Row) -> None:
        """Plants a row; ValueError where the exporter cannot write that table."""
        if not has_table(table, self.version):
            raise ValueError(f"exporter {self.version} has no table {table}")
        self.rows[table].append(row)

    def correlate(self, pid: int) -> int:
        """The next correlation id of a process; two processes get the same ids, as in real captures."""
        self.correlations[pid] += 1
        return self.correlations[pid]

    def global_pid(self, pid: int) -> int:
        """The serialized id of a process."""
        return (self.hardware << 56) | (self.vm << 48) | (pid << 24)

    def global_tid(self, pid: int, tid: int) -> int:
        """The serialized id of a thread."""
        return self.global_pid(pid) | (tid & 0xFFFFFF)


def at(time: Time) -> At | int | None:
    """A time as a row holds it: microseconds from the capture's start become nanoseconds."""
    if time is None:
        return None
    return time.ns if isinstance(time, Raw) else At(round(time * 1000))


class Scope:
    """A recording, and the place where new events happen unless said otherwise."""

    def __init__(self, recording: Recording, place: Place) -> None:
        self._recording = recording
        self._place = place

    def on(self, **where: Unpack[Where]) -> Self:
        """The same trace seen from another thread, process, device or stream."""
        scope = type(self).__new__(type(self))
        Scope.__init__(scope, self._recording, self._place.with_(where))
        return scope

    @property
    def version(self) -> str:
        """The exporter's version."""
        return self._recording.version

    def row(self, table: str, **columns: object) -> Self:
        """A row as given: `At(ns)` for times, `Text("...")` for names, None for NULL, even where the exporter
        declares NOT NULL; columns that are not named are NULL, 0 or empty."""
        self._recording.add(table, columns)
        return self

    def rows(self, table: str, rows: Iterable[Row]) -> Self:
        """Several rows as given."""
        for row in rows:
            self._recording.add(table, dict(row))
        return self
