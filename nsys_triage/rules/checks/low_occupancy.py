"""Long kernels keep few warps on each SM: registers, shared memory or the block size leave no room for more.

What it means

An SM hides the latency of memory and arithmetic by switching between warps. A kernel whose registers per
thread, shared memory per block or block size let only a quarter of the warps or fewer be resident has
little to switch to. The occupancy here is the theoretical one, from the launch configuration and the limits
of the GPU. Library kernels for matrix products, convolutions and attention are left out: they run with few
warps by design.

What to do next

1. Profile the kernel with Nsight Compute (the line is below) and look at the warp stalls: if they are
   long-scoreboard stalls and neither memory nor arithmetic is near its peak, more warps help.
2. Limited by registers: __launch_bounds__ or --maxrregcount, smaller unrolling, fewer live values. Watch
   for spills.
3. Limited by shared memory: smaller tiles or fewer pipeline stages.
4. Limited by the number of blocks or by warps: larger blocks (128 to 256 threads), sizes that divide the
   limit of the SM.

When it is wrong

A kernel with enough independent work in each thread runs at full speed with few warps, and one that is
limited by memory bandwidth gains nothing. Then a lower register count makes it slower. The high end of the
stake is what twice to several times the warps could give at most, not a forecast.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.rules import kernel_advice as ka
from nsys_triage.rules.base import Found, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context

_BY_DESIGN: Final = ("matmul", "attention", "convolution")
_ENOUGH: Final = 0.5  # occupancy beyond which more warps rarely help (CUDA C++ best practices guide, 11.1)
_LIMITED: Final = {
    "registers": "Limit registers (__launch_bounds__, --maxrregcount) or keep fewer values live, and watch for spills",
    "shared memory": "Use smaller tiles or fewer pipeline stages, so that more blocks fit into an SM",
    "blocks": "Launch larger blocks (128 to 256 threads): the SM holds no more blocks than it has now",
    "warps": "Choose a block size that divides the warps an SM can hold",
}


def check(context: Context) -> Outcome:
    """Fires where long kernels with low theoretical occupancy could give back the threshold at most."""
    hidden = ka.unknown_gpu(context)
    if hidden is not None:
        return hidden
    low = context.m.launch_shapes.filter(
        ~pl.col("kernel_class").is_in(_BY_DESIGN)
        & (pl.col("occupancy_share") <= context.thresholds["occupancy"])
        & (pl.col("waves") >= 1)  # with less, it is the grid that is small
        & (pl.col("median_ns") >= context.thresholds["length"])
    )
    rows = ka.with_gain(low, pl.col("alone_ns") * (1 - pl.col("occupancy_share") / _ENOUGH))
    time_share = ka.share_of_span(context, ka.total(rows, "alone_ns"))
    gain_ns = ka.total(rows, "gain_ns")
    if ka.share_of_span(context, gain_ns) < context.thresholds["share"]:
        return Passed(f"Long kernels with few warps per SM take {units.share(time_share)} of the time.")
    row = ka.first(rows)
    return Found(
        title=f"Kernels with few warps on each SM take {units.share(time_share)} of the time",
        stake=context.stake(
            gain_ns,
            (
                "high: their speed grows with the warps up to an occupancy of one half; low: they have work enough "
                "in each thread"
            ),
            low_ns=0,
        ),
        causes=("compute",),
        evidence=(
            *ka.kernel_numbers(context, rows, row),
            number("its theoretical occupancy", row["occupancy_share"], "share"),
            number("its registers per thread", row["registers"], "count"),
            number(
                "its shared memory per block",
                row["static_shared_bytes"] + row["dynamic_shared_bytes"],
                "bytes",
            ),
            number("its occupancy is limited by", row["limited_by"], "text"),
        ),
        actions=(
            ka.ncu_action(context, row, "See what its warps wait for, before changing anything"),
            f"{_LIMITED[row['limited_by']]}; then record again and compare.",
        ),
        caveat=(
            "A kernel with enough independent work in each thread, or at the limit of memory bandwidth, gains "
            "nothing from more warps."
        ),
        confidence="low",
        where=ka.longest_launch(row),
        gpu=ka.one_of_several(context, rows),
    )


RULE = Rule(
    id="low-occupancy",
    title="Long kernels with few warps on each SM",
    check=check,
    page=page_of(__doc__),
    needs=("kernels",),
    thresholds={
        "share": ka.GAIN_THRESHOLD,
        "occupancy": Threshold(
            0.25, "share", "of the warps an SM can hold: with a quarter or less, latency is hard to hide"
        ),
        "length": ka.LONG_KERNEL,
    },
)
