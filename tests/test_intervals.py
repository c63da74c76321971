"""Interval arithmetic against sets of integers: an interval is the set of the nanoseconds that it holds."""

from collections.abc import Iterable
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_triage.intervals import (
    clip,
    count_inside,
    covered,
    merge,
    paint,
    subtract,
    time_before,
    time_in,
    union_length,
)

Row = tuple[int, int, int]  # group, start, end
ROWS = pl.Schema({"group": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64})

# a few groups, some far apart; times around 0; lengths from -2 (a damaged row) to 9
FAR = (-(2**40), -1, 0, 1, 7, 2**31, 2**62)
rows = st.lists(
    st.builds(
        lambda group, start, length: (group, start, start + length),
        st.sampled_from(FAR),
        st.integers(-12, 24),
        st.integers(-2, 9),
    ),
    max_size=14,
)
quick = settings(max_examples=60, deadline=None)


def frame(of: Iterable[Row]) -> pl.DataFrame:
    return pl.DataFrame(list(of), schema=ROWS, orient="row")


def moments(of: Iterable[tuple[int, int]]) -> pl.DataFrame:
    return pl.DataFrame(list(of), schema={"group": pl.Int64, "at_ns": pl.Int64}, orient="row")


def held(of: Iterable[Row], group: int) -> set[int]:
    """The nanoseconds of that group."""
    return {ns for g, start, end in of if g == group for ns in range(start, end)}


def groups_of(*lists: Iterable[Row]) -> list[int]:
    return sorted({group for one in lists for group, _, _ in one})


def as_rows(result: pl.DataFrame) -> list[Row]:
    return [(int(g), int(s), int(e)) for g, s, e in result.select("group", "start_ns", "end_ns").iter_rows()]


# --- merge and union_length -------------------------------------------------------------------------------------


@quick
@given(rows)
def test_merge_holds_the_same_nanoseconds_in_disjoint_sorted_intervals_that_do_not_touch(
    of: list[Row],
) -> None:
    merged = as_rows(merge(frame(of), "group"))
    assert merged == sorted(merged)
    assert all(end > start for _, start, end in merged)
    for group in groups_of(of, merged):
        assert held(merged, group) == held(of, group)
        own = [(start, end) for g, start, end in merged if g == group]
        assert all(one[1] < other[0] for one, other in pairwise(own))


@quick
@given(rows)
def test_merge_without_groups_takes_all_rows_together(of: list[Row]) -> None:
    merged = merge(frame(of))
    assert merged.columns == ["start_ns", "end_ns"]
    assert held([(0, s, e) for s, e in merged.iter_rows()], 0) == held([(0, s, e) for _, s, e in of], 0)


@quick
@given(rows)
def test_union_length_counts_each_nanosecond_once(of: list[Row]) -> None:
    lengths = dict(union_length(frame(of), "group").iter_rows())
    assert lengths == {g: len(held(of, g)) for g in groups_of(of) if held(of, g)}
    assert union_length(frame(of)).rows() == [(len(held([(0, s, e) for _, s, e in of], 0)),)]


def test_touching_intervals_become_one_and_gaps_of_one_nanosecond_stay() -> None:
    merged = merge(frame([(1, 0, 5), (1, 5, 9), (1, 10, 12), (2, 9, 10)]), "group")
    assert as_rows(merged) == [(1, 0, 9), (1, 10, 12), (2, 9, 10)]


# --- clip -------------------------------------------------------------------------------------------------------


@quick
@given(rows, st.integers(-14, 26), st.integers(-3, 20))
def test_clip_keeps_what_lies_inside(of: list[Row], low: int, length: int) -> None:
    window = set(range(low, low + length))
    clipped = as_rows(clip(frame(of), low, low + length))
    kept = [(g, s, e) for g, s, e in of if set(range(s, e)) & window]
    assert [(g, *range(s, e)) for g, s, e in clipped] == [
        (g, *sorted(set(range(s, e)) & window)) for g, s, e in kept
    ]


def test_clip_takes_columns_as_bounds() -> None:
    of = frame([(0, 0, 10), (3, 0, 10), (8, 0, 7)])
    assert as_rows(clip(of, pl.col("group"), pl.col("group") + 4)) == [(0, 0, 4), (3, 3, 7)]


# --- covered and count_inside -----------------------------------------------------------------------------------


@quick
@given(rows, rows)
def test_covered_is_the_length_of_the_intersection_in_the_order_of_the_spans(
    spans: list[Row], of: list[Row]
) -> None:
    found = covered(frame(spans), frame(of), "group")
    assert found.dtype == pl.Int64
    assert found.to_list() == [len(held(of, g) & set(range(s, e))) for g, s, e in spans]
    together = {ns for _, s, e in of for ns in range(s, e)}
    assert covered(frame(spans), frame(of)).to_list() == [
        len(together & set(range(s, e))) for _, s, e in spans
    ]


@quick
@given(rows, st.lists(st.tuples(st.sampled_from(FAR), st.integers(-14, 26)), max_size=12))
def test_count_inside_counts_the_start_and_not_the_end(spans: list[Row], at: list[tuple[int, int]]) -> None:
    found = count_inside(frame(spans), moments(at), "group")
    assert found.dtype == pl.UInt32
    assert found.to_list() == [sum(g == group and s <= ns < e for group, ns in at) for g, s, e in spans]
    assert count_inside(frame(spans), moments(at)).to_list() == [
        sum(s <= ns < e for _, ns in at) for _, s, e in spans
    ]


# --- subtract and paint -----------------------------------------------------------------------------------------


@quick
@given(rows, rows)
def test_subtract_takes_the_holes_out(of: list[Row], holes: list[Row]) -> None:
    left = as_rows(subtract(frame(of), frame(holes), "group"))
    for group in groups_of(of, holes, left):
        assert held(left, group) == held(of, group) - held(holes, group)
    assert left == as_rows(merge(frame(left), "group"))
    alone = [(0, s, e) for s, e in subtract(frame(of), frame(holes)).iter_rows()]
    assert held(alone, 0) == {ns for _, s, e in of for ns in range(s, e)} - {
        ns for _, s, e in holes for ns in range(s, e)
    }


@quick
@given(rows, rows, rows, st.lists(st.tuples(st.sampled_from(FAR), st.integers(-14, 26)), max_size=4))
def test_paint_says_of_every_nanosecond_which_layers_hold_it(
    one: list[Row], two: list[Row], three: list[Row], at: list[tuple[int, int]]
) -> None:
    layers = {bit: merge(frame(of), "group") for bit, of in ((1, one), (4, two), (1 << 20, three))}
    pieces = paint(layers, "group", cuts=moments(at))
    assert pieces.columns == ["group", "start_ns", "end_ns", "mask"]
    expected = []
    for group in sorted({*groups_of(one, two, three), *(g for g, _ in at)}):
        events = {ns for of in layers.values() for g, s, e in as_rows(of) if g == group for ns in (s, e)}
        edges = sorted(events | {ns for g, ns in at if g == group})
        # the pieces lie end to end from the first event to the last, and end at every event
        for start, end in pairwise(edges):
            mask = sum(bit for bit, of in layers.items() if start in held(as_rows(of), group))
            expected.append((group, start, end, mask))
    assert pieces.rows() == expected


@quick
@given(rows, rows)
def test_numbered_pieces_name_the_interval_that_they_lie_in(one: list[Row], two: list[Row]) -> None:
    layers = {1: merge(frame(one), "group"), 1 << 20: merge(frame(two), "group")}
    pieces = paint(layers, "group", numbered=1 << 20)
    assert pieces.columns == ["start_ns", "end_ns", "mask", "number"]
    all_pieces = paint(layers, "group").filter(pl.col("mask") >= 1 << 20)
    numbered = as_rows(layers[1 << 20])
    groups = [numbered[number][0] for number in pieces["number"]]
    assert all_pieces.rows() == [
        (group, s, e, mask)
        for group, (s, e, mask) in zip(
            groups, pieces.select("start_ns", "end_ns", "mask").rows(), strict=True
        )
    ]
    for start, end, number in pieces.select("start_ns", "end_ns", "number").iter_rows():
        assert numbered[number][1] <= start < end <= numbered[number][2]


def test_numbered_intervals_that_touch_keep_their_own_numbers() -> None:
    parts = pl.DataFrame({"group": [2, 1, 1], "start_ns": [0, 4, 0], "end_ns": [9, 9, 4]})
    pieces = paint({1: frame([(1, 2, 6), (2, -3, 20)]), 2: parts}, "group", numbered=2)
    assert pieces.rows() == [(0, 2, 2, 0), (2, 4, 3, 0), (4, 6, 3, 1), (6, 9, 2, 1), (0, 9, 3, 2)]
    alone = paint({1: frame([(1, 2, 6)]), 2: frame([(1, 0, 4), (1, 4, 9)])}, numbered=2)
    assert alone.rows() == [(0, 2, 2, 0), (2, 4, 3, 0), (4, 6, 3, 1), (6, 9, 2, 1)]


# --- time before moments ----------------------------------------------------------------------------------------


@quick
@given(rows, st.lists(st.integers(-14, 40), max_size=8))
def test_time_before_counts_what_lies_before_each_moment(of: list[Row], at: list[int]) -> None:
    disjoint = merge(frame(of))
    inside = {ns for _, s, e in of for ns in range(s, e)}
    found = time_before(disjoint, pl.Series(at, dtype=pl.Int64))
    assert found.dtype == pl.Int64
    assert found.to_list() == [sum(ns < moment for ns in inside) for moment in at]
    edges = sorted(at)
    assert time_in(disjoint, pl.Series(edges, dtype=pl.Int64)).to_list() == [
        len(inside & set(range(s, e))) for s, e in pairwise(edges)
    ]


# --- empty input, and groups whose numbers are far apart --------------------------------------------------------


def test_nothing_gives_nothing() -> None:
    none, some = frame([]), frame([(1, 2, 5)])
    for by in (None, "group"):
        assert merge(none, by).is_empty()
        assert subtract(none, some, by).is_empty()
        assert as_rows(subtract(some, none, "group")) == [(1, 2, 5)]
        assert covered(none, some, by).to_list() == []
        assert covered(some, none, by).to_list() == [0]
        assert count_inside(none, moments([(1, 3)]), by).to_list() == []
        assert count_inside(some, moments([]), by).to_list() == [0]
        assert paint({1: none, 2: none}, by).is_empty()
        assert paint({1: none, 2: some}, by)["mask"].to_list() == [2]
        assert paint({1: some, 2: none}, by, numbered=2).is_empty()
    assert union_length(none).rows() == [(0,)]
    assert union_length(none, "group").is_empty()
    assert clip(none, 0, 5).is_empty()
    assert time_before(merge(none), pl.Series([1, 2], dtype=pl.Int64)).to_list() == [0, 0]
    assert time_before(merge(some), pl.Series([], dtype=pl.Int64)).to_list() == []
    assert time_in(merge(some), pl.Series([3], dtype=pl.Int64)).to_list() == []


def test_results_have_the_types_of_the_input() -> None:
    narrow = frame([(1, 2, 5), (1, 4, 9)]).with_columns(pl.col("group").cast(pl.UInt16))
    assert merge(narrow, "group").schema == narrow.schema
    assert subtract(narrow, narrow, "group").schema == narrow.schema
    assert paint({1: merge(narrow, "group")}, "group").schema == {**narrow.schema, "mask": pl.Int64}


def test_groups_far_apart_on_a_long_capture_are_numbered_anew() -> None:
    # an hour in ns times the distance of the group numbers does not fit into 64 bits
    hour, far = 3_600_000_000_000, 2**40
    of = frame([(far, -hour, 0), (0, 0, hour), (far, -5, 7), (0, hour - 1, hour + 1)])
    assert as_rows(merge(of, "group")) == [(0, 0, hour + 1), (far, -hour, 7)]
    spans = frame([(0, -hour, hour), (far, 0, hour), (1, 0, hour)])
    assert covered(spans, of, "group").to_list() == [hour, 7, 0]
    assert count_inside(spans, moments([(0, 0), (far, -1), (far, 1), (0, hour)]), "group").to_list() == [
        1,
        1,
        0,
    ]
    assert as_rows(subtract(of, frame([(far, -1, 3)]), "group")) == [
        (0, 0, hour + 1),
        (far, -hour, -1),
        (far, 3, 7),
    ]


def test_times_that_fit_on_no_axis_are_refused() -> None:
    long = 1 << 61
    with pytest.raises(OverflowError, match="too long"):
        merge(frame([(1, -long, 0), (2, 0, long), (3, 0, 1)]), "group")


def test_groups_never_meet_where_one_ends_at_the_latest_and_the_next_begins_at_the_earliest_time() -> None:
    of = frame([(1, 5, 9), (2, 0, 5), (3, 0, 9), (4, 0, 2)])
    assert as_rows(merge(of, "group")) == [(1, 5, 9), (2, 0, 5), (3, 0, 9), (4, 0, 2)]
    assert covered(frame([(1, 0, 9), (2, 0, 9), (3, 0, 9), (4, 0, 9)]), of, "group").to_list() == [4, 5, 9, 2]
