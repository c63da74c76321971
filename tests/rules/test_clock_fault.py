"""Work that starts before its launch."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "clock-fault"


def trace(early: int = 4, *, idle_us: float = 10.0) -> TraceBuilder:
    """20 kernels in 1 ms, one every 50 us with `idle_us` of idle time behind all but the last; `early` of them start
    before their launch call."""
    builder = TraceBuilder()
    for index in range(20):
        begin = 50 * index
        end = begin + (50 if index == 19 else 50 - idle_us)
        builder.kernel(begin, end, call=(begin + 1, begin + 3) if index < early else None)
    return builder


def test_fires_with_the_unexplained_time(tmp_path: Path) -> None:
    found = outcome(RULE, trace(), tmp_path)
    assert isinstance(found, Found)
    assert found.title == "20 % of the device work starts before its launch: the clocks do not fit"
    # 19 gaps of 10 us
    assert (found.stake.low_ns, found.stake.high_ns) == (0, 190_000)
    values = {e.label: e.value for e in found.evidence}
    assert values["operations that start before their launch call"] == 4
    assert values["operations with a launch call"] == 20


@pytest.mark.parametrize(("early", "fires"), [(1, False), (2, True)])
def test_a_fault_is_more_than_five_percent_of_the_work(tmp_path: Path, early: int, fires: bool) -> None:
    # one of 20 is exactly 5 %
    assert isinstance(outcome(RULE, trace(early), tmp_path), Found if fires else Passed)


@pytest.mark.parametrize(("share", "fires"), [(0.1901, False), (0.19, True)])
def test_threshold_of_time(tmp_path: Path, share: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(), tmp_path, share=share), Found if fires else Passed)


def test_look_alike_fault_without_idle_time(tmp_path: Path) -> None:
    assert outcome(RULE, trace(idle_us=0), tmp_path) == Passed(
        "20 % of the device operations start before the call that launched them;"
        " that leaves 0 % of the time unexplained."
    )


def test_look_alike_unknown_launches_are_no_fault(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400).kernel(600, 1000, launch=None)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_not_run_without_calls(tmp_path: Path) -> None:
    builder = trace().without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")


def test_not_run_where_no_launch_was_found(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000, launch=None).api("cudaFree_v3020", 0, 1)
    assert isinstance(outcome(RULE, builder, tmp_path), NotRun)
