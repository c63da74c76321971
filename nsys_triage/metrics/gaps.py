"""The gaps of every GPU: what ended each, which call launched that, and which thread has to explain it."""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.intervals import covered, subtract
from nsys_triage.metrics.api_names import GRAPH_LAUNCH, os_groups
from nsys_triage.metrics.work import (
    COPY,
    DEVICE_TO_HOST,
    HOST_TO_DEVICE,
    LARGE_READ_BYTES,
    UNIFIED_KINDS,
    Workload,
    on_threads,
)
from nsys_triage.trace.model import Schema, Trace

GAPS: Final[Schema] = {
    "gap": pl.UInt32,  # row
    "gpu": pl.UInt16,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "pid": pl.Int32,
    "work": pl.UInt32,  # row in WORK of the operation that ends the gap
    "call": pl.UInt32,  # row in CALLS of its launch; null where not known
    "launch_start_ns": pl.Int64,
    "launch_end_ns": pl.Int64,
    "launch_thread": pl.UInt32,
    "host_thread": pl.UInt32,  # the thread that explains the host part: the launching one, or its stand-in
    "unified": pl.Boolean,  # ended by a unified-memory migration
    "after_large_read": pl.Boolean,  # a device-to-host copy of 1 MiB or more ended last before it
    "input_copy": pl.Boolean,  # ended by an input copy
    "opaque": pl.Boolean,  # its process launched graphs whose GPU time the export does not hold
}
"""Sorted by gpu and start. Gaps of the whole capture: they are explained as wholes and cut to a window later."""

INPUT_COPY_BYTES: Final = 64 * 1024
INPUT_COPY_TIMES: Final = 3
DEFAULT_LATENCY_NS: Final = 10_000
LATENCY_SAMPLES: Final = 20
CLOCK_FAULT_SHARE: Final = 0.05
STAND_IN_AWAKE_NS: Final = 100_000


@dataclass(frozen=True, slots=True)
class GapTable:
    """All gaps, and what the explanation of every one of them rests on."""

    gaps: pl.DataFrame  # GAPS
    latency_ns: int  # the trace's normal time from the end of a launch call to the start of its work
    clock_fault: bool


def copies_after_kernels(trace: Trace, workload: Workload) -> pl.DataFrame:
    """Host-to-device copies of at least 64 KiB that come after kernel work.

    That is: the operation that started last before it on that GPU is not itself such a copy. Columns: work (row in
    WORK), gpu, start_ns, end_ns, pid, stream, context, bytes.
    """
    is_large = (trace.memcpys["copy_kind"] == HOST_TO_DEVICE) & (trace.memcpys["bytes"] >= INPUT_COPY_BYTES)
    large_rows = is_large.fill_null(value=False).arg_true().cast(pl.UInt32)
    found = (
        workload.work.lazy()
        .with_row_index("work")
        .filter(pl.col("end_ns") > pl.col("start_ns"))
        .with_columns(
            ((pl.col("activity") == COPY) & pl.col("row").is_in(large_rows.implode())).alias("large")
        )
        .with_columns(
            # what comes first on its GPU comes after no work: weights are uploaded there
            (~pl.col("large").shift(1) & (pl.col("gpu") == pl.col("gpu").shift(1)))
            .fill_null(value=False)
            .alias("after_work")
        )
        .filter(pl.col("large") & pl.col("after_work"))
        .select("work", "gpu", "start_ns", "end_ns", "pid", "stream", "row")
        .collect()
    )
    return found.with_columns(trace.memcpys["context", "bytes"][found["row"]]).drop("row")


def input_copies(candidates: pl.DataFrame, window: tuple[int, int]) -> pl.DataFrame:
    """Those copies after kernels that recur: at least three of that size on that stream start in the window."""
    inside = candidates.filter(pl.col("start_ns").is_between(*window, closed="left"))
    # stream ids are unique within a context only, and two processes may share the GPU
    key = ["gpu", "pid", "context", "stream", "bytes"]
    recurring = inside.group_by(key).agg(pl.len().alias("times")).filter(pl.col("times") >= INPUT_COPY_TIMES)
    return candidates.join(recurring, on=key, how="semi", maintain_order="left", nulls_equal=True)


def _ended(work: pl.DataFrame) -> pl.DataFrame:
    """The gaps of all GPUs with the operation that ends each: gap, gpu, start_ns, end_ns, work; sorted.

    An operation ends a gap where it starts after everything before it on its GPU has ended. Of several that start
    together it is the one launched first, then that of the lowest stream, then of the lowest correlation id.
    """
    proper = work.with_row_index("work").filter(pl.col("end_ns") > pl.col("start_ns"))
    parts = [
        rows.select(
            "work",
            "gpu",
            "start_ns",
            pl.col("end_ns").cum_max().shift(1).alias("reach"),
            (pl.col("start_ns") == pl.col("start_ns").shift(-1)).alias("tied"),
        ).filter(pl.col("start_ns") > pl.col("reach"))
        for rows in proper.partition_by("gpu", maintain_order=True)
    ]
    if not parts:
        return pl.DataFrame(
            schema={c: GAPS[c] for c in ("gap", "gpu", "start_ns", "end_ns", "work")} | {"tied": pl.Boolean}
        )
    return (
        pl.concat(parts)
        .with_row_index("gap")
        .select(
            "gap",
            "gpu",
            pl.col("reach").alias("start_ns"),
            pl.col("start_ns").alias("end_ns"),
            "work",
            pl.col("tied").fill_null(value=False),
        )
    )


def _launched_first(gaps: pl.DataFrame, workload: Workload) -> pl.DataFrame:
    """Of the operations that start together at the end of those gaps the one launched first: gap, work."""
    candidates = workload.work.with_row_index("work").filter(pl.col("end_ns") > pl.col("start_ns"))
    joined = gaps.select("gap", "gpu", "end_ns").join(
        candidates.select("work", "gpu", "stream", "correlation", "call", pl.col("start_ns").alias("end_ns")),
        on=["gpu", "end_ns"],
    )
    return (
        joined.with_columns(workload.calls["start_ns"].gather(joined["call"]).alias("launch_ns"))
        .sort("gap", "launch_ns", "stream", "correlation", "work", nulls_last=True)
        .unique("gap", keep="first", maintain_order=True)
        .select("gap", "work")
    )


def _ended_by(workload: Workload) -> pl.DataFrame:
    """The gaps of all GPUs with the operation that ends each and the call that launched it."""
    gaps = _ended(workload.work)
    tied = gaps.filter("tied")
    if tied.height:
        first = _launched_first(tied, workload)
        gaps = gaps.join(first, on="gap", how="left", suffix="_first", maintain_order="left").with_columns(
            pl.coalesce("work_first", "work").alias("work")
        )
    work, calls = workload.work, workload.calls
    call = work["call"].gather(gaps["work"])
    return gaps.select("gap", "gpu", "start_ns", "end_ns", "work").with_columns(
        work["pid"].gather(gaps["work"]),
        call,
        calls["start_ns"].gather(call).alias("launch_start_ns"),
        calls["end_ns"].gather(call).alias("launch_end_ns"),
        calls["thread"].gather(call).alias("launch_thread"),
    )


def launch_latency_ns(gaps: pl.DataFrame) -> int:
    """The lower median of the time from the end of a launch call to the start of its work (0 where that starts first).

    Over the operations that end a gap and whose launch began inside it; 10 us where there are fewer than 20.
    """
    inside = gaps.filter(
        pl.col("launch_start_ns").is_between(pl.col("start_ns"), pl.col("end_ns"), closed="left")
    )
    if inside.height < LATENCY_SAMPLES:
        return DEFAULT_LATENCY_NS
    waits = (inside["end_ns"] - inside["launch_end_ns"]).clip(lower_bound=0)
    median = waits.quantile(0.5, interpolation="lower")
    return int(median) if median is not None else DEFAULT_LATENCY_NS


def clock_faults(workload: Workload) -> tuple[int, int]:
    """How much of the matched work starts before its launch call began, and how much is matched."""
    matched = workload.work.filter(pl.col("call").is_not_null())
    early = matched["start_ns"] < workload.calls["start_ns"].gather(matched["call"])
    return int(early.sum()), matched.height


def opaque_processes(trace: Trace, workload: Workload) -> list[int]:
    """Processes that launch graphs of which the export holds neither executions nor nodes."""
    launching = workload.calls.filter((pl.col("group") & GRAPH_LAUNCH) > 0)["pid"].unique()
    with_nodes = [
        frame.filter(pl.col("graph_node").is_not_null() & (pl.col("graph_node") > 0))["pid"]
        for frame in (trace.kernels, trace.memcpys, trace.memsets)
    ]
    seen = pl.concat([*with_nodes, trace.graphs["pid"]]).unique()
    return sorted(set(launching.to_list()) - set(seen.to_list()))


def _stand_ins(trace: Trace, workload: Workload, gaps: pl.DataFrame) -> pl.Series:
    """For each gap the thread that explains its host part: the launching one, or the one that it only waited for.

    The thread whose call launched device work last before the gap stands in where the launching thread waits for
    another thread through the host part but for less than 100 us and less than half of it, or where nothing of it
    is recorded there.
    """
    threads, calls = workload.threads, workload.calls
    launching = (
        calls[workload.work["call"].drop_nulls().unique().sort()]
        .select("pid", pl.col("start_ns").alias("before_ns"), pl.col("thread").alias("last_thread"))
        .sort("before_ns", "last_thread")
    )
    with_host = gaps.filter(pl.col("launch_start_ns") > pl.col("start_ns")).select(
        "gap",
        "pid",
        "start_ns",
        pl.min_horizontal("launch_start_ns", "end_ns").alias("end_ns"),
        pl.col("launch_thread").alias("thread"),
    )
    own = gaps["launch_thread"]
    if launching.select("pid", "last_thread").n_unique() == launching["pid"].n_unique():
        return own  # one launching thread per process: it explains itself
    candidates = with_host.sort("start_ns").join_asof(
        launching, left_on="start_ns", right_on="before_ns", by="pid", strategy="backward", allow_exact_matches=False,
        check_sortedness=False,
    ).filter(pl.col("last_thread").is_not_null() & (pl.col("last_thread") != pl.col("thread")))  # fmt: skip
    if candidates.is_empty():
        return own
    chosen = candidates["thread"].unique()
    columns = ["thread", "start_ns", "end_ns"]
    own_calls = calls.select(columns).filter(pl.col("thread").is_in(chosen.implode()))
    os_rows = on_threads(trace.osrt, threads).filter(pl.col("thread").is_in(chosen.implode()))
    waits = os_rows.join(
        os_groups(trace.strings).filter("thread_wait"), left_on="name", right_on="code", how="semi"
    )
    rows = pl.concat(
        [
            os_rows.select(columns),
            own_calls,
            *[on_threads(f, threads).select(columns) for f in (trace.host_communication, trace.overheads)],
        ]
    )
    length = candidates["end_ns"] - candidates["start_ns"]
    # a wait inside a CUDA call is the driver's, not one for another thread of the program
    awake = length - covered(candidates, subtract(waits, own_calls, "thread"), "thread")
    waited = (awake < STAND_IN_AWAKE_NS) & (awake * 2 < length)
    unseen = covered(candidates, rows, "thread") == 0
    stand_in = candidates.filter(waited | unseen).select("gap", "last_thread")
    return gaps.join(stand_in, on="gap", how="left", maintain_order="left").select(
        pl.coalesce("last_thread", "launch_thread")
    )["last_thread"]


def build_gaps(trace: Trace, workload: Workload, inputs: pl.DataFrame) -> GapTable:
    """The gaps of all GPUs over the whole capture; `inputs` as `input_copies` gives them."""
    gaps = _ended_by(workload)
    work = workload.work
    copy_kind = trace.memcpys["copy_kind"]
    is_copy = work["activity"].gather(gaps["work"]) == COPY
    unified = copy_kind.gather(
        work["row"].gather(gaps["work"]).zip_with(is_copy, pl.Series([None], dtype=pl.UInt32))
    ).is_in(UNIFIED_KINDS)
    large_reads = trace.memcpys.with_row_index("row").filter(
        (pl.col("copy_kind") == DEVICE_TO_HOST) & (pl.col("bytes") >= LARGE_READ_BYTES)
    )
    # a copy of no length ends no work
    is_read = (
        (pl.col("activity") == COPY)
        & (pl.col("end_ns") > pl.col("start_ns"))
        & pl.col("row").is_in(large_reads["row"].implode())
    )
    read_ends = (
        work.filter(is_read)
        .select("gpu", pl.col("end_ns").alias("start_ns"), pl.lit(value=True).alias("after_large_read"))
        .unique(["gpu", "start_ns"])
    )
    faults, matched = clock_faults(workload)
    gaps = (
        gaps.with_columns(
            unified.fill_null(value=False).alias("unified"),
            pl.col("pid").is_in(opaque_processes(trace, workload)).alias("opaque"),
        )
        .join(read_ends, on=["gpu", "start_ns"], how="left", maintain_order="left")
        .with_columns(
            pl.col("after_large_read").fill_null(value=False),
            pl.col("work").is_in(inputs["work"].implode()).alias("input_copy"),
        )
        # the next batch's copy after a checkpoint is not what the GPU waited for
        .with_columns(pl.col("input_copy") & ~pl.col("after_large_read"))
    )
    gaps = gaps.with_columns(_stand_ins(trace, workload, gaps).alias("host_thread")).select(list(GAPS))
    return GapTable(
        gaps, launch_latency_ns(gaps), clock_fault=matched > 0 and faults > CLOCK_FAULT_SHARE * matched
    )
