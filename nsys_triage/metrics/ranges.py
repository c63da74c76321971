"""NVTX ranges, and the GPU time of what was launched inside them."""

from typing import Final

import polars as pl

from nsys_triage.intervals import covered, merge, union_length
from nsys_triage.metrics.histogram import nearest_rank
from nsys_triage.metrics.window import Window
from nsys_triage.metrics.work import Workload, on_threads
from nsys_triage.result.model import RangeRow
from nsys_triage.trace.model import Trace

TOP: Final = 30


def named_ranges(trace: Trace, workload: Workload, window: Window) -> pl.DataFrame:
    """The ranges of the window that have a name: text, thread, pid, start_ns, end_ns."""
    return (
        on_threads(window.rows(trace.nvtx), workload.threads)
        .join(trace.strings, left_on="name", right_on="code", maintain_order="left")
        .filter(pl.col("text").str.strip_chars() != "")
        .select("text", "thread", "pid", "start_ns", "end_ns")
    )


def launched_on_threads(workload: Workload, window: Window) -> pl.DataFrame:
    """Device work of the window: gpu, start_ns, end_ns, thread and at_ns of its launch (null where not known)."""
    work = window.rows(workload.work)
    calls = workload.calls
    return work.select("gpu", "start_ns", "end_ns").with_columns(
        calls["thread"].gather(work["call"]), calls["start_ns"].gather(work["call"]).alias("at_ns")
    )


def _owned(launched: pl.DataFrame, ranges: pl.DataFrame) -> pl.Series:
    """Whether the launch of each row lies inside the union of the ranges of its thread (Boolean, in the order of rows)."""
    moment = launched.select("thread", pl.col("at_ns").alias("start_ns"), (pl.col("at_ns") + 1).alias("end_ns"))
    return covered(moment, ranges, "thread") > 0


def summarize_ranges(trace: Trace, workload: Workload, window: Window) -> tuple[list[RangeRow], int]:
    """The NVTX ranges with the most time, by name, and the GPU time that no range owns (ns, summed over the GPUs)."""
    ranges = named_ranges(trace, workload, window)
    launched = launched_on_threads(workload, window)
    total_ns = int(union_length(window.rows(workload.work), "gpu")["ns"].sum())
    if ranges.is_empty():
        return [], total_ns
    length = pl.col("end_ns") - pl.col("start_ns")
    top = (
        ranges.lazy()
        .group_by("text")
        .agg(pl.len().alias("count"), length.sum().alias("total_ns"))
        .sort(["total_ns", "text"], descending=[True, False])
        .head(TOP)
        .collect()
    )
    by_process = {pid: rows for (pid,), rows in window.rows(workload.work).group_by(["pid"], maintain_order=True)}
    rows = []
    for name, count, name_ns in top.iter_rows():
        own = ranges.filter(pl.col("text") == name)
        on_own = launched.filter(pl.col("thread").is_in(own["thread"].unique().implode()))
        rows.append(
            RangeRow(
                name=name,
                count=count,
                total_ns=name_ns,
                gpu_ns=int(union_length(on_own.filter(_owned(on_own, own)), "gpu")["ns"].sum()),
                gpu_window_ns=_in_time(own, by_process),
                p50_ns=nearest_rank(own["end_ns"] - own["start_ns"], 50) or 0,
            )
        )
    rest = launched.filter(~_owned(launched, ranges))
    return rows, int(union_length(rest, "gpu")["ns"].sum())


def _in_time(ranges: pl.DataFrame, by_process: dict[object, pl.DataFrame]) -> int:
    """Device time of the same process while the ranges last, whatever launched it."""
    total = 0
    for (pid,), own in ranges.group_by(["pid"], maintain_order=True):
        work = by_process.get(pid)
        if work is None:
            continue
        union = merge(own)
        for (_,), of_gpu in work.group_by(["gpu"], maintain_order=True):
            total += int(covered(union, of_gpu).sum())
    return total
