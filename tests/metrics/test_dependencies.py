from pathlib import Path

import pytest

from nsys_triage.metrics.dependencies import (
    EVENT,
    OTHER_GPU,
    OTHER_PROCESS,
    OTHER_STREAM,
    SAME_STREAM,
    queued_gaps,
)
from tests.builders.trace import PID, At, TraceBuilder
from tests.rules.support import measured

EARLY = (-50, -45)


def kinds(builder: TraceBuilder, folder: Path, window: str = "all") -> list[tuple[object, ...]]:
    m = measured(builder, folder, window)
    return queued_gaps(m.trace, m.workload, m.gaps, m.pieces).rows()


def wait_event(builder: TraceBuilder, at: float, stream: int) -> TraceBuilder:
    """A cudaStreamWaitEvent call of 1 us and the record of a stream's wait for an event that it leaves."""
    correlation = 900 + int(at)
    builder.api("cudaStreamWaitEvent_v3020", at, at + 1, correlation=correlation)
    times = {"start": At(round(at * 1000)), "end": At(round(at * 1000) + 500)}
    place = {
        "deviceId": 0,
        "contextId": 1,
        "streamId": stream,
        "eventId": 3,
        "eventSyncId": 0,
        "globalPid": (1 << 48) | (PID << 24),
    }
    return builder.row(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **times, **place, correlationId=correlation, syncType=2
    )


def test_the_same_stream(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(103, 200, call=EARLY)
    assert kinds(builder, tmp_path) == [(0, 0, 3_000, SAME_STREAM, 7, 7, None)]


def test_another_stream(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(103, 200, call=EARLY, stream=20)
    assert kinds(builder, tmp_path) == [(0, 0, 3_000, OTHER_STREAM, 20, 7, None)]


def test_its_own_stream_goes_before_others_that_end_at_the_same_moment(tmp_path: Path) -> None:
    builder = (
        TraceBuilder()
        .kernel(0, 100, stream=5)
        .kernel(0, 100, stream=20)
        .kernel(103, 200, call=EARLY, stream=20)
    )
    assert kinds(builder, tmp_path) == [(0, 0, 3_000, SAME_STREAM, 20, 20, None)]


def test_an_event_that_the_stream_was_told_to_wait_for(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(103, 200, call=EARLY, stream=20)
    assert kinds(wait_event(builder, -60, 20), tmp_path) == [(0, 0, 3_000, EVENT, 20, 7, None)]


@pytest.mark.parametrize("stream", [20, 21])
def test_an_event_before_the_launch_before_or_of_another_stream_is_none(tmp_path: Path, stream: int) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(20, 30, call=(-58, -55), stream=20)
    builder.kernel(103, 200, call=EARLY, stream=20)
    # told at -70, before the launch at -58; or another stream is told at -53
    wait_event(builder, -70 if stream == 20 else -53, stream)
    assert kinds(builder, tmp_path)[0][3] == OTHER_STREAM


def test_another_process_on_the_gpu(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).on(pid=9000).kernel(230, 300, call=EARLY)
    assert kinds(builder, tmp_path) == [(0, 0, 130_000, OTHER_PROCESS, 7, 7, None)]


@pytest.mark.parametrize(
    ("end", "kind"), [(179.999, SAME_STREAM), (180, OTHER_GPU), (199, OTHER_GPU), (201, SAME_STREAM)]
)
def test_another_gpu_that_ends_shortly_before(tmp_path: Path, end: float, kind: str) -> None:
    # the first GPU is idle from 100 to 200; what the second one ends within 20 us before that is what it waited for
    builder = TraceBuilder(gpus=("H100", "H100")).kernel(0, 100).kernel(200, 300, call=EARLY)
    builder.kernel(0, end, device=1)
    rows = kinds(builder, tmp_path)
    assert rows[0][3] == kind
    assert rows[0][6] == (1 if kind == OTHER_GPU else None)


def test_another_gpu_of_another_process_is_none(tmp_path: Path) -> None:
    builder = TraceBuilder(gpus=("H100", "H100")).kernel(0, 100).kernel(200, 300, call=EARLY)
    builder.on(pid=9000).kernel(0, 195, device=1)
    assert kinds(builder, tmp_path)[0][3] == SAME_STREAM


def test_only_queued_time_in_the_window_counts(tmp_path: Path) -> None:
    # the second gap is for want of a launch
    builder = TraceBuilder().kernel(0, 100).kernel(110, 200, call=EARLY).kernel(300, 400, call=(290, 295))
    assert [row[2] for row in kinds(builder, tmp_path)] == [10_000]
    assert [row[2] for row in kinds(builder, tmp_path, "0.000104:0.0003")] == [6_000]


def test_no_queued_gaps(tmp_path: Path) -> None:
    assert kinds(TraceBuilder().kernel(0, 100).kernel(100, 200), tmp_path) == []
