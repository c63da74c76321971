"""Matrix kernels compute in FP32 on the plain cores while the tensor cores of the GPU stay idle.

What it means

Kernels named sgemm, simt or ffma multiply in full FP32 without tensor cores. With TF32 or 16-bit operands
(BF16, FP16) the tensor cores do the same products several times faster on data-centre GPUs of compute
capability 8.0 and up; on GeForce cards TF32 gives little and 16 bit about twice the speed. In PyTorch FP32
is what happens unless one asks for less.

What to do next

1. PyTorch: torch.set_float32_matmul_precision("high") allows TF32 in one line; torch.autocast with bfloat16
   gives more. JAX: jax_default_matmul_precision and bfloat16 parameters. cuBLAS:
   CUBLAS_COMPUTE_32F_FAST_TF32, or 16-bit operands.
2. Compare the loss or the result with that of FP32 over some hundred steps.
3. Record again: the names then say s16816gemm, s1688gemm, tensorop or nvjet.

When it is wrong

Where the result needs the 24 bits of FP32 (solvers, statistics, some losses), it has to stay. Products that
are small or limited by memory bandwidth gain less than the ratio of the data sheets. The stake is from
those ratios, not measured.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.tensor_cores import fp32_on_plain_cores, tf32_convolution, with_throughput
from nsys_triage.rules import kernel_advice as ka
from nsys_triage.rules.base import Found, NotRun, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context

_REACHED: Final = (
    4  # at least a quarter of TF32's published ratio: small or memory-bound products reach no more
)


def check(context: Context) -> Outcome:
    """Fires where FP32 matrix kernels on a GPU with tensor cores could give back the threshold at most."""
    hidden = ka.kernels_in_graphs(context)
    if hidden is not None:
        return hidden
    shapes = context.m.launch_shapes
    if shapes.height and shapes["compute_major"].null_count() == shapes.height:
        return NotRun("the trace does not tell which GPU ran the kernels")
    named = with_throughput(
        shapes.filter(fp32_on_plain_cores() & (pl.col("median_ns") >= context.thresholds["length"]))
    )
    if shapes.select(tf32_convolution().any()).item():
        # TF32 is allowed, and the library chose FP32 for these all the same
        named = named.filter(pl.col("kernel_class") != "convolution")
    rows = ka.with_gain(named, pl.col("alone_ns") * (1 - 1 / pl.col("half_ratio")))
    time_share = ka.share_of_span(context, ka.total(rows, "alone_ns"))
    gain_ns = ka.total(rows, "gain_ns")
    if ka.share_of_span(context, gain_ns) < context.thresholds["share"]:
        return Passed(f"FP32 matrix kernels without tensor cores take {units.share(time_share)} of the time.")
    chosen = (
        context.framework != "pytorch"
    )  # the default of PyTorch, but a choice in JAX and in a CUDA program
    quarter = pl.max_horizontal(pl.col("tf32_ratio") / _REACHED, 1.0)
    low_ns = 0 if chosen else int(rows.select((pl.col("alone_ns") * (1 - 1 / quarter)).sum()).item())
    row = ka.first(rows)
    return Found(
        title=f"FP32 matrix kernels that leave the tensor cores idle take {units.share(time_share)} of the time",
        stake=context.stake(gain_ns, _basis(row, low_ns), low_ns=low_ns),
        causes=("compute",),
        evidence=(
            *ka.kernel_numbers(context, rows, row),
            number("compute capability", f"{row['compute_major']}.{row['compute_minor']}", "text"),
            number("published speed of TF32 over FP32, times", units.ratio(row["tf32_ratio"]), "text"),
            number("published speed of 16 bit over FP32, times", units.ratio(row["half_ratio"]), "text"),
        ),
        actions=_actions(context, row),
        caveat=(
            "Where the result needs full FP32 it has to stay; small or memory-bound products gain less than the "
            "ratio of the data sheets."
        ),
        confidence="low" if chosen else "medium",
        where=ka.longest_launch(row),
        gpu=ka.one_of_several(context, rows),
    )


def _basis(row: ka.Row, low_ns: int) -> str:
    high = f"high: 16-bit operands at the published ratio of {units.ratio(row['half_ratio'])}"
    if low_ns:
        return f"{high}; low: TF32 at a quarter of its published ratio of {units.ratio(row['tf32_ratio'])}"
    return f"{high}; low: the result needs full FP32"


def _actions(context: Context, row: ka.Row) -> tuple[str, ...]:
    tf32 = row["tf32_ratio"] > 1
    steps = (
        context.wording(
            pytorch=(
                "Allow TF32 with torch.set_float32_matmul_precision('high'), one line; record again and compare "
                "speed and loss."
            ),
            jax=(
                "Allow TF32 with jax.config.update('jax_default_matmul_precision', 'tensorfloat32'); record again "
                "and compare."
            ),
            cuda=(
                "Allow TF32 in cuBLAS (CUBLAS_COMPUTE_32F_FAST_TF32 or cublasSetMathMode with "
                "CUBLAS_TF32_TENSOR_OP_MATH) and compare the results."
            ),
        ),
        context.wording(
            pytorch=(
                "Use 16-bit operands: torch.autocast('cuda', dtype=torch.bfloat16), or float16 with a gradient "
                "scaler before compute capability 8.0."
            ),
            jax="Use bfloat16 parameters and activations.",
            cuda="Store the operands in BF16 or FP16 and sum in FP32 (cublasGemmEx).",
        ),
    )
    return (*(steps if tf32 else steps[1:]), ka.ncu_action(context, row, "See which pipes the kernel uses"))


RULE = Rule(
    id="math-precision",
    title="FP32 matrix kernels on a GPU with tensor cores",
    check=check,
    page=page_of(__doc__),
    needs=("kernels",),
    thresholds={"share": ka.GAIN_THRESHOLD, "length": ka.LONG_KERNEL},
)
