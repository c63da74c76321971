"""Rows that cannot be used, and the clock of the capture."""

from pathlib import Path

import pytest

from tests.trace.tables import (
    GRAPH,
    KERNEL,
    MEMCPY,
    MEMSET,
    NVTX,
    RUNTIME,
    SYNC,
    Row,
    call,
    device,
    duration,
    host,
    kernel,
    load,
    nvtx,
)

NONE = {"not_finished": 0, "zero_times": 0, "inverted": 0, "too_long": 0}
EPOCH_NS = 1_700_000_000_000_000_000
SESSION = "TARGET_INFO_SESSION_START_TIME"


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        (10, 20, None),
        (10, 10, None),
        (-50, -20, None),
        (-50, 20, None),
        (0, 20, None),
        (990, 1_400, None),  # past the end of the capture
        (5, 1_005, None),  # as long as the capture
        (0, 0, "zero_times"),
        (None, 20, "zero_times"),
        (10, None, "not_finished"),
        (10, 0, "not_finished"),
        (20, 10, "inverted"),
        (5, -5, "inverted"),
        (5, 1_006, "too_long"),
        (5, 2**63 - 1, "too_long"),
        (-(2**62), 2**63 - 1, "too_long"),
    ],
)
@pytest.mark.parametrize(
    ("table", "frame"), [(KERNEL, "kernels"), (MEMCPY, "memcpys"), (MEMSET, "memsets"), (GRAPH, "graphs")]
)
def test_device_work(
    tmp_path: Path, table: str, frame: str, start: int | None, end: int | None, reason: str | None
) -> None:
    row = kernel if table == KERNEL else device
    trace = load(tmp_path / "t.sqlite", {table: [row(100, 200), row(start, end)], **duration(1_000)})
    assert trace.dropped == NONE | ({reason: 1} if reason else {})
    kept = getattr(trace, frame).select("start_ns", "end_ns").rows()
    assert kept == [(100, 200)] if reason else kept == [(100, 200), (start, end)]
    assert getattr(trace.counts, frame) == 2


def host_rows() -> list[Row]:
    return [host(1, 9_000), host(0, 0), host(7, None), host(7, 0), host(9, 8), host(3, 3)]


@pytest.mark.parametrize(
    ("table", "frame"),
    [
        (RUNTIME, "api"),
        ("OSRT_API", "osrt"),
        ("PROFILER_OVERHEAD", "overheads"),
        ("CUPTI_ACTIVITY_KIND_OVERHEAD", "overheads"),
        ("MPI_OTHER_EVENTS", "host_communication"),
        (SYNC, "syncs"),
    ],
)
def test_host_rows_are_never_too_long(tmp_path: Path, table: str, frame: str) -> None:
    trace = load(tmp_path / "t.sqlite", {table: host_rows(), **duration(1_000)})
    assert trace.dropped == {"not_finished": 2, "zero_times": 1, "inverted": 1, "too_long": 0}
    assert getattr(trace, frame).select("start_ns", "end_ns").rows() == [(1, 9_000), (3, 3)]


def test_every_table_counts_together(tmp_path: Path) -> None:
    tables = {KERNEL: [kernel(0, 0), kernel(5, 4)], RUNTIME: [call(0, 0)], NVTX: [nvtx(8, 7, "r")]}
    assert load(tmp_path / "t.sqlite", tables).dropped == NONE | {"zero_times": 2, "inverted": 2}


def test_without_a_known_length_nothing_is_too_long(tmp_path: Path) -> None:
    trace = load(tmp_path / "t.sqlite", {KERNEL: [kernel(5, 10**15)]})
    assert trace.dropped == NONE
    assert trace.info.duration_ns is None


def shifted(shift: int) -> dict[str, list[Row]]:
    return {"META_DATA_EXPORT": [{"name": "EXPORT_CONFIG_TIME_SHIFT", "value": str(shift)}]}


@pytest.mark.parametrize("shift", [5_000, -5_000, EPOCH_NS + 7])
def test_the_shift_of_the_export_is_taken_off(tmp_path: Path, shift: int) -> None:
    rows = [kernel(shift + start, shift + end) for start, end in ((-30, -20), (10, 20), (0, 0), (40, 0))]
    tables = {
        KERNEL: [*rows, kernel(0, 0)],
        RUNTIME: [call(shift + 5, shift + 6)],
        NVTX: [nvtx(shift + 1, shift + 1_000, "open")],
        "SCHED_EVENTS": [{"start": shift + 3, "globalTid": 1, "cpu": 2, "isSchedIn": 1}],
        SESSION: [{"utcEpochNs": EPOCH_NS}],
        **shifted(shift),
        **duration(1_000),
    }
    trace = load(tmp_path / "t.sqlite", tables)
    assert trace.kernels.select("start_ns", "end_ns").rows() == [(-30, -20), (10, 20)]
    assert trace.dropped == NONE | {"zero_times": 2, "not_finished": 1}
    assert trace.api["start_ns"].to_list() == [5]
    assert trace.nvtx.select("end_ns", "open").rows() == [(1_000, True)]
    assert trace.scheduling["time_ns"].to_list() == [3]


def test_epoch_times_are_relative_to_the_start_of_the_session(tmp_path: Path) -> None:
    times = ((-5, 30), (1_000_003, 1_000_007))
    tables = {
        KERNEL: [*(kernel(EPOCH_NS + start, EPOCH_NS + end) for start, end in times), kernel(0, 0)],
        SESSION: [{"utcEpochNs": EPOCH_NS}],
        **duration(2_000_000),
    }
    trace = load(tmp_path / "t.sqlite", tables)
    # to the nanosecond: a float64 of that size has steps of 256
    assert trace.kernels.select("start_ns", "end_ns").rows() == list(times)
    assert trace.dropped == NONE | {"zero_times": 1}


@pytest.mark.parametrize("session", [[], [{"utcEpochNs": None}], [{"utcEpochNs": 3}]])
def test_epoch_times_without_a_session_start_begin_with_the_earliest_row(
    tmp_path: Path, session: list[Row]
) -> None:
    tables = {
        KERNEL: [
            kernel(EPOCH_NS + 500, EPOCH_NS + 900),
            kernel(0, 0),
            kernel(EPOCH_NS + 200, EPOCH_NS + 300),
        ],
        RUNTIME: [call(EPOCH_NS + 101, EPOCH_NS + 101), call(EPOCH_NS + 150, EPOCH_NS + 170)],
        **({SESSION: session} if session else {}),
    }
    trace = load(tmp_path / "t.sqlite", tables)
    assert trace.kernels["start_ns"].to_list() == [399, 99]
    # of no length and at the new zero, yet not a row without times
    assert trace.api.select("start_ns", "end_ns").rows() == [(0, 0), (49, 69)]
    assert trace.dropped == NONE | {"zero_times": 1}


def test_times_of_a_late_capture_stay_as_they_are(tmp_path: Path) -> None:
    """Captures may begin long after the session: one on a machine that has been up for a year."""
    year = 365 * 86_400 * 10**9
    tables = {KERNEL: [kernel(year, year + 5)], SESSION: [{"utcEpochNs": EPOCH_NS}]}
    assert load(tmp_path / "t.sqlite", tables).kernels["start_ns"].to_list() == [year]
