"""Lost events: what nsys says, and rows without an end."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import Raw, TraceBuilder
from tests.rules.support import outcome

RULE = "events-lost"


def trace(version: str = "2025.5.2") -> TraceBuilder:
    """1 ms with 200 us of idle time."""
    return TraceBuilder(version).kernel(0, 400).kernel(600, 1000)


def test_fires_with_lost_cuda_events(tmp_path: Path) -> None:
    builder = trace().diagnostic("Not all CUDA events might have been collected.", severity=2)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.title == "Events were lost: Not all CUDA events might have been collected"
    # all idle time may be lost work, or none of it
    assert (found.stake.low_ns, found.stake.high_ns) == (0, 200_000)
    assert {e.label: e.value for e in found.evidence}["messages about lost events"] == 1


def test_lost_ranges_leave_the_gpus_figures_alone(tmp_path: Path) -> None:
    found = outcome(RULE, trace().diagnostic("Not all NVTX events might have been collected."), tmp_path)
    assert isinstance(found, Found)
    assert found.stake.high_ns == 0


@pytest.mark.parametrize(
    "text",
    [
        "No NVTX events collected. Does the process use NVTX?",
        "Unable to collect CPU kernel IP/backtrace samples",
    ],
)
def test_look_alike_messages_that_say_nothing_of_losses(tmp_path: Path, text: str) -> None:
    assert isinstance(outcome(RULE, trace().diagnostic(text), tmp_path), Passed)


def test_look_alike_only_information(tmp_path: Path) -> None:
    builder = trace().diagnostic("Not all CUDA events might have been collected.", severity=1)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


@pytest.mark.parametrize(("share", "fires"), [(0.2001, False), (0.2, True)])
def test_threshold_of_rows_without_an_end(tmp_path: Path, share: float, fires: bool) -> None:
    # one of two kernels and three calls has no end
    builder = (
        TraceBuilder().kernel(0, 400).api("cudaMalloc_v3020", 0, 5).kernel(600, Raw(None), call=(590, 595))
    )
    found = outcome(RULE, builder, tmp_path, open_share=share)
    assert isinstance(found, Found if fires else Passed)


def test_passes_with_the_number(tmp_path: Path) -> None:
    assert outcome(RULE, trace(), tmp_path) == Passed("nsys reports no lost events; 0 rows without an end.")


def test_not_run_where_the_exporter_keeps_no_messages(tmp_path: Path) -> None:
    found = outcome(RULE, trace("2023.4.4"), tmp_path)
    assert isinstance(found, NotRun)
    assert "2024.4" in found.missing
