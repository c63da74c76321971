from pathlib import Path

import polars as pl
import pytest

from nsys_triage.metrics.cpu_cores import core_use, off_core_ns, on_core
from nsys_triage.trace.model import SCHEDULING
from tests.builders.trace import PID, TraceBuilder
from tests.rules.support import measured


def rows(*events: tuple[int, int, int, bool]) -> pl.DataFrame:
    """Events (time_ns, tid, cpu, in)."""
    return pl.DataFrame(
        [
            {"time_ns": t, "pid": 1, "tid": tid, "cpu": cpu, "scheduled_in": is_in}
            for t, tid, cpu, is_in in events
        ],
        schema=SCHEDULING,
    )


def stretches(frame: pl.DataFrame) -> list[tuple[int, ...]]:
    return on_core(frame).select("tid", "cpu", "start_ns", "end_ns").rows()


def test_from_coming_to_leaving_in_whatever_order() -> None:
    events = rows((30, 7, 2, False), (10, 7, 2, True), (50, 7, 3, False), (40, 7, 3, True))
    assert stretches(events) == [(7, 2, 10, 30), (7, 3, 40, 50)]


def test_a_thread_was_there_before_its_first_leaving_and_stays_after_its_last_coming() -> None:
    events = rows((10, 7, 0, True), (20, 8, 1, False), (60, 7, 0, False), (30, 9, 2, True))
    # thread 8 since the first row of all (10), thread 9 until the last (60)
    assert stretches(events) == [(7, 0, 10, 60), (8, 1, 10, 20), (9, 2, 30, 60)]


def test_leaving_and_coming_at_one_moment() -> None:
    events = rows((10, 7, 0, True), (20, 7, 0, False), (20, 7, 1, True), (40, 7, 1, False))
    assert stretches(events) == [(7, 0, 10, 20), (7, 1, 20, 40)]


def test_no_rows() -> None:
    assert on_core(rows()).is_empty()


def two_cores() -> TraceBuilder:
    """From 0 to 1000 us: core 0 is busy to 800, core 1 from 200 to 1000; a third core was used before that."""
    builder = TraceBuilder().kernel(0, 1000)
    builder.scheduled(0, 500, cpu=0, tid=1).scheduled(500, 800, cpu=0, tid=2).scheduled(
        200, 1000, cpu=1, tid=3
    )
    return builder.scheduled(-100, -50, cpu=2, tid=3)


def test_use_of_the_cores_in_the_window(tmp_path: Path) -> None:
    m = measured(two_cores(), tmp_path)
    use = core_use(m.trace, 0, 1_000_000)
    assert use is not None
    # cores that were ever used: 3; busy 800 + 800 of 3000 us
    assert (use.cores, use.threads, use.active_threads) == (3, 3, 3)
    assert use.busy_share == pytest.approx(1600 / 3000)
    assert use.all_busy.is_empty()


def test_when_all_cores_are_busy(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000)
    builder.scheduled(0, 500, cpu=0, tid=1).scheduled(500, 800, cpu=0, tid=2).scheduled(
        200, 1000, cpu=1, tid=3
    )
    m = measured(builder, tmp_path)
    use = core_use(m.trace, 0, 1_000_000)
    assert use is not None
    # the change of threads at 500 leaves no gap
    assert use.all_busy.rows() == [(200_000, 800_000)]
    assert use.busy_share == pytest.approx(0.8)


@pytest.mark.parametrize(("length", "active"), [(49.999, 1), (50.0, 2)])
def test_a_thread_is_active_from_a_twentieth_of_the_window(
    tmp_path: Path, length: float, active: int
) -> None:
    builder = (
        TraceBuilder().kernel(0, 1000).scheduled(0, 1000, tid=1).scheduled(100, 100 + length, cpu=1, tid=2)
    )
    m = measured(builder, tmp_path)
    use = core_use(m.trace, 0, 1_000_000)
    assert use is not None
    assert (use.threads, use.active_threads) == (2, active)


def test_no_scheduling_in_the_window(tmp_path: Path) -> None:
    m = measured(two_cores(), tmp_path)
    assert core_use(m.trace, 2_000_000, 3_000_000) is None
    assert core_use(measured(TraceBuilder().kernel(0, 10), tmp_path).trace, 0, 10_000) is None


def test_time_on_no_core(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 10).scheduled(0, 300).scheduled(450, 900)
    builder.on(tid=99).kernel(20, 30)  # a thread without scheduling rows
    m = measured(builder, tmp_path)
    thread = dict(m.workload.threads.select("tid", "thread").iter_rows())
    spans = pl.DataFrame(
        # of the main thread 100 to 500: off from 300 to 450; the overlapping span counts once
        {
            "thread": [thread[PID], thread[PID], thread[99]],
            "start_ns": [100_000, 200_000, 0],
            "end_ns": [500_000, 400_000, 900_000],
        },
        schema={"thread": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64},
    )
    assert off_core_ns(m.trace, spans, m.workload.threads) == 150_000
    assert off_core_ns(m.trace, spans.tail(1), m.workload.threads) is None
