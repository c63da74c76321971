"""Kernels end with a wave of blocks that fills only part of the GPU.

What it means

All SMs together hold so many blocks of a kernel at a time: a wave. A grid of few waves whose last one is
nearly empty keeps most SMs waiting for the last blocks. The loss is counted twice, by waves of resident
blocks and by blocks per SM, and the smaller of the two is taken: blocks that share an SM speed up when
their neighbours are done. Kernels that stream through memory are left out: the blocks that are left get the
bandwidth of those that are done.

What to do next

1. Change the size of the problem so that the blocks fill whole waves: batch, sequence length, tile or
   vocabulary size.
2. Change the tile: smaller tiles make more and shorter blocks. Libraries choose by themselves: let them
   search (cuBLASLt heuristics, torch.compile with mode="max-autotune"), or use kernels with split-K or
   stream-K.
3. Let the next kernel start early: independent work on another stream fills the tail.

When it is wrong

Blocks of one kernel do not all take equally long, and then there are no waves. A kernel that takes its work
from a queue (persistent, stream-K) has no tail even if its grid suggests one.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.rules import kernel_advice as ka
from nsys_triage.rules.base import Found, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context

_NOT_STREAMING: Final = ("matmul", "attention", "convolution", "other")


def _tail_share() -> pl.Expr:
    """How much of a kernel's time the blocks of its last wave leave unused: the lesser of two ways to count it.

    With w waves the time is that of ceil(w): 1 - w / ceil(w) of it is lost. The same with b blocks per SM.
    """
    waves, per_sm = pl.col("waves"), pl.col("blocks") / pl.col("sm_count")
    return pl.min_horizontal(1 - waves / waves.ceil(), 1 - per_sm / per_sm.ceil())


def check(context: Context) -> Outcome:
    """Fires where nearly empty last waves of few could give back the threshold at most."""
    hidden = ka.unknown_gpu(context)
    if hidden is not None:
        return hidden
    tailed = context.m.launch_shapes.filter(
        pl.col("kernel_class").is_in(_NOT_STREAMING)
        & (pl.col("blocks") > pl.col("sm_count"))
        & (pl.col("waves") <= context.thresholds["waves"])
        & (pl.col("last_wave_share") <= context.thresholds["fill"])
        & (pl.col("median_ns") >= context.thresholds["length"])
    )
    rows = ka.with_gain(tailed, pl.col("alone_ns") * _tail_share())
    time_share = ka.share_of_span(context, ka.total(rows, "alone_ns"))
    gain_ns = ka.total(rows, "gain_ns")
    if ka.share_of_span(context, gain_ns) < context.thresholds["share"]:
        return Passed(
            f"Nearly empty last waves of kernels leave {units.share(ka.share_of_span(context, gain_ns))} of the "
            "time unused."
        )
    row = ka.first(rows)
    return Found(
        title=f"Kernels that end with a nearly empty wave of blocks take {units.share(time_share)} of the time",
        stake=context.stake(
            gain_ns,
            "high: time times the unused part of the waves; low: blocks are not in step and there is no tail",
            low_ns=0,
        ),
        causes=("compute",),
        evidence=(
            *ka.kernel_numbers(context, rows, row),
            number("its blocks", row["blocks"], "count"),
            number("blocks that all SMs hold at a time", row["blocks_per_sm"] * row["sm_count"], "count"),
            number("how full its last wave is", row["last_wave_share"], "share"),
        ),
        actions=(
            context.wording(
                pytorch=(
                    "Try sizes (batch, sequence length, padded features) with which the blocks fill whole waves, "
                    "and torch.compile with mode='max-autotune' for other tiles."
                ),
                jax=(
                    "Try sizes (batch, sequence length, padded features) with which the blocks fill whole waves; "
                    "XLA's autotuner then chooses other tiles."
                ),
                cuda=(
                    f"Choose the tile or the size of the problem so that the blocks of {ka.short_name(row)} fill "
                    "whole waves, or use split-K or stream-K."
                ),
            ),
            "Put independent work on another stream, where it fills the tail.",
            ka.ncu_action(context, row, "See the tail effect that Nsight Compute estimates"),
        ),
        caveat=(
            "Blocks that do not take equally long have no waves, and a persistent kernel has no tail even if its "
            "grid suggests one."
        ),
        confidence="low",
        where=ka.longest_launch(row),
        gpu=ka.one_of_several(context, rows),
    )


RULE = Rule(
    id="wave-tail",
    title="Last wave of blocks nearly empty",
    check=check,
    page=page_of(__doc__),
    needs=("kernels",),
    thresholds={
        "share": ka.GAIN_THRESHOLD,
        "waves": Threshold(
            4, "count", "at most: after more waves blocks have drifted apart, and the last is a small part"
        ),
        "fill": Threshold(0.5, "share", "of the last wave, at most: a fuller one leaves little unused"),
        "length": ka.LONG_KERNEL,
    },
)
