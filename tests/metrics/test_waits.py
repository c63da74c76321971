from pathlib import Path

import polars as pl
import pytest

from nsys_triage.metrics.gpus import GpuIdentity, Gpus
from nsys_triage.metrics.waits import all_idle, process_groups, readback_waits, summarize_sync
from nsys_triage.result.model import Sync
from tests.builders.trace import TraceBuilder
from tests.rules.support import measured

STREAM, DEVICE, BLOCKING = "cudaStreamSynchronize_v3020", "cudaDeviceSynchronize_v3020", "cudaMemcpy_v3020"


def sync(builder: TraceBuilder, folder: Path, window: str = "all") -> Sync:
    return measured(builder, folder, window).sync


def two_kernels(launch: float = 150.0) -> TraceBuilder:
    """Kernels from 0 to 100 and from 200 to 300 us; the second is launched by a call of 5 us that begins then."""
    return TraceBuilder().kernel(0, 100).kernel(200, 300, call=(launch, launch + 5))


def test_time_idle_time_and_cost_are_three_numbers(tmp_path: Path) -> None:
    # waits from 20 to 110: 90 us inside, 10 of them while the GPU is idle. Had it not waited, the host would have been
    # 80 us earlier (from 20 to the end of the work at 100): 80 of the 100 us of idle time
    found = sync(two_kernels().wait(STREAM, 20, 110), tmp_path)
    assert (found.calls, found.total_ns, found.union_ns) == (1, 90_000, 90_000)
    assert (found.idle_ns, found.cost_ns) == (10_000, 80_000)
    row = found.by_api[0]
    assert (row.api, row.calls, row.total_ns) == ("cudaStreamSynchronize", 1, 90_000)
    assert (row.idle_ns, row.cost_ns, row.blocking_copies) == (10_000, 80_000, False)


def test_a_wait_while_the_gpu_goes_on_costs_nothing(tmp_path: Path) -> None:
    found = sync(two_kernels().wait(STREAM, 20, 90), tmp_path)
    assert (found.total_ns, found.idle_ns, found.cost_ns) == (70_000, 0, 0)


def test_the_cost_is_at_most_what_the_host_did_after_it(tmp_path: Path) -> None:
    # the host is back at 101 and launches at 102; the second kernel starts at 110: of the 10 us all may be the wait's
    builder = TraceBuilder().kernel(0, 100).wait(DEVICE, 5, 101).kernel(110, 300, call=(102, 107))
    assert sync(builder, tmp_path).cost_ns == 10_000


def test_union_over_threads_is_less_than_their_sum(tmp_path: Path) -> None:
    builder = two_kernels().wait(STREAM, 20, 80).wait(STREAM, 40, 90, tid=77)
    found = sync(builder, tmp_path)
    assert (found.calls, found.total_ns, found.union_ns) == (2, 110_000, 70_000)


def test_calls_are_listed_by_time_and_copies_are_marked(tmp_path: Path) -> None:
    # the blocking copy runs from 300 to 310, its call from 260 to 312: 52 us, more than the 30 of the other
    builder = two_kernels().wait(STREAM, 40, 70)
    builder.copy(300, 310, "device_to_host", launch=BLOCKING, call=(260, 312))
    found = sync(builder, tmp_path)
    assert [(row.api, row.total_ns, row.blocking_copies) for row in found.by_api] == [
        ("cudaMemcpy", 52_000, True),
        ("cudaStreamSynchronize", 30_000, False),
    ]
    assert found.calls == 2


def test_an_asynchronous_copy_of_pageable_memory_waits_only_where_it_did(tmp_path: Path) -> None:
    builder = two_kernels()
    builder.copy(300, 310, pinned=False, call=(280, 310)).copy(320, 330, pinned=False, call=(311, 329))
    builder.copy(340, 350, pinned=True, call=(331, 352))
    found = sync(builder, tmp_path)
    assert [(row.api, row.calls) for row in found.by_api] == [("cudaMemcpyAsync", 1)]


def test_only_calls_that_start_in_the_window_count(tmp_path: Path) -> None:
    builder = two_kernels().wait(STREAM, 20, 90).wait(STREAM, 220, 290)
    found = sync(builder, tmp_path, "0.0001:0.0003")
    assert (found.calls, found.total_ns) == (1, 70_000)


def test_no_synchronising_calls(tmp_path: Path) -> None:
    found = sync(two_kernels(), tmp_path)
    assert (found.calls, found.total_ns, found.union_ns, found.idle_ns, found.cost_ns) == (0, 0, 0, 0, 0)
    assert found.by_api == []
    assert (found.readbacks.count, found.readbacks.cost_ns, found.readbacks.per_step) == (0, 0, None)


# --- read-backs -------------------------------------------------------------------------------------------------


def read_back(bytes_: int = 4, until: float = 104.0, kind: str = "device_to_host") -> TraceBuilder:
    """A kernel to 100, a copy from 100 to 102, a wait from 52 to `until`, the next kernel at 200 (launched at 150)."""
    builder = TraceBuilder().kernel(0, 100).copy(100, 102, kind, bytes_=bytes_, call=(40, 45))
    return builder.wait(STREAM, 52, until).kernel(200, 300, call=(150, 155))


def test_a_read_back_costs_what_its_wait_costs(tmp_path: Path) -> None:
    # the GPU runs dry at 102, 50 us after the wait began: 50 of the 98 us of idle time
    found = sync(read_back(), tmp_path)
    assert (found.readbacks.count, found.readbacks.cost_ns, found.cost_ns) == (1, 50_000, 50_000)


@pytest.mark.parametrize(("bytes_", "count"), [(64, 1), (65, 0)])
def test_read_backs_are_at_most_64_bytes(tmp_path: Path, bytes_: int, count: int) -> None:
    found = sync(read_back(bytes_), tmp_path)
    assert found.readbacks.count == count
    assert found.cost_ns == 50_000


@pytest.mark.parametrize(("until", "count"), [(101.999, 0), (102, 1)])
def test_a_read_back_is_waited_for_by_a_call_that_ends_with_it_or_later(
    tmp_path: Path, until: float, count: int
) -> None:
    found = sync(read_back(until=until), tmp_path).readbacks
    # a wait that returns as the copy ends was waiting when the GPU ran dry, 50 us after it began
    assert (found.count, found.cost_ns) == (count, 50_000 * count)


def test_copies_to_the_device_are_no_read_backs(tmp_path: Path) -> None:
    assert sync(read_back(kind="host_to_device"), tmp_path).readbacks.count == 0


def test_a_wait_of_another_process_does_not_count(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).copy(100, 102, "device_to_host", bytes_=4)
    builder.on(pid=9000).kernel(0, 10).wait(STREAM, 52, 104)
    assert sync(builder, tmp_path).readbacks.count == 0


def test_the_cost_of_other_waits_is_not_the_read_backs(tmp_path: Path) -> None:
    # a second wait, for a kernel alone: from 320 to the end of the work at 400 are 80 us of the gap to 500
    builder = read_back().kernel(300, 400).wait(DEVICE, 320, 402).kernel(500, 600, call=(450, 455))
    found = sync(builder, tmp_path)
    assert (found.cost_ns, found.readbacks.cost_ns) == (130_000, 50_000)


def test_read_backs_per_step(tmp_path: Path) -> None:
    m = measured(read_back(), tmp_path)
    found = summarize_sync(m.trace, m.workload, m.pieces, m.window, 4)
    assert found.readbacks.per_step == 0.25


def test_which_calls_wait_for_read_backs_and_where_it_costs_most(tmp_path: Path) -> None:
    builder = read_back()
    # a dearer one: the blocking copy from 300 to 302, whose call began at 210, 92 us before; next kernel at 500
    builder.copy(300, 302, "device_to_host", bytes_=8, launch=BLOCKING, call=(210, 304))
    builder.kernel(500, 600, call=(450, 455))
    m = measured(builder, tmp_path)
    waits = readback_waits(m.trace, m.workload, m.pieces, m.window)
    assert waits.apis == ("cudaMemcpy", "cudaStreamSynchronize")
    assert waits.where == (302_000, 500_000)


def test_no_waits_for_read_backs(tmp_path: Path) -> None:
    m = measured(two_kernels().wait(STREAM, 20, 110), tmp_path)
    waits = readback_waits(m.trace, m.workload, m.pieces, m.window)
    assert (waits.apis, waits.where) == ((), None)


# --- several GPUs -----------------------------------------------------------------------------------------------


def gpus(*processes: tuple[int, ...]) -> Gpus:
    identities = tuple(
        GpuIdentity(index, f"gpu{index}", True, index, None, None, pids, (0,), None)
        for index, pids in enumerate(processes)
    )
    return Gpus(identities, pl.DataFrame())


def test_processes_that_share_gpus_are_one_group() -> None:
    # 10 and 11 share GPU 0, 11 and 12 share GPU 1; 20 is alone
    groups = process_groups(gpus((10, 11), (11, 12), (20,)))
    assert groups.sort("pid", "gpu").rows() == [
        (10, 0, 10),
        (11, 0, 10),
        (11, 1, 10),
        (12, 1, 10),
        (20, 2, 20),
    ]


def test_all_gpus_of_a_group_have_to_be_idle() -> None:
    pieces = pl.DataFrame(
        # GPU 0 idle from 10 to 50, GPU 1 from 30 to 70, GPU 2 (another process) from 0 to 100
        [
            (0, 0, 10, None),
            (0, 10, 50, 0),
            (0, 50, 100, None),
            (1, 0, 30, None),
            (1, 30, 70, 1),
            (2, 0, 100, 2),
        ],
        schema={"gpu": pl.UInt16, "start_ns": pl.Int64, "end_ns": pl.Int64, "gap": pl.UInt32},
        orient="row",
    )
    groups = process_groups(gpus((10,), (10,), (20,)))
    assert all_idle(pieces, groups).rows() == [(10, 30, 50), (20, 0, 100)]


def test_idle_time_of_waits_counts_where_all_gpus_of_the_process_idle(tmp_path: Path) -> None:
    builder = TraceBuilder(gpus=("H100", "H100")).kernel(0, 100, device=0).kernel(0, 150, device=1)
    # waits until 160: the first GPU is idle from 100 on, both are from 150 on
    builder.wait(DEVICE, 50, 160).kernel(300, 400, device=0, call=(290, 295)).kernel(
        300, 400, device=1, call=(296, 299)
    )
    assert sync(builder, tmp_path).idle_ns == 10_000
