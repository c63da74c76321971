"""Many kernels are so short that the GPU idles between them.

What it means

A kernel under 10 us is over before the host has launched the next one, and even where the next one is queued, the GPU
needs a microsecond or so to go on. Counted here is only the idle time between two such kernels. Many small kernels in
a busy trace are nothing: they cost what they compute.

What to do next

1. Look at the kernels named below: chains of elementwise kernels and optimizer updates are the easiest to fuse.
2. Fuse them (torch.compile, jit, a hand-written kernel), or use library functions that do several steps at once.
3. Give each kernel more to do (a larger batch, several problems at once).
4. What must stay small goes into a CUDA graph.

When it is wrong

Where the same kernels get more work in production (a longer sequence, a larger grid), they are not small there. Record
with the sizes that matter.
"""

from typing import Final

from nsys_triage import units
from nsys_triage.metrics.small_gaps import small_gaps
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context

_NAMED: Final = 3
_BASIS: Final = (
    "high: no idle time between small kernels is left; low: they are fused in pairs, so half of it is"
)


def check(context: Context) -> Outcome:
    """Fires where most kernels are small and the idle time between small kernels reaches the threshold."""
    m = context.m
    small, small_time = m.kernels.small_share or 0.0, m.kernels.small_time_share or 0.0
    found = small_gaps(m.trace, m.workload, m.gaps, m.pieces, m.work)
    share = found.idle_ns / context.span_ns if context.span_ns else 0.0
    if not found.gaps or small < context.thresholds["small"] or share < context.thresholds["share"]:
        return Passed(
            f"{units.share(small)} of the kernels are under 10 us ({units.share(small_time)} of kernel time);"
            f" the GPU idles between such kernels {units.share(share)} of the time."
        )
    named = found.kernels.head(_NAMED)
    return Found(
        title=(
            f"{units.share(small)} of the kernels run under 10 us, and the GPU idles between them "
            f"{units.share(share)} of the time"
        ),
        stake=context.stake(found.idle_ns, _BASIS, found.idle_ns / 2),
        causes=("launch", "queued"),
        evidence=(
            number("idle between two small kernels", context.mean_ns(found.idle_ns), "ns"),
            number("gaps between them", found.gaps, "count"),
            number("mean length of such a gap", found.idle_ns // found.gaps, "ns"),
            number("median kernel", m.kernels.p50_ns or 0, "ns"),
            number("kernel time in small kernels", small_time, "share"),
            *(number(f"small kernels of {name}", count, "count") for name, count, _ in named.iter_rows()),
        ),
        actions=(
            f"Fuse the most frequent ones first: {', '.join(named['own_name'].to_list())}.",
            context.wording(
                pytorch=(
                    "torch.compile fuses chains of elementwise operations; optimizers with fused=True or "
                    "foreach=True update all parameters in a few kernels."
                ),
                jax="Bring neighbouring operations under one jax.jit, so that XLA can fuse them.",
                cuda=(
                    "Merge kernels that run one after the other on the same data, and batch independent small "
                    "problems."
                ),
            ),
            "Give each kernel more work: a larger batch, several sequences or systems at once.",
            "Put what must stay small into a CUDA graph, then record again and compare.",
        ),
        caveat="With the sizes of production the same kernels may not be small: record with those.",
        where=context.where("launch", "queued"),
        gpu=context.one_gpu("launch", "queued"),
    )


RULE = Rule(
    id="small-kernels",
    title="Small kernels with idle time between them",
    check=check,
    page=page_of(__doc__),
    needs=("kernels", "api"),
    thresholds={
        "share": CAUSE_THRESHOLD,
        "small": Threshold(
            0.5,
            "share",
            "of all kernels under 10 us: with fewer, small kernels are not what the job is made of",
        ),
    },
)
