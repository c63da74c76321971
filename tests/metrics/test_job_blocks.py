"""The blocks of several traces as those of the job: sums of parts, exact where that is possible. Numbers by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from msgspec import structs

from nsys_triage.metrics.job_blocks import (
    Blocks,
    blocks_of,
    join_collectives,
    join_copies,
    join_kernels,
    join_launches,
    join_ranges,
    join_sync,
    weighted_rank,
    with_waits,
)
from nsys_triage.metrics.ranks import EVENTS
from nsys_triage.result.model import CollectiveOp, Collectives
from tests.builders.trace import ADD, ALL_REDUCE, GEMM, TraceBuilder
from tests.rules.support import measured

ALL_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
ONE_SHOT = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)"
NO_EVENTS = pl.DataFrame(schema=EVENTS)


def blocks(trace: TraceBuilder, folder: Path) -> Blocks:
    return blocks_of(measured(trace, folder))


def plant(trace: TraceBuilder, rank: int) -> TraceBuilder:
    """A rank with something in every block; the second has more, other and longer."""
    own = trace.on(pid=100 + rank, device=rank)
    for step in range(4):
        at = 1_000 * step
        own.range(f"step {step}", at - 20, at + 940).range("forward", at - 15, at + 300 + 10 * rank)
        own.copy(at, at + 50, bytes_=(1 + rank) << 20, pinned=rank == 1 and step > 0)
        own.kernel(at + 60, at + 300 + 50 * rank, GEMM).kernel(at + 400, at + 405 + rank, ADD)
        own.kernel(at + 420, at + 500, ALL_REDUCE, stream=20)
        own.copy(at + 600, at + 602, "device_to_host", bytes_=4)
        own.wait("cudaStreamSynchronize_v3020", at + 595, at + 640)
    own.kernel(4_000, 4_100, (GEMM, "void mine()")[rank]).kernel(4_100, 4_130, (ALL_GATHER, ONE_SHOT)[rank])
    own.kernel(4_140, 4_150, ONE_SHOT)
    if rank:
        own.wait("cudaDeviceSynchronize", 4_200, 4_300).memset(4_250, 4_290)
        own.copy(4_290, 4_310, "device_to_device", bytes_=100)
    return trace


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Blocks]:
    """The blocks of two ranks, a file each."""
    folder = tmp_path_factory.mktemp("ranks")
    return [blocks(plant(TraceBuilder(gpus=("H100", "H100")), rank), folder) for rank in range(2)]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Blocks:
    """The same two ranks in one file: what the job's blocks ought to be."""
    trace = TraceBuilder(gpus=("H100", "H100"))
    return blocks(plant(plant(trace, 0), 1), tmp_path_factory.mktemp("both"))


def fields(block: msgspec.Struct | Sequence[Any], *left_out: str) -> Any:
    """A block as plain data, without those fields at any depth."""

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: kept(part) for key, part in value.items() if key not in left_out}
        return [kept(part) for part in value] if isinstance(value, list) else value

    return kept(msgspec.to_builtins(block))


def about(value: Any) -> Any:
    """Plain data with numbers to be compared with six digits: those of a job are rounded."""
    if isinstance(value, dict):
        return {key: about(part) for key, part in value.items()}
    if isinstance(value, list):
        return [about(part) for part in value]
    return pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float) else value


# --- one trace ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1])
def test_join_of_one_trace_is_that_trace(ranks: list[Blocks], rank: int) -> None:
    only = ranks[rank]
    assert fields(join_kernels([only])) == about(fields(only.kernels))
    assert fields(join_launches([only])) == about(fields(only.launches))
    assert fields(join_sync([only], 4)) == about(fields(only.sync))
    assert fields(join_copies([only])) == about(fields(only.copies))
    assert fields(join_collectives([only], NO_EVENTS)) == about(fields(only.collectives))
    assert fields(join_ranges([only])) == about(fields(only.ranges))


def test_the_traces_have_something_in_every_block(ranks: list[Blocks], both: Blocks) -> None:
    for found in (*ranks, both):
        assert found.kernels.count
        assert found.launches.host_calls
        assert found.sync.readbacks.count == 4 * (2 if found is both else 1)
        assert found.copies.kinds
        assert found.collectives.count
        assert found.ranges
    assert ranks[0].unattributed_ns + ranks[1].unattributed_ns == both.unattributed_ns > 0


# --- two traces ---------------------------------------------------------------------------------------------


def test_kernels_are_those_of_all_traces(ranks: list[Blocks], both: Blocks) -> None:
    joined = join_kernels(ranks)
    assert joined.count == 15 + 15
    # quantiles over all kernels are exact; those of one name and the launch shapes are not known so well
    approximate = ("p25_ns", "p50_ns", "p75_ns", "shapes")
    assert fields(joined, "top", "by_shape") == about(fields(both.kernels, "top", "by_shape"))
    assert fields(joined.top, *approximate) == about(fields(both.kernels.top, *approximate))
    assert joined.by_shape
    assert both.kernels.by_shape
    assert [k.name for k in joined.by_shape.kernels] == [k.name for k in both.kernels.by_shape.kernels]


def test_quantiles_of_all_kernels_are_exact(tmp_path: Path) -> None:
    # 1..50 and 51..100 us: no quantile of the job is one of a trace, or their mean
    parts = []
    for first in (1, 51):
        trace = TraceBuilder()
        for length in range(first, first + 50):
            trace.kernel(1_000 * length, 1_001 * length)
        parts.append(blocks(trace, tmp_path))
    joined = join_kernels(parts)
    assert (joined.p50_ns, joined.p90_ns, joined.p95_ns, joined.p99_ns, joined.max_ns) == (
        50_000, 90_000, 95_000, 99_000, 100_000,
    )  # fmt: skip
    assert joined.small_share == 0.09  # 1 to 9 us
    assert joined.small_time_share == round(45 / 5_050, 6)


def test_quantiles_round_up(tmp_path: Path) -> None:
    parts = [blocks(TraceBuilder().kernel(0, length), tmp_path) for length in (30, 10, 20)]
    joined = join_kernels(parts)
    # the second and the third of three
    assert (joined.p50_ns, joined.p90_ns) == (20_000, 30_000)


def test_top_kernels_by_name(tmp_path: Path) -> None:
    first = blocks(TraceBuilder().kernels(0, 2, every=100, length=40, grid=(8, 1, 1)), tmp_path)
    second = blocks(TraceBuilder().kernels(0, 3, every=100, length=90).kernel(500, 850, ADD), tmp_path)
    gemm, add = sorted(join_kernels([first, second]).top, key=lambda row: row.name)
    assert (gemm.name, gemm.count, gemm.total_ns, gemm.max_ns) == (GEMM, 5, 350_000, 90_000)
    # the third of 40, 40, 90, 90, 90; launched as most often
    assert (gemm.p50_ns, gemm.grid) == (90_000, [1056, 1, 1])
    assert (add.count, add.total_ns) == (1, 350_000)
    # of equal totals the lower name first
    assert [row.name for row in join_kernels([second, first]).top] == sorted([GEMM, ADD])


def test_distinct_kernels_of_ranks_that_run_different_ones(tmp_path: Path) -> None:
    stages = [
        blocks(TraceBuilder().kernel(0, 10, f"stage_{n}()").kernel(20, 30, GEMM), tmp_path) for n in range(3)
    ]
    assert join_kernels(stages).distinct == 4
    # where a trace does not list its kernels, there are as many as it counted
    unlisted = [
        replace(b, kernels=structs.replace(b.kernels, top=[], distinct=7, by_shape=msgspec.UNSET))
        for b in stages
    ]
    assert join_kernels(unlisted).distinct == 7


def test_no_more_than_twenty_kernels_and_thirty_ranges(tmp_path: Path) -> None:
    parts = []
    for letter in "ab":
        trace = TraceBuilder()
        for n in range(25):
            at = 1_000 * n
            trace.range(f"{letter}{n}", at - 20, at + 200 + n).kernel(at, at + 100 + n, f"{letter}{n}()")
        parts.append(blocks(trace, tmp_path))
    joined = join_kernels(parts)
    assert (len(joined.top), joined.distinct) == (20, 50)
    assert [row.name for row in joined.top[:3]] == ["a24()", "b24()", "a23()"]
    # the longest, of equally long ones the lower name first
    longest = [f"{letter}{n}" for n in range(24, 9, -1) for letter in "ab"]
    assert [row.name for row in join_ranges(parts[::-1])] == longest


def test_launches_are_sums(ranks: list[Blocks], both: Blocks) -> None:
    joined = join_launches(ranks)
    assert fields(joined, "latency_p50_ns", "latency_p95_ns", "per_s", "queue_depth_p50") == fields(
        both.launches, "latency_p50_ns", "latency_p95_ns", "per_s", "queue_depth_p50"
    )
    assert (joined.host_calls, joined.threads) == (30, 2)
    rates = [b.launches.per_s for b in ranks]
    assert joined.per_s == pytest.approx(sum(rate for rate in rates if rate is not None))


def test_latencies_of_launches_by_their_number(tmp_path: Path) -> None:
    def late(count: int, latency: float) -> Blocks:
        trace = TraceBuilder()
        for n in range(count):
            trace.kernel(1_000 * n, 1_000 * n + 50, call=(1_000 * n - latency, 1_000 * n - latency + 5))
        return blocks(trace, tmp_path)

    # nineteen of twenty are 10 us late: the 95th percentile is too
    assert join_launches([late(1, 500), late(19, 10)]).latency_p95_ns == 10_000
    joined = join_launches([late(2, 500), late(18, 10)])
    assert (joined.latency_p50_ns, joined.latency_p95_ns) == (10_000, 500_000)
    # of two and one, half of the launches are among the two
    assert join_launches([late(1, 10), late(2, 500)]).latency_p50_ns == 500_000


def test_launches_that_the_queue_held_back(ranks: list[Blocks]) -> None:
    def rank(calls: int, blocked: int, faults: int, depth: int | None) -> Blocks:
        said = structs.replace(
            ranks[0].launches,
            host_calls=calls,
            blocked_calls=blocked,
            blocked_ns=1_000 * blocked,
            clock_faults=faults,
            queue_depth_p50=depth,
        )
        return replace(ranks[0], launches=said)

    joined = join_launches([rank(10, 2, 1, 900), rank(30, 3, 4, 5), rank(0, 0, 0, None)])
    assert (joined.blocked_calls, joined.blocked_ns, joined.clock_faults) == (5, 5_000, 5)
    # three of four launches saw a queue of five
    assert joined.queue_depth_p50 == 5


def test_synchronising_calls_are_sums(ranks: list[Blocks], both: Blocks) -> None:
    joined = join_sync(ranks, steps=4)
    assert fields(joined, "per_step") == fields(both.sync, "per_step")
    assert (joined.calls, joined.total_ns) == (9, 8 * 45_000 + 100_000)
    # eight in four steps of two ranks
    assert (joined.readbacks.count, joined.readbacks.per_step) == (8, 1.0)


def test_a_call_that_copied_and_waited_in_one_trace_did_so(ranks: list[Blocks]) -> None:
    rows = [structs.replace(row, blocking_copies=True) for row in ranks[0].sync.by_api]
    copying = replace(ranks[0], sync=structs.replace(ranks[0].sync, by_api=rows))
    found = {row.api: row.blocking_copies for row in join_sync([copying, ranks[1]], steps=4).by_api}
    assert found == {"cudaStreamSynchronize": True, "cudaDeviceSynchronize": False}


def test_copies_are_sums(ranks: list[Blocks], both: Blocks) -> None:
    joined = join_copies(ranks)
    approximate = ("p50_bytes", "bytes_per_s")
    assert fields(joined, *approximate) == about(fields(both.copies, *approximate))
    inputs = next(kind for kind in joined.kinds if kind.kind == "host_to_device")
    assert (inputs.count, inputs.bytes, inputs.total_ns) == (8, 12 << 20, 400_000)
    assert (inputs.pageable_bytes, inputs.max_bytes, inputs.p50_bytes) == (6 << 20, 2 << 20, 1 << 20)
    assert inputs.bytes_per_s == round((12 << 20) / 400e-6, 1)


def test_collectives_are_sums(ranks: list[Blocks], both: Blocks) -> None:
    joined = join_collectives(ranks, NO_EVENTS)
    assert fields(joined) == fields(both.collectives)
    assert (joined.count, joined.other_count, joined.total_ns) == (9, 3, 8 * 80_000 + 2 * 30_000 + 2 * 10_000)
    assert (joined.wait_ns, joined.transfer_ns, joined.wait_share) == (None, None, None)


def test_ranges_are_sums(ranks: list[Blocks], both: Blocks) -> None:
    joined = {row.name: row for row in join_ranges(ranks)}
    wanted = {row.name: row for row in both.ranges}
    assert joined.keys() == wanted.keys()
    for name, row in joined.items():
        assert (row.count, row.total_ns, row.gpu_ns, row.gpu_window_ns) == (
            wanted[name].count, wanted[name].total_ns, wanted[name].gpu_ns, wanted[name].gpu_window_ns,
        )  # fmt: skip
    # four of 315 us and four of 325, whatever the order
    assert (joined["forward"].count, joined["forward"].p50_ns) == (8, 315_000)
    assert join_ranges(ranks[::-1]) == join_ranges(ranks)
    assert list(joined) == sorted(joined, key=lambda name: (-joined[name].total_ns, name))


# --- what is not known --------------------------------------------------------------------------------------


def test_traces_without_kernels(tmp_path: Path) -> None:
    copies = blocks(TraceBuilder().copy(0, 10, bytes_=100), tmp_path)
    joined = join_kernels([copies, copies])
    assert (joined.count, joined.sum_ns, joined.distinct, joined.top, joined.classes) == (0, 0, 0, [], [])
    assert (joined.p50_ns, joined.max_ns, joined.small_share, joined.small_time_share) == (None,) * 4
    launches = join_launches([copies, copies])
    assert (launches.host_calls, launches.latency_p50_ns, launches.queue_depth_p50) == (0, None, None)
    # what one trace does not have is none of it
    kernels = blocks(TraceBuilder().kernel(0, 100), tmp_path)
    assert join_kernels([copies, kernels]).p50_ns == 100_000
    assert join_launches([copies, kernels]).latency_p50_ns == 10_000
    assert join_copies([kernels, kernels]).kinds == []


def test_sizes_of_collectives_are_known_where_every_trace_knows_them(tmp_path: Path) -> None:
    def trace(size: int | None) -> TraceBuilder:
        found = TraceBuilder().kernel(0, 50).kernel(100, 200, ALL_REDUCE, stream=20)
        if size is not None:
            payload = {"Message size [bytes]": size}
            found.range("ncclAllReduce", 88, 97, domain="NCCL", json_payload=payload)
        return found

    known, more, unknown = (blocks(trace(size), tmp_path) for size in (64, 100, None))
    assert [op.bytes for op in join_collectives([known, more], NO_EVENTS).by_op] == [164]
    assert [op.bytes for op in join_collectives([known, unknown], NO_EVENTS).by_op] == [None]
    # a trace without that operation knows nothing against it
    none = blocks(TraceBuilder().kernel(0, 50), tmp_path)
    assert [op.bytes for op in join_collectives([known, none], NO_EVENTS).by_op] == [64]


def test_one_link_where_all_have_the_same(tmp_path: Path) -> None:
    h100, a100 = (blocks(TraceBuilder(gpus=(gpu,)).copy(0, 100), tmp_path) for gpu in ("H100", "A100"))
    assert h100.copies.link_name
    assert join_copies([h100, h100]).link_name == h100.copies.link_name
    assert join_copies([h100, h100]).link_bytes_per_s == h100.copies.link_bytes_per_s
    unknown = replace(h100, copies=structs.replace(h100.copies, link_bytes_per_s=None, link_name=None))
    for other in (a100, unknown):
        joined = join_copies([h100, other])
        assert (joined.link_bytes_per_s, joined.link_name) == (None, None)


def test_no_rate_of_copies_without_time(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 10).copy(20, 20, bytes_=100)
    assert [kind.bytes_per_s for kind in join_copies([blocks(trace, tmp_path)] * 2).kinds] == [None]


def test_read_backs_per_step_without_steps(ranks: list[Blocks]) -> None:
    assert join_sync(ranks, steps=0).readbacks.per_step is None


# --- waiting ------------------------------------------------------------------------------------------------


def collectives(*ops: tuple[str, int]) -> Collectives:
    return Collectives(
        count=len(ops),
        total_ns=sum(ns for _, ns in ops),
        exposed_ns=0,
        other_count=0,
        wait_ns=None,
        transfer_ns=None,
        wait_share=None,
        by_op=[CollectiveOp(op=op, count=1, total_ns=ns, exposed_ns=0, bytes=8) for op, ns in ops],
    )


def events(*rows: tuple[int, str, int, int]) -> pl.DataFrame:
    """Rank, operation, transfer and wait of matched collectives."""
    full = [
        (rank, op, n, 0, transfer + wait, transfer, wait) for n, (rank, op, transfer, wait) in enumerate(rows)
    ]
    return pl.DataFrame(full, schema=EVENTS, orient="row")


def test_waiting_and_transfer_are_sums_over_the_ranks() -> None:
    found = with_waits(
        collectives(("all_reduce", 700), ("all_gather", 200), ("broadcast", 100)),
        events((0, "all_reduce", 150, 200), (1, "all_reduce", 150, 0), (0, "all_gather", 90, 20)),
    )
    assert (found.wait_ns, found.transfer_ns) == (220, 390)
    # of all communication, what was not matched included
    assert found.wait_share == 0.22
    assert [(op.op, op.wait_ns, op.transfer_ns) for op in found.by_op] == [
        ("all_reduce", 200, 300),
        ("all_gather", 20, 90),
        ("broadcast", None, None),
    ]


def test_no_more_than_all_of_it_is_waiting() -> None:
    assert with_waits(collectives(("all_reduce", 700)), events((0, "all_reduce", 0, 701))).wait_share == 1.0


def test_nothing_matched_leaves_it_unknown() -> None:
    plain = collectives(("all_reduce", 700))
    assert with_waits(plain, NO_EVENTS) == plain
    # MPI of the hosts is no kernel
    none = collectives()
    assert with_waits(none, events((0, "mpi_allreduce", 10, 10))) == none


def test_waiting_of_joined_traces(ranks: list[Blocks]) -> None:
    matched = events(
        *[(rank, "all_reduce", 60_000, 20_000 * (1 - rank)) for rank in range(2) for _ in range(4)]
    )
    joined = join_collectives(ranks, matched)
    assert (joined.wait_ns, joined.transfer_ns) == (80_000, 480_000)
    assert joined.wait_share == round(80 / 720, 6)


# --- weighted percentiles -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "q", "wanted"),
    [
        ([], 50, None),
        ([(None, 5)], 50, None),
        ([(7, 0)], 50, None),
        ([(7, 1)], 1, 7),
        ([(7, 1), (9, 1)], 50, 7),
        ([(9, 1), (7, 1)], 51, 9),
        ([(7, 1), (9, 3)], 25, 7),
        ([(7, 1), (9, 3)], 26, 9),
        ([(9, 3), (None, 100), (7, 1)], 100, 9),
        ([(1, 19), (100, 1)], 95, 1),
        ([(1, 18), (100, 2)], 95, 100),
    ],
)
def test_weighted_rank(values: list[tuple[int | None, int]], q: int, wanted: int | None) -> None:
    assert weighted_rank(values, q) == wanted
