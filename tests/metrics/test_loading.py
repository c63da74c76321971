from pathlib import Path

import pytest

from nsys_triage.metrics.loading import Loading, first_starts, loading_by_tenth, summarize_loading
from nsys_triage.metrics.measure import Measurement
from tests.builders.trace import TraceBuilder
from tests.rules.support import measured


def ten(*loads: tuple[int, float]) -> TraceBuilder:
    """Ten kernels, 1 ms apart and 100 us long; before kernel n (n from 1) a module is loaded for so many us.

    The load begins 20 us after the kernel before has ended; the kernel is launched as always, 10 us before it starts.
    """
    builder = TraceBuilder()
    for number in range(10):
        builder.kernel(1000 * number, 1000 * number + 100, name=f"kernel_{number % 2}")
    for number, length in loads:
        begin = 1000 * number - 880
        builder.api("cuModuleLoadData", begin, begin + length)
    return builder


def loading(m: Measurement) -> Loading:
    return summarize_loading(m.trace, m.workload, m.pieces, m.window)


def test_time_by_tenth_of_the_operations(tmp_path: Path) -> None:
    # with the load goes the host time of its gap before it: 20 us each. A load before kernel 3 comes after the start
    # of three of ten operations
    m = measured(ten((1, 500), (3, 100), (9, 50)), tmp_path)
    table = loading_by_tenth(m.trace, m.workload, m.pieces, m.work)
    assert table["ns"].to_list() == [0, 520_000, 0, 120_000, 0, 0, 0, 0, 0, 70_000]


def test_repeated_is_without_the_two_largest_tenths(tmp_path: Path) -> None:
    found = loading(measured(ten((1, 500), (3, 100), (7, 60), (9, 50)), tmp_path))
    assert found.total_ns == 520_000 + 120_000 + 80_000 + 70_000
    assert found.repeated_ns == 80_000 + 70_000
    assert (found.first_ns, found.tenths, found.calls) == (0, 4, 4)


def test_once_and_in_one_later_phase_is_not_repeated(tmp_path: Path) -> None:
    assert loading(measured(ten((1, 500), (6, 400)), tmp_path)).repeated_ns == 0


def test_the_first_tenth_is_told_apart(tmp_path: Path) -> None:
    builder = ten()
    for number in range(10, 20):
        builder.kernel(1000 * number, 1000 * number + 100)
    builder.api("cuModuleLoadData", 120, 320)  # after one of twenty operations has started
    assert loading(measured(builder, tmp_path)).first_ns == 220_000


def test_new_kernels_are_those_that_the_capture_has_not_shown_before(tmp_path: Path) -> None:
    builder = ten().kernel(7500, 7600, name="late").kernel(8500, 8600, name="late")
    m = measured(builder, tmp_path)
    assert loading_by_tenth(m.trace, m.workload, m.pieces, m.work)["new_kernels"].to_list() == [
        2,
        0,
        0,
        0,
        0,
        0,
        1,
        0,
        0,
        0,
    ]
    assert loading(m).late_kernels == 1
    assert first_starts(m.trace, m.workload).rows() == [
        ("kernel_0", 0),
        ("kernel_1", 1_000_000),
        ("late", 7_500_000),
    ]


def test_a_window_has_its_own_tenths_but_names_are_the_captures(tmp_path: Path) -> None:
    m = measured(ten((6, 100)), tmp_path, "0.005:0.0099")  # kernels 5 to 9: the load comes after one of five
    table = loading_by_tenth(m.trace, m.workload, m.pieces, m.work)
    assert table["ns"].to_list() == [0, 0, 120_000, 0, 0, 0, 0, 0, 0, 0]
    assert table["new_kernels"].sum() == 0


@pytest.mark.parametrize(("length", "count"), [(999, 0), (1000, 1)])
def test_slow_first_launches_are_counted(tmp_path: Path, length: float, count: int) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(2000, 2100, "new", call=(500, 500 + length))
    found = loading(measured(builder, tmp_path))
    assert found.slow_launches == count
    assert (found.total_ns > 0) == bool(count)


def test_compilation_that_cuda_reports(tmp_path: Path) -> None:
    builder = ten().cuda_overhead("driver_jit", 120, 500).cuda_overhead("command_buffer_full", 2200, 2300)
    found = loading(measured(builder, tmp_path))
    assert (found.compilations, found.calls) == (1, 0)
    assert found.total_ns == 400_000


def test_nothing_is_loaded(tmp_path: Path) -> None:
    assert loading(measured(ten(), tmp_path)) == Loading(0, 0, 0, 0, 0, 0, 0, 0)
