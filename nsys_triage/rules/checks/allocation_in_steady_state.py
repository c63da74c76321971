"""Device memory is allocated and freed in the loop.

What it means

cudaMalloc, cudaFree, pinning of host memory and the like take tens of microseconds to milliseconds each, many of them
wait for the GPU to run dry, and the launching thread makes no progress meanwhile. Counted is the idle time while that
thread is in such a call. Allocations from a pool (cudaMallocAsync) are cheap and are not counted.

What to do next

1. Allocate once before the loop and reuse, or allocate from a pool.
2. In a framework: let its caching allocator keep memory, and do not empty its cache in the loop.
3. Watch for sizes that change from step to step: they make a cache miss; allocate the largest size first.

When it is wrong

A first step allocates by necessity; in a short capture that is start-up, and it goes away in a longer one.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.api_names import ALLOCATION
from nsys_triage.metrics.host_activity import api_calls_in, host_spans
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context

_NAMED: Final = 3


def check(context: Context) -> Outcome:
    """Fires where idle time while the launching thread allocates or frees reaches the threshold."""
    share, total_ns = context.share("allocation"), context.total_ns("allocation")
    m = context.m
    calls = m.window.rows(m.workload.calls.filter((pl.col("group") & ALLOCATION) > 0)).height
    if not total_ns or share < context.thresholds["share"]:
        return Passed(
            f"{units.plural(calls, 'call')} that allocate or free memory cost {units.share(share)} of the GPU's time."
        )
    stake = context.cause_stake("allocation")
    once = stake.low_ns * 2 < stake.high_ns
    inside = api_calls_in(m.workload, host_spans(context.pieces_of("allocation"), m.gaps.gaps), ALLOCATION)
    steps = m.window_steps.height
    return Found(
        title=(
            f"Allocating and freeing memory costs {units.share(share)} of the GPU's "
            f"time{', most of it once' if once else ''}"
        ),
        stake=stake,
        causes=("allocation",),
        evidence=(
            number("idle while the launching thread allocates or frees", context.mean_ns(total_ns), "ns"),
            number("gaps in which it does", context.gap_count("allocation"), "count"),
            *(
                number(f"of it in {api} ({units.plural(count, 'call')})", ns, "ns")
                for api, count, ns in inside.head(_NAMED).iter_rows()
            ),
            number("allocating and freeing calls in the window", calls, "count"),
            *((number("of them per step", round(calls / steps, 1), "count"),) if steps else ()),
        ),
        actions=_actions(context, inside["text"].to_list()),
        caveat="The first step allocates by necessity: in a short capture this is start-up.",
        confidence="medium" if once else "high",
        where=context.where("allocation"),
        gpu=context.one_gpu("allocation"),
    )


def _actions(context: Context, apis: list[str]) -> tuple[str, ...]:
    pinning = [api for api in apis[:_NAMED] if "Host" in api]
    found = [
        context.wording(
            pytorch=(
                "Do not call torch.cuda.empty_cache() in the loop, and let no other library allocate there with "
                "cudaMalloc: the caching allocator then makes no such calls."
            ),
            jax=(
                "Keep preallocation on (XLA_PYTHON_CLIENT_PREALLOCATE, XLA_PYTHON_CLIENT_ALLOCATOR not set to "
                "platform)."
            ),
            cuda="Allocate before the loop and reuse the buffers.",
        ),
        context.wording(
            pytorch=(
                "If memory is nearly full or sizes change from step to step: "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and run the largest batch first."
            ),
            jax="If sizes change from step to step, pad them to a few fixed ones.",
            cuda=(
                "Where buffers must come and go, use cudaMallocAsync and cudaFreeAsync from a pool, with "
                "cudaMemPoolAttrReleaseThreshold raised so that it keeps its memory."
            ),
        ),
    ]
    if pinning:
        found.append(
            f"Pin host memory once ({', '.join(pinning)} in the loop), and reuse the pinned buffers."
        )
    return (*found, "Record again and compare: these calls should be gone from the steps.")


RULE = Rule(
    id="allocation-in-steady-state",
    title="Allocation and freeing of memory in the loop",
    check=check,
    page=page_of(__doc__),
    needs=("api",),
    thresholds={"share": CAUSE_THRESHOLD},
)
