from pathlib import Path

import pytest

from nsys_triage.rules.base import Outcome
from tests.builders.trace import ADD, GEMM, TraceBuilder
from tests.rules.kernel_support import back_to_back, evidence, found, not_run, passed
from tests.rules.support import outcome

ALIGN2 = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_32x3_tn_align2>(T1::Params)"


def run(folder: Path, name: str, length: float, rest: str = GEMM) -> Outcome:
    """Ten launches of `length` us each within 10 ms of work."""
    trace = TraceBuilder()
    back_to_back(trace, [(name, length, {}), (rest, 1_000 - length, {})] * 10)
    return outcome("unaligned-matmul", trace, folder)


@pytest.mark.parametrize(
    "name",
    [
        ALIGN2,
        ALIGN2.replace("align2", "align1"),
        "void cutlass::Kernel2<cutlass_80_wmma_tensorop_s161616gemm_bf16_32x32_64x1_tn_align2>(T1::Params)",
        (
            ""
            "fmha_cutlassF_f16_notaligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::half_t>::Params)"
        ),
        "ampere_fp16_sgemm_fp16_128x64_tn",
        "volta_hgemm_256x128_nn",
    ],
)
def test_names_that_say_so(tmp_path: Path, name: str) -> None:
    ended = found(run(tmp_path, name, 200))
    # 2 000 us, at most half of it
    assert (ended.stake.low_ns, ended.stake.high_ns) == (0, 1_000_000)
    assert ended.title == "Matrix kernels with unaligned operands take 20 % of the time"
    assert evidence(ended, "matrix kernels of all kinds, time") == 10_000_000


def test_pytorch_is_told_to_pad(tmp_path: Path) -> None:
    ended = found(run(tmp_path, ALIGN2, 200, rest=ADD))
    assert "multiple of 64" in ended.actions[0]
    assert "ncu --kernel-name regex:^Kernel2$ --launch-skip 0" in ended.actions[-1]


def test_exactly_at_the_threshold(tmp_path: Path) -> None:
    found(run(tmp_path, ALIGN2, 50))


def test_just_below_the_threshold(tmp_path: Path) -> None:
    assert "take 5.0 % of the time" in passed(run(tmp_path, ALIGN2, 49.9)).note


@pytest.mark.parametrize(
    "name",
    [
        ALIGN2.replace("align2", "align8"),
        ALIGN2.replace("align2", "align16"),
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(T1::Params)",
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_cublas",
        "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::half_t>::Params)",
        "void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, float, __nv_bfloat16>(cublasSplitKParams<T6>)",
        "my_tool_align1(float *)",
    ],
)
def test_look_alikes(tmp_path: Path, name: str) -> None:
    passed(run(tmp_path, name, 900))


def test_look_alike_short_products(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(ALIGN2, 9.9, {})] * 400)
    passed(outcome("unaligned-matmul", trace, tmp_path))


def test_without_matrix_kernels(tmp_path: Path) -> None:
    assert not_run(run(tmp_path, ADD, 500, rest=ADD)).missing == "matrix kernels: the trace has none"


def test_not_recorded(tmp_path: Path) -> None:
    assert (
        not_run(outcome("unaligned-matmul", TraceBuilder().copy(1_000, 2_000), tmp_path)).option
        == "--trace=cuda"
    )
