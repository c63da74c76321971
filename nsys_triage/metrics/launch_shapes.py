"""Compute kernels by name and launch shape: how often, how long, and how well the shape fills the GPU.

What a kernel's speed is worth is the time in which nothing else computes on its GPU: making a kernel faster that
runs beside another one gives back nothing as long as the other one runs.
"""

from typing import Final

import polars as pl

from nsys_triage.intervals import covered, merge
from nsys_triage.metrics.histogram import nearest_rank_expr
from nsys_triage.metrics.occupancy import OCCUPANCY, complete_limits, with_occupancy
from nsys_triage.metrics.work import COMPUTE, COPY, UNIFIED_KINDS, Workload
from nsys_triage.trace.model import Schema, Trace

SHAPE: Final = (
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers"),
    *("static_shared_bytes", "dynamic_shared_bytes"),
)
LAUNCH_SHAPES: Final[Schema] = {
    "gpu": pl.UInt16,
    "pid": pl.Int32,
    "name": pl.UInt32,
    "text": pl.String,
    "own_name": pl.String,
    "kernel_class": pl.String,
    "grid_x": pl.UInt32,
    "grid_y": pl.UInt32,
    "grid_z": pl.UInt32,
    "block_x": pl.UInt16,
    "block_y": pl.UInt16,
    "block_z": pl.UInt16,
    "registers": pl.UInt16,
    "static_shared_bytes": pl.UInt32,
    "dynamic_shared_bytes": pl.UInt32,
    "count": pl.Int64,
    "total_ns": pl.Int64,
    "median_ns": pl.Int64,
    "alone_ns": pl.Int64,  # while no other compute kernel ran on that GPU
    "first_start_ns": pl.Int64,
    "longest_start_ns": pl.Int64,  # of the longest launch
    "longest_end_ns": pl.Int64,
    "blocks": pl.Int64,  # of the grid
    "sm_count": pl.Int32,
    "compute_major": pl.Int32,
    "compute_minor": pl.Int32,
    **OCCUPANCY,
}
"""Sorted by alone_ns, longest first; ties by gpu, pid, text and shape. Limits are null where the GPU is not known."""

PAGING_SHARE: Final = 0.1
"""A kernel during which pages migrate for so much of its time waits for pages: its length says nothing of its shape."""

_LENGTH: Final = pl.col("end_ns") - pl.col("start_ns")


def launch_shapes(trace: Trace, workload: Workload, work: pl.DataFrame) -> pl.DataFrame:
    """The compute kernels among `work` (rows of WORK) by GPU, process, name and launch shape: LAUNCH_SHAPES.

    Whole durations; kernels that ran while unified memory migrated for a tenth of their time count, but with no
    time alone. Without kernels an empty frame.
    """
    rows = work.filter((pl.col("activity") == COMPUTE) & (pl.col("end_ns") > pl.col("start_ns")))
    kernels = trace.kernels[rows["row"]].with_columns(rows["gpu"])
    kernels = kernels.with_columns(_alone(kernels, _migrations(trace, work)))
    longest = _LENGTH.arg_max()
    grouped = (
        kernels.lazy()
        .group_by("gpu", "pid", "name", *SHAPE)
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            _LENGTH.sum().alias("total_ns"),
            nearest_rank_expr(_LENGTH, 50).alias("median_ns"),
            pl.col("alone_ns").sum(),
            pl.col("start_ns").min().alias("first_start_ns"),
            pl.col("start_ns").get(longest).alias("longest_start_ns"),
            pl.col("end_ns").get(longest).alias("longest_end_ns"),
            # the driver chooses the carve-out per launch, and it is 0 where it was not recorded
            pl.col("shared_carveout_bytes").max(),
        )
        .with_columns((pl.col("grid_x").cast(pl.Int64) * pl.col("grid_y") * pl.col("grid_z")).alias("blocks"))
        .collect()
    )
    limits = workload.gpus.limits()
    named = workload.names.select(pl.col("code").alias("name"), "text", "own_name", "kernel_class")
    sizes = complete_limits(limits).select("gpu", "sm_count", "compute_major", "compute_minor")
    return (
        with_occupancy(grouped, limits)
        .join(named, on="name", how="left")
        .join(sizes, on="gpu", how="left")
        .select(pl.col(name).cast(dtype) for name, dtype in LAUNCH_SHAPES.items())
        .sort(["alone_ns", "gpu", "pid", "text", *SHAPE], descending=[True, *[False] * (3 + len(SHAPE))])
    )


def _migrations(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    """Unified-memory migrations among the work: gpu, start_ns, end_ns."""
    copies = work.filter(pl.col("activity") == COPY)
    unified = trace.memcpys["copy_kind"].gather(copies["row"]).is_in(UNIFIED_KINDS)
    return copies.filter(unified.fill_null(value=False)).select("gpu", "start_ns", "end_ns")


def _alone(kernels: pl.DataFrame, migrations: pl.DataFrame) -> pl.Series:
    """For each kernel (sorted by gpu and start) the time during which no other one of its GPU runs.

    0 where it mostly waits for pages.
    """
    length = kernels["end_ns"] - kernels["start_ns"]
    alone = alone_ns(kernels)
    if migrations.is_empty():
        return alone.alias("alone_ns")
    paging = covered(kernels, migrations, "gpu") >= PAGING_SHARE * length
    return alone.zip_with(~paging, pl.zeros(alone.len(), dtype=pl.Int64, eager=True)).alias("alone_ns")


def alone_ns(rows: pl.DataFrame) -> pl.Series:
    """For each row (sorted by gpu and start) how long no other one of its gpu runs."""
    overlaps = (rows["start_ns"] < rows["end_ns"].shift(1)) & (rows["gpu"] == rows["gpu"].shift(1))
    # most traces have one stream of kernels: nothing overlaps, and nothing has to be looked up
    if overlaps.any():
        return covered(rows, single(rows), "gpu")
    return rows["end_ns"] - rows["start_ns"]


def single(rows: pl.DataFrame) -> pl.DataFrame:
    """The time in which exactly one of the rows of a gpu runs: disjoint intervals (gpu, start_ns, end_ns)."""
    events = pl.concat(
        [
            rows.lazy().select("gpu", pl.col("start_ns").alias("at_ns"), pl.lit(1, pl.Int32).alias("step")),
            rows.lazy().select("gpu", pl.col("end_ns").alias("at_ns"), pl.lit(-1, pl.Int32).alias("step")),
        ]
    )
    pieces = (
        events.sort("gpu", "at_ns")
        # the steps of a GPU sum to 0, so the sum needs no reset between GPUs
        .with_columns(pl.col("step").cum_sum().alias("depth"), pl.col("at_ns").shift(-1).alias("end_ns"))
        # of several events at one moment only the last one's sum has a length
        .filter((pl.col("depth") == 1) & (pl.col("end_ns") > pl.col("at_ns")))
        .select("gpu", pl.col("at_ns").alias("start_ns"), "end_ns")
        .collect()
    )
    return merge(pieces, "gpu")


def exposed_ns(work: pl.DataFrame, chosen: pl.DataFrame) -> int:
    """How long kernels of `chosen` (rows of WORK) run, while no other compute kernel of `work` does, over all GPUs."""
    computing = work.filter((pl.col("activity") == COMPUTE) & (pl.col("end_ns") > pl.col("start_ns")))
    others = computing.join(chosen.select("row"), on="row", how="anti")
    union = merge(chosen, "gpu")
    hidden = covered(union, others, "gpu")
    return int((union["end_ns"] - union["start_ns"] - hidden).sum())
