"""Many small collectives, each of which costs its latency.

What it means

A collective needs some ten microseconds before it moves anything, whatever its size. Many short ones in a row spend
their time on that; joined into a few large ones the same bytes would take a fraction.

What to do next

1. Bucket the gradients: one all-reduce for many tensors (25 MB or more each) instead of one for each tensor.
2. Join scalars that are reduced for logging into one tensor, and reduce them every n-th step.
3. Put collectives that belong together into one group (ncclGroupStart, ncclGroupEnd).

When it is wrong

Short collectives between parts that depend on each other (tensor parallelism, norms over shards) cannot be joined.
Sizes are known only where NCCL's payloads were recorded; otherwise short means short in time.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.collective_sizes import with_sizes
from nsys_triage.metrics.collectives import communication_work
from nsys_triage.metrics.shared_streams import exposed_collective_ns, exposed_each
from nsys_triage.result.model import Evidence, Interval
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context

SMALL_BYTES: Final = 1 << 20
SHORT_NS: Final = 100_000


def check(context: Context) -> Outcome:
    """Fires where there are many small collectives and their exposed time reaches the threshold."""
    m = context.m
    rows = with_sizes(m.trace, m.workload, communication_work(m.trace, m.workload, m.window))
    length = pl.col("end_ns") - pl.col("start_ns")
    small = rows.filter(
        (length > 0) & (length < SHORT_NS) & (pl.col("bytes") < SMALL_BYTES).fill_null(value=True)
    )
    exposed = exposed_collective_ns(m.pieces, small)
    share = exposed / context.span_ns
    if share < context.thresholds["share"] or small.height < context.thresholds["count"]:
        return Passed(
            f"{units.plural(small.height, 'collective')} of less than {units.time(SHORT_NS)}"
            f" cost {units.share(share)} of the time."
        )
    each = exposed_each(m.pieces, small)
    shortest = small.select(length.min()).item()
    longest = (
        small.with_columns(length.alias("ns"))
        .sort("ns", "start_ns", descending=[True, False])
        .row(0, named=True)
    )
    known = small["bytes"].drop_nulls()
    return Found(
        title=f"{units.count(small.height)} small collectives cost {units.share(share)} of the time",
        stake=context.stake(
            exposed,
            "high: their exposed time is gone; low: each costs as long as the shortest of them and is joined with"
            " others",
            min(exposed, int(each.clip(upper_bound=shortest).sum())),
        ),
        causes=("communication",),
        evidence=_evidence(context, small, rows.height, exposed),
        actions=_actions(context, known.len()),
        caveat="Collectives between parts that depend on each other cannot be joined; a short one may be a wait, too.",
        confidence="high" if known.len() == small.height else "medium",
        where=Interval(start_ns=longest["start_ns"], end_ns=longest["end_ns"]),
        gpu=context.one_gpu("communication"),
    )


def _evidence(
    context: Context, small: pl.DataFrame, collectives: int, exposed_ns: int
) -> tuple[Evidence, ...]:
    lengths = small["end_ns"] - small["start_ns"]
    found = [
        number(f"collectives of less than {units.time(SHORT_NS)}", small.height, "count"),
        number("all collectives", collectives, "count"),
        number("their length (median)", int(lengths.median() or 0), "ns"),  # type: ignore[arg-type]
        number("the shortest of them", int(lengths.min() or 0), "ns"),  # type: ignore[arg-type]
        number("time in which they ran and nothing computed", context.mean_ns(exposed_ns), "ns"),
    ]
    known, steps = small["bytes"].drop_nulls(), context.m.window_steps.height
    if known.len():
        found.append(number("their size (median)", int(known.median() or 0), "bytes"))  # type: ignore[arg-type]
    if steps >= 3:
        found.append(number("such collectives per step", round(small.height / steps), "count"))
    return tuple(found)


def _actions(context: Context, known: int) -> tuple[str, ...]:
    return (
        context.wording(
            pytorch="Reduce gradients in buckets: DistributedDataParallel with bucket_cap_mb=25 or more, or flatten"
            " tensors (torch._utils._flatten_dense_tensors) before one all_reduce.",
            jax="Reduce one flattened array instead of every leaf of the tree; raise"
            " --xla_gpu_all_reduce_combine_threshold_bytes.",
            cuda="Copy the tensors into one buffer and reduce that, or put the calls between ncclGroupStart and"
            " ncclGroupEnd.",
        ),
        "Join scalars for logging into one tensor and reduce them every n-th step.",
        *_record(known),
    )


def _record(known: int) -> tuple[str, ...]:
    if known:
        return ()
    return (
        "To see their sizes, record NVTX (nsys profile --trace=cuda,nvtx,osrt --output=job <your command>) and"
        " export with"
        " nsys export --type=sqlite --include-json=true job.nsys-rep",
    )


RULE = Rule(
    id="small-collectives",
    title="Many small collectives",
    check=check,
    page=page_of(__doc__),
    needs=("communication",),
    thresholds={
        "share": CAUSE_THRESHOLD,
        "count": Threshold(100, "count", "collectives in the window: fewer are not worth joining"),
    },
)
