"""Every n-th step: what it loses outside of computing."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "periodic-stall"


def job(stall: float = 1000.0, *, every: int = 4, steps: int = 17, what: str = "write") -> TraceBuilder:
    """Steps of 1000 us that are busy; every n-th one is longer by `stall` us for the reason given.

    What it is: `write` the host writes a file, `compute` a longer kernel, `loader` data loading.
    """
    builder = TraceBuilder()
    start = 0.0
    for number in range(steps):
        slow = number % every == every - 1
        length = 1000.0 + (stall if slow else 0.0)
        busy = length if not slow or what == "compute" else 1000.0
        builder.range(f"step {number}", start - 10, start + length - 11)
        builder.kernel(start, start + busy)
        if slow and what == "write":
            builder.os_call("write", start + 1000, start + length - 10)
        if slow and what == "loader":
            builder.range("data loading", start + 1000, start + length - 10)
        start += length
    return builder


def test_fires_with_what_the_slow_steps_lose(tmp_path: Path) -> None:
    found = outcome(RULE, job(), tmp_path)
    assert isinstance(found, Found)
    # 4 of 17 steps are longer by 1000 us; 990 of them are blocked, the last 10 (the launch) belong to the next step:
    # 3960 of 21 000 us
    assert found.title == "Every 4th step takes 1 ms longer: 19 % of the time is lost to that"
    assert (found.stake.low_ns, found.stake.high_ns) == (1_980_000, 3_960_000)
    assert found.causes == ("host_blocked",)
    assert {e.label: e.value for e in found.evidence} == {
        "slow steps": 4,
        "steps from one to the next": 4,
        "such a step is longer by": 1_000_000,
        "more time under host blocked in them": 3_960_000,
    }
    assert found.actions[0].startswith("Write from another thread")
    assert found.confidence == "medium"
    assert found.where is not None
    # the first of the equally long ones: step 3, from its range's start to the next one's
    assert (found.where.start_ns, found.where.end_ns) == (2_990_000, 4_990_000)


def test_many_of_them_are_certain(tmp_path: Path) -> None:
    found = outcome(RULE, job(steps=25), tmp_path)
    assert isinstance(found, Found)
    assert found.confidence == "high"


@pytest.mark.parametrize(("stall", "fires"), [(712.2, False), (712.3, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, stall: float, fires: bool) -> None:
    # 3 stalls in 40 steps: 3 (s - 10) is 5 % of 40 000 + 3 s at 712.28
    assert isinstance(outcome(RULE, job(stall, every=12, steps=40), tmp_path), Found if fires else Passed)


def test_a_higher_threshold_is_the_users_choice(tmp_path: Path) -> None:
    assert outcome(RULE, job(), tmp_path, share=0.2) == Passed(
        "Every 4th step takes 1 ms longer; 19 % of the time is lost to that outside of computing."
    )


def test_not_recorded(tmp_path: Path) -> None:
    assert outcome(RULE, TraceBuilder().kernel(0, 100), tmp_path) == NotRun(
        "steps (an NVTX range around each iteration)", "--trace=cuda,nvtx"
    )


def test_look_alike_the_gpu_computes_longer(tmp_path: Path) -> None:
    assert outcome(RULE, job(what="compute"), tmp_path) == Passed(
        "Every 4th step takes 1 ms longer; 0 % of the time is lost to that outside of computing."
    )


def test_look_alike_workers_that_deliver_in_bursts(tmp_path: Path) -> None:
    assert outcome(RULE, job(what="loader"), tmp_path) == Passed(
        "Every 4th step takes 1 ms longer, most of it waiting for input: see the input pipeline."
    )


def test_look_alike_slow_steps_without_an_interval(tmp_path: Path) -> None:
    # steps 2, 3 and 11 are slow
    builder = TraceBuilder()
    start = 0.0
    for number in range(17):
        length = 2000.0 if number in (2, 3, 11) else 1000.0
        builder.range(f"step {number}", start - 15, start + length - 16).kernel(start, start + 1000)
        start += length
    assert outcome(RULE, builder, tmp_path) == Passed(
        "No steps that are slow at regular intervals among 17 steps."
    )


@pytest.mark.parametrize(("every", "ordinal"), [(3, "3rd"), (5, "5th"), (11, "11th"), (22, "22nd")])
def test_ordinals(tmp_path: Path, every: int, ordinal: str) -> None:
    passed = outcome(RULE, job(every=every, steps=4 * every, what="compute"), tmp_path)
    assert isinstance(passed, Passed)
    assert passed.note.startswith(f"Every {ordinal} step")
