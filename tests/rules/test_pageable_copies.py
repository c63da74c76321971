"""Copies of pageable memory: what they cost, not how many bytes they are."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "pageable-copies"
MIB = 1 << 20


def trace(exposed_us: float = 100.0, *, pinned: bool = False) -> TraceBuilder:
    """1 ms without idle time: kernels, and in the middle a copy of 1 MiB that nothing hides."""
    end = 500 + exposed_us
    builder = TraceBuilder().kernel(0, 500)
    return builder.copy(500, end, bytes_=MIB, pinned=pinned).kernel(end, 1000)


def test_fires_with_the_exposed_time_and_what_the_link_would_save(tmp_path: Path) -> None:
    found = outcome(RULE, trace(), tmp_path)
    assert isinstance(found, Found)
    assert found.title == "Copies of pageable memory cost 10 % of the time"
    assert found.causes == ("copy",)
    # 100 us at most. 1 048 576 B in 100 us are 10.49 GB/s; PCIe 5.0 x16 carries 63.0 GB/s, of which 80 % are 50.4:
    # the copy would take 20.8 us, 79.2 less
    assert found.stake.high_ns == 100_000
    assert found.stake.low_ns == pytest.approx(79_200, abs=100)
    assert {e.label: e.value for e in found.evidence} == {
        "exposed time of pageable copies": 100_000,
        "idle time because the host was held in such copies": 0,
        "pageable bytes between host and device": MIB,
        "share of those bytes that is pageable": 1.0,
        "rate of large pageable copies": pytest.approx(10.48576e9),
    }
    assert found.where is not None
    assert (found.where.start_ns, found.where.end_ns) == (500_000, 600_000)


def test_counts_idle_time_because_the_host_was_held(tmp_path: Path) -> None:
    # cudaMemcpyAsync holds the host from 440 to 505; the GPU runs dry at 500, 60 us of waiting up to then, and the host
    # launches again at 590: of the gap from 500 to 600 the first 60 us are the wait's
    builder = TraceBuilder().kernel(0, 450)
    builder.copy(450, 500, bytes_=MIB, pinned=False, call=(440, 505)).kernel(600, 1000)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.stake.high_ns == 50_000 + 60_000
    assert found.causes == ("copy", "host_sync")


@pytest.mark.parametrize(("exposed_us", "fires"), [(49.999, False), (50, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, exposed_us: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(exposed_us), tmp_path), Found if fires else Passed)


def test_a_lower_threshold_is_the_users_choice(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, trace(49), tmp_path, share=0.049), Found)


def test_all_pageable_but_cheap_passes_and_says_so(tmp_path: Path) -> None:
    passed = outcome(RULE, trace(2), tmp_path)
    assert isinstance(passed, Passed)
    assert passed.note == (
        "100 % of the bytes between host and device are pageable (1 MB); those copies cost 0.2 % of the time."
    )


def test_look_alike_hidden_behind_a_kernel(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000).copy(300, 700, bytes_=MIB, pinned=False, stream=20)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_look_alike_pinned(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, trace(pinned=True), tmp_path), Passed)


def test_look_alike_tiny_read_back_is_looked_at_elsewhere(tmp_path: Path) -> None:
    # the same wait as above, for 4 bytes: 2 us of copying are all that counts here
    builder = TraceBuilder().kernel(0, 498)
    builder.copy(498, 500, "device_to_host", bytes_=4, pinned=False, call=(440, 505)).kernel(600, 1000)
    passed = outcome(RULE, builder, tmp_path)
    assert isinstance(passed, Passed)
    assert "0.2 %" in passed.note


def test_an_upload_before_the_work_is_named_as_one(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(10, 400, bytes_=4 * MIB, pinned=False)
    found = outcome(RULE, builder.kernels(400, 6, every=100, length=100), tmp_path)
    assert isinstance(found, Found)
    assert found.title.endswith("of the time, nearly all of it before the GPU's work begins")
    assert "One-time" in found.caveat or "one-time" in found.caveat


def test_without_a_known_link_nothing_is_promised(tmp_path: Path) -> None:
    builder = TraceBuilder(gpus=()).kernel(0, 500).copy(500, 600, pinned=False).kernel(600, 1000)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.stake.low_ns == 0
    assert "not known" in found.stake.basis


def test_no_copies_at_all_pass(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, TraceBuilder().kernel(0, 1000), tmp_path), Passed)


def test_not_run_where_the_export_left_copies_out(tmp_path: Path) -> None:
    builder = trace().without("CUPTI_ACTIVITY_KIND_MEMCPY")
    builder.export_setting("EXPORT_PARAM_TABLES_TO_EXPORT", "CUPTI_ACTIVITY_KIND_KERNEL")
    assert outcome(RULE, builder, tmp_path) == NotRun("memory copies", "--trace=cuda")
