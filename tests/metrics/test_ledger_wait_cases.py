"""The time ledger, one small trace for each sentence: what waits cost (step 6).

The traces are explained in `explaining.py`. Times are microseconds.
"""

import pytest

from tests.builders.trace import TraceBuilder
from tests.metrics.explaining import PLAIN, WORKER, Causes, each_explained, explained, one_gap

# --- step 6: what waits cost ------------------------------------------------------------------------------------

WAIT = "cudaStreamSynchronize_v3020"


def test_a_gap_opened_by_a_wait_costs_at_most_the_waits_length_up_to_it() -> None:
    # W = 1100 - 800 = 300: the first 300 us of the gap, the 5 in which the call still runs among them
    assert explained(one_gap().wait(WAIT, 800, 1_105)) == {
        "host_sync": 300,
        "host_compute": 590,
        "launch": 10,
    }


def test_a_longer_wait_takes_all_of_the_gap() -> None:
    # W = 1000; host part and launch part
    assert explained(one_gap().wait(WAIT, 100, 1_105)) == {"host_sync": 900}


def test_a_wait_takes_from_what_is_left() -> None:
    # cudaMalloc has [1200, 1300): W = 300 reaches from 1100 to 1500 around it
    trace = (
        one_gap().wait(WAIT, 800, 1_105).api("cudaMalloc_v3020", 1_200, 1_300).os_call("write", 1_600, 1_700)
    )
    assert explained(trace) == {
        "allocation": 100,
        "host_sync": 300,
        "host_blocked": 100,
        "host_compute": 390,
        "launch": 10,
    }
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
    start: float, end: float, expected: Causes
) -> None:
    assert explained(one_gap().wait(WAIT, start, end)) == expected


WAITS = [
    "cudaDeviceSynchronize_v3020", "cudaStreamSynchronize_ptsz_v7000", "cudaEventSynchronize_v3020",
    "cudaThreadSynchronize_v3020", "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize", "cudaMemcpy_v3020",
    "cuMemcpyDtoH_v2", "cudaMemset_v3020",
]  # fmt: skip


def test_calls_that_wait_by_their_name() -> None:
    for causes in each_explained(WAITS, lambda t, at, name: t.api(name, at + 800, at + 1_105)):
        assert causes == {"host_sync": 300, "host_compute": 590, "launch": 10}


def test_calls_that_do_not_wait() -> None:
    others = [
        "cudaMemcpyAsync_v3020",
        "cudaStreamWaitEvent_v3020",
        "cudaEventQuery_v3020",
        "cudaMemsetAsync_v3020",
    ]
    for causes in each_explained(others, lambda t, at, name: t.api(name, at + 800, at + 1_105)):
        assert causes == {"launch": 15, "host_compute": 885}


@pytest.mark.parametrize(
    ("pinned", "returns", "waits"),
    [(False, 1_100, True), (False, 1_099.999, False), (True, 1_105, False), (None, 1_105, False)],
)
def test_an_asynchronous_copy_of_pageable_memory_that_did_block_waits(
    pinned: bool | None, returns: float, waits: bool
) -> None:
    trace = TraceBuilder().kernel(700, 900).kernel(2_000, 2_100)
    trace.copy(900, 1_100, "device_to_host", bytes_=64, pinned=pinned, call=(800, returns))
    assert explained(trace).get("host_sync", 0) == (300 if waits else 0)


def test_the_launch_itself_is_no_wait_that_opens_its_gap() -> None:
    # a blocking copy that was called before the GPU ran dry, with its driver twin
    trace = TraceBuilder().kernel(1_000, 1_100)
    trace.copy(2_000, 2_100, bytes_=64, launch="cudaMemcpy_v3020", call=(1_090, 2_150)).api(
        "cuMemcpyHtoD_v2", 1_095, 2_145
    )
    assert explained(trace) == {"launch": 900}


def test_a_wait_around_the_launch_call_is_another_one() -> None:
    trace = TraceBuilder().kernel(1_000, 1_100)
    trace.copy(2_000, 2_100, bytes_=64, launch="cuMemcpyHtoD_v2", call=(1_990, 2_145)).api(
        "cudaMemcpy_v3020", 1_050, 2_150
    )
    # W = 50, and all the rest of the gap inside it
    assert explained(trace) == {"host_sync": 900}


def test_a_wait_that_begins_as_the_gpu_runs_dry_does_not_hide_the_one_before() -> None:
    trace = one_gap().wait(WAIT, 800, 1_100).wait(WAIT, 1_100, 1_150)
    # W = 300, which the second wait, of no length up to the gap, lies within
    assert explained(trace) == {"host_sync": 300, "host_compute": 590, "launch": 10}


def test_of_nested_waits_the_outer_one_counts() -> None:
    trace = one_gap().api("cudaMemcpy_v3020", 800, 1_105).api("cuStreamSynchronize", 1_050, 1_104)
    assert explained(trace)["host_sync"] == 300


def test_a_wait_of_another_thread_opens_nothing() -> None:
    assert explained(one_gap().wait(WAIT, 800, 1_500, tid=WORKER)) == PLAIN


def test_time_inside_a_wait_within_the_gap() -> None:
    trace = one_gap().wait("cudaEventSynchronize_v3020", 1_300, 1_500)
    assert explained(trace) == {"host_sync": 200, "host_compute": 690, "launch": 10}


def test_time_inside_a_wait_after_the_launch_call() -> None:
    # launched at 1500, waited for from 1600 on, started at 2000
    trace = one_gap(call=(1_500, 1_505)).wait(WAIT, 1_600, 2_150)
    assert explained(trace) == {"host_compute": 400, "launch": 100, "host_sync": 400}


def test_time_inside_a_wait_after_a_launch_call_that_waits_itself() -> None:
    # the blocking copy returns at 1700, before its copy starts; then the thread waits
    trace = TraceBuilder().kernel(1_000, 1_100)
    trace.copy(2_000, 2_100, bytes_=64, launch="cudaMemcpy_v3020", call=(1_500, 1_700)).wait(
        WAIT, 1_800, 2_150
    )
    assert explained(trace) == {"host_compute": 400, "launch": 300, "host_sync": 200}


@pytest.mark.parametrize(("size", "opens"), [(1 << 20, False), ((1 << 20) - 1, True)])
def test_a_wait_for_results_opens_no_gap(size: int, opens: bool) -> None:
    # a device-to-host copy ends as the GPU runs dry
    trace = one_gap().copy(1_050, 1_100, "device_to_host", bytes_=size, stream=9).wait(WAIT, 800, 1_105)
    # the 5 us inside the call are host_sync all the same
    expected = {"host_sync": 300 if opens else 5, "host_compute": 590 if opens else 885, "launch": 10}
    assert explained(trace) == expected


def test_a_copy_of_results_that_has_no_length_changes_nothing() -> None:
    trace = one_gap().copy(1_100, 1_100, "device_to_host", bytes_=1 << 20, stream=9).wait(WAIT, 800, 1_105)
    assert explained(trace)["host_sync"] == 300


def test_a_wait_that_opens_several_gaps_counts_once() -> None:
    # kernels of another thread run while it waits: gaps [1100, 1120) and [1500, 2000)
    trace = one_gap().kernel(1_120, 1_500, stream=9, tid=WORKER, call=(1_095, 1_097)).wait(WAIT, 1_000, 1_505)
    trace.os_call("write", 1_100, 1_101, tid=WORKER)
    # launched by the worker, which does not wait: the first gap is its launch part
    assert explained(trace, 1_100) == {"launch": 20}
    # W = 500 at the second gap, which lasts 500 with 490 of host part
    assert explained(trace, 1_500) == {"host_sync": 500}


def test_what_one_gap_took_of_a_wait_is_gone_for_the_next() -> None:
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


def test_what_is_left_of_a_wait_counts_for_later_gaps_of_its_step() -> None:
    trace = steps_of(4, ranges=True)
    # W = 800, the gap takes its 300: 500 are left
    assert explained(trace, 11_000) == {"host_sync": 300}
    # 500 and the 100 of its own wait
    assert explained(trace, 12_300) == {"host_sync": 600, "host_compute": 1_090, "launch": 10}
    # no wait opens the last gap of the step, [19000, 20000)
    assert explained(trace, 19_000) == {"host_compute": 990, "launch": 10}


def test_nothing_is_carried_into_the_next_step() -> None:
    # in the first step nothing is left to carry, since the first gap takes all of its wait
    trace = steps_of(4, ranges=True, wait=(200, 1_005))
    assert explained(trace, 21_000) == explained(trace, 11_000)
    assert explained(trace, 22_300) == explained(trace, 12_300)


def test_without_steps_nothing_is_carried() -> None:
    trace = steps_of(2, ranges=False)
    assert explained(trace, 11_000) == {"host_sync": 300}
    assert explained(trace, 12_300) == {"host_sync": 100, "host_compute": 1_590, "launch": 10}


def test_a_gap_that_begins_as_the_last_step_ends_is_not_in_it() -> None:
    trace = steps_of(3, ranges=True).range("step 3", 39_980, 42_000)
    # the last step ends with its device work, at 42300; 500 of the first wait are left
    trace.kernel(40_000, 41_000).wait(WAIT, 40_200, 41_005).kernel(41_300, 42_300).wait(WAIT, 42_200, 42_305)
    trace.kernel(44_000, 49_000)
    assert explained(trace, 42_300) == {"host_sync": 100, "host_compute": 1_590, "launch": 10}


def test_what_is_left_counts_for_gaps_that_a_wait_of_the_same_thread_opens() -> None:
    trace = TraceBuilder()
    for number in range(4):
        at = 10_000.0 * number + 10_000
        trace.range(f"step {number}", at - 20, at + 9_500).kernel(at, at + 1_000).wait(
            WAIT, at + 200, at + 1_005
        )
        trace.kernel(at + 1_300, at + 2_300).wait(WAIT, at + 2_200, at + 2_305, tid=WORKER)
        trace.kernel(at + 4_000, at + 9_000, tid=WORKER)
    # the main thread's wait has 500 left; the worker's has 100
    assert explained(trace, 12_300) == {"host_sync": 100, "host_compute": 1_590, "launch": 10}


def test_a_wait_across_two_steps_counts_once() -> None:
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


def test_waits_are_carried_for_each_gpu() -> None:
    # one wait opens gaps on two GPUs of a process: each has its own time to lose
    trace = TraceBuilder(gpus=("H100", "H100")).wait(WAIT, 800, 1_105)
    for device in (0, 1):
        trace.kernel(1_000, 1_100, device=device, context=device + 1).kernel(
            2_000, 2_100, device=device, context=device + 1
        )
    for gpu in (0, 1):
        assert explained(trace, gpu=gpu)["host_sync"] == 300


def test_the_window_does_not_change_what_a_wait_costs() -> None:
    trace = one_gap().wait(WAIT, 800, 1_105)
    # host_sync is [1100, 1400), of which the window has the last 100 us
    assert explained(trace, window="0.0013:0.0021") == {"host_sync": 100, "host_compute": 590, "launch": 10}
