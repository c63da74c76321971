"""Communication that no computing hides.

What it means

Collectives (NCCL kernels and their like) run while nothing computes on that GPU, or the GPU idles while the host is in
an MPI or UCX call. From one rank alone nobody can tell how much of a collective is transfer and how much is waiting for
the others: a collective lasts until the last rank has come.

What to do next

1. Give the traces of all ranks together: if most of it is waiting, the late rank is the problem, not the network.
2. Start the communication earlier and let it run beside the kernels: gradient buckets during the backward pass,
   prefetch of shards, an own stream.
3. Communicate less: larger batches or gradient accumulation, a smaller type, a better split of the model.
4. Check the transport: NCCL_DEBUG=INFO shows once at the start whether NVLink, PCIe or the network is used.

When it is wrong

Tensor and pipeline parallelism need the result at once, so that some communication cannot be hidden; and a rank that
waits for another one looks the same as a slow network.
"""

from nsys_triage import units
from nsys_triage.metrics.collectives import communication_work
from nsys_triage.metrics.shared_streams import on_compute_streams
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, NotRun, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import NEEDS, Context


def check(context: Context) -> Outcome:
    """Fires where exposed communication, on the device and on the host together, reaches the threshold."""
    m = context.m
    block = m.collectives
    kernels = block.count + block.other_count
    if not kernels and m.trace.host_communication.is_empty():
        return NotRun(NEEDS["communication"][0])
    device, host = context.total_ns("communication"), context.total_ns("host_communication")
    share = context.share("communication", "host_communication")
    if share < context.thresholds["share"]:
        return Passed(
            f"Communication that nothing hides takes {units.share(share)} of the time"
            f" ({units.plural(kernels, 'communication kernel')})."
        )
    evidence = [
        number("collectives while nothing computes", context.mean_ns(device), "ns"),
        number("idle while the host is in MPI or UCX calls", context.mean_ns(host), "ns"),
        number("communication kernels", kernels, "count"),
        number("all time in communication kernels", context.mean_ns(block.total_ns), "ns"),
    ]
    if block.by_op:
        worst = max(block.by_op, key=lambda op: (op.exposed_ns, op.op))
        evidence.append(number("operation that is exposed longest", worst.op.replace("_", " "), "text"))
        if worst.bytes is not None:
            evidence.append(number("bytes of that operation", worst.bytes, "bytes"))
    return Found(
        title=f"Communication that nothing hides takes {units.share(share)} of the time",
        stake=context.cause_stake("communication", "host_communication"),
        causes=tuple(
            cause for cause, ns in (("communication", device), ("host_communication", host)) if ns
        ),  # type: ignore[arg-type]
        evidence=(*evidence, *_waiting(context)),
        actions=_actions(context, host_side=host > device),
        caveat=_caveat(context),
        where=context.where("communication") or context.where("host_communication"),
        gpu=context.one_gpu("communication", "host_communication"),
    )
