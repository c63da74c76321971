"""Collectives on the stream of the kernels."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import ALL_REDUCE, TraceBuilder
from tests.rules.support import outcome

RULE = "communication-on-compute-stream"


def trace(exposed_us: float = 100.0, *, stream: int = 7) -> TraceBuilder:
    """1 ms without idle time, in the middle an all-reduce that runs alone; the kernels are on stream 7."""
    end = 500 + exposed_us
    return TraceBuilder().kernel(0, 500).kernel(500, end, ALL_REDUCE, stream=stream).kernel(end, 1000)


def test_fires_with_count_and_time(tmp_path: Path) -> None:
    found = outcome(RULE, trace(), tmp_path)
    assert isinstance(found, Found)
    assert found.title == "Collectives run on the stream of the kernels and take 10 % of the time unhidden"
    # nothing at least: the next kernel may need the result
    assert (found.stake.low_ns, found.stake.high_ns) == (0, 100_000)
    values = {e.label: e.value for e in found.evidence}
    assert values["collectives on streams that compute"] == 1
    assert values["streams with both"] == 1


@pytest.mark.parametrize(("exposed_us", "fires"), [(49.999, False), (50, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, exposed_us: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(exposed_us), tmp_path), Found if fires else Passed)


def test_look_alike_exposed_on_a_stream_of_its_own(tmp_path: Path) -> None:
    passed = outcome(RULE, trace(stream=20), tmp_path)
    assert passed == Passed("0 collectives on streams that also compute, exposed 0 % of the time.")


def test_look_alike_same_stream_number_in_another_context(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 500).kernel(500, 600, ALL_REDUCE, context=2).kernel(600, 1000)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


@pytest.mark.parametrize(("helper_us", "fires"), [(89.999, False), (90, True)])
def test_a_few_helper_kernels_make_no_compute_stream(tmp_path: Path, helper_us: float, fires: bool) -> None:
    # kernels of 900 us in all; the stream of the collective computes from a tenth of them on
    builder = TraceBuilder().kernel(0, helper_us, stream=20).kernel(500, 600, ALL_REDUCE, stream=20)
    builder.kernel(helper_us, 500).kernel(600, 1000)
    assert isinstance(outcome(RULE, builder, tmp_path), Found if fires else Passed)


def test_look_alike_hidden_behind_another_stream(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, trace().kernel(500, 600, stream=9), tmp_path), Passed)


def test_does_not_apply_without_communication(tmp_path: Path) -> None:
    assert outcome(RULE, TraceBuilder().kernel(0, 1000), tmp_path) == NotRun(
        "communication kernels: the trace has none"
    )
