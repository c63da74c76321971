"""Loading and compiling of GPU code in a window: whether it happened once, or keeps coming.

A job loads its modules at the start, and again when a phase begins (the first optimizer step, the first validation).
Only what goes on beyond that is a fault of the steady state: shapes that change, code that is compiled per call.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.metrics.api_names import MODULE_LOAD, overhead_kinds
from nsys_triage.metrics.evidence import slow_first_launches
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.window import Window
from nsys_triage.metrics.work import COMPUTE, Workload
from nsys_triage.trace.model import Schema, Trace

TENTHS: Final = 10
ONCE: Final = 2
"""Tenths in which loading may be heavy without being called repeated: the start, and one later phase."""
LOADING_BY_TENTH: Final[Schema] = {"tenth": pl.UInt8, "ns": pl.Int64, "new_kernels": pl.UInt32}


@dataclass(frozen=True, slots=True)
class Loading:
    """Loading in a window. Times are idle time under `module_load`, sums over the GPUs."""

    total_ns: int
    first_ns: int  # in the first tenth of the device operations
    repeated_ns: int  # without the two tenths that have most
    tenths: int  # in how many tenths there is any
    late_kernels: int  # kernel names that first appear in the later half of the operations
    calls: int  # module and library loading calls
    compilations: int  # overhead rows of JIT compilation and lazy loading
    slow_launches: int  # first launches of a kernel that take 1 ms or more


def loading_by_tenth(
    trace: Trace, workload: Workload, pieces: pl.DataFrame, work: pl.DataFrame
) -> pl.DataFrame:
    """Idle time under `module_load` and new kernel names by tenth of the device operations (schema LOADING_BY_TENTH).

    `pieces` and `work` are the window's. Operations and not time are the clock, since loading stretches time. A name
    is new where the capture shows it for the first time. Ten rows; of no length and no names without work.
    """
    starts = work["start_ns"].sort()
    frame = pl.DataFrame({"tenth": range(TENTHS)}, schema={"tenth": pl.UInt8})

    def tenth(moments: pl.Series) -> pl.Series:
        before = starts.search_sorted(moments, side="left").cast(pl.Int64)
        return (before * TENTHS // max(1, starts.len())).clip(0, TENTHS - 1).cast(pl.UInt8).alias("tenth")

    loading = pieces.filter(pl.col("cause") == CODE["module_load"])
    length = (loading["end_ns"] - loading["start_ns"]).alias("ns")
    times = pl.DataFrame([tenth(loading["start_ns"]), length]).group_by("tenth").agg(pl.col("ns").sum())
    first = first_starts(trace, workload)["start_ns"]
    inside = first.filter(first.is_between(starts[0], starts[-1])) if starts.len() else first.clear()
    names = tenth(inside).to_frame().group_by("tenth").agg(pl.len().alias("new_kernels"))
    return (
        frame.join(times, on="tenth", how="left")
        .join(names, on="tenth", how="left")
        .with_columns(pl.col("ns").fill_null(0), pl.col("new_kernels").fill_null(0))
        .sort("tenth")
        .cast(dict(LOADING_BY_TENTH))  # type: ignore[arg-type]
    )


def first_starts(trace: Trace, workload: Workload) -> pl.DataFrame:
    """When each kernel name of the capture first ran: text, start_ns; sorted by both."""
    kernels = workload.work.filter(pl.col("activity") == COMPUTE)
    return (
        kernels.select("start_ns", trace.kernels["name"].gather(kernels["row"]).alias("code"))
        .group_by("code")
        .agg(pl.col("start_ns").min())
        .join(workload.names.select("code", "text"), on="code")
        .group_by("text")
        .agg(pl.col("start_ns").min())
        .sort("start_ns", "text")
    )


def summarize_loading(trace: Trace, workload: Workload, pieces: pl.DataFrame, window: Window) -> Loading:
    """The loading in the window; `pieces` are the ledger's in it."""
    table = loading_by_tenth(trace, workload, pieces, window.rows(workload.work))
    times = sorted(table["ns"].to_list())
    rows = overhead_kinds(trace.overheads, trace.strings).filter("loading")
    return Loading(
        total_ns=sum(times),
        first_ns=int(table["ns"][0]),
        repeated_ns=sum(times[: TENTHS - ONCE]),
        tenths=sum(ns > 0 for ns in times),
        late_kernels=int(table["new_kernels"][TENTHS // 2 :].sum()),
        calls=window.rows(workload.calls.filter((pl.col("group") & MODULE_LOAD) > 0)).height,
        compilations=window.rows(rows).height,
        slow_launches=window.rows(slow_first_launches(trace, workload)).height,
    )
