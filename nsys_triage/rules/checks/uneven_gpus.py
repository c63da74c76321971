"""The GPUs have unequal amounts of work.

What it means

Over the time in which all GPUs are at work, one of them computes more than the others, which wait for it or
run dry. GPUs of several traces have no common clock: there each counts over its own span. If all run the same
kernels, the work is divided unevenly (batches, sequence lengths, experts, domains). If they run different
kernels, the model is divided into stages or the GPUs have different tasks: that is by design, and what counts
is the longest stage.

What to do next

1. Same kernels: divide by work, not by number of items (sequence lengths, sparsity, boundary cells), and
   check that the loaders of all ranks give batches of the same size.
2. Stages of a pipeline: move layers from the longest stage to the others, and use more micro-batches.
3. One GPU with additional work (validation, sampling, the optimizer of all): spread it, or let it overlap.

When it is wrong

Different work by design (a coordinator, an embedding stage) cannot always be levelled. A kernel that polls
while it waits for another GPU counts as computing. The time in which only some GPUs are at work is left
out. And a GPU with a lower clock takes longer for the same work: compare the clocks first.
"""

from nsys_triage import units
from nsys_triage.metrics.gpu_balance import Balance, GpuLoad, gpu_balance
from nsys_triage.metrics.straggler import SLOWER_KERNELS
from nsys_triage.result.model import Evidence, Gpu, Interval
from nsys_triage.rules.base import Found, NotRun, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context


def check(context: Context) -> Outcome:
    """Fires where levelling the GPUs' compute time could give back the threshold."""
    if context.job_alike is not None:
        return _of_traces(context, context.job_alike)
    m = context.m
    balance = gpu_balance(m.trace, m.workload, m.pieces)
    span = context.mean_ns(context.span_ns)
    if balance is None:
        return NotRun("a time in which two GPUs are at work: the trace has none")
    if (balance.end_ns - balance.start_ns) < context.thresholds["common"] * span:
        return NotRun(
            f"a common time: all GPUs are at work together for {units.time(balance.end_ns - balance.start_ns)} only"
        )
    most = max(balance.loads, key=lambda load: (load.compute_ns, -load.gpu))
    least = min(balance.loads, key=lambda load: (load.compute_ns, load.gpu))
    level_ns = round(most.compute_ns - balance.mean_ns)
    share = level_ns / span if span else 0.0
    if share < context.thresholds["share"]:
        return Passed(f"The busiest GPU computes {units.share(share)} of the time more than the mean of all.")
    return _finding(context, balance, most, least, level_ns)


def _of_traces(context: Context, alike: float) -> Outcome:
    """The GPUs of several traces, each over its own span: their clocks have nothing in common."""
    shares = {gpu.id: _computing_ns(gpu) / gpu.span_ns for gpu in context.gpus if gpu.span_ns}
    most = max(shares, key=lambda name: shares[name])
    least = min(shares, key=lambda name: shares[name])
    level = shares[most] - sum(shares.values()) / len(shares)
    if level < context.thresholds["share"]:
        return Passed(f"The busiest GPU computes {units.share(level)} of the time more than the mean of all.")
    evidence = (
        number("GPU that computes most", most, "text"),
        number("share of its time in which it computes", shares[most], "share"),
        number("GPU that computes least", least, "text"),
        number("share of that one", shares[least], "share"),
        number("least part of a rank's kernel time in kernels that all ranks run", alike, "share"),
        *_why_late(context),
    )
    level_ns = level * context.span_ns  # summed over the GPUs, as a stake is made from
    return _found(context, (shares[most], shares[least]), alike, level_ns, evidence, most, None)


def _why_late(context: Context) -> tuple[Evidence, ...]:
    """What the ranks' collectives say of the one that arrives last, where they say it."""
    reason = context.ranks.straggler_reason if context.ranks is not None else None
    return (number("the rank that arrives last", reason, "text"),) if isinstance(reason, str) else ()


def _computing_ns(gpu: Gpu) -> int:
    return sum(entry.ns for entry in gpu.ledger or [] if entry.cause in ("compute", "graph"))


def _finding(context: Context, balance: Balance, most: GpuLoad, least: GpuLoad, level_ns: int) -> Found:
    names = {gpu.index: gpu.id for gpu in context.m.workload.gpus.all}
    common = balance.end_ns - balance.start_ns
    evidence = (
        number("GPU that computes most", names[most.gpu], "text"),
        number("its compute time", most.compute_ns, "ns"),
        number("its kernels", most.kernels, "count"),
        number("GPU that computes least", names[least.gpu], "text"),
        number("compute time of that one", least.compute_ns, "ns"),
        number("kernels of that one", least.kernels, "count"),
        number("idle or exposed communication of that one", least.waiting_ns, "ns"),
        number("least part of a GPU's kernel time in kernels that all GPUs run", balance.alike, "share"),
    )
    shares = most.compute_ns / common, least.compute_ns / common
    where = Interval(start_ns=balance.start_ns, end_ns=balance.end_ns)
    level_ns = level_ns * len(context.gpus)
    return _found(context, shares, balance.alike, level_ns, evidence, names[most.gpu], where)


def _found(
    context: Context,
    shares: tuple[float, float],
    alike: float,
    level_ns: float,
    evidence: tuple[Evidence, ...],
    gpu: str,
    where: Interval | None,
) -> Found:
    """The finding: `shares` of the busiest and of the least busy GPU, `level_ns` summed over all GPUs."""
    by_design = alike < context.thresholds["alike"]
    title = f"One GPU computes {units.share(shares[0])} of the time, another one {units.share(shares[1])}"
    return Found(
        title=f"{title}: they run different kernels, as stages of a model do" if by_design else title,
        stake=context.stake(
            level_ns,
            (
                "high: the compute time of the busiest GPU falls to the mean of all; low: the work cannot be "
                "divided otherwise"
            ),
            low_ns=0,
        ),
        causes=("compute",),
        evidence=evidence,
        actions=_actions(context, by_design=by_design),
        caveat=(
            "Different work by design cannot always be levelled, a kernel that polls for another GPU counts as "
            "computing, and a GPU with a lower clock takes longer for the same work."
        ),
        confidence="low" if by_design else "medium",
        where=where,
        gpu=gpu,
    )


def _actions(context: Context, *, by_design: bool) -> tuple[str, ...]:
    if by_design:
        return (
            (
                "If these are stages of one model: move layers from the longest stage to the others, and use more "
                "micro-batches."
            ),
            "If the GPUs have different tasks, leave it as it is, or give the others more of them.",
        )
    if context.ranks is not None and context.ranks.straggler_cause == SLOWER_KERNELS:
        return (
            f"Look at the GPU of rank {context.ranks.straggler} while the job runs: nvidia-smi -q -d"
            " CLOCK,PERFORMANCE,POWER,TEMPERATURE. The work is even, and its kernels take longer.",
            "Then record again and compare the compute times of the GPUs.",
        )
    return (
        context.wording(
            pytorch=(
                "Give every rank the same work: batches of equal token counts (sort or pack by length), equal "
                "shards, no validation or logging on one rank alone."
            ),
            jax="Give every device the same work: equal shards and padding, no host callback on one device alone.",
            cuda="Divide the domain or the batch by work, not by the number of items.",
        ),
        "Then record again and compare the compute times of the GPUs.",
    )


RULE = Rule(
    id="uneven-gpus",
    title="GPUs with unequal work",
    check=check,
    page=page_of(__doc__),
    needs=("several_gpus",),
    job=True,
    thresholds={
        "share": Threshold(
            0.05,
            "share",
            "of the span, that levelling the compute time could give back at most: less is not worth a change",
        ),
        "common": Threshold(0.5, "share", "of the mean span, in which all GPUs have to be at work together"),
        "alike": Threshold(
            0.5,
            "share",
            "of a GPU's kernel time in kernels that all run: with less, they have different tasks",
        ),
    },
)
