"""Why idle time has no known cause: what of the recording is missing or cannot be right."""

from dataclasses import dataclass

import polars as pl

from nsys_triage.metrics.gaps import GapTable
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.work import COPY, UNIFIED_KINDS
from nsys_triage.trace.model import Trace


@dataclass(frozen=True, slots=True)
class Unexplained:
    """Idle time under `unknown` by reason (ns, summed over the GPUs); the three sum to it."""

    graphs_ns: int  # the process launches CUDA graphs of which the export holds no GPU time
    launch_ns: int  # the launch of what ended the gap is not in the trace
    clock_ns: int  # CPU and GPU clocks do not fit


def unexplained_time(pieces: pl.DataFrame, table: GapTable) -> Unexplained:
    """`pieces` are the ledger's in the window. Where several reasons hold, the first in the order above counts."""
    unknown = pieces.filter(pl.col("cause") == CODE["unknown"]).select(
        "gap", (pl.col("end_ns") - pl.col("start_ns")).alias("ns")
    )
    facts = unknown.join(
        table.gaps.select("gap", "call", "opaque"), on="gap", how="left", maintain_order="left"
    )
    opaque, missing = facts["opaque"].fill_null(value=False), facts["call"].is_null()
    return Unexplained(
        graphs_ns=int(facts.filter(opaque)["ns"].sum()),
        launch_ns=int(facts.filter(~opaque & missing)["ns"].sum()),
        clock_ns=int(facts.filter(~opaque & ~missing)["ns"].sum()),
    )


def without_launch(trace: Trace, work: pl.DataFrame) -> tuple[int, int]:
    """Of those rows of WORK how many found no launch call, and how many there are; migrations are in neither.

    The driver starts migrations of unified memory by itself: no call of the program could be found.
    """
    kinds = trace.memcpys["copy_kind"].is_in(UNIFIED_KINDS).fill_null(value=False)
    moves = kinds.arg_true().cast(pl.UInt32)
    launchable = work.filter(~((pl.col("activity") == COPY) & pl.col("row").is_in(moves.implode())))
    return launchable["call"].null_count(), launchable.height
