"""Why idle time has no known cause: what of the recording is missing or cannot be right."""

from dataclasses import dataclass

import polars as pl

from nsys_triage.metrics.gaps import GapTable
from nsys_triage.metrics.ledger import CODE


@dataclass(frozen=True, slots=True)
class Unexplained:
    """Idle time under `unknown` by reason (ns, summed over the GPUs); the three sum to it."""

    graphs_ns: int  # the process launches CUDA graphs of which the export holds no GPU time
    launch_ns: int  # the launch of what ended the gap is not in the trace
    clock_ns: int  # CPU and GPU clocks do not fit


def unexplained_time(pieces: pl.DataFrame, table: GapTable) -> Unexplained:
    """`pieces` are the ledger's in the window. Where several reasons hold, the first in the order above counts."""
    unknown = pieces.filter(pl.col("cause") == CODE["unknown"]).select("gap", (pl.col("end_ns") - pl.col("start_ns")).alias("ns"))
    facts = unknown.join(table.gaps.select("gap", "call", "opaque"), on="gap", how="left", maintain_order="left")
    opaque, missing = facts["opaque"].fill_null(value=False), facts["call"].is_null()
    return Unexplained(
        graphs_ns=int(facts.filter(opaque)["ns"].sum()),
        launch_ns=int(facts.filter(~opaque & missing)["ns"].sum()),
        clock_ns=int(facts.filter(~opaque & ~missing)["ns"].sum()),
    )
