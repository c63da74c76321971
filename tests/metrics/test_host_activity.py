from pathlib import Path

import polars as pl

from nsys_triage.metrics.api_names import ALLOCATION
from nsys_triage.metrics.host_activity import (
    SPANS,
    api_calls_in,
    host_spans,
    loader_ranges_in,
    os_calls_in,
    outermost,
    symbols_in,
)
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.measure import Measurement
from tests.builders.trace import PID, TraceBuilder
from tests.rules.support import measured


def all_spans(m: Measurement) -> pl.DataFrame:
    return host_spans(m.pieces, m.gaps.gaps)


def gap(launch: float = 900.0) -> TraceBuilder:
    """Kernels from 0 to 100 and from 1000 to 1100 us; the second is launched by a call of 5 us that begins then."""
    return TraceBuilder().kernel(0, 100).kernel(1000, 1100, call=(launch, launch + 5))


def test_idle_pieces_have_the_thread_that_explains_them(tmp_path: Path) -> None:
    # the launching thread waits for the main one from 110 to 890, which stands in for it up to the launch at 900
    builder = TraceBuilder().kernel(0, 100).on(tid=77).os_call("pthread_cond_wait", 110, 890)
    builder.kernel(1000, 1100, call=(900, 905), tid=77)
    m = measured(builder, tmp_path)
    spans = all_spans(m)
    tid = dict(m.workload.threads.select("thread", "tid").iter_rows())
    seen = [
        (tid[thread], start, end)
        for thread, start, end in spans.select("thread", "start_ns", "end_ns").iter_rows()
    ]
    assert seen[0][:2] == (PID, 100_000)
    assert seen[-1][2] == 1_000_000
    assert {who for who, start, _ in seen if start < 900_000} == {PID}
    assert {who for who, start, _ in seen if start >= 900_000} == {77}
    assert spans.schema == pl.Schema(SPANS)


def test_busy_pieces_and_gaps_without_a_launch_have_none(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(1000, 1100, launch=None)
    m = measured(builder, tmp_path)
    assert m.pieces.height == 3
    assert all_spans(m).is_empty()


def test_os_calls_by_name_longest_first_and_cut_at_the_spans(tmp_path: Path) -> None:
    builder = gap().os_call("poll", 50, 300).os_call("poll", 400, 450).os_call("read", 500, 850)
    builder.os_call("write", 20, 90).os_call("poll", 200, 900, tid=99)
    m = measured(builder, tmp_path)
    # poll: 100 to 300 and 50 more; write is before the gap; the other thread explains nothing
    assert os_calls_in(m.trace, m.workload, all_spans(m)).rows() == [
        ("read", 1, 350_000),
        ("poll", 2, 250_000),
    ]


def test_a_call_inside_another_is_part_of_it(tmp_path: Path) -> None:
    builder = gap().os_call("fwrite", 200, 400).os_call("write", 250, 350).os_call("write", 500, 520)
    m = measured(builder, tmp_path)
    assert os_calls_in(m.trace, m.workload, all_spans(m)).rows() == [
        ("fwrite", 1, 200_000),
        ("write", 1, 20_000),
    ]


def test_api_calls_by_plain_name_and_group(tmp_path: Path) -> None:
    builder = gap().api("cudaMalloc_v3020", 200, 300).api("cudaFree_v3020", 300, 350)
    builder.api("cudaEventRecord_v3020", 400, 401)
    m = measured(builder, tmp_path)
    spans = all_spans(m)
    assert api_calls_in(m.workload, spans, ALLOCATION).rows() == [
        ("cudaMalloc", 1, 100_000),
        ("cudaFree", 1, 50_000),
    ]
    assert api_calls_in(m.workload, spans).rows()[2:] == [
        ("cudaLaunchKernel", 1, 5_000),
        ("cudaEventRecord", 1, 1_000),
    ]


def test_loader_ranges(tmp_path: Path) -> None:
    builder = gap().range("Data loading", 80, 500).range("forward", 500, 990).range("load batch", 600, 610)
    m = measured(builder, tmp_path)
    assert loader_ranges_in(m.trace, m.workload, all_spans(m)).rows() == [
        ("Data loading", 1, 400_000),
        ("load batch", 1, 10_000),
    ]


def test_cpu_samples_of_the_thread_in_the_spans(tmp_path: Path) -> None:
    builder = gap().sample(100, ["hash", "main"]).sample(200, ["hash"]).sample(300, ["parse"])
    builder.sample(99, ["before"]).sample(1000, ["after"]).sample(500, ["elsewhere"], tid=99)
    m = measured(builder, tmp_path)
    assert symbols_in(m.trace, m.workload, all_spans(m)).rows() == [("hash", 2), ("parse", 1)]


def test_nothing_recorded_gives_no_rows(tmp_path: Path) -> None:
    m = measured(gap(), tmp_path)
    spans = host_spans(m.pieces.filter(pl.col("cause") == CODE["allocation"]), m.gaps.gaps)
    assert spans.is_empty()
    assert os_calls_in(m.trace, m.workload, spans).is_empty()
    assert symbols_in(m.trace, m.workload, spans).is_empty()
    assert loader_ranges_in(m.trace, m.workload, all_spans(m)).is_empty()


def test_outermost_is_told_thread_by_thread() -> None:
    rows = pl.DataFrame(
        # the second lies in the first, the third begins in it and ends later, the fourth is another thread's
        {"thread": [0, 0, 0, 1, None], "start_ns": [0, 10, 90, 20, 5], "end_ns": [100, 20, 120, 30, 6]},
        schema={"thread": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64},
    )
    assert outermost(rows).rows() == [(0, 0, 100), (0, 90, 120), (1, 20, 30)]
