from pathlib import Path

import pytest

from nsys_triage.metrics.periodicity import Period, find_period, launch_sequence
from nsys_triage.metrics.work import build_workload
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import ALL_REDUCE, PID, TraceBuilder


def planted(launches: str, *, pause: float = 0, before: str = "", start: float = 1_000) -> TraceBuilder:
    """One kernel of 10 us per letter, named by it; before each letter in `before` the host pauses."""
    trace = TraceBuilder()
    for letter in launches:
        start += pause if letter in before else 0
        trace.kernel(start, start + 10, f"kernel_{letter}")
        start += 10
    return trace


def period(trace: TraceBuilder, folder: Path, pid: int = PID) -> Period | None:
    path = trace.write(folder / "trace.sqlite")
    loaded = load_trace(path, file=path.name, kind="sqlite", capture_version=None)
    return find_period(loaded, build_workload(loaded), pid)


def starts(found: Period | None) -> list[float]:
    """When the steps begin, in microseconds."""
    assert found is not None
    return [start / 1_000 for start in found.steps["start_ns"]]


def test_three_kernels_over_and_over(tmp_path: Path) -> None:
    found = period(planted("abcabcabcabc"), tmp_path)
    assert found is not None
    assert (found.length, found.agreement) == (3, 1.0)
    # without pauses the first kernel begins a step
    assert found.name == "kernel_a"
    assert starts(found) == [1_000, 1_030, 1_060, 1_090]
    assert found.steps["end_ns"].to_list() == [1_030_000, 1_060_000, 1_090_000, 1_120_000]


def test_a_step_begins_after_the_longest_pause(tmp_path: Path) -> None:
    found = period(planted("abcabcabcabcab", pause=50, before="b"), tmp_path)
    assert found is not None
    assert found.name == "kernel_b"
    # the first a is alone, the last b is followed by nothing: two thirds of a period at most
    assert starts(found) == [1_060, 1_140, 1_220, 1_300]
    # the last one ends where the next one would begin
    assert found.steps["end_ns"][-1] == 1_380_000


def test_a_last_period_that_is_nearly_whole(tmp_path: Path) -> None:
    letters = "abcdefghij"
    found = period(planted(letters * 3 + letters[:9]), tmp_path)
    # 9 of 10 launches; it ends with its device work
    assert starts(found) == [1_000, 1_100, 1_200, 1_300]
    assert found is not None
    assert found.steps["end_ns"][-1] == 1_390_000
    assert len(starts(period(planted(letters * 3 + letters[:8]), tmp_path))) == 3


def test_three_times_at_least(tmp_path: Path) -> None:
    assert period(planted("abcdef" * 3), tmp_path) is not None
    assert period(planted("abcdef" * 2 + "abcde"), tmp_path) is None


def test_twelve_launches_at_least(tmp_path: Path) -> None:
    assert period(planted("abcabcabcab"), tmp_path) is None


def test_one_kernel_over_and_over_has_no_period(tmp_path: Path) -> None:
    assert period(planted("a" * 40), tmp_path) is None


def test_a_sequence_without_a_period(tmp_path: Path) -> None:
    assert period(planted("abcdefghijklmnopqrst"), tmp_path) is None


def test_three_quarters_have_to_agree(tmp_path: Path) -> None:
    # 40 launches of period 4; every fourth kernel is another one each time, the others agree: three of four
    agreeing = "".join("abc" + chr(ord("A") + i) for i in range(10))
    found = period(planted(agreeing), tmp_path)
    assert found is not None
    assert (found.length, found.agreement) == (4, 0.75)
    # two of four
    assert (
        period(planted("".join("ab" + chr(0xC0 + 2 * i) + chr(0xC1 + 2 * i) for i in range(10))), tmp_path)
        is None
    )


def test_an_extra_launch_now_and_then(tmp_path: Path) -> None:
    # a kernel that runs in the sixth of twelve steps alone; it shifts nothing but the one distance
    found = period(planted("abcd" * 5 + "abxcd" + "abcd" * 6), tmp_path)
    assert found is not None
    assert found.length == 4
    assert len(starts(found)) == 12


def test_the_shortest_of_periods_that_agree_alike(tmp_path: Path) -> None:
    found = period(planted("ab" * 12), tmp_path)
    assert found is not None
    assert found.length == 2


def test_a_kernel_that_comes_twice_does_not_begin_a_step(tmp_path: Path) -> None:
    # the longest pause is before a, of which there are two in each period
    found = period(planted("abac" * 5, pause=50, before="a"), tmp_path)
    assert found is not None
    assert (found.length, found.name) == (4, "kernel_b")


def test_a_kernel_that_some_steps_lack_does_not_begin_one(tmp_path: Path) -> None:
    # the longest pause is before a, which two of eight steps have not: three of its five distances are a period
    found = period(planted("abcdabcdxbcdabcdybcdabcdabcdabcd", pause=50, before="axy"), tmp_path)
    assert found is not None
    assert (found.length, found.name) == (4, "kernel_b")
    assert len(starts(found)) == 7


def test_a_loop_that_is_less_than_half_of_the_launches_is_no_step(tmp_path: Path) -> None:
    rest = "".join(chr(0xC0 + i) for i in range(40))
    assert period(planted("abc" * 5 + rest), tmp_path) is None


def test_where_launches_run_ahead_the_gpu_says_how_long_a_step_takes(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for index in range(12):
        # all launched within 120 us, each runs 1 ms
        trace.kernel(
            2_000 + 1_000 * index,
            3_000 + 1_000 * index,
            f"kernel_{'ab'[index % 2]}",
            call=(10 * index, 10 * index + 5),
        )
    found = period(trace, tmp_path)
    assert starts(found) == [2_000 + 2_000 * i for i in range(6)]
    assert found is not None
    assert found.steps["launch_start_ns"].to_list() == [20_000 * i for i in range(6)]
    assert found.steps["launch_end_ns"].to_list() == [*(20_000 * i for i in range(1, 6)), 14_000_000]


def test_collectives_are_a_part_of_the_sequence_and_copies_are_not(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for index in range(6):
        start = 1_000 + 100 * index
        trace.kernel(start, start + 10, "kernel_a").copy(start + 10, start + 20)
        trace.kernel(start + 20, start + 30, ALL_REDUCE, stream=20)
    found = period(trace, tmp_path)
    assert found is not None
    assert found.length == 2


def test_graphs_recorded_as_a_whole(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for index in range(6):
        start = 1_000 + 100 * index
        trace.graph(start + 30, start + 60, graph_exec=3).kernel(start + 60, start + 70, "kernel_a")
    found = period(trace, tmp_path)
    assert found is not None
    assert (found.length, found.name) == (2, "CUDA graph")
    # another instance of the graph is another part of the loop
    trace = TraceBuilder()
    for index in range(12):
        start = 1_000 + 100 * index
        trace.graph(start, start + 60, graph_exec=index % 3)
    found = period(trace, tmp_path)
    assert found is not None
    assert found.length == 3


def test_only_the_launches_of_that_process(tmp_path: Path) -> None:
    trace = planted("abc" * 4)
    for index in range(40):
        trace.kernel(1_000 + 10 * index, 1_005 + 10 * index, f"other_{index}", pid=77, stream=9)
    assert period(trace, tmp_path) is not None
    assert period(trace, tmp_path, pid=77) is None
    assert period(trace, tmp_path, pid=78) is None


def test_the_sequence_is_in_the_order_of_launches(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.kernel(1_000, 1_100, "kernel_b", call=(500, 505)).kernel(
        900, 950, "kernel_a", call=(600, 605), stream=20
    )
    # its launch was cut off: it stands where it ran
    trace.kernel(550, 560, "kernel_c", launch=None)
    path = trace.write(tmp_path / "trace.sqlite")
    loaded = load_trace(path, file=path.name, kind="sqlite", capture_version=None)
    workload = build_workload(loaded)
    sequence = launch_sequence(loaded, workload, PID)
    names = dict(workload.names.select("code", "own_name").iter_rows())
    assert [names[token] for token in sequence["token"]] == ["kernel_b", "kernel_c", "kernel_a"]
    assert sequence["at_ns"].to_list() == [500_000, 550_000, 600_000]


@pytest.mark.parametrize("seed", range(3))
def test_rows_in_any_order_give_the_same(tmp_path: Path, seed: int) -> None:
    trace = TraceBuilder(shuffle=seed)
    start = 1_000.0
    for letter in "abcd" * 5:
        trace.kernel(start, start + 10, f"kernel_{letter}")
        start += 10
    assert starts(period(trace, tmp_path)) == [1_000 + 40 * i for i in range(5)]
