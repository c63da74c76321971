"""Small kernels matter only with idle time between them."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import ADD, GEMM, TraceBuilder
from tests.rules.support import outcome

RULE = "small-kernels"


def test_fires_with_the_idle_time_between_them(tmp_path: Path) -> None:
    # 41 kernels of 5 us, one every 12: 40 gaps of 7 us in 485 us
    found = outcome(RULE, TraceBuilder().kernels(0, 41, every=12, length=5, name=ADD), tmp_path)
    assert isinstance(found, Found)
    assert (
        found.title == "100 % of the kernels run under 10 us, and the GPU idles between them 58 % of the time"
    )
    assert (found.stake.low_ns, found.stake.high_ns) == (140_000, 280_000)
    assert found.causes == ("launch", "queued")
    assert {e.label: e.value for e in found.evidence} == {
        "idle between two small kernels": 280_000,
        "gaps between them": 40,
        "mean length of such a gap": 7_000,
        "median kernel": 5_000,
        "kernel time in small kernels": 1.0,
        "small kernels of vectorized_elementwise_kernel": 41,
    }
    assert found.actions[0] == "Fuse the most frequent ones first: vectorized_elementwise_kernel."
    assert "torch.compile" in found.actions[1]


def mixed(idle: float) -> TraceBuilder:
    """Two small kernels with so much idle time between them, in 1000 us that are busy otherwise."""
    return (
        TraceBuilder()
        .kernel(0, 5)
        .kernel(5 + idle, 9 + idle, call=(4, 8))
        .kernel(9 + idle, 1000, call=(8, 9))
    )


@pytest.mark.parametrize(("idle", "fires"), [(49.999, False), (50.0, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, idle: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, mixed(idle), tmp_path), Found if fires else Passed)


@pytest.mark.parametrize(("large", "fires"), [(2, True), (3, False)])
def test_half_of_the_kernels_have_to_be_small(tmp_path: Path, large: int, fires: bool) -> None:
    # the large ones run back to back after the two small ones
    builder = TraceBuilder().kernel(0, 5).kernel(65, 70, call=(4, 8))
    for number in range(large):
        builder.kernel(70 + 100 * number, 170 + 100 * number)
    assert isinstance(outcome(RULE, builder, tmp_path), Found if fires else Passed)


def test_thresholds_are_the_users_choice(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, mixed(100), tmp_path, share=0.2), Passed)
    assert isinstance(outcome(RULE, mixed(100), tmp_path, small=0.7), Passed)


def test_time_of_the_gpu_between_queued_kernels_counts(tmp_path: Path) -> None:
    # 4 us long and 1 us apart, all queued long before
    builder = TraceBuilder()
    for number in range(40):
        builder.kernel(5 * number, 5 * number + 4, call=(number - 100, number - 99.5))
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.stake.high_ns == 39_000


def test_not_recorded(tmp_path: Path) -> None:
    assert outcome(RULE, TraceBuilder().copy(0, 10).copy(20, 30), tmp_path) == NotRun(
        "kernels", "--trace=cuda"
    )
    builder = TraceBuilder().kernels(0, 40, every=12, length=5).without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")


def test_look_alike_many_small_kernels_in_a_busy_trace(tmp_path: Path) -> None:
    # every second kernel is small, and the GPU is never idle
    builder = TraceBuilder()
    for number in range(20):
        builder.kernel(100 * number, 100 * number + 5, ADD).kernel(100 * number + 5, 100 * number + 100, GEMM)
    assert outcome(RULE, builder, tmp_path) == Passed(
        "50 % of the kernels are under 10 us (5.0 % of kernel time);"
        " the GPU idles between such kernels 0 % of the time."
    )


def test_look_alike_idle_time_for_another_reason(tmp_path: Path) -> None:
    # small kernels 1 ms apart, since the host works that long
    builder = TraceBuilder().kernels(0, 10, every=1000, length=5)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)
