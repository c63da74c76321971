"""The ranks of a job: numbers, matched collectives, waits, the straggler. Numbers by hand, from hand-made parts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_triage.metrics.rank_parts import COLLECTIVES, KERNELS_BY_NAME, RankPart, rank_parts
from nsys_triage.metrics.ranks import (
    EVENTS,
    Job,
    job_of,
    kernels_alike,
    match_collectives,
    missing_ranks,
    numbered,
    ranks_block,
    shared_clock,
    stands_out,
    votes,
)
from nsys_triage.result.model import Ranks
from tests.builders.trace import ALL_REDUCE, TraceBuilder
from tests.rules.support import measured

Row = tuple[str, int, str, int, int, bool]  # communicator, stream, op, start, duration, inside
Event = tuple[int, str, int, int, int, int]  # rank, op, start, duration, transfer, wait
ASSUMED = "Rank numbers without an entry in the environment are assumed from the order of files and devices."
UNALIGNED = (
    "The traces come from several hosts, or do not say:"
    " their clocks are not aligned, and nothing here needs that."
)
OLDER = 1_780_300_800_000_000_000  # a capture's start


def row(
    start: int, duration: int, op: str = "all_reduce", at: str = "", stream: int = 1, *, inside: bool = True
) -> Row:
    return at, stream, op, start, duration, inside


def part(
    *rows: Row, rank: int | None = None, world: int | None = None, index: int = 0, host: str | None = "host",
    clock: int | None = None, pid: int | None = None, kernels: Sequence[tuple[str, int, int, int]] = (),
    of_hosts: bool = False, ledger: Mapping[str, int] | None = None,
) -> RankPart:  # fmt: skip
    """A rank with those collectives, alone in the file of that index, whose capture began at `clock`."""
    collectives = pl.DataFrame(rows, schema=COLLECTIVES, orient="row").sort("start_ns")
    return RankPart(
        file=f"{index}.sqlite", file_index=index, pid=100 + index if pid is None else pid, known_rank=rank,
        local_rank=rank, world_size=world, node=0, host_key=host, clock_ns=clock, gpus=[], span_ns=10_000,
        busy_ns=9_000, exposed_ns=500, communication_ns=int(collectives.filter("inside")["duration_ns"].sum()),
        step_p50_ns=1_000, window=(0, 10_000), ledger=dict(ledger or {}), collectives=collectives,  # type: ignore[arg-type]
        kernels=pl.DataFrame(kernels, schema=KERNELS_BY_NAME, orient="row"), of_hosts=of_hosts,
    )  # fmt: skip


def ranked(*parts: Sequence[Row]) -> dict[int, RankPart]:
    """A rank for each list of collectives, a file each."""
    return {rank: part(*rows, rank=rank, index=rank) for rank, rows in enumerate(parts)}


def matched(*parts: Sequence[Row]) -> dict[int, list[Event]]:
    """The events of ranks with those collectives, by number: rank, op, start, duration, transfer, wait."""
    return by_event(match_collectives(ranked(*parts))[0])


def by_event(events: pl.DataFrame) -> dict[int, list[Event]]:
    assert dict(events.schema) == EVENTS
    found: dict[int, list[Event]] = defaultdict(list)
    columns = ("event", "rank", "op", "start_ns", "duration_ns", "transfer_ns", "wait_ns")
    for event, *rest in events.select(columns).iter_rows():
        found[event].append(tuple(rest))
    return dict(found)


def starts(events: Mapping[int, Sequence[Event]]) -> list[list[int]]:
    """Of every event the starts, by rank."""
    return sorted([event[2] for event in rows] for rows in events.values())


def left_out(*parts: Sequence[Row]) -> list[str]:
    return match_collectives(ranked(*parts))[1]


def uneven(count: int) -> str:
    return (
        "The ranks do not have the same number of collectives:"
        f" up to {count} that only some have are left out."
    )


# --- numbers ------------------------------------------------------------------------------------------------


def test_known_numbers_whatever_the_order_given() -> None:
    parts = [part(rank=rank, index=index) for index, rank in enumerate((2, 0, 1))]
    found, source, notes = numbered(parts)
    assert [(rank, p.file_index) for rank, p in found.items()] == [(0, 1), (1, 2), (2, 0)]
    assert (source, notes) == ("environment", [])


def test_assumed_numbers_are_the_order_given() -> None:
    found, source, notes = numbered([part(index=index) for index in (4, 2, 3)])
    assert [(rank, p.file_index) for rank, p in found.items()] == [(0, 4), (1, 2), (2, 3)]
    assert (source, notes) == ("assumed", [ASSUMED])


def test_unknown_ranks_take_the_free_numbers() -> None:
    found, source, notes = numbered(
        [part(index=0), part(index=1, rank=0), part(index=2), part(index=3, rank=2)]
    )
    assert [(rank, p.file_index) for rank, p in found.items()] == [(0, 1), (1, 0), (2, 3), (3, 2)]
    assert (source, notes) == ("mixed", [ASSUMED])


def test_a_number_that_two_claim_is_the_first_ones() -> None:
    found, source, notes = numbered([part(index=0, rank=1), part(index=1, rank=1), part(index=2, rank=0)])
    assert [(rank, p.file_index) for rank, p in found.items()] == [(0, 2), (1, 0), (2, 1)]
    said = "Two traces say that they are rank 1: 1.sqlite is given another number."
    assert (source, notes) == ("mixed", [said, ASSUMED])


@pytest.mark.parametrize(
    ("ranks", "world", "missing"),
    [
        ((0, 2), 4, [1, 3]),
        ((0, 1), 2, []),
        ((0, 3), None, [1, 2]),  # gaps alone: nothing says that there is a fourth
        ((None, None), 4, []),  # which ones is not known
        ((1, None), 4, [2, 3]),
    ],
)
def test_missing_ranks(ranks: Sequence[int | None], world: int | None, missing: list[int]) -> None:
    job = job_of([part(rank=rank, world=world, index=index) for index, rank in enumerate(ranks)])
    assert missing_ranks(job) == missing
    assert ranks_block(job).missing == missing
    # that is said where it is not plain from the numbers
    said = [note for note in job.notes if note != ASSUMED]
    assert len(said) == (1 if ranks == (None, None) else 0)
    assert ranks_block(job).world_size == world


def test_traces_of_jobs_of_different_size() -> None:
    job = job_of([part(rank=0, world=2), part(rank=3, world=8, index=1), part(rank=1, index=2)])
    assert job.notes == [
        "The traces come from jobs of different size (2, 8 ranks): they may be of different jobs."
    ]
    assert ranks_block(job).world_size is None
    assert missing_ranks(job) == [2]  # no size is believed


def test_more_ranks_than_the_job_has() -> None:
    job = job_of([part(rank=rank, world=2, index=rank) for rank in range(3)])
    assert job.notes == ["There are 3 ranks here, more than the 2 that the job has."]


def test_which_of_the_jobs_ranks_these_are_is_not_known() -> None:
    job = job_of([part(world=8, index=index) for index in range(2)])
    assert job.notes == [ASSUMED, "The job has 8 ranks, of which 2 are here: which ones is not known."]


def test_one_capture_given_twice() -> None:
    same = {"pid": 5, "clock": OLDER}
    job = job_of([part(index=index, **same) for index in range(2)])  # type: ignore[arg-type]
    assert "The same capture is given twice (0.sqlite and 1.sqlite): it counts as two ranks." in job.notes
    for other in (
        part(index=1, pid=6, clock=OLDER),
        part(index=1, pid=5, clock=OLDER + 1),
        part(index=1, pid=5, clock=OLDER, host="another"),
        part(index=0, pid=5, clock=OLDER),
    ):
        assert job_of([part(pid=5, clock=OLDER), other]).notes == [ASSUMED]
    unknown = [part(index=index, pid=5) for index in range(2)]
    assert job_of(unknown).notes == [ASSUMED]


# --- matching -----------------------------------------------------------------------------------------------


def test_transfer_is_the_shortest_and_the_rest_is_waiting() -> None:
    found = matched(
        [row(100, 50), row(400, 30)],
        [row(120, 30), row(390, 40)],
        [row(90, 60), row(400, 30)],
    )
    first, second = found.values()
    assert first == [
        (0, "all_reduce", 100, 50, 30, 20),
        (1, "all_reduce", 120, 30, 30, 0),
        (2, "all_reduce", 90, 60, 30, 30),
    ]
    assert [(event[0], event[4], event[5]) for event in second] == [(0, 30, 0), (1, 30, 10), (2, 30, 0)]


def test_the_nth_of_each_operation() -> None:
    # one stream, in different order: a group of NCCL calls becomes kernels in any order
    found = matched(
        [row(100, 10), row(200, 20, "all_gather"), row(300, 30)],
        [row(100, 21, "all_gather"), row(200, 11), row(300, 31)],
    )
    assert starts(found) == [[100, 200], [200, 100], [300, 300]]


def test_the_nth_on_each_communicator_whatever_the_stream() -> None:
    found = matched(
        [row(100, 10, at="7"), row(200, 20, at="8"), row(300, 30, at="7", stream=2)],
        [row(100, 21, at="8", stream=2), row(200, 11, at="7"), row(300, 31, at="7")],
    )
    assert starts(found) == [[100, 200], [200, 100], [300, 300]]


def test_the_nth_on_each_stream_where_no_communicator_is_recorded() -> None:
    found = matched(
        [row(100, 10), row(200, 20, stream=2), row(300, 30)],
        [row(100, 21, stream=2), row(200, 11), row(300, 31)],
    )
    assert starts(found) == [[100, 200], [200, 100], [300, 300]]


def test_communicators_that_one_rank_alone_recorded_tell_nothing() -> None:
    # recorded without NVTX, rank 1 says nothing of two communicators: then the order on the stream counts
    known = [row(100, 10, at="7"), row(200, 20, at="8"), row(300, 30, at="7")]
    found = matched(known, [row(100, 11), row(200, 21), row(300, 31)])
    assert starts(found) == [[100, 100], [200, 200], [300, 300]]
    # of one collective the call was lost: the others are known still
    partly = [row(100, 11, at="8"), row(200, 21), row(300, 31, at="7")]
    assert starts(matched(known, partly)) == [[100, 300], [200, 100]]


def test_ranks_of_several_communicators_wait_in_their_own() -> None:
    found = matched(
        [row(100, 50, at="7"), row(400, 10, at="9")],
        [row(100, 40, at="7"), row(400, 20, at="9")],
        [row(100, 90, at="8"), row(400, 30, at="9")],
        [row(100, 30, at="8"), row(400, 40, at="9")],
    )
    assert [[(e[0], e[5]) for e in event] for event in found.values()] == [
        [(0, 10), (1, 0)],
        [(2, 60), (3, 0)],
        [(0, 0), (1, 10), (2, 20), (3, 30)],
    ]


def test_of_two_that_start_together_the_shorter_is_the_first() -> None:
    found = matched([row(100, 30), row(100, 10)], [row(100, 12), row(100, 31)])
    assert [[event[3] for event in rows] for rows in found.values()] == [[10, 12], [30, 31]]


def test_counts_that_differ_leave_out_the_last() -> None:
    # rank 1 ended the recording earlier, and has an operation that nobody else has
    parts = [
        [row(100, 10), row(200, 10), row(300, 10)],
        [row(100, 10), row(150, 10, "broadcast")],
        [row(100, 10), row(200, 10)],
    ]
    assert starts(matched(*parts)) == [[100, 100, 100]]
    # two of rank 0 and the broadcast; the second of rank 2 is the second of rank 0
    assert left_out(*parts) == [uneven(3)]
    assert left_out(*[[row(100, 10), row(200, 10)]] * 2) == []


def test_a_rank_that_never_takes_part_costs_the_others_nothing() -> None:
    parts = [[row(100, 10), row(200, 10)], [row(100, 12), row(200, 12)], []]
    assert starts(matched(*parts)) == [[100, 100], [200, 200]]
    assert left_out(*parts) == []


def test_matching_counts_from_the_start_of_the_capture_and_sums_in_the_window() -> None:
    found = matched(
        [row(100, 10, inside=False), row(200, 20), row(300, 30)],
        [row(110, 11, inside=False), row(210, 21), row(310, 31, inside=False)],
    )
    assert starts(found) == [[200, 210]]


def test_mpi_of_a_host_is_no_kernel_of_another_rank() -> None:
    parts = {
        0: part(row(100, 10, at="7"), rank=0),
        1: part(row(100, 12, at="7"), rank=1, index=1),
        2: part(row(100, 30, "mpi_allreduce", stream=0), rank=2, index=2, of_hosts=True),
        3: part(row(100, 40, "mpi_allreduce", stream=0), rank=3, index=3, of_hosts=True),
    }
    events, notes = match_collectives(parts)
    # that hosts name no communicator says nothing of those that NCCL recorded
    assert {(rank, op) for rank, op in events.select("rank", "op").iter_rows()} == {
        (0, "all_reduce"), (1, "all_reduce"), (2, "mpi_allreduce"), (3, "mpi_allreduce"),
    }  # fmt: skip
    assert notes == []
    assert Job(parts, "environment", [], events).gpu_events["rank"].to_list() == [0, 1]


@pytest.mark.parametrize("parts", [[], [[row(100, 10)]], [[row(100, 10)], []], [[], []]])
def test_nothing_to_match(parts: Sequence[Sequence[Row]]) -> None:
    events, notes = match_collectives(ranked(*parts))
    assert (by_event(events), notes) == ({}, [])


# A window keeps the rows of a rank from some start on, to some other.
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["", "7", "8"]), st.integers(1, 2), st.sampled_from(["all_reduce", "all_gather"]),
        st.integers(0, 12), st.integers(0, 4),
    ),
    max_size=8,
)  # fmt: skip
RANKS = st.lists(st.tuples(ROWS, st.integers(0, 4), st.booleans(), st.booleans()), max_size=4)


def reference(ranks: Mapping[int, tuple[Sequence[Row], bool]]) -> tuple[list[list[Event]], int]:
    """The events of ranks (rows, whether they are the host's), and how many collectives only some have, slowly."""
    silent = any(rows and not host and all(r[0] == "" for r in rows) for rows, host in ranks.values())
    counted: dict[tuple[str, int, str], dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for rank, (rows, _) in ranks.items():
        for one in sorted(rows, key=lambda r: (r[3], r[4])):
            communicator = "" if silent else one[0]
            key = communicator, -1 if communicator else one[1], one[2]
            counted[key][rank].append(one)
    events, missed = [], 0
    several = sum(bool(rows) for rows, _ in ranks.values()) > 1
    for key, of_ranks in counted.items():
        lengths = [len(rows) for rows in of_ranks.values()]
        missed += max(lengths) - (min(lengths) if len(lengths) > 1 else 0)
        for nth in range(min(lengths) if len(lengths) > 1 else 0):
            same = {rank: rows[nth] for rank, rows in of_ranks.items()}
            if all(one[5] for one in same.values()):
                transfer = min(one[4] for one in same.values())
                events.append(
                    [(rank, key[2], o[3], o[4], transfer, o[4] - transfer) for rank, o in same.items()]
                )
    return (events, missed) if several else ([], 0)


@given(RANKS)
def test_matching_against_a_slow_reference(
    drawn: list[tuple[list[tuple[str, int, str, int, int]], int, bool, bool]],
) -> None:
    ranks: dict[int, tuple[list[Row], bool]] = {}
    for rank, (rows, begin, silent, host) in enumerate(drawn):
        ranks[rank] = (
            [
                ("" if silent or host else r[0], r[1], r[2], r[3], r[4], begin <= r[3] < begin + 8)
                for r in rows
            ],
            host,
        )
    parts = {rank: part(*rows, rank=rank, index=rank, of_hosts=host) for rank, (rows, host) in ranks.items()}
    events, notes = match_collectives(parts)
    wanted, missed = reference(ranks)
    assert sorted(sorted(rows) for rows in by_event(events).values()) == sorted(
        sorted(rows) for rows in wanted
    )
    assert notes == ([uneven(missed)] if missed else [])
    assert events.rows() == events.sort("event", "rank").rows()


# --- the straggler ------------------------------------------------------------------------------------------


def events_of(*waits: Sequence[int]) -> pl.DataFrame:
    """Events in which rank 0, 1, ... wait so long."""
    rows = [
        (rank, "all_reduce", event, 0, 10 + wait, 10, wait)
        for event, ranks in enumerate(waits)
        for rank, wait in enumerate(ranks)
    ]
    return pl.DataFrame(rows, schema=EVENTS, orient="row")


def test_the_rank_that_never_waits_is_the_straggler() -> None:
    assert votes(events_of([5, 0, 7], [9, 0, 2])) == (1, 1.0)


def test_share_of_votes_is_of_all_events() -> None:
    # rank 2 comes last in nine of twelve, rank 0 in one; in two two come last together, who are no votes
    waits = [[3, 4, 0]] * 9 + [[0, 4, 2]] + [[0, 0, 5]] * 2
    assert votes(events_of(*waits)) == (2, 0.75)


@pytest.mark.parametrize(
    ("first", "second", "clear"),
    [
        (1, 0, True),  # all that there is
        (4, 4, False),  # of two that take turns one has half of the votes
        (2, 1, False),
        (7, 3, False),
        (8, 2, True),  # 6 more; 1.5 times the square root of 10 is 4.7
        (58, 42, True),  # 16 more than 15
        (57, 43, False),
    ],
)
def test_ranks_that_take_turns_have_no_clear_straggler(first: int, second: int, clear: bool) -> None:
    events = events_of(*[[0, 5]] * first, *[[5, 0]] * second)
    assert votes(events) == (0, round(first / (first + second), 6))
    assert stands_out(events) is clear
    # which of them it is says its votes, not its number
    assert stands_out(events_of(*[[5, 0]] * first, *[[0, 5]] * second)) is clear


def test_no_straggler_without_votes() -> None:
    assert votes(events_of()) == (None, None)
    assert votes(events_of([0, 0], [0, 0])) == (None, None)


def test_a_vote_more_for_a_large_wait_or_a_small_one() -> None:
    # how long the others waited decides nothing: rank 0 is late once, and very
    assert votes(events_of([0, 900], *[[1, 0]] * 9)) == (1, 0.9)


def collectives_of(late: int, ranks: int, count: int) -> list[list[Row]]:
    """Collectives to which one rank always comes last."""
    return [
        [row(1_000 * n, 100 if rank == late else 300 + rank) for n in range(count)] for rank in range(ranks)
    ]


def block(*parts: RankPart) -> Ranks:
    return ranks_block(job_of(parts))


def test_block_of_a_late_rank() -> None:
    lists = collectives_of(late=1, ranks=3, count=4)
    parts = [
        part(
            *rows, rank=rank, world=4, index=rank, clock=OLDER, ledger={"compute": 900 if rank == 1 else 400}
        )
        for rank, rows in enumerate(lists)
    ]
    found = block(*parts)
    assert (found.count, found.missing, found.world_size, found.source) == (3, [3], 4, "environment")
    assert (found.matched_collectives, found.straggler, found.straggler_votes_share) == (4, 1, 1.0)
    assert [(r.rank, r.communication_ns, r.transfer_ns, r.wait_ns) for r in found.per_rank] == [
        (0, 1_200, 400, 800),
        (1, 400, 400, 0),
        (2, 1_208, 400, 808),
    ]
    assert all(r.transfer_ns + r.wait_ns == r.communication_ns for r in found.per_rank)  # type: ignore[operator]
    row_1 = found.per_rank[1]
    assert (row_1.gpu, row_1.file, row_1.node, row_1.local_rank) == (None, "1.sqlite", 0, 1)
    assert (row_1.span_ns, row_1.busy_ns, row_1.exposed_ns, row_1.step_p50_ns) == (10_000, 9_000, 500, 1_000)
    # 500 ns of a span of 10 us
    assert found.straggler_cause == "compute"
    assert isinstance(found.straggler_reason, str)
    assert found.straggler_reason.startswith("Rank 1 is late because it computes more")


@pytest.mark.parametrize(("late", "says"), [(20, True), (19, False)])
def test_why_a_rank_is_late_needs_half_of_the_votes(late: int, says: bool) -> None:
    # rank 0 comes last in so many of forty collectives; the others share the rest
    lists: list[list[Row]] = [[] for _ in range(5)]
    for n in range(40):
        last = 0 if n < late else 1 + n % 4
        for rank, rows in enumerate(lists):
            rows.append(row(1_000 * n, 100 if rank == last else 200 + rank))
    parts = [
        part(*rows, rank=rank, index=rank, ledger={"compute": 0 if rank else 9_000})
        for rank, rows in enumerate(lists)
    ]
    found = block(*parts)
    assert (found.straggler, found.straggler_votes_share) == (0, late / 40)
    assert (found.straggler_cause == "compute", isinstance(found.straggler_reason, str)) == (says, says)


def test_block_of_ranks_without_collectives() -> None:
    found = block(part(rank=0), part(rank=1, index=1))
    assert (found.matched_collectives, found.straggler, found.straggler_votes_share) == (0, None, None)
    assert [(r.communication_ns, r.transfer_ns, r.wait_ns) for r in found.per_rank] == [(0, None, None)] * 2
    assert (found.straggler_reason, found.straggler_cause, found.notes) == (None, None, [])


def test_a_rank_without_collectives_among_others() -> None:
    lists = collectives_of(late=0, ranks=2, count=2)
    found = block(*(part(*rows, rank=rank, index=rank) for rank, rows in enumerate([*lists, []])))
    assert [(r.transfer_ns, r.wait_ns) for r in found.per_rank] == [(200, 0), (200, 402), (None, None)]


# --- clocks -------------------------------------------------------------------------------------------------


def two_files(
    *, host: str | None = "host", clocks: tuple[int | None, int | None] = (OLDER, OLDER + 50_000)
) -> Job:
    """The second capture began 50 us later; of three collectives the ends differ by 100, 200 and 900 ns."""
    first = [row(100_000, 1_000), row(200_000, 1_000), row(300_000, 1_000)]
    second = [row(50_500, 600), row(150_000, 1_200), row(250_000, 1_900)]
    return job_of(
        [
            part(*first, rank=0, host="host", clock=clocks[0]),
            part(*second, rank=1, index=1, host=host, clock=clocks[1]),
        ]
    )


def test_clocks_of_one_host_are_aligned_by_the_start_of_the_sessions() -> None:
    job = two_files()
    assert job.notes == [
        "Aligned by the start of the sessions, the ranks end a collective within 200 ns of each other (median)."
    ]
    assert shared_clock(job.parts.values()) == {0: OLDER, 1: OLDER + 50_000}
    # the waits do not depend on it
    assert job.events["wait_ns"].to_list() == two_files(clocks=(OLDER, OLDER)).events["wait_ns"].to_list()


def test_clocks_of_several_hosts_are_not_aligned() -> None:
    for job in (
        two_files(host="another"),
        two_files(host=None),
        two_files(clocks=(OLDER, None)),
        two_files(clocks=(None, OLDER)),
    ):
        assert job.notes == [UNALIGNED]
        assert shared_clock(job.parts.values()) is None
        # and nothing needs that
        assert job.events["wait_ns"].to_list() == [400, 0, 0, 200, 0, 900]


def test_unknown_hosts_are_not_one_host() -> None:
    parts = [part(index=index, host=None, clock=OLDER) for index in range(2)]
    assert shared_clock(parts) is None


def test_ranks_of_one_file_have_one_clock() -> None:
    parts = [part(row(100, 10), rank=rank, pid=rank, host=None, clock=None) for rank in range(2)]
    assert job_of(parts).notes == [
        "On one clock, the ranks end a collective within 0 ns of each other (median)."
    ]


def test_no_residual_without_collectives() -> None:
    assert job_of([part(rank=0), part(rank=1, index=1, host="another")]).notes == []


# --- kernels ------------------------------------------------------------------------------------------------


def test_ranks_that_run_the_same_kernels_are_alike() -> None:
    both, one = ("gemm", 8, 10, 600), ("add", 8, 10, 200)
    same = [part(rank=0, kernels=[both, one]), part(rank=1, index=1, kernels=[one, both])]
    assert kernels_alike(job_of(same)) == 1.0
    # the name alone counts; 200 of 800 ns of the second are in a kernel of its own
    other = [part(rank=0, kernels=[both]), part(rank=1, index=1, kernels=[("gemm", 16, 1, 600), one])]
    assert kernels_alike(job_of(other)) == 0.75
    # three ranks: what two of them run is not what all run
    third = part(rank=2, index=2, kernels=[both])
    assert kernels_alike(job_of([*same, third])) == 0.75
    assert kernels_alike(job_of([part(rank=0), part(rank=1, index=1)])) == 1.0


# --- a trace ------------------------------------------------------------------------------------------------


def test_two_processes_of_a_trace(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100"))
    for step, device in product(range(5), range(2)):
        at, length = 1_000 * step, 400 + 300 * device  # the second computes longer
        where = {"pid": 10 + device, "device": device}
        trace.kernel(at, at + length, **where)  # type: ignore[arg-type]
        trace.kernel(at + length, at + 800, ALL_REDUCE, stream=20, **where)  # type: ignore[arg-type]
    found = ranks_block(job_of(rank_parts(measured(trace, tmp_path))))
    assert found.source == "assumed"
    assert [(r.rank, r.transfer_ns, r.wait_ns) for r in found.per_rank] == [
        (0, 500_000, 1_500_000),
        (1, 500_000, 0),
    ]
    assert (found.straggler, found.straggler_votes_share, found.straggler_cause) == (1, 1.0, "slower_kernels")
    assert [r.gpu for r in found.per_rank] == [
        "gpu1",
        "gpu0",
    ]  # TARGET_INFO_GPU.id counts against CUDA's order
    assert found.notes == [
        ASSUMED,
        "On one clock, the ranks end a collective within 0 ns of each other (median).",
    ]


def test_a_rank_of_two_gpus_names_none(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100",) * 3).kernel(0, 100, pid=10).kernel(0, 200, pid=10, device=1)
    trace.kernel(0, 300, pid=11, device=2)
    found = ranks_block(job_of(rank_parts(measured(trace, tmp_path))))
    assert [(r.gpu, r.busy_ns) for r in found.per_rank] == [(None, 300_000), ("gpu0", 300_000)]
