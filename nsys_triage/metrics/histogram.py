"""Distributions: histograms with fixed edges, and percentiles that are values which occur.

The edges are the same in every result, so that two results can be compared bucket by bucket; every bucket is
listed, the empty ones too.
"""

from typing import Final

import polars as pl

from nsys_triage.result.model import Bucket, SizeBucket

_US: Final = 1_000
_MS: Final = 1_000_000
_S: Final = 1_000_000_000
_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30

DURATION_EDGES_NS: Final[tuple[int, ...]] = (
    0,
    *(number * _US for number in (1, 3, 10, 30, 100, 300)),
    *(number * _MS for number in (1, 3, 10, 30, 100, 300)),
    *(number * _S for number in (1, 3, 10, 30, 100)),
)
"""Lower edges of the duration buckets; the last bucket has no upper edge."""

SIZE_EDGES: Final[tuple[int, ...]] = (
    0,
    64,
    *(number * _KIB for number in (1, 4, 16, 64, 256)),
    *(number * _MIB for number in (1, 4, 16, 64, 256)),
    _GIB,
)
"""Lower edges of the size buckets in bytes; 64 KiB, below which a copy is small, is one of them."""


def duration_histogram(durations: pl.Series) -> list[Bucket]:
    """Durations in nanoseconds by bucket `[from_ns, to_ns)`: how many, and their total.

    All buckets of `DURATION_EDGES_NS`, ascending, also for an empty series (counts of 0). Nulls are not
    counted. A sorted series (flag set) is not sorted again.
    """
    return [
        Bucket(from_ns=low, to_ns=high, count=count, total_ns=total)
        for low, high, count, total in _buckets(durations, DURATION_EDGES_NS)
    ]


def size_histogram(sizes: pl.Series) -> list[SizeBucket]:
    """Sizes in bytes by bucket `[from_bytes, to_bytes)`: how many, and their total.

    All buckets of `SIZE_EDGES`, ascending, also for an empty series (counts of 0). Nulls are not counted.
    """
    return [
        SizeBucket(from_bytes=low, to_bytes=high, count=count, total_bytes=total)
        for low, high, count, total in _buckets(sizes, SIZE_EDGES)
    ]


def _buckets(values: pl.Series, edges: tuple[int, ...]) -> list[tuple[int, int | None, int, int]]:
    ordered = values.drop_nulls().cast(pl.Int64).sort()
    # what lies below the first edge belongs to the first bucket, so only the inner edges are looked up
    inner = pl.Series(edges[1:], dtype=pl.Int64)
    positions = [0, *ordered.search_sorted(inner, side="left").to_list(), ordered.len()]
    running = pl.concat([pl.Series([0], dtype=pl.Int64), ordered.cum_sum()])
    totals = running.gather(positions).to_list()
    return [
        (low, high, positions[index + 1] - positions[index], totals[index + 1] - totals[index])
        for index, (low, high) in enumerate(zip(edges, (*edges[1:], None), strict=True))
    ]


def nearest_rank(series: pl.Series, q: int) -> int | None:
    """Nearest-rank percentile: the ceil(q n / 100)-th smallest of the n values, a value that occurs.

    q from 0 to 100; 0 gives the least. None for a series without values; nulls are not counted.
    Integer arithmetic throughout: 95 % of 20 values is the 19th, whatever 0.95 * 20 is in floating point.
    """
    ordered = series.drop_nulls().sort()
    if ordered.is_empty():
        return None
    return int(ordered[max(-(-q * ordered.len() // 100), 1) - 1])


def nearest_rank_expr(column: str | pl.Expr, q: int) -> pl.Expr:
    """`nearest_rank` as an expression, for `select` and in `group_by`; null without values."""
    values = pl.col(column) if isinstance(column, str) else column
    ordered = values.drop_nulls().sort()
    rank = (ordered.len().cast(pl.Int64) * q + 99) // 100
    return ordered.get((rank - 1).clip(0), null_on_oob=True)
