from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_triage.metrics.ledger import CODE, LEDGER
from nsys_triage.metrics.step_items import LISTED, causes_by_step, periodic_stall, slow_steps, steps_of_window
from nsys_triage.metrics.steps import STEPS, StepTable
from nsys_triage.metrics.window import Window
from nsys_triage.result.model import PeriodicStall
from tests.builders.trace import ALL_REDUCE, GEMM, PID, TraceBuilder
from tests.rules.support import measured

# --- outliers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("durations", "expected"),
    [
        ([], []),
        ([10, 10, 10, 30], [3]),
        ([10, 10, 10, 15], []),  # 1.5 times the median is not more than that
        ([10, 10, 10, 16], [3]),
        ([16, 10, 10, 10], [0]),
        # median 100, median deviation 12: 160 is five deviations above, 161 is more
        ([88, 88, 112, 100, 112, 160], []),
        ([88, 88, 112, 100, 112, 161], [5]),
        ([1, 100, 1, 100, 1, 100], [1, 3, 5]),  # the median is the lower one
        ([1, 100, 100, 100], []),
    ],
)
def test_outliers(durations: list[int], expected: list[int]) -> None:
    assert slow_steps(pl.Series(durations, dtype=pl.Int64)).arg_true().to_list() == expected


def stall(slow: set[int], count: int = 20) -> PeriodicStall | None:
    """Steps of 10, the slow ones of 35."""
    flags = [index in slow for index in range(count)]
    return periodic_stall(list(range(count)), [35 if flag else 10 for flag in flags], flags)


def test_every_fifth_step() -> None:
    assert stall({4, 9, 14, 19}) == PeriodicStall(every=5, steps=4, extra_ns=25)


def test_three_slow_steps_at_least() -> None:
    assert stall({4, 9, 14}) == PeriodicStall(every=5, steps=3, extra_ns=25)
    assert stall({4, 9}) is None
    assert stall(set()) is None


def test_three_quarters_of_the_distances_are_alike() -> None:
    # 5, 5, 5 and 3
    assert stall({1, 6, 11, 16, 19}) == PeriodicStall(every=5, steps=5, extra_ns=25)
    # 5, 5 and 3
    assert stall({1, 6, 11, 14}) is None


def test_slow_steps_in_a_row_are_no_stall() -> None:
    assert stall({3, 4, 5, 6}) is None


def test_all_steps_slow() -> None:
    assert periodic_stall([0, 2, 4], [9, 9, 9], [True] * 3) == PeriodicStall(every=2, steps=3, extra_ns=9)


# --- causes -------------------------------------------------------------------------------------------------


def pieces(*rows: tuple[int, int, int, str]) -> pl.DataFrame:
    """Ledger pieces of (gpu, start, end, cause)."""
    filled = [(gpu, start, end, CODE[cause], None, None) for gpu, start, end, cause in rows]  # type: ignore[index]
    return pl.DataFrame(filled, schema=LEDGER, orient="row").sort("gpu", "start_ns")


def steps(*rows: tuple[int, int], pid: int = 1) -> pl.DataFrame:
    filled = [(pid, index, start, end) for index, (start, end) in enumerate(rows)]
    return pl.DataFrame(filled, schema=STEPS, orient="row")


def test_pieces_are_cut_at_the_steps() -> None:
    own = pieces((0, 0, 10, "compute"), (0, 10, 25, "launch"), (0, 25, 40, "compute"))
    found = causes_by_step(own, steps((5, 20), (20, 30)), [0])
    assert found.rows() == [
        (0, CODE["compute"], 5),
        (0, CODE["launch"], 10),
        (1, CODE["compute"], 5),
        (1, CODE["launch"], 5),
    ]


def test_the_mean_of_the_gpus() -> None:
    own = pieces((0, 0, 10, "compute"), (1, 0, 4, "compute"), (1, 4, 10, "launch"), (2, 0, 10, "copy"))
    assert causes_by_step(own, steps((0, 10)), [0, 1]).rows() == [
        (0, CODE["compute"], 7),
        (0, CODE["launch"], 3),
    ]


def test_steps_that_meet_no_pieces() -> None:
    own = pieces((0, 0, 10, "compute"))
    assert causes_by_step(own, steps((10, 20)), [0]).is_empty()
    assert causes_by_step(own, steps((0, 10)), [1]).is_empty()
    assert causes_by_step(own, steps(), [0]).is_empty()


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["compute", "launch", "copy"])), max_size=10),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=6),
)
def test_steps_split_what_lies_in_them(lengths: list[tuple[int, str]], bounds: list[tuple[int, int]]) -> None:
    at, rows = 0, []
    for length, cause in lengths:
        rows.append((0, at, at + length, cause))
        at += length
    at, cut = 0, []
    for pause, length in bounds:
        cut.append((at + pause, at + pause + length))
        at += pause + length
    found = causes_by_step(pieces(*rows), steps(*cut), [0])
    expected = {
        (index, CODE[cause]): time  # type: ignore[index]
        for index, (start, end) in enumerate(cut)
        for cause in ("compute", "launch", "copy")
        if (time := sum(max(0, min(end, e) - max(start, s)) for _, s, e, c in rows if c == cause))
    }
    assert {(row, cause): ns for row, cause, ns in found.iter_rows()} == expected


# --- the steps of a window ----------------------------------------------------------------------------------


def table(*frames: pl.DataFrame) -> StepTable:
    joined = pl.concat(frames)
    return StepTable(joined, "nvtx", "step #", None, joined)


def test_steps_that_start_in_the_window() -> None:
    own = table(steps((0, 10), (10, 20), (20, 30)))
    found = steps_of_window(own, Window("user", 5, 20, cuts=True, startup_steps={1: 2}))
    assert found.select("index", "duration_ns", "startup").rows() == [(1, 10, True)]
    found = steps_of_window(own, Window("all", 5, 20, cuts=False))
    assert found.select("index", "startup").rows() == [(0, False), (1, False), (2, False)]


def test_the_process_that_has_most_steps_in_the_window() -> None:
    # one process is ahead of the other: of its three steps one starts in the window
    own = table(steps((0, 10), (10, 20), (20, 90), pid=1), steps((30, 50), (50, 70), pid=2))
    found = steps_of_window(own, Window("user", 20, 90, cuts=True, startup_steps={2: 1}))
    assert found.select("pid", "index", "startup").rows() == [(2, 0, True), (2, 1, False)]
    assert steps_of_window(own, Window("all", 0, 90, cuts=False))["pid"].to_list() == [1, 1, 1]


def test_no_steps_in_the_window() -> None:
    found = steps_of_window(table(steps((0, 10))), Window("user", 20, 30, cuts=True))
    assert found.is_empty()
    assert {"duration_ns", "startup"} <= set(found.columns)


# --- the block ----------------------------------------------------------------------------------------------


def job(*lengths: float) -> TraceBuilder:
    """Steps of so many us from 1 000 us on: a kernel but for the last 20 us, and a wait in the middle."""
    trace, start = TraceBuilder(), 1_000.0
    for index, length in enumerate(lengths):
        trace.range(f"step {index}", start, start + length)
        trace.kernel(start + 20, start + length)
        trace.wait("cudaStreamSynchronize_v3020", start + 30, start + length - 5)
        start += length
    return trace


def test_what_each_step_went_to(tmp_path: Path) -> None:
    found = measured(job(300, 100, 100, 160, 100), tmp_path, "auto").step_block
    # the first step is start-up and cut off, the last of the five ends with its range
    assert (found.source, found.name, found.count, found.warmup_count) == ("nvtx", "step #", 4, 1)
    assert (found.p50_ns, found.p95_ns, found.max_ns) == (100_000, 160_000, 160_000)
    assert isinstance(found.items, list)
    first = found.items[0]
    assert (first.index, first.pid, first.start_ns, first.duration_ns) == (1, PID, 1_300_000, 100_000)
    assert (first.busy_ns, first.exposed_communication_ns, first.sync_calls) == (80_000, 0, 1)
    assert sum(entry.ns for entry in first.idle) == 20_000
    assert [step.state for step in found.items] == ["steady", "steady", "slow", "steady"]
    assert found.slow == [3]


def test_start_up_is_marked_where_it_is_not_cut_off(tmp_path: Path) -> None:
    found = measured(job(300, 100, 100, 100, 100), tmp_path, "all").step_block
    assert (found.count, found.warmup_count) == (5, 1)
    assert isinstance(found.items, list)
    assert [step.state for step in found.items] == ["startup", "steady", "steady", "steady", "steady"]
    # percentiles are over the others
    assert (found.p50_ns, found.max_ns) == (100_000, 100_000)


def test_the_last_step_is_not_judged(tmp_path: Path) -> None:
    # what was queued ahead of the GPU lies in it: five steps launched in 100 us each, and 5 ms of work
    trace = TraceBuilder()
    for index in range(5):
        start = 1_000 + 100 * index
        trace.range(f"step {index}", start, start + 90)
        trace.kernel(1_050 + 1_000 * index, 2_050 + 1_000 * index, call=(start + 20, start + 25))
    found = measured(trace, tmp_path, "all").step_block
    assert isinstance(found.items, list)
    assert [step.duration_ns for step in found.items] == [100_000] * 4 + [4_650_000]
    assert (found.p50_ns, found.max_ns) == (100_000, 4_650_000)
    assert found.slow == []
    assert [step.state for step in found.items] == ["steady"] * 5


def test_exposed_communication_of_a_step(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for index in range(4):
        start = 1_000 + 200 * index
        trace.range(f"step {index}", start - 15, start + 180)
        trace.kernel(start, start + 100, GEMM).kernel(start + 80, start + 150, ALL_REDUCE, stream=20)
    found = measured(trace, tmp_path, "all").step_block
    assert isinstance(found.items, list)
    assert [step.exposed_communication_ns for step in found.items] == [50_000] * 4
    assert [step.busy_ns for step in found.items] == [150_000] * 4


def test_a_stall_in_every_third_step(tmp_path: Path) -> None:
    found = measured(job(*[100, 100, 200] * 4, 100), tmp_path, "all").step_block
    assert found.slow == [2, 5, 8, 11]
    assert found.periodic == PeriodicStall(every=3, steps=4, extra_ns=100_000)


def test_without_steps(tmp_path: Path) -> None:
    found = measured(TraceBuilder().kernel(1_000, 1_100), tmp_path, "all").step_block
    assert (found.source, found.name, found.count, found.warmup_count) == ("none", None, 0, 0)
    assert (found.p50_ns, found.p95_ns, found.max_ns) == (None, None, None)
    assert (found.items, found.slow, found.periodic) == ([], [], None)


def test_a_thousand_steps_are_listed(tmp_path: Path) -> None:
    lengths = [100.0] * 2_300
    lengths[1_234] = 400.0
    found = measured(job(500, *lengths), tmp_path, "all").step_block
    assert isinstance(found.items, list)
    assert found.count == 2_301
    assert len(found.items) <= LISTED
    # every third of the others, and those that are marked
    assert len(found.items) == 2 + 767
    states = {step.index: step.state for step in found.items if step.state != "steady"}
    assert states == {0: "startup", 1_235: "slow"}
    assert [step.index for step in found.items] == sorted(step.index for step in found.items)
