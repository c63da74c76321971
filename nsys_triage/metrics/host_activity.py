"""What the threads that explain idle time were doing in it: OS calls, CUDA calls, NVTX ranges, CPU samples.

The ledger says under which cause a stretch of idle time falls; this says what to look for in the program. Times are
those of the threads, so that a thread which leaves two GPUs without work at once is counted once.
"""

from typing import Final

import polars as pl

from nsys_triage.intervals import covered
from nsys_triage.metrics.evidence import loader_ranges
from nsys_triage.metrics.work import Workload, on_threads
from nsys_triage.trace.model import Schema, Trace

SPANS: Final[Schema] = {
    "gap": pl.UInt32,
    "gpu": pl.UInt16,
    "thread": pl.UInt32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
}
NAMED: Final[Schema] = {"text": pl.String, "count": pl.UInt32, "ns": pl.Int64}
"""What was done under one name: how often, and for how long. Sorted by ns, the longest first, then text."""


def host_spans(pieces: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """The idle pieces with the thread that explains each (schema SPANS).

    `pieces` as the ledger has them, `gaps` as GAPS. Up to the launch call that is the thread which explains the host
    part, from there on the launching thread. Pieces of which no thread is known, and busy ones, are left out.
    """
    idle = pieces.filter(pl.col("gap").is_not_null())
    of_gap = gaps.select("launch_start_ns", "host_thread", "launch_thread")[idle["gap"]]
    host = idle["start_ns"] < of_gap["launch_start_ns"]
    thread = of_gap.select(pl.when(host).then("host_thread").otherwise("launch_thread").alias("thread"))[
        "thread"
    ]
    return idle.with_columns(thread).filter(pl.col("thread").is_not_null()).select(list(SPANS))


def outermost(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows (thread, start_ns, end_ns, ...) that do not lie inside another row of their thread, sorted by them."""
    ordered = rows.filter(pl.col("thread").is_not_null()).sort(
        ["thread", "start_ns", "end_ns"], descending=[False, False, True]
    )
    reach = pl.col("end_ns").cum_max().shift(1).over("thread")
    return ordered.filter(~(pl.col("end_ns") <= reach).fill_null(value=False))


def time_by_name(spans: pl.DataFrame, rows: pl.DataFrame, strings: pl.DataFrame) -> pl.DataFrame:
    """How long the threads of the spans were in the rows (thread, start_ns, end_ns, name) of each name (schema NAMED).

    `name` is a code of `strings`. A row inside another one counts as part of that. Names of which nothing lies in
    the spans are left out.
    """
    outer = outermost(rows.filter(pl.col("thread").is_in(spans["thread"].unique().implode())))
    return (
        outer.select("name", covered(outer, spans, "thread").alias("ns"))
        .filter(pl.col("ns") > 0)
        .join(strings, left_on="name", right_on="code", how="left")
        .group_by(pl.col("text").fill_null("unknown"))
        .agg(pl.len().alias("count"), pl.col("ns").sum())
        .sort(["ns", "text"], descending=[True, False])
        .cast(dict(NAMED))  # type: ignore[arg-type]
    )


def os_calls_in(trace: Trace, workload: Workload, spans: pl.DataFrame) -> pl.DataFrame:
    """The OS calls in the spans by name (schema NAMED)."""
    return time_by_name(spans, on_threads(trace.osrt, workload.threads), trace.strings)


def api_calls_in(workload: Workload, spans: pl.DataFrame, group: int | None = None) -> pl.DataFrame:
    """The CUDA calls in the spans by plain name (schema NAMED); `group`: only those with one of these bits."""
    calls = workload.calls if group is None else workload.calls.filter((pl.col("group") & group) > 0)
    return time_by_name(spans, calls, workload.api.select("code", pl.col("api").alias("text")))


def loader_ranges_in(trace: Trace, workload: Workload, spans: pl.DataFrame) -> pl.DataFrame:
    """The NVTX ranges in the spans whose name says data loading, by name (schema NAMED)."""
    return time_by_name(spans, loader_ranges(trace, workload), trace.strings)


def symbols_in(trace: Trace, workload: Workload, spans: pl.DataFrame) -> pl.DataFrame:
    """Functions in which CPU samples found the threads of the spans: text, count; the most frequent first, then text.

    Samples without a symbol are left out.
    """
    samples = trace.samples.drop_nulls("symbol").join(workload.threads, on=["pid", "tid"])
    moments = samples.select(
        "symbol", "thread", pl.col("time_ns").alias("start_ns"), (pl.col("time_ns") + 1).alias("end_ns")
    )
    return (
        moments.filter(covered(moments, spans, "thread") > 0)
        .join(trace.strings, left_on="symbol", right_on="code")
        .group_by("text")
        .agg(pl.len().alias("count"))
        .sort(["count", "text"], descending=[True, False])
    )
