"""What slow steps at regular intervals lose: the time in which the GPU does not compute, beyond that of other steps."""

from typing import Final

import polars as pl

from nsys_triage.metrics.histogram import nearest_rank_expr
from nsys_triage.metrics.ledger import CODE
from nsys_triage.trace.model import Schema

EXTRA: Final[Schema] = {"cause": pl.UInt8, "ns": pl.Int64}
"""Sorted by ns, the most first, then cause."""
COMPUTING: Final = (CODE["compute"], CODE["graph"])


def stall_extra(split: pl.DataFrame, indices: pl.Series, slow: list[int], startup: pl.Series) -> pl.DataFrame:
    """By cause, how much longer the slow steps together are than as many usual ones (schema EXTRA).

    `split` is time by cause in each step (row, cause, ns) as `step_items.causes_by_step` gives it; `indices` and
    `startup` are the index of each row's step and whether it is start-up; `slow` are indices. Usual is the median
    over the steps that are neither slow nor start-up. Causes of which the slow steps have no more are left out.
    """
    steps = pl.DataFrame([indices.alias("index"), startup.alias("startup")]).with_row_index("row")
    kinds = steps.with_columns(pl.col("index").is_in(slow).alias("slow")).filter(
        pl.col("slow") | ~pl.col("startup")
    )
    full = kinds.join(split.select(pl.col("cause").unique()), how="cross").join(
        split.with_columns(pl.col("row").cast(pl.UInt32)), on=["row", "cause"], how="left"
    )
    times = full.with_columns(pl.col("ns").fill_null(0))
    usual = times.filter(~pl.col("slow")).group_by("cause").agg(nearest_rank_expr("ns", 50).alias("usual_ns"))
    return (
        times.filter("slow")
        .join(usual, on="cause", how="left")
        .group_by("cause")
        .agg((pl.col("ns") - pl.col("usual_ns").fill_null(0)).sum().alias("ns"))
        .filter(pl.col("ns") > 0)
        .sort(["ns", "cause"], descending=[True, False])
        .select(list(EXTRA))
    )
