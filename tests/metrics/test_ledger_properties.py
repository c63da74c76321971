"""The ledger against a slow reference on random traces, and what holds for every ledger."""

from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsys_triage.metrics import ledger as module
from nsys_triage.metrics.activity import busy_pieces
from nsys_triage.metrics.api_names import SYNC
from nsys_triage.metrics.gap_block import summarize_gaps
from nsys_triage.metrics.gaps import GapTable, build_gaps, copies_after_kernels, input_copies
from nsys_triage.metrics.ledger import LEDGER, Ledger, build_ledger
from nsys_triage.metrics.steps import STEPS
from nsys_triage.metrics.work import Workload, build_workload
from nsys_triage.result.model import BUSY_CAUSES, CAUSES
from nsys_triage.trace.model import FRAMES, Trace
from tests.metrics.random_rows import Steps
from tests.metrics.random_traces import RandomTrace, build, dense_trace, traces
from tests.metrics.reference import Part, Reference, by_gap_and_cause, joined
from tests.metrics.reference_rows import GpuKey

some = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def fast(trace: Trace, steps: Steps, window: tuple[int, int]) -> tuple[Workload, GapTable, Ledger]:
    workload = build_workload(trace)
    inputs = input_copies(copies_after_kernels(trace, workload), window)
    table = build_gaps(trace, workload, inputs)
    rows = sorted(steps)
    ledger = build_ledger(
        trace, workload, busy_pieces(workload.work), table, pl.DataFrame(rows, schema=STEPS, orient="row")
    )
    return workload, table, ledger


def gpu_keys(workload: Workload) -> dict[int, GpuKey]:
    return {
        gpu.index: gpu.gpu_id if gpu.gpu_id is not None else (gpu.processes[0], gpu.devices[0])
        for gpu in workload.gpus.all
    }


def as_parts(pieces: pl.DataFrame, table: GapTable, keys: dict[int, GpuKey]) -> list[Part]:
    starts = table.gaps["start_ns"].to_list()
    parts = [
        Part(keys[gpu], start, end, CAUSES[cause], None if gap is None else starts[gap])
        for gpu, start, end, cause, gap in pieces.select(
            "gpu", "start_ns", "end_ns", "cause", "gap"
        ).iter_rows()
    ]
    return joined(parts)


def differences(found: list[Part], expected: list[Part]) -> str:
    """What differs by GPU, gap and cause."""
    keys = ["gpu", "gap", "cause"]
    both = by_gap_and_cause(found).join(
        by_gap_and_cause(expected), on=keys, how="full", suffix="_expected", nulls_equal=True, coalesce=True
    )
    return str(both.filter(pl.col("ns").ne_missing(pl.col("ns_expected"))).sort(keys).rows())


def check(random: RandomTrace) -> None:
    """The fast ledger is the reference's, to the nanosecond and gap by gap."""
    workload, table, ledger = fast(random.trace, random.steps, random.window)
    reference = Reference(random.trace, random.steps, random.window)
    assert table.latency_ns == reference.latency
    assert table.clock_fault == reference.clock_fault
    found, expected = as_parts(ledger.pieces, table, gpu_keys(workload)), reference.ledger()
    assert found == expected, differences(found, expected)


@some
@given(traces())
def test_the_ledger_is_that_of_the_reference(random: RandomTrace) -> None:
    check(random)


# chosen from 500 so that every cause occurs under every circumstance that they show
TELLING = (
    9, 24, 74, 125, 132, 136, 139, 211, 214, 219, 243, 263, 280, 291, 322, 349, 371, 387, 396, 401, 411, 440, 460, 466,
)  # fmt: skip


@pytest.mark.parametrize("number", TELLING)
def test_the_ledger_of_a_longer_trace_is_that_of_the_reference(number: int) -> None:
    check(dense_trace(number))


@pytest.mark.parametrize("gaps", [1, 3])
def test_it_makes_no_difference_how_many_gaps_are_explained_at_once(
    gaps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLICE_GAPS", gaps)
    for number in (9, 263, 440):
        check(dense_trace(number))


@some
@given(traces())
def test_the_pieces_are_a_partition_of_each_span(random: RandomTrace) -> None:
    workload, table, ledger = fast(random.trace, random.steps, random.window)
    pieces = ledger.pieces
    assert pieces.schema == LEDGER
    work = workload.work.filter(pl.col("end_ns") > pl.col("start_ns"))
    assert pieces["gpu"].unique().sort().to_list() == work["gpu"].unique().sort().to_list()
    for gpu in pieces["gpu"].unique():
        spans = (
            work.filter(pl.col("gpu") == gpu).select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
        )
        bounds = pieces.filter(pl.col("gpu") == gpu).select("start_ns", "end_ns").rows()
        assert (bounds[0][0], bounds[-1][1]) == spans
        assert all(start < end for start, end in bounds)
        assert all(one[1] == other[0] for one, other in pairwise(bounds))
        assert sum(end - start for start, end in bounds) == spans[1] - spans[0]
    busy = pl.col("cause") < len(BUSY_CAUSES)
    assert pieces.filter(busy)["gap"].null_count() == pieces.filter(busy).height
    idle = (
        pieces.filter(~busy).group_by("gap").agg(pl.col("start_ns").min(), pl.col("end_ns").max()).sort("gap")
    )
    assert idle.rows() == table.gaps.select("gap", "start_ns", "end_ns").rows()
    assert pieces.select("gpu", "start_ns").is_unique().all()
    assert pieces.rows() == pieces.sort("gpu", "start_ns").rows()


@some
@given(traces())
def test_host_sync_alone_names_the_wait_that_costs_it(random: RandomTrace) -> None:
    workload, table, ledger = fast(random.trace, random.steps, random.window)
    waiting = pl.col("cause") == CAUSES.index("host_sync")
    assert ledger.pieces.filter(~waiting)["call"].null_count() == ledger.pieces.filter(~waiting).height
    named = ledger.pieces.filter(waiting)
    assert named["call"].null_count() == 0
    calls = workload.calls[named["call"]]
    gaps = table.gaps[named["gap"]]
    assert ((calls["group"] & SYNC) > 0).all()
    assert ((calls["thread"] == gaps["host_thread"]) | (calls["thread"] == gaps["launch_thread"])).all()
    # it opened the gap, or the piece lies in it
    opened = (calls["start_ns"] < gaps["start_ns"]) & (gaps["start_ns"] <= calls["end_ns"])
    inside = (calls["start_ns"] <= named["start_ns"]) & (named["start_ns"] < calls["end_ns"])
    assert (opened | inside).all()


@some
@given(traces(), st.floats(-0.1, 1.1), st.floats(0, 1))
def test_a_window_cuts_the_ledger_and_changes_nothing_else(
    random: RandomTrace, place: float, length: float
) -> None:
    workload, table, ledger = fast(random.trace, random.steps, random.window)
    whole = ledger.pieces.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    span = (whole[1] or 0) - (whole[0] or 0)
    low = (whole[0] or 0) + int(place * span)
    high = low + int(length * span)
    keys = gpu_keys(workload)
    cut = [
        replace(part, start=max(part.start, low), end=min(part.end, high))
        for part in as_parts(ledger.pieces, table, keys)
        if max(part.start, low) < min(part.end, high)
    ]
    pieces = ledger.within(low, high)
    assert as_parts(pieces, table, keys) == cut
    steps = pl.DataFrame(sorted(random.steps), schema=STEPS, orient="row")
    for (gpu,), own in pieces.group_by(["gpu"]):
        gaps = summarize_gaps(random.trace, workload, table, own, steps)
        idle = [part for part in cut if part.gpu == keys[int(str(gpu))] and part.gap is not None]
        assert gaps.count == len({part.gap for part in idle}) == sum(b.count for b in gaps.histogram)
        assert (
            gaps.total_ns
            == sum(part.end - part.start for part in idle)
            == sum(b.total_ns for b in gaps.histogram)
        )
        lengths = [gap.end_ns - gap.start_ns for gap in gaps.longest]
        assert lengths == sorted(lengths, reverse=True)
        assert lengths[:1] == ([gaps.max_ns] if gaps.count else [])
        for gap in gaps.longest:
            expected: dict[str, int] = {}
            for part in idle:
                if gap.start_ns <= part.start < gap.end_ns:
                    expected[part.cause] = expected.get(part.cause, 0) + part.end - part.start
            assert {c.cause: c.ns for c in gap.causes} == expected


@some
@given(traces(), st.sampled_from((-(10**9), 1, 1_700_000_000_000_000_000)), st.integers(0, 9))
def test_neither_the_order_of_rows_nor_the_origin_of_time_matters(
    random: RandomTrace, shift: int, seed: int
) -> None:
    workload, table, ledger = fast(random.trace, random.steps, random.window)
    frames = {
        name: getattr(random.trace, name)
        .with_columns(pl.col("^(start|end|time)_ns$") + shift)
        .sample(fraction=1, shuffle=True, seed=seed)
        for name in FRAMES
    }
    steps = [(pid, index, start + shift, end + shift) for pid, index, start, end in random.steps]
    low, high = random.window
    moved = fast(replace(random.trace, **frames), steps, (low + shift, high + shift))
    expected = [
        replace(
            part,
            start=part.start + shift,
            end=part.end + shift,
            gap=None if part.gap is None else part.gap + shift,
        )
        for part in as_parts(ledger.pieces, table, gpu_keys(workload))
    ]
    found = as_parts(moved[2].pieces, moved[1], gpu_keys(moved[0]))
    assert found == expected, differences(found, expected)


def test_without_device_work_there_is_no_ledger() -> None:
    nothing = build(
        [("wait", 0, 1_000, 0, 0)], 1, 0, seed=0, missing=set(), one_gpu=False, late=False, apart=False
    )
    _, table, ledger = fast(nothing.trace, [], (0, 1))
    assert ledger.pieces.schema == LEDGER
    assert ledger.pieces.is_empty()
    assert table.gaps.is_empty()
    assert ledger.within(0, 10).is_empty()
