"""Work was queued in good time, and the GPU waited all the same.

What it means

The launch call had ended before the GPU ran dry, so the host is not to blame: the work had to wait for an event of
another stream, for another GPU, for another process that shares the GPU, or for the GPU itself, which needs a
microsecond or more from one operation of a stream to the next. What each gap waited for is told from the operation
that ended as it began, from the stream's recorded waits for events, and from what ended on other GPUs just before.

What to do next

1. Another GPU or an event: see whether the wait is needed, and let independent work run on another stream meanwhile.
2. Another process: time slices cost about 100 us each; use MPS, or give each process its own GPU.
3. The same stream: fewer and larger kernels, or a CUDA graph, make the time between them shorter.

When it is wrong

Waits for host functions, for memory operations and for events of other processes are not in the recording, and show as
one of the kinds above.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.dependencies import (
    EVENT,
    OTHER_GPU,
    OTHER_PROCESS,
    OTHER_STREAM,
    SAME_STREAM,
    queued_gaps,
)
from nsys_triage.result.model import Evidence
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context

_BASIS: Final = (
    "high: none of these waits is left; low: none of them could be avoided, if the program needs the order"
)
_ADVICE: Final = {
    OTHER_GPU: (
        "See what the other GPU does until then: copy or exchange earlier, in pieces, and compute what does not "
        "depend on it meanwhile."
    ),
    EVENT: (
        "Check the events between these streams (cudaEventRecord, cudaStreamWaitEvent): record them as early as "
        "possible, wait as late as possible."
    ),
    OTHER_PROCESS: (
        "Run the processes that share this GPU under MPS (nvidia-cuda-mps-control -d), or give each its own GPU: "
        "switching between processes costs about 100 us."
    ),
    OTHER_STREAM: (
        "Check the order between these streams; streams that are not created with cudaStreamNonBlocking wait for "
        "the default stream."
    ),
    SAME_STREAM: (
        "Make fewer, larger kernels, or launch them as a CUDA graph: the time between operations of one stream is "
        "the GPU's own."
    ),
}


def check(context: Context) -> Outcome:
    """Fires where idle time although work was queued reaches the threshold."""
    share, total_ns = context.share("queued"), context.total_ns("queued")
    if not total_ns or share < context.thresholds["share"]:
        return Passed(f"The GPU idles {units.share(share)} of the time although work is queued.")
    m = context.m
    gaps = queued_gaps(m.trace, m.workload, m.gaps, m.pieces)
    kinds = (
        gaps.group_by("kind")
        .agg(pl.col("ns").sum().alias("total_ns"), pl.len().alias("count"))
        .sort(["total_ns", "kind"], descending=[True, False])
    )
    most = kinds["kind"][0]
    return Found(
        title=(
            f"The GPU idles {units.share(share)} of the time although work is queued, mostly to wait for "
            f"{_waits_for(most)}"
        ),
        stake=context.stake(total_ns, _BASIS, 0),
        causes=("queued",),
        evidence=(
            number("idle although work is queued", context.mean_ns(total_ns), "ns"),
            number("gaps in which it is", gaps.height, "count"),
            *(
                number(f"waiting for {kind} ({units.plural(count, 'gap')})", context.mean_ns(ns), "ns")
                for kind, ns, count in kinds.iter_rows()
            ),
            *_streams(context, gaps.filter(pl.col("kind") == most), most),
        ),
        actions=(
            *(_ADVICE[kind] for kind in kinds["kind"]),
            (
                "Name the streams (nvtxNameCudaStreamA), and open the gap below: the rows of the streams show what "
                "ends as it ends."
            ),
        ),
        caveat="Waits for host functions and for events of other processes are not recorded, and show as another kind.",
        confidence="high" if most in (OTHER_PROCESS, OTHER_GPU) else "medium",
        where=context.where("queued"),
        gpu=context.one_gpu("queued"),
    )


def _waits_for(kind: str) -> str:
    return "the operation before it on the same stream to make way" if kind == SAME_STREAM else kind


def _streams(context: Context, gaps: pl.DataFrame, kind: str) -> tuple[Evidence, ...]:
    """Of the most frequent kind: which stream waited for which, and how long as a rule."""
    pair = (
        gaps.group_by("gpu", "stream", "before", "other_gpu")
        .agg(pl.col("ns").sum(), pl.col("ns").median().alias("median_ns"))
        .sort(["ns", "gpu", "stream", "before", "other_gpu"], descending=[True, False, False, False, False])
    )
    gpu, stream, before, other, _, median_ns = pair.row(0)
    ids = [identity.id for identity in context.m.workload.gpus.all]
    if kind == OTHER_GPU:
        order = f"stream {stream} of {ids[gpu]} after {ids[other]}"
    elif kind == SAME_STREAM:
        order = f"stream {stream}"
    else:
        order = f"stream {stream} after stream {before}"
    return (number("most of it", order, "text"), number("median wait there", float(median_ns), "ns"))


RULE = Rule(
    id="stream-dependency",
    title="Idle although work is queued",
    check=check,
    page=page_of(__doc__),
    needs=("api",),
    thresholds={"share": CAUSE_THRESHOLD},
)
