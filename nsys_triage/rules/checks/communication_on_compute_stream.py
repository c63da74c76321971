"""Collectives on the stream of the kernels that compute, where the two can never overlap.

What it means

Work of one stream runs in order. A collective that was launched into the stream of the compute kernels begins after
the kernels before it and holds up those after it: it is exposed by construction, however much there is to compute.

What to do next

1. Launch collectives on a stream of their own, and order them with events (cudaEventRecord, cudaStreamWaitEvent).
2. Launch them as soon as their input is ready, and wait where the result is needed, not before.
3. Give that stream a high priority, so that the collective gets multiprocessors while kernels run.

When it is wrong

If the next kernel needs the result at once (tensor parallelism), another stream alone changes nothing: the work has to
be split so that something else can run meanwhile.
"""

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.shared_streams import exposed_collective_ns, on_compute_streams
from nsys_triage.metrics.work import COMMUNICATION
from nsys_triage.result.model import Interval
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context


def check(context: Context) -> Outcome:
    """Fires where the exposed time of collectives on compute streams reaches the threshold."""
    m = context.m
    shared = on_compute_streams(m.trace, m.workload.work)
    exposed = exposed_collective_ns(m.pieces, shared)
    share = exposed / context.span_ns
    inside = m.window.rows(shared)
    if share < context.thresholds["share"]:
        return Passed(
            f"{units.plural(inside.height, 'collective')} on streams that also compute, exposed"
            f" {units.share(share)} of the time."
        )
    length = pl.col("end_ns") - pl.col("start_ns")
    longest = (
        shared.with_columns(length.alias("ns"))
        .sort(["ns", "start_ns"], descending=[True, False])
        .row(0, named=True)
    )
    everything = m.work.filter(pl.col("activity") == COMMUNICATION)
    streams = inside.select("gpu", "pid", "stream").n_unique()
    return Found(
        title=f"Collectives run on the stream of the kernels and take {units.share(share)} of the time unhidden",
        stake=context.stake(
            exposed,
            "high: on a stream of their own all of them are hidden; low: nothing, if what follows needs their result",
            0,
        ),
        causes=("communication",),
        evidence=(
            number("collectives on streams that compute", inside.height, "count"),
            number("all collectives", everything.height, "count"),
            number("streams with both", streams, "count"),
            number(
                "time in which those collectives ran and nothing computed", context.mean_ns(exposed), "ns"
            ),
        ),
        actions=_actions(context),
        caveat="If the next kernel needs the result at once, another stream alone does not help.",
        where=Interval(start_ns=longest["start_ns"], end_ns=longest["end_ns"]),
        gpu=context.one_gpu("communication"),
    )


def _actions(context: Context) -> tuple[str, ...]:
    return (
        context.wording(
            pytorch="Use asynchronous collectives (async_op=True, then wait() late) or DistributedDataParallel and"
            " FSDP, which have a communication stream; TORCH_NCCL_BLOCKING_WAIT must not be set.",
            jax="Let XLA make them asynchronous: --xla_gpu_enable_latency_hiding_scheduler=true.",
            cuda="Give NCCL a stream of its own (cudaStreamCreateWithPriority) and order it with"
            " cudaEventRecord and"
            " cudaStreamWaitEvent.",
        ),
        "Launch the collective when its input is ready, and wait for it only where its result is used.",
    )


RULE = Rule(
    id="communication-on-compute-stream",
    title="Collectives on the compute stream",
    check=check,
    page=page_of(__doc__),
    needs=("communication", "kernels"),
    thresholds={"share": CAUSE_THRESHOLD},
)
