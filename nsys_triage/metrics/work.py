"""Device work and the calls that launched it: the two frames that all other metrics start from."""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.metrics.api_names import ASYNC_COPY, BLOCKING_COPY, LAUNCH, SYNC, api_groups
from nsys_triage.metrics.gpus import Gpus, identify_gpus
from nsys_triage.metrics.kernel_names import describe
from nsys_triage.result.model import BUSY_CAUSES
from nsys_triage.trace.model import Schema, Trace

COMPUTE, GRAPH, COMMUNICATION, COPY, MEMSET = range(5)
ACTIVITIES: Final = BUSY_CAUSES
"""What the codes of `work.activity` mean."""

PAGEABLE, LARGE_READ_BYTES = 0, 1 << 20
DEVICE_TO_HOST, HOST_TO_DEVICE = 2, 1
UNIFIED_KINDS: Final = (11, 12, 13)

WORK: Final[Schema] = {
    "gpu": pl.UInt16,  # index in `Gpus.all`
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "activity": pl.UInt8,  # index in ACTIVITIES
    "pid": pl.Int32,
    "stream": pl.UInt32,
    "correlation": pl.UInt32,
    "row": pl.UInt32,  # row in the frame of its table (kernels, graphs, memcpys, memsets)
    "call": pl.UInt32,  # row in CALLS of the call that launched it; null where none was found
}
"""Sorted by gpu, start, end and order of input. Bad rows are not in it; zero-length rows are."""

CALLS: Final[Schema] = {
    "thread": pl.UInt32,  # index in THREADS
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "pid": pl.Int32,
    "correlation": pl.UInt32,
    "name": pl.UInt32,
    "group": pl.UInt8,  # bits of api_names
    "return_value": pl.Int32,
}
"""CUDA API calls, sorted by thread, start, longest first: a nested call follows the one around it."""

THREADS: Final[Schema] = {"thread": pl.UInt32, "pid": pl.Int32, "tid": pl.Int32}

_TABLES: Final = (("kernels", COMPUTE), ("graphs", GRAPH), ("memcpys", COPY), ("memsets", MEMSET))


@dataclass(frozen=True, slots=True)
class Workload:
    """All device work of a trace with the GPU of each row and the call that launched it."""

    gpus: Gpus
    work: pl.DataFrame  # WORK
    calls: pl.DataFrame  # CALLS
    threads: pl.DataFrame  # THREADS
    names: pl.DataFrame  # of kernels: columns of kernel_names.describe, and text
    api: pl.DataFrame  # code, api, group

    def kernels(self, trace: Trace, chosen: pl.DataFrame) -> pl.DataFrame:
        """The rows of `trace.kernels` behind those rows of WORK that are kernels, with `gpu`."""
        rows = chosen.filter(pl.col("activity").is_in([COMPUTE, COMMUNICATION]))
        return trace.kernels[rows["row"]].with_columns(rows["gpu"])

    def copies(self, trace: Trace, chosen: pl.DataFrame) -> pl.DataFrame:
        """The rows of `trace.memcpys` behind those rows of WORK that are copies, with `gpu` and `call`."""
        rows = chosen.filter(pl.col("activity") == COPY)
        return trace.memcpys[rows["row"]].with_columns(rows["gpu"], rows["call"])


def _device_rows(trace: Trace, communication: pl.Series) -> pl.DataFrame:
    parts = []
    for name, activity in _TABLES:
        frame: pl.DataFrame = getattr(trace, name)
        if frame.is_empty():
            continue
        kind = pl.lit(activity, pl.UInt8)
        if name == "kernels":
            kind = (
                pl.when(pl.col("name").is_in(communication.implode()))
                .then(COMMUNICATION)
                .otherwise(COMPUTE)
                .cast(pl.UInt8)
            )
        parts.append(
            frame.lazy().select(
                "start_ns",
                "end_ns",
                kind.alias("activity"),
                "pid",
                "device",
                "stream",
                "correlation",
                pl.int_range(pl.len(), dtype=pl.UInt32).alias("row"),
            )
        )
    if not parts:
        return pl.DataFrame(
            schema={c: t for c, t in WORK.items() if c not in ("gpu", "call")} | {"device": pl.Int32}
        )
    return pl.concat(parts).collect()


def _threads(trace: Trace) -> pl.DataFrame:
    """All (pid, tid) that appear on the host side, numbered in order."""
    keys = [
        frame.lazy().select("pid", "tid").unique()
        for frame in (trace.api, trace.nvtx, trace.osrt, trace.host_communication, trace.overheads)
        if not frame.is_empty()
    ]
    if not keys:
        return pl.DataFrame(schema=THREADS)
    return pl.concat(keys).unique().sort("pid", "tid").with_row_index("thread").collect()


def on_threads(frame: pl.DataFrame, threads: pl.DataFrame) -> pl.DataFrame:
    """The frame with `thread` in place of tid; `pid` stays."""
    if threads.height == 1:
        return frame.with_columns(pl.lit(threads["thread"][0], pl.UInt32).alias("thread")).drop("tid")
    return frame.join(threads, on=["pid", "tid"], how="left", maintain_order="left").drop("tid")


def _calls(trace: Trace, threads: pl.DataFrame, api: pl.DataFrame) -> pl.DataFrame:
    grouped = (
        on_threads(trace.api, threads)
        .lazy()
        .join(
            api.lazy().select("code", "group"),
            left_on="name",
            right_on="code",
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.col("group").fill_null(0), (-pl.col("end_ns")).alias("_longest"))
    )
    return grouped.sort("thread", "start_ns", "_longest", maintain_order=True).select(list(CALLS)).collect()


def _launched_by(work: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """For each row of work the row of its launch call, joined by (process, correlation)."""
    key = (pl.col("pid").cast(pl.UInt64) * (1 << 32) + pl.col("correlation")).alias("key")
    launching = (
        calls.lazy()
        .select(key, pl.int_range(pl.len(), dtype=pl.UInt32).alias("call"))
        .drop_nulls("key")
        # ids are unique per process; where a damaged trace repeats one, the first call stands
        .unique("key", keep="first", maintain_order=True)
    )
    return (
        work.lazy()
        .select(key)
        .join(launching, on="key", how="left", maintain_order="left")
        .select("call")
        .collect()["call"]
    )


def build_workload(trace: Trace) -> Workload:
    """Device work of all tables with GPUs and launch calls; empty frames where nothing was recorded."""
    codes = trace.kernels["name"].unique()
    texts = trace.strings.filter(pl.col("code").is_in(codes.implode()))
    names = describe(texts).join(texts, on="code", how="left", maintain_order="left")
    rows = _device_rows(trace, names.filter("communication")["code"])
    pairs = [(pid, device) for pid, device in rows.select("pid", "device").unique().iter_rows()]
    gpus = identify_gpus(trace, pairs)
    placed = (
        rows.lazy()
        .join(gpus.pairs.lazy(), on=["pid", "device"], how="left", maintain_order="left")
        .sort("gpu", "start_ns", "end_ns", maintain_order=True)
        .collect()
    )
    threads = _threads(trace)
    api = api_groups(trace.strings)
    calls = _calls(trace, threads, api)
    work = placed.with_columns(_launched_by(placed, calls)).select(list(WORK))
    return Workload(gpus, work, _with_blocking_copies(trace, work, calls), threads, names, api)


def _with_blocking_copies(trace: Trace, work: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """CALLS in which what waits has the SYNC bit: by name, and copies that block or, pageable, did block.

    A `cudaMemcpyAsync` with a pageable side blocked where its call returned at or after the end of its copy.
    """
    pageable = (trace.memcpys["source_kind"] == PAGEABLE) | (trace.memcpys["target_kind"] == PAGEABLE)
    copies = work.filter((pl.col("activity") == COPY) & pl.col("call").is_not_null())
    copies = copies.filter(pageable.fill_null(value=False).gather(copies["row"]))
    blocked = copies.filter(calls["end_ns"].gather(copies["call"]) >= copies["end_ns"])["call"].unique()
    row = pl.int_range(pl.len(), dtype=pl.UInt32)
    did_block = row.is_in(blocked.implode()) & ((pl.col("group") & ASYNC_COPY) > 0)
    waits = ((pl.col("group") & (SYNC | BLOCKING_COPY)) > 0) | did_block
    return calls.with_columns(
        pl.when(waits).then(pl.col("group") | SYNC).otherwise(pl.col("group")).cast(pl.UInt8).alias("group")
    )


def launches(calls: pl.DataFrame) -> pl.DataFrame:
    """The kernel and graph launch calls of CALLS, with their row as `call`."""
    return calls.with_row_index("call").filter((pl.col("group") & LAUNCH) > 0)
