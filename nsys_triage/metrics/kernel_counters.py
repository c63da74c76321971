"""What the sampled GPU metrics say of the time in which chosen kernels ran, GPU by GPU."""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.intervals import union_length
from nsys_triage.metrics.gpu_samples import filled_samples, means_of
from nsys_triage.metrics.work import COMPUTE, Workload
from nsys_triage.trace.model import Trace

SAMPLED: Final = 0.1
LEAST_CLOCKS: Final = 5


@dataclass(frozen=True, slots=True)
class Counters:
    """Means of one GPU's sampled metrics over the periods that kernels fill."""

    gpu: int  # index in `Gpus.all`
    means: dict[str, float]  # percent metrics as shares 0..1, clocks in MHz
    sampled_ns: int  # the time that those samples speak for
    kernels_ns: int  # how long the kernels ran, by union

    @property
    def tells(self) -> bool:
        """Whether the samples speak for a tenth of the kernels' time: fewer are chance."""
        return self.sampled_ns >= SAMPLED * self.kernels_ns

    @property
    def dram(self) -> float | None:
        """Reads and writes of device memory together, as a share of the peak; None where not sampled."""
        if "dram" in self.means:
            return self.means["dram"]
        parts = [self.means[name] for name in ("dram_read", "dram_write") if name in self.means]
        return min(1.0, sum(parts)) if parts else None


def kernel_counters(trace: Trace, workload: Workload, kernels: pl.DataFrame) -> list[Counters]:
    """The counters of every GPU while `kernels` (rows of WORK) ran on it.

    Only samples count whose period the kernels fill to four fifths. A GPU that the trace does not know, without
    samples or without such kernels is left out.
    """
    found = []
    for gpu in workload.gpus.all:
        own = kernels.filter(pl.col("gpu") == gpu.index)
        if gpu.gpu_id is None or own.is_empty():
            continue
        samples = filled_samples(trace.gpu_metrics, gpu.gpu_id, own)
        if samples.is_empty():
            continue
        sampled = samples.unique("time_ns")["weight"].sum()
        found.append(Counters(gpu.index, means_of(samples), int(sampled), _union_ns(own)))
    return found


def compute_kernels(work: pl.DataFrame) -> pl.DataFrame:
    """The compute kernels of some length among rows of WORK."""
    return work.filter((pl.col("activity") == COMPUTE) & (pl.col("end_ns") > pl.col("start_ns")))


def named_kernels(trace: Trace, workload: Workload, work: pl.DataFrame, chosen: pl.Expr) -> pl.DataFrame:
    """The compute kernels among rows of WORK for whose names (text, kernel_class, own_name) `chosen` is true."""
    codes = workload.names.filter(chosen)["code"]
    rows = compute_kernels(work)
    return rows.filter(trace.kernels["name"].gather(rows["row"]).is_in(codes.implode()))


def _union_ns(rows: pl.DataFrame) -> int:
    return int(union_length(rows)["ns"][0])


def clock_by_thirds(
    trace: Trace, workload: Workload, kernels: pl.DataFrame, start_ns: int, end_ns: int
) -> dict[int, tuple[float, float]]:
    """The median clock in MHz in the first and in the last third of `[start_ns, end_ns)`, by index of the GPU.

    Over samples that `kernels` (rows of WORK) fill, since an idle GPU clocks down; GPUs with fewer than five of them in
    one of the thirds are left out.
    """
    found = {}
    third = (end_ns - start_ns) / 3
    for gpu in workload.gpus.all:
        own = kernels.filter(pl.col("gpu") == gpu.index)
        if gpu.gpu_id is None or own.is_empty():
            continue
        samples = filled_samples(trace.gpu_metrics, gpu.gpu_id, own)
        clock = samples.filter((pl.col("metric") == "sm_clock_mhz") & (pl.col("value") > 0))
        first = clock.filter(pl.col("time_ns").is_between(start_ns, start_ns + third, closed="left"))["value"]
        last = clock.filter(pl.col("time_ns").is_between(end_ns - third, end_ns, closed="left"))["value"]
        if min(first.len(), last.len()) >= LEAST_CLOCKS:
            found[gpu.index] = (_median(first), _median(last))
    return found


def _median(values: pl.Series) -> float:
    return float(values.sort()[(values.len() - 1) // 2])
