"""The time ledger, one small trace for each sentence of its definition. Times are microseconds.

Most traces have one gap, [1100, 2000): a kernel ends at 1100, the next is launched by a call [1990, 1995) and starts
at 2000. So the host part is [1100, 1990), 890 us, and the launch part [1990, 2000), 10 us.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from nsys_triage.metrics.ledger import by_cause
from nsys_triage.metrics.measure import Measurement, measure
from nsys_triage.metrics.window import parse_window
from nsys_triage.result.model import BUSY_CAUSES, CAUSES
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import ALL_REDUCE, TraceBuilder

Causes = dict[str, float]
Explain = Callable[..., Causes]
Plant = Callable[[TraceBuilder, float, str], object]
ExplainEach = Callable[[list[str], Plant], list[Causes]]
Measured = Callable[..., Measurement]

PLAIN = {"host_compute": 890, "launch": 10}  # the gap where nothing else is known
WORKER = 77  # another thread


@pytest.fixture
def measured(tmp_path: Path) -> Measured:
    def run(trace: TraceBuilder, window: str = "all") -> Measurement:
        path = trace.write(tmp_path / "t.sqlite")
        found = measure(load_trace(path, file=path.name, kind="sqlite", capture_version=None), parse_window(window))
        assert found is not None
        return found

    return run


@pytest.fixture
def explained(measured: Measured) -> Explain:
    """The causes (us) of the gap that begins at that time, of the first GPU unless said otherwise."""

    def run(trace: TraceBuilder, at: float = 1_100, *, gpu: int = 0, window: str = "all") -> Causes:
        m = measured(trace, window)
        gaps = m.gaps.gaps.filter((pl.col("gpu") == gpu) & (pl.col("start_ns") == round(at * 1_000)))
        assert gaps.height == 1, m.gaps.gaps.select("gpu", "start_ns", "end_ns").rows()
        return by_name(m.pieces.filter(pl.col("gap") == gaps["gap"][0]))

    return run


@pytest.fixture
def each_explained(measured: Measured) -> ExplainEach:
    """For each name the gap above, 3000 us after the one before, with what `plant` adds to it: its causes."""

    def run(names: list[str], plant: Plant) -> list[Causes]:
        trace = TraceBuilder()
        for number, name in enumerate(names):
            at = 3_000.0 * number
            trace.kernel(at + 1_000, at + 1_100).kernel(at + 2_000, at + 2_100)
            plant(trace, at, name)
        m = measured(trace)
        gaps = m.gaps.gaps.filter((pl.col("start_ns") - 1_100_000) % 3_000_000 == 0)
        assert gaps.height == len(names)
        return [by_name(m.pieces.filter(pl.col("gap") == gap)) for gap in gaps["gap"]]

    return run


def by_name(pieces: pl.DataFrame) -> Causes:
    return {CAUSES[code]: ns / 1_000 for code, ns in by_cause(pieces).iter_rows()}


def one_gap(**kernel: Any) -> TraceBuilder:
    """The trace above; keywords are about the kernel that ends the gap."""
    return TraceBuilder().kernel(1_000, 1_100).kernel(2_000, 2_100, **kernel)


def totals(m: Measurement, gpu: int = 0) -> Causes:
    return by_name(m.pieces.filter(pl.col("gpu") == gpu))


# --- busy time --------------------------------------------------------------------------------------------------


def test_busy_time_goes_to_the_first_class_present(measured: Measured) -> None:
    trace = TraceBuilder("2025.5.2")
    trace.memset(1_000, 1_100).copy(1_010, 1_090, stream=8).kernel(1_020, 1_080, ALL_REDUCE, stream=9)
    trace.graph(1_030, 1_070, stream=10).kernel(1_040, 1_060, stream=11)
    # each of them shows for 10 us on either side of the next one, the kernel for its 20 us
    expected = {"memset": 20, "copy": 20, "communication": 20, "graph": 20, "compute": 20}
    assert totals(measured(trace)) == expected


def test_communication_is_what_nothing_computes_meanwhile(measured: Measured) -> None:
    trace = TraceBuilder().kernel(1_000, 1_060).kernel(1_040, 1_100, ALL_REDUCE, stream=20)
    assert totals(measured(trace)) == {"compute": 60, "communication": 40}


def test_entries_sum_to_the_span_whatever_overlaps(measured: Measured) -> None:
    trace = one_gap().kernel(1_050, 1_300, stream=9).kernel(1_700, 1_900, stream=9)
    found = totals(measured(trace))
    assert sum(found.values()) == 1_100
    assert found["compute"] == 300 + 200 + 100


# --- gaps, and what ends them -----------------------------------------------------------------------------------


def test_work_of_no_length_neither_ends_nor_splits_a_gap(explained: Explain) -> None:
    trace = one_gap().kernel(1_500, 1_500).copy(2_000, 2_000, call=(1_200, 1_850), stream=3)
    # were the copy what ends the gap, all from 1200 on would be the launch part; the kernel's call lies in its call
    assert explained(trace) == {"host_compute": 100 + 140, "launch": 650 + 10}


@pytest.mark.parametrize(
    ("other", "ends_it"),
    [
        ({"call": (1_980, 1_985)}, True),  # launched first
        ({"call": (1_991, 1_996)}, False),
        ({"call": (1_990, 1_995), "stream": 6}, True),  # launched together: the lowest stream, which is 7 else
        ({"call": (1_990, 1_995), "stream": 8}, False),
        ({"call": (1_990, 1_995), "correlation": 1}, True),  # same stream: the lowest id, which is 50 else
        ({"call": (1_990, 1_995), "correlation": 99}, False),
        ({"launch": None}, False),  # not known when it was launched
    ],
)
def test_of_several_operations_the_one_launched_first_ends_the_gap(
    explained: Explain, other: dict[str, Any], ends_it: bool
) -> None:
    # whose thread explains the gap: the other one's was blocked since 1200, up to 10 us before the kernels start
    trace = TraceBuilder().kernel(1_000, 1_100, correlation=49).kernel(2_000, 2_100, correlation=50)
    trace.on(tid=WORKER).kernel(2_000, 2_100, "other", **other).os_call("write", 1_200, 1_980)
    blocked = explained(trace).get("host_blocked", 0)
    assert (blocked > 0) == ends_it


def test_only_the_launching_thread_explains_a_gap(explained: Explain) -> None:
    trace = one_gap().os_call("write", 1_200, 1_900, tid=WORKER).api("cudaMalloc_v3020", 1_200, 1_900, tid=WORKER)
    assert explained(trace) == PLAIN


# --- the stand-in -----------------------------------------------------------------------------------------------


def two_threads(**launch: Any) -> TraceBuilder:
    """The main thread launches the first kernel, then allocates in [1200, 1800); the worker launches the second."""
    trace = TraceBuilder().kernel(1_000, 1_100).kernel(2_000, 2_100, tid=WORKER, **launch)
    return trace.api("cudaMalloc_v3020", 1_200, 1_800)


STAND_IN = {"allocation": 600, "host_compute": 290, "launch": 10}


@pytest.mark.parametrize("call", ["pthread_cond_wait", "pthread_cond_timedwait", "sem_wait"])
def test_the_thread_that_launched_last_explains_the_wait_for_it(explained: Explain, call: str) -> None:
    # the worker is awake for 99.999 us of the host part's 890
    assert explained(two_threads().os_call(call, 900, 1_890.001, tid=WORKER)) == STAND_IN


def test_a_thread_that_is_awake_for_100_us_explains_itself(explained: Explain) -> None:
    # nothing of the worker comes before its launch call but the wait, 100 us earlier: it was computing
    trace = two_threads().os_call("pthread_cond_wait", 900, 1_890, tid=WORKER)
    assert explained(trace) == {"host_blocked": 790, "host_compute": 100, "launch": 10}


@pytest.mark.parametrize(("until", "stands_in"), [(1_145.001, True), (1_145, False)])
def test_a_thread_that_is_awake_for_half_of_the_time_explains_itself(
    explained: Explain, until: float, stands_in: bool
) -> None:
    # a gap of 100 us with a host part of 90: half of it is 45
    trace = TraceBuilder().kernel(1_000, 1_100).kernel(1_200, 1_300, tid=WORKER)
    trace.api("cudaMalloc_v3020", 1_110, 1_180).os_call("pthread_cond_wait", 900, until, tid=WORKER)
    assert ("allocation" in explained(trace)) == stands_in


def test_waiting_for_something_else_is_the_threads_own(explained: Explain) -> None:
    trace = two_threads().os_call("poll", 900, 1_950, tid=WORKER)
    assert explained(trace) == {"host_blocked": 850, "launch": 50}


def test_a_wait_inside_a_cuda_call_is_not_one_for_another_thread(explained: Explain) -> None:
    trace = two_threads().api("cudaFree_v3020", 1_100, 1_950, tid=WORKER).os_call("sem_wait", 1_101, 1_949, tid=WORKER)
    assert explained(trace) == {"allocation": 850, "launch": 50}


def test_a_thread_of_which_nothing_is_known_is_explained_by_the_other(explained: Explain) -> None:
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
    explained: Explain, row: Callable[[TraceBuilder], TraceBuilder]
) -> None:
    assert explained(row(two_threads())).get("allocation", 0) == 0


def test_the_stand_in_is_the_one_that_launched_last_before_the_gap(explained: Explain) -> None:
    # a third thread launched a memset after the main one, whose call begins before the gap does
    trace = two_threads().memset(1_050, 1_060, stream=3, tid=78, call=(1_045, 1_050))
    trace.os_call("fsync", 1_300, 1_500, tid=78)
    assert explained(trace)["host_blocked"] == 200


def test_a_launch_inside_the_gap_makes_no_stand_in(explained: Explain) -> None:
    trace = two_threads().memset(2_050, 2_060, stream=3, tid=78, call=(1_100, 1_105))
    assert explained(trace) == STAND_IN


def test_a_thread_of_another_process_does_not_stand_in(explained: Explain) -> None:
    # process 5 launched last before the gap on a GPU of its own; the worker is alone in its process
    trace = TraceBuilder(gpus=("H100", "H100")).on(tid=WORKER).kernel(1_000, 1_100).kernel(2_000, 2_100)
    other = trace.on(pid=5, tid=5, device=1).kernel(1_050, 1_060).api("cudaMalloc_v3020", 1_200, 1_800)
    assert explained(other, gpu=1) == PLAIN  # by lowest process


def test_the_launch_part_stays_with_the_launching_thread(explained: Explain) -> None:
    # lazy loading within the worker's launch call [1700, 1900)
    trace = two_threads(call=(1_700, 1_900)).cuda_overhead("lazy_load", 1_750, 1_850, tid=WORKER)
    assert explained(trace) == {"allocation": 500, "host_compute": 100, "module_load": 100, "launch": 200}


# --- latency, and steps 1 to 4 ----------------------------------------------------------------------------------


def test_work_launched_10_us_before_the_gap_was_queued(explained: Explain) -> None:
    assert explained(one_gap(call=(1_000, 1_090))) == {"queued": 900}


def test_work_launched_later_was_not(explained: Explain) -> None:
    assert explained(one_gap(call=(1_000, 1_090.001))) == {"launch": 900}


def twenty_gaps(count: int = 20) -> TraceBuilder:
    """Gaps whose launch calls end 3, 6, 9 ... us before the work starts, and one whose call ends 13 us before it."""
    trace = TraceBuilder().kernel(0, 100)
    for number in range(1, count + 1):
        start = number * 1_000
        trace.kernel(start, start + 100, call=(start - 100, start - 3 * number))
    last = (count + 1) * 1_000
    return trace.kernel(last, last + 100, call=(last - 900 - 20, last - 900 - 13))


def test_latency_is_the_lower_median_of_what_was_launched_in_its_gap(measured: Measured) -> None:
    # 3, 6 ... 60 us: the tenth of twenty is 30 us; the last gap's call begins before it and does not count
    m = measured(twenty_gaps())
    assert m.gaps.latency_ns == 30_000
    assert totals(m).get("queued", 0) == 0  # 13 us before the gap is too late


def test_latency_is_10_us_where_there_are_fewer_than_20(explained: Explain, measured: Measured) -> None:
    trace = twenty_gaps(19)
    assert measured(trace).gaps.latency_ns == 10_000
    assert explained(trace, 19_100) == {"queued": 900}


def test_latency_is_0_where_the_work_starts_first(measured: Measured) -> None:
    trace = TraceBuilder().kernel(0, 100)
    for number in range(1, 21):
        trace.kernel(number * 1_000, number * 1_000 + 100, call=(number * 1_000 - 5, number * 1_000 + 5))
    assert measured(trace).gaps.latency_ns == 0


@pytest.mark.parametrize("kind", ["buffer_flush", "instrumentation", "resource"])
def test_profiler_overhead_on_the_thread_comes_first(explained: Explain, kind: str) -> None:
    trace = one_gap().cuda_overhead(kind, 1_050, 1_400).api("cuModuleLoadData", 1_200, 1_500)
    # of the 300 us of loading 200 are the profiler's
    assert explained(trace) == {"profiler": 300, "module_load": 100, "host_compute": 490, "launch": 10}


PROFILER_NAMES = [
    "CUPTI Buffer flush", "Data flush", "CUDA profiling initialization", "Instrumentation", "Resource creation",
    "Chunk Allocation", "TLS Allocation",
]  # fmt: skip


def test_where_no_type_is_recorded_the_name_says_profiler(each_explained: ExplainEach) -> None:
    for causes in each_explained(PROFILER_NAMES, lambda t, at, name: t.profiler_overhead(name, at + 1_200, at + 1_300)):
        assert causes == {"profiler": 100, "host_compute": 790, "launch": 10}


def test_other_overheads_and_those_of_other_threads_are_not_the_profilers(explained: Explain) -> None:
    trace = one_gap().cuda_overhead("command_buffer_full", 1_200, 1_300).profiler_overhead("Other", 1_400, 1_500)
    trace.cuda_overhead("buffer_flush", 1_200, 1_900, tid=WORKER)
    assert explained(trace) == PLAIN


def test_profiler_overhead_takes_its_part_of_queued_and_unexplained_gaps(explained: Explain) -> None:
    queued = one_gap(call=(1_000, 1_050)).cuda_overhead("buffer_flush", 1_200, 1_300)
    assert explained(queued) == {"profiler": 100, "queued": 800}
    graphs = one_gap().cuda_overhead("buffer_flush", 1_200, 1_300).api("cudaGraphLaunch_v10000", 1_500, 1_600)
    assert explained(graphs) == {"profiler": 100, "unknown": 800}


@pytest.mark.parametrize("kind", ["host_to_device", "device_to_host", "device_to_device"])
def test_a_gap_that_ends_with_a_migration_is_unified_memory(explained: Explain, kind: str) -> None:
    trace = TraceBuilder().kernel(1_000, 1_100).migration(2_000, 2_100, kind).os_call("write", 1_200, 1_300)
    assert explained(trace) == {"unified_memory": 900}


def test_a_gap_whose_launch_is_not_known_is_unknown(explained: Explain) -> None:
    trace = one_gap(launch=None).os_call("write", 1_200, 1_300)
    assert explained(trace) == {"unknown": 900}


@pytest.mark.parametrize(("early", "faulty"), [(1, False), (2, True)])
def test_more_than_one_start_in_twenty_before_its_launch_is_a_clock_fault(
    measured: Measured, early: int, faulty: bool
) -> None:
    trace = TraceBuilder()
    for number in range(20):
        start = number * 1_000
        trace.kernel(start, start + 100, call=(start + 1, start + 5) if number < early else None)
    m = measured(trace)
    assert m.gaps.clock_fault == faulty
    # 19 gaps of 900 us; a gap whose work starts before its launch has no launch part
    expected = {"unknown": 17_100} if faulty else {"host_compute": 19 * 890, "launch": 190}
    assert totals(m) == {"compute": 2_000, **expected}


def test_where_graphs_run_unseen_idle_is_not_idle(explained: Explain) -> None:
    trace = one_gap().api("cudaGraphLaunch_v10000", 1_200, 1_210)
    assert explained(trace) == {"unknown": 900}


@pytest.mark.parametrize(
    "seen",
    [
        lambda t: t.graph(2_200, 2_300, call=(1_200, 1_210)),
        lambda t: t.graph_nodes([(2_200, 2_300)], call=(1_200, 1_210)),
    ],
)
def test_graphs_that_are_recorded_hide_nothing(explained: Explain, seen: Callable[[TraceBuilder], TraceBuilder]) -> None:
    # the graph's launch call is a CUDA call of 10 us, the 100 us before it are too long for a dispatch
    assert explained(seen(one_gap())) == {"host_compute": 880, "launch": 20}


def test_graphs_unseen_in_one_process_say_nothing_of_another(explained: Explain) -> None:
    trace = one_gap()
    trace.on(pid=5, device=1).kernel(1_000, 1_100).kernel(2_000, 2_100).api("cudaGraphLaunch_v10000", 1_200, 1_210)
    assert [explained(trace, gpu=0), explained(trace, gpu=1)] == [{"unknown": 900}, PLAIN]  # by lowest process


# --- step 5: direct evidence ------------------------------------------------------------------------------------

LOADS = [
    "cuModuleLoad", "cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoadFatBinary", "cuModuleGetFunction",
    "cuModuleGetGlobal_v2", "cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction", "cuLinkCreate_v2",
    "cuLinkComplete", "cuFuncLoad", "cudaLibraryLoadData_v12080",
]  # fmt: skip


def test_loading_calls_and_the_host_time_before_them(each_explained: ExplainEach) -> None:
    # [1100, 1300) before the call, 200 us in it
    for causes in each_explained(LOADS, lambda t, at, name: t.api(name, at + 1_300, at + 1_500)):
        assert causes == {"module_load": 400, "host_compute": 490, "launch": 10}


def test_queries_do_not_load(each_explained: ExplainEach) -> None:
    queries = ["cuFuncGetAttribute", "cudaFuncGetAttributes_v3020", "cuModuleUnload"]
    for causes in each_explained(queries, lambda t, at, name: t.api(name, at + 1_300, at + 1_500)):
        assert causes == {"host_compute": 690, "launch": 210}


@pytest.mark.parametrize("kind", ["driver_jit", "module_load", "lazy_load"])
def test_loading_overheads_and_the_host_time_before_them(explained: Explain, kind: str) -> None:
    trace = one_gap().cuda_overhead(kind, 1_300, 1_500)
    assert explained(trace) == {"module_load": 400, "host_compute": 490, "launch": 10}


def test_the_host_time_before_the_last_of_several_loads_belongs_to_loading(explained: Explain) -> None:
    # whatever else the thread did there: a compiler wrote a file, memory was allocated
    trace = one_gap().api("cuModuleLoadData", 1_200, 1_250).os_call("write", 1_300, 1_400)
    trace.api("cudaMalloc_v3020", 1_400, 1_450).api("cuModuleLoadData", 1_500, 1_600)
    assert explained(trace) == {"module_load": 500, "host_compute": 390, "launch": 10}


def test_a_load_that_began_before_the_gap_has_no_host_time_before_it(explained: Explain) -> None:
    assert explained(one_gap().api("cuModuleLoadData", 900, 1_200))["module_load"] == 100


def test_loading_within_the_launch_part_has_no_host_time_before_it(explained: Explain) -> None:
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


def test_a_first_launch_of_1_ms_loads(explained: Explain) -> None:
    # the part of the call within the gap, and 10 us from its end to the kernel
    assert explained(launched_in(1_000)) == {"module_load": 950, "launch": 10}
    assert explained(launched_in(999.999)) == {"launch": 959.999}


def test_a_second_launch_of_the_kernel_does_not_load_however_long(explained: Explain) -> None:
    trace = launched_in(1_000, 5_000)
    assert explained(trace, 2_160) == {"launch": 4_960}


def test_every_process_loads_for_itself(measured: Measured) -> None:
    trace = launched_in(1_000)
    trace.on(pid=5, device=1).kernel(3_000, 3_100).kernel(5_000, 5_100, "slow", call=(3_090, 4_990))
    m = measured(trace)
    assert [totals(m, gpu)["module_load"] for gpu in (0, 1)] == [1_890, 950]  # by lowest process


ALLOCATIONS = [
    "cudaMalloc_v3020", "cudaMallocPitch_v3020", "cudaFree_v3020", "cudaHostAlloc_v3020", "cudaMallocHost_v3020",
    "cudaFreeHost_v3020", "cudaHostRegister_v4000", "cudaMallocManaged_v6000", "cuMemAlloc_v2", "cuMemFree_v2",
    "cuMemHostAlloc", "cuMemAllocManaged",
]  # fmt: skip


def test_allocation_is_time_in_the_call(each_explained: ExplainEach) -> None:
    for causes in each_explained(ALLOCATIONS, lambda t, at, name: t.api(name, at + 1_300, at + 1_500)):
        assert causes == {"allocation": 200, "host_compute": 690, "launch": 10}


def test_pool_calls_are_not_allocation(each_explained: ExplainEach) -> None:
    pool = ["cudaMallocAsync_v11020", "cudaFreeAsync_v11020", "cuMemAllocAsync"]
    for causes in each_explained(pool, lambda t, at, name: t.api(name, at + 1_300, at + 1_500)):
        assert causes == {"launch": 210, "host_compute": 690}


def test_allocation_in_the_launch_part_is_launching(explained: Explain) -> None:
    trace = one_gap(call=(1_500, 1_990)).api("cudaMalloc_v3020", 1_600, 1_700)
    assert explained(trace) == {"host_compute": 400, "launch": 500}


def test_communication_of_the_host(explained: Explain) -> None:
    trace = one_gap().mpi("MPI_Allreduce", 1_200, 1_400).os_call("poll", 1_250, 1_350).ucx("ucp_wait", 1_500, 1_550)
    assert explained(trace) == {"host_communication": 250, "host_compute": 640, "launch": 10}


def test_communication_of_the_host_where_it_is_an_nvtx_domain(explained: Explain) -> None:
    trace = TraceBuilder("2022.4.2").kernel(1_000, 1_100).kernel(2_000, 2_100).mpi("MPI_Wait", 1_200, 1_400)
    assert explained(trace)["host_communication"] == 200


def test_inside_a_range_that_says_data_loading(explained: Explain) -> None:
    # blocked or not, since a range is more precise than what the OS says
    trace = one_gap().range("next batch", 1_200, 1_700).os_call("futex", 1_300, 1_400)
    assert explained(trace) == {"input_pipeline": 500, "host_compute": 390, "launch": 10}


@pytest.mark.parametrize(("kernels", "loads"), [(2, True), (3, False)])
def test_a_range_in_which_the_thread_launches_three_kernels_loads_no_data(
    explained: Explain, kernels: int, loads: bool
) -> None:
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


def test_waiting_or_reading_before_an_input_copy(measured: Measured) -> None:
    # and T on the CPU before one: all of the host part
    trace = with_inputs(len(READS))
    for number, name in enumerate(READS):
        trace.os_call(name, 3_000 * number + 1_200, 3_000 * number + 1_700)
    assert totals(measured(trace))["input_pipeline"] == 890 * len(READS)


def test_blocked_in_another_way_before_an_input_copy(measured: Measured) -> None:
    names = ["write", "fsync", "send", "usleep", "pthread_mutex_lock"]
    trace = with_inputs(len(names))
    for number, name in enumerate(names):
        trace.os_call(name, 3_000 * number + 1_200, 3_000 * number + 1_700)
    found = totals(measured(trace))
    assert (found["host_blocked"], found["input_pipeline"]) == (500 * len(names), 390 * len(names))


def test_blocked_before_anything_else(each_explained: ExplainEach) -> None:
    names = [*READS, "write", "fsync", "usleep"]
    for causes in each_explained(names, lambda t, at, name: t.os_call(name, at + 1_200, at + 1_700)):
        assert causes == {"host_blocked": 500, "host_compute": 390, "launch": 10}


def test_what_the_os_does_inside_a_cuda_call_is_the_call(explained: Explain) -> None:
    trace = one_gap().api("cudaEventRecord_v3020", 1_200, 1_700).os_call("poll", 1_300, 1_600)
    assert explained(trace) == {"launch": 510, "host_compute": 390}
    before_input = with_inputs().api("cudaEventRecord_v3020", 1_200, 1_700).os_call("poll", 1_300, 1_600)
    assert explained(before_input) == {"launch": 510, "input_pipeline": 390}


# --- input copies -----------------------------------------------------------------------------------------------

INPUT, NO_INPUT = {"input_pipeline": 890, "launch": 10}, PLAIN


@pytest.mark.parametrize(("count", "expected"), [(3, INPUT), (2, NO_INPUT)])
def test_an_input_copy_recurs_three_times(explained: Explain, count: int, expected: Causes) -> None:
    assert explained(with_inputs(count)) == expected


@pytest.mark.parametrize(("size", "expected"), [(65_536, INPUT), (65_535, NO_INPUT)])
def test_an_input_copy_has_64_kib(explained: Explain, size: int, expected: Causes) -> None:
    assert explained(with_inputs(size=size)) == expected


@pytest.mark.parametrize("kind", ["device_to_host", "device_to_device", "peer_to_peer"])
def test_other_copies_are_no_input(explained: Explain, kind: str) -> None:
    assert explained(with_inputs(kind=kind)) == NO_INPUT


@pytest.mark.parametrize("third", [{"bytes_": 65_537}, {"stream": 8}, {"context": 2}])
def test_copies_of_one_size_on_one_stream_recur(explained: Explain, third: dict[str, Any]) -> None:
    trace = with_inputs(2).kernel(7_000, 7_100)
    trace.copy(8_000, 8_100, **{"bytes_": 65_536, **third})
    assert explained(trace) == NO_INPUT


def test_copies_of_two_processes_on_one_gpu_are_on_two_streams(explained: Explain) -> None:
    # both call their stream 7; known to share the GPU
    trace = with_inputs(2)
    trace.on(pid=5).kernel(7_000, 7_100).copy(8_000, 8_100, bytes_=65_536)
    assert explained(trace) == NO_INPUT


def test_copies_that_follow_one_another_are_weights_not_input(explained: Explain) -> None:
    # three copies in a row: only the first comes after kernel work
    trace = TraceBuilder().kernel(1_000, 1_100)
    for number in range(3):
        trace.copy(2_000 + 200 * number, 2_100 + 200 * number, bytes_=65_536)
    assert explained(trace) == NO_INPUT


def test_a_small_copy_between_two_makes_them_come_after_other_work(explained: Explain) -> None:
    trace = TraceBuilder().kernel(1_000, 1_100)
    for number in range(3):
        at = 2_000 + 400 * number
        trace.copy(at, at + 100, bytes_=65_536).copy(at + 200, at + 210, bytes_=64, stream=9)
    assert explained(trace) == INPUT


def test_the_next_batch_after_a_checkpoint_is_no_input(explained: Explain) -> None:
    # a device-to-host copy of 1 MiB ends last before the third batch's gap, [8100, 9000)
    trace = with_inputs(2).copy(7_000, 8_100, "device_to_host", bytes_=1 << 20, stream=9)
    trace.copy(9_000, 9_100, bytes_=65_536)
    assert explained(trace, 1_100) == INPUT
    assert explained(trace, 8_100) == NO_INPUT


def test_a_smaller_copy_to_the_host_is_no_checkpoint(explained: Explain) -> None:
    trace = with_inputs(2).copy(7_000, 8_100, "device_to_host", bytes_=(1 << 20) - 1, stream=9)
    assert explained(trace.copy(9_000, 9_100, bytes_=65_536), 8_100) == INPUT


def test_copies_recur_in_the_window(explained: Explain) -> None:
    # of three, two start in the window
    trace = with_inputs(3)
    assert explained(trace, 4_100, window="0.004:0.009") == NO_INPUT
    assert explained(trace, 4_100, window="0.000:0.009") == INPUT


# --- step 6: what waits cost ------------------------------------------------------------------------------------

WAIT = "cudaStreamSynchronize_v3020"


def test_a_gap_opened_by_a_wait_costs_at_most_the_waits_length_up_to_it(explained: Explain) -> None:
    # W = 1100 - 800 = 300: the first 300 us of the gap, the 5 in which the call still runs among them
    assert explained(one_gap().wait(WAIT, 800, 1_105)) == {"host_sync": 300, "host_compute": 590, "launch": 10}


def test_a_longer_wait_takes_all_of_the_gap(explained: Explain) -> None:
    # W = 1000; host part and launch part
    assert explained(one_gap().wait(WAIT, 100, 1_105)) == {"host_sync": 900}


def test_a_wait_takes_from_what_is_left(explained: Explain) -> None:
    # cudaMalloc has [1200, 1300): W = 300 reaches from 1100 to 1500 around it
    trace = one_gap().wait(WAIT, 800, 1_105).api("cudaMalloc_v3020", 1_200, 1_300).os_call("write", 1_600, 1_700)
    assert explained(trace) == {"allocation": 100, "host_sync": 300, "host_blocked": 100, "host_compute": 390, "launch": 10}
    # the calls' own 5 us lie within its share; without the write the last part of the gap would be the same


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (800, 1_100, {"host_sync": 300, "host_compute": 590, "launch": 10}),  # ended as the GPU ran dry
        (800, 1_099.999, PLAIN),  # had ended before
        (1_100, 1_110, {"host_sync": 10, "host_compute": 880, "launch": 10}),  # began as it ran dry: W is 0
    ],
)
def test_a_wait_opens_a_gap_if_it_was_waiting_when_the_gpu_ran_dry(
    explained: Explain, start: float, end: float, expected: Causes
) -> None:
    assert explained(one_gap().wait(WAIT, start, end)) == expected


WAITS = [
    "cudaDeviceSynchronize_v3020", "cudaStreamSynchronize_ptsz_v7000", "cudaEventSynchronize_v3020", "cudaThreadSynchronize_v3020",
    "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize", "cudaMemcpy_v3020", "cuMemcpyDtoH_v2", "cudaMemset_v3020",
]  # fmt: skip


def test_calls_that_wait_by_their_name(each_explained: ExplainEach) -> None:
    for causes in each_explained(WAITS, lambda t, at, name: t.api(name, at + 800, at + 1_105)):
        assert causes == {"host_sync": 300, "host_compute": 590, "launch": 10}


def test_calls_that_do_not_wait(each_explained: ExplainEach) -> None:
    others = ["cudaMemcpyAsync_v3020", "cudaStreamWaitEvent_v3020", "cudaEventQuery_v3020", "cudaMemsetAsync_v3020"]
    for causes in each_explained(others, lambda t, at, name: t.api(name, at + 800, at + 1_105)):
        assert causes == {"launch": 15, "host_compute": 885}


@pytest.mark.parametrize(
    ("pinned", "returns", "waits"),
    [(False, 1_100, True), (False, 1_099.999, False), (True, 1_105, False), (None, 1_105, False)],
)
def test_an_asynchronous_copy_of_pageable_memory_that_did_block_waits(
    explained: Explain, pinned: bool | None, returns: float, waits: bool
) -> None:
    trace = TraceBuilder().kernel(700, 900).kernel(2_000, 2_100)
    trace.copy(900, 1_100, "device_to_host", bytes_=64, pinned=pinned, call=(800, returns))
    assert explained(trace).get("host_sync", 0) == (300 if waits else 0)


def test_the_launch_itself_is_no_wait_that_opens_its_gap(explained: Explain) -> None:
    # a blocking copy that was called before the GPU ran dry, with its driver twin
    trace = TraceBuilder().kernel(1_000, 1_100)
    trace.copy(2_000, 2_100, bytes_=64, launch="cudaMemcpy_v3020", call=(1_090, 2_150)).api("cuMemcpyHtoD_v2", 1_095, 2_145)
    assert explained(trace) == {"launch": 900}


def test_a_wait_around_the_launch_call_is_another_one(explained: Explain) -> None:
    trace = TraceBuilder().kernel(1_000, 1_100)
    trace.copy(2_000, 2_100, bytes_=64, launch="cuMemcpyHtoD_v2", call=(1_990, 2_145)).api("cudaMemcpy_v3020", 1_050, 2_150)
    # W = 50, and all the rest of the gap inside it
    assert explained(trace) == {"host_sync": 900}


def test_a_wait_that_begins_as_the_gpu_runs_dry_does_not_hide_the_one_before(explained: Explain) -> None:
    trace = one_gap().wait(WAIT, 800, 1_100).wait(WAIT, 1_100, 1_500)
    # W = 300, and 100 us more inside the second wait
    assert explained(trace) == {"host_sync": 400, "host_compute": 490, "launch": 10}


def test_of_nested_waits_the_outer_one_counts(explained: Explain) -> None:
    trace = one_gap().api("cudaMemcpy_v3020", 800, 1_105).api("cuStreamSynchronize", 1_050, 1_104)
    assert explained(trace)["host_sync"] == 300


def test_a_wait_of_another_thread_opens_nothing(explained: Explain) -> None:
    assert explained(one_gap().wait(WAIT, 800, 1_500, tid=WORKER)) == PLAIN


def test_time_inside_a_wait_within_the_gap(explained: Explain) -> None:
    trace = one_gap().wait("cudaEventSynchronize_v3020", 1_300, 1_500)
    assert explained(trace) == {"host_sync": 200, "host_compute": 690, "launch": 10}


def test_time_inside_a_wait_after_the_launch_call(explained: Explain) -> None:
    # launched at 1500, waited for from 1600 on, started at 2000
    trace = one_gap(call=(1_500, 1_505)).wait(WAIT, 1_600, 2_150)
    assert explained(trace) == {"host_compute": 400, "launch": 100, "host_sync": 400}


def test_time_inside_a_wait_after_a_launch_call_that_waits_itself(explained: Explain) -> None:
    # the blocking copy returns at 1700, before its copy starts; then the thread waits
    trace = TraceBuilder().kernel(1_000, 1_100)
    trace.copy(2_000, 2_100, bytes_=64, launch="cudaMemcpy_v3020", call=(1_500, 1_700)).wait(WAIT, 1_800, 2_150)
    assert explained(trace) == {"host_compute": 400, "launch": 300, "host_sync": 200}


@pytest.mark.parametrize(("size", "opens"), [(1 << 20, False), ((1 << 20) - 1, True)])
def test_a_wait_for_results_opens_no_gap(explained: Explain, size: int, opens: bool) -> None:
    # a device-to-host copy ends as the GPU runs dry
    trace = one_gap().copy(1_050, 1_100, "device_to_host", bytes_=size, stream=9).wait(WAIT, 800, 1_105)
    # the 5 us inside the call are host_sync all the same
    expected = {"host_sync": 300 if opens else 5, "host_compute": 590 if opens else 885, "launch": 10}
    assert explained(trace) == expected


def test_a_copy_of_results_that_has_no_length_changes_nothing(explained: Explain) -> None:
    trace = one_gap().copy(1_100, 1_100, "device_to_host", bytes_=1 << 20, stream=9).wait(WAIT, 800, 1_105)
    assert explained(trace)["host_sync"] == 300


def test_a_wait_that_opens_several_gaps_counts_once(explained: Explain) -> None:
    # kernels of another thread run while it waits: gaps [1100, 1120) and [1500, 2000)
    trace = one_gap().kernel(1_120, 1_500, stream=9, tid=WORKER, call=(1_095, 1_097)).wait(WAIT, 1_000, 1_505)
    trace.os_call("write", 1_100, 1_101, tid=WORKER)
    # launched by the worker, which does not wait: the first gap is its launch part
    assert explained(trace, 1_100) == {"launch": 20}
    # W = 500 at the second gap, which lasts 500 with 490 of host part
    assert explained(trace, 1_500) == {"host_sync": 500}


def test_what_one_gap_took_of_a_wait_is_gone_for_the_next(explained: Explain) -> None:
    # the worker launched both kernels that run during the wait of the main thread, of which nothing else is known
    trace = TraceBuilder().kernel(1_000, 1_100).wait(WAIT, 1_050, 1_605)
    trace.kernel(1_300, 1_400, call=(1_045, 1_049.999))
    trace.kernel(2_600, 2_700)
    # gap [1100, 1300): launched 50 us before it is queued at a latency of 10 us, takes nothing
    assert explained(trace, 1_100) == {"queued": 200}
    # gap [1400, 2600): W = 350 up to 1400, then the 205 us that the call goes on are within it
    assert explained(trace, 1_400) == {"host_sync": 350, "host_compute": 840, "launch": 10}


def steps_of(rounds: int, *, ranges: bool, wait: tuple[float, float] = (200, 1_005)) -> TraceBuilder:
    """Rounds of 10 ms. A kernel [0, 1000) whose wait began at 200 is followed by a gap of 300; a kernel
    [1300, 2300) whose wait began at 2200 by a gap of 1700; a kernel [4000, 9000) that nobody waits for."""
    trace = TraceBuilder()
    for number in range(rounds):
        at = 10_000.0 * number + 10_000
        trace.kernel(at, at + 1_000).wait(WAIT, at + wait[0], at + wait[1])
        trace.kernel(at + 1_300, at + 2_300).wait(WAIT, at + 2_200, at + 2_305)
        trace.kernel(at + 4_000, at + 9_000)
        if ranges:
            trace.range(f"step {number}", at - 20, at + 9_500)
    return trace


def test_what_is_left_of_a_wait_counts_for_later_gaps_of_its_step(explained: Explain) -> None:
    trace = steps_of(4, ranges=True)
    # W = 800, the gap takes its 300: 500 are left
    assert explained(trace, 11_000) == {"host_sync": 300}
    # 500 and the 100 of its own wait
    assert explained(trace, 12_300) == {"host_sync": 600, "host_compute": 1_090, "launch": 10}
    # no wait opens the last gap of the step, [19000, 20000)
    assert explained(trace, 19_000) == {"host_compute": 990, "launch": 10}


def test_nothing_is_carried_into_the_next_step(explained: Explain) -> None:
    # in the first step nothing is left to carry, since the first gap takes all of its wait
    trace = steps_of(4, ranges=True, wait=(200, 1_005))
    assert explained(trace, 21_000) == explained(trace, 11_000)
    assert explained(trace, 22_300) == explained(trace, 12_300)


def test_without_steps_nothing_is_carried(explained: Explain) -> None:
    trace = steps_of(2, ranges=False)
    assert explained(trace, 11_000) == {"host_sync": 300}
    assert explained(trace, 12_300) == {"host_sync": 100, "host_compute": 1_590, "launch": 10}


def test_a_wait_across_two_steps_counts_once(explained: Explain) -> None:
    trace = TraceBuilder()
    for number in range(4):
        trace.range(f"step {number}", 10_000 * number + 10_000, 10_000 * number + 19_000)
    for at in (10_000, 20_000, 30_000):
        trace.kernel(at + 1_000, at + 2_000).wait(WAIT, at + 1_100, at + 2_005).kernel(at + 8_000, at + 9_800)
    # the main thread waits from the third step into the fourth; a worker of which nothing else is known launches
    trace.wait(WAIT, 38_100, 40_805).kernel(40_200, 40_800, tid=WORKER).kernel(43_000, 49_800)
    # W = 1700 up to 39800: 1300 are left, for the third step
    assert explained(trace, 39_800) == {"host_sync": 400}
    # of W = 2700 up to 40800 all but 1000 have counted
    assert explained(trace, 40_800) == {"host_sync": 1_000, "host_compute": 1_190, "launch": 10}


def test_waits_are_carried_for_each_gpu(explained: Explain) -> None:
    # one wait opens gaps on two GPUs of a process: each has its own time to lose
    trace = TraceBuilder(gpus=("H100", "H100")).wait(WAIT, 800, 1_105)
    for device in (0, 1):
        trace.kernel(1_000, 1_100, device=device, context=device + 1).kernel(2_000, 2_100, device=device, context=device + 1)
    for gpu in (0, 1):
        assert explained(trace, gpu=gpu)["host_sync"] == 300


def test_the_window_does_not_change_what_a_wait_costs(explained: Explain) -> None:
    trace = one_gap().wait(WAIT, 800, 1_105)
    # host_sync is [1100, 1400), of which the window has the last 100 us
    assert explained(trace, window="0.0013:0.0021") == {"host_sync": 100, "host_compute": 590, "launch": 10}


# --- steps 7 and 8 ----------------------------------------------------------------------------------------------


def test_the_rest_of_the_launch_part_is_launch(explained: Explain) -> None:
    # the call, and the way from its end to the kernel
    assert explained(one_gap(call=(1_500, 1_600))) == {"host_compute": 400, "launch": 500}


def test_a_launch_that_began_before_the_gap_is_all_launch(explained: Explain) -> None:
    assert explained(one_gap(call=(1_050, 1_950))) == {"launch": 900}


def test_any_other_cuda_call_is_launch(explained: Explain) -> None:
    trace = one_gap().api("cudaEventRecord_v3020", 1_200, 1_400)
    assert explained(trace) == {"launch": 210, "host_compute": 690}


@pytest.mark.parametrize("launch", ["cudaLaunchKernel_v7000", "cuLaunchKernelEx", "cudaLaunchCooperativeKernel_v9000"])
@pytest.mark.parametrize(("last", "dispatch"), [(1_890.001, 99.999), (1_890, 0)])
def test_less_than_100_us_on_the_cpu_before_a_launch_call_is_dispatch(
    explained: Explain, launch: str, last: float, dispatch: float
) -> None:
    trace = one_gap(launch=launch).api("cudaEventRecord_v3020", 1_800, last)
    record = last - 1_800
    expected = {"launch": round(10 + record + dispatch, 3), "host_compute": round(890 - record - dispatch, 3)}
    assert explained(trace) == expected


def test_an_os_row_ends_the_stretch_as_a_call_does(explained: Explain) -> None:
    trace = one_gap().os_call("write", 1_800, 1_950)
    assert explained(trace) == {"host_compute": 700, "host_blocked": 150, "launch": 50}


def test_the_whole_stretch_counts_also_where_it_began_before_the_gap(explained: Explain) -> None:
    # the first kernel's call ends at 995: 105 us to a launch at 1100.001 are too long although 1 ns lies in the gap
    short = TraceBuilder().kernel(1_000, 1_050).kernel(1_100, 1_200, call=(1_094.999, 1_099))
    assert explained(short, 1_050) == {"launch": 50}
    long = TraceBuilder().kernel(1_000, 1_050).kernel(1_101, 1_200, call=(1_095, 1_099))
    assert explained(long, 1_050) == {"host_compute": 45, "launch": 6}


def test_before_a_copy_call_nothing_is_dispatched(explained: Explain) -> None:
    # 50 us on the CPU up to a copy's call: the host's own
    trace = TraceBuilder().kernel(1_000, 1_100).api("cudaEventRecord_v3020", 1_800, 1_940)
    trace.copy(2_000, 2_100, bytes_=64)
    assert explained(trace) == {"host_compute": 700 + 50, "launch": 150}


def test_dispatch_before_a_graph_launch_and_before_launches_of_other_work(explained: Explain) -> None:
    # a launch in the gap of a kernel for later: the 60 us before it, too
    trace = one_gap().os_call("write", 1_300, 1_340).kernel(2_200, 2_300, call=(1_400, 1_405))
    assert explained(trace) == {"host_blocked": 40, "launch": 60 + 5 + 10, "host_compute": 200 + 585}
    graph = TraceBuilder("2025.5.2").kernel(1_000, 1_100).os_call("write", 1_300, 1_940).graph(2_000, 2_100)
    assert explained(graph) == {"host_compute": 200, "host_blocked": 640, "launch": 60}


def test_a_row_that_begins_with_the_launch_call_does_not_come_before_it(explained: Explain) -> None:
    # the driver's call nested in the launch call starts in the same nanosecond
    trace = one_gap().os_call("write", 1_300, 1_940).api("cuCtxGetCurrent", 1_990, 1_991).os_call("ioctl", 1_990, 1_990)
    assert explained(trace) == {"host_compute": 200, "host_blocked": 640, "launch": 60}


def test_what_is_left_is_the_hosts_own_work(explained: Explain) -> None:
    assert explained(one_gap()) == PLAIN
    assert explained(one_gap().range("train", 900, 2_100)) == PLAIN


def test_a_launch_after_its_work_began_leaves_a_host_part_alone(explained: Explain) -> None:
    # 1 of 40 launches: no clock fault
    trace = one_gap(call=(2_010, 2_015))
    for number in range(39):
        trace.kernel(3_000 + number * 100, 3_090 + number * 100)
    assert explained(trace) == {"host_compute": 900}


# --- windows and the list of causes -----------------------------------------------------------------------------


def test_gaps_are_explained_as_wholes_then_cut(explained: Explain) -> None:
    # the load lies after the window's end; the host time before it is loading all the same
    trace = one_gap().api("cuModuleLoadData", 1_800, 1_900)
    assert explained(trace, window="0.001:0.0015") == {"module_load": 400}


def test_idle_time_at_the_edges_of_a_window_counts_within_the_gpus_own_span(measured: Measured) -> None:
    m = measured(one_gap(), "0:0.0015")
    assert totals(m) == {"compute": 100, "host_compute": 400}


def test_causes_are_listed_in_the_order_of_the_definition() -> None:
    listed = (
        "compute graph communication copy memset launch host_sync input_pipeline host_blocked host_compute"
        " host_communication allocation module_load unified_memory queued profiler unknown"
    )
    assert list(CAUSES) == listed.split()
    assert list(BUSY_CAUSES) == listed.split()[:5]
