"""The clocks of CPU and GPU do not fit, so idle time cannot be explained.

What it means

Device work that starts before the call that launched it shows that the times of the two clocks were not brought
together rightly. How long the GPU was busy still holds; what the host did in a gap does not.

What to do next

1. Record again, with the newest nsys and driver.
2. On a virtual machine, see that the time stamp counter of the host is passed through.

When it is wrong

A few operations may start some microseconds early within the accuracy of the clocks; only more than 5 % count.
"""

from nsys_triage import units
from nsys_triage.metrics.gaps import clock_faults
from nsys_triage.metrics.unexplained import unexplained_time
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, NotRun, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context, record_line


def check(context: Context) -> Outcome:
    """Fires where the trace has a clock fault and the idle time that it leaves unexplained reaches the threshold."""
    m = context.m
    faults, matched = clock_faults(m.workload)
    if not matched:
        return NotRun("device work with its launch call", "--trace=cuda")
    unknown = unexplained_time(m.pieces, m.gaps).clock_ns if m.gaps.clock_fault else 0
    share = unknown / context.span_ns
    if share < context.thresholds["share"]:
        return Passed(
            f"{units.share(faults / matched)} of the device operations start before the call that launched them;"
            f" that leaves {units.share(share)} of the time unexplained."
        )
    return Found(
        title=f"{units.share(faults / matched)} of the device work starts before its launch: the clocks do not fit",
        stake=context.stake(
            unknown, "high: all idle time could be saved; low: nothing is known about how much of it", 0
        ),
        causes=("unknown",),
        evidence=(
            number("operations that start before their launch call", faults, "count"),
            number("operations with a launch call", matched, "count"),
            number("idle time that cannot be explained", context.mean_ns(unknown), "ns"),
        ),
        actions=(
            "Record again with the newest nsys and driver: " + record_line(),
            "On a virtual machine, pass the time stamp counter of the host through.",
        ),
        caveat="Busy and idle time of the GPU hold all the same: they come from one clock.",
        where=context.where("unknown"),
    )


RULE = Rule(
    id="clock-fault",
    title="Clocks that do not fit",
    check=check,
    page=page_of(__doc__),
    needs=("api",),
    thresholds={"share": CAUSE_THRESHOLD},
)
