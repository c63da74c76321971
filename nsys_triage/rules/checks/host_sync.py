"""The host waits for the GPU, and the GPU then waits for the host.

What it means

A synchronising call (cudaStreamSynchronize, a blocking copy, .item()) returns only when the GPU has run dry; whatever
the host does next, the GPU has nothing queued meanwhile. The cost is the idle time that would not be there if the
host had gone on instead of waiting: at most the length of the wait. Waits that end while more work is queued, or
after which the host is soon back, cost next to nothing and are not counted, however many there are.

What to do next

1. Find the line that waits: the call is named below, the place to open in the timeline is given.
2. Do not read results back in every step: keep them on the device, and read every n-th step or at the end.
3. Replace device-wide waits by events and stream waits (cudaStreamWaitEvent), which do not stop the host.
4. If the value is needed, read the one of the step before, so that the GPU has work meanwhile.

When it is wrong

A wait that the program needs (a control decision, a result that is sent away) cannot be removed, only moved; and the
profiler itself adds a few microseconds to each call.
"""

from nsys_triage import units
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context, record_line


def check(context: Context) -> Outcome:
    """Fires where the idle time that waits cost reaches the threshold."""
    share, total_ns = context.share("host_sync"), context.total_ns("host_sync")
    sync = context.m.sync
    if not total_ns or share < context.thresholds["share"]:
        return Passed(
            f"{units.plural(sync.calls, 'synchronising call')} cost {units.share(share)} of the time."
        )
    dearest = max(sync.by_api, key=lambda row: (row.cost_ns or 0, row.api), default=None)
    readback_ns = sync.readbacks.cost_ns or 0
    copying_ns = sum(row.cost_ns or 0 for row in sync.by_api if row.blocking_copies)
    after = f": the host starts late after {dearest.api}" if dearest else ""
    return Found(
        title=f"Waiting for the GPU costs {units.share(share)} of its time{after}",
        stake=context.cause_stake("host_sync"),
        causes=("host_sync",),
        evidence=(
            number("idle time because the host had waited", context.mean_ns(total_ns), "ns"),
            number("synchronising calls", sync.calls, "count"),
            number("time inside those calls", sync.total_ns, "ns"),
            number("of it while the GPU was idle", sync.idle_ns, "ns"),
            *((number(f"calls of {dearest.api}", dearest.calls, "count"),) if dearest else ()),
            *(
                (number("idle time after tiny read-backs", context.mean_ns(readback_ns), "ns"),)
                if readback_ns
                else ()
            ),
            *(
                (number("idle time after copies that wait", context.mean_ns(copying_ns), "ns"),)
                if copying_ns
                else ()
            ),
        ),
        actions=_actions(
            context, dearest.api if dearest else "a synchronising call", readback_ns * 2 >= total_ns
        ),
        caveat="A wait that a control decision needs can only be moved, not removed.",
        where=context.where("host_sync"),
        gpu=context.one_gpu("host_sync"),
    )


def _actions(context: Context, api: str, readbacks: bool) -> tuple[str, ...]:
    """What to look for; tiny read-backs have a rule of their own, which says how to find them."""
    first = context.wording(
        pytorch=(
            "Look for .cpu(), .tolist(), torch.cuda.synchronize(), boolean indexing and nonzero() in the step; "
            "keep such values on the device and read them every n-th step."
        ),
        jax=(
            "Look for block_until_ready(), np.asarray(x) and print in the step; read values every n-th step, one "
            "step late."
        ),
        cuda=(
            f"Find what calls {api} in the loop and replace it by events (cudaEventRecord, cudaStreamWaitEvent) "
            "where the host needs no result."
        ),
    )
    if readbacks:
        rarer = context.wording(
            pytorch="Call .item() and print values of tensors every n-th step instead of in each",
            jax="Fetch values (float(x), x.item(), print) every n-th step instead of in each",
            cuda="Copy the few bytes that the host looks at every n-th iteration instead of in each",
        )
        first = f"{rarer}: at least half of this time follows tiny read-backs."
    return (
        first,
        "If a value is needed each step, read the one of the step before with an asynchronous copy to pinned memory.",
        f"To see the lines of code that wait: {record_line('--cudabacktrace=sync')}",
    )


RULE = Rule(
    id="host-sync",
    title="Synchronising calls that cost idle time",
    check=check,
    page=page_of(__doc__),
    needs=("api",),
    thresholds={"share": CAUSE_THRESHOLD},
)
