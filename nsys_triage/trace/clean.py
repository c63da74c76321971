"""The capture's clock, and rows whose times cannot be used.

Definitions: analysis.md section 1, "Bad rows" and "Time".
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

# a capture of three years does not exist; the epoch began 50 years ago
EPOCH_SIZED_NS: Final = 10**17


@dataclass(frozen=True, slots=True)
class Clock:
    """How recorded times become times of the capture."""

    offset_ns: int  # subtracted from every recorded time
    duration_ns: int | None  # length of the capture; None where it is not recorded
    shift_ns: int = 0  # what the export added to every time, missing ones included

    def relative(self, column: str) -> pl.Expr:
        """The time of an int64 column, relative to the start of the capture."""
        if self.offset_ns:
            return pl.col(column) - self.offset_ns
        # negated twice to have a copy: a column of an Arrow batch taken as it is keeps the whole batch in
        # memory (1 M kernels and 1 M calls: 300 MB instead of 150)
        return pl.col(column).neg().neg()

    def zero(self, column: str) -> pl.Expr:
        """Whether a time was written as 0, which is how a missing one is written."""
        recorded = pl.col(column) == 0
        return recorded | (pl.col(column) == self.shift_ns) if self.shift_ns else recorded


def drop_bad(frame: pl.DataFrame, clock: Clock, *, device: bool) -> tuple[pl.DataFrame, dict[str, int]]:
    """The rows with usable times, and how many were dropped by reason; `start` and `end` as recorded.

    A row that fails in several ways counts once, under the first reason of `zero_times`, `not_finished`,
    `inverted`, `too_long` (device work longer than the capture, where its length is known, and rows of any kind that
    reach three years from the capture's start).
    """
    start, end = pl.col("start"), pl.col("end")
    bad = start.is_null() | end.is_null() | clock.zero("end") | (end < start)
    bad = bad | (start < clock.offset_ns - EPOCH_SIZED_NS) | (end > clock.offset_ns + EPOCH_SIZED_NS)
    if device and clock.duration_ns:
        # not as end - start > duration: the difference of wild values wraps
        bad = bad | (end > start + clock.duration_ns)
    return _without(frame, bad, clock)


def drop_bad_ranges(frame: pl.DataFrame, clock: Clock) -> tuple[pl.DataFrame, dict[str, int]]:
    """The same for NVTX rows, where a missing end is no fault: the range is open, or the row is no range."""
    start, end = pl.col("start"), pl.col("end")
    inverted = ~clock.zero("end") & (end < start)
    far = (start.abs() > clock.offset_ns + EPOCH_SIZED_NS) | (end.abs() > clock.offset_ns + EPOCH_SIZED_NS)
    bad = start.is_null() | (clock.zero("start") & clock.zero("end")) | inverted | far.fill_null(value=False)
    return _without(frame, bad.fill_null(False), clock)


def _without(frame: pl.DataFrame, bad: pl.Expr, clock: Clock) -> tuple[pl.DataFrame, dict[str, int]]:
    marked = frame.select(bad.alias("bad")).to_series()
    if not marked.any():
        return frame, {}
    start, end = pl.col("start"), pl.col("end")
    reason = (
        pl.when(start.is_null() | (clock.zero("start") & clock.zero("end")))
        .then(pl.lit("zero_times"))
        .when(end.is_null() | clock.zero("end"))
        .then(pl.lit("not_finished"))
        .when(end < start)
        .then(pl.lit("inverted"))
        .otherwise(pl.lit("too_long"))
    )
    counted = frame.filter(marked).group_by(reason.alias("reason")).len()
    return frame.filter(~marked), dict(counted.iter_rows())
