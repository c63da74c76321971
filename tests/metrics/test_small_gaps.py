from pathlib import Path

import pytest

from nsys_triage.metrics.small_gaps import SmallGaps, small_gaps
from tests.builders.trace import ADD, ALL_REDUCE, GEMM, TraceBuilder
from tests.rules.support import measured


def found(builder: TraceBuilder, folder: Path, window: str = "all") -> SmallGaps:
    m = measured(builder, folder, window)
    return small_gaps(m.trace, m.workload, m.gaps, m.pieces, m.work)


def test_idle_time_between_two_small_kernels(tmp_path: Path) -> None:
    # 5 us long, one every 12: 9 gaps of 7 us, all for want of a launch
    builder = TraceBuilder().kernels(0, 10, every=12, length=5, name=ADD)
    small = found(builder, tmp_path)
    assert (small.idle_ns, small.gaps) == (63_000, 9)
    assert small.kernels.rows() == [("vectorized_elementwise_kernel", 10, 50_000)]


@pytest.mark.parametrize(("length", "gaps"), [(9.999, 1), (10.0, 0)])
def test_small_is_under_ten_microseconds(tmp_path: Path, length: float, gaps: int) -> None:
    builder = TraceBuilder().kernel(0, length).kernel(20, 25)
    assert found(builder, tmp_path).gaps == gaps


def test_both_sides_have_to_be_small_kernels(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(110, 115).kernel(130, 230)  # large, small, large
    builder.copy(240, 242).kernel(250, 255)  # a copy before a small kernel
    builder.kernel(270, 272, ALL_REDUCE).kernel(285, 288)  # communication is not looked at
    small = found(builder, tmp_path)
    assert (small.idle_ns, small.gaps) == (0, 0)


def test_waits_and_work_of_the_host_are_not_counted(tmp_path: Path) -> None:
    # the host works for 495 us before the second launch: host_compute up to 500, launch from 500 to 510
    builder = TraceBuilder().kernel(0, 5).kernel(510, 515, call=(500, 505))
    assert found(builder, tmp_path).idle_ns == 10_000


def test_kernels_by_count_then_name(tmp_path: Path) -> None:
    builder = (
        TraceBuilder()
        .kernels(0, 2, every=20, length=5, name="b(int)")
        .kernels(40, 2, every=20, length=4, name="a")
    )
    builder.kernels(80, 3, every=20, length=3, name="void ns::c<float>(float*)").kernel(200, 300, GEMM)
    rows = found(builder, tmp_path).kernels.rows()
    assert rows == [("c", 3, 9_000), ("a", 2, 8_000), ("b", 2, 10_000)]


def test_the_window_cuts(tmp_path: Path) -> None:
    builder = TraceBuilder().kernels(0, 10, every=12, length=5)
    # from 24 us on for 24 us: the kernels at 24 and 36, and the gaps behind each
    small = found(builder, tmp_path, "0.000024:0.000048")
    assert (small.idle_ns, small.gaps) == (14_000, 2)
    assert small.kernels["count"].to_list() == [2]
