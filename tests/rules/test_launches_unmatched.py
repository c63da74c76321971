"""Idle time before work whose launch is not in the trace."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "launches-unmatched"


def trace(gap_us: float = 100.0) -> TraceBuilder:
    """1 ms with one gap, which ends with a kernel without a launch call."""
    return TraceBuilder().kernel(0, 400).kernel(400 + gap_us, 1000, launch=None)


def test_fires_with_the_idle_time(tmp_path: Path) -> None:
    found = outcome(RULE, trace(), tmp_path)
    assert isinstance(found, Found)
    assert found.title == "10 % of the time is idle without a known cause: the launches are not in the trace"
    assert (found.stake.low_ns, found.stake.high_ns) == (0, 100_000)
    values = {e.label: e.value for e in found.evidence}
    assert values["device operations without a launch call"] == 1
    assert values["share of all device operations"] == 0.5


@pytest.mark.parametrize(("gap_us", "fires"), [(49.999, False), (50, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, gap_us: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(gap_us), tmp_path), Found if fires else Passed)


def test_look_alike_many_without_launch_and_no_idle_time(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400).kernel(400, 700, launch=None).kernel(700, 1000, launch=None)
    assert outcome(RULE, builder, tmp_path) == Passed(
        "67 % of the device operations have no launch call; the idle time before them is 0 % of the time."
    )


def test_look_alike_migrations_have_no_launch(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400).migration(500, 600).kernel(600, 1000)
    assert outcome(RULE, builder, tmp_path) == Passed(
        "0 % of the device operations have no launch call; the idle time before them is 0 % of the time."
    )


def test_look_alike_hidden_graphs_are_looked_at_elsewhere(tmp_path: Path) -> None:
    builder = TraceBuilder("2023.4.4").kernel(0, 400).api("cudaGraphLaunch_v10000", 390, 395)
    assert isinstance(outcome(RULE, builder.kernel(500, 1000, launch=None), tmp_path), Passed)


def test_not_run_without_calls(tmp_path: Path) -> None:
    builder = trace().without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")
