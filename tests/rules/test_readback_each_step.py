"""Tiny read-backs: what waiting for them costs, not how many there are."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "readback-each-step"
SYNC = "cudaStreamSynchronize_v3020"


def loop(
    steps: int = 10, late: float = 100.0, *, bytes_: int = 4, ranges: bool = False, wait: float = 800.0
) -> TraceBuilder:
    """Steps of 1000 us: a kernel of 990 - `late` us, a copy to the host of 2 us, a wait for it that began `wait` us
    before the copy's end, and `late` us in which the host does something else before it launches the next kernel.

    Idle are `late` + 8 us of each step but the last.
    """
    builder = TraceBuilder()
    for number in range(steps):
        start, done = 1000.0 * number, 1000.0 * number + 992 - late
        builder.kernel(start, done - 2)
        builder.copy(
            done - 2, done, "device_to_host", bytes_=bytes_, call=(done - wait - 10, done - wait - 5)
        )
        builder.wait(SYNC, done - wait, done + 2)
        if ranges:
            builder.range(f"step {number}", start - 15, start + 980)
    return builder


def test_fires_with_what_the_waits_cost(tmp_path: Path) -> None:
    found = outcome(RULE, loop(), tmp_path)
    assert isinstance(found, Found)
    # 9 gaps of 108 us in 9892 us; each wait was longer than its gap, so that all of it is its cost
    assert found.title == "Reading small values back (10 times, in all) costs 9.8 % of the GPU's time"
    assert (found.stake.low_ns, found.stake.high_ns) == (874_800, 972_000)
    assert found.causes == ("host_sync",)
    assert {e.label: e.value for e in found.evidence} == {
        "idle after waits for tiny read-backs": 972_000,
        "read-backs of at most 64 bytes that the host waits for": 10,
        "call that waits": "cudaStreamSynchronize",
    }
    assert found.where is not None
    assert (found.where.start_ns, found.where.end_ns) == (892_000, 1_000_000)


def test_says_how_often_per_step(tmp_path: Path) -> None:
    found = outcome(RULE, loop(ranges=True), tmp_path)
    assert isinstance(found, Found)
    assert "(10 times, 1 per step)" in found.title
    assert {e.label: e.value for e in found.evidence}["of them per step"] == 1.0


def exact(idle: float) -> TraceBuilder:
    """Three steps in 10 000 us; the read-backs of the first two are followed by so much idle time in all."""
    builder = TraceBuilder()
    for begin, end, pause in ((0, 3000, idle / 2), (3000, 6000, idle / 2), (6000, 10_000, 0)):
        done = end - pause
        builder.kernel(begin, done - 2).copy(
            done - 2, done, "device_to_host", bytes_=4, call=(begin + 20, begin + 25)
        )
        builder.wait(SYNC, begin + 30, done + 2)
    return builder


@pytest.mark.parametrize(("idle", "fires"), [(499.998, False), (500.0, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, idle: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, exact(idle), tmp_path), Found if fires else Passed)


def test_thresholds_are_the_users_choice(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, exact(600), tmp_path, share=0.07), Passed)
    # three read-backs are a habit, two would not be
    assert isinstance(outcome(RULE, exact(600), tmp_path, count=4), Passed)


def test_costs_nothing_and_says_so(tmp_path: Path) -> None:
    # the host waits in every step, and the next kernel is queued already
    builder = TraceBuilder()
    for number in range(10):
        start = 1000.0 * number
        builder.kernel(start, start + 998, call=(start - 1500, start - 1495))
        builder.copy(start + 998, start + 1000, "device_to_host", bytes_=4, call=(start - 1490, start - 1485))
        builder.wait(SYNC, start + 500, start + 1000.5)
    passed = outcome(RULE, builder, tmp_path)
    assert passed == Passed("10 tiny read-backs that the host waits for cost 0 % of the time.")


def test_none_at_all(tmp_path: Path) -> None:
    passed = outcome(RULE, TraceBuilder().kernel(0, 100).copy(100, 110), tmp_path)
    assert passed == Passed("0 tiny read-backs that the host waits for cost 0 % of the time.")
    assert isinstance(outcome(RULE, TraceBuilder().kernel(0, 100), tmp_path, share=0.0, count=0), Passed)


def test_not_recorded(tmp_path: Path) -> None:
    builder = loop().without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")


def test_look_alike_results_are_fetched(tmp_path: Path) -> None:
    # the same waits for 128 bytes: a wait that costs, but no read-back of a single value
    assert isinstance(outcome(RULE, loop(bytes_=128), tmp_path), Passed)


def test_look_alike_a_short_wait_before_long_host_work(tmp_path: Path) -> None:
    # the host waits 10 us for the copy, then works for 100 us: waiting costs at most the 10 us of each step
    passed = outcome(RULE, loop(wait=10), tmp_path)
    assert passed == Passed("10 tiny read-backs that the host waits for cost 0.9 % of the time.")


def test_wording_for_jax(tmp_path: Path) -> None:
    found = outcome(RULE, loop().range("XlaModule:#hlo_module=jit_step#", 0, 10), tmp_path)
    assert isinstance(found, Found)
    assert "np.asarray" in found.actions[0]
