"""How densely the threads that launch work were recorded: every recorded row costs its thread a little time."""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.intervals import count_inside, merge
from nsys_triage.metrics.api_names import LAUNCH
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.window import Window
from nsys_triage.metrics.work import Workload, on_threads
from nsys_triage.trace.model import Trace

LATE_CAUSES: Final = ("launch", "host_compute")
"""Idle time in which a host that is slowed down by recording shows up."""


@dataclass(frozen=True, slots=True)
class Density:
    """Rows of the window on launching threads."""

    api_per_s: float
    ranges_per_s: float  # NVTX ranges
    ranges: int
    ranges_per_launch: float  # NVTX ranges for each kernel or graph launch call; 0 without launches
    ranges_while_late: int  # ranges that begin or end while a GPU idles because the host is late


def recording_density(trace: Trace, workload: Workload, pieces: pl.DataFrame, window: Window) -> Density:
    """`pieces` are the ledger's in the window. All 0 where nothing was recorded on a launching thread."""
    calls = window.rows(workload.calls)
    launches = calls.filter((pl.col("group") & LAUNCH) > 0)
    launching = launches["thread"].unique()
    ranges = on_threads(window.rows(trace.nvtx), workload.threads).filter(pl.col("thread").is_in(launching.implode()))
    seconds = (window.end_ns - window.start_ns) / 1e9
    late = merge(pieces.filter(pl.col("cause").is_in([CODE[c] for c in LATE_CAUSES])))
    edges = pl.DataFrame({"at_ns": pl.concat([ranges["start_ns"], ranges["end_ns"]])})
    return Density(
        api_per_s=calls.filter(pl.col("thread").is_in(launching.implode())).height / seconds,
        ranges_per_s=ranges.height / seconds,
        ranges=ranges.height,
        ranges_per_launch=ranges.height / launches.height if launches.height else 0.0,
        ranges_while_late=(int(count_inside(late, edges).sum()) + 1) // 2,
    )
