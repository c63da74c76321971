"""Device memory is near its peak while kernels run that only stream data: its bandwidth is the limit.

What it means

The sampled DRAM counters show how much of the peak bandwidth kernels use. From about 70 % on a kernel is
limited by memory: more warps, higher clocks or tensor cores do not help, only fewer bytes do. Elementwise
kernels, copies, norms and other reductions each read and write all of their data once; fused into one
kernel they do it once together.

What to do next

1. Fuse neighbours: torch.compile, XLA, fused optimizers and norms, or a kernel of your own.
2. Use smaller types for activations and states (BF16, FP8).
3. Reuse data while it is in the L2 cache: process in tiles, join loops over the same data.

When it is wrong

A kernel at the limit of memory bandwidth is a good kernel; only work that can be fused or stored smaller is
to be gained. Samples show the time around kernels too where these are shorter than the sampling period.
"""

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.kernel_counters import compute_kernels, kernel_counters
from nsys_triage.rules import kernel_advice as ka
from nsys_triage.rules.base import Found, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context

_STREAMING = ("elementwise", "layout", "reduction", "random")
_FUSED = 0.5  # two passes over the data become one


def check(context: Context) -> Outcome:
    """Fires where memory is near its peak and fusing kernels that stream data could give back the threshold."""
    m = context.m
    counters = kernel_counters(m.trace, m.workload, compute_kernels(m.work))
    missing = ka.not_sampled(counters, "dram", "DRAM Read and Write Bandwidth")
    if missing is not None:
        return missing
    dram = {c.gpu: c.dram for c in counters if c.tells and c.dram is not None}
    busiest = max(dram.values())
    bound = [gpu for gpu, share in dram.items() if share >= context.thresholds["dram"]]
    streaming = m.launch_shapes.filter(pl.col("kernel_class").is_in(_STREAMING) & pl.col("gpu").is_in(bound))
    rows = ka.with_gain(streaming, pl.col("alone_ns") * _FUSED)
    gain_ns = ka.total(rows, "gain_ns")
    if ka.share_of_span(context, gain_ns) < context.thresholds["share"]:
        return Passed(
            f"Device memory is at {units.share(busiest)} of its peak bandwidth while kernels run; fusing kernels"
            f" could give back {units.share(ka.share_of_span(context, gain_ns))} of the time at most."
        )
    row = ka.first(rows)
    return Found(
        title=(
            f"Memory bandwidth is the limit: {units.share(busiest)} of its peak while kernels run, many of which "
            "only stream data"
        ),
        stake=context.stake(
            gain_ns,
            "high: kernels that only stream data are fused two by two; low: none can be fused",
            low_ns=0,
        ),
        causes=("compute",),
        evidence=(
            number("peak bandwidth of device memory used while kernels run", busiest, "share"),
            *ka.kernel_numbers(context, rows, row),
        ),
        actions=(
            context.wording(
                pytorch=(
                    "Fuse elementwise kernels and norms with torch.compile, and use fused optimizers (fused=True)."
                ),
                jax="Put more of the step under one jit, so that XLA can fuse it.",
                cuda="Join kernels that pass over the same data, so that each value is read and written once.",
            ),
            "Store what is streamed in a smaller type (BF16 in place of FP32 halves the bytes).",
            ka.ncu_action(context, row, "See how close to the peak the longest one is"),
        ),
        caveat=(
            "A kernel at the limit of memory bandwidth is a good kernel: only what can be fused or stored smaller "
            "is to be gained."
        ),
        confidence="medium",
        where=ka.longest_launch(row),
        gpu=ka.one_of_several(context, rows),
    )


RULE = Rule(
    id="memory-bandwidth-bound",
    title="Memory bandwidth is the limit",
    check=check,
    page=page_of(__doc__),
    needs=("kernels", "gpu_metrics"),
    thresholds={
        "share": ka.GAIN_THRESHOLD,
        "dram": Threshold(0.7, "share", "of the peak bandwidth: streaming kernels reach 70 to 90 % of it"),
    },
)
