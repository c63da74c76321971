"""The GPU copies, and nothing computes meanwhile.

What it means

Copies and memsets run while no kernel does. A utilisation counter calls such a GPU busy, and it is, but not with
arithmetic. Either the copies are not needed so often, or they could run beside the kernels and do not.

What to do next

1. See which copies they are (kind, size, how often): the largest kind is named below.
2. Copy less: keep weights and buffers on the device, copy them in a smaller type, join many copies into one.
3. Overlap: a stream of its own, pinned memory, and the copy for the next step or layer while this one computes.
4. Between GPUs: use peer access instead of going through the host.

When it is wrong

Where the data are larger than the device memory, weights have to be fetched; then the link is the limit, and only
fewer bytes help. Overlap cannot hide more copying than there is computing.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics import copy_costs as cc
from nsys_triage.metrics.copies import KINDS
from nsys_triage.result.model import Evidence, Interval
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context

_UPLOAD_SHARE: Final = 0.9
_ADVICE: Final = {
    "host_to_device": (
        "Keep on the device what is copied again and again (weights, tables), or copy it in a smaller type.",
        "Copy what the next step or layer needs on a stream of its own while this one computes, from pinned memory.",
    ),
    "device_to_host": (
        "Copy only what the host needs, and results of step n while step n + 1 computes, into pinned memory.",
        "Checkpoint from a second buffer or another thread, so that computing goes on.",
    ),
    "peer_to_peer": ("Exchange with the neighbour on a stream of its own while the inner part computes.",),
    "memset": (
        "Clear memory less often, or in the kernel that writes it; one cudaMemsetAsync for all of a step's buffers.",
    ),
    "device_to_device": (
        "Avoid copies inside the device: write kernels' results where they are needed, fuse, use views and strides.",
    ),
}


def check(context: Context) -> Outcome:
    """Fires where exposed copies and memsets, without migrations of unified memory, reach the threshold."""
    m = context.m
    copies = cc.all_copies(m.trace, m.workload)
    asked = copies.filter(~copies["migration"])
    exposed, fills = cc.exposed_ns(m.pieces, asked), context.total_ns("memset")
    share = (exposed + fills) / context.span_ns
    if share < context.thresholds["share"]:
        return Passed(f"Copies and memsets take {units.share(share)} of the time while nothing computes.")
    kind, _ = _largest_kind(context, asked)
    total = exposed + fills
    pageable = cc.exposed_ns(m.pieces, asked.filter("pageable")) / total
    upload = cc.before_the_work_share(m.pieces, asked) >= _UPLOAD_SHARE
    place = cc.longest_exposed(m.pieces, asked)
    return Found(
        title=f"The GPU copies and nothing computes {units.share(share)} of the time"
        + (", nearly all of it before its work begins" if upload else ""),
        stake=context.stake(
            total,
            "high: these copies are gone, or hidden where there is enough to compute; low: half of their bytes are",
        ),
        causes=("copy", "memset") if fills else ("copy",),
        evidence=_evidence(context, asked, exposed, fills, pageable),
        actions=_actions(context, kind, mostly_pageable=pageable >= 0.5),
        caveat="An upload before the work begins costs a longer run the same once."
        if upload
        else "Data that do not fit into device memory have to be fetched; then only fewer bytes or a faster link help.",
        where=Interval(*place) if place else context.where("memset"),
        gpu=context.one_gpu("copy", "memset"),
    )


def _evidence(
    context: Context, asked: pl.DataFrame, exposed: int, fills: int, pageable: float
) -> tuple[Evidence, ...]:
    kind, kind_ns = _largest_kind(context, asked)
    hideable = cc.hideable_ns(context.m.pieces, asked)
    busy = sum(gpu.busy_ns for gpu in context.gpus)
    return (
        number("busy, as a utilisation counter has it", busy / context.span_ns, "share"),
        number("computing", context.share("compute", "graph"), "share"),
        number("exposed copies", context.mean_ns(exposed), "ns"),
        number("exposed memsets", context.mean_ns(fills), "ns"),
        number("kind of copy that is exposed longest", kind.replace("_", " "), "text"),
        number("exposed time of that kind", context.mean_ns(kind_ns), "ns"),
        number("share of all this that is pageable memory", pageable, "share"),
        number("what perfect overlap with the kernels would hide", context.mean_ns(hideable), "ns"),
    )


def _largest_kind(context: Context, copies: pl.DataFrame) -> tuple[str, int]:
    """The kind of copy with the most exposed time, and that time (ns, summed over the GPUs)."""
    times = [
        (cc.exposed_ns(context.m.pieces, copies.filter(copies["copy_kind"] == code)), name)
        for code, name in KINDS.items()
    ]
    ns, name = max(times, key=lambda item: (item[0], item[1]))
    return (name, ns) if ns else ("memset", 0)


def _actions(context: Context, kind: str, *, mostly_pageable: bool) -> tuple[str, ...]:
    advice = _ADVICE.get(kind, _ADVICE["host_to_device"])
    if mostly_pageable:
        return ("Most of it is pageable memory: pin that first, and record again.", advice[0])
    framework = context.wording(
        pytorch="In PyTorch: pin_memory=True and .to(device, non_blocking=True) on a side stream; look for .to(),"
        " .cpu(),"
        " .clone(), .contiguous() and CPU offload in the step.",
        jax="In JAX: keep arrays on the device between steps, donate buffers (donate_argnums), and call"
        " jax.device_put for"
        " the next batch early.",
        cuda="In CUDA: cudaMemcpyAsync from cudaMallocHost memory on its own stream, ordered with cudaStreamWaitEvent.",
    )
    return (*advice, framework)


RULE = Rule(
    id="copy-bound",
    title="Busy with copies, not with arithmetic",
    check=check,
    page=page_of(__doc__),
    thresholds={"share": CAUSE_THRESHOLD},
)
