"""Why work that was queued in good time did not start: which stream, event or GPU it waited for, as far as recorded."""

from typing import Final

import polars as pl

from nsys_triage.metrics.gaps import GapTable
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.work import Workload
from nsys_triage.trace.model import Schema, Trace

OTHER_GPU, EVENT, OTHER_PROCESS, OTHER_STREAM, SAME_STREAM = (
    "another GPU", "an event", "another process on the GPU", "another stream", "the same stream",
)  # fmt: skip
QUEUED: Final[Schema] = {
    "gap": pl.UInt32,
    "gpu": pl.UInt16,
    "ns": pl.Int64,  # of the gap's time under `queued`
    "kind": pl.String,  # what it waited for
    "stream": pl.UInt32,  # of the operation that ended the gap
    "before": pl.UInt32,  # stream of the operation that ended as the gap began; the lowest of several
    "other_gpu": pl.UInt16,  # index of the GPU that it waited for; null for the other kinds
}
"""Sorted by gap."""
OTHER_GPU_NS: Final = 20_000
"""Work that waits for another GPU starts within microseconds of that GPU's operation."""


def queued_gaps(trace: Trace, workload: Workload, table: GapTable, pieces: pl.DataFrame) -> pl.DataFrame:
    """The gaps with time under `queued` in the ledger pieces, and what the work that ended each had waited for.

    In this order: another GPU of its process ended an operation inside the gap, at most 20 us before its end; its
    stream had been told to wait for an event since the launch before; the operation that ended as the gap began was
    another process' (the GPU switches between them); it ran on another stream; it ran on the same one. Waits for host
    functions and for events of other processes are not recorded, and show as one of these.
    """
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns")
    times = (
        pieces.filter((pl.col("cause") == CODE["queued"]) & pl.col("gap").is_not_null())
        .group_by("gap")
        .agg(length)
        .sort("gap")
    )
    gaps = table.gaps.select("gpu", "pid", "start_ns", "end_ns", "work", "call", "launch_start_ns")[
        times["gap"]
    ]
    rows = times.with_columns(gaps).with_columns(workload.work["stream"].gather(gaps["work"]))
    joined = rows.with_columns(
        *_ended_before(workload, rows),
        _told_to_wait(trace, workload, rows),
        _ended_on_other_gpu(workload, rows),
    )
    kind = (
        pl.when(pl.col("other_gpu").is_not_null())
        .then(pl.lit(OTHER_GPU))
        .when("told")
        .then(pl.lit(EVENT))
        .when((pl.col("before_pid") != pl.col("pid")).fill_null(value=False))
        .then(pl.lit(OTHER_PROCESS))
        .when((pl.col("before") != pl.col("stream")).fill_null(value=False))
        .then(pl.lit(OTHER_STREAM))
        .otherwise(pl.lit(SAME_STREAM))
    )
    return joined.with_columns(kind.alias("kind")).select(list(QUEUED)).sort("gap")


def _ended_before(workload: Workload, rows: pl.DataFrame) -> list[pl.Series]:
    """Process and stream of the operation that ended as each gap began: its own if among several, else the lowest."""
    ended = workload.work.filter(pl.col("end_ns") > pl.col("start_ns")).select(
        "gpu",
        pl.col("end_ns").alias("start_ns"),
        pl.col("pid").alias("before_pid"),
        pl.col("stream").alias("before"),
    )
    found = rows.select("gap", "gpu", "start_ns", "pid", "stream").join(
        ended, on=["gpu", "start_ns"], how="left"
    )
    other_process = (pl.col("before_pid") != pl.col("pid")).fill_null(value=True)
    other_stream = (pl.col("before") != pl.col("stream")).fill_null(value=True)
    best = found.sort("gap", other_process, other_stream, "before_pid", "before").unique(
        "gap", keep="first", maintain_order=True
    )
    return [best["before_pid"], best["before"]]


def _told_to_wait(trace: Trace, workload: Workload, rows: pl.DataFrame) -> pl.Series:
    """Whether the stream was told to wait for an event between the launch that ended the gap and the one before it."""
    # a wait of a stream for an event has both; a wait of the host has one of them
    waits = trace.syncs.filter(pl.col("stream").is_not_null() & pl.col("event").is_not_null()).select(
        "pid", "stream", pl.col("start_ns").alias("told_ns")
    )
    work = workload.work.filter(pl.col("call").is_not_null())
    launched = work.select(
        "pid", "stream", workload.calls["start_ns"].gather(work["call"]).alias("previous_ns")
    ).sort("previous_ns")
    keys = rows.select("gap", "pid", "stream", "launch_start_ns").sort("launch_start_ns")
    stream = ["pid", "stream"]
    found = (
        keys.join_asof(
            waits.sort("told_ns"),
            left_on="launch_start_ns",
            right_on="told_ns",
            by=stream,
            check_sortedness=False,
        )
        .join_asof(
            launched,
            left_on="launch_start_ns",
            right_on="previous_ns",
            by=stream,
            allow_exact_matches=False,
            check_sortedness=False,
        )
        .sort("gap")
    )
    told = pl.col("told_ns").is_not_null() & (
        pl.col("previous_ns").is_null() | (pl.col("told_ns") > pl.col("previous_ns"))
    )
    return found.select(told.alias("told"))["told"]


def _ended_on_other_gpu(workload: Workload, rows: pl.DataFrame) -> pl.Series:
    """The other GPU of the process that ended an operation last in each gap, at most 20 us before its end, or null."""
    found = [rows.clear().select("gap", pl.lit(None, pl.UInt16).alias("other_gpu"))]
    for (gpu,), own in rows.group_by(["gpu"], maintain_order=True):
        others = workload.work.filter((pl.col("gpu") != gpu) & (pl.col("end_ns") > pl.col("start_ns")))
        ends = others.select(
            "pid", pl.col("gpu").alias("other_gpu"), pl.col("end_ns").alias("other_ns")
        ).sort("other_ns", "other_gpu")
        last = own.select("gap", "pid", "start_ns", "end_ns").sort("end_ns").join_asof(
            ends, left_on="end_ns", right_on="other_ns", by="pid", check_sortedness=False
        )  # fmt: skip
        inside = (pl.col("other_ns") > pl.col("start_ns")) & (
            pl.col("end_ns") - pl.col("other_ns") <= OTHER_GPU_NS
        )
        found.append(last.filter(inside.fill_null(value=False)).select("gap", "other_gpu"))
    return rows.select("gap").join(pl.concat(found), on="gap", how="left", maintain_order="left")["other_gpu"]
