"""Steps of all ranks side by side, from hand-made parts whose clocks have nothing in common."""

import polars as pl

from nsys_triage.metrics.rank_parts import RANK_STEPS, RankPart
from nsys_triage.metrics.rank_steps import rank_steps
from nsys_triage.metrics.ranks import EVENTS
from nsys_triage.result.model import RankStep

CLOCK = 1_000_000  # how far the clock of a rank is ahead of that of the one before


def part(rank: int, *lengths: int, first: int = 0) -> RankPart:
    """A rank with steps of those lengths, 1,000 ns from start to start."""
    rows = [
        (first + n, CLOCK * rank + 1_000 * (first + n), CLOCK * rank + 1_000 * (first + n) + length)
        for n, length in enumerate(lengths)
    ]
    return RankPart(
        file=f"{rank}.sqlite", file_index=rank, pid=rank, known_rank=rank, local_rank=None, world_size=None, node=None,
        host_key=None, clock_ns=None, gpus=[], span_ns=9_000, busy_ns=9_000, exposed_ns=0, communication_ns=0,
        step_p50_ns=None, window=(0, 9_000), steps=pl.DataFrame(rows, schema=RANK_STEPS, orient="row"),
    )  # fmt: skip


def events(*waits: tuple[int, list[int]]) -> pl.DataFrame:
    """Collectives at a time of each rank's own clock, with the waiting of every rank."""
    rows = [
        (rank, "AllReduce", number, CLOCK * rank + at, 50 + wait, 50, wait)
        for number, (at, each) in enumerate(waits)
        for rank, wait in enumerate(each)
    ]
    return pl.DataFrame(rows, schema=EVENTS, orient="row")


def steps(parts: list[RankPart], *waits: tuple[int, list[int]]) -> list[RankStep]:
    return rank_steps(dict(enumerate(parts)), events(*waits))


def test_a_collective_belongs_to_the_step_in_which_it_starts() -> None:
    found = steps(
        [part(0, 900, 800), part(1, 700, 900), part(2, 800, 800)],
        (100, [30, 0, 60]),
        (600, [0, 40, 50]),
        (1_100, [90, 0, 30]),
    )
    assert found == [
        # one vote each for rank 1 and rank 0: the lower one; (30 + 60 + 40 + 50) / 3
        RankStep(index=0, p50_ns=800, max_ns=900, wait_ns=60, last=0),
        RankStep(index=1, p50_ns=800, max_ns=900, wait_ns=40, last=1),
    ]


def test_most_votes_of_a_step_decide() -> None:
    parts = [part(0, 900), part(1, 900)]
    (found,) = steps(parts, (0, [0, 9]), (200, [9, 0]), (400, [9, 0]), (600, [0, 0]))
    assert (found.last, found.wait_ns) == (1, 13)


def test_nothing_outside_of_steps_counts() -> None:
    parts = [part(0, 500), part(1, 500)]
    (found,) = steps(parts, (500, [0, 9]))  # the step ends there
    assert (found.last, found.wait_ns) == (None, 0)


def test_only_steps_that_two_ranks_have() -> None:
    found = steps([part(0, 900, 900, 900), part(1, 900, 900, first=1)], (1_100, [5, 0]))
    assert [(step.index, step.last) for step in found] == [(1, 1), (2, None)]
    assert steps([part(0, 900), part(1, 900, first=1)]) == []
    assert steps([part(0), part(1)], (0, [5, 0])) == []
