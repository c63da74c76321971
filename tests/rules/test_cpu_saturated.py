"""All cores busy, more threads than cores, and the GPU waits for the host meanwhile."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import PID, TraceBuilder
from tests.rules.support import outcome

RULE = "cpu-saturated"


def job(work: float = 200.0, *, others: int = 3, until: float = 5000.0) -> TraceBuilder:
    """5 ms: kernels, the host working `work` us before each launch; two cores, shared by the main thread and others.

    Core 0 is the main thread's but for 100 us of each ms, which another thread takes; core 1 is divided among `others`
    threads, up to `until`.
    """
    builder = TraceBuilder().kernel(0, 990 - work)
    for number in range(1, 5):
        builder.kernel(1000 * number, 1000 * number + 990 - work)
    builder.kernel(5000, 5000.5)
    for number in range(5):
        builder.scheduled(1000 * number, 1000 * number + 900, cpu=0, tid=PID)
        builder.scheduled(1000 * number + 900, 1000 * number + 1000, cpu=0, tid=50)
    part = until / others
    for number in range(others):
        builder.scheduled(part * number, part * (number + 1), cpu=1, tid=60 + number)
    return builder


def test_fires_with_the_idle_time_while_all_cores_are_busy(tmp_path: Path) -> None:
    found = outcome(RULE, job(), tmp_path)
    assert isinstance(found, Found)
    # 5 gaps of 210 us in 5000.5 us: 200 us of work and 10 of launching
    assert (
        found.title
        == "All 2 CPU cores of the job are busy: the GPU waits for the host 21 % of the time meanwhile"
    )
    # 90 us of each are on no core, from 900 to the launch at 990, and 10 more of the launch
    assert (found.stake.low_ns, found.stake.high_ns) == (500_000, 1_050_000)
    assert found.causes == ("launch", "host_compute")
    assert found.confidence == "medium"
    values = {e.label: e.value for e in found.evidence}
    assert values["cores that the recorded threads ran on"] == 2
    assert values["their use"] == pytest.approx(5000 / 5000.5, abs=1e-6)
    # the main thread, the three on core 1, and the one that takes a tenth of core 0
    assert values["threads that used a core for a twentieth of the time or more"] == 5
    assert values["launching thread ready to go on, but on no core"] == 500_000
    assert found.where is not None


def exact(gap: float) -> TraceBuilder:
    """1000 us with one gap, in which the launch call lasts; two cores that three threads keep busy."""
    builder = TraceBuilder().kernel(0, 500).kernel(500 + gap, 1000, call=(495, 500 + gap))
    builder.scheduled(0, 1000, cpu=0).scheduled(0, 500, cpu=1, tid=60).scheduled(500, 1000, cpu=1, tid=61)
    return builder


@pytest.mark.parametrize(("gap", "fires"), [(49.999, False), (50.0, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, gap: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, exact(gap), tmp_path), Found if fires else Passed)


@pytest.mark.parametrize(("until", "fires"), [(4000.7, False), (4001.0, True)])
def test_nine_tenths_of_the_cores_have_to_be_busy(tmp_path: Path, until: float, fires: bool) -> None:
    # core 0 is busy for 5000 of 5000.5 us; nine tenths of both are 9000.9, so that core 1 has to be for 4000.9
    assert isinstance(outcome(RULE, job(until=until), tmp_path), Found if fires else Passed)


def test_thresholds_are_the_users_choice(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, job(), tmp_path, share=0.25), Passed)
    assert isinstance(outcome(RULE, job(until=3500), tmp_path, busy=0.8), Found)


def test_not_recorded(tmp_path: Path) -> None:
    missing = NotRun("CPU scheduling", "--cpuctxsw=process-tree")
    assert outcome(RULE, TraceBuilder().kernel(0, 100), tmp_path) == missing
    # recorded, but not in this window
    assert (
        outcome(
            RULE, TraceBuilder().kernel(0, 100).kernel(900, 1000).scheduled(10, 50), tmp_path, "0.0009:0.001"
        )
        == missing
    )


def test_look_alike_one_thread_on_one_core(tmp_path: Path) -> None:
    # a single thread that never leaves its core keeps "all" of one core busy, and no other thread wants it
    builder = TraceBuilder().kernels(0, 5, every=1000, length=790).scheduled(0, 5000)
    passed = outcome(RULE, builder, tmp_path)
    assert isinstance(passed, Passed)
    assert passed.note.startswith("The recorded threads keep the 1 core that they ran on 100 % busy")


def test_look_alike_as_many_threads_as_cores(tmp_path: Path) -> None:
    builder = TraceBuilder().kernels(0, 5, every=1000, length=790)
    builder.scheduled(0, 5000, cpu=0).scheduled(0, 5000, cpu=1, tid=60)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_look_alike_a_free_core(tmp_path: Path) -> None:
    builder = job().scheduled(-500, -400, cpu=2, tid=60)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_look_alike_full_cores_and_a_busy_gpu(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000)
    builder.scheduled(0, 1000, cpu=0).scheduled(0, 500, cpu=1, tid=60).scheduled(500, 1000, cpu=1, tid=61)
    passed = outcome(RULE, builder, tmp_path)
    assert passed == Passed(
        "The recorded threads keep the 2 cores that they ran on 100 % busy; the GPU waits for the host 0 % of the time"
        " while all of them are."
    )
