from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_triage.errors import UsageError, WindowError
from nsys_triage.metrics.steps import find_steps
from nsys_triage.metrics.window import Window, WindowRequest, parse_window, resolve_window, startup_steps
from nsys_triage.metrics.work import build_workload
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import ADD, GEMM, MS, TraceBuilder


def window(trace: TraceBuilder, folder: Path, text: str = "auto") -> Window:
    """The window of the built trace."""
    path = trace.write(folder / "trace.sqlite")
    loaded = load_trace(path, file=path.name, kind="sqlite", capture_version=None)
    workload = build_workload(loaded)
    return resolve_window(loaded, workload, find_steps(loaded, workload), parse_window(text))


def milliseconds(found: Window) -> tuple[float, float]:
    return found.start_ns / 1e6, found.end_ns / 1e6


# --- what the user writes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("auto", WindowRequest("auto")),
        ("all", WindowRequest("all")),
        ("nvtx:forward pass", WindowRequest("nvtx", name="forward pass")),
        ("nvtx:1:2", WindowRequest("nvtx", name="1:2")),
        ("4.02:14.3", WindowRequest("user", 4_020_000_000, 14_300_000_000)),
        ("0:1", WindowRequest("user", 0, 1_000_000_000)),
        (" 1e-3 : 0.000000002e6 ", WindowRequest("user", 1_000_000, 2_000_000)),
        ("0.123456789:1", WindowRequest("user", 123_456_789, 1_000_000_000)),
        ("-1:1", WindowRequest("user", -1_000_000_000, 1_000_000_000)),
    ],
)
def test_windows_as_written(text: str, request_: WindowRequest) -> None:
    assert parse_window(text) == request_


@pytest.mark.parametrize(
    "text", ["", "now", "1", "1:", ":2", "2:1", "1:1", "a:b", "nvtx:", "1:2:3", "nan:1", "0:inf", "AUTO"]
)
def test_what_is_no_window(text: str) -> None:
    with pytest.raises(UsageError):
        parse_window(text)


# --- start-up by steps --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("durations", "expected"),
    [
        ([], 0),
        ([10], 0),
        ([100, 10, 10], 0),  # two would remain
        ([100, 10, 10, 10], 1),
        ([16, 10, 10, 10], 1),
        ([15, 10, 10, 10], 0),  # 1.5 times is not more than 1.5 times
        ([100, 50, 10, 10, 10, 10], 2),
        ([10, 100, 10, 10, 10], 0),  # not leading
        ([100, 10, 10, 100], 1),  # a slow step later on stays
        ([100, 90, 80, 70, 60, 50, 40], 0),  # work that goes on shrinking: 80 of the rest against 40
        (
            [300, 125, 120, 110, 105, 100, 100],
            1,
        ),  # first third of the rest 125 and 120: 120 to 100 is settled
        ([300, 126, 126, 110, 105, 100, 100], 0),  # 126 is more than 1.25 times 100
        ([1, 1, 1, 1], 0),
    ],
)
def test_leading_steps_that_are_start_up(durations: list[int], expected: int) -> None:
    assert startup_steps(durations) == expected


def _as_defined(durations: list[int]) -> int:
    """The definition, word by word."""

    def median(values: list[int]) -> int:
        return sorted(values)[-(-len(values) // 2) - 1]

    count = 0
    while len(durations) - count > 3 and durations[count] > 1.5 * median(durations[count + 1 :]):
        count += 1
    rest = durations[count:]
    third = max(1, len(rest) // 3)
    return count if count and median(rest[:third]) <= 1.25 * median(rest[-third:]) else 0


@given(st.lists(st.integers(1, 60), max_size=14))
def test_start_up_as_defined(durations: list[int]) -> None:
    assert startup_steps(durations) == _as_defined(durations)


def test_many_steps_that_shrink_take_no_time() -> None:
    assert startup_steps(list(range(50_000, 0, -1))) == 0


# --- the windows --------------------------------------------------------------------------------------------


def stepped(
    *lengths: float, loading: tuple[float, float] | None = None, before: bool = False
) -> TraceBuilder:
    """Steps of so many ms from 10 ms on, each filled by one kernel; a module load, a kernel before the steps."""
    trace, start = TraceBuilder(), 10 * MS
    if before:
        trace.kernel(5 * MS, 6 * MS, ADD)
    if loading:
        trace.api("cuModuleLoadData", *loading)
    for index, length in enumerate(lengths):
        trace.range(f"step {index}", start, start + length * MS)
        trace.kernel(start + 20, start + length * MS, GEMM)
        start += length * MS
    return trace


def test_all(tmp_path: Path) -> None:
    found = window(stepped(50, 10, 10, 10), tmp_path, "all")
    assert milliseconds(found) == (10.02, 90)
    assert (found.mode, found.cuts, found.excluded) == ("all", False, [])
    # what is start-up is known all the same
    assert found.startup_steps == {4_242: 1}


def test_slow_first_steps_are_cut_off(tmp_path: Path) -> None:
    found = window(stepped(50, 30, 10, 10, 10), tmp_path)
    assert milliseconds(found) == (90, 120)
    assert found.cuts
    assert [(e.start_ns, e.end_ns) for e in found.excluded] == [(10_020_000, 90_000_000)]
    assert found.excluded[0].reason == (
        "Start-up: 2 slow first steps: more than 1.5 times the median of those after."
    )
    assert found.startup_steps == {4_242: 2}


def test_without_evidence_nothing_is_cut(tmp_path: Path) -> None:
    found = window(stepped(10, 10, 10, 10), tmp_path)
    assert milliseconds(found) == (10.02, 50)
    assert (found.cuts, found.excluded, found.startup_steps) == (False, [], {})


def test_loading_before_the_first_step(tmp_path: Path) -> None:
    found = window(stepped(10, 10, 10, loading=(7 * MS, 9 * MS), before=True), tmp_path)
    assert milliseconds(found) == (10, 40)
    assert found.excluded[0].reason == (
        "Start-up: modules were loaded or memory was first allocated before the first step."
    )
    assert found.startup_steps == {}


@pytest.mark.parametrize("loading", [(1 * MS, 3 * MS), (10.5 * MS, 11 * MS), None])
def test_loading_before_all_work_or_within_steps_is_no_evidence(
    tmp_path: Path, loading: tuple[float, float] | None
) -> None:
    found = window(stepped(10, 10, 10, loading=loading, before=True), tmp_path)
    assert milliseconds(found) == (5, 40)


def test_half_of_the_operations_remain(tmp_path: Path) -> None:
    def trace(before: int, steps: int = 4) -> TraceBuilder:
        built = stepped(*[10] * steps, loading=(7 * MS, 9 * MS))
        for index in range(before):
            built.kernel(5 * MS + 100 * index, 5 * MS + 100 * index + 50, ADD, launch=None)
        return built

    assert milliseconds(window(trace(4), tmp_path)) == (10, 50)
    assert milliseconds(window(trace(5), tmp_path)) == (5, 50)
    assert milliseconds(window(trace(11, 10), tmp_path)) == (5, 110)


def run(*, loads: tuple[float, ...], kernels: int = 40) -> TraceBuilder:
    """Kernels without steps, 1 ms each from 10 ms on, and module loads that end at those times (ms)."""
    trace = TraceBuilder()
    for index in range(kernels):
        start = (10 + index) * MS
        trace.kernel(start, start + 900, f"kernel_{index}")
    for end in loads:
        trace.api("cuModuleLoadData", end * MS - 400, end * MS)
    return trace


def test_without_steps_after_the_loading_before_the_first_long_run(tmp_path: Path) -> None:
    # 40 operations, a long run is four: one between the loads at 10.95 and 11.95, two up to 13.95, then the rest
    found = window(run(loads=(10.95, 11.95, 13.95)), tmp_path)
    assert milliseconds(found) == (13.95, 49.9)
    assert found.excluded[0].reason == (
        "Start-up: module loading, compilation and first allocations before the first long run of work."
    )
    assert found.startup_steps == {}


def test_loading_after_a_long_run_is_no_start_up(tmp_path: Path) -> None:
    # four operations of 40 before any loading are a long run
    assert milliseconds(window(run(loads=(13.95,)), tmp_path)) == (10, 49.9)
    assert milliseconds(window(run(loads=(12.95,)), tmp_path)) == (12.95, 49.9)


def test_loading_that_never_ends(tmp_path: Path) -> None:
    # a load after every third operation: no long run
    found = window(run(loads=tuple(12.95 + 3 * i for i in range(13))), tmp_path)
    assert milliseconds(found) == (10, 49.9)


def test_loading_on_another_thread_is_no_evidence(tmp_path: Path) -> None:
    trace = run(loads=())
    trace.api("cuModuleLoadData", 10.5 * MS, 10.95 * MS, tid=99)
    assert milliseconds(window(trace, tmp_path)) == (10, 49.9)


def test_allocations_and_lazy_loading_count_as_loading(tmp_path: Path) -> None:
    trace = run(loads=()).api("cudaMalloc_v3020", 10.5 * MS, 10.95 * MS)
    assert milliseconds(window(trace, tmp_path)) == (10.95, 49.9)
    trace = run(loads=()).cuda_overhead("lazy_load", 10.5 * MS, 11.95 * MS)
    assert milliseconds(window(trace, tmp_path)) == (11.95, 49.9)


def test_several_processes_have_one_window_from_the_latest_start(tmp_path: Path) -> None:
    trace = stepped(50, 10, 10, 10)  # steady from 60 ms on
    other = trace.on(pid=77, stream=9)
    start = 10 * MS
    for index, length in enumerate((80, 10, 10, 10)):
        other.range(f"step {index}", start, start + length * MS)
        other.kernel(start + 20, start + length * MS, GEMM)
        start += length * MS
    found = window(trace, tmp_path)
    assert milliseconds(found) == (90, 120)
    assert found.startup_steps == {4_242: 1, 77: 1}


def test_a_window_of_the_user(tmp_path: Path) -> None:
    found = window(stepped(50, 10, 10, 10), tmp_path, "0.02:0.065")
    assert milliseconds(found) == (20, 65)
    assert (found.mode, found.cuts, found.excluded) == ("user", True, [])
    assert found.startup_steps == {4_242: 1}


def test_a_range_by_name(tmp_path: Path) -> None:
    trace = stepped(10, 10, 10, 10).range("phase", 15 * MS, 18 * MS).range("phase", 22 * MS, 33 * MS, tid=9)
    found = window(trace, tmp_path, "nvtx:phase")
    # from the first start to the last end
    assert milliseconds(found) == (15, 33)
    assert (found.mode, found.name, found.cuts) == ("nvtx", "phase", True)
    assert found.block().name == "phase"


def test_a_range_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WindowError, match="no NVTX range named 'nothing'"):
        window(stepped(10, 10, 10), tmp_path, "nvtx:nothing")


@pytest.mark.parametrize("text", ["0:0.01", "0.04:5"])
def test_a_window_without_work_names_the_valid_range(tmp_path: Path, text: str) -> None:
    with pytest.raises(WindowError, match=r"it has some between 0\.010020 s and 0\.040000 s\."):
        window(stepped(10, 10, 10), tmp_path, text)


def test_a_window_that_work_just_reaches_into(tmp_path: Path) -> None:
    assert milliseconds(window(stepped(10, 10, 10), tmp_path, "0:0.010021")) == (0, 10.021)


# --- rows ---------------------------------------------------------------------------------------------------


def test_rows_belong_to_the_window_in_which_they_start() -> None:
    frame = pl.DataFrame({"start_ns": [9, 10, 19, 20], "at_ns": [10, 9, 9, 9]})
    found = Window("user", 10, 20, cuts=True)
    assert found.rows(frame)["start_ns"].to_list() == [10, 19]
    assert found.rows(frame, "at_ns")["at_ns"].to_list() == [10]
    # in `all` every row belongs
    assert Window("all", 10, 20, cuts=False).rows(frame).height == 4


def test_a_process_that_comes_late_does_not_cut_the_work_of_the_others(tmp_path: Path) -> None:
    """A helper process loads a module when the other one has long been at work: its start-up is not the capture's."""
    trace = TraceBuilder(gpus=("H100", "H100"))
    main, late = trace.on(pid=100, device=0), trace.on(pid=200, device=1)
    for n in range(200):
        main.kernel(1_000 + n * 500, 1_400 + n * 500, GEMM)
    late.kernel(95_000, 95_100, ADD).api("cuModuleLoadData", 95_200, 97_000)
    for n in range(20):
        late.kernel(97_010 + n * 100, 97_090 + n * 100, ADD)
    assert milliseconds(window(trace, tmp_path)) == (1.0, 100.9)
