"""The launching thread is blocked in the OS, and the GPU has nothing to do."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "host-blocked"


def loop(call: str = "write", length: float = 150.0) -> TraceBuilder:
    """Kernels of 800 us, 1000 us apart; from 820 on the launching thread is in an OS call."""
    builder = TraceBuilder().kernels(0, 11, every=1000, length=800)
    for number in range(10):
        builder.os_call(call, 1000 * number + 820, 1000 * number + 820 + length)
    return builder


def test_fires_with_the_calls_by_name(tmp_path: Path) -> None:
    found = outcome(RULE, loop().os_call("fsync", 1972, 1982), tmp_path)
    assert isinstance(found, Found)
    # 10 times 150 us and once 10 us in 10 800 us; the longest gap has 160
    assert found.title == (
        "The GPU waits 14 % of its time while the launching thread is blocked in the operating system, mostly in write"
    )
    assert (found.stake.low_ns, found.stake.high_ns) == (1_350_000, 1_510_000)
    assert found.causes == ("host_blocked",)
    assert {e.label: e.value for e in found.evidence} == {
        "idle while the launching thread is blocked": 1_510_000,
        "gaps in which it is": 10,
        "of it in write (10 calls)": 1_500_000,
        "of it in fsync (1 call)": 10_000,
    }
    assert found.where is not None
    assert (found.where.start_ns, found.where.end_ns) == (1_800_000, 2_000_000)


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        ("fsync", "Write from another thread"),
        ("pthread_mutex_lock", "Find the thread that it waits for"),
        ("usleep", "Replace the sleep"),
        ("sendmsg", "Send and receive on another thread"),
        ("munmap", "Map and unmap memory before the loop"),
        ("ioctl", "ioctl is the driver at work"),
        ("rewind", "Find the line that makes this call"),
    ],
)
def test_advice_is_for_the_kind_of_call(tmp_path: Path, call: str, advice: str) -> None:
    found = outcome(RULE, loop(call), tmp_path)
    assert isinstance(found, Found)
    assert found.actions[0].startswith(advice)


@pytest.mark.parametrize(("length", "fires"), [(49.999, False), (50.0, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, length: float, fires: bool) -> None:
    builder = TraceBuilder().kernel(0, 500).os_call("write", 510, 510 + length).kernel(700, 1000)
    assert isinstance(outcome(RULE, builder, tmp_path), Found if fires else Passed)


def test_a_higher_threshold_is_the_users_choice(tmp_path: Path) -> None:
    assert outcome(RULE, loop(), tmp_path, share=0.2) == Passed(
        "The GPU waits 14 % of the time while the launching thread is blocked in the operating system."
    )


def test_not_recorded(tmp_path: Path) -> None:
    builder = TraceBuilder().kernels(0, 10, every=1000, length=800)
    assert outcome(RULE, builder, tmp_path) == NotRun("OS runtime calls", "--trace=osrt")


def test_look_alike_waiting_while_the_gpu_works(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(10):
        start = 1000 * number
        builder.kernel(start, start + 1000, call=(start - 1200, start - 1195)).os_call(
            "write", start + 100, start + 900
        )
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_look_alike_waiting_for_input(tmp_path: Path) -> None:
    # a read before a copy of a batch that comes back in every step is the input pipeline
    builder = TraceBuilder()
    for number in range(5):
        start = 1000 * number
        builder.kernel(start, start + 500).os_call("read", start + 510, start + 880).copy(
            start + 900, start + 990
        )
    builder.kernel(5000, 5500)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_look_alike_inside_a_cuda_call(tmp_path: Path) -> None:
    # the driver's ioctl inside cudaMalloc is allocation
    builder = TraceBuilder().kernel(0, 500).api("cudaMalloc_v3020", 510, 690).os_call("ioctl", 520, 680)
    builder.kernel(700, 1000)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_look_alike_another_thread_is_blocked(tmp_path: Path) -> None:
    builder = TraceBuilder().kernels(0, 10, every=1000, length=800).os_call("write", 0, 9000, tid=99)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)
