"""Thousands of copies under 64 KiB, each of which costs a call and a start.

What it means

A copy takes some microseconds to launch and to start, whatever its size; under 64 KiB that is more than the transfer
itself. Many of them cost time on the GPU while nothing computes, and time on the host that launches them one by one.

What to do next

1. Put values that travel together into one buffer and copy it once; unpack it in a kernel.
2. Keep small tables and indices on the device between steps.
3. Pass a few values as kernel parameters instead of copying them.
4. Replace many copies inside the device by one kernel, or record them in a CUDA graph.

When it is wrong

Where the copies run beside kernels that take longer, they cost nothing, and this does not count them.
"""

from nsys_triage import units
from nsys_triage.metrics import copy_costs as cc
from nsys_triage.result.model import Interval
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context


def check(context: Context) -> Outcome:
    """Fires where there are many small copies and their exposed and launch time reaches the threshold."""
    m = context.m
    copies = cc.all_copies(m.trace, m.workload)
    small = copies.filter(copies["small"] & ~copies["readback"])
    exposed = cc.exposed_ns(m.pieces, small)
    launching = cc.launch_cost_ns(m.pieces, m.gaps.gaps, small["call"], inside=False)
    share = (exposed + launching) / context.span_ns
    inside = m.window.rows(small)
    if share < context.thresholds["share"] or inside.height < context.thresholds["count"]:
        return Passed(
            f"{units.plural(inside.height, 'copy', 'copies')} under 64 KiB cost {units.share(share)} of the time."
        )
    steps = m.window_steps.height
    place = cc.longest_exposed(m.pieces, small)
    evidence = [
        number("copies under 64 KiB, tiny read-backs left out", inside.height, "count"),
        number("their median size", int(inside["bytes"].median() or 0), "bytes"),  # type: ignore[arg-type]
        number("time in which they ran and nothing computed", context.mean_ns(exposed), "ns"),
        number("idle time while the host launched them", context.mean_ns(launching), "ns"),
    ]
    if steps >= 3:
        evidence.append(number("such copies per step", round(inside.height / steps), "count"))
    return Found(
        title=f"{units.count(inside.height)} copies under 64 KiB cost {units.share(share)} of the time",
        stake=context.stake(
            exposed + launching,
            "high: they are joined into a few; low: half of their time, since some have to stay apart",
        ),
        causes=("copy", "launch"),
        evidence=tuple(evidence),
        actions=_actions(context),
        caveat="Copies that depend on each other's results cannot be joined.",
        where=Interval(*place) if place else context.where("launch"),
        gpu=context.one_gpu("copy", "launch"),
    )


def _actions(context: Context) -> tuple[str, ...]:
    return (
        context.wording(
            pytorch="Stack small tensors on the host and move them in one .to(); build index and mask tensors"
            " on the"
            " device; replace loops over tensors by torch._foreach operations.",
            jax="Pass one array (or a donated pytree of few arrays) per step instead of many small ones.",
            cuda="Put the values into one pinned buffer and copy it once, or pass them as kernel parameters.",
        ),
        "Keep what does not change on the device between steps.",
        "Copies that stay the same each step can be recorded in a CUDA graph and launched in one call.",
    )


RULE = Rule(
    id="many-small-copies",
    title="Many small copies",
    check=check,
    page=page_of(__doc__),
    needs=("memcpys",),
    thresholds={
        "share": CAUSE_THRESHOLD,
        "count": Threshold(1_000, "count", "copies in the window: fewer are not worth joining"),
    },
)
