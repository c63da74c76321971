from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_triage.metrics.timeline import GPU_ROWS, HOST_ROWS, MARKS, STEP_MARKS, _binned, build_timeline
from nsys_triage.result.model import Row, Timeline
from tests.builders.trace import ADD, ALL_REDUCE, PID, TraceBuilder
from tests.rules.support import measured

# --- bins ---------------------------------------------------------------------------------------------------


def spans(*rows: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema={"start_ns": pl.Int64, "end_ns": pl.Int64}, orient="row")


def binned(kinds: dict[str, pl.DataFrame], *edges: int) -> list[tuple[int, int, str, float]]:
    found = _binned(kinds, pl.Series(edges, dtype=pl.Int64))
    return found.select("start_ns", "end_ns", "what", "share").rows()


def test_the_kind_with_most_time_in_each_bin() -> None:
    kinds = {"a": spans((0, 40), (100, 160)), "b": spans((40, 100), (160, 200))}
    # 40 and 60 of the first hundred, 60 and 40 of the second
    assert binned(kinds, 0, 100, 200) == [(0, 100, "b", 0.6), (100, 200, "a", 0.6)]


def test_equal_times_go_by_name() -> None:
    assert binned({"b": spans((0, 5)), "a": spans((5, 10))}, 0, 10) == [(0, 10, "a", 0.5)]


def test_neighbours_of_one_kind_are_joined() -> None:
    kinds = {"a": spans((0, 10), (12, 20), (30, 40)), "b": spans((10, 12), (20, 30))}
    # bins 1, 2 and 4 are a: 10, 8 and 10 of 10
    assert binned(kinds, 0, 10, 20, 30, 40) == [(0, 20, "a", 0.9), (20, 30, "b", 1.0), (30, 40, "a", 1.0)]


def test_empty_bins_are_left_out_and_part_neighbours() -> None:
    assert binned({"a": spans((0, 10), (20, 30))}, 0, 10, 20, 30) == [(0, 10, "a", 1.0), (20, 30, "a", 1.0)]
    assert binned({}, 0, 10) == []
    assert binned({"a": spans((40, 50))}, 0, 10) == []


def test_what_reaches_over_the_edges_is_cut() -> None:
    assert binned({"a": spans((-50, 15), (18, 99))}, 0, 10, 20) == [(0, 20, "a", 0.85)]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(1, 6)), max_size=12),
    st.lists(st.integers(0, 40), min_size=2, max_size=8, unique=True).map(sorted),
)
def test_bins_as_counted_moment_by_moment(rows: list[tuple[int, int, int]], edges: list[int]) -> None:
    at, moments = 0, {}
    placed: dict[str, list[tuple[int, int]]] = {"a": [], "b": [], "c": []}
    for kind, pause, length in rows:
        placed["abc"[kind]].append((at + pause, at + pause + length))
        moments.update(dict.fromkeys(range(at + pause, at + pause + length), "abc"[kind]))
        at += pause + length
    found = binned({name: spans(*own) for name, own in placed.items()}, *edges)
    shown = {
        low: what
        for start, end, what, _ in found
        for low in edges[:-1]
        if start <= low < end
    }  # fmt: skip
    expected = {}
    for low, high in pairwise(edges):
        inside = [moments[moment] for moment in range(low, high) if moment in moments]
        if inside:
            expected[low] = max("abc", key=lambda kind: (inside.count(kind), -ord(kind)))
    assert shown == expected
    assert all(0 < share <= 1 for *_, share in found)


# --- rows ---------------------------------------------------------------------------------------------------


def timeline(trace: TraceBuilder, folder: Path, window: str = "all") -> Timeline:
    return measured(trace, folder, window).timeline


def row(found: Timeline, kind: str, number: int = 0) -> Row:
    return [row for row in found.rows if row.kind == kind][number]


def marks(row: Row) -> list[tuple[float, float, str, float]]:
    return [(mark.start_ns / 1_000, mark.end_ns / 1_000, mark.what, mark.share) for mark in row.marks]


def test_busy_and_idle_time_of_a_gpu(tmp_path: Path) -> None:
    # 4 000 us in 400 bins of 10
    trace = (
        TraceBuilder()
        .kernel(1_000, 2_000)
        .copy(2_000, 3_000)
        .kernel(4_000, 4_500, ADD)
        .kernel(4_500, 5_000, ALL_REDUCE)
    )
    found = timeline(trace, tmp_path)
    assert found.bin_ns == 10_000
    assert row(found, "gpu").label == "GPU 0 (NVIDIA H100 80GB HBM3)"
    assert marks(row(found, "gpu")) == [
        (1_000, 2_000, "compute", 1.0),
        (2_000, 3_000, "copy", 1.0),
        (4_000, 4_500, "compute", 1.0),
        (4_500, 5_000, "communication", 1.0),
    ]
    idle = marks(row(found, "idle"))
    assert (idle[0][0], idle[-1][1]) == (3_000, 4_000)
    assert row(found, "idle").label == "GPU 0 (NVIDIA H100 80GB HBM3) idle"


def test_a_short_pause_shows_as_the_share_of_what_runs(tmp_path: Path) -> None:
    # a gap of 3 us in every bin of 10
    trace = TraceBuilder().kernels(1_000, 400, every=10, length=7).kernel(4_997, 5_000)
    assert marks(row(timeline(trace, tmp_path), "gpu")) == [(1_000, 5_000, "compute", pytest.approx(0.7008))]


def test_the_launching_thread(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 5_000, call=(1_000, 1_200))
    # waiting counts before the OS, the OS before other calls
    trace.wait("cudaStreamSynchronize_v3020", 2_000, 3_000).os_call("poll", 2_500, 3_500)
    trace.api("cudaMalloc_v3020", 3_400, 4_000).os_call("read", 4_200, 4_400, tid=99)
    found = row(timeline(trace, tmp_path), "host")
    assert found.label == f"process {PID} launching thread"
    assert marks(found) == [
        (1_000, 1_200, "api", 1.0),
        (2_000, 3_000, "sync", 1.0),
        (3_000, 3_500, "os", 1.0),
        (3_500, 4_000, "api", 1.0),
    ]


def test_the_thread_that_launches_most_and_four_processes(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 5_000, tid=5).kernel(1_000, 1_100, tid=6).kernel(1_200, 1_300, tid=6)
    trace.os_call("poll", 3_000, 3_500, tid=5).os_call("poll", 4_000, 4_500, tid=6)
    assert marks(row(timeline(trace, tmp_path), "host"))[-1] == (4_000, 4_500, "os", 1.0)
    for pid in range(50, 56):
        trace.kernel(1_000, 2_000, pid=pid)
    labels = [r.label for r in timeline(trace, tmp_path).rows if r.kind == "host"]
    assert labels == [f"process {pid} launching thread" for pid in range(50, 50 + HOST_ROWS)]


def test_steps(tmp_path: Path) -> None:
    trace, start = TraceBuilder(), 1_000.0
    for index, length in enumerate((500, 100, 100, 100)):
        trace.range(f"step {index}", start, start + length).kernel(start + 20, start + length)
        start += length
    found = row(timeline(trace, tmp_path), "steps")
    assert [(m.start_ns, m.end_ns, m.what, m.text) for m in found.marks] == [
        (1_000_000, 1_500_000, "startup", "step 0"),
        (1_500_000, 1_600_000, "steady", "step 1"),
        (1_600_000, 1_700_000, "steady", "step 2"),
        (1_700_000, 1_800_000, "steady", "step 3"),
    ]


def test_without_steps_there_is_no_such_row(tmp_path: Path) -> None:
    assert [r.kind for r in timeline(TraceBuilder().kernel(1_000, 2_000), tmp_path).rows] == [
        "gpu",
        "idle",
        "host",
    ]


def test_a_part_of_the_capture(tmp_path: Path) -> None:
    found = timeline(TraceBuilder().kernel(1_000, 2_000).kernel(6_000, 9_000), tmp_path, "0.001:0.005")
    assert found.bin_ns == 10_000
    assert marks(row(found, "gpu")) == [(1_000, 2_000, "compute", 1.0)]
    assert marks(row(found, "idle"))[-1][1] == 5_000


def test_a_window_of_a_few_nanoseconds(tmp_path: Path) -> None:
    found = timeline(TraceBuilder().kernel(1_000, 1_000.05), tmp_path)
    # 50 bins of 1 ns
    assert found.bin_ns == 1
    assert marks(row(found, "gpu")) == [(1_000, 1_000.05, "compute", 1.0)]


def test_at_most_two_thousand_marks(tmp_path: Path) -> None:
    # 18 GPUs with more alternation than there are bins, and many steps
    trace = TraceBuilder(gpus=("H100",) * 18)
    for index in range(60):
        for device in range(18):
            start = 1_000 + 100 * index + 3 * device
            trace.kernel(start, start + 40, device=device, stream=7 + device, launch=None)
            trace.copy(start + 40, start + 80, device=device, stream=7 + device, launch=None)
    m = measured(trace, tmp_path, "all")
    columns = {
        "index": range(1_000),
        "start_ns": range(1_000),
        "end_ns": range(1, 1_001),
        "startup": [False] * 1_000,
    }
    for most in (MARKS, 400):
        found = build_timeline(m.trace, m.workload, m.pieces, m.window, pl.DataFrame(columns), most)
        assert sum(len(r.marks) for r in found.rows) <= most
        assert len([r for r in found.rows if r.kind == "gpu"]) == GPU_ROWS
        assert len(row(found, "steps").marks) <= STEP_MARKS
    # every seventh of 1 000 steps
    found = build_timeline(m.trace, m.workload, m.pieces, m.window, pl.DataFrame(columns))
    assert [mark.text for mark in row(found, "steps").marks[:2]] == ["step 0", "step 7"]
