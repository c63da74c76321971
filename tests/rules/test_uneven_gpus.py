from pathlib import Path

from tests.builders.trace import ADD, ALL_REDUCE, GEMM, TraceBuilder
from tests.rules.kernel_support import STENCIL, back_to_back, evidence, found, not_run, passed
from tests.rules.support import outcome


def two_gpus(first: float, second: float, other: str = GEMM) -> TraceBuilder:
    """Ten steps of 1 ms on two GPUs: kernels so long, then a collective until both are done."""
    trace = TraceBuilder(gpus=("H100", "H100"))
    for index in range(10):
        start = 1_000 + 1_000 * index
        trace.kernel(start, start + first).kernel(start + first, start + 1_000, ALL_REDUCE)
        trace.kernel(start, start + second, other, device=1, stream=9)
        trace.kernel(start + second, start + 1_000, ALL_REDUCE, device=1, stream=9)
    return trace


def test_one_gpu_has_more_work(tmp_path: Path) -> None:
    ended = found(outcome("uneven-gpus", two_gpus(900, 500), tmp_path))
    # 9 000 and 5 000 us: levelled, both compute 7 000, and the job is 2 000 us shorter
    assert (ended.stake.low_ns, ended.stake.high_ns) == (0, 2_000_000)
    assert ended.title == "One GPU computes 90 % of the time, another one 50 %"
    assert ended.gpu == "gpu1"  # TARGET_INFO_GPU.id of CUDA ordinal 0
    assert evidence(ended, "compute time of that one") == 5_000_000
    assert evidence(ended, "idle or exposed communication of that one") == 5_000_000
    assert evidence(ended, "its kernels") == 10
    assert ended.confidence == "medium"


def test_different_kernels_are_stages_by_design(tmp_path: Path) -> None:
    ended = found(outcome("uneven-gpus", two_gpus(900, 500, other=STENCIL), tmp_path))
    assert ended.title.endswith("they run different kernels, as stages of a model do")
    assert "stages of one model" in ended.actions[0]
    assert ended.confidence == "low"


def test_exactly_at_the_threshold(tmp_path: Path) -> None:
    # 6 000 and 5 000 us: 500 above the mean, 5 % of 10 ms
    assert found(outcome("uneven-gpus", two_gpus(600, 500), tmp_path)).stake.high_ns == 500_000


def test_just_below_the_threshold(tmp_path: Path) -> None:
    assert passed(outcome("uneven-gpus", two_gpus(599.9, 500), tmp_path)).note == (
        "The busiest GPU computes 5.0 % of the time more than the mean of all."
    )


def test_look_alike_waiting_in_a_collective_is_no_work(tmp_path: Path) -> None:
    passed(outcome("uneven-gpus", two_gpus(500, 500), tmp_path))


def test_look_alike_one_gpu_was_used_alone_before(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100"))
    back_to_back(trace, [(GEMM, 1_000, {})] * 6)
    back_to_back(trace, [(GEMM, 1_000, {})] * 10, start=7_000)
    back_to_back(trace.on(device=1, stream=9), [(GEMM, 1_000, {})] * 10, start=7_000)
    # 10 ms together, of spans of 16 and 10 ms
    passed(outcome("uneven-gpus", trace, tmp_path))


def test_hardly_any_common_time(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100"))
    back_to_back(trace, [(GEMM, 1_000, {})] * 10)
    back_to_back(trace.on(device=1, stream=9), [(ADD, 1_000, {})] * 10, start=10_500)
    assert not_run(outcome("uneven-gpus", trace, tmp_path)).missing == (
        "a common time: all GPUs are at work together for 500 us only"
    )


def test_one_after_the_other(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100"))
    trace.kernel(1_000, 2_000).kernel(3_000, 4_000, device=1, stream=9)
    assert not_run(outcome("uneven-gpus", trace, tmp_path)).missing == (
        "a time in which two GPUs are at work: the trace has none"
    )


def test_one_gpu(tmp_path: Path) -> None:
    assert not_run(outcome("uneven-gpus", TraceBuilder().kernel(1_000, 2_000), tmp_path)).missing == (
        "a second GPU: the trace has one"
    )
