from pathlib import Path

import polars as pl
import pytest

from nsys_triage.metrics.kernel_counters import (
    clock_by_thirds,
    compute_kernels,
    kernel_counters,
    named_kernels,
)
from nsys_triage.metrics.work import Workload, build_workload
from nsys_triage.trace.model import Trace
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import ADD, ALL_REDUCE, TraceBuilder


def loaded(trace: TraceBuilder, folder: Path) -> tuple[Trace, Workload]:
    path = trace.write(folder / "trace.sqlite")
    found = load_trace(path, file=path.name, kind="sqlite", capture_version=None)
    return found, build_workload(found)


def test_only_periods_that_kernels_fill(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 1_180)
    # the first period is full, the second to four fifths, the third empty
    for time, active in ((1_000, 90), (1_100, 50), (1_200, 7)):
        trace.gpu_metrics(time, sm_active=active, dram_read=30, dram_write=25)
    found, workload = loaded(trace, tmp_path)
    counters = kernel_counters(found, workload, compute_kernels(workload.work))
    assert len(counters) == 1
    assert counters[0].means["sm_active"] == pytest.approx((100 * 0.9 + 80 * 0.5) / 180)
    assert counters[0].dram == pytest.approx(0.55)
    assert (counters[0].sampled_ns, counters[0].kernels_ns) == (180_000, 180_000)
    assert counters[0].tells


def test_just_below_four_fifths(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 1_179)
    for time in (1_000, 1_100, 1_200):
        trace.gpu_metrics(time, sm_active=90)
    found, workload = loaded(trace, tmp_path)
    assert kernel_counters(found, workload, compute_kernels(workload.work))[0].sampled_ns == 100_000


def test_a_tenth_of_the_kernel_time_has_to_be_sampled(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 1_100)
    for index in range(50):
        trace.kernel(2_000 + 100 * index, 2_018 + 100 * index)
    for index in range(80):
        trace.gpu_metrics(100 * index, sm_active=90)
    found, workload = loaded(trace, tmp_path)
    kernels = compute_kernels(workload.work)
    # 100 of 1 000 us
    assert kernel_counters(found, workload, kernels)[0].tells
    assert not kernel_counters(found, workload, pl.concat([kernels, kernels[1:2].with_columns(
        pl.lit(9_000_000, pl.Int64).alias("start_ns"), pl.lit(9_000_001, pl.Int64).alias("end_ns")
    )]))[0].tells  # fmt: skip


def test_every_gpu_has_its_own(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100")).kernel(1_000, 1_200).kernel(1_000, 1_200, device=1, stream=9)
    for time in (1_000, 1_100, 1_200):
        trace.gpu_metrics(time, gpu=0, sm_active=90).gpu_metrics(time, gpu=1, sm_active=40)
    found, workload = loaded(trace, tmp_path)
    counters = kernel_counters(found, workload, compute_kernels(workload.work))
    assert [(c.gpu, c.means["sm_active"]) for c in counters] == [
        (0, pytest.approx(0.9)),
        (1, pytest.approx(0.4)),
    ]


def test_without_samples_or_kernels(tmp_path: Path) -> None:
    found, workload = loaded(TraceBuilder().kernel(1_000, 1_200), tmp_path)
    assert kernel_counters(found, workload, compute_kernels(workload.work)) == []
    assert kernel_counters(found, workload, workload.work.clear()) == []


def test_dram_is_unknown_where_it_was_not_sampled(tmp_path: Path) -> None:
    trace = (
        TraceBuilder().kernel(1_000, 1_200).gpu_metrics(1_000, sm_active=90).gpu_metrics(1_100, sm_active=90)
    )
    found, workload = loaded(trace, tmp_path)
    assert kernel_counters(found, workload, compute_kernels(workload.work))[0].dram is None


def test_kernels_by_name(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 1_100).kernel(1_100, 1_200, ADD).kernel(1_200, 1_300, ALL_REDUCE)
    found, workload = loaded(trace, tmp_path)
    assert compute_kernels(workload.work)["start_ns"].to_list() == [1_000_000, 1_100_000]
    chosen = named_kernels(found, workload, workload.work, pl.col("kernel_class") == "elementwise")
    assert chosen["start_ns"].to_list() == [1_100_000]


def test_clocks_of_the_thirds(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 3_000)
    for index in range(31):
        mhz = 1_900 + index if index < 10 else 1_500
        trace.gpu_metrics(100 * index, sm_clock_mhz=mhz * 1_000_000)
    found, workload = loaded(trace, tmp_path)
    kernels = compute_kernels(workload.work)
    # 1 900 to 1 909: the lower median of ten
    assert clock_by_thirds(found, workload, kernels, 0, 3_000_000) == {0: (1_904.0, 1_500.0)}
    # with two of 1 500 in the first third the lower median of twelve; samples after the kernel do not count, so that
    # there are four in the last third of 3 900 us, too few
    assert clock_by_thirds(found, workload, kernels, 0, 3_600_000) == {0: (1_903.0, 1_500.0)}
    assert clock_by_thirds(found, workload, kernels, 0, 3_900_000) == {}
