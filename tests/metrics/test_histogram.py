import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_triage.metrics.histogram import (
    DURATION_EDGES_NS,
    SIZE_EDGES,
    duration_histogram,
    nearest_rank,
    nearest_rank_expr,
    size_histogram,
)


def durations(values: list[int | None]) -> pl.Series:
    return pl.Series("duration_ns", values, dtype=pl.Int64)


def test_edges_are_those_of_the_definition() -> None:
    assert DURATION_EDGES_NS[:6] == (0, 1_000, 3_000, 10_000, 30_000, 100_000)
    assert DURATION_EDGES_NS[-1] == 100_000_000_000
    assert len(DURATION_EDGES_NS) == 18
    assert 65_536 in SIZE_EDGES


def test_every_bucket_is_listed_and_the_last_has_no_end() -> None:
    buckets = duration_histogram(durations([]))
    assert [bucket.from_ns for bucket in buckets] == list(DURATION_EDGES_NS)
    assert [bucket.to_ns for bucket in buckets] == [*DURATION_EDGES_NS[1:], None]
    assert all(bucket.count == 0 and bucket.total_ns == 0 for bucket in buckets)


def test_buckets_are_half_open() -> None:
    values = [0, 999, 1_000, 2_999, 3_000, 100_000_000_000, 250_000_000_000, None]
    buckets = {bucket.from_ns: bucket for bucket in duration_histogram(durations(values))}
    assert (buckets[0].count, buckets[0].total_ns) == (2, 999)
    assert (buckets[1_000].count, buckets[1_000].total_ns) == (2, 3_999)
    assert (buckets[3_000].count, buckets[3_000].total_ns) == (1, 3_000)
    assert (buckets[100_000_000_000].count, buckets[100_000_000_000].total_ns) == (2, 350_000_000_000)
    assert sum(bucket.count for bucket in buckets.values()) == 7


def test_sizes_at_the_limit_of_small() -> None:
    buckets = {bucket.from_bytes: bucket for bucket in size_histogram(durations([65_535, 65_536, 65_537]))}
    assert (buckets[16_384].count, buckets[16_384].total_bytes) == (1, 65_535)
    assert (buckets[65_536].count, buckets[65_536].total_bytes) == (2, 131_073)


@settings(deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=10**12)))
def test_a_histogram_loses_nothing(values: list[int]) -> None:
    buckets = duration_histogram(durations(list(values)))
    for bucket in buckets:
        inside = [v for v in values if v >= bucket.from_ns and (bucket.to_ns is None or v < bucket.to_ns)]
        assert (bucket.count, bucket.total_ns) == (len(inside), sum(inside))


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        ([15, 20, 35, 40, 50], 5, 15),
        ([15, 20, 35, 40, 50], 30, 20),
        ([15, 20, 35, 40, 50], 40, 20),
        ([15, 20, 35, 40, 50], 50, 35),
        ([15, 20, 35, 40, 50], 100, 50),
        ([4, 3, 2, 1], 50, 2),  # of an even number the lower middle
        ([7], 0, 7),
        ([7], 99, 7),
        (list(range(1, 101)), 7, 7),  # 0.07 * 100 is above 7 in floating point
        (list(range(1, 21)), 95, 19),
    ],
)
def test_nearest_rank(values: list[int], q: int, expected: int) -> None:
    assert nearest_rank(durations(list(values)), q) == expected
    assert pl.DataFrame({"v": values}).select(nearest_rank_expr("v", q)).item() == expected


def test_nearest_rank_without_values() -> None:
    assert nearest_rank(durations([]), 50) is None
    assert nearest_rank(durations([None]), 50) is None
    assert durations([]).to_frame().select(nearest_rank_expr("duration_ns", 50)).item() is None


@settings(deadline=None)
@given(
    st.lists(st.integers(min_value=0, max_value=10**12), min_size=1), st.integers(min_value=0, max_value=100)
)
def test_nearest_rank_is_the_least_value_that_reaches_its_share(values: list[int], q: int) -> None:
    found = nearest_rank(durations(list(values)), q)
    reaching = [v for v in values if 100 * sum(other <= v for other in values) >= q * len(values)]
    assert found == min(reaching)


def test_nearest_rank_within_groups() -> None:
    frame = pl.DataFrame({"key": [1, 1, 1, 2, 3], "v": [3, 1, 2, None, 7]})
    found = frame.group_by("key").agg(nearest_rank_expr("v", 50).alias("p50")).sort("key")
    assert found["p50"].to_list() == [2, None, 7]
    doubled = frame.group_by("key").agg(nearest_rank_expr(pl.col("v") * 2, 50).alias("p50")).sort("key")
    assert doubled["p50"].to_list() == [4, None, 14]
