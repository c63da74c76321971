"""Allocating and freeing in the loop: the idle time in these calls."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "allocation-in-steady-state"
MALLOC, FREE = "cudaMalloc_v3020", "cudaFree_v3020"


def loop(*, ranges: bool = False) -> TraceBuilder:
    """Ten kernels of 800 us; between two of them 100 us of cudaMalloc and 80 us of cudaFree, and the launch."""
    builder = TraceBuilder().kernels(0, 11, every=1000, length=800)
    for number in range(10):
        start = 1000 * number + 805
        builder.api(MALLOC, start, start + 100).api(FREE, start + 100, start + 180)
        if ranges:
            builder.range(f"step {number}", 1000 * number - 15, 1000 * number + 980)
    return builder


def test_fires_with_the_calls_by_name(tmp_path: Path) -> None:
    found = outcome(RULE, loop(), tmp_path)
    assert isinstance(found, Found)
    # 10 times 180 us in 10 800 us; all but the longest gap
    assert found.title == "Allocating and freeing memory costs 17 % of the GPU's time"
    assert (found.stake.low_ns, found.stake.high_ns) == (1_620_000, 1_800_000)
    assert (found.causes, found.confidence) == (("allocation",), "high")
    assert {e.label: e.value for e in found.evidence} == {
        "idle while the launching thread allocates or frees": 1_800_000,
        "gaps in which it does": 10,
        "of it in cudaMalloc (10 calls)": 1_000_000,
        "of it in cudaFree (10 calls)": 800_000,
        "allocating and freeing calls in the window": 20,
    }
    assert found.where is not None
    assert (found.where.start_ns, found.where.end_ns) == (800_000, 1_000_000)


def test_says_how_many_per_step(tmp_path: Path) -> None:
    found = outcome(RULE, loop(ranges=True), tmp_path)
    assert isinstance(found, Found)
    assert {e.label: e.value for e in found.evidence}["of them per step"] == 2.0


@pytest.mark.parametrize(("length", "fires"), [(49.999, False), (50.0, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, length: float, fires: bool) -> None:
    builder = TraceBuilder().kernel(0, 500).api(MALLOC, 510, 510 + length).kernel(700, 1000)
    assert isinstance(outcome(RULE, builder, tmp_path), Found if fires else Passed)


def test_a_higher_threshold_is_the_users_choice(tmp_path: Path) -> None:
    assert outcome(RULE, loop(), tmp_path, share=0.2) == Passed(
        "20 calls that allocate or free memory cost 17 % of the GPU's time."
    )


def test_once_is_said(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 500).api(MALLOC, 510, 690).kernel(700, 1000)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.title.endswith("of the GPU's time, most of it once")
    assert (found.stake.low_ns, found.confidence) == (0, "medium")


def test_pinning_gets_its_own_advice(tmp_path: Path) -> None:
    builder = TraceBuilder().kernels(0, 4, every=1000, length=800)
    for number in range(3):
        builder.api("cudaHostAlloc_v3020", 1000 * number + 805, 1000 * number + 980)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert "Pin host memory once (cudaHostAlloc in the loop), and reuse the pinned buffers." in found.actions


def test_wording_for_pytorch(tmp_path: Path) -> None:
    found = outcome(RULE, loop().range("aten::add", 0, 10), tmp_path)
    assert isinstance(found, Found)
    assert "torch.cuda.empty_cache()" in found.actions[0]


def test_not_recorded(tmp_path: Path) -> None:
    builder = loop().without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")


def test_look_alike_allocation_while_the_gpu_works(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(10):
        start = 1000 * number
        builder.kernel(start, start + 1000, call=(start - 1300, start - 1295)).api(
            MALLOC, start + 100, start + 600
        )
    assert outcome(RULE, builder, tmp_path) == Passed(
        "10 calls that allocate or free memory cost 0 % of the GPU's time."
    )


def test_look_alike_a_pool(tmp_path: Path) -> None:
    builder = TraceBuilder().kernels(0, 4, every=1000, length=800)
    for number in range(3):
        builder.api("cudaMallocAsync_v11020", 1000 * number + 805, 1000 * number + 980)
    assert outcome(RULE, builder, tmp_path) == Passed(
        "0 calls that allocate or free memory cost 0 % of the GPU's time."
    )


def test_look_alike_another_thread_allocates(tmp_path: Path) -> None:
    builder = TraceBuilder().kernels(0, 4, every=1000, length=800).api(MALLOC, 100, 3900, tid=99)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)
