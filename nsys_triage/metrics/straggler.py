"""Why a rank arrives late: its own ledger against that of the median rank."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median_low
from typing import Final, Literal

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.rank_parts import RankPart
from nsys_triage.result.model import Cause

WAITING: Final[tuple[Cause, ...]] = ("communication", "host_communication")
DIFFERENCE_SHARE: Final = 0.01
SLOWER: Final = 1.05
COMPARABLE: Final = 0.5
"""Of a rank's kernel time, that has to be in kernels which the other launches with as many blocks."""
SLOWER_KERNELS: Final = "slower_kernels"
_SAYS: Final[dict[Cause, str]] = {
    "input_pipeline": "it waits longer for input",
    "host_sync": "its synchronising calls cost more",
    "host_compute": "its host thread computes longer",
    "host_blocked": "its launching thread is blocked longer",
    "launch": "its host launches more slowly",
    "allocation": "it allocates memory longer",
    "module_load": "it loads or compiles kernels longer",
    "copy": "its copies take longer",
    "memset": "its memsets take longer",
    "graph": "its CUDA graphs take longer",
    "queued": "its queued work waits longer",
    "unified_memory": "its unified memory migrates longer",
    "profiler": "the profiler holds it up longer",
    "unknown": "it is idle longer for a reason that is not recorded",
}


def _same_kernels(own: pl.DataFrame, other: pl.DataFrame) -> tuple[float, float]:
    """For kernels that both ranks run: how many more times this one launches them, and how much longer one takes.

    The same kernel on a larger grid has more work, so it is another one here. Where most of the rank's kernels have no
    counterpart, both are 1: nothing can be compared.
    """
    both = own.join(other, on=["name", "blocks"], suffix="_other").filter(
        (pl.col("count") > 0) & (pl.col("total_ns_other") > 0)
    )
    if both.is_empty() or int(both["total_ns"].sum()) < COMPARABLE * int(own["total_ns"].sum()):
        return 1.0, 1.0
    more = float(both["count"].sum()) / float(both["count_other"].sum())
    # against the time that its launches would take there: one odd small kernel decides nothing
    there = both.select((pl.col("count") * pl.col("total_ns_other") / pl.col("count_other")).sum()).item()
    longer = int(both["total_ns"].sum()) / there
    return more, longer


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a rank arrives late: the cause with most time beyond that of the others, and a sentence about it."""

    cause: Cause | Literal["slower_kernels"]
    text: str


def straggler_reason(parts: Mapping[int, RankPart], straggler: int) -> Reason | None:
    """What the straggler spends more time on than the median of the others; None where nothing differs."""
    own = parts[straggler]
    others = [part for rank, part in parts.items() if rank != straggler]
    if not others:
        return None
    causes = {cause for part in parts.values() for cause in part.ledger} - set(WAITING)
    more = {
        cause: own.ledger.get(cause, 0) - median_low(p.ledger.get(cause, 0) for p in others)
        for cause in causes
    }
    cause = max(more, key=lambda c: (more[c], c), default=None)
    span = own.span_ns / max(1, len(own.gpus))
    if cause is None or more[cause] < DIFFERENCE_SHARE * span:
        return None
    amount = f"{units.time(more[cause])} more than the median of the others"
    if cause != "compute":
        return Reason(cause, f"Rank {straggler} is late because {_SAYS[cause]}: {amount}.")
    middle = sorted(others, key=lambda p: (p.ledger.get("compute", 0), p.file_index, p.pid))[
        (len(others) - 1) // 2
    ]
    launches, longer = _same_kernels(own.kernels, middle.kernels)
    if longer >= SLOWER and longer - 1 >= abs(launches - 1):
        times = units.count(round(longer, 2))
        text = f"the same kernels take {times} times as long on its GPU: {amount}"
        return Reason(SLOWER_KERNELS, f"Rank {straggler} is late because {text}.")
    return Reason(cause, f"Rank {straggler} is late because it computes more: {amount}.")
