"""Synchronising calls: the idle time after them, not the time inside them."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "host-sync"
SYNC, DEVICE = "cudaStreamSynchronize_v3020", "cudaDeviceSynchronize_v3020"


def loop(late: float = 200.0, wait: float = 500.0, api: str = SYNC) -> TraceBuilder:
    """Ten steps of 1000 us: a kernel, a wait for it that began `wait` us before its end, `late` us of idle time."""
    builder = TraceBuilder()
    for number in range(10):
        start, done = 1000.0 * number, 1000.0 * number + 1000 - late
        builder.kernel(start, done).wait(api, done - wait, done + 2)
    return builder


def test_fires_with_the_idle_time_after_the_waits(tmp_path: Path) -> None:
    found = outcome(RULE, loop(), tmp_path)
    assert isinstance(found, Found)
    # 9 gaps of 200 us in 9800 us, each after a wait that was longer than that
    assert (
        found.title
        == "Waiting for the GPU costs 18 % of its time: the host starts late after cudaStreamSynchronize"
    )
    # all but the longest gap
    assert (found.stake.low_ns, found.stake.high_ns) == (1_600_000, 1_800_000)
    assert found.causes == ("host_sync",)
    assert {e.label: e.value for e in found.evidence} == {
        "idle time because the host had waited": 1_800_000,
        "synchronising calls": 10,
        "time inside those calls": 5_020_000,
        # 2 us after each kernel but the last
        "of it while the GPU was idle": 18_000,
        "calls of cudaStreamSynchronize": 10,
    }
    assert "cudaEventRecord" in found.actions[0]


def test_the_call_that_costs_most_is_named(tmp_path: Path) -> None:
    # a long wait that costs little, and a short one that costs all its length
    builder = TraceBuilder().kernel(0, 900).wait(DEVICE, 10, 901).kernel(920, 1000, call=(902, 907))
    builder.wait(SYNC, 940, 1001).kernel(1100, 1200, call=(1090, 1095))
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.title.endswith("after cudaStreamSynchronize")


@pytest.mark.parametrize(("wait", "fires"), [(49.999, False), (50.0, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, wait: float, fires: bool) -> None:
    # one wait in 1000 us, and 200 us of idle time after it: its cost is the length of the wait
    builder = TraceBuilder().kernel(0, 400).wait(SYNC, 400 - wait, 400.5).kernel(600, 1000)
    assert isinstance(outcome(RULE, builder, tmp_path), Found if fires else Passed)


def test_a_higher_threshold_is_the_users_choice(tmp_path: Path) -> None:
    assert outcome(RULE, loop(), tmp_path, share=0.2) == Passed(
        "10 synchronising calls cost 18 % of the time."
    )


def test_tiny_read_backs_are_left_to_their_own_rule(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(5):
        start = 1000.0 * number
        builder.kernel(start, start + 800).copy(
            start + 800, start + 802, "device_to_host", bytes_=4, call=(start + 20, start + 25)
        )
        builder.wait(SYNC, start + 30, start + 804)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert {e.label: e.value for e in found.evidence}["idle time after tiny read-backs"] == 4 * 198_000
    assert found.actions[0].endswith(
        "instead of in each: at least half of this time follows tiny read-backs."
    )


def test_a_wait_from_before_the_window(tmp_path: Path) -> None:
    # the window begins in the wait: its cost lies in the window, the call does not
    builder = TraceBuilder().kernel(0, 400).wait(SYNC, 100, 402).kernel(600, 1000)
    found = outcome(RULE, builder, tmp_path, "0.00035:0.001")
    assert isinstance(found, Found)
    assert found.title == "Waiting for the GPU costs 31 % of its time"
    assert found.stake.high_ns == 200_000


def test_not_recorded(tmp_path: Path) -> None:
    builder = loop().without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")


def test_look_alike_waits_while_the_gpu_has_more_to_do(tmp_path: Path) -> None:
    # nearly all the time is spent in waits, each ends while the next kernel runs
    builder = TraceBuilder()
    for number in range(20):
        start = 100.0 * number
        builder.kernel(start, start + 100, call=(start - 200, start - 195)).wait(SYNC, start + 5, start + 95)
    assert outcome(RULE, builder, tmp_path) == Passed("20 synchronising calls cost 0 % of the time.")


def test_no_waits_at_all(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, TraceBuilder().kernel(0, 100), tmp_path, share=0.0), Passed)
