"""The host reads a few bytes back from the GPU and waits for them.

What it means

`loss.item()`, `print(loss)`, a convergence test: a copy of at most 64 bytes to the host, and the host waits until the
GPU has done everything before it. What the host does next is then late, and the GPU has nothing to do. Stated is what
these waits cost: the idle time that follows them, not the time that the host spends in them.

What to do next

1. Find the lines: .item(), .cpu(), .tolist(), float(x), bool(x), print of a tensor, logging of the loss.
2. Keep the value on the device and read it every n-th step, or at the end.
3. If it is needed each step, start an asynchronous copy to pinned memory and read it one step later.

When it is wrong

Where the value decides what happens next (a convergence test, a dynamic shape) the wait can be made rarer or one step
late, but not removed.
"""

from typing import Final

from nsys_triage import units
from nsys_triage.metrics.waits import readback_waits
from nsys_triage.result.model import Interval
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context, record_line

_KEPT: Final = 0.9
_BASIS: Final = "high: none of these waits is left; low: the value is read in every tenth step"


def check(context: Context) -> Outcome:
    """Fires where tiny read-backs recur and the idle time that waiting for them costs reaches the threshold."""
    m = context.m
    readbacks = m.sync.readbacks
    cost_ns = readbacks.cost_ns or 0
    share = cost_ns / context.span_ns if context.span_ns else 0.0
    if not cost_ns or readbacks.count < context.thresholds["count"] or share < context.thresholds["share"]:
        return Passed(
            f"{units.plural(readbacks.count, 'tiny read-back')} that the host waits for cost "
            f"{units.share(share)} of the time."
        )
    per_step = readbacks.per_step
    often = f"{units.ratio(per_step)} per step" if per_step else "in all"
    waits = readback_waits(m.trace, m.workload, m.pieces, m.window)
    return Found(
        title=(
            f"Reading small values back ({units.plural(readbacks.count, 'time')}, {often}) costs "
            f"{units.share(share)} of the GPU's time"
        ),
        stake=context.stake(cost_ns, _BASIS, _KEPT * cost_ns),
        causes=("host_sync",),
        evidence=(
            number("idle after waits for tiny read-backs", context.mean_ns(cost_ns), "ns"),
            number("read-backs of at most 64 bytes that the host waits for", readbacks.count, "count"),
            *((number("of them per step", per_step, "count"),) if per_step else ()),
            number("call that waits", ", ".join(waits.apis), "text"),
        ),
        actions=(
            context.wording(
                pytorch=(
                    "Look for .item(), .cpu(), .tolist(), float(loss), print(loss), `if tensor:` and progress bars "
                    "that show the loss; sum such values on the device and read them every n-th step."
                ),
                jax=(
                    "Look for float(x), x.item(), np.asarray(x) and print in the step; keep metrics on the device "
                    "and fetch them every n-th step."
                ),
                cuda=(
                    "Keep the value on the device (test convergence there, or every n-th iteration) instead of "
                    "copying it back in each."
                ),
            ),
            context.wording(
                pytorch=(
                    "If a value is needed each step: loss.to('cpu', non_blocking=True) into pinned memory, and use "
                    "it one step later."
                ),
                jax="If a value is needed each step, fetch the one of the step before: it is ready then.",
                cuda=(
                    "If it is needed each time: cudaMemcpyAsync to pinned memory with an event, and read it one "
                    "iteration later."
                ),
            ),
            f"To see the lines of code that wait: {record_line('--cudabacktrace=sync')}",
        ),
        caveat="A value that decides what happens next can be read later or less often, but not never.",
        where=Interval(start_ns=waits.where[0], end_ns=waits.where[1])
        if waits.where
        else context.where("host_sync"),
        gpu=context.one_gpu("host_sync"),
    )


RULE = Rule(
    id="readback-each-step",
    title="Tiny read-backs that the host waits for",
    check=check,
    page=page_of(__doc__),
    needs=("api", "memcpys"),
    thresholds={
        "share": CAUSE_THRESHOLD,
        "count": Threshold(3, "count", "read-backs in the window: fewer are not a habit of the loop"),
    },
)
