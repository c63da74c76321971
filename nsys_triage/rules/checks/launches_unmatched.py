"""Idle time has no known cause because the launches are not in the trace.

What it means

The gap before an operation is explained by what the host did until it launched it. Where the launch call was not
recorded, nobody can say why the GPU waited.

What to do next

1. Record from before the launches until after their work: begin the capture range some steps earlier.
2. Record CUDA calls (--trace=cuda) in all processes, child processes too (--trace-fork-before-exec=true).
3. Do not filter the export by table or time.

When it is wrong

Work that the driver starts by itself has no launch; migrations of unified memory are therefore left out here.
"""

from nsys_triage import units
from nsys_triage.metrics.unexplained import unexplained_time, without_launch
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context, record_line


def check(context: Context) -> Outcome:
    """Fires where idle time before work without a launch call reaches the threshold."""
    m = context.m
    unknown = unexplained_time(m.pieces, m.gaps).launch_ns
    share = unknown / context.span_ns
    missing, launchable = without_launch(m.trace, m.work)
    of_all = missing / max(1, launchable)
    if share < context.thresholds["share"]:
        return Passed(
            f"{units.share(of_all)} of the device operations have no launch call; the idle time before them is"
            f" {units.share(share)} of the time."
        )
    return Found(
        title=f"{units.share(share)} of the time is idle without a known cause: the launches are not in the trace",
        stake=context.stake(
            unknown, "high: all of that time could be saved; low: nothing is known about how much of it", 0
        ),
        causes=("unknown",),
        evidence=(
            number("device operations without a launch call", missing, "count"),
            number("share of all device operations", of_all, "share"),
            number("idle time before them", context.mean_ns(unknown), "ns"),
        ),
        actions=(
            "Record again with CUDA calls, from before the launches to after their work: " + record_line(),
            "With a capture range, begin it some steps before the stretch that you look at.",
            "Export the whole report, without --tables and --times: nsys export --type=sqlite REPORT.nsys-rep",
        ),
        caveat="Work that the driver starts by itself has no launch call.",
        confidence="high",
        where=context.where("unknown"),
        gpu=context.one_gpu("unknown"),
    )


RULE = Rule(
    id="launches-unmatched",
    title="Idle time without a launch",
    check=check,
    page=page_of(__doc__),
    needs=("api",),
    thresholds={"share": CAUSE_THRESHOLD},
)
