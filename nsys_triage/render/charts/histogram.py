"""A histogram by count and by time, side by side: one row per bucket, two bars."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bin:
    """A bucket with its two numbers."""

    label: str
    count: int
    weight: int


@dataclass(frozen=True, slots=True)
class BarRow:
    """A row of the picture: both bars in percent of the longest of their side, and shares of both totals."""

    label: str
    y: float
    count: int
    weight: int
    count_width: float
    weight_width: float
    count_share: float
    weight_share: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """Rows from the first to the last bucket that holds anything; `bins` are all buckets."""

    rows: list[BarRow]
    bins: list[Bin]
    height: float
    count: int
    weight: int


ROW_HEIGHT = 22


def histogram(bins: Sequence[Bin]) -> Histogram | None:
    """The picture of a histogram; None where all buckets are empty."""
    count, weight = sum(b.count for b in bins), sum(b.weight for b in bins)
    filled = [place for place, b in enumerate(bins) if b.count]
    if not filled:
        return None
    drawn = bins[filled[0] : filled[-1] + 1]
    most, heaviest = max(b.count for b in drawn), max(b.weight for b in drawn)
    rows = [
        BarRow(
            label=b.label,
            y=float(place * ROW_HEIGHT),
            count=b.count,
            weight=b.weight,
            count_width=round(100 * b.count / most, 3),
            weight_width=round(100 * b.weight / heaviest, 3) if heaviest else 0.0,
            count_share=b.count / count,
            weight_share=b.weight / weight if weight else 0.0,
        )
        for place, b in enumerate(drawn)
    ]
    return Histogram(rows, list(bins), float(len(rows) * ROW_HEIGHT), count, weight)
