from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_triage.metrics.steps import STEPS, StepTable, find_steps, in_step, of_main_process
from nsys_triage.metrics.work import build_workload
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import ADD, GEMM, TraceBuilder


def found(trace: TraceBuilder, folder: Path) -> StepTable:
    """The steps of the built trace."""
    path = trace.write(folder / "trace.sqlite")
    loaded = load_trace(path, file=path.name, kind="sqlite", capture_version=None)
    return find_steps(loaded, build_workload(loaded))


def microseconds(table: StepTable) -> list[tuple[int, float, float]]:
    """Index, start and end of each step."""
    return [(index, start / 1_000, end / 1_000) for _, index, start, end in table.steps.iter_rows()]


def ranged(name: str, times: int = 4, *, length: float = 100, every: float = 300) -> TraceBuilder:
    """Ranges of that name from 1 000 us on, each with one kernel, launched 20 us after the range begins."""
    trace = TraceBuilder()
    for index in range(times):
        start = 1_000 + every * index
        trace.range(name.format(index), start, start + length)
        trace.kernel(start + 30, start + 60)
    return trace


# --- ranges -------------------------------------------------------------------------------------------------


def test_from_start_to_start(tmp_path: Path) -> None:
    table = found(ranged("step {}"), tmp_path)
    # the wait between two ranges belongs to the step before it; the last one ends with its range
    assert microseconds(table) == [(0, 1_000, 1_300), (1, 1_300, 1_600), (2, 1_600, 1_900), (3, 1_900, 2_000)]
    assert (table.source, table.name) == ("nvtx", "step #")
    assert table.steps.schema == pl.Schema(STEPS)
    assert table.launched.equals(table.steps)


def test_the_last_step_ends_with_its_device_work(tmp_path: Path) -> None:
    trace = ranged("step {}").kernel(1_980, 2_500, call=(1_950, 1_955))
    # launched after the last range: no work of it
    trace.kernel(2_500, 2_600, call=(2_005, 2_010))
    assert microseconds(found(trace, tmp_path))[-1] == (3, 1_900, 2_500)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("step {}", "step #"),
        ("Training step: 10{}/400", "Training step: #/#"),
        ("iteration", "iteration"),
        ("Batch 00{}", "Batch #"),
        ("anything", "anything"),
    ],
)
def test_names_with_their_numbers_left_out(tmp_path: Path, name: str, pattern: str) -> None:
    assert found(ranged(name), tmp_path).name == pattern


def test_three_ranges_at_least(tmp_path: Path) -> None:
    assert found(ranged("step {}", 3), tmp_path).source == "nvtx"
    assert found(ranged("step {}", 2), tmp_path).source == "none"


def test_more_than_half_of_the_launches_inside(tmp_path: Path) -> None:
    trace = ranged("step {}")
    for index in range(3):
        trace.kernel(5_000 + 100 * index, 5_050 + 100 * index, ADD)
    assert found(trace, tmp_path).source == "nvtx"
    trace.kernel(5_300, 5_350, ADD)  # four of eight
    assert found(trace, tmp_path).source == "none"


def test_half_of_them_within_a_factor_of_two(tmp_path: Path) -> None:
    def trace(*lengths: float) -> TraceBuilder:
        built, start = TraceBuilder(), 1_000.0
        for index, length in enumerate(lengths):
            built.range(f"step {index}", start, start + length).kernel(start + 30, start + 40)
            start += length + 50
        return built

    # median 100: 50 to 200 are near
    assert found(trace(100, 100, 49, 201), tmp_path).source == "nvtx"
    assert found(trace(100, 49, 201, 600, 40), tmp_path).source == "none"


def test_ranges_that_overlap_are_no_steps(tmp_path: Path) -> None:
    assert found(ranged("step {}", length=301), tmp_path).source == "none"
    assert found(ranged("step {}", length=300), tmp_path).source == "nvtx"


def test_open_ranges_are_no_steps(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for index in range(4):
        trace.open_range("step", 1_000 + 300 * index).kernel(1_030 + 300 * index, 1_060 + 300 * index)
    assert found(trace, tmp_path).source == "none"


def test_a_step_by_name_before_the_phase_around_it(tmp_path: Path) -> None:
    trace = ranged("train step {}", 6)
    for index in range(3):
        trace.range(f"phase {index}", 990 + 600 * index, 1_585 + 600 * index)
    assert found(trace, tmp_path).name == "train step #"


def test_the_outermost_of_several_that_are_named_like_steps(tmp_path: Path) -> None:
    trace = ranged("micro batch {}", 6)
    for index in range(3):
        trace.range(f"step {index}", 990 + 600 * index, 1_585 + 600 * index)
    table = found(trace, tmp_path)
    assert table.name == "step #"
    assert table.steps.height == 3


def test_epochs_and_optimizer_steps_are_no_steps(tmp_path: Path) -> None:
    assert found(ranged("epoch {}"), tmp_path).source == "none"
    # optimizer.step is a part of one; where nothing else repeats it is the best there is, but after a real step
    trace = ranged("Optimizer.step#SGD.step", 8)
    for index in range(4):
        trace.range(f"iteration {index}", 990 + 600 * index, 1_585 + 600 * index)
    assert found(trace, tmp_path).name == "iteration #"


def test_every_process_has_its_own(tmp_path: Path) -> None:
    trace = ranged("step {}")
    other = trace.on(pid=77)
    for index in range(3):
        other.range(f"batch {index}", 1_100 + 200 * index, 1_150 + 200 * index)
        other.kernel(1_120 + 200 * index, 1_130 + 200 * index)
    table = found(trace, tmp_path)
    assert table.steps.select("pid", "index").rows() == [
        (77, 0),
        (77, 1),
        (77, 2),
        *[(4_242, i) for i in range(4)],
    ]
    assert table.name == "batch # / step #"


def test_the_launches_of_other_threads_count(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for index in range(4):
        trace.range(f"step {index}", 1_000 + 300 * index, 1_100 + 300 * index)
        trace.kernel(1_030 + 300 * index, 1_060 + 300 * index, tid=99)
    assert found(trace, tmp_path).source == "nvtx"


# --- the launch sequence ------------------------------------------------------------------------------------


def looped(times: int) -> TraceBuilder:
    """Three kernels of 100 us each, launched all at once after a pause: the host is a period ahead."""
    trace = TraceBuilder()
    for index in range(times):
        launch = 1_000 + 300 * index
        for number, name in enumerate((GEMM, ADD, "third")):
            start = 1_300 + 300 * index + 100 * number
            call = (launch + 10 * number, launch + 10 * number + 5)
            trace.kernel(start, start + 100, name, call=call)
    return trace


def test_without_ranges_the_period_of_the_launches(tmp_path: Path) -> None:
    table = found(looped(5), tmp_path)
    assert table.source == "periodicity"
    assert table.name == "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
    assert table.note is not None
    assert "repeats every 3 launches (100 % of them" in table.note
    # by the GPU: from the start of the first kernel on
    assert microseconds(table) == [(i, 1_300 + 300 * i, 1_600 + 300 * i) for i in range(5)]
    # by the host: from its launch on; the last one ends with its device work
    assert [row[2:] for row in table.launched.rows()] == [
        *((1_000_000 + 300_000 * i, 1_300_000 + 300_000 * i) for i in range(4)),
        (2_200_000, 2_800_000),
    ]


def test_ranges_that_are_no_steps_do_not_stand_in_the_way(tmp_path: Path) -> None:
    trace = looped(5).range("init", 0, 500).range("init", 500, 600)
    assert found(trace, tmp_path).source == "periodicity"


def test_periods_of_several_processes(tmp_path: Path) -> None:
    trace = looped(4)
    for index in range(5):
        start = 1_000 + 300 * index
        trace.kernel(start, start + 100, GEMM, pid=77).kernel(start + 100, start + 200, ADD, pid=77)
        trace.kernel(start + 200, start + 220, "third", pid=77)
    table = found(trace, tmp_path)
    assert table.steps.group_by("pid").len().sort("pid").rows() == [(77, 5), (4_242, 4)]


def test_nothing_repeats(tmp_path: Path) -> None:
    table = found(TraceBuilder().kernel(1_000, 1_100).kernel(1_100, 1_200, ADD), tmp_path)
    assert (table.source, table.name) == ("none", None)
    assert table.steps.is_empty()
    assert table.steps.schema == pl.Schema(STEPS)
    assert table.launched.is_empty()


# --- moments in steps ---------------------------------------------------------------------------------------


def steps(*rows: tuple[int, int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=STEPS, orient="row")


def moments(*rows: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema={"pid": pl.Int32, "at_ns": pl.Int64}, orient="row")


def test_the_step_that_holds_a_moment() -> None:
    table = steps((1, 0, 10, 20), (1, 1, 20, 30), (2, 0, 5, 50))
    asked = moments((1, 29), (1, 9), (1, 10), (1, 20), (1, 30), (2, 30), (3, 12))
    assert in_step(asked, table)["index"].to_list() == [1, None, 0, 1, None, 0, None]


def test_moments_without_steps() -> None:
    assert in_step(moments((1, 5)), steps())["index"].to_list() == [None]
    assert in_step(moments(), steps((1, 0, 0, 9))).is_empty()


@given(
    st.lists(st.tuples(st.integers(1, 2), st.integers(1, 6)), max_size=8),
    st.lists(st.tuples(st.integers(1, 3), st.integers(-2, 40)), max_size=12),
)
def test_moments_as_one_by_one(lengths: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    at, rows = {1: 0, 2: 3}, []
    for pid, length in lengths:
        rows.append((pid, sum(row[0] == pid for row in rows), at[pid], at[pid] + length))
        at[pid] += length + length % 2  # with and without a pause
    expected = [
        next((index for pid, index, start, end in rows if pid == own and start <= moment < end), None)
        for own, moment in asked
    ]
    assert in_step(moments(*asked), steps(*sorted(rows)))["index"].to_list() == expected


def test_the_process_with_most_steps() -> None:
    table = steps((1, 0, 0, 9), (2, 0, 0, 4), (2, 1, 4, 9), (3, 0, 0, 4), (3, 1, 4, 9))
    assert of_main_process(table)["pid"].to_list() == [2, 2]
    assert of_main_process(steps()).is_empty()
