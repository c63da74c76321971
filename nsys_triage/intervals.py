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
_ONE: Final = 1 << 24  # one interval of the numbered layer, above all bits of the mask


def _bounds(frames: list[pl.DataFrame], columns: tuple[str, ...]) -> tuple[int, int]:
    """The least and the greatest value in those columns of the frames; (0, 0) where there is none."""
    values = [
        v for f in frames if f.height for c in columns if c in f.columns for v in (f[c].min(), f[c].max())
    ]
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
        found = pl.DataFrame(
            {"at": at, "start": starts.gather(here), "end": ends.gather(here), "ns": before.gather(here)}
        )
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
    low, high = (
        axis.search_sorted(rows[c] + rows[_OFFSET], side="left").cast(pl.Int64) for c in (START, END)
    )
    return (high - low).clip(lower_bound=0).cast(pl.UInt32).alias("count")


def subtract(frame: pl.DataFrame, holes: pl.DataFrame, by: str | None = None) -> pl.DataFrame:
    """The union of `frame` less the union of `holes`, as disjoint intervals with the columns of `merge`."""
    kept, cut = merge(frame, by), merge(holes, by)
    if kept.is_empty() or cut.is_empty():
        return kept
    return merge(paint({1: kept, 2: cut}, by).filter(pl.col("mask") == 1), by)


def paint(
    layers: Mapping[int, pl.DataFrame],
    by: str | None = None,
    *,
    numbered: int = 0,
    cuts: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Cuts time wherever a layer begins or ends, and says which layers cover each piece.

    `layers` maps a bit (1, 2, 4 ... below 2^24) to intervals that are disjoint within a group (as `merge` gives
    them): a start adds its bit and an end takes it away again, so one running sum is the set of layers. `cuts` are
    further moments (column `at_ns`, and `by`) at which pieces end. Gives `by`, start_ns, end_ns and `mask` (Int64),
    sorted, for all pieces between the first and the last event of a group, those that no layer covers included.

    With `numbered` (a bit) only the pieces inside that layer are given, with `number` (Int64) instead of `by`: the
    row of the interval they lie in, in the layer sorted by `by` and start. The count runs in the upper half of the
    same sum: one column less to sort, a third of the time on five million events.
    """
    frames = [*layers.values(), *([] if cuts is None else [cuts])]
    placed = _laid_out(frames, by)
    events = [
        part
        for bit, frame in zip(layers, placed, strict=False)
        for part in (
            frame.lazy().select(
                (pl.col(START) + pl.col(_OFFSET)).alias("at"),
                pl.lit(bit + (_ONE if bit == numbered else 0)).alias("step"),
            ),
            frame.lazy().select((pl.col(END) + pl.col(_OFFSET)).alias("at"), pl.lit(-bit).alias("step")),
        )
    ]
    if cuts is not None:
        events.append(
            placed[-1].lazy().select((pl.col("at_ns") + pl.col(_OFFSET)).alias("at"), pl.lit(0).alias("step"))
        )
    total = pl.col("step").cum_sum()
    # each layer is sorted already: a stable sort finds the runs
    pieces = (
        pl.concat([e.with_columns(pl.col("step").cast(pl.Int64)) for e in events])
        .sort("at", maintain_order=True)
        .select(pl.col("at").alias(START), pl.col("at").shift(-1).alias(END), total.alias("sum"))
        .filter(pl.col(END) > pl.col(START))
    )
    mask = (pl.col("sum") & (_ONE - 1)).alias("mask")
    if numbered:
        inside = (
            pieces.filter((pl.col("sum") & numbered) > 0)
            .select(START, END, mask, (pl.col("sum") // _ONE - 1).alias("number"))
            .collect()
        )
        if by is None:
            return inside
        layer = placed[list(layers).index(numbered)].sort(by, START)
        offset = layer[_OFFSET].gather(inside["number"])
        return inside.with_columns(pl.col(START) - offset, pl.col(END) - offset)
    found = pieces.select(START, END, mask).collect()
    return found if by is None else _back_in_groups(found, placed, by)


def _back_in_groups(pieces: pl.DataFrame, placed: list[pl.DataFrame], by: str) -> pl.DataFrame:
    """Pieces of the common axis with their group again; those between two groups are dropped."""
    bounds = (
        pl.concat(
            [
                f.select(by, _OFFSET, *[(pl.col(c) + pl.col(_OFFSET)).alias(as_) for c, as_ in columns])
                for f in placed
                for columns in [
                    ((START, "_low"), (END, "_high"))
                    if START in f.columns
                    else (("at_ns", "_low"), ("at_ns", "_high"))
                ]
            ]
        )
        .group_by(by, _OFFSET)
        .agg(pl.col("_low").min(), pl.col("_high").max())
        .sort(_OFFSET)
    )
    group = (bounds["_low"].search_sorted(pieces[START], side="right").cast(pl.Int64) - 1).clip(lower_bound=0)
    return (
        pieces.with_columns(
            bounds[by].gather(group), bounds[_OFFSET].gather(group), bounds["_high"].gather(group)
        )
        .filter(pl.col(END) <= pl.col("_high"))
        .select(by, pl.col(START) - pl.col(_OFFSET), pl.col(END) - pl.col(_OFFSET), "mask")
    )


def time_before(disjoint: pl.DataFrame, moments: pl.Series) -> pl.Series:
    """How much of the disjoint, sorted intervals lies before each moment (ns, Int64, in the order of `moments`)."""
    if disjoint.is_empty():
        return pl.zeros(moments.len(), dtype=pl.Int64, eager=True)
    starts, ends = disjoint[START], disjoint[END]
    total = (ends - starts).cum_sum()
    index = starts.search_sorted(moments, side="left").cast(pl.Int64) - 1
    here = index.clip(lower_bound=0)
    late = (ends.gather(here) - moments).clip(lower_bound=0)
    return pl.select(pl.when(index >= 0).then(total.gather(here) - late).otherwise(0)).to_series()


def time_in(disjoint: pl.DataFrame, edges: pl.Series) -> pl.Series:
    """How much of the disjoint, sorted intervals lies between each edge and the next (ns; one less than `edges`)."""
    return time_before(disjoint, edges).diff().slice(1)
