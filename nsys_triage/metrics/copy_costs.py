"""What copies cost the device: time that no kernel hides, and idle time because a call waited or was late.

The ledger says that the GPU copied and nothing computed; here that time is split by which copies it was.
"""

from typing import Final

import polars as pl

from nsys_triage.intervals import covered, merge, subtract
from nsys_triage.metrics.api_names import ASYNC_COPY, BLOCKING_COPY, SYNC
from nsys_triage.metrics.copies import SMALL_BYTES, UNIFIED
from nsys_triage.metrics.gpu_models import PRACTICAL_SHARE
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.waits import READBACK_BYTES
from nsys_triage.metrics.work import COPY, DEVICE_TO_HOST, HOST_TO_DEVICE, PAGEABLE, Workload
from nsys_triage.trace.model import Schema, Trace

PINNED: Final = 1
LARGE_BYTES: Final = 1 << 20
"""From here on a copy's rate tells about the link; smaller ones spend much of their time in starting."""

COPIES: Final[Schema] = {
    "gpu": pl.UInt16,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "pid": pl.Int32,
    "bytes": pl.Int64,
    "copy_kind": pl.UInt8,
    "pageable": pl.Boolean,  # a side is known to be pageable
    "pinned": pl.Boolean,  # a side is known to be pinned, none to be pageable
    "migration": pl.Boolean,  # of unified memory: no call of the program asked for it
    "readback": pl.Boolean,  # device to host, at most 64 bytes
    "small": pl.Boolean,  # under 64 KiB, and asked for
    "call": pl.UInt32,  # row in CALLS of the call that launched it; null where none was found
}

NVLINK_PRACTICAL_SHARE: Final = 0.45
"""Of NVLink-C2C: a public trace of a GH200 shows 211 GB/s from the device for 1.07 GB, of 450."""


def all_copies(trace: Trace, workload: Workload) -> pl.DataFrame:
    """The copies of the capture (schema COPIES), sorted as WORK is; migrations of unified memory among them."""
    rows = workload.work.filter(pl.col("activity") == COPY)
    facts = trace.memcpys.select("bytes", "copy_kind", "source_kind", "target_kind")[rows["row"]]
    source, target = pl.col("source_kind"), pl.col("target_kind")
    migration = pl.col("copy_kind") >= UNIFIED
    pageable = ((source == PAGEABLE) | (target == PAGEABLE)).fill_null(value=False) & ~migration
    pinned = ((source == PINNED) | (target == PINNED)).fill_null(value=False)
    size = pl.col("bytes").fill_null(0)
    return (
        pl.concat([rows.select("gpu", "start_ns", "end_ns", "pid", "call"), facts], how="horizontal")
        .with_columns(size, pl.col("copy_kind").fill_null(0))
        .with_columns(
            pageable.alias("pageable"),
            (pinned & ~pageable).alias("pinned"),
            migration.alias("migration"),
            ((pl.col("copy_kind") == DEVICE_TO_HOST) & (size <= READBACK_BYTES)).alias("readback"),
            (~migration & (size < SMALL_BYTES)).alias("small"),
        )
        .select(list(COPIES))
    )


def exposed_pieces(pieces: pl.DataFrame) -> pl.DataFrame:
    """The ledger's pieces in which a copy ran and nothing computed or communicated: gpu, start_ns, end_ns."""
    return pieces.filter(pl.col("cause") == CODE["copy"]).select("gpu", "start_ns", "end_ns")


def exposed_ns(pieces: pl.DataFrame, copies: pl.DataFrame) -> int:
    """How long those copies ran while nothing computed, summed over the GPUs.

    `pieces` are the ledger's in the window.
    """
    return int(covered(exposed_pieces(pieces), copies, "gpu").sum())


def exposed_without_ns(pieces: pl.DataFrame, others: pl.DataFrame) -> int:
    """Exposed copy time in which none of the copies `others` ran, summed over the GPUs."""
    left = subtract(exposed_pieces(pieces), others, "gpu")
    return int((left["end_ns"] - left["start_ns"]).sum())


def longest_exposed(pieces: pl.DataFrame, copies: pl.DataFrame) -> tuple[int, int] | None:
    """Start and end of the copy that was exposed longest (of equal ones the first), None where none was."""
    each = copies.with_columns(covered(copies, exposed_pieces(pieces), "gpu").alias("ns")).filter(
        pl.col("ns") > 0
    )
    if each.is_empty():
        return None
    row = each.sort(["ns", "start_ns", "gpu"], descending=[True, False, False]).row(0, named=True)
    return int(row["start_ns"]), int(row["end_ns"])


def hideable_ns(pieces: pl.DataFrame, copies: pl.DataFrame) -> int:
    """Exposed copy time that would be gone if copies ran beside the kernels that now run without one.

    Perfect overlap: on each GPU at most the time in which it computes and does not copy, nor more than is exposed.
    """
    computing = pieces.filter(pl.col("cause").is_in([CODE["compute"], CODE["graph"]])).select(
        "gpu", "start_ns", "end_ns"
    )
    total = 0
    for gpu in pieces["gpu"].unique().sort().to_list():
        own = pl.col("gpu") == gpu
        alone = subtract(computing.filter(own), copies.filter(own))
        exposed = merge(exposed_pieces(pieces).filter(own))
        total += min(int((part["end_ns"] - part["start_ns"]).sum()) for part in (alone, exposed))
    return total


def before_the_work_share(pieces: pl.DataFrame, copies: pl.DataFrame, part: float = 0.1) -> float:
    """Which share of the exposed time of those copies lies before the GPU has done `part` of its computing.

    Near 1 where weights or tables are uploaded once before the work; 0 without exposed time or without computing.
    """
    exposed = exposed_ns(pieces, copies)
    computing = pieces.filter(pl.col("cause").is_in([CODE["compute"], CODE["graph"]]))
    if not exposed or computing.is_empty():
        return 0.0
    length = pl.col("end_ns") - pl.col("start_ns")
    begun = (
        computing.sort("gpu", "start_ns")
        .with_columns(length.cum_sum().over("gpu").alias("done"), length.sum().over("gpu").alias("all"))
        .filter(pl.col("done") >= part * pl.col("all"))
        .group_by("gpu")
        .agg(pl.col("end_ns").min().alias("until_ns"))
    )
    early = (
        exposed_pieces(pieces)
        .join(begun, on="gpu", how="inner")
        .with_columns(pl.min_horizontal("end_ns", "until_ns").alias("end_ns"))
        .filter(pl.col("end_ns") > pl.col("start_ns"))
    )
    return int(covered(early, copies, "gpu").sum()) / exposed


# --- calls ------------------------------------------------------------------------------------------------------


def blocking_calls(workload: Workload) -> pl.DataFrame:
    """Copy and memset calls of the capture that block the host: call (row in CALLS), name, pid, start_ns, end_ns.

    By name (no Async in it), and `cudaMemcpyAsync` with a pageable side that did block.
    """
    group = pl.col("group")
    did_block = ((group & ASYNC_COPY) > 0) & ((group & SYNC) > 0)
    return (
        workload.calls.with_row_index("call")
        .filter(((group & BLOCKING_COPY) > 0) | did_block)
        .select("call", "name", "pid", "start_ns", "end_ns")
    )


def wait_cost_ns(pieces: pl.DataFrame, calls: pl.Series) -> int:
    """Idle time that the ledger puts under `host_sync` because of those calls (rows of CALLS), summed over the GPUs."""
    own = pieces.filter(
        (pl.col("cause") == CODE["host_sync"]) & pl.col("call").is_in(calls.drop_nulls().unique().implode())
    )
    return int((own["end_ns"] - own["start_ns"]).sum())


def launch_cost_ns(pieces: pl.DataFrame, gaps: pl.DataFrame, calls: pl.Series, *, inside: bool) -> int:
    """Idle time under `launch` in gaps that the work of those calls ended, summed over the GPUs.

    `inside`: only from the begin of the call on, without the dispatch before it.
    """
    ended = gaps.filter(pl.col("call").is_in(calls.drop_nulls().unique().implode())).select(
        "gap", "launch_start_ns"
    )
    own = pieces.filter(pl.col("cause") == CODE["launch"]).join(ended, on="gap", how="inner")
    begin = pl.max_horizontal("start_ns", "launch_start_ns") if inside else pl.col("start_ns")
    return int(own.select((pl.col("end_ns") - begin).clip(lower_bound=0).sum()).item() or 0)


# --- rates ------------------------------------------------------------------------------------------------------


def rate_of(copies: pl.DataFrame) -> float | None:
    """Bytes per second of those copies over the union of their time on each GPU; None where they took none."""
    union = merge(copies, "gpu")
    ns = int((union["end_ns"] - union["start_ns"]).sum())
    return int(copies["bytes"].sum()) / ns * 1e9 if ns else None


def large_pinned(copies: pl.DataFrame, copy_kind: int) -> pl.DataFrame:
    """Those of at least 1 MiB in that direction (1 to the device, 2 from it) whose host side is known to be pinned."""
    return copies.filter(
        (pl.col("copy_kind") == copy_kind) & pl.col("pinned") & (pl.col("bytes") >= LARGE_BYTES)
    )


def practical_rate(link_name: str, link_bytes_per_s: float) -> float:
    """What large copies from and to pinned memory reach on that link."""
    return link_bytes_per_s * (PRACTICAL_SHARE if link_name.startswith("PCIe") else NVLINK_PRACTICAL_SHARE)


DIRECTIONS: Final = {HOST_TO_DEVICE: "host to device", DEVICE_TO_HOST: "device to host"}
