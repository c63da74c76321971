"""CPU cores as scheduling rows show them: which threads were on one, how many cores there were, whether all were busy.

Only threads that were recorded count: nsys records those of the process tree unless it is told to record the whole
machine, and then other programs' threads are seen too.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.intervals import clip, covered, merge
from nsys_triage.trace.model import Schema, Trace

ON_CORE: Final[Schema] = {
    "pid": pl.Int32,
    "tid": pl.Int32,
    "cpu": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
}
ACTIVE_SHARE: Final = 0.05
"""A thread counts as one that needs a core if it was on one for this share of the window."""


@dataclass(frozen=True, slots=True)
class CoreUse:
    """The cores over a window."""

    cores: int  # on which any recorded thread ever ran
    active_threads: int  # on a core for at least a twentieth of the window
    threads: int  # all that ran in the window
    busy_share: float  # of the time of those cores in the window
    all_busy: pl.DataFrame  # when every one of them was: start_ns, end_ns, disjoint and sorted


def on_core(scheduling: pl.DataFrame) -> pl.DataFrame:
    """When each thread was on a core (schema ON_CORE, sorted by pid, tid and start), from the rows of SCHEDULING.

    A thread whose first row is its leaving was there since the first row of all; one that is never seen to leave
    stays until the last one.
    """
    first, last = scheduling["time_ns"].min(), scheduling["time_ns"].max()
    if first is None or last is None:
        return pl.DataFrame(schema=ON_CORE)
    of_thread = ("pid", "tid")
    # a thread that leaves and comes back at one moment leaves first
    ordered = scheduling.sort("pid", "tid", "time_ns", "scheduled_in", "cpu")
    return (
        ordered.with_columns(
            pl.col("time_ns").shift(-1).over(of_thread).fill_null(last).alias("next_ns"),
            pl.int_range(pl.len()).over(of_thread).alias("position"),
        )
        .filter(pl.col("scheduled_in") | (pl.col("position") == 0))
        .select(
            *of_thread,
            "cpu",
            pl.when("scheduled_in").then("time_ns").otherwise(first).cast(pl.Int64).alias("start_ns"),
            pl.when("scheduled_in").then("next_ns").otherwise("time_ns").alias("end_ns"),
        )
        .filter(pl.col("end_ns") > pl.col("start_ns"))
        .sort("pid", "tid", "start_ns")
    )


def core_use(trace: Trace, start_ns: int, end_ns: int) -> CoreUse | None:
    """The use of the cores in `[start_ns, end_ns)`; None where no scheduling was recorded there.

    Cores are those that were ever used: a job that is bound to two cores of 256 has two.
    """
    running = on_core(trace.scheduling)
    inside = clip(running, start_ns, end_ns)
    if inside.is_empty():
        return None
    cores = running["cpu"].n_unique()
    length = pl.col("end_ns") - pl.col("start_ns")
    of_core = merge(inside, "cpu")
    of_thread = inside.group_by("pid", "tid").agg(length.sum().alias("ns"))
    busy_ns = int(of_core.select(length.sum()).item())
    return CoreUse(
        cores=cores,
        active_threads=of_thread.filter(pl.col("ns") >= ACTIVE_SHARE * (end_ns - start_ns)).height,
        threads=of_thread.height,
        busy_share=busy_ns / (cores * (end_ns - start_ns)),
        all_busy=_all_busy(of_core, cores),
    )


def _all_busy(of_core: pl.DataFrame, cores: int) -> pl.DataFrame:
    """When that many cores are busy at once; `of_core` as `merge` gives it."""
    edges = [
        of_core.select(pl.col(moment).alias("at_ns"), pl.lit(step, pl.Int64).alias("step"))
        for moment, step in (("start_ns", 1), ("end_ns", -1))
    ]
    running = pl.concat(edges).group_by("at_ns").agg(pl.col("step").sum()).sort("at_ns")
    return merge(
        running.with_columns(
            pl.col("step").cum_sum().alias("busy"), pl.col("at_ns").shift(-1).alias("end_ns")
        )
        .filter((pl.col("busy") >= cores) & pl.col("end_ns").is_not_null())
        .select(pl.col("at_ns").alias("start_ns"), "end_ns")
    )


def off_core_ns(trace: Trace, spans: pl.DataFrame, threads: pl.DataFrame) -> int | None:
    """How long the threads of the spans (thread, start_ns, end_ns) were on no core in them.

    `threads` as THREADS. Threads without scheduling rows do not count; None where no thread of the spans has any.
    """
    rows = on_core(trace.scheduling).join(threads, on=["pid", "tid"])
    known = spans.filter(pl.col("thread").is_in(rows["thread"].unique().implode()))
    if known.is_empty():
        return None
    union = merge(known, "thread")
    length = int(union.select((pl.col("end_ns") - pl.col("start_ns")).sum()).item())
    return length - int(covered(union, rows, "thread").sum())
