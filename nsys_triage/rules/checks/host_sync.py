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
from nsys_triage.rules.context import Context


def check(context: Context) -> Outcome:
    """Fires where the idle time that waits cost reaches the threshold."""
    share = context.share("host_sync")
    sync = context.m.sync
    if share < context.thresholds["share"]:
        return Passed(f"{units.count(sync.calls)} synchronising calls cost {units.share(share)} of the time.")
    dearest = max(sync.by_api, key=lambda row: (row.cost_ns or 0, row.api))
    return Found(
        title=f"Waiting for the GPU costs {units.share(share)} of its time: the host starts late after {dearest.api}",
        stake=context.cause_stake("host_sync"),
        causes=("host_sync",),
        evidence=(
            number("idle time because the host had waited", context.mean_ns(context.total_ns("host_sync")), "ns"),
            number("synchronising calls", sync.calls, "count"),
            number("time inside those calls", sync.total_ns, "ns"),
            number("call that costs most", dearest.api, "text"),
            number("calls of it", dearest.calls, "count"),
            number("tiny read-backs waited for", sync.readbacks.count, "count"),
        ),
        actions=(
            context.wording(
                pytorch="Look for .item(), .cpu(), .tolist(), print(loss), torch.cuda.synchronize() and boolean indexing in the step; keep such values on the device and read them every n-th step.",
                jax="Look for block_until_ready(), float(x), np.asarray(x) and print in the step; read values every n-th step, one step late.",
                cuda=f"Find what calls {dearest.api} in the loop and replace it by events (cudaEventRecord, cudaStreamWaitEvent) where the host needs no result.",
            ),
            "If the value is needed each step, read the one of the step before with an asynchronous copy to pinned memory.",
            "Record with nsys profile --cudabacktrace=sync to see the lines of code that wait.",
        ),
        caveat="A wait that a control decision needs can only be moved, not removed.",
        where=context.where("host_sync"),
        gpu=context.one_gpu("host_sync"),
    )


RULE = Rule(
    id="host-sync",
    title="Synchronising calls that cost idle time",
    check=check,
    page=page_of(__doc__),
    thresholds={"share": CAUSE_THRESHOLD},
)
