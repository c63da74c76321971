"""When each GPU was busy, and with what."""

from typing import Final

import polars as pl

from nsys_triage.intervals import merge, paint
from nsys_triage.metrics.work import ACTIVITIES
from nsys_triage.trace.model import Schema

IDLE: Final = 255
PIECES: Final[Schema] = {"gpu": pl.UInt16, "start_ns": pl.Int64, "end_ns": pl.Int64, "activity": pl.UInt8}
"""A partition of every GPU's time from its first start to its last end, sorted: the first activity present in the
order of ACTIVITIES, or IDLE. Neighbouring pieces may have the same activity."""


def activity_unions(work: pl.DataFrame, gpu: int) -> dict[int, pl.DataFrame]:
    """For each activity of that GPU its union as disjoint intervals."""
    rows = work.filter(pl.col("gpu") == gpu)
    return {
        code: merge(rows.filter(pl.col("activity") == code))
        for code in sorted(rows["activity"].unique().to_list())
    }


def busy_pieces(work: pl.DataFrame) -> pl.DataFrame:
    """The pieces of all GPUs (schema PIECES) over the whole capture; empty where there is no device work."""
    parts = []
    for gpu in sorted(work["gpu"].unique().to_list()):
        unions = {1 << code: union for code, union in activity_unions(work, gpu).items() if union.height}
        if not unions:
            continue
        first = pl.lit(IDLE, pl.UInt8)
        for bit in sorted(unions, reverse=True):
            first = (
                pl.when((pl.col("mask") & bit) > 0)
                .then(pl.lit(bit.bit_length() - 1, pl.UInt8))
                .otherwise(first)
            )
        parts.append(
            paint(unions).select(
                pl.lit(gpu, pl.UInt16).alias("gpu"), "start_ns", "end_ns", first.alias("activity")
            )
        )
    return pl.concat(parts) if parts else pl.DataFrame(schema=PIECES)


def activity_name(code: int) -> str:
    """The cause of the ledger that a busy activity is."""
    return ACTIVITIES[code]
