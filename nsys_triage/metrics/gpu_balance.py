"""How evenly the GPUs of one trace are loaded, over the time in which all of them are at work."""

from dataclasses import dataclass

import polars as pl

from nsys_triage.intervals import clip
from nsys_triage.metrics.ledger import CODE, by_cause
from nsys_triage.metrics.work import COMPUTE, Workload
from nsys_triage.trace.model import Trace


@dataclass(frozen=True, slots=True)
class GpuLoad:
    """One GPU in the common time."""

    gpu: int  # index in `Gpus.all`
    compute_ns: int  # nothing but kernels that compute, or graphs recorded as a whole
    waiting_ns: int  # idle or in exposed communication
    kernels: int


@dataclass(frozen=True, slots=True)
class Balance:
    """All GPUs in the time from the latest of their first starts to the earliest of their last ends."""

    start_ns: int
    end_ns: int
    loads: tuple[GpuLoad, ...]
    alike: float  # least share of a GPU's compute time in kernels that all GPUs run

    @property
    def mean_ns(self) -> float:
        """Compute time, mean of the GPUs."""
        return sum(load.compute_ns for load in self.loads) / len(self.loads)


def gpu_balance(trace: Trace, workload: Workload, pieces: pl.DataFrame) -> Balance | None:
    """The balance of the GPUs of `pieces` (a ledger's); None with fewer than two, or where they share no time."""
    spans = pieces.group_by("gpu").agg(pl.col("start_ns").min(), pl.col("end_ns").max()).sort("gpu")
    if spans.height < 2:
        return None
    start, end = int(spans["start_ns"].max()), int(spans["end_ns"].min())  # type: ignore[arg-type]
    if start >= end:
        return None
    times = by_cause(clip(pieces, start, end), "gpu")
    computing = pl.col("cause").is_in([CODE["compute"], CODE["graph"]])
    waiting = (pl.col("cause") == CODE["communication"]) | (pl.col("cause") > CODE["memset"])
    kernels = _kernels(trace, workload, start, end)
    counts = kernels.group_by("gpu").agg(pl.len().cast(pl.Int64).alias("kernels"))
    loads = (
        spans.select("gpu")
        .join(
            times.filter(computing).group_by("gpu").agg(pl.col("ns").sum().alias("compute")),
            on="gpu",
            how="left",
        )
        .join(
            times.filter(waiting).group_by("gpu").agg(pl.col("ns").sum().alias("waiting")),
            on="gpu",
            how="left",
        )
        .join(counts, on="gpu", how="left")
        .with_columns(pl.col("compute", "waiting", "kernels").fill_null(0))
        .select("gpu", "compute", "waiting", "kernels")
    )
    return Balance(
        start, end, tuple(GpuLoad(*row) for row in loads.iter_rows()), alike(kernels, spans.height)
    )


def _kernels(trace: Trace, workload: Workload, start: int, end: int) -> pl.DataFrame:
    """The compute kernels that start in that time: gpu, name, ns."""
    rows = workload.work.filter(
        (pl.col("activity") == COMPUTE) & pl.col("start_ns").is_between(start, end, closed="left")
    )
    return rows.select(
        "gpu", trace.kernels["name"].gather(rows["row"]), (pl.col("end_ns") - pl.col("start_ns")).alias("ns")
    )


def alike(kernels: pl.DataFrame, gpus: int) -> float:
    """The least share of a GPU's kernel time that is in kernels which all GPUs run; 1 without kernels.

    `kernels` has gpu, name and ns; `gpus` is how many there are.
    """
    everywhere = (
        kernels.group_by("name").agg(pl.col("gpu").n_unique().alias("gpus")).filter(pl.col("gpus") == gpus)
    )
    shares = (
        kernels.with_columns(pl.col("name").is_in(everywhere["name"].implode()).alias("shared"))
        .group_by("gpu")
        .agg((pl.col("ns") * pl.col("shared")).sum().alias("shared"), pl.col("ns").sum())
        .filter(pl.col("ns") > 0)
    )
    return float((shares["shared"] / shares["ns"]).min()) if shares.height else 1.0  # type: ignore[arg-type]
