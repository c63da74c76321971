"""What copies cost the device. Numbers by hand, in microseconds."""

from pathlib import Path

import pytest

from nsys_triage.metrics import copy_costs as cc
from nsys_triage.metrics.gpu_models import NVLINK_C2C, PCIE_4
from nsys_triage.metrics.measure import Measurement
from tests.builders.trace import TraceBuilder
from tests.rules.support import measured

MIB = 1 << 20


def test_facts_of_each_copy(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100)
    builder.copy(100, 110, bytes_=65_535, pinned=False).copy(110, 120, bytes_=65_536)
    builder.copy(120, 130, "device_to_host", bytes_=64).copy(
        130, 140, "device_to_host", bytes_=65, pinned=None
    )
    builder.copy(140, 150, "device_to_device", bytes_=8, launch=None).migration(150, 160, bytes_=4096)
    m = measured(builder, tmp_path)
    found = cc.all_copies(m.trace, m.workload)
    assert found.schema == cc.COPIES
    facts = found.select("bytes", "pageable", "pinned", "migration", "readback", "small").rows()
    assert facts == [
        (65_535, True, False, False, False, True),
        (65_536, False, True, False, False, False),
        (64, False, True, False, True, True),
        (65, False, False, False, False, True),
        (8, False, False, False, False, True),
        (4096, False, False, True, False, False),
    ]
    assert found["call"].is_null().to_list() == [False, False, False, False, True, True]


@pytest.fixture
def mixed(tmp_path: Path) -> Measurement:
    """0 to 1000: a kernel to 400 beside a copy from 300 to 500, a second copy from 450 to 600, a kernel from 600 on."""
    builder = TraceBuilder().kernel(0, 400).copy(300, 500, pinned=False, stream=20).copy(450, 600, stream=21)
    return measured(builder.kernel(600, 1000), tmp_path)


def test_exposed_time_is_what_no_kernel_hides(mixed: Measurement) -> None:
    copies = cc.all_copies(mixed.trace, mixed.workload)
    assert cc.exposed_ns(mixed.pieces, copies) == 200_000
    assert cc.exposed_ns(mixed.pieces, copies.filter("pageable")) == 100_000
    assert cc.exposed_ns(mixed.pieces, copies.filter("pinned")) == 150_000
    assert cc.exposed_ns(mixed.pieces, copies.clear()) == 0
    # 500 to 600 runs the pinned one alone
    assert cc.exposed_without_ns(mixed.pieces, copies.filter("pageable")) == 100_000
    assert cc.exposed_without_ns(mixed.pieces, copies) == 0


def test_longest_exposed_is_by_exposed_time_not_by_length(mixed: Measurement) -> None:
    copies = cc.all_copies(mixed.trace, mixed.workload)
    # 150 of 150 against 100 of 200
    assert cc.longest_exposed(mixed.pieces, copies) == (450_000, 600_000)
    assert cc.longest_exposed(mixed.pieces, copies.clear()) is None


def test_hideable_is_bounded_by_what_computes_alone(mixed: Measurement, tmp_path: Path) -> None:
    # kernels run without a copy for 300 and 400; 200 are exposed
    assert cc.hideable_ns(mixed.pieces, cc.all_copies(mixed.trace, mixed.workload)) == 200_000
    m = measured(TraceBuilder().copy(10, 510).kernel(510, 540).copy(540, 600), tmp_path)
    assert cc.hideable_ns(m.pieces, cc.all_copies(m.trace, m.workload)) == 30_000


def test_hideable_is_bounded_on_each_gpu(tmp_path: Path) -> None:
    builder = TraceBuilder(gpus=("H100", "H100")).copy(10, 110).kernel(110, 120)
    # there is plenty to compute on the other GPU, which does not help the first
    builder.kernel(10, 1000, device=1, context=2).copy(1000, 1007, device=1, context=2)
    m = measured(builder, tmp_path)
    assert cc.hideable_ns(m.pieces, cc.all_copies(m.trace, m.workload)) == 10_000 + 7_000


def test_share_before_the_work(tmp_path: Path) -> None:
    # computing 1000 in all: a tenth is done at 200, when the first kernel ends
    builder = TraceBuilder().copy(10, 100).kernel(100, 200).copy(200, 210).kernel(210, 1110)
    m = measured(builder, tmp_path)
    assert cc.before_the_work_share(m.pieces, cc.all_copies(m.trace, m.workload)) == 0.9
    nothing = measured(TraceBuilder().copy(10, 100), tmp_path)
    assert cc.before_the_work_share(nothing.pieces, cc.all_copies(nothing.trace, nothing.workload)) == 0.0


def test_blocking_calls_are_told_by_name_or_by_what_they_did(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000)
    builder.copy(100, 110, launch="cudaMemcpy_v3020", call=(95, 112), stream=20)
    builder.copy(200, 210, pinned=False, call=(195, 210), stream=20)  # returned when it was done
    builder.copy(300, 310, pinned=False, call=(295, 309.999), stream=20)  # returned before
    builder.copy(400, 410, call=(395, 412), stream=20)  # pinned: a long call, no wait
    builder.memset(500, 510, launch="cudaMemset_v3020", call=(495, 512), stream=20)
    builder.wait("cudaDeviceSynchronize_v3020", 600, 700)
    calls = cc.blocking_calls(measured(builder, tmp_path).workload)
    assert sorted(calls["start_ns"].to_list()) == [95_000, 195_000, 495_000]


def test_cost_of_waits_and_of_launching(tmp_path: Path) -> None:
    # the call from 340 to 452 waits for its copy; the GPU is dry from 450 to 550, the next launch comes at 540.
    # then the GPU is dry from 700 to 760: a blocking call begins at 720, its copy at 760
    builder = TraceBuilder().kernel(0, 400).copy(400, 450, launch="cudaMemcpy_v3020", call=(390, 452))
    builder.kernel(550, 700, call=(540, 545)).copy(760, 770, launch="cudaMemcpy_v3020", call=(720, 771))
    m = measured(builder.kernel(770, 1000, call=(772, 773), launch=None), tmp_path)
    calls = cc.blocking_calls(m.workload)
    assert cc.wait_cost_ns(m.pieces, calls["call"]) == 60_000
    assert cc.launch_cost_ns(m.pieces, m.gaps.gaps, calls["call"], inside=True) == 40_000
    # the copy call is no kernel launch, so the 20 us before it are the host's own work either way
    assert cc.launch_cost_ns(m.pieces, m.gaps.gaps, calls["call"], inside=False) == 40_000
    assert cc.wait_cost_ns(m.pieces, calls["call"].clear()) == 0
    assert cc.launch_cost_ns(m.pieces, m.gaps.gaps, calls["call"].clear(), inside=True) == 0


def test_rates(tmp_path: Path) -> None:
    # two copies of 1 MiB that overlap for half of their time: 2 MiB in 150 us
    builder = (
        TraceBuilder()
        .kernel(0, 10)
        .copy(100, 200, bytes_=MIB, stream=20)
        .copy(150, 250, bytes_=MIB, stream=21)
    )
    builder.copy(300, 310, bytes_=MIB - 1).copy(400, 500, "device_to_host", bytes_=MIB).copy(
        600, 700, pinned=False
    )
    m = measured(builder, tmp_path)
    copies = cc.all_copies(m.trace, m.workload)
    to_device = cc.large_pinned(copies, 1)
    assert to_device["start_ns"].to_list() == [100_000, 150_000]
    assert cc.rate_of(to_device) == pytest.approx(2 * MIB / 150_000 * 1e9)
    assert cc.large_pinned(copies, 2).height == 1
    assert cc.rate_of(copies.clear()) is None


def test_practical_rates() -> None:
    assert cc.practical_rate(PCIE_4.name, PCIE_4.bytes_per_s) == pytest.approx(25.2e9, rel=0.01)
    assert cc.practical_rate(NVLINK_C2C.name, NVLINK_C2C.bytes_per_s) == pytest.approx(202.5e9)
