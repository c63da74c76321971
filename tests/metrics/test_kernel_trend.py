from pathlib import Path

import polars as pl
import pytest

from nsys_triage.metrics.kernel_trend import TREND, against_others, slowdown, trend, undisturbed
from nsys_triage.metrics.launch_shapes import SHAPE
from nsys_triage.metrics.work import build_workload
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import ADD, ALL_REDUCE, GEMM, TraceBuilder

SCHEMA = {
    "gpu": pl.UInt16,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "alone": pl.Boolean,
    "name": pl.UInt32,
    **dict.fromkeys(SHAPE, pl.UInt32),
}


def kernels(*rows: tuple[int, int, int, int, bool]) -> pl.DataFrame:
    """Rows of (gpu, name, start, length, alone), all of one shape."""
    shape = [1] * len(SHAPE)
    return pl.DataFrame(
        [(gpu, start, start + length, alone, name, *shape) for gpu, name, start, length, alone in rows],
        schema=SCHEMA,
        orient="row",
    )


def steady(name: int, early: int, late: int, gpu: int = 0) -> list[tuple[int, int, int, int, bool]]:
    """30 launches, one every 100 ns: 20 of them early, 10 late."""
    return [(gpu, name, 100 * i, early if i < 20 else late, True) for i in range(30)]


def test_medians_of_the_thirds() -> None:
    found = trend(kernels(*steady(1, 10, 15)), 0, 3_000)
    assert found.schema == pl.Schema(TREND)
    row = found.row(0, named=True)
    # 10 launches in each third; the last ten take 5 ns longer
    assert (row["count"], row["total_ns"]) == (30, 350)
    assert (row["before_ns"], row["after_ns"], row["ratio"], row["extra_ns"]) == (10.0, 15.0, 1.5, 50)


def test_the_middle_third_counts_too() -> None:
    rows = [(0, 1, 100 * i, 10 if i < 10 else 12 if i < 20 else 15, True) for i in range(30)]
    # ten launches 2 ns longer, ten 5 ns longer
    assert trend(kernels(*rows), 0, 3_000)["extra_ns"].to_list() == [70]


def test_a_kernel_that_got_faster_gives_nothing_back() -> None:
    row = trend(kernels(*steady(1, 10, 8)), 0, 3_000).row(0, named=True)
    assert (row["ratio"], row["extra_ns"]) == (0.8, 0)


def test_five_launches_in_each_third() -> None:
    rows = [(0, 1, at, 10, True) for at in (0, 100, 200, 300, 400, 2_100, 2_200, 2_300, 2_400, 2_500)]
    assert trend(kernels(*rows), 0, 3_000).height == 1
    assert trend(kernels(*rows[:-1]), 0, 3_000).height == 0


def test_launches_beside_other_kernels_do_not_count() -> None:
    rows = [(gpu, name, at, length, at < 2_000) for gpu, name, at, length, _ in steady(1, 10, 15)]
    assert trend(kernels(*rows), 0, 3_000).height == 0


def test_against_the_other_gpus() -> None:
    rows = [(gpu, 1, 100 * i, length, True) for gpu, length in ((0, 10), (1, 14), (2, 12)) for i in range(5)]
    found = against_others(kernels(*rows))
    # the median of the other two: 13, 11 and 12 ns
    assert found.sort("gpu").select("before_ns", "after_ns", "extra_ns").rows() == [
        (13.0, 10.0, 0),
        (11.0, 14.0, 15),
        (12.0, 12.0, 0),
    ]


def test_a_kernel_of_one_gpu_cannot_be_compared() -> None:
    rows = [(0, 1, 100 * i, 10, True) for i in range(5)] + [(1, 2, 100 * i, 10, True) for i in range(5)]
    assert against_others(kernels(*rows)).is_empty()
    # nor one with four launches there
    rows = [(0, 1, 100 * i, 10, True) for i in range(5)] + [(1, 1, 100 * i, 10, True) for i in range(4)]
    assert against_others(kernels(*rows)).is_empty()


def test_slowdown_is_the_median_over_kernel_time() -> None:
    rows = [*steady(1, 100, 200), *steady(2, 20, 22), *steady(3, 20, 20)]
    frame = kernels(*rows)
    found = slowdown(trend(frame, 0, 3_000), frame, 0)
    assert found is not None
    # 4 000, 620 and 600 ns: half of the time is in the first
    assert (found.ratio, found.kernels, found.compared_share) == (2.0, 3, 1.0)
    # slower by half as much (1.5) is the first alone
    assert found.agree_share == pytest.approx(4_000 / 5_220)
    assert found.extra_ns == 1_000 + 20
    assert found.comparable
    assert found.by(1.0)
    assert not found.by(1.01)


def test_two_kernels_are_too_few() -> None:
    frame = kernels(*steady(1, 10, 20), *steady(2, 10, 20))
    found = slowdown(trend(frame, 0, 3_000), frame, 0)
    assert found is not None
    assert not found.comparable
    assert not found.by(0.1)


def test_half_of_the_time_has_to_be_comparable() -> None:
    rare = [(0, 9, 50, 901, True)]
    frame = kernels(*(row for name in (1, 2, 3) for row in steady(name, 10, 10)), *rare)
    found = slowdown(trend(frame, 0, 3_000), frame, 0)
    assert found is not None
    # 900 of 1 801 ns
    assert not found.comparable


def test_without_comparable_kernels() -> None:
    frame = kernels((0, 1, 0, 10, True))
    assert slowdown(trend(frame, 0, 3_000), frame, 0) is None
    assert slowdown(trend(kernels(), 0, 3_000), kernels(), 0) is None


def test_undisturbed_kernels(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 1_100, GEMM).kernel(1_100, 1_200, ADD).kernel(1_300, 1_400, GEMM)
    trace.kernel(1_350, 1_500, ALL_REDUCE, stream=20)
    path = trace.write(tmp_path / "trace.sqlite")
    loaded = load_trace(path, file=path.name, kind="sqlite", capture_version=None)
    found = undisturbed(loaded, build_workload(loaded).work).sort("start_ns")
    # the collective is no compute kernel, but it disturbs one
    assert found.select("start_ns", "alone").rows() == [
        (1_000_000, True),
        (1_100_000, True),
        (1_300_000, False),
    ]
