"""Which matrix kernels leave the tensor cores idle by name, and what the tensor cores of a GPU could give.

The names are those of cuBLAS, cuDNN and CUTLASS: `sgemm` and `simt_sgemm`, `ffma` in the xmma kernels of CUDA 12
and 13, `scudnn` and `convolve_sgemm` compute in FP32 on the plain cores. `s16816gemm`, `s1688gemm`, `tensorop`,
`hmma`, `wgmma` and nvjet kernels use tensor cores.
"""

from typing import Final

import polars as pl

from nsys_triage.trace.model import Schema

FIRST_WITH_TENSOR_CORES: Final = 7  # compute capability, major

THROUGHPUT_SCHEMA: Final[Schema] = {
    "compute_major": pl.Int32,
    "compute_minor": pl.Int32,
    "tf32_ratio": pl.Float64,
    "half_ratio": pl.Float64,
}
THROUGHPUT: Final = pl.DataFrame(
    [
        (7, 0, 1.0, 8.0),  # V100: 15.7 FP32, 125 FP16 TFLOP/s; no TF32
        (7, 2, 1.0, 2.0),
        (7, 5, 1.0, 4.0),  # RTX 2080 Ti: 13.4, 54 with FP32 sums; T4 8 times
        (8, 0, 8.0, 16.0),  # A100: 19.5, TF32 156, BF16 312
        (8, 6, 1.0, 2.0),  # RTX 3090: 35.6, 35.6, 71; A10 and A40 twice as much
        (8, 7, 1.0, 2.0),
        (8, 9, 1.0, 2.0),  # RTX 4090: 82.6, 82.6, 165; L4 and L40S twice as much
        (9, 0, 7.0, 14.0),  # H100 SXM: 67, 495, 989
        (10, 0, 14.0, 28.0),  # B200: 80, 1 120, 2 250
        (10, 3, 14.0, 28.0),
        (12, 0, 1.0, 2.0),  # RTX 5090: 105, 105, 210
        (12, 1, 1.0, 2.0),
    ],
    schema=THROUGHPUT_SCHEMA,
    orient="row",
)
"""Dense matrix throughput of the tensor cores over that of the FP32 cores, as NVIDIA's data sheets have it: with TF32
operands, and with 16-bit ones summed in FP32. Of the models of one compute capability the one with least."""

_LEAST_TF32, _LEAST_HALF = 1.0, 2.0  # of a GPU that is not in the table

# on the text in lower case
_FP32_MATMUL: Final = (
    r"simt_sgemm"
    r"|(^|[^a-z0-9])(maxwell|volta|turing|ampere|ada|hopper|blackwell)_sgemm_"
    r"|(^|[ :_])sgemm_largek"
    r"|xmma_gemm_f32f32_f32f32_f32.*_ffma_"
)
_FP32_CONVOLUTION: Final = (
    r"_scudnn_|convolve_sgemm|xmma_[fdw](prop|grad)\w*_f32f32_f32f32_f32.*_ffma_|simt_s[fdw](prop|grad)"
)
# what computes in FP32 operands on tensor cores: convolutions may do so unless it is switched off
_TF32_CONVOLUTION: Final = r"_tf32|tf32_|s1688[fdw]?(cudnn|prop|grad)|tf32f32"
# 16-bit operands, and yet no tensor cores
_HALF_ON_PLAIN_CORES: Final = r"_(fp16|bf16)_sgemm_|[^a-z]hgemm_|simt_hgemm"


def fp32_on_plain_cores() -> pl.Expr:
    """Whether the kernel of a row (text, kernel_class) multiplies FP32 matrices or convolves without tensor cores."""
    text = pl.col("text").str.to_lowercase()
    return ((pl.col("kernel_class") == "matmul") & text.str.contains(_FP32_MATMUL)) | (
        (pl.col("kernel_class") == "convolution") & text.str.contains(_FP32_CONVOLUTION)
    )


def tf32_convolution() -> pl.Expr:
    """Whether the kernel of a row (text, kernel_class) convolves FP32 operands on tensor cores."""
    text = pl.col("text").str.to_lowercase()
    return (pl.col("kernel_class") == "convolution") & text.str.contains(_TF32_CONVOLUTION)


def half_on_plain_cores() -> pl.Expr:
    """Whether the kernel of a row (text, kernel_class) multiplies 16-bit matrices without tensor cores."""
    text = pl.col("text").str.to_lowercase()
    return (pl.col("kernel_class") == "matmul") & text.str.contains(_HALF_ON_PLAIN_CORES)


def with_throughput(shapes: pl.DataFrame) -> pl.DataFrame:
    """The rows on GPUs that have tensor cores, with tf32_ratio and half_ratio (1.0 where TF32 gives nothing).

    `shapes` has compute_major and compute_minor; rows where they are null, or below 7.0, are left out. A GPU that
    the table does not hold has the least ratios of it. Order is kept.
    """
    return (
        shapes.filter(pl.col("compute_major") >= FIRST_WITH_TENSOR_CORES)
        .join(THROUGHPUT, on=["compute_major", "compute_minor"], how="left", maintain_order="left")
        .with_columns(
            pl.col("tf32_ratio").fill_null(_LEAST_TF32), pl.col("half_ratio").fill_null(_LEAST_HALF)
        )
    )
