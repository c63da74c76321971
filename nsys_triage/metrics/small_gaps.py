"""Idle time before small kernels: where a GPU is starved because its kernels are over before the next one arrives."""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.metrics.gaps import GapTable
from nsys_triage.metrics.kernels import SMALL_NS
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.work import COMPUTE, Workload
from nsys_triage.trace.model import Schema, Trace

SMALL_KERNELS: Final[Schema] = {"own_name": pl.String, "count": pl.UInt32, "ns": pl.Int64}
"""By kernel: how many small ones, and their time. Sorted by count, the most first, then name."""


@dataclass(frozen=True, slots=True)
class SmallGaps:
    """Times are sums over the GPUs."""

    idle_ns: int  # under `launch` or `queued`, in gaps between two small kernels
    gaps: int
    kernels: pl.DataFrame  # SMALL_KERNELS


def small_gaps(
    trace: Trace, workload: Workload, table: GapTable, pieces: pl.DataFrame, work: pl.DataFrame
) -> SmallGaps:
    """Idle time of the ledger pieces under `launch` and `queued` that lies between two small kernels.

    Small is under 10 us; communication is not looked at. `work` are the rows of WORK in the window, of which the
    small kernels are counted.
    """
    small = _is_small(workload.work)
    # the operation that ended last before the gap: GAPS has the one that ends it, and work is sorted by start
    reach = workload.work.select("gpu", "end_ns").with_columns(small.alias("small"))
    before = reach.filter("small").select("gpu", pl.col("end_ns").alias("start_ns")).unique()
    gaps = table.gaps.select("gap", "gpu", "start_ns", small.gather(table.gaps["work"]).alias("before_small"))
    between = gaps.filter("before_small").join(before, on=["gpu", "start_ns"], how="semi")["gap"]
    idle = pieces.filter(
        pl.col("cause").is_in([CODE["launch"], CODE["queued"]]) & pl.col("gap").is_in(between.implode())
    )
    return SmallGaps(
        idle_ns=int((idle["end_ns"] - idle["start_ns"]).sum()),
        gaps=idle["gap"].n_unique(),
        kernels=_by_name(trace, workload, work),
    )


def _is_small(work: pl.DataFrame) -> pl.Series:
    length = work["end_ns"] - work["start_ns"]
    return (work["activity"] == COMPUTE) & (length > 0) & (length < SMALL_NS)


def _by_name(trace: Trace, workload: Workload, work: pl.DataFrame) -> pl.DataFrame:
    kernels = work.filter(pl.col("activity") == COMPUTE)
    by_code = (
        kernels.select((pl.col("end_ns") - pl.col("start_ns")).alias("ns"))
        .with_columns(trace.kernels["name"].gather(kernels["row"]).alias("code"))
        .filter(pl.col("ns").is_between(1, SMALL_NS - 1))
        .group_by("code")
        .agg(pl.len().cast(pl.UInt32).alias("count"), pl.col("ns").sum())
    )
    return (
        by_code.join(workload.names.select("code", "own_name"), on="code", how="left")
        .group_by("own_name")
        .agg(pl.col("count").sum(), pl.col("ns").sum())
        .sort(["count", "own_name"], descending=[True, False])
        .select(list(SMALL_KERNELS))
    )
