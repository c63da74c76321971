"""Overhead of the recording: the profiler's own work, and annotation of every operator."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, Passed
from tests.builders.trace import PID, TraceBuilder
from tests.rules.support import outcome

RULE = "profiler-overhead"
FLUSH = "CUDA profiling data flush"


def flushed(flush_us: float = 80.0) -> TraceBuilder:
    """1 ms with a gap from 400 to 500, in which the profiler worked on the launching thread."""
    builder = TraceBuilder().kernel(0, 400).profiler_overhead(FLUSH, 405, 405 + flush_us)
    return builder.kernel(500, 1000, call=(490, 495))


def annotated(ranges: int = 8, idle_us: float = 100.0) -> TraceBuilder:
    """Two launches in 1 ms with `ranges` ranges; the host is late for the second."""
    builder = TraceBuilder().kernel(0, 400)
    for index in range(ranges):
        builder.range(f"aten::op{index}", 401 + index, 401.5 + index)
    begin = 400 + idle_us
    return builder.kernel(begin, 1000, call=(begin - 5, begin - 2))


def test_fires_with_the_profilers_own_time(tmp_path: Path) -> None:
    found = outcome(RULE, flushed(), tmp_path)
    assert isinstance(found, Found)
    assert found.title == "The profiler's own work costs 8.0 % of the time"
    assert found.causes == ("profiler",)
    assert found.stake.high_ns == 80_000
    values = {e.label: e.value for e in found.evidence}
    assert values["idle time while the profiler worked on the launching thread"] == 80_000
    # two launch calls in 1 ms
    assert values["CUDA calls recorded per second on launching threads"] == 2_000


@pytest.mark.parametrize(("flush_us", "fires"), [(49.999, False), (50, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, flush_us: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, flushed(flush_us), tmp_path), Found if fires else Passed)


def test_look_alike_flush_on_another_thread(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400).profiler_overhead(FLUSH, 405, 485, tid=PID + 1)
    assert isinstance(outcome(RULE, builder.kernel(500, 1000, call=(490, 495)), tmp_path), Passed)


def test_look_alike_flush_while_the_gpu_works(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000).profiler_overhead(FLUSH, 405, 905)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_dense_annotation_is_an_upper_bound(tmp_path: Path) -> None:
    # 20 ranges for two launches at 3 us each are 60 us, of 100 us in which the host was late
    found = outcome(RULE, annotated(20), tmp_path)
    assert isinstance(found, Found)
    assert found.title == "Up to 6.0 % of the time may be the cost of 20 NVTX ranges, 10 for each launch"
    assert (found.stake.low_ns, found.stake.high_ns) == (0, 60_000)
    assert found.confidence == "low"
    assert {e.label: e.value for e in found.evidence}["NVTX ranges for each launch"] == "10"


def test_annotation_costs_no_more_than_the_host_was_late(tmp_path: Path) -> None:
    found = outcome(RULE, annotated(40, idle_us=60), tmp_path)
    assert isinstance(found, Found)
    assert found.stake.high_ns == 60_000


@pytest.mark.parametrize(("ratio", "fires"), [(10.001, False), (10, True)])
def test_threshold_of_density(tmp_path: Path, ratio: float, fires: bool) -> None:
    assert isinstance(
        outcome(RULE, annotated(20), tmp_path, ranges_per_launch=ratio), Found if fires else Passed
    )


def test_look_alike_dense_ranges_while_the_gpu_works(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 500).kernel(500, 1000)
    for index in range(40):
        builder.range(f"aten::op{index}", 401 + index, 401.5 + index)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_look_alike_late_host_with_few_ranges(tmp_path: Path) -> None:
    passed = outcome(RULE, annotated(3), tmp_path)
    assert passed == Passed(
        "The profiler's own work takes 0 % of the time; 2 000 CUDA calls and 3 000 NVTX ranges per second were recorded"
        " on launching threads."
    )
