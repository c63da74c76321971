"""Copies from or to pageable host memory, and what they cost.

What it means

A copy from memory that is not pinned goes through a small pinned buffer of the driver, piece by piece: it reaches a
fraction of what the link can do, the call holds the host until the data are staged, and the copy cannot run beside
other work as a pinned one can. What counts is not how many bytes are pageable but how long such copies run while
nothing computes, and how long the GPU idles because the host was held in them.

What to do next

1. Allocate the host side pinned (cudaMallocHost, pin_memory=True) and reuse it: pinning memory is slow itself.
2. Then copy without blocking (cudaMemcpyAsync on a stream of its own, non_blocking=True), so that copies overlap with
   kernels.
3. If the copies are the upload before the work begins, they are paid once: look at the steady state instead.

When it is wrong

Data that must first be copied on the host into pinned memory cost that copy; and too much pinned memory starves the
operating system. Where the copies are a one-time upload, a longer run pays the same once.
"""

from typing import Final

from nsys_triage import units
from nsys_triage.metrics import copy_costs as cc
from nsys_triage.result.model import Interval
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context

_HOST_KINDS: Final = ("host_to_device", "device_to_host", "host_to_array", "array_to_host")
_UPLOAD_SHARE: Final = 0.9


def check(context: Context) -> Outcome:
    """Fires where exposed pageable copies and the waits in their calls reach the threshold."""
    m = context.m
    copies = cc.all_copies(m.trace, m.workload).filter("pageable")
    exposed = cc.exposed_ns(m.pieces, copies)
    waited = cc.wait_cost_ns(m.pieces, copies.filter(~copies["readback"])["call"])
    share = (exposed + waited) / context.span_ns
    host = [kind for kind in m.copies.kinds if kind.kind in _HOST_KINDS]
    pageable = sum(kind.pageable_bytes for kind in host)
    of_all = pageable / max(1, sum(kind.bytes for kind in host))
    if share < context.thresholds["share"]:
        return Passed(
            f"{units.share(of_all)} of the bytes between host and device are pageable"
            f" ({units.size(pageable)}); those copies cost {units.share(share)} of the time."
        )
    upload = cc.before_the_work_share(m.pieces, copies) >= _UPLOAD_SHARE
    rate = cc.rate_of(copies.filter(copies["bytes"] >= cc.LARGE_BYTES))
    saved, basis = _saved(context, exposed, rate)
    place = cc.longest_exposed(m.pieces, copies)
    when = ", nearly all of it before the GPU's work begins" if upload else ""
    evidence = [
        number("exposed time of pageable copies", context.mean_ns(exposed), "ns"),
        number("idle time because the host was held in such copies", context.mean_ns(waited), "ns"),
        number("pageable bytes between host and device", pageable, "bytes"),
        number("share of those bytes that is pageable", of_all, "share"),
    ]
    if rate is not None:
        evidence.append(number("rate of large pageable copies", rate, "bytes_per_s"))
    return Found(
        title=f"Copies of pageable memory cost {units.share(share)} of the time{when}",
        stake=context.stake(exposed + waited, basis, saved),
        causes=("copy", "host_sync") if waited else ("copy",),
        evidence=tuple(evidence),
        actions=_actions(context, upload=upload),
        caveat="A one-time upload costs a longer run the same once."
        if upload
        else "Data that first have to be copied into pinned memory cost that copy on the host.",
        where=Interval(*place) if place else context.where("host_sync"),
        gpu=context.one_gpu("copy"),
    )


def _saved(context: Context, exposed_ns: int, rate: float | None) -> tuple[float, str]:
    """What copying the same bytes from pinned memory would save at least, and the basis in words."""
    link, name = context.m.copies.link_bytes_per_s, context.m.copies.link_name
    high = "high: such copies are hidden behind kernels and hold the host no more"
    if link is None or name is None or rate is None:
        return 0, f"{high}; low: nothing, since the link of the GPU is not known"
    practical = cc.practical_rate(name, link)
    return (
        exposed_ns * max(0.0, 1 - rate / practical),
        f"{high}; low: the same copies run at what pinned memory reaches on {name}, {units.rate(practical)}",
    )


def _actions(context: Context, *, upload: bool) -> tuple[str, ...]:
    pin = context.wording(
        pytorch="Set pin_memory=True in the DataLoader (or tensor.pin_memory() once, and reuse it) and copy with"
        " .to(device, non_blocking=True).",
        jax="Keep two batches on the device ahead of the step (jax.device_put before it is needed), so that the"
        " staging of pageable arrays is hidden.",
        cuda="Allocate the host side with cudaMallocHost once, reuse it, and copy with cudaMemcpyAsync on a stream"
        " of its own.",
    )
    if not upload:
        return (
            pin,
            "Record again: the rate should rise to that of the link, and copies should overlap with kernels.",
        )
    return (
        "If only the steady state matters, leave the upload out: --window auto, or nsys profile"
        " --capture-range=cudaProfilerApi with cudaProfilerStart after it.",
        context.wording(
            pytorch="To start faster, load weights straight onto the device"
            " (torch.load(map_location='cuda', mmap=True), safetensors).",
            jax="To start faster, restore the checkpoint straight onto the devices.",
            cuda="To start faster, read into pinned memory and copy in chunks while the next one is read.",
        ),
    )


RULE = Rule(
    id="pageable-copies",
    title="Copies of pageable memory",
    check=check,
    page=page_of(__doc__),
    needs=("memcpys",),
    thresholds={"share": CAUSE_THRESHOLD},
)
