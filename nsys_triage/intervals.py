"""Arithmetic on half-open intervals `[start_ns, end_ns)` in Polars columns.

Everything that the tool measures rests on these few functions. Intervals may come in any order and may overlap;
those of zero length count for nothing. A group (`by`, one integer column) is laid end to end with the others on one
time axis, so that every operation is one pass over one sorted column whatever the number of groups: window
functions over groups took three times as long on a million rows.
"""

from collections.abc import Mapping
from typing import Final

import polars as pl

START: Final = "start_ns"
END: Final = "end_ns"
_OFFSET: Final = "_offset"
_LARGEST: Final = 1 << 62


def _bounds(frames: list[pl.DataFrame], columns: tuple[str, ...]) -> tuple[int, int]:
    """The least and the greatest value in those columns of the frames; (0, 0) where there is none."""
    values = [v for f in frames if f.height for c in columns if c in f.columns for v in (f[c].min(), f[c].max())]
    numbers = [v for v in values if isinstance(v, int)]
    return (min(numbers), max(numbers)) if numbers else (0, 0)


def _laid_out(frames: list[pl.DataFrame], by: str | None) -> list[pl.DataFrame]:
    """The frames with the offset of each row's group on a common axis, in `_offset` (Int64).

    Groups of one frame and of the other have the same offset; the moments of different groups never meet.
    """
    if by is None:
        return [f.with_columns(pl.lit(0, pl.Int64).alias(_OFFSET)) for f in frames]
    first, last = _bounds(frames, (START, END, "at_ns"))
    span = last - first + 1
    low, high = _bounds(frames, (by,))
    if (high - low + 1) * span < _LARGEST:
        return [f.with_columns(((pl.col(by).cast(pl.Int64) - low) * span).alias(_OFFSET)) for f in frames]
    groups = pl.concat([f.select(by) for f in frames]).unique().sort(by)
    if groups.height * span >= _LARGEST:
        raise OverflowError("the intervals span too long a time for so many groups")
    offsets = groups.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).mul(span).alias(_OFFSET))
    return [f.join(offsets, on=by, how="left", maintain_order="left") for f in frames]


def merge(frame: pl.DataFrame, by: str | None = None) -> pl.DataFrame:
    """The union of the intervals of each group as disjoint intervals; touching ones become one.

    Gives the columns `by`, start_ns and end_ns, sorted by them. Empty input gives an empty frame.
    """
    columns = [START, END] if by is None else [by, START, END]
    proper = frame.select(columns).filter(pl.col(END) > pl.col(START))
    if proper.is_empty():
        return proper
    begin, reach = pl.col(START) + pl.col(_OFFSET), (pl.col(END) + pl.col(_OFFSET)).cum_max()
    return (
        _laid_out([proper], by)[0]
        .lazy()
        .sort(begin)
        .with_columns(reach.alias("_reach"))
        .with_columns((begin > pl.col("_reach").shift(1)).fill_null(value=True).alias("_first"))
        # a block ends with the furthest reach before the next one begins
        .with_columns(pl.col("_first").shift(-1).fill_null(value=True).alias("_last"))
        .filter(pl.col("_first") | pl.col("_last"))
        .with_columns((pl.col("_reach") - pl.col(_OFFSET)).alias("_end"))
        .with_columns(pl.when("_last").then("_end").otherwise(pl.col("_end").shift(-1)).alias(END))
        .filter("_first")
        .select(columns)
        .collect()
    )


def union_length(frame: pl.DataFrame, by: str | None = None) -> pl.DataFrame:
    """The length of the union of each group: columns `by` and `ns` (Int64).

    Without `by` one row, 0 on empty input; with `by` a row per group that has an interval of positive length.
    """
    lengths = merge(frame, by).with_columns((pl.col(END) - pl.col(START)).alias("ns"))
    if by is None:
        return lengths.select(pl.col("ns").sum().cast(pl.Int64))
    return lengths.group_by(by).agg(pl.col("ns").sum()).sort(by)


def clip(frame: pl.DataFrame, start: int | pl.Expr, end: int | pl.Expr) -> pl.DataFrame:
    """The intervals cut to `[start, end)`; what is left with no length is dropped."""
    low = start if isinstance(start, pl.Expr) else pl.lit(start, pl.Int64)
    high = end if isinstance(end, pl.Expr) else pl.lit(end, pl.Int64)
    return frame.with_columns(
        pl.max_horizontal(pl.col(START), low).alias(START), pl.min_horizontal(pl.col(END), high).alias(END)
    ).filter(pl.col(END) > pl.col(START))


def covered(spans: pl.DataFrame, cover: pl.DataFrame, by: str | None = None) -> pl.Series:
    """How much of each span (ns, in the order of `spans`) the union of `cover` in its group covers.

    A span of no or negative length, or of a group without cover, has 0.
    """
    union = merge(cover, by)
    if spans.is_empty() or union.is_empty():
        return pl.zeros(spans.height, dtype=pl.Int64, eager=True).alias("covered_ns")
    columns = [START, END] if by is None else [by, START, END]
    axis, rows = _laid_out([union, spans.select(columns)], by)
    starts, ends = axis[START] + axis[_OFFSET], axis[END] + axis[_OFFSET]
    before = (ends - starts).cum_sum() - (ends - starts)

    def reached(moment: str) -> pl.Series:
        """The covered time before each moment, over all groups up to it."""
        at = rows[moment] + rows[_OFFSET]
        index = starts.search_sorted(at, side="right").cast(pl.Int64) - 1
        here = index.clip(lower_bound=0)
        found = pl.DataFrame({"at": at, "start": starts.gather(here), "end": ends.gather(here), "ns": before.gather(here)})
        inside = pl.min_horizontal("at", "end") - pl.col("start")
        return found.select(pl.when(index >= 0).then(pl.col("ns") + inside).otherwise(0))["ns"]

    return (reached(END) - reached(START)).clip(lower_bound=0).fill_null(0).alias("covered_ns")


def count_inside(spans: pl.DataFrame, moments: pl.DataFrame, by: str | None = None) -> pl.Series:
    """How many moments (column `at_ns`) of its group each span holds, start included, end not (UInt32)."""
    if spans.is_empty() or moments.is_empty():
        return pl.zeros(spans.height, dtype=pl.UInt32, eager=True).alias("count")
    columns = [START, END] if by is None else [by, START, END]
    points, rows = _laid_out([moments.select([c for c in (by, "at_ns") if c]), spans.select(columns)], by)
    axis = (points["at_ns"] + points[_OFFSET]).sort()
    low, high = (axis.search_sorted(rows[c] + rows[_OFFSET], side="left").cast(pl.Int64) for c in (START, END))
    return (high - low).clip(lower_bound=0).cast(pl.UInt32).alias("count")


def subtract(frame: pl.DataFrame, holes: pl.DataFrame, by: str | None = None) -> pl.DataFrame:
    """The union of `frame` less the union of `holes`, as disjoint intervals with the columns of `merge`."""
    kept, cut = merge(frame, by), merge(holes, by)
    if kept.is_empty() or cut.is_empty():
        return kept
    return merge(paint({1: kept, 2: cut}, by).filter(pl.col("mask") == 1), by)


def paint(
    layers: Mapping[int, pl.DataFrame], by: str | None = None, *, numbered: int = 0, cuts: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Cuts time wherever a layer begins or ends, and says which layers cover each piece.

    `layers` maps a bit (1, 2, 4 ...) to intervals that are disjoint within a group (as `merge` gives them): a start
    adds its bit and an end takes it away again, so one running sum is the set of layers. `cuts` are further moments
    (column `at_ns`, and `by`) at which pieces end. Gives `by`, start_ns, end_ns and `mask` (Int64), sorted, for all
    pieces between the first and the last event of a group, those that no layer covers included. With `numbered`
    (a bit) there is `number` too (Int64): how many intervals of that layer have begun before, over all groups, which
    inside such an interval is its row in the layer sorted by `by` and start.
    """
    group = [] if by is None else [by]
    events = []
    for bit, frame in layers.items():
        for moment, step in ((START, bit), (END, -bit)):
            begun = pl.lit(1 if step == numbered else 0, pl.UInt8)
            events.append(frame.select(*group, pl.col(moment).alias("at_ns"), pl.lit(step, pl.Int64).alias("step"), begun.alias("begun")))
    if cuts is not None:
        events.append(cuts.select(*group, "at_ns", pl.lit(0, pl.Int64).alias("step"), pl.lit(0, pl.UInt8).alias("begun")))
    joined = pl.concat(events)
    number = [(pl.col("begun").cast(pl.Int64).cum_sum() - 1).alias("number")] if numbered else []
    # a group's steps sum to 0, so the running sum needs no reset between groups
    return (
        _laid_out([joined], by)[0]
        .lazy()
        .sort(pl.col("at_ns") + pl.col(_OFFSET))
        .with_columns(pl.col("step").cum_sum().alias("mask"), *number)
        .with_columns(pl.col("at_ns").alias(START), pl.col("at_ns").shift(-1).alias(END))
        .filter((pl.col(END) > pl.col(START)) & (pl.col(_OFFSET) == pl.col(_OFFSET).shift(-1)))
        .select(*group, START, END, "mask", *(["number"] if numbered else []))
        .collect()
    )


def cut(frame: pl.DataFrame, edges: pl.Series) -> pl.DataFrame:
    """The intervals split at every edge that lies inside them; other columns are repeated. `edges` sorted, no nulls.

    Rows keep their order, the parts of a row in order of time. Intervals of no length are dropped.
    """
    rows = frame.filter(pl.col(END) > pl.col(START))
    low = edges.search_sorted(rows[START], side="right").cast(pl.Int64)
    high = edges.search_sorted(rows[END], side="left").cast(pl.Int64)
    if rows.is_empty() or (high <= low).all():
        return rows
    parts = rows.with_columns(low.alias("_low"), high.alias("_high"), pl.int_range(pl.len(), dtype=pl.UInt32).alias("_row"))
    whole = parts.filter(pl.col("_high") <= pl.col("_low")).with_columns(pl.lit(0, pl.Int64).alias("_part"))
    split = (
        parts.filter(pl.col("_high") > pl.col("_low"))
        .with_columns(pl.int_ranges(0, pl.col("_high") - pl.col("_low") + 1).alias("_part"))
        .explode("_part")
    )
    index = split["_low"] + split["_part"]
    begin, end = edges.gather((index - 1).clip(lower_bound=0)), edges.gather(index.clip(upper_bound=edges.len() - 1))
    split = split.with_columns(
        pl.when(pl.col("_part") == 0).then(START).otherwise(begin).alias(START),
        pl.when(index == pl.col("_high")).then(END).otherwise(end).alias(END),
    )
    return pl.concat([whole, split]).sort("_row", "_part").drop("_row", "_part", "_low", "_high")
