"""Busy with copies, not with arithmetic."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "copy-bound"


def trace(exposed_us: float, kind: str = "host_to_device") -> TraceBuilder:
    """1 ms without idle time, in the middle a copy that nothing hides."""
    end = 500 + exposed_us
    return TraceBuilder().kernel(0, 500).copy(500, end, kind, bytes_=1 << 20).kernel(end, 1000)


def test_fires_with_busy_and_computing_apart(tmp_path: Path) -> None:
    # 1 ms: a copy of 300 us of which 100 lie beside a kernel, a memset of 50, kernels of 750 in all
    builder = TraceBuilder().kernel(0, 500).copy(400, 700, stream=20).memset(700, 750).kernel(750, 1000)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.title == "The GPU copies and nothing computes 25 % of the time"
    assert (found.stake.low_ns, found.stake.high_ns) == (125_000, 250_000)
    assert found.causes == ("copy", "memset")
    values = {e.label: e.value for e in found.evidence}
    assert values["busy, as a utilisation counter has it"] == 1.0
    assert values["computing"] == 0.75
    assert values["exposed copies"] == 200_000
    assert values["exposed memsets"] == 50_000
    assert values["kind of copy that is exposed longest"] == "host to device"
    # the kernels compute alone for 400 + 250 us: there is room for all 200
    assert values["what perfect overlap with the kernels would hide"] == 200_000
    assert found.where is not None
    assert (found.where.start_ns, found.where.end_ns) == (400_000, 700_000)


def test_overlap_cannot_hide_more_than_there_is_to_compute(tmp_path: Path) -> None:
    found = outcome(RULE, TraceBuilder().copy(10, 960).kernel(960, 1010), tmp_path)
    assert isinstance(found, Found)
    assert found.stake.high_ns == 950_000
    assert {e.label: e.value for e in found.evidence}[
        "what perfect overlap with the kernels would hide"
    ] == 50_000


@pytest.mark.parametrize(("exposed_us", "fires"), [(49.999, False), (50, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, exposed_us: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(exposed_us), tmp_path), Found if fires else Passed)


def test_look_alike_copies_beside_kernels(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000).copy(0, 1000, stream=20)
    passed = outcome(RULE, builder, tmp_path)
    assert passed == Passed("Copies and memsets take 0 % of the time while nothing computes.")


def test_look_alike_migrations_are_looked_at_elsewhere(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 500).migration(500, 600).kernel(600, 1000)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_mostly_pageable_says_to_pin_first(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 500).copy(500, 600, pinned=False).kernel(600, 1000)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.actions[0].startswith("Most of it is pageable memory")
    assert {e.label: e.value for e in found.evidence}["share of all this that is pageable memory"] == 1.0


def test_advice_fits_the_kind(tmp_path: Path) -> None:
    found = outcome(RULE, trace(100, "device_to_host"), tmp_path)
    assert isinstance(found, Found)
    assert "what the host needs" in found.actions[0]


def test_no_copies_pass(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, TraceBuilder().kernel(0, 1000), tmp_path), Passed)


def test_memsets_alone_get_advice_about_memsets(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100)
    for n in range(10):
        builder.memset(200 + 200 * n, 380 + 200 * n).kernel(385 + 200 * n, 398 + 200 * n)
    found = outcome("copy-bound", builder, tmp_path)
    assert isinstance(found, Found)
    assert found.actions[0].startswith("Clear memory less often")
