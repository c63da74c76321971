import polars as pl

from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.stalls import stall_extra

COMPUTE, COPY, SYNC, BLOCKED = (CODE[cause] for cause in ("compute", "copy", "host_sync", "host_blocked"))
SPLIT = {"row": pl.Int64, "cause": pl.UInt8, "ns": pl.Int64}


def extra(rows: list[tuple[int, int, int]], slow: list[int], startup: list[bool]) -> list[tuple[int, int]]:
    """Rows (row, cause, ns); the step of row n has the index 10 + n."""
    indices = pl.Series(range(10, 10 + len(startup)), dtype=pl.UInt32)
    split = pl.DataFrame(rows, schema=SPLIT, orient="row")
    return stall_extra(
        split, indices, [10 + row for row in slow], pl.Series(startup, dtype=pl.Boolean)
    ).rows()


def test_how_much_longer_the_slow_steps_are_by_cause() -> None:
    rows = [(row, COMPUTE, 100) for row in range(6)]
    rows += [(row, SYNC, ns) for row, ns in ((0, 10), (1, 30), (2, 20), (3, 20))]
    # usual: rows 0, 1, 3, 4 (2 and 5 are slow): compute 100; sync 10, 30, 20, 0, of which the second smallest is 10
    rows += [(2, BLOCKED, 500), (5, BLOCKED, 300), (5, SYNC, 90)]
    # slow: blocked 500 + 300 beyond 0, sync (20 - 10) + (90 - 10); compute is no more than usual
    assert extra(rows, [2, 5], [False] * 6) == [(BLOCKED, 800), (SYNC, 90)]


def test_less_under_a_cause_takes_from_more_of_it() -> None:
    rows = [(row, COPY, 50) for row in range(4)] + [(4, COPY, 80), (5, COPY, 30)]
    # 30 more in one, 20 less in the other
    assert extra(rows, [4, 5], [False] * 6) == [(COPY, 10)]


def test_start_up_is_not_usual() -> None:
    rows = [(0, SYNC, 1000), (1, SYNC, 1000), (2, SYNC, 10), (3, SYNC, 60)]
    assert extra(rows, [3], [True, True, False, False]) == [(SYNC, 50)]


def test_equal_times_are_listed_by_cause_and_no_more_is_nothing() -> None:
    rows = [(1, SYNC, 5), (1, COPY, 5), (0, COMPUTE, 7), (1, COMPUTE, 7)]
    assert extra(rows, [1], [False, False]) == [(COPY, 5), (SYNC, 5)]
    assert extra([(0, COMPUTE, 7), (1, COMPUTE, 7)], [1], [False, False]) == []
    assert extra([], [], [False]) == []
