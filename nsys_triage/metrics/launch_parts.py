"""Idle time under the cause `launch`, by what the launching thread was doing.

Time in kernel launch calls, copy calls and other CUDA calls is mended by different means, and so is the time between
the calls, which is the framework's or the program's own.
"""

from typing import Final

import polars as pl

from nsys_triage.intervals import covered
from nsys_triage.metrics.api_names import GRAPH_LAUNCH, KERNEL_LAUNCH
from nsys_triage.metrics.gaps import LATENCY_SAMPLES, GapTable
from nsys_triage.metrics.host_activity import host_spans, outermost
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.work import Workload
from nsys_triage.trace.model import Schema

KERNEL_CALLS, GRAPH_CALLS, COPY_CALLS, OTHER_CALLS, BETWEEN, LATENCY = (
    "kernel launch calls", "graph launch calls", "copy and memset calls", "other CUDA calls", "between the calls",
    "start of the work",
)  # fmt: skip
PARTS: Final[Schema] = {"gpu": pl.UInt16, "part": pl.String, "api": pl.String, "ns": pl.Int64}
"""`api`: plain name of the call; null for `between the calls` (the CPU, up to a launch) and `start of the work`
(from the end of the launch call to the start of what it launched). Sorted by gpu, ns (longest first), part, api."""

SWITCH_NS: Final = 1_500
_COPY_CALL: Final = r"^(cudaMemcpy|cuMemcpy|cudaMemset|cuMemset)"


def launch_parts(workload: Workload, table: GapTable, pieces: pl.DataFrame) -> pl.DataFrame:
    """The `launch` time of the ledger pieces by part and call (schema PARTS); it sums to theirs exactly.

    Up to the launch call that ended the gap, the time is in the outermost call of the thread, else between calls; then
    in that launch call; then in the start of the work.
    """
    launch = pieces.filter(pl.col("cause") == CODE["launch"])
    spans = host_spans(launch, table.gaps)
    facts = table.gaps.select("launch_start_ns", "launch_end_ns", "call")[spans["gap"]]
    spans = spans.with_columns(facts)
    before = spans.with_columns(pl.min_horizontal("end_ns", "launch_start_ns").alias("end_ns"))
    inside = spans.with_columns(
        pl.max_horizontal("start_ns", "launch_start_ns").alias("start_ns"),
        pl.min_horizontal("end_ns", "launch_end_ns").alias("end_ns"),
    )
    after = spans.with_columns(pl.max_horizontal("start_ns", "launch_end_ns").alias("start_ns"))
    return (
        pl.concat(
            [
                _before_the_call(workload, _proper(before)),
                _in_the_call(workload, _proper(inside)),
                _length(_proper(after), LATENCY),
            ]
        )
        .filter(pl.col("ns") > 0)
        .group_by("gpu", "part", "api")
        .agg(pl.col("ns").sum())
        .sort(["gpu", "ns", "part", "api"], descending=[False, True, False, False])
        .select(list(PARTS))
    )


def switch_ns(pieces: pl.DataFrame) -> int:
    """How long this GPU idles from one operation to the next when the next is queued in good time (ns).

    The lower median over the gaps under `queued` alone; 1.5 us where there are fewer than 20. Measured on real traces:
    1.1 to 1.4 us.
    """
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns")
    of_gap = (
        pieces.filter(pl.col("gap").is_not_null())
        .group_by("gap")
        .agg(length, (pl.col("cause") == CODE["queued"]).all().alias("queued"))
    )
    queued = of_gap.filter("queued")["ns"]
    median = queued.quantile(0.5, interpolation="lower") if queued.len() >= LATENCY_SAMPLES else None
    return SWITCH_NS if median is None else int(median)


def beyond_switch_ns(pieces: pl.DataFrame) -> int:
    """The `launch` time of the pieces beyond one switch per gap: what there is to gain if all work were queued (ns)."""
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns")
    of_gap = pieces.filter(pl.col("cause") == CODE["launch"]).group_by("gap").agg(length)["ns"]
    return int((of_gap - switch_ns(pieces)).clip(lower_bound=0).sum())


def _proper(spans: pl.DataFrame) -> pl.DataFrame:
    return spans.filter(pl.col("end_ns") > pl.col("start_ns"))


def _length(spans: pl.DataFrame, part: str) -> pl.DataFrame:
    """The lengths of the spans under one part."""
    return spans.select(
        "gpu",
        pl.lit(part).alias("part"),
        pl.lit(None, pl.String).alias("api"),
        (pl.col("end_ns") - pl.col("start_ns")).alias("ns"),
    )


def _part_of(group: pl.Expr, api: pl.Expr) -> pl.Expr:
    return (
        pl.when((group & KERNEL_LAUNCH) > 0)
        .then(pl.lit(KERNEL_CALLS))
        .when((group & GRAPH_LAUNCH) > 0)
        .then(pl.lit(GRAPH_CALLS))
        .when(api.str.contains(_COPY_CALL))
        .then(pl.lit(COPY_CALLS))
        .otherwise(pl.lit(OTHER_CALLS))
    )


def _named(workload: Workload, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows (gpu, name, group, ns) by `part` and `api` in place of name and group, summed."""
    # a million calls have a few dozen names: summed by code before a text is looked at
    totals = rows.group_by("gpu", "name", "group").agg(pl.col("ns").sum())
    named = totals.join(workload.api.select("code", "api"), left_on="name", right_on="code", how="left")
    api = pl.col("api").fill_null("unknown")
    return named.select("gpu", _part_of(pl.col("group"), api).alias("part"), api, "ns")


def _in_the_call(workload: Workload, spans: pl.DataFrame) -> pl.DataFrame:
    calls = workload.calls.select("name", "group")[spans["call"]]
    return _named(
        workload, spans.select("gpu", (pl.col("end_ns") - pl.col("start_ns")).alias("ns")).with_columns(calls)
    )


def _before_the_call(workload: Workload, spans: pl.DataFrame) -> pl.DataFrame:
    """The host parts: those of one GPU and thread are disjoint, so each GPU is looked at by itself."""
    found = [_length(spans.clear(), BETWEEN)]
    calls = outermost(workload.calls.filter(pl.col("thread").is_in(spans["thread"].unique().implode())))
    for (gpu,), own in spans.group_by(["gpu"], maintain_order=True):
        in_calls = calls.select("name", "group", covered(calls, own, "thread").alias("ns")).with_columns(
            pl.lit(gpu, pl.UInt16).alias("gpu")
        )
        rest = int(_length(own, BETWEEN)["ns"].sum()) - int(in_calls["ns"].sum())
        between = pl.DataFrame({"gpu": [gpu], "part": [BETWEEN], "api": [None], "ns": [rest]}, schema=PARTS)
        found += [_named(workload, in_calls), between]
    return pl.concat(found)
