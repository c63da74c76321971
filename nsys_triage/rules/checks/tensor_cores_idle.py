"""The tensor cores are idle while matrix kernels run, as sampled GPU metrics show.

What it means

Matrix products, convolutions and attention are what tensor cores are for. The sampled counter says that
their pipe is all but idle while such kernels run, although the kernels' names do not say why. Kernels whose
names tell that they compute in FP32 without tensor cores are left out here: math-precision has them.

What to do next

1. See the type of the operands: tensor cores take FP16, BF16, TF32, FP8 and INT8, not FP32, and FP64 only
   on data-centre GPUs.
2. Replace kernels of your own by a library (cuBLASLt, cuDNN, CUTLASS, FlashAttention), or write them with
   mma instructions.
3. Profile one with Nsight Compute: the pipe utilisation shows what it uses instead.

When it is wrong

Products with one vector (decoding one token at a time) are limited by memory, and tensor cores stay idle at
no cost.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.kernel_counters import kernel_counters, named_kernels
from nsys_triage.metrics.tensor_cores import fp32_on_plain_cores, with_throughput
from nsys_triage.rules import kernel_advice as ka
from nsys_triage.rules.base import Found, NotRun, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context

# products with a vector, and types that tensor cores do not take everywhere
_NO_PRODUCT_FOR_THEM: Final = (
    r"gemv|gevm|dot_kernel|splitk|reduce|[dzc]gemm|f64|double|trsm|im2col|col2im|offsets"
)


def _matrix() -> pl.Expr:
    """Whether the kernel of a row (text, own_name, kernel_class) is one that tensor cores could run."""
    return (
        pl.col("kernel_class").is_in(["matmul", "attention", "convolution"])
        & ~fp32_on_plain_cores()
        & ~pl.col("text").str.to_lowercase().str.contains(_NO_PRODUCT_FOR_THEM)
    )


def check(context: Context) -> Outcome:
    """Fires where the tensor pipe is all but idle in matrix kernels that could give back the threshold."""
    m = context.m
    shapes = with_throughput(m.launch_shapes.filter(_matrix()))
    if shapes.is_empty():
        return NotRun("matrix kernels on a GPU with tensor cores: the trace has none")
    counters = kernel_counters(m.trace, m.workload, named_kernels(m.trace, m.workload, m.work, _matrix()))
    missing = ka.not_sampled(counters, "tensor_active", "Tensor Active")
    if missing is not None:
        return missing
    active = {c.gpu: c.means["tensor_active"] for c in counters if c.tells and "tensor_active" in c.means}
    idle = [gpu for gpu, share in active.items() if share <= context.thresholds["active"]]
    rows = ka.with_gain(
        shapes.filter(pl.col("gpu").is_in(idle)), pl.col("alone_ns") * (1 - 1 / pl.col("half_ratio"))
    )
    least = min(active.values())
    gain_ns = ka.total(rows, "gain_ns")
    if ka.share_of_span(context, gain_ns) < context.thresholds["share"]:
        return Passed(
            f"Tensor cores are active {units.share(least)} of the time in which matrix kernels run."
        )
    row = ka.first(rows)
    time_share = ka.share_of_span(context, ka.total(rows, "alone_ns"))
    return Found(
        title=(
            f"Tensor cores are active {units.share(least)} of the time while matrix kernels run, which take "
            f"{units.share(time_share)} of it"
        ),
        stake=context.stake(
            gain_ns,
            (
                f"high: 16-bit operands at the published ratio of {units.ratio(row['half_ratio'])}; low: the "
                "products cannot use them"
            ),
            low_ns=0,
        ),
        causes=("compute",),
        evidence=(
            number("tensor cores active in matrix kernels", least, "share"),
            *ka.kernel_numbers(context, rows, row),
        ),
        actions=(
            "Check the type of the operands: tensor cores take 16-bit, TF32, FP8 and INT8 operands, not FP32.",
            context.wording(
                pytorch=(
                    "Use the operations of the framework for products and attention in place of kernels of your "
                    "own, under torch.autocast."
                ),
                jax=(
                    "Use jnp.matmul, lax.conv and jax.nn.dot_product_attention with bfloat16 operands in place of "
                    "kernels of your own."
                ),
                cuda="Use cuBLASLt, cuDNN or CUTLASS for the product, or mma instructions in the kernel.",
            ),
            ka.ncu_action(context, row, "See which pipes it uses instead"),
        ),
        caveat="Products with one vector are limited by memory, and tensor cores stay idle at no cost.",
        confidence="medium",
        where=ka.longest_launch(row),
        gpu=ka.one_of_several(context, rows),
    )


RULE = Rule(
    id="tensor-cores-idle",
    title="Tensor cores idle while matrix kernels run",
    check=check,
    page=page_of(__doc__),
    needs=("kernels", "gpu_metrics"),
    thresholds={
        "share": ka.GAIN_THRESHOLD,
        "active": Threshold(
            0.05,
            "share",
            "of the cycles, at most: products on tensor cores keep them busy for a fifth and more",
        ),
    },
)
