"""NVTX ranges, and the GPU time of what was launched inside them."""

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """The device work of a window with a known launch, in the order of launches, thread by thread."""

    rows: pl.DataFrame  # work (row in WORK), gpu, start_ns, end_ns
    at_ns: dict[int, pl.Series]  # thread -> when its launches began, sorted
    first: dict[int, int]  # thread -> row of its first launch

    def inside(self, ranges: pl.DataFrame) -> pl.DataFrame:
        """The rows whose launch lies inside the union of the ranges (thread, start_ns, end_ns) of its thread."""
        slices = [pl.DataFrame(schema={"low": pl.Int64, "high": pl.Int64})]
        for (thread,), union in merge(ranges, "thread").partition_by("thread", as_dict=True).items():
            if thread in self.at_ns:
                low, high = (
                    self.at_ns[thread].search_sorted(union[c], side="left").cast(pl.Int64)
                    + self.first[thread]
                    for c in ("start_ns", "end_ns")
                )
                slices.append(pl.DataFrame({"low": low, "high": high}))
        rows = (
            pl.concat(slices)
            .filter(pl.col("high") > pl.col("low"))
            .select(pl.int_ranges("low", "high").alias("row").explode())
        )
        return self.rows[rows["row"]]


def launch_order(workload: Workload, window: Window) -> LaunchOrder:
    """The window's device work in launch order. CALLS are sorted by thread and start, so the order of calls is that."""
    matched = workload.work.with_row_index("work").filter(pl.col("call").is_not_null())
    work = window.rows(matched).sort("call", maintain_order=True)
    calls = workload.calls
    placed = work.select("work", "gpu", "start_ns", "end_ns").with_columns(
        calls["thread"].gather(work["call"]), calls["start_ns"].gather(work["call"]).alias("at_ns")
    )
    by_thread = placed.select("thread", "at_ns").with_row_index("row").partition_by("thread", as_dict=True)
    return LaunchOrder(
        placed.select("work", "gpu", "start_ns", "end_ns"),
        {thread: rows["at_ns"] for (thread,), rows in by_thread.items()},
        {thread: int(rows["row"][0]) for (thread,), rows in by_thread.items()},
    )


def _in_time(ranges: pl.DataFrame, workload: Workload, window: Window) -> dict[str, int]:
    """Per name the device time of the same process while its ranges last, whatever launched it."""
    names = ranges.select("text").unique().sort("text").with_row_index("name")
    numbered = ranges.join(names, on="text", maintain_order="left")
    totals = dict.fromkeys(names["text"].to_list(), 0)
    for (pid, _), own in window.rows(workload.work).partition_by("pid", "gpu", as_dict=True).items():
        spans = merge(numbered.filter(pl.col("pid") == pid), "name")
        inside = (
            spans.select("name", covered(spans, own).alias("ns")).group_by("name").agg(pl.col("ns").sum())
        )
        for name, ns in inside.iter_rows():
            totals[names["text"][name]] += ns
    return totals


def summarize_ranges(trace: Trace, workload: Workload, window: Window) -> tuple[list[RangeRow], int]:
    """The NVTX ranges with the most time, by name, and the GPU time that no range owns (ns, summed over the GPUs)."""
    ranges = named_ranges(trace, workload, window)
    if ranges.is_empty():
        return [], int(union_length(window.rows(workload.work), "gpu")["ns"].sum())
    launched = launch_order(workload, window)
    length = pl.col("end_ns") - pl.col("start_ns")
    top = (
        ranges.lazy()
        .group_by("text")
        .agg(pl.len().alias("count"), length.sum().alias("total_ns"))
        .sort(["total_ns", "text"], descending=[True, False])
        .head(TOP)
        .collect()
    )
    listed = ranges.join(top.select("text"), on="text", how="semi")
    in_time = _in_time(listed, workload, window)
    by_name = {name: rows for (name,), rows in listed.partition_by("text", as_dict=True).items()}
    rows = [
        RangeRow(
            name=name,
            count=count,
            total_ns=total_ns,
            gpu_ns=int(union_length(launched.inside(by_name[name]), "gpu")["ns"].sum()),
            gpu_window_ns=in_time[name],
            p50_ns=nearest_rank(by_name[name]["end_ns"] - by_name[name]["start_ns"], 50) or 0,
        )
        for name, count, total_ns in top.iter_rows()
    ]
    return rows, _unowned_ns(workload, window, launched, ranges)


def _unowned_ns(workload: Workload, window: Window, launched: LaunchOrder, ranges: pl.DataFrame) -> int:
    """Union per GPU of the window's device work that no range of its launching thread owns."""
    owned = pl.repeat(value=False, n=workload.work.height, dtype=pl.Boolean, eager=True)
    owned = owned.scatter(launched.inside(ranges)["work"], values=True)
    rest = window.rows(workload.work.filter(~owned))
    return int(union_length(rest, "gpu")["ns"].sum())
