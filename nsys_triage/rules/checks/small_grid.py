"""Kernels launch fewer blocks than the GPU has SMs, so that part of the GPU has nothing to do.

What it means

A block runs on one SM. A kernel with fewer blocks than SMs leaves the others idle for as long as it runs,
however busy the GPU looks. Only kernels that run alone are counted: several small kernels side by side do
fill a GPU.

What to do next

1. Give the kernel more blocks: smaller tiles, a grid over all dimensions of the problem, a split of long
   sums over several blocks with a second pass.
2. Make the problem larger: a larger batch, several small problems in one launch (batched or grouped calls).
3. Run independent kernels side by side: streams, or branches of a CUDA graph.

When it is wrong

A step that is sequential by nature cannot use more blocks. A few blocks may be enough to keep the memory
busy. On a slice of a GPU (MIG) there are fewer SMs than the trace says.
"""

import polars as pl

from nsys_triage import units
from nsys_triage.rules import kernel_advice as ka
from nsys_triage.rules.base import Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context


def check(context: Context) -> Outcome:
    """Fires where the SMs that get no block could give back the threshold at most."""
    hidden = ka.unknown_gpu(context)
    if hidden is not None:
        return hidden
    small = context.m.launch_shapes.filter(
        (pl.col("blocks") < pl.col("sm_count")) & (pl.col("median_ns") >= context.thresholds["length"])
    )
    rows = ka.with_gain(small, pl.col("alone_ns") * (1 - pl.col("blocks") / pl.col("sm_count")))
    time_share = ka.share_of_span(context, ka.total(rows, "alone_ns"))
    gain_ns = ka.total(rows, "gain_ns")
    if ka.share_of_span(context, gain_ns) < context.thresholds["share"]:
        return Passed(f"Long kernels with fewer blocks than SMs take {units.share(time_share)} of the time.")
    row = ka.first(rows)
    return Found(
        title=f"Kernels with fewer blocks than the GPU has SMs take {units.share(time_share)} of the time",
        stake=context.stake(
            gain_ns,
            "high: the same work spread over all SMs; low: it cannot be spread further",
            low_ns=0,
        ),
        causes=("compute",),
        evidence=(
            *ka.kernel_numbers(context, rows, row),
            number("its blocks", row["blocks"], "count"),
            number("SMs of the GPU", row["sm_count"], "count"),
        ),
        actions=(
            context.wording(
                pytorch=(
                    f"Give {ka.short_name(row)} more work at a time: a larger batch, or batched calls (torch.bmm, "
                    "vmap, foreach) in place of many small ones."
                ),
                jax=(
                    f"Give {ka.short_name(row)} more work at a time: a larger batch, or vmap over what is now a "
                    "loop."
                ),
                cuda=(
                    f"Launch more blocks of {ka.short_name(row)}: smaller tiles, a split of long sums, or several "
                    "problems in one launch."
                ),
            ),
            "Run independent kernels side by side on several streams, or as branches of a CUDA graph.",
            ka.ncu_action(context, row, "See how many SMs are active and what limits the others"),
        ),
        caveat=(
            "A step that is sequential by nature cannot use more blocks, and a few blocks may be enough to keep "
            "the memory busy."
        ),
        confidence="medium",
        where=ka.longest_launch(row),
        gpu=ka.one_of_several(context, rows),
    )


RULE = Rule(
    id="small-grid",
    title="Kernels with fewer blocks than SMs",
    check=check,
    page=page_of(__doc__),
    needs=("kernels",),
    thresholds={"share": ka.GAIN_THRESHOLD, "length": ka.LONG_KERNEL},
)
