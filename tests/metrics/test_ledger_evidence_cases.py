"""The time ledger, one small trace for each sentence: who explains a gap, direct evidence (step 5), input copies.

The traces are explained in `explaining.py`. Times are microseconds.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders.trace import TraceBuilder
from tests.metrics.explaining import (
    PLAIN,
    WORKER,
    Causes,
    each_explained,
    explained,
    measured,
    one_gap,
    totals,
)

# --- the stand-in -----------------------------------------------------------------------------------------------


def two_threads(**launch: Any) -> TraceBuilder:
    """The main thread launches the first kernel, then allocates in [1200, 1800); the worker launches the second."""
    trace = TraceBuilder().kernel(1_000, 1_100).kernel(2_000, 2_100, tid=WORKER, **launch)
    return trace.api("cudaMalloc_v3020", 1_200, 1_800)


STAND_IN = {"allocation": 600, "host_compute": 290, "launch": 10}


@pytest.mark.parametrize("call", ["pthread_cond_wait", "pthread_cond_timedwait", "sem_wait"])
def test_the_thread_that_launched_last_explains_the_wait_for_it(call: str) -> None:
    # the worker is awake for 99.999 us of the host part's 890
    assert explained(two_threads().os_call(call, 900, 1_890.001, tid=WORKER)) == STAND_IN


def test_a_thread_that_is_awake_for_100_us_explains_itself() -> None:
    # nothing of the worker comes before its launch call but the wait, 100 us earlier: it was computing
    trace = two_threads().os_call("pthread_cond_wait", 900, 1_890, tid=WORKER)
    assert explained(trace) == {"host_blocked": 790, "host_compute": 100, "launch": 10}


@pytest.mark.parametrize(("until", "stands_in"), [(1_145.001, True), (1_145, False)])
def test_a_thread_that_is_awake_for_half_of_the_time_explains_itself(until: float, stands_in: bool) -> None:
    # a gap of 100 us with a host part of 90: half of it is 45
    trace = TraceBuilder().kernel(1_000, 1_100).kernel(1_200, 1_300, tid=WORKER)
    trace.api("cudaMalloc_v3020", 1_110, 1_180).os_call("pthread_cond_wait", 900, until, tid=WORKER)
    assert ("allocation" in explained(trace)) == stands_in


def test_waiting_for_something_else_is_the_threads_own() -> None:
    trace = two_threads().os_call("poll", 900, 1_950, tid=WORKER)
    assert explained(trace) == {"host_blocked": 850, "launch": 50}


def test_a_wait_inside_a_cuda_call_is_not_one_for_another_thread() -> None:
    trace = (
        two_threads()
        .api("cudaFree_v3020", 1_100, 1_950, tid=WORKER)
        .os_call("sem_wait", 1_101, 1_949, tid=WORKER)
    )
    assert explained(trace) == {"allocation": 850, "launch": 50}


def test_a_thread_of_which_nothing_is_known_is_explained_by_the_other() -> None:
    # an NVTX range says where a thread is, not what it does
    trace = two_threads().range("backward", 900, 2_050, tid=WORKER)
    assert explained(trace) == STAND_IN


@pytest.mark.parametrize(
    "row",
    [
        lambda t: t.api("cudaEventRecord_v3020", 1_300, 1_301, tid=WORKER),
        lambda t: t.os_call("write", 1_300, 1_301, tid=WORKER),
        lambda t: t.mpi("MPI_Test", 1_300, 1_301, tid=WORKER),
        lambda t: t.profiler_overhead("something", 1_300, 1_301, tid=WORKER),
    ],
)
def test_one_row_in_the_host_part_is_enough_to_explain_oneself(
    row: Callable[[TraceBuilder], TraceBuilder],
) -> None:
    assert explained(row(two_threads())).get("allocation", 0) == 0


def test_the_stand_in_is_the_one_that_launched_last_before_the_gap() -> None:
    # a third thread launched a memset after the main one, whose call begins before the gap does
    trace = two_threads().memset(1_050, 1_060, stream=3, tid=78, call=(1_045, 1_050))
    trace.os_call("fsync", 1_300, 1_500, tid=78)
    assert explained(trace)["host_blocked"] == 200


def test_a_launch_inside_the_gap_makes_no_stand_in() -> None:
    trace = two_threads().memset(2_050, 2_060, stream=3, tid=78, call=(1_100, 1_105))
    assert explained(trace) == STAND_IN


def test_a_thread_of_another_process_does_not_stand_in() -> None:
    # process 5 launched last before the gap, on a GPU of its own; GPUs count by lowest process
    trace = two_threads()
    trace.on(pid=5, device=1).kernel(1_050, 1_060).os_call("write", 1_200, 1_800)
    assert explained(trace, gpu=1) == STAND_IN


def test_the_launch_part_stays_with_the_launching_thread() -> None:
    # lazy loading within the worker's launch call [1700, 1900)
    trace = two_threads(call=(1_700, 1_900)).cuda_overhead("lazy_load", 1_750, 1_850, tid=WORKER)
    assert explained(trace) == {"allocation": 500, "host_compute": 100, "module_load": 100, "launch": 200}


# --- step 5: direct evidence ------------------------------------------------------------------------------------

LOADS = [
    "cuModuleLoad", "cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoadFatBinary", "cuModuleGetFunction",
    "cuModuleGetGlobal_v2", "cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction", "cuLinkCreate_v2",
    "cuLinkComplete", "cuFuncLoad", "cudaLibraryLoadData_v12080",
]  # fmt: skip


def test_loading_calls_and_the_host_time_before_them() -> None:
    # [1100, 1300) before the call, 200 us in it
    for causes in each_explained(LOADS, lambda t, at, name: t.api(name, at + 1_300, at + 1_500)):
        assert causes == {"module_load": 400, "host_compute": 490, "launch": 10}


def test_queries_do_not_load() -> None:
    queries = ["cuFuncGetAttribute", "cudaFuncGetAttributes_v3020", "cuModuleUnload"]
    for causes in each_explained(queries, lambda t, at, name: t.api(name, at + 1_300, at + 1_500)):
        assert causes == {"host_compute": 690, "launch": 210}


@pytest.mark.parametrize("kind", ["driver_jit", "module_load", "lazy_load"])
def test_loading_overheads_and_the_host_time_before_them(kind: str) -> None:
    trace = one_gap().cuda_overhead(kind, 1_300, 1_500)
    assert explained(trace) == {"module_load": 400, "host_compute": 490, "launch": 10}


def test_the_host_time_before_the_last_of_several_loads_belongs_to_loading() -> None:
    # whatever else the thread did there: a compiler wrote a file, memory was allocated
    trace = one_gap().api("cuModuleLoadData", 1_200, 1_250).os_call("write", 1_300, 1_400)
    trace.api("cudaMalloc_v3020", 1_400, 1_450).api("cuModuleLoadData", 1_500, 1_600)
    assert explained(trace) == {"module_load": 500, "host_compute": 390, "launch": 10}


def test_a_load_that_began_before_the_gap_has_no_host_time_before_it() -> None:
    assert explained(one_gap().api("cuModuleLoadData", 900, 1_200))["module_load"] == 100


def test_loading_within_the_launch_part_has_no_host_time_before_it() -> None:
    # the launch call [1500, 1990) loads in [1600, 1700)
    trace = one_gap(call=(1_500, 1_990)).cuda_overhead("lazy_load", 1_600, 1_700)
    assert explained(trace) == {"host_compute": 400, "module_load": 100, "launch": 400}
    trace = one_gap(call=(1_500, 1_990)).api("cuLibraryLoadData", 1_600, 1_700)
    assert explained(trace) == {"host_compute": 400, "module_load": 100, "launch": 400}


def launched_in(*lengths: float, name: str = "slow") -> TraceBuilder:
    """Kernels of one name, one after the other, whose launch calls begin 50 us before the gap and take so long."""
    trace = TraceBuilder().kernel(1_000, 1_100)
    end = 1_100.0
    for length in lengths:
        start = end - 50 + length + 10
        trace.kernel(start, start + 100, name, call=(end - 50, end - 50 + length))
        end = start + 100
    return trace


def test_a_first_launch_of_1_ms_loads() -> None:
    # the part of the call within the gap, and 10 us from its end to the kernel
    assert explained(launched_in(1_000)) == {"module_load": 950, "launch": 10}
    assert explained(launched_in(999.999)) == {"launch": 959.999}


def test_a_second_launch_of_the_kernel_does_not_load_however_long() -> None:
    trace = launched_in(1_000, 5_000)
    assert explained(trace, 2_160) == {"launch": 4_960}


def test_every_process_loads_for_itself() -> None:
    trace = launched_in(1_000)
    trace.on(pid=5, device=1).kernel(3_000, 3_100).kernel(5_000, 5_100, "slow", call=(3_090, 4_990))
    m = measured(trace)
    assert [totals(m, gpu)["module_load"] for gpu in (0, 1)] == [1_890, 950]  # by lowest process


ALLOCATIONS = [
    "cudaMalloc_v3020", "cudaMallocPitch_v3020", "cudaFree_v3020", "cudaHostAlloc_v3020", "cudaMallocHost_v3020",
    "cudaFreeHost_v3020", "cudaHostRegister_v4000", "cudaMallocManaged_v6000", "cuMemAlloc_v2", "cuMemFree_v2",
    "cuMemHostAlloc", "cuMemAllocManaged",
]  # fmt: skip


def test_allocation_is_time_in_the_call() -> None:
    for causes in each_explained(ALLOCATIONS, lambda t, at, name: t.api(name, at + 1_300, at + 1_500)):
        assert causes == {"allocation": 200, "host_compute": 690, "launch": 10}


def test_pool_calls_are_not_allocation() -> None:
    pool = ["cudaMallocAsync_v11020", "cudaFreeAsync_v11020", "cuMemAllocAsync"]
    for causes in each_explained(pool, lambda t, at, name: t.api(name, at + 1_300, at + 1_500)):
        assert causes == {"launch": 210, "host_compute": 690}


def test_allocation_in_the_launch_part_is_launching() -> None:
    trace = one_gap(call=(1_500, 1_990)).api("cudaMalloc_v3020", 1_600, 1_700)
    assert explained(trace) == {"host_compute": 400, "launch": 500}


def test_communication_of_the_host() -> None:
    trace = (
        one_gap()
        .mpi("MPI_Allreduce", 1_200, 1_400)
        .os_call("poll", 1_250, 1_350)
        .ucx("ucp_wait", 1_500, 1_550)
    )
    assert explained(trace) == {"host_communication": 250, "host_compute": 640, "launch": 10}


def test_communication_of_the_host_where_it_is_an_nvtx_domain() -> None:
    trace = TraceBuilder("2022.4.2").kernel(1_000, 1_100).kernel(2_000, 2_100).mpi("MPI_Wait", 1_200, 1_400)
    assert explained(trace)["host_communication"] == 200


def test_inside_a_range_that_says_data_loading() -> None:
    # blocked or not, since a range is more precise than what the OS says
    trace = one_gap().range("next batch", 1_200, 1_700).os_call("futex", 1_300, 1_400)
    assert explained(trace) == {"input_pipeline": 500, "host_compute": 390, "launch": 10}


@pytest.mark.parametrize(("kernels", "loads"), [(2, True), (3, False)])
def test_a_range_in_which_the_thread_launches_three_kernels_loads_no_data(kernels: int, loads: bool) -> None:
    trace = one_gap().range("decode", 500, 1_700)
    for number in range(kernels - 1):  # one of them is that before the gap
        trace.kernel(600 + 50 * number, 610 + 50 * number)
    trace.kernel(2_200, 2_300, call=(1_300, 1_301), tid=WORKER)  # another thread's
    assert ("input_pipeline" in explained(trace)) == loads


def with_inputs(count: int = 3, size: int = 65_536, **copy: Any) -> TraceBuilder:
    """A kernel [1000, 1100) and a copy [2000, 2100) to the device, launched at 1990; again every 3000 us."""
    trace = TraceBuilder()
    for number in range(count):
        at = 3_000 * number
        trace.kernel(at + 1_000, at + 1_100).copy(at + 2_000, at + 2_100, bytes_=size, **copy)
    return trace


READS = ["poll", "select", "epoll_wait", "read", "pread", "recv", "sem_wait", "pthread_cond_wait", "futex"]


def test_waiting_or_reading_before_an_input_copy() -> None:
    # and T on the CPU before one: all of the host part
    trace = with_inputs(len(READS))
    for number, name in enumerate(READS):
        trace.os_call(name, 3_000 * number + 1_200, 3_000 * number + 1_700)
    assert totals(measured(trace))["input_pipeline"] == 890 * len(READS)


def test_blocked_in_another_way_before_an_input_copy() -> None:
    names = ["write", "fsync", "send", "usleep", "pthread_mutex_lock"]
    trace = with_inputs(len(names))
    for number, name in enumerate(names):
        trace.os_call(name, 3_000 * number + 1_200, 3_000 * number + 1_700)
    found = totals(measured(trace))
    assert (found["host_blocked"], found["input_pipeline"]) == (500 * len(names), 390 * len(names))


def test_blocked_before_anything_else() -> None:
    names = [*READS, "write", "fsync", "usleep"]
    for causes in each_explained(names, lambda t, at, name: t.os_call(name, at + 1_200, at + 1_700)):
        assert causes == {"host_blocked": 500, "host_compute": 390, "launch": 10}


def test_what_the_os_does_inside_a_cuda_call_is_the_call() -> None:
    trace = one_gap().api("cudaEventRecord_v3020", 1_200, 1_700).os_call("poll", 1_300, 1_600)
    assert explained(trace) == {"launch": 510, "host_compute": 390}
    before_input = with_inputs().api("cudaEventRecord_v3020", 1_200, 1_700).os_call("poll", 1_300, 1_600)
    assert explained(before_input) == {"launch": 510, "input_pipeline": 390}


# --- input copies -----------------------------------------------------------------------------------------------

INPUT, NO_INPUT = {"input_pipeline": 890, "launch": 10}, PLAIN


@pytest.mark.parametrize(("count", "expected"), [(3, INPUT), (2, NO_INPUT)])
def test_an_input_copy_recurs_three_times(count: int, expected: Causes) -> None:
    assert explained(with_inputs(count)) == expected


@pytest.mark.parametrize(("size", "expected"), [(65_536, INPUT), (65_535, NO_INPUT)])
def test_an_input_copy_has_64_kib(size: int, expected: Causes) -> None:
    assert explained(with_inputs(size=size)) == expected


@pytest.mark.parametrize("kind", ["device_to_host", "device_to_device", "peer_to_peer"])
def test_other_copies_are_no_input(kind: str) -> None:
    assert explained(with_inputs(kind=kind)) == NO_INPUT


@pytest.mark.parametrize("third", [{"bytes_": 65_537}, {"stream": 8}, {"context": 2}])
def test_copies_of_one_size_on_one_stream_recur(third: dict[str, Any]) -> None:
    trace = with_inputs(2).kernel(7_000, 7_100)
    trace.copy(8_000, 8_100, **{"bytes_": 65_536, **third})
    assert explained(trace) == NO_INPUT


def test_copies_of_two_processes_on_one_gpu_are_on_two_streams() -> None:
    # both call their stream 7; known to share the GPU
    trace = with_inputs(2)
    trace.on(pid=5).kernel(7_000, 7_100).copy(8_000, 8_100, bytes_=65_536)
    assert explained(trace) == NO_INPUT


def test_copies_that_follow_one_another_are_weights_not_input() -> None:
    # three copies in a row: only the first comes after kernel work
    trace = TraceBuilder().kernel(1_000, 1_100)
    for number in range(3):
        trace.copy(2_000 + 200 * number, 2_100 + 200 * number, bytes_=65_536)
    assert explained(trace) == NO_INPUT


def test_a_small_copy_between_two_makes_them_come_after_other_work() -> None:
    trace = TraceBuilder().kernel(1_000, 1_100)
    for number in range(3):
        at = 2_000 + 400 * number
        trace.copy(at, at + 100, bytes_=65_536).copy(at + 200, at + 210, bytes_=64, stream=9)
    assert explained(trace) == INPUT


def test_the_next_batch_after_a_checkpoint_is_no_input() -> None:
    # a device-to-host copy of 1 MiB ends last before the third batch's gap, [8100, 9000)
    trace = with_inputs(2).copy(7_000, 8_100, "device_to_host", bytes_=1 << 20, stream=9)
    trace.copy(9_000, 9_100, bytes_=65_536)
    assert explained(trace, 1_100) == INPUT
    assert explained(trace, 8_100) == NO_INPUT


def test_a_smaller_copy_to_the_host_is_no_checkpoint() -> None:
    trace = with_inputs(2).copy(7_000, 8_100, "device_to_host", bytes_=(1 << 20) - 1, stream=9)
    assert explained(trace.copy(9_000, 9_100, bytes_=65_536), 8_100) == INPUT


def test_copies_recur_in_the_window() -> None:
    # of three, two start in the window
    trace = with_inputs(3)
    assert explained(trace, 4_100, window="0.0021:0.009") == NO_INPUT
    assert explained(trace, 4_100, window="0.002:0.008") == NO_INPUT
    assert explained(trace, 4_100, window="0.002:0.0081") == INPUT
