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

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.work import COMMUNICATION
from nsys_triage.result.model import Cause, Evidence
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
    causes: tuple[Cause, ...] = (
        ("communication", "host_communication") if device and host else ("communication",)
    )
    return Found(
        title=f"Communication that nothing hides takes {units.share(share)} of the time",
        stake=context.cause_stake("communication", "host_communication"),
        causes=causes if device else ("host_communication",),
        evidence=_evidence(context, device, host),
        actions=_actions(context, host_side=host > device),
        caveat=_caveat(context),
        where=context.where("communication" if device >= host else "host_communication"),
        gpu=context.one_gpu("communication", "host_communication"),
    )


def _evidence(context: Context, device: int, host: int) -> tuple[Evidence, ...]:
    block = context.m.collectives
    rows = context.m.work.filter(pl.col("activity") == COMMUNICATION)
    lengths = rows["end_ns"] - rows["start_ns"]
    found = [
        number("communication kernels while nothing computes", context.mean_ns(device), "ns"),
        number("idle while the host is in MPI or UCX calls", context.mean_ns(host), "ns"),
        number("communication kernels", block.count + block.other_count, "count"),
        number("all time in communication kernels", context.mean_ns(block.total_ns), "ns"),
        number("longest of them", int(lengths.max() or 0), "ns"),  # type: ignore[arg-type]
    ]
    if block.by_op:
        worst = max(block.by_op, key=lambda op: (op.exposed_ns, op.op))
        found.append(number("operation that is exposed longest", worst.op.replace("_", " "), "text"))
        if worst.bytes is not None:
            found.append(number("bytes of that operation", worst.bytes, "bytes"))
    if context.ranks is not None:
        waits = [row.wait_ns for row in context.ranks.per_rank if row.wait_ns is not None]
        all_ns = sum(row.communication_ns for row in context.ranks.per_rank)
        if waits and all_ns:
            found.append(number("share of it that is waiting for other ranks", sum(waits) / all_ns, "share"))
    return tuple(found)


def _actions(context: Context, *, host_side: bool) -> tuple[str, ...]:
    first = (
        ()
        if context.ranks is not None
        else (
            "To tell waiting from transfer, record every rank and give the traces together: nsys-triage report"
            " rank*.nsys-rep",
        )
    )
    if host_side:
        return (
            *first,
            "Post the exchange early (MPI_Isend, MPI_Irecv), compute the inner part meanwhile, and wait at the end.",
            "Hand device pointers to a CUDA-aware MPI, so that nothing is staged through the host, or use NCCL.",
        )
    return (
        *first,
        context.wording(
            pytorch="Let it overlap: DistributedDataParallel with gradient buckets (bucket_cap_mb,"
            " gradient_as_bucket_view),"
            " FSDP with backward_prefetch=BACKWARD_PRE and forward_prefetch=True.",
            jax="Let XLA overlap it: --xla_gpu_enable_latency_hiding_scheduler=true, and check that collectives become"
            " asynchronous pairs (start, done).",
            cuda="Launch the collective on a stream of its own as soon as its input is ready, and wait for it with"
            " an event"
            " where the result is needed.",
        ),
        "Communicate less: gradient accumulation, bf16 in place of fp32, a split of the model that keeps large"
        " exchanges"
        " inside a node.",
        "See which transport is used: run once with NCCL_DEBUG=INFO and read the lines of the start.",
    )


def _caveat(context: Context) -> str:
    needed = "Tensor and pipeline parallelism need results at once, so that not all of it can be hidden."
    if context.ranks is not None:
        return needed
    return (
        f"One rank alone cannot split waiting for other ranks from transfer, so a late rank looks like this,"
        f" too. {needed}"
    )


RULE = Rule(
    id="exposed-communication",
    title="Exposed communication",
    check=check,
    page=page_of(__doc__),
    thresholds={"share": CAUSE_THRESHOLD},
)
