"""What each host thread was doing: the layers from which idle time is explained.

A layer is a set of disjoint intervals per thread; a bit names it. The sources are the CUDA calls, OS calls,
overhead rows, MPI and UCX calls and NVTX ranges of the threads that have a gap to explain; helper threads, whose
blocking calls are most of the OS rows of a real trace, are left out.
"""

from typing import Final

import polars as pl

from nsys_triage.intervals import count_inside, merge
from nsys_triage.metrics.api_names import (
    ALLOCATION,
    GRAPH_LAUNCH,
    KERNEL_LAUNCH,
    LAUNCH,
    MODULE_LOAD,
    SYNC,
    loading_names,
    os_groups,
    overhead_kinds,
)
from nsys_triage.metrics.work import COMMUNICATION, COMPUTE, Workload, on_threads
from nsys_triage.trace.model import Trace

# bits of a piece of host time
PROFILER: Final = 1
LOADING: Final = 2  # in a module or library loading call, or covered by an overhead row of the loading kind
FIRST_LAUNCH: Final = 4  # in a launch call of 1 ms or more that is its process's first of that kernel
ALLOCATING: Final = 8
HOST_COMMUNICATION: Final = 16
LOADER_RANGE: Final = 32  # inside an NVTX range whose name says data loading
OS_READ: Final = 64  # waiting or reading in the OS
OS_CALL: Final = 128
CUDA_CALL: Final = 256  # inside any CUDA call, or on the CPU for less than 100 us up to a launch call
WAITING: Final = 512  # inside a synchronising call

SLOW_FIRST_LAUNCH_NS: Final = 1_000_000
DISPATCH_NS: Final = 100_000
LOADER_MAX_LAUNCHES: Final = 3
_COLUMNS: Final = ("thread", "start_ns", "end_ns")


def _dispatch(calls: pl.DataFrame, os_rows: pl.DataFrame) -> pl.DataFrame:
    """Stretches of less than 100 us between a thread's last API or OS row and a launch call."""
    rows = calls.select(*_COLUMNS, ((pl.col("group") & LAUNCH) > 0).alias("launch"))
    if os_rows.height:
        rows = pl.concat([rows, os_rows.select(*_COLUMNS, pl.lit(value=False).alias("launch"))])
    return (
        rows.lazy()
        # of rows that start together the launch comes first: a row nested in it is not what came before it
        .sort("thread", "start_ns", "launch", "end_ns", descending=[False, False, True, False])
        # a thread's rows are one run, so its reach starts anew where the thread changes
        .with_columns(pl.col("end_ns").cum_max().over("thread").shift(1).alias("reach"))
        .filter(pl.col("launch") & (pl.col("thread") == pl.col("thread").shift(1)))
        .filter((pl.col("start_ns") > pl.col("reach")) & (pl.col("start_ns") - pl.col("reach") < DISPATCH_NS))
        .select("thread", pl.col("reach").alias("start_ns"), pl.col("start_ns").alias("end_ns"))
        .collect()
    )


def slow_first_launches(trace: Trace, workload: Workload) -> pl.DataFrame:
    """Rows of CALLS (with `call`) that take 1 ms or more and are their process's first launch of a kernel."""
    calls = workload.calls.with_row_index("call")
    slow = calls.filter(
        ((pl.col("group") & KERNEL_LAUNCH) > 0)
        & (pl.col("end_ns") - pl.col("start_ns") >= SLOW_FIRST_LAUNCH_NS)
    )
    kernels = workload.work.filter(
        pl.col("activity").is_in([COMPUTE, COMMUNICATION]) & pl.col("call").is_not_null()
    )
    if slow.is_empty() or kernels.is_empty():
        return slow.clear()
    launched = kernels.select("pid", "call", trace.kernels["name"].gather(kernels["row"]))
    suspects = launched.join(slow.select("call"), on="call", how="semi").select("pid", "name").unique()
    first = (
        launched.join(suspects, on=["pid", "name"], how="semi")
        .with_columns(
            workload.calls["start_ns"]
            .gather(pl.Series(launched.join(suspects, on=["pid", "name"], how="semi")["call"]))
            .alias("at_ns")
        )
        .sort("at_ns", "call")
        .unique(["pid", "name"], keep="first")
    )
    return slow.join(first.select("call").unique(), on="call", how="semi", maintain_order="left")


def loader_ranges(trace: Trace, workload: Workload) -> pl.DataFrame:
    """NVTX ranges that say data loading and in which the thread launches fewer than three kernels and no graph.

    Columns thread, start_ns, end_ns, name.
    """
    codes = loading_names(trace.strings, trace.nvtx["name"].drop_nulls().unique())
    ranges = on_threads(trace.nvtx.filter(pl.col("name").is_in(codes.implode())), workload.threads).select(
        *_COLUMNS, "name"
    )

    def inside(group: int) -> pl.Series:
        calls = workload.calls.filter((pl.col("group") & group) > 0)
        return count_inside(ranges, calls.select("thread", pl.col("start_ns").alias("at_ns")), "thread")

    # a graph is many kernels in one call: a decode step of a language model is often nothing else
    return ranges.filter((inside(KERNEL_LAUNCH) < LOADER_MAX_LAUNCHES) & (inside(GRAPH_LAUNCH) == 0))


def host_layers(trace: Trace, workload: Workload, threads: pl.Series) -> dict[int, pl.DataFrame]:
    """The layers of those threads by bit, each merged per thread; layers without rows are left out."""

    def of(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(pl.col("thread").is_in(threads.implode()))

    calls = workload.calls if threads.len() == workload.calls["thread"].n_unique() else of(workload.calls)
    overheads = overhead_kinds(of(on_threads(trace.overheads, workload.threads)), trace.strings)
    os_rows = of(on_threads(trace.osrt, workload.threads)).join(
        os_groups(trace.strings).select("code", "reads"),
        left_on="name",
        right_on="code",
        how="left",
        maintain_order="left",
    )

    def grouped(bit: int) -> pl.DataFrame:
        return calls.filter((pl.col("group") & bit) > 0).select(_COLUMNS)

    layers = {
        PROFILER: overheads.filter("profiler"),
        LOADING: pl.concat([grouped(MODULE_LOAD), overheads.filter("loading").select(_COLUMNS)]),
        FIRST_LAUNCH: of(slow_first_launches(trace, workload)),
        ALLOCATING: grouped(ALLOCATION),
        HOST_COMMUNICATION: of(on_threads(trace.host_communication, workload.threads)),
        LOADER_RANGE: of(loader_ranges(trace, workload)),
        OS_READ: os_rows.filter("reads"),
        OS_CALL: os_rows,
        # no OS row lies in a dispatch stretch, and launch calls follow each other within 100 us where launching is
        # the limit: joined, a million calls are a few thousand intervals
        CUDA_CALL: pl.concat([calls.select(_COLUMNS), _dispatch(calls, os_rows)]),
        WAITING: grouped(SYNC),
    }
    return {bit: merge(frame, "thread") for bit, frame in layers.items() if frame.height}
