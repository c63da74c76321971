from pathlib import Path

import pytest

from nsys_triage.metrics.launches import blocked_launches, failed_launches, launch_match, launched_work
from nsys_triage.result.model import Launches
from tests.builders.trace import TraceBuilder
from tests.rules.support import measured


def launches(builder: TraceBuilder, folder: Path, window: str = "all") -> Launches:
    return measured(builder, folder, window).launches


def test_counts_times_and_rate(tmp_path: Path) -> None:
    # four kernels, 100 us apart, each launched by a call of 5 us that begins 10 us before it: from 0 to 350 us
    found = launches(TraceBuilder().kernels(0, 4, every=100, length=50), tmp_path)
    assert (found.host_calls, found.api_ns, found.threads) == (4, 20_000, 1)
    assert found.per_s == pytest.approx(4 / 350e-6, abs=0.1)
    assert (found.latency_p50_ns, found.latency_p95_ns) == (10_000, 10_000)
    assert (found.blocked_calls, found.blocked_ns, found.clock_faults) == (0, 0, 0)


def test_latency_is_from_the_start_of_the_call_and_percentiles_occur(tmp_path: Path) -> None:
    builder = TraceBuilder()
    # 10, 20, 30, 40 us from call to work; the second of four is the 50th percentile, the fourth the 95th
    for number, latency in enumerate((10, 20, 30, 40)):
        start = 1000 * number
        builder.kernel(start, start + 100, call=(start - latency, start - latency + 5))
    found = launches(builder, tmp_path)
    assert (found.latency_p50_ns, found.latency_p95_ns) == (20_000, 40_000)


def test_work_before_its_call_is_a_clock_fault_and_no_negative_latency(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100, call=(10, 15)).kernel(200, 300)
    found = launches(builder, tmp_path)
    assert found.clock_faults == 1
    assert found.latency_p50_ns == 0


def test_a_graph_launch_is_one_launch_however_many_nodes(tmp_path: Path) -> None:
    builder = TraceBuilder().graph_nodes([(0, 10), (10, 20), (20, 30)], call=(-40, -20)).kernel(100, 110)
    m = measured(builder, tmp_path)
    assert m.launches.host_calls == 2
    assert launched_work(m.workload)["start_ns"].to_list() == [0, 100_000]
    assert m.launches.latency_p95_ns == 40_000
    assert launch_match(m.workload).matched == 4


def test_copies_and_memsets_are_no_launches_but_have_calls(tmp_path: Path) -> None:
    m = measured(TraceBuilder().kernel(0, 10).copy(20, 30).memset(40, 50), tmp_path)
    assert m.launches.host_calls == 1
    assert launched_work(m.workload).height == 1
    assert launch_match(m.workload).matched == 3


def test_work_without_a_call_is_unmatched(tmp_path: Path) -> None:
    m = measured(TraceBuilder().kernel(0, 10).kernel(20, 30, launch=None).migration(40, 50), tmp_path)
    match = launch_match(m.workload)
    assert (match.matched, match.unmatched) == (1, 2)
    assert m.launches.latency_p50_ns == 10_000


def busy(length: float = 60.0, *, idle: float = 0.0) -> TraceBuilder:
    """30 kernels back to back from 0 to 3000 us (calls of 5 us), and one more whose call lasts `length`, from 2000 on.

    With `idle`, that much of the call's time has no kernel: one kernel from 1900 ends early.
    """
    builder = TraceBuilder()
    for start in range(0, 3000, 100):
        end = start + 100 if start != 2000 else start + 100 - idle
        builder.kernel(start, end, call=(start / 10 - 500, start / 10 - 495))
    return builder.kernel(3000, 3010, call=(2000, 2000 + length))


@pytest.mark.parametrize(("length", "blocked"), [(49.999, 0), (50.0, 1)])
def test_back_pressure_needs_fifty_microseconds(tmp_path: Path, length: float, blocked: int) -> None:
    # ten times the median of 5 us is 50 us as well
    found = launches(busy(length), tmp_path)
    assert found.blocked_calls == blocked
    assert found.blocked_ns == (50_000 if blocked else 0)


@pytest.mark.parametrize(("idle", "blocked"), [(10.0, 1), (10.001, 0)])
def test_back_pressure_needs_a_busy_gpu(tmp_path: Path, idle: float, blocked: int) -> None:
    # the call lasts 100 us, from 2000 to 2100: the GPU may be idle for 10 us of it
    assert launches(busy(100, idle=idle), tmp_path).blocked_calls == blocked


def test_long_calls_are_back_pressure_only_against_the_median(tmp_path: Path) -> None:
    # all calls last 60 us: slow launching, not a full queue
    builder = TraceBuilder()
    for start in range(0, 3000, 100):
        builder.kernel(start, start + 100, call=(start - 80, start - 20))
    m = measured(builder, tmp_path)
    assert blocked_launches(m.ledger.pieces, launched_work(m.workload)).is_empty()


def test_queue_depth_is_what_each_launch_finds(tmp_path: Path) -> None:
    # five launches at -50, -40, -30, -20, -10, work from 0 on one after the other: they find 0, 1, 2, 3, 4 before them
    builder = TraceBuilder()
    for number in range(5):
        builder.kernel(100 * number, 100 * number + 100, call=(-50 + 10 * number, -45 + 10 * number))
    assert launches(builder, tmp_path).queue_depth_p50 == 2


def test_work_that_begins_as_a_launch_is_made_does_not_queue(tmp_path: Path) -> None:
    # each is launched as the one before it begins: nothing waits
    builder = TraceBuilder().kernel(0, 90).kernel(100, 190, call=(0, 5)).kernel(200, 290, call=(100, 105))
    assert launches(builder, tmp_path).queue_depth_p50 == 0


def test_only_calls_of_the_window_count(tmp_path: Path) -> None:
    builder = TraceBuilder().kernels(0, 4, every=100, length=50)
    # from 150 to 300 us: the kernels at 200 (call from 190) and 300 (call from 290)
    assert launches(builder, tmp_path, "0.00015:0.0003").host_calls == 2


def test_launches_of_two_gpus_do_not_queue_behind_each_other(tmp_path: Path) -> None:
    builder = TraceBuilder(gpus=("H100", "H100"))
    for number in range(3):
        builder.kernel(500 + number, 501 + number, device=0, call=(10 * number, 10 * number + 1))
    builder.kernel(100, 200, device=1, call=(40, 41))
    # on the first GPU they find 0, 1, 2; on the second 0: the second smallest of 0, 0, 1, 2
    assert launches(builder, tmp_path).queue_depth_p50 == 0


def test_a_failed_launch_left_no_kernel(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(10, 20, call=(1, 5)).api("cudaLaunchKernel_v7000", 6, 7, result=700)
    builder.api("cudaLaunchKernel_v7000", 8, 9, result=600).api("cudaMalloc_v3020", 30, 31, result=2)
    assert failed_launches(measured(builder, tmp_path).workload) == 1
