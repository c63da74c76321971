from pathlib import Path

from nsys_triage.rules.base import Outcome
from tests.builders.trace import GEMM, TraceBuilder
from tests.rules.kernel_support import STENCIL, back_to_back, evidence, found, not_run, passed
from tests.rules.support import outcome

HALF = {"grid": (66, 1, 1)}  # of 132 SMs


def run(folder: Path, length: float, options: dict[str, object]) -> Outcome:
    """Ten launches of `length` us each within 10 ms of work."""
    trace = TraceBuilder()
    back_to_back(trace, [(STENCIL, length, options), (GEMM, 1_000 - length, {})] * 10)
    return outcome("small-grid", trace, folder)


def test_half_of_the_sms_have_no_block(tmp_path: Path) -> None:
    ended = run(tmp_path, 400, HALF)
    # 4 000 us at half of the SMs
    assert (found(ended).stake.low_ns, found(ended).stake.high_ns) == (0, 2_000_000)
    assert found(ended).title == "Kernels with fewer blocks than the GPU has SMs take 40 % of the time"
    assert (evidence(ended, "its blocks"), evidence(ended, "SMs of the GPU")) == (66, 132)
    assert "ncu --kernel-name regex:^stencil_kernel$ --launch-skip 0" in found(ended).actions[-1]


def test_exactly_at_the_threshold(tmp_path: Path) -> None:
    # half of 1 000 us in 10 ms is 5 %
    assert found(run(tmp_path, 100, HALF)).stake.high_ns == 500_000


def test_just_below_the_threshold(tmp_path: Path) -> None:
    assert "take 10 % of the time" in passed(run(tmp_path, 99.9, HALF)).note


def test_look_alike_one_block_per_sm(tmp_path: Path) -> None:
    passed(run(tmp_path, 900, {"grid": (132, 1, 1)}))


def test_look_alike_nearly_all_sms(tmp_path: Path) -> None:
    # 126 of 132 blocks leave 4.5 % unused, of 90 % of the time
    passed(run(tmp_path, 900, {"grid": (126, 1, 1)}))


def test_look_alike_short_kernels_are_start_and_end(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(STENCIL, 9.9, {"grid": (1, 1, 1)})] * 400)
    passed(outcome("small-grid", trace, tmp_path))


def test_look_alike_small_kernels_side_by_side(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for stream in (7, 20):
        back_to_back(trace, [(STENCIL, 1_000, {**HALF, "stream": stream})] * 10)
    passed(outcome("small-grid", trace, tmp_path))


def test_look_alike_collectives_use_few_blocks(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(
        trace, [("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)", 900, HALF)] * 9
    )
    trace.kernel(100, 900)
    passed(outcome("small-grid", trace, tmp_path))


def test_look_alike_a_kernel_that_waits_for_pages(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(STENCIL, 1_000, HALF)] * 10)
    for index in range(100):  # a tenth of the time
        trace.migration(1_050 + 100 * index, 1_060 + 100 * index)
    passed(outcome("small-grid", trace, tmp_path))
    # with one migration less a launch is no longer one that waits for pages
    trace = TraceBuilder()
    back_to_back(trace, [(STENCIL, 1_000, HALF)] * 10)
    for index in range(99):
        trace.migration(1_050 + 100 * index, 1_060 + 100 * index)
    # the last launch of ten, 1 000 us at one half
    assert found(outcome("small-grid", trace, tmp_path)).stake.high_ns == 500_000


def test_only_one_gpu_of_two(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100"))
    back_to_back(trace, [(STENCIL, 1_000, HALF)] * 10)
    back_to_back(trace.on(device=1), [(GEMM, 1_000, {})] * 10)
    ended = found(outcome("small-grid", trace, tmp_path))
    # 10 000 us at one half, mean of two GPUs
    assert ended.stake.high_ns == 2_500_000
    assert ended.gpu == "gpu1"  # TARGET_INFO_GPU.id of CUDA ordinal 0


def test_unknown_gpu(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=())
    back_to_back(trace, [(STENCIL, 400, HALF)] * 10)
    not_run(outcome("small-grid", trace, tmp_path))


def test_not_recorded(tmp_path: Path) -> None:
    assert (
        not_run(outcome("small-grid", TraceBuilder().copy(1_000, 2_000), tmp_path)).option == "--trace=cuda"
    )
