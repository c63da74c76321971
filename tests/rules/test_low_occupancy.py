from pathlib import Path

from nsys_triage.rules.base import Outcome
from tests.builders.trace import ADD, GEMM, TraceBuilder
from tests.rules.kernel_support import STENCIL, back_to_back, evidence, found, not_run, passed
from tests.rules.support import outcome

# 8 warps of 128 registers: 4 096 registers a warp, 4 warps on each quarter of an SM, two blocks: 16 of 64 warps.
# 1 056 blocks are four waves of 2 x 132.
FEW_WARPS = {"grid": (1_056, 1, 1), "block": (256, 1, 1), "registers": 128}


def run(folder: Path, name: str, length: float, options: dict[str, object], **thresholds: float) -> Outcome:
    """Ten launches of `length` us each within 10 ms of work."""
    trace = TraceBuilder()
    rest = (10_000 - 10 * length) / 10
    back_to_back(trace, [(name, length, options), (GEMM, rest, {})] * 10)
    return outcome("low-occupancy", trace, folder, **thresholds)


def test_few_warps_of_registers(tmp_path: Path) -> None:
    ended = run(tmp_path, STENCIL, 400, FEW_WARPS)
    # 4 000 of 10 000 us; with twice the warps (one half of 64) half of that
    assert found(ended).stake.high_ns == 2_000_000
    assert found(ended).stake.low_ns == 0
    assert found(ended).title == "Kernels with few warps on each SM take 40 % of the time"
    assert found(ended).causes == ("compute",)
    assert evidence(ended, "its theoretical occupancy") == 0.25
    assert evidence(ended, "its occupancy is limited by") == "registers"
    assert evidence(ended, "launches of it in this shape") == 10


def test_the_line_for_nsight_compute(tmp_path: Path) -> None:
    trace = TraceBuilder()
    other_shape = {**FEW_WARPS, "registers": 32}
    back_to_back(trace, [(STENCIL, 100, other_shape)] * 3 + [(STENCIL, 400, FEW_WARPS), (GEMM, 600, {})] * 10)
    action = found(outcome("low-occupancy", trace, tmp_path)).actions[0]
    # three launches of that name come before the first one of this shape
    assert (
        "ncu --kernel-name regex:^stencil_kernel$ --launch-skip 3 --launch-count 3 --set full --export kernel "
        "<your command>"
    ) in action


def test_exactly_at_the_threshold(tmp_path: Path) -> None:
    # half of 1 000 us in 10 ms is 5 %
    assert found(run(tmp_path, STENCIL, 100, FEW_WARPS)).stake.high_ns == 500_000


def test_just_below_the_threshold(tmp_path: Path) -> None:
    assert passed(run(tmp_path, STENCIL, 99.9, FEW_WARPS)).note == (
        "Long kernels with few warps per SM take 10 % of the time."
    )


def test_the_user_may_ask_for_less(tmp_path: Path) -> None:
    found(run(tmp_path, STENCIL, 50, FEW_WARPS, share=0.025))


def test_more_than_a_quarter_of_the_warps_is_no_finding(tmp_path: Path) -> None:
    # 120 registers: 3 840 a warp, still four warps on a quarter; 96: 3 072, five of them, two blocks and 16 warps
    # for blocks of 8, but 20 of 64 for blocks of 4
    passed(run(tmp_path, STENCIL, 400, {**FEW_WARPS, "block": (128, 1, 1), "registers": 96}))


def test_look_alike_library_kernels_run_with_few_warps_by_design(tmp_path: Path) -> None:
    passed(run(tmp_path, GEMM, 400, FEW_WARPS))
    attention = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128>>(flash::Flash_fwd_params)"
    passed(run(tmp_path, attention, 400, FEW_WARPS))


def test_look_alike_short_kernels(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(STENCIL, 9.9, FEW_WARPS)] * 400)
    passed(outcome("low-occupancy", trace, tmp_path))


def test_look_alike_a_small_grid_is_another_matter(tmp_path: Path) -> None:
    # 263 blocks do not fill one wave of 264
    passed(run(tmp_path, STENCIL, 400, {**FEW_WARPS, "grid": (263, 1, 1)}))


def test_look_alike_a_kernel_beside_others(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(STENCIL, 400, FEW_WARPS), (GEMM, 600, {})] * 10)
    back_to_back(trace, [(ADD, 1_000, {"stream": 20})] * 10)
    passed(outcome("low-occupancy", trace, tmp_path))


def test_unknown_gpu(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=())
    back_to_back(trace, [(STENCIL, 400, FEW_WARPS)] * 10)
    assert not_run(outcome("low-occupancy", trace, tmp_path)).missing == (
        "the trace does not tell which GPU ran the kernels"
    )


def test_graphs_recorded_as_a_whole(tmp_path: Path) -> None:
    trace = TraceBuilder().graph(2_000, 3_000)
    back_to_back(trace, [(STENCIL, 400, FEW_WARPS)] * 2)
    assert not_run(outcome("low-occupancy", trace, tmp_path)).option == "--cuda-graph-trace=node"


def test_no_kernels_recorded(tmp_path: Path) -> None:
    trace = TraceBuilder().copy(1_000, 2_000)
    assert not_run(outcome("low-occupancy", trace, tmp_path)).option == "--trace=cuda"
