"""How densely launching threads were recorded."""

from pathlib import Path

from nsys_triage.metrics.recording_density import recording_density
from tests.builders.trace import PID, TraceBuilder
from tests.rules.support import measured


def test_only_launching_threads_count(tmp_path: Path) -> None:
    # 1 ms: two launches, one other call and three ranges on the launching thread; much on another one
    builder = TraceBuilder().kernel(0, 500).kernel(500, 1000).api("cudaEventQuery_v3020", 100, 101)
    for index in range(3):
        builder.range(f"r{index}", 100 + index, 101 + index)
        builder.range("other", 100 + index, 101 + index, tid=PID + 1)
        builder.api("cudaEventQuery_v3020", 200 + index, 201 + index, tid=PID + 1)
    m = measured(builder, tmp_path)
    found = recording_density(m.trace, m.workload, m.window)
    assert found.api_per_s == 3_000
    assert (found.ranges, found.ranges_per_s, found.ranges_per_launch) == (3, 3_000, 1.5)


def test_window(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 500).kernel(500, 1000).range("a", 100, 110).range("b", 495, 505)
    m = measured(builder, tmp_path, window="0.00049:0.00099")
    found = recording_density(m.trace, m.workload, m.window)
    # the launch at 490 and the range at 495, in half a millisecond
    assert (found.api_per_s, found.ranges_per_s, found.ranges_per_launch) == (2_000, 2_000, 1.0)


def test_no_launches(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000, launch=None).range("a", 100, 110)
    m = measured(builder, tmp_path)
    found = recording_density(m.trace, m.workload, m.window)
    assert (found.api_per_s, found.ranges, found.ranges_per_launch) == (0, 0, 0)
