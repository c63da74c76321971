import polars as pl
import pytest

from nsys_triage.metrics.kernel_names import describe
from nsys_triage.metrics.tensor_cores import (
    THROUGHPUT,
    fp32_on_plain_cores,
    half_on_plain_cores,
    tf32_convolution,
    with_throughput,
)


def says(expression: pl.Expr, text: str) -> bool:
    """What the expression says of a kernel of that name."""
    names = pl.DataFrame({"code": [0], "text": [text]}, schema={"code": pl.UInt32, "text": pl.String})
    return bool(describe(names).with_columns(names["text"]).select(expression).item())


FP32 = [
    "volta_sgemm_32x128_tn",
    "ampere_sgemm_64x32_sliced1x4_nt",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>(T1::Params)",
    (
        ""
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel"
    ),
    (
        ""
        "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize32x32x8_stage3_g1_ffma_aligna4_alignc4_cudnn"
    ),
    "volta_scudnn_128x64_relu_xregs_large_nn_v1",
    "void implicit_convolve_sgemm<float, float, (int)1024, (int)5, (int)5, (int)3>(int, int, int, const float *)",
]
TENSOR = [
    "ampere_s16816gemm_fp16_128x128_ldg8_stages_32x5_nn",
    "volta_fp16_s884gemm_fp16_256x128_ldg8_f2f_nn",
    "ampere_s1688gemm_128x128_ldg8_stages_32x1_tn",
    "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16_stage4_tensor16x8x8_execute_kernel",
    "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_tn_align4>(T1::Params)",
    "nvjet_sm100_tst_mma_128x256x64_2_128x256x64_tmaAB_bz_TNT",
]
HALF = [
    "volta_fp16_sgemm_fp16_128x128_nt",
    "ampere_fp16_sgemm_fp16_128x32_sliced1x4_tn",
    "turing_hgemm_128x64_nn",
]


@pytest.mark.parametrize("name", FP32)
def test_fp32_without_tensor_cores(name: str) -> None:
    assert says(fp32_on_plain_cores(), name)
    assert not says(half_on_plain_cores(), name)


@pytest.mark.parametrize("name", TENSOR)
def test_tensor_cores(name: str) -> None:
    assert not says(fp32_on_plain_cores(), name)
    assert not says(half_on_plain_cores(), name)


@pytest.mark.parametrize("name", HALF)
def test_16_bit_without_tensor_cores(name: str) -> None:
    assert says(half_on_plain_cores(), name)
    assert not says(fp32_on_plain_cores(), name)


def test_convolutions_in_tf32() -> None:
    assert says(
        tf32_convolution(),
        (
            "void "
            "cutlass_cudnn::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_256x64_16x4_nhwc_unity_stride>(T1::Params)"
        ),
    )
    assert not says(tf32_convolution(), "volta_scudnn_128x64_relu_xregs_large_nn_v1")
    assert not says(
        tf32_convolution(), "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16_tensor16x8x8"
    )


def test_throughput_by_capability() -> None:
    schema = {"compute_major": pl.Int32, "compute_minor": pl.Int32, "row": pl.Int64}
    rows = [(8, 0, 0), (6, 1, 1), (None, None, 2), (9, 9, 3), (7, 0, 4)]
    found = with_throughput(pl.DataFrame(rows, schema=schema, orient="row"))
    # 6.1 has no tensor cores; what is not known is left out; a GPU that is not in the table has the least
    assert found.select("row", "tf32_ratio", "half_ratio").rows() == [
        (0, 8.0, 16.0),
        (3, 1.0, 2.0),
        (4, 1.0, 8.0),
    ]


def test_the_table_is_plausible() -> None:
    assert THROUGHPUT.select("compute_major", "compute_minor").is_unique().all()
    assert (THROUGHPUT["half_ratio"] >= 2).all()
    assert (THROUGHPUT["tf32_ratio"] >= 1).all()
    assert (THROUGHPUT["half_ratio"] >= THROUGHPUT["tf32_ratio"]).all()
