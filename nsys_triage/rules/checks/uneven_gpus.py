"""The GPUs of one trace have unequal amounts of work.

What it means

Over the time in which all GPUs are at work, one of them computes more than the others, which wait for it or
run dry. If all run the same kernels, the work is divided unevenly (batches, sequence lengths, experts,
domains). If they run different kernels, the model is divided into stages or the GPUs have different tasks:
that is by design, and what counts is the longest stage.

What to do next

1. Same kernels: divide by work, not by number of items (sequence lengths, sparsity, boundary cells), and
   check that the loaders of all ranks give batches of the same size.
2. Stages of a pipeline: move layers from the longest stage to the others, and use more micro-batches.
3. One GPU with additional work (validation, sampling, the optimizer of all): spread it, or let it overlap.

When it is wrong

Different work by design (a coordinator, an embedding stage) cannot always be levelled. A kernel that polls
while it waits for another GPU counts as computing. The time in which only some GPUs are at work is left
out.
"""

from nsys_triage import units
from nsys_triage.metrics.gpu_balance import Balance, GpuLoad, gpu_balance
from nsys_triage.result.model import Interval
from nsys_triage.rules.base import Found, NotRun, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context


def check(context: Context) -> Outcome:
    """Fires where levelling the GPUs' compute time could give back the threshold."""
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


def _finding(context: Context, balance: Balance, most: GpuLoad, least: GpuLoad, level_ns: int) -> Found:
    names = {gpu.index: gpu.id for gpu in context.m.workload.gpus.all}
    common = balance.end_ns - balance.start_ns
    by_design = balance.alike < context.thresholds["alike"]
    shares = [units.share(load.compute_ns / common) for load in (most, least)]
    title = f"One GPU computes {shares[0]} of the time, another one {shares[1]}"
    return Found(
        title=f"{title}: they run different kernels, as stages of a model do" if by_design else title,
        stake=context.stake(
            level_ns * len(context.gpus),
            (
                "high: the compute time of the busiest GPU falls to the mean of all; low: the work cannot be "
                "divided otherwise"
            ),
            low_ns=0,
        ),
        causes=("compute",),
        evidence=(
            number("GPU that computes most", names[most.gpu], "text"),
            number("its compute time", most.compute_ns, "ns"),
            number("its kernels", most.kernels, "count"),
            number("GPU that computes least", names[least.gpu], "text"),
            number("compute time of that one", least.compute_ns, "ns"),
            number("kernels of that one", least.kernels, "count"),
            number("idle or exposed communication of that one", least.waiting_ns, "ns"),
            number("least part of a GPU's kernel time in kernels that all GPUs run", balance.alike, "share"),
        ),
        actions=_actions(context, by_design=by_design),
        caveat=(
            "Different work by design cannot always be levelled, and a kernel that polls for another GPU counts as "
            "computing."
        ),
        confidence="low" if by_design else "medium",
        where=Interval(start_ns=balance.start_ns, end_ns=balance.end_ns),
        gpu=names[most.gpu],
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
