"""How much each collective moves, from the payloads that NCCL leaves in its NVTX ranges.

Payloads are in the export where nsys was told so (`nsys export --include-json=true`), and where NCCL was built with
NVTX. A range lasts as long as the host call; the kernel that the call launched belongs to it.
"""

from typing import Final

import polars as pl

from nsys_triage.metrics.work import Workload, on_threads
from nsys_triage.trace.model import Schema, Trace

PAYLOADS: Final[Schema] = {
    "thread": pl.UInt32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "bytes": pl.Int64,  # null where the call has no size (communicator set-up)
    "communicator": pl.String,  # an unsigned 64-bit number above 2^63, so kept as text
}


def nccl_calls(trace: Trace, workload: Workload) -> pl.DataFrame:
    """The NCCL calls that left a payload (schema PAYLOADS), sorted by thread and start; empty where none did."""
    ranges = on_threads(trace.nvtx.filter(pl.col("payload").is_not_null()), workload.threads)
    texts = trace.strings.select(pl.col("code").alias("payload"), "text")
    text = pl.col("text")
    return (
        ranges.join(texts, on="payload", how="left", maintain_order="left")
        .select(
            "thread", "start_ns", "end_ns",
            text.str.extract(r'"Message size \[bytes\]"\s*:\s*"?(\d{1,18})', 1).cast(pl.Int64).alias("bytes"),
            text.str.extract(r'"NCCL communicator ID"\s*:\s*"?(\d{1,20})', 1).alias("communicator"),
        )
        .sort("thread", "start_ns", "end_ns")
    )  # fmt: skip


def with_sizes(trace: Trace, workload: Workload, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of WORK with `bytes` and `communicator` of the NCCL call that launched them; null where not known."""
    payloads = nccl_calls(trace, workload).rename({"start_ns": "_from_ns", "end_ns": "_to_ns"})
    missing = pl.lit(None, pl.Int64).alias("bytes"), pl.lit(None, pl.String).alias("communicator")
    if payloads.is_empty() or rows.is_empty():
        return rows.with_columns(*missing)
    calls = workload.calls
    launched = rows.with_row_index("_row").with_columns(
        calls["thread"].gather(rows["call"]), calls["start_ns"].gather(rows["call"]).alias("_at_ns")
    )
    found = (
        launched.filter(pl.col("call").is_not_null())
        .select("_row", "thread", "_at_ns")
        .sort("_at_ns")
        .join_asof(
            payloads.sort("_from_ns"),
            left_on="_at_ns",
            right_on="_from_ns",
            by="thread",
            check_sortedness=False,
        )
        .filter(pl.col("_at_ns") < pl.col("_to_ns"))
        .select("_row", "bytes", "communicator")
    )
    return launched.join(found, on="_row", how="left", maintain_order="left").select(
        *rows.columns, "bytes", "communicator"
    )
