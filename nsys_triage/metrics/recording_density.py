"""How densely the threads that launch work were recorded: every recorded row costs its thread a little time."""

from dataclasses import dataclass

import polars as pl

from nsys_triage.metrics.api_names import LAUNCH
from nsys_triage.metrics.window import Window
from nsys_triage.metrics.work import Workload, on_threads
from nsys_triage.trace.model import Trace


@dataclass(frozen=True, slots=True)
class Density:
    """Rows of the window on launching threads."""

    api_per_s: float
    ranges_per_s: float  # NVTX ranges
    ranges: int
    ranges_per_launch: float  # NVTX ranges for each kernel or graph launch call; 0 without launches


def recording_density(trace: Trace, workload: Workload, window: Window) -> Density:
    """How densely the window was recorded. All 0 where nothing was recorded on a launching thread."""
    calls = window.rows(workload.calls)
    launches = calls.filter((pl.col("group") & LAUNCH) > 0)
    launching = launches["thread"].unique()
    ranges = on_threads(window.rows(trace.nvtx), workload.threads).filter(
        pl.col("thread").is_in(launching.implode())
    )
    seconds = (window.end_ns - window.start_ns) / 1e9
    return Density(
        api_per_s=calls.filter(pl.col("thread").is_in(launching.implode())).height / seconds,
        ranges_per_s=ranges.height / seconds,
        ranges=ranges.height,
        ranges_per_launch=ranges.height / launches.height if launches.height else 0.0,
    )
