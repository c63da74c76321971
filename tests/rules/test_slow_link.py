"""Large copies slower than the link: only pinned ones, only where they matter."""

from pathlib import Path

import pytest

from nsys_triage.metrics.gpu_models import PCIE_5, PRACTICAL_SHARE
from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "slow-link"
MIB = 1 << 20
PRACTICAL = PCIE_5.bytes_per_s * PRACTICAL_SHARE  # of the H100 that the builder states: 50.4 GB/s


def trace(
    exposed_us: float = 100.0, *, bytes_: int = MIB, pinned: bool | None = True, gpu: str = "H100"
) -> TraceBuilder:
    """1 ms without idle time, in the middle a copy that nothing hides."""
    builder = TraceBuilder(gpus=(gpu,) if gpu else ())
    end = 500 + exposed_us
    return builder.kernel(0, 500).copy(500, end, bytes_=bytes_, pinned=pinned).kernel(end, 1000)


def test_fires_with_both_rates(tmp_path: Path) -> None:
    found = outcome(RULE, trace(), tmp_path)
    assert isinstance(found, Found)
    # 1 MiB in 100 us
    assert (
        found.title == "Large copies host to device reach 10.5 GB/s, where PCIe 5.0 x16 gives about 50.4 GB/s"
    )
    # at 50.4 GB/s the copy takes 20.8 of its 100 us
    assert found.stake.high_ns == pytest.approx(79_200, abs=100)
    assert found.stake.low_ns == 0
    assert found.confidence == "medium"
    values = {e.label: e.value for e in found.evidence}
    assert values["rate of large pinned copies host to device"] == pytest.approx(10.48576e9)
    assert values["copies of at least 1 MiB"] == 1
    assert values["their exposed time"] == 100_000


@pytest.mark.parametrize(("exposed_us", "fires"), [(49.999, False), (50, True)])
def test_threshold_of_time(tmp_path: Path, exposed_us: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(exposed_us), tmp_path), Found if fires else Passed)


def test_threshold_of_the_rate(tmp_path: Path) -> None:
    reached = MIB / 100_000 * 1e9 / PRACTICAL
    assert isinstance(outcome(RULE, trace(), tmp_path, rate=reached), Found)
    assert isinstance(outcome(RULE, trace(), tmp_path, rate=reached * 0.999), Passed)


def test_half_the_lanes_fire_and_the_practical_rate_does_not(tmp_path: Path) -> None:
    half, full = (round(PRACTICAL * share * 100e-6) for share in (0.5, 1.0))
    assert isinstance(outcome(RULE, trace(bytes_=half), tmp_path), Found)
    passed = outcome(RULE, trace(bytes_=full), tmp_path)
    assert passed == Passed(
        "Large pinned copies reach 50.4 GB/s host to device; PCIe 5.0 x16 gives about 50.4 GB/s in practice."
    )


def test_look_alike_two_copies_that_share_the_link(tmp_path: Path) -> None:
    # each alone looks like half the rate; together they fill the link for 100 us
    half = round(PRACTICAL * 0.5 * 100e-6)
    builder = TraceBuilder().kernel(0, 500).copy(500, 600, bytes_=half).copy(500, 600, bytes_=half, stream=20)
    assert isinstance(outcome(RULE, builder.kernel(600, 1000), tmp_path), Passed)


@pytest.mark.parametrize("pinned", [False, None])
def test_look_alike_pageable_or_unknown_memory(tmp_path: Path, pinned: bool | None) -> None:
    assert outcome(RULE, trace(pinned=pinned), tmp_path) == NotRun(
        "copies of at least 1 MiB from or to pinned memory: the window has none"
    )


def test_look_alike_slow_because_small(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, trace(bytes_=MIB - 1), tmp_path), NotRun)


def test_cheap_copies_pass_with_their_rate(tmp_path: Path) -> None:
    assert outcome(RULE, trace(20), tmp_path) == Passed(
        "Large pinned copies reach 52.4 GB/s host to device and take 2.0 % of the time unhidden."
    )


def test_not_run_where_the_gpu_is_not_known(tmp_path: Path) -> None:
    found = outcome(RULE, trace(gpu=""), tmp_path)
    assert isinstance(found, NotRun)
    assert found.missing.startswith("the GPU's model")
