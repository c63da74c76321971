"""While kernels run, a good part of the SMs has no warp at all, as sampled GPU metrics show.

What it means

The sampled counter SMs Active is the share of SMs that have a warp, over all cycles. While a kernel runs it
should be near 100 %. Where it is not, grids are too small for the GPU, end with long tails, or a few blocks
take much longer than the rest.

What to do next

1. See which kernels: small-grid and wave-tail name those whose grid shows it; the longest ones are named
   below.
2. Give kernels more and more even work: larger batches, finer blocks, a queue of work in place of one block
   per item.
3. Run independent kernels side by side on several streams.

When it is wrong

Where kernels are not much longer than the sampling period, samples show the time between them too. On a
slice of a GPU (MIG) the counter may be about the whole GPU.
"""

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.kernel_counters import compute_kernels, kernel_counters
from nsys_triage.rules import kernel_advice as ka
from nsys_triage.rules.base import Found, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context


def check(context: Context) -> Outcome:
    """Fires where SMs without warps while kernels run could give back the threshold."""
    m = context.m
    counters = kernel_counters(m.trace, m.workload, compute_kernels(m.work))
    missing = ka.not_sampled(counters, "sm_active", "SMs Active")
    if missing is not None:
        return missing
    active = {c.gpu: c.means["sm_active"] for c in counters if c.tells and "sm_active" in c.means}
    low = {gpu: share for gpu, share in active.items() if share <= context.thresholds["active"]}
    per_gpu = pl.DataFrame(
        {"gpu": list(low), "active": list(low.values())}, schema={"gpu": pl.UInt16, "active": pl.Float64}
    )
    rows = ka.with_gain(m.launch_shapes.join(per_gpu, on="gpu"), pl.col("alone_ns") * (1 - pl.col("active")))
    least = min(active.values())
    gain_ns = ka.total(rows, "gain_ns")
    if ka.share_of_span(context, gain_ns) < context.thresholds["share"]:
        return Passed(f"SMs have warps {units.share(least)} of the time in which kernels run.")
    row = ka.first(rows)
    return Found(
        title=f"SMs have no warp {units.share(1 - least)} of the time while kernels run",
        stake=context.stake(
            gain_ns,
            "high: the same work spread over all SMs all the time; low: it cannot be spread further",
            low_ns=0,
        ),
        causes=("compute",),
        evidence=(
            number("SMs with a warp while kernels run", least, "share"),
            *ka.kernel_numbers(context, rows, row),
        ),
        actions=(
            (
                "Give the longest kernels more and more even work: larger batches, finer blocks, several problems "
                "in one launch."
            ),
            "Run independent kernels side by side on several streams.",
            ka.ncu_action(context, row, "See how blocks are spread over the SMs"),
        ),
        caveat="Where kernels are not much longer than the sampling period, samples show the time between them too.",
        confidence="medium",
        where=ka.longest_launch(row),
        gpu=ka.one_of_several(context, rows),
    )


RULE = Rule(
    id="sm-underfilled",
    title="SMs without warps while kernels run",
    check=check,
    page=page_of(__doc__),
    needs=("kernels", "gpu_metrics"),
    thresholds={
        "share": ka.GAIN_THRESHOLD,
        "active": Threshold(
            0.7, "share", "of SMs and cycles, at most: tails of ordinary kernels leave more than that"
        ),
    },
)
