from pathlib import Path
from typing import Any

import pytest

from nsys_triage.rules.base import Outcome
from tests.builders.trace import ADD, GEMM, TraceBuilder
from tests.rules.kernel_support import back_to_back, evidence, found, not_run, passed
from tests.rules.support import outcome

SGEMM = "ampere_sgemm_128x64_tn"
XMMA = (
    "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel"
    "__5x_cublas"
)
SIMT = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(T1::Params)"
SCUDNN = "volta_scudnn_128x64_relu_xregs_large_nn_v1"


def run(
    folder: Path, name: str, length: float, *, rest: str = ADD, gpus: tuple[str, ...] = ("A100",)
) -> Outcome:
    """Ten launches of `length` us each within 7.5 ms of work."""
    trace = TraceBuilder(gpus=gpus)
    back_to_back(trace, [(name, length, {}), (rest, 750 - length, {})] * 10)
    return outcome("math-precision", trace, folder)


@pytest.mark.parametrize("name", [SGEMM, XMMA, SIMT, SCUDNN])
def test_fp32_matrix_kernels_in_pytorch(tmp_path: Path, name: str) -> None:
    ended = found(run(tmp_path, name, 400))
    # 4 000 us. A100: 16 times with 16 bit, so 15/16 of it; TF32 8 times, a quarter of that 2 times, so half of it
    assert (ended.stake.low_ns, ended.stake.high_ns) == (2_000_000, 3_750_000)
    assert ended.confidence == "medium"
    assert ended.title == "FP32 matrix kernels that leave the tensor cores idle take 53 % of the time"
    assert "torch.set_float32_matmul_precision('high')" in ended.actions[0]
    assert "torch.autocast" in ended.actions[1]
    assert "ncu --kernel-name regex:^" in ended.actions[2]
    assert evidence(ended, "compute capability") == "8.0"
    assert evidence(ended, "published speed of TF32 over FP32, times") == "8"


def test_a_cuda_program_may_have_chosen_fp32(tmp_path: Path) -> None:
    ended = found(run(tmp_path, SGEMM, 400, rest=GEMM))
    assert (ended.stake.low_ns, ended.stake.high_ns) == (0, 3_750_000)
    assert ended.confidence == "low"
    assert "CUBLAS_COMPUTE_32F_FAST_TF32" in ended.actions[0]


def test_a_geforce_card_gains_only_with_16_bit(tmp_path: Path) -> None:
    ended = found(run(tmp_path, SGEMM, 400, gpus=("RTX 3090",)))
    # 8.6: TF32 as fast as FP32, 16 bit twice as fast
    assert (ended.stake.low_ns, ended.stake.high_ns) == (0, 2_000_000)
    assert "torch.autocast" in ended.actions[0]


def test_exactly_at_the_threshold(tmp_path: Path) -> None:
    # 15/16 of 400 us is 5 % of 7.5 ms
    assert found(run(tmp_path, SGEMM, 40)).stake.high_ns == 375_000


def test_just_below_the_threshold(tmp_path: Path) -> None:
    assert passed(run(tmp_path, SGEMM, 39.9)).note == (
        "FP32 matrix kernels without tensor cores take 5.3 % of the time."
    )


@pytest.mark.parametrize(
    "name",
    [
        GEMM,
        "ampere_s16816gemm_bf16_128x128_ldg8_stages_32x5_tn",
        "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_tn_align4>(T1::Params)",
        "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_tensor16x8x8_execute_kernel__5x_cublas",
        "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT",
        "ampere_fp16_sgemm_fp16_128x64_tn",
        "void gemv2T_kernel_val<int, int, float, float, float, float, (int)128>(T12, float, float)",
        "volta_dgemm_128x64_nn",
        "my_sgemm_report(float *)",
    ],
)
def test_look_alike_kernels_with_tensor_cores_or_without_use_for_them(tmp_path: Path, name: str) -> None:
    passed(run(tmp_path, name, 400))


def test_look_alike_fp32_convolutions_that_cudnn_chose_although_tf32_is_allowed(tmp_path: Path) -> None:
    tf32 = (
        "void cutlass_cudnn::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_256x64_16x4_nhwc>(T1::Params)"
    )
    passed(run(tmp_path, SCUDNN, 400, rest=tf32))


def test_look_alike_a_gpu_without_tensor_cores(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=())
    trace.gpu("A100", computeMajor=6, computeMinor=0)
    back_to_back(trace, [(SGEMM, 400, {})] * 10)
    passed(outcome("math-precision", trace, tmp_path))


def test_look_alike_short_products(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("A100",))
    back_to_back(trace, [(SGEMM, 9.9, {})] * 400)
    passed(outcome("math-precision", trace, tmp_path))


def test_only_what_runs_alone_counts(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("A100",))
    options: dict[str, Any] = {"stream": 20}
    back_to_back(trace, [(SGEMM, 750, {})] * 10)
    back_to_back(trace, [(ADD, 600, options)] * 10)
    # 7 500 us, 6 000 of them beside another kernel
    assert found(outcome("math-precision", trace, tmp_path)).stake.high_ns == 1_406_250


def test_unknown_gpu(tmp_path: Path) -> None:
    assert (
        not_run(run(tmp_path, SGEMM, 400, gpus=())).missing
        == "the trace does not tell which GPU ran the kernels"
    )


def test_not_recorded(tmp_path: Path) -> None:
    assert (
        not_run(outcome("math-precision", TraceBuilder().copy(1_000, 2_000), tmp_path)).option
        == "--trace=cuda"
    )
