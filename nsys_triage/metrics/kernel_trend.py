"""Whether the same kernels run slower later on, or slower on one GPU than on the others.

The same kernel is the same name with the same launch shape. Only launches count beside which no other kernel ran: what
runs at the same time slows a kernel down, too. Durations are compared by their medians.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.metrics.launch_shapes import SHAPE, alone_ns
from nsys_triage.metrics.work import COMMUNICATION, COMPUTE
from nsys_triage.trace.model import Schema, Trace

TREND: Final[Schema] = {
    "gpu": pl.UInt16,
    "name": pl.UInt32,
    "count": pl.Int64,  # launches that ran alone
    "total_ns": pl.Int64,  # of all launches on that GPU, alone or not
    "before_ns": pl.Float64,  # median in the first third, or on the other GPUs
    "after_ns": pl.Float64,  # median in the last third, or on this GPU
    "ratio": pl.Float64,
    "extra_ns": pl.Int64,  # what its launches would take less at the earlier, or the other GPUs', speed
}
"""One row per kernel, launch shape and GPU, the largest total first; ties by gpu, name and shape."""

LEAST_LAUNCHES: Final = 5  # in each third, or on each GPU
LEAST_KERNELS: Final = 3  # kernels that have to agree: one alone may do other work
COMPARED: Final = 0.5  # of the kernel time has to be in kernels that can be compared
AGREE: Final = 0.7  # of the compared time has to be in kernels that are slower by half as much
_LENGTH: Final = pl.col("end_ns") - pl.col("start_ns")


@dataclass(frozen=True, slots=True)
class Slowdown:
    """How much slower one GPU's kernels are, over all that can be compared."""

    gpu: int
    ratio: float  # median over kernel time
    compared_share: float  # of the GPU's kernel time, in kernels that can be compared
    agree_share: float  # of the compared time, in kernels that are slower by at least half of that
    kernels: int  # that can be compared
    extra_ns: int

    @property
    def comparable(self) -> bool:
        """Whether enough kernels, with enough of the time, can be compared."""
        return self.kernels >= LEAST_KERNELS and self.compared_share >= COMPARED

    def by(self, slowdown: float) -> bool:
        """Whether they are slower by that share at least, and agree on it."""
        return self.comparable and self.agree_share >= AGREE and self.ratio >= 1 + slowdown


def undisturbed(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    """The compute kernels among rows of WORK: gpu, start_ns, end_ns, name, SHAPE, `alone` (nothing beside it)."""
    kernels = work.filter(
        pl.col("activity").is_in([COMPUTE, COMMUNICATION]) & (pl.col("end_ns") > pl.col("start_ns"))
    )
    alone = alone_ns(kernels) == kernels["end_ns"] - kernels["start_ns"]
    rows = kernels.with_columns(alone.alias("alone")).filter(pl.col("activity") == COMPUTE)
    columns = trace.kernels.select("name", *SHAPE)[rows["row"]]
    return pl.concat([rows.select("gpu", "start_ns", "end_ns", "alone"), columns], how="horizontal")


def trend(kernels: pl.DataFrame, start_ns: int, end_ns: int) -> pl.DataFrame:
    """Kernels of `undisturbed` by their speed in the first and in the last third of `[start_ns, end_ns)`: TREND.

    Kernels with fewer than five launches in one of the two thirds are left out. `extra_ns` counts the middle and the
    last third against the first, and is 0 where a kernel got faster.
    """
    third = (end_ns - start_ns) / 3
    part = ((pl.col("start_ns") - start_ns) / third).floor().clip(0, 2).cast(pl.Int8)
    own = kernels.with_columns(part.alias("part"))

    def median(number: int) -> pl.Expr:
        return _LENGTH.filter(pl.col("alone") & (pl.col("part") == number)).median()

    def launches(number: int) -> pl.Expr:
        return (pl.col("alone") & (pl.col("part") == number)).sum()

    def extra(number: int) -> pl.Expr:
        return (pl.col(f"median_{number}") - pl.col("median_0")).clip(0).fill_null(0) * pl.col(
            f"count_{number}"
        )

    grouped = own.group_by("gpu", "name", *SHAPE).agg(
        pl.col("alone").sum().cast(pl.Int64).alias("count"),
        _LENGTH.sum().alias("total_ns"),
        *(median(number).alias(f"median_{number}") for number in range(3)),
        *(launches(number).alias(f"count_{number}") for number in range(3)),
    )
    return _finished(
        grouped.filter(
            (pl.col("count_0") >= LEAST_LAUNCHES) & (pl.col("count_2") >= LEAST_LAUNCHES)
        ).with_columns(
            pl.col("median_0").alias("before_ns"),
            pl.col("median_2").alias("after_ns"),
            (extra(1) + extra(2)).alias("extra_ns"),
        )
    )


def against_others(kernels: pl.DataFrame) -> pl.DataFrame:
    """Kernels of `undisturbed` by their speed on each GPU against the median over the other GPUs: TREND.

    Kernels with fewer than five launches on a GPU are left out there.
    """
    by_gpu = (
        kernels.group_by("gpu", "name", *SHAPE)
        .agg(
            pl.col("alone").sum().cast(pl.Int64).alias("count"),
            _LENGTH.sum().alias("total_ns"),
            _LENGTH.filter(pl.col("alone")).median().alias("after_ns"),
        )
        .filter(pl.col("count") >= LEAST_LAUNCHES)
    )
    key = ["name", *SHAPE]
    others = by_gpu.select("gpu", *key, pl.col("after_ns").alias("other_ns"))
    pairs = by_gpu.join(others, on=key, how="inner", suffix="_other").filter(
        pl.col("gpu") != pl.col("gpu_other")
    )
    compared = pairs.group_by("gpu", *key).agg(
        pl.col("count", "total_ns", "after_ns").first(), pl.col("other_ns").median().alias("before_ns")
    )
    slower = (pl.col("after_ns") - pl.col("before_ns")).clip(0) * pl.col("count")
    return _finished(compared.with_columns(slower.alias("extra_ns")))


def _finished(rows: pl.DataFrame) -> pl.DataFrame:
    return (
        rows.with_columns((pl.col("after_ns") / pl.col("before_ns")).alias("ratio"))
        .sort(["total_ns", "gpu", "name", *SHAPE], descending=[True, *[False] * (2 + len(SHAPE))])
        .select(pl.col(name).cast(dtype) for name, dtype in TREND.items())
    )


def slowdown(rows: pl.DataFrame, kernels: pl.DataFrame, gpu: int) -> Slowdown | None:
    """What TREND says of one GPU, all kernels together; None where none of its kernels can be compared."""
    own = rows.filter(pl.col("gpu") == gpu)
    if own.is_empty():
        return None
    all_ns = int(kernels.filter(pl.col("gpu") == gpu).select(_LENGTH.sum()).item())
    compared_ns = int(own["total_ns"].sum())
    ordered = own.sort("ratio", "name", "total_ns").with_columns(
        pl.col("total_ns").cum_sum().alias("until_ns")
    )
    ratio = float(ordered.filter(pl.col("until_ns") * 2 >= compared_ns)["ratio"][0])
    half = 1 + (ratio - 1) / 2
    agreeing = int(own.filter(pl.col("ratio") >= half)["total_ns"].sum())
    return Slowdown(
        gpu,
        ratio,
        compared_ns / all_ns if all_ns else 0.0,
        agreeing / compared_ns if compared_ns else 0.0,
        own.height,
        int(own["extra_ns"].sum()),
    )
