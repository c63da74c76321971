"""The thread that launches is blocked in the operating system while the GPU has nothing to do.

What it means

In these gaps the launching thread was in an OS call outside of any CUDA call: writing a file, flushing it, holding for
a lock, sleeping, sending to another process. Reads and waits before an input copy count as input pipeline instead.

What to do next

1. See which call it is (below), and find the line that makes it.
2. Writing and flushing (checkpoints, logs): let another thread or process do it, in larger pieces, less often.
3. Locks and condition waits: find which thread holds the launching one up, and shorten what it does meanwhile.
4. Sleeping: wait for an event instead of polling with a sleep.

When it is wrong

A program that waits for requests or for another rank blocks in the same calls, and that is not its own fault. The
recording of OS calls leaves out those under a microsecond or so, and those that are made without the C library.
"""

from typing import Final

from nsys_triage import units
from nsys_triage.metrics.api_names import os_kind
from nsys_triage.metrics.host_activity import host_spans, os_calls_in
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context, record_line

_NAMED: Final = 3
_ADVICE: Final = {
    "file": (
        "Write from another thread or process, in larger pieces and less often; flush and fsync outside of the "
        "loop."
    ),
    "lock": (
        "Find the thread that it waits for (its OS and CUDA calls at that time), and let the launching thread not "
        "wait for it."
    ),
    "sleep": "Replace the sleep: wait for an event or a condition, or let another thread poll.",
    "wait": "It waits for another process or a device: find out for which, and launch the next work before waiting.",
    "network": "Send and receive on another thread, so that launching does not wait for the network.",
    "process": "Start helper processes before the loop, and keep them.",
    "memory": "Map and unmap memory before the loop; reuse buffers.",
    "driver": (
        "ioctl is the driver at work on behalf of a call: look for allocation, mapping or stream creation in the "
        "loop."
    ),
    "other": "Find the line that makes this call in the loop, and move it to another thread.",
}


def check(context: Context) -> Outcome:
    """Fires where idle time while the launching thread is blocked in the OS reaches the threshold."""
    share, total_ns = context.share("host_blocked"), context.total_ns("host_blocked")
    if not total_ns or share < context.thresholds["share"]:
        return Passed(
            f"The GPU waits {units.share(share)} of the time while the launching thread is blocked in the "
            "operating system."
        )
    m = context.m
    calls = os_calls_in(m.trace, m.workload, host_spans(context.pieces_of("host_blocked"), m.gaps.gaps)).head(
        _NAMED
    )
    kinds = list(dict.fromkeys(os_kind(name) for name in calls["text"]))
    most = calls["text"][0] if calls.height else "an OS call"
    return Found(
        title=(
            f"The GPU waits {units.share(share)} of its time while the launching thread is blocked in the operating "
            f"system, mostly in {most}"
        ),
        stake=context.cause_stake("host_blocked"),
        causes=("host_blocked",),
        evidence=(
            number("idle while the launching thread is blocked", context.mean_ns(total_ns), "ns"),
            number("gaps in which it is", context.gap_count("host_blocked"), "count"),
            *(
                number(f"of it in {name} ({units.plural(count, 'call')})", ns, "ns")
                for name, count, ns in calls.iter_rows()
            ),
        ),
        actions=(
            *(_ADVICE[kind] for kind in kinds),
            context.wording(
                pytorch=(
                    "Save checkpoints asynchronously (torch.distributed.checkpoint.async_save), and log from a "
                    "queue."
                ),
                jax="Save checkpoints asynchronously (orbax AsyncCheckpointer), and log from another thread.",
                cuda="Hand results to a writer thread through a queue, so that the launching thread goes on.",
            ),
            (
                "To see the lines of code (OS calls of 80 us and more then carry a backtrace): "
                f"{record_line('--sample=process-tree')}"
            ),
        ),
        caveat="A program that waits for requests or for another process blocks in the same calls.",
        where=context.where("host_blocked"),
        gpu=context.one_gpu("host_blocked"),
    )


RULE = Rule(
    id="host-blocked",
    title="The launching thread is blocked in the operating system",
    check=check,
    page=page_of(__doc__),
    needs=("api", "osrt"),
    thresholds={"share": CAUSE_THRESHOLD},
)
