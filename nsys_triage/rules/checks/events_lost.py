"""Events were lost while recording.

What it means

nsys says that it could not keep all events, or rows have no end. Lost device work looks like idle time, and lost calls
leave idle time without a cause.

What to do next

1. Record a shorter stretch: --duration, or --capture-range=cudaProfilerApi around a few steps.
2. Record fewer event types, and no backtraces.
3. Let the process end by itself, so that buffers are flushed (--kill=none, cudaProfilerStop before the end).

When it is wrong

A few lost events at the very end of a capture, outside of what you look at, change nothing.
"""

from nsys_triage import units
from nsys_triage.metrics.lost_events import lost_events
from nsys_triage.rules.base import Found, NotRun, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context


def check(context: Context) -> Outcome:
    """Fires where nsys reports lost events, or more rows than the threshold have no end."""
    lost = lost_events(context.m.trace)
    counts = context.m.trace.counts
    rows = sum(
        n or 0 for n in (counts.kernels, counts.memcpys, counts.memsets, counts.graphs, counts.api_calls)
    )
    open_share = min(1.0, lost.not_finished / max(1, rows))
    open_ends = lost.not_finished > 0 and open_share >= context.thresholds["open_share"]
    if not lost.messages and not open_ends:
        if not lost.says:
            return NotRun("messages of nsys about lost events: exports before 2024.4 do not hold them")
        return Passed(
            f"nsys reports no lost events; {units.plural(lost.not_finished, 'row')} without an end."
        )
    idle = sum(gpu.idle_ns for gpu in context.gpus)
    device = bool(lost.device) or open_ends
    text = (
        lost.messages[0].text.rstrip(".")
        if lost.messages
        else f"{units.count(lost.not_finished)} rows have no end"
    )
    return Found(
        title=f"Events were lost: {text}",
        stake=context.stake(
            idle if device else 0,
            "high: all idle time, since device work that was lost looks idle; low: nothing, if what was lost lies"
            " elsewhere"
            if device
            else "no device work is known to be lost: the figures of the GPU stand, their causes may not",
            0,
        ),
        causes=("unknown",),
        evidence=(
            number("messages about lost events", sum(d.count for d in lost.messages), "count"),
            number("rows without an end", lost.not_finished, "count"),
            number("idle time in the window", context.mean_ns(idle), "ns"),
        ),
        actions=_actions(),
        caveat="Lost events at the very end of a capture change nothing in the middle.",
        confidence="medium",
    )


def _actions() -> tuple[str, ...]:
    return (
        "Record a shorter stretch: nsys profile --capture-range=cudaProfilerApi --trace=cuda,nvtx --output=job"
        " <your command>, with cudaProfilerStart and cudaProfilerStop around a few steps.",
        "Leave out event types that are not needed, and backtraces (--backtrace=none --cudabacktrace=none).",
        "Give the process time to end and to flush: --kill=none.",
    )


RULE = Rule(
    id="events-lost",
    title="Lost events",
    check=check,
    page=page_of(__doc__),
    thresholds={
        "open_share": Threshold(
            0.01, "share", "of device and API rows without an end: a few are normal where a capture ends"
        )
    },
)
