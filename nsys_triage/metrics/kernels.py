"""Kernels of a window: how long they run, what they are, and which take the time.

Rows are grouped by the code of their name, and only the codes that occur are looked up: text would have to be
copied to every row.
"""

from typing import Final

import polars as pl

from nsys_triage.metrics.histogram import duration_histogram, nearest_rank, nearest_rank_expr
from nsys_triage.metrics.kernels_by_shape import dimensions, kernels_by_shape
from nsys_triage.metrics.occupancy import with_occupancy
from nsys_triage.result.model import ClassTime, KernelRow, Kernels

SMALL_NS: Final = 10_000
"""Kernels shorter than this are small: about what a launch costs the host."""

TOP: Final = 20

_DURATION: Final = pl.col("end_ns") - pl.col("start_ns")
_SHAPE: Final = (
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers"),
    *("static_shared_bytes", "dynamic_shared_bytes"),
)


def summarize_kernels(kernels: pl.DataFrame, names: pl.DataFrame, limits: pl.DataFrame) -> Kernels:
    """Distribution, classes and the `TOP` kernels by total time of the rows, with their whole durations.

    `kernels` has the columns of `KERNELS` and gpu; `names` is what `describe` gives for their names, with
    `text` beside it; `limits` has one row per gpu with the columns of `GPU_INFO`. Codes of the same text are
    one kernel. Without rows the counts are 0, percentiles and shares None, all lists but the histogram empty.
    Raises ValueError where a code has no name.
    """
    durations = kernels.select(_DURATION.alias("duration_ns")).to_series().sort()
    count, total = durations.len(), int(durations.sum())
    small = durations.head(int(durations.search_sorted(SMALL_NS, side="left")))
    by_text = _by_text(kernels, names)
    longest = durations.max()
    return Kernels(
        count=count,
        sum_ns=total,
        p50_ns=nearest_rank(durations, 50),
        p90_ns=nearest_rank(durations, 90),
        p95_ns=nearest_rank(durations, 95),
        p99_ns=nearest_rank(durations, 99),
        max_ns=int(longest) if isinstance(longest, int) else None,
        histogram=duration_histogram(durations),
        small_share=small.len() / count if count else None,
        small_time_share=int(small.sum()) / total if total else None,
        classes=_classes(by_text),
        top=_top(kernels, by_text.head(TOP), limits),
        distinct=by_text.height,
        by_shape=kernels_by_shape(kernels, names),
    )


def _by_text(kernels: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """One row per text: codes (list), kernel_class, count, total_ns, max_ns; by total, then text."""
    by_code = (
        kernels.lazy()
        .group_by("name")
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            _DURATION.sum().alias("total_ns"),
            _DURATION.max().alias("max_ns"),
        )
    )
    by_text = (
        by_code.join(
            names.lazy().select("code", "text", "kernel_class"), left_on="name", right_on="code", how="left"
        )
        .group_by("text")
        .agg(
            pl.col("name").sort().alias("codes"),
            pl.col("kernel_class").first(),
            pl.col("count", "total_ns").sum(),
            pl.col("max_ns").max(),
        )
        .sort(["total_ns", "text"], descending=[True, False])
        .collect()
    )
    nameless = by_text.filter(pl.col("text").is_null())
    if nameless.height:
        raise ValueError(f"kernels without a name: codes {nameless['codes'].item().to_list()}")
    return by_text


def _classes(by_text: pl.DataFrame) -> list[ClassTime]:
    """Count and total of the classes that occur, by total, then name; they sum to those of all kernels."""
    classes = (
        by_text.group_by("kernel_class")
        .agg(pl.col("count", "total_ns").sum())
        .sort(["total_ns", "kernel_class"], descending=[True, False])
    )
    return [
        ClassTime(kernel_class=row["kernel_class"], count=row["count"], total_ns=row["total_ns"])
        for row in classes.iter_rows(named=True)
    ]


def _top(kernels: pl.DataFrame, top: pl.DataFrame, limits: pl.DataFrame) -> list[KernelRow]:
    """Rows of `top` in their order, each with the launch shape that it has most often."""
    numbered = top.with_row_index("rank")
    ranks = numbered.select("rank", pl.col("codes").alias("name")).explode("name")
    rows = kernels.lazy().join(ranks.lazy(), on="name").collect()
    medians = rows.group_by("rank").agg(nearest_rank_expr(_DURATION, 50).alias("p50_ns"))
    shapes = with_occupancy(_usual_shapes(rows), limits)
    found = numbered.join(medians, on="rank").join(shapes, on="rank").sort("rank")
    return [
        KernelRow(
            name=row["text"],
            kernel_class=row["kernel_class"],
            count=row["count"],
            total_ns=row["total_ns"],
            p50_ns=row["p50_ns"],
            max_ns=row["max_ns"],
            occupancy_share=row["occupancy_share"],
            waves=row["waves"],
            grid=dimensions(row, "grid"),
            block=dimensions(row, "block"),
            registers=row["registers"],
            shared_bytes=row["shared_bytes"],
            limited_by=row["limited_by"],
            shapes=row["shapes"],
        )
        for row in found.iter_rows(named=True)
    ]


def _usual_shapes(rows: pl.DataFrame) -> pl.DataFrame:
    """Most frequent launch shape of each rank, of equally frequent ones the smallest; and how many there are.

    Where one shape ran on several GPUs or with several carve-outs, the first GPU and the largest carve-out
    stand for it: the driver chooses the carve-out per launch, and it is 0 where it was not recorded.
    """
    by_shape = rows.group_by("rank", *_SHAPE).agg(
        pl.len().alias("times"), pl.col("gpu").min(), pl.col("shared_carveout_bytes").max()
    )
    return (
        by_shape.sort(["rank", "times", *_SHAPE], descending=[False, True, *(False for _ in _SHAPE)])
        .group_by("rank", maintain_order=True)
        .agg(pl.all().first(), pl.len().cast(pl.Int64).alias("shapes"))
        .with_columns(
            (pl.col("static_shared_bytes").cast(pl.Int64) + pl.col("dynamic_shared_bytes")).alias(
                "shared_bytes"
            )
        )
    )
