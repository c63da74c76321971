"""The time ledger, one small trace for each sentence of its definition: busy time, gaps, steps 1 to 4, 7 and 8.

The traces are explained in `explaining.py`. Times are microseconds.
"""

from collections.abc import Callable
from typing import Any

import pytest

from nsys_triage.result.model import BUSY_CAUSES, CAUSES
from tests.builders.trace import ALL_REDUCE, TraceBuilder
from tests.metrics.explaining import PLAIN, WORKER, each_explained, explained, measured, one_gap, totals

# --- busy time --------------------------------------------------------------------------------------------------


def test_busy_time_goes_to_the_first_class_present() -> None:
    trace = TraceBuilder("2025.5.2")
    trace.memset(1_000, 1_100).copy(1_010, 1_090, stream=8).kernel(1_020, 1_080, ALL_REDUCE, stream=9)
    trace.graph(1_030, 1_070, stream=10).kernel(1_040, 1_060, stream=11)
    # each of them shows for 10 us on either side of the next one, the kernel for its 20 us
    expected = {"memset": 20, "copy": 20, "communication": 20, "graph": 20, "compute": 20}
    assert totals(measured(trace)) == expected


def test_communication_is_what_nothing_computes_meanwhile() -> None:
    trace = TraceBuilder().kernel(1_000, 1_060).kernel(1_040, 1_100, ALL_REDUCE, stream=20)
    assert totals(measured(trace)) == {"compute": 60, "communication": 40}


def test_entries_sum_to_the_span_whatever_overlaps() -> None:
    trace = one_gap().kernel(1_050, 1_300, stream=9).kernel(1_700, 1_900, stream=9)
    found = totals(measured(trace))
    assert sum(found.values()) == 1_100
    assert found["compute"] == 300 + 200 + 100


# --- gaps, and what ends them -----------------------------------------------------------------------------------


def test_work_of_no_length_neither_ends_nor_splits_a_gap() -> None:
    trace = one_gap().kernel(1_500, 1_500).copy(2_000, 2_000, call=(1_200, 1_850), stream=3)
    # were the copy what ends the gap, all from 1200 on would be the launch part; the kernel's call lies in its call
    assert explained(trace) == {"host_compute": 100 + 140, "launch": 650 + 10}


@pytest.mark.parametrize(
    ("other", "ends_it"),
    [
        ({"call": (1_980, 1_985)}, True),  # launched first
        ({"call": (1_991, 1_996)}, False),
        (
            {"call": (1_990, 1_995), "stream": 6},
            True,
        ),  # launched together: the lowest stream, which is 7 else
        ({"call": (1_990, 1_995), "stream": 8}, False),
        ({"call": (1_990, 1_995), "correlation": 1}, True),  # same stream: the lowest id, which is 50 else
        ({"call": (1_990, 1_995), "correlation": 99}, False),
        ({"launch": None}, False),  # not known when it was launched
    ],
)
def test_of_several_operations_the_one_launched_first_ends_the_gap(
    other: dict[str, Any], ends_it: bool
) -> None:
    # whose thread explains the gap: the other one's was blocked since 1200, up to 10 us before the kernels start
    trace = TraceBuilder().kernel(1_000, 1_100, correlation=49).kernel(2_000, 2_100, correlation=50)
    trace.on(tid=WORKER).kernel(2_000, 2_100, "other", **other).os_call("write", 1_200, 1_980)
    blocked = explained(trace).get("host_blocked", 0)
    assert (blocked > 0) == ends_it


def test_only_the_launching_thread_explains_a_gap() -> None:
    trace = (
        one_gap().os_call("write", 1_200, 1_900, tid=WORKER).api("cudaMalloc_v3020", 1_200, 1_900, tid=WORKER)
    )
    assert explained(trace) == PLAIN


# --- latency, and steps 1 to 4 ----------------------------------------------------------------------------------


def test_work_launched_10_us_before_the_gap_was_queued() -> None:
    assert explained(one_gap(call=(1_000, 1_090))) == {"queued": 900}


def test_work_launched_later_was_not() -> None:
    assert explained(one_gap(call=(1_000, 1_090.001))) == {"launch": 900}


def twenty_gaps(count: int = 20) -> TraceBuilder:
    """Gaps whose launch calls end 3, 6, 9 ... us before the work starts, and one whose call ends 13 us before it."""
    trace = TraceBuilder().kernel(0, 100)
    for number in range(1, count + 1):
        start = number * 1_000
        trace.kernel(start, start + 100, call=(start - 100, start - 3 * number))
    last = (count + 1) * 1_000
    return trace.kernel(last, last + 100, call=(last - 900 - 20, last - 900 - 13))


def test_latency_is_the_lower_median_of_what_was_launched_in_its_gap() -> None:
    # 3, 6 ... 60 us: the tenth of twenty is 30 us; the last gap's call begins before it and does not count
    m = measured(twenty_gaps())
    assert m.gaps.latency_ns == 30_000
    assert totals(m).get("queued", 0) == 0  # 13 us before the gap is too late


def test_latency_is_10_us_where_there_are_fewer_than_20() -> None:
    trace = twenty_gaps(19)
    assert measured(trace).gaps.latency_ns == 10_000
    assert explained(trace, 19_100) == {"queued": 900}


def test_latency_is_0_where_the_work_starts_first() -> None:
    trace = TraceBuilder().kernel(0, 100)
    for number in range(1, 21):
        trace.kernel(number * 1_000, number * 1_000 + 100, call=(number * 1_000 - 5, number * 1_000 + 5))
    assert measured(trace).gaps.latency_ns == 0


@pytest.mark.parametrize("kind", ["buffer_flush", "instrumentation", "resource"])
def test_profiler_overhead_on_the_thread_comes_first(kind: str) -> None:
    trace = one_gap().cuda_overhead(kind, 1_050, 1_400).api("cuModuleLoadData", 1_200, 1_500)
    # of the 300 us of loading 200 are the profiler's
    assert explained(trace) == {"profiler": 300, "module_load": 100, "host_compute": 490, "launch": 10}


PROFILER_NAMES = [
    "CUPTI Buffer flush", "Data flush", "CUDA profiling initialization", "Instrumentation", "Resource creation",
    "Chunk Allocation", "TLS Allocation",
]  # fmt: skip


def test_where_no_type_is_recorded_the_name_says_profiler() -> None:
    for causes in each_explained(
        PROFILER_NAMES, lambda t, at, name: t.profiler_overhead(name, at + 1_200, at + 1_300)
    ):
        assert causes == {"profiler": 100, "host_compute": 790, "launch": 10}


def test_other_overheads_and_those_of_other_threads_are_not_the_profilers() -> None:
    trace = (
        one_gap().cuda_overhead("command_buffer_full", 1_200, 1_300).profiler_overhead("Other", 1_400, 1_500)
    )
    trace.cuda_overhead("buffer_flush", 1_200, 1_900, tid=WORKER)
    assert explained(trace) == PLAIN


def test_profiler_overhead_takes_its_part_of_queued_and_unexplained_gaps() -> None:
    queued = one_gap(call=(1_000, 1_050)).cuda_overhead("buffer_flush", 1_200, 1_300)
    assert explained(queued) == {"profiler": 100, "queued": 800}
    graphs = one_gap().cuda_overhead("buffer_flush", 1_200, 1_300).api("cudaGraphLaunch_v10000", 1_500, 1_600)
    assert explained(graphs) == {"profiler": 100, "unknown": 800}


@pytest.mark.parametrize("kind", ["host_to_device", "device_to_host", "device_to_device"])
def test_a_gap_that_ends_with_a_migration_is_unified_memory(kind: str) -> None:
    trace = TraceBuilder().kernel(1_000, 1_100).migration(2_000, 2_100, kind).os_call("write", 1_200, 1_300)
    assert explained(trace) == {"unified_memory": 900}


def test_a_gap_whose_launch_is_not_known_is_unknown() -> None:
    trace = one_gap(launch=None).os_call("write", 1_200, 1_300)
    assert explained(trace) == {"unknown": 900}


@pytest.mark.parametrize(("early", "faulty"), [(1, False), (2, True)])
def test_more_than_one_start_in_twenty_before_its_launch_is_a_clock_fault(early: int, faulty: bool) -> None:
    trace = TraceBuilder()
    for number in range(20):
        start = number * 1_000
        trace.kernel(start, start + 100, call=(start + 1, start + 5) if number < early else None)
    m = measured(trace)
    assert m.gaps.clock_fault == faulty
    # 19 gaps of 900 us; a gap whose work starts before its launch has no launch part
    expected = {"unknown": 17_100} if faulty else {"host_compute": 19 * 890, "launch": 190}
    assert totals(m) == {"compute": 2_000, **expected}


def test_where_graphs_run_unseen_idle_is_not_idle() -> None:
    trace = one_gap().api("cudaGraphLaunch_v10000", 1_200, 1_210)
    assert explained(trace) == {"unknown": 900}


@pytest.mark.parametrize(
    "seen",
    [
        lambda t: t.graph(2_200, 2_300, call=(1_200, 1_210)),
        lambda t: t.graph_nodes([(2_200, 2_300)], call=(1_200, 1_210)),
    ],
)
def test_graphs_that_are_recorded_hide_nothing(seen: Callable[[TraceBuilder], TraceBuilder]) -> None:
    # the graph's launch call is a CUDA call of 10 us, the 100 us before it are too long for a dispatch
    assert explained(seen(one_gap())) == {"host_compute": 880, "launch": 20}


def test_graphs_unseen_in_one_process_say_nothing_of_another() -> None:
    # the other process' graph is recorded; its launch call takes 10 us
    trace = one_gap().graph_nodes([(2_200, 2_300)], call=(1_200, 1_210))
    other = trace.on(pid=5, device=1).kernel(1_000, 1_100).kernel(2_000, 2_100)
    other.api("cudaGraphLaunch_v10000", 1_200, 1_210)
    assert explained(trace, gpu=0) == {"unknown": 900}  # GPUs count by lowest process
    assert explained(trace, gpu=1) == {"host_compute": 880, "launch": 20}


# --- steps 7 and 8 ----------------------------------------------------------------------------------------------


def test_the_rest_of_the_launch_part_is_launch() -> None:
    # the call, and the way from its end to the kernel
    assert explained(one_gap(call=(1_500, 1_600))) == {"host_compute": 400, "launch": 500}


def test_a_launch_that_began_before_the_gap_is_all_launch() -> None:
    assert explained(one_gap(call=(1_050, 1_950))) == {"launch": 900}


def test_any_other_cuda_call_is_launch() -> None:
    trace = one_gap().api("cudaEventRecord_v3020", 1_200, 1_400)
    assert explained(trace) == {"launch": 210, "host_compute": 690}


@pytest.mark.parametrize(
    "launch", ["cudaLaunchKernel_v7000", "cuLaunchKernelEx", "cudaLaunchCooperativeKernel_v9000"]
)
@pytest.mark.parametrize(("last", "dispatch"), [(1_890.001, 99.999), (1_890, 0)])
def test_less_than_100_us_on_the_cpu_before_a_launch_call_is_dispatch(
    launch: str, last: float, dispatch: float
) -> None:
    trace = one_gap(launch=launch).api("cudaEventRecord_v3020", 1_800, last)
    record = last - 1_800
    expected = {"launch": round(10 + record + dispatch, 3), "host_compute": round(890 - record - dispatch, 3)}
    assert explained(trace) == expected


def test_an_os_row_ends_the_stretch_as_a_call_does() -> None:
    trace = one_gap().os_call("write", 1_800, 1_950)
    assert explained(trace) == {"host_compute": 700, "host_blocked": 150, "launch": 50}


def test_the_whole_stretch_counts_also_where_it_began_before_the_gap() -> None:
    # the first kernel's call ends at 995: 105 us to a launch at 1100.001 are too long although 1 ns lies in the gap
    short = TraceBuilder().kernel(1_000, 1_050).kernel(1_100, 1_200, call=(1_094.999, 1_099))
    assert explained(short, 1_050) == {"launch": 50}
    long = TraceBuilder().kernel(1_000, 1_050).kernel(1_101, 1_200, call=(1_095, 1_099))
    assert explained(long, 1_050) == {"host_compute": 45, "launch": 6}


def test_before_a_copy_call_nothing_is_dispatched() -> None:
    # 50 us on the CPU up to a copy's call: the host's own
    trace = TraceBuilder().kernel(1_000, 1_100).api("cudaEventRecord_v3020", 1_800, 1_940)
    trace.copy(2_000, 2_100, bytes_=64)
    assert explained(trace) == {"host_compute": 700 + 50, "launch": 150}


def test_dispatch_before_a_graph_launch_and_before_launches_of_other_work() -> None:
    # a launch in the gap of a kernel for later: the 60 us before it, too
    trace = one_gap().os_call("write", 1_300, 1_340).kernel(2_200, 2_300, call=(1_400, 1_405))
    assert explained(trace) == {"host_blocked": 40, "launch": 60 + 5 + 10, "host_compute": 200 + 585}
    graph = TraceBuilder("2025.5.2").kernel(1_000, 1_100).os_call("write", 1_300, 1_940).graph(2_000, 2_100)
    assert explained(graph) == {"host_compute": 200, "host_blocked": 640, "launch": 60}


def test_a_row_that_begins_with_the_launch_call_does_not_come_before_it() -> None:
    # the driver's call nested in the launch call starts in the same nanosecond
    trace = (
        one_gap()
        .os_call("write", 1_300, 1_940)
        .api("cuCtxGetCurrent", 1_990, 1_991)
        .os_call("ioctl", 1_990, 1_990)
    )
    assert explained(trace) == {"host_compute": 200, "host_blocked": 640, "launch": 60}


def test_what_is_left_is_the_hosts_own_work() -> None:
    assert explained(one_gap()) == PLAIN
    assert explained(one_gap().range("train", 900, 2_100)) == PLAIN


def test_a_launch_after_its_work_began_leaves_a_host_part_alone() -> None:
    # 1 of 40 launches: no clock fault
    trace = one_gap(call=(2_010, 2_015))
    for number in range(39):
        trace.kernel(3_000 + number * 100, 3_090 + number * 100)
    assert explained(trace) == {"host_compute": 900}


# --- windows and the list of causes -----------------------------------------------------------------------------


def test_gaps_are_explained_as_wholes_then_cut() -> None:
    # the load lies after the window's end; the host time before it is loading all the same
    trace = one_gap().api("cuModuleLoadData", 1_800, 1_900)
    assert explained(trace, window="0.001:0.0015") == {"module_load": 400}


def test_idle_time_at_the_edges_of_a_window_counts_within_the_gpus_own_span() -> None:
    m = measured(one_gap(), "0:0.0015")
    assert totals(m) == {"compute": 100, "host_compute": 400}


def test_causes_are_listed_in_the_order_of_the_definition() -> None:
    listed = (
        "compute graph communication copy memset launch host_sync input_pipeline host_blocked host_compute"
        " host_communication allocation module_load unified_memory queued profiler unknown"
    )
    assert list(CAUSES) == listed.split()
    assert list(BUSY_CAUSES) == listed.split()[:5]
