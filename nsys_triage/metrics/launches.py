"""Kernel and graph launch calls: how many, how long they take, how far ahead of the GPU they run."""

from typing import Final

import polars as pl

from nsys_triage.intervals import covered
from nsys_triage.metrics.api_names import GRAPH_LAUNCH, KERNEL_LAUNCH, LAUNCH
from nsys_triage.metrics.histogram import nearest_rank
from nsys_triage.metrics.window import Window
from nsys_triage.metrics.work import COMMUNICATION, COMPUTE, GRAPH, Workload
from nsys_triage.result.model import Launches, LaunchMatch

NOT_READY: Final = 600
BLOCKED_NS: Final = 50_000
BLOCKED_TIMES_MEDIAN: Final = 10
BLOCKED_BUSY_SHARE: Final = 0.9


def launch_match(workload: Workload) -> LaunchMatch:
    """How much of the device work of the capture found its launch call."""
    matched = workload.work["call"].is_not_null().sum()
    return LaunchMatch(matched=int(matched), unmatched=workload.work.height - int(matched))


def failed_launches(workload: Workload) -> int:
    """Kernel and graph launch calls of the capture that returned an error (not 600, not ready) and left no work."""
    failed = (
        ((pl.col("group") & LAUNCH) > 0)
        & (pl.col("return_value") != 0)
        & (pl.col("return_value") != NOT_READY)
    )
    calls = workload.calls.with_row_index("call").filter(failed.fill_null(value=False))
    return calls.join(workload.work.select("call").drop_nulls(), on="call", how="anti").height


def launches_without_work(workload: Workload) -> tuple[int, int]:
    """Successful kernel launches of the capture without a kernel, and all of them.

    Processes that launch graphs are left out: what is launched while a graph is captured runs with the graph.
    """
    with_graphs = workload.calls.filter((pl.col("group") & GRAPH_LAUNCH) > 0)["pid"].unique()
    calls = workload.calls.filter(
        ((pl.col("group") & KERNEL_LAUNCH) > 0)
        & (pl.col("return_value").fill_null(0) == 0)
        & ~pl.col("pid").is_in(with_graphs.implode())
    )
    work = workload.work.select("pid", "correlation").drop_nulls()
    return calls.join(work, on=["pid", "correlation"], how="anti").height, calls.height


def launched_work(workload: Workload) -> pl.DataFrame:
    """The first work of every launch call: call, gpu, start_ns, launch_start_ns, launch_end_ns; sorted by call.

    A graph launch is one launch however many nodes it runs.
    """
    rows = workload.work.filter(
        pl.col("call").is_not_null() & pl.col("activity").is_in([COMPUTE, GRAPH, COMMUNICATION])
    )
    first = (
        rows.lazy()
        .select("call", "start_ns", "gpu")
        .sort("call", "start_ns", "gpu")
        .unique("call", keep="first", maintain_order=True)
        .collect()
        if rows["call"].n_unique() < rows.height
        else rows.select("call", "start_ns", "gpu").sort("call")
    )
    calls = workload.calls
    return first.with_columns(
        calls["start_ns"].gather(first["call"]).alias("launch_start_ns"),
        calls["end_ns"].gather(first["call"]).alias("launch_end_ns"),
    )


def blocked_launches(pieces: pl.DataFrame, launched: pl.DataFrame) -> pl.DataFrame:
    """Those of `launched` that were back-pressure: the queue was full, which is never a launch problem.

    Calls of 50 us or more, and ten times the median, while their GPU was busy for at least 90 % of the call.
    """
    length = launched["launch_end_ns"] - launched["launch_start_ns"]
    median = length.quantile(0.5, interpolation="lower")
    if median is None:
        return launched
    long = launched.filter((length >= BLOCKED_NS) & (length >= BLOCKED_TIMES_MEDIAN * median))
    spans = long.select(
        "gpu", pl.col("launch_start_ns").alias("start_ns"), pl.col("launch_end_ns").alias("end_ns")
    )
    reach = spans.select(pl.col("start_ns").min().alias("low"), pl.col("end_ns").max().alias("high")).row(0)
    near = (
        pieces.filter(
            pl.col("gap").is_null() & (pl.col("end_ns") > reach[0]) & (pl.col("start_ns") < reach[1])
        )
        if long.height
        else pieces.clear()
    )
    busy = covered(spans, near, "gpu")
    return long.filter(busy >= BLOCKED_BUSY_SHARE * (spans["end_ns"] - spans["start_ns"]))


def _queue_depth(launched: pl.DataFrame) -> int | None:
    """Median number of launches that had been made and whose work had not begun, seen by each launch on its GPU."""
    depths = []
    for (_,), rows in launched.group_by(["gpu"], maintain_order=True):
        made = rows["launch_start_ns"].sort()
        begun = rows["start_ns"].sort().search_sorted(made, side="right").cast(pl.Int64)
        depths.append(pl.int_range(made.len(), dtype=pl.Int64, eager=True) - begun)
    return nearest_rank(pl.concat(depths).clip(lower_bound=0), 50) if depths else None


def summarize_launches(workload: Workload, pieces: pl.DataFrame, window: Window) -> Launches:
    """The kernel and graph launch calls that start in the window; `pieces` are the ledger's over the whole capture.

    Percentiles are None where none was matched.
    """
    calls = window.rows(workload.calls.filter((pl.col("group") & LAUNCH) > 0))
    launched = window.rows(launched_work(workload), "launch_start_ns")
    latency = launched["start_ns"] - launched["launch_start_ns"]
    blocked = blocked_launches(pieces, launched)
    span_ns = window.end_ns - window.start_ns
    return Launches(
        host_calls=calls.height,
        api_ns=int((calls["end_ns"] - calls["start_ns"]).sum()),
        latency_p50_ns=nearest_rank(latency.clip(lower_bound=0), 50),
        latency_p95_ns=nearest_rank(latency.clip(lower_bound=0), 95),
        blocked_calls=blocked.height,
        clock_faults=int((latency < 0).sum()),
        per_s=round(calls.height * 1e9 / span_ns, 1) if span_ns else None,
        blocked_ns=int((blocked["launch_end_ns"] - blocked["launch_start_ns"]).sum()),
        queue_depth_p50=_queue_depth(launched),
        threads=calls["thread"].n_unique(),
    )
