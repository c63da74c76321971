"""The GPU waits while pages of unified memory move between host and device.

What it means

Managed memory moves to where it is touched, page by page and on demand. While pages move for a kernel, or because the
host touched what the GPU needs next, nothing computes. Migrations have no call of the program: the driver starts them.

What to do next

1. Move the data before they are needed: cudaMemPrefetchAsync on the stream of the kernel.
2. Say how they are used: cudaMemAdvise (read mostly, preferred location, accessed by).
3. Do not touch managed memory on the host between kernels; or keep those data in memory of their own.
4. Where the access pattern is known, copy explicitly instead.

When it is wrong

Host work that touches managed data would take its time without migrations too: the idle time before a migration is
not all the migration's fault. First touches at the start are paid once.
"""

import polars as pl

from nsys_triage import units
from nsys_triage.metrics import copy_costs as cc
from nsys_triage.metrics.copies import KINDS, UNIFIED
from nsys_triage.result.model import Interval
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context, record_line


def check(context: Context) -> Outcome:
    """Fires where idle time before migrations and exposed migrations reach the threshold."""
    m = context.m
    copies = cc.all_copies(m.trace, m.workload)
    moves = copies.filter("migration")
    if moves.is_empty():
        return Passed("No migration of unified memory was recorded.")
    # where a copy of the program runs as well, the time is its, not the migration's
    asked = copies.filter(~copies["migration"])
    exposed = cc.exposed_without_ns(m.pieces, asked)
    idle = context.total_ns("unified_memory")
    share = (exposed + idle) / context.span_ns
    inside = m.window.rows(moves)
    size = int(inside["bytes"].sum())
    if share < context.thresholds["share"]:
        return Passed(
            f"{units.plural(inside.height, 'migration')} of unified memory ({units.size(size)})"
            f" cost {units.share(share)} of the time."
        )
    place = cc.longest_exposed(m.pieces, moves)
    return Found(
        title=f"Unified memory that moves between host and device costs {units.share(share)} of the time",
        stake=context.stake(
            exposed + idle,
            "high: all idle time before migrations and all migrations that nothing hides are gone; low: the migrations"
            " alone, since what the host does before them may remain",
            exposed,
        ),
        causes=("unified_memory", "copy") if exposed else ("unified_memory",),
        evidence=(
            number("migrations", inside.height, "count"),
            number("bytes moved", size, "bytes"),
            number("size of a migration (median)", int(inside["bytes"].median() or 0), "bytes"),  # type: ignore[arg-type]
            number("idle time before migrations", context.mean_ns(idle), "ns"),
            number("migrations while nothing computed", context.mean_ns(exposed), "ns"),
            number("direction that moved most bytes", _direction(inside), "text"),
        ),
        actions=_actions(),
        caveat="What the host computes on managed data would take its time without migrations, too.",
        where=context.where("unified_memory") or (Interval(*place) if place else None),
        gpu=context.one_gpu("unified_memory", "copy"),
    )


def _actions() -> tuple[str, ...]:
    return (
        "Move the data before the kernel that needs them: cudaMemPrefetchAsync on its stream, and back before"
        " the host"
        " reads them.",
        "Give hints: cudaMemAdvise with cudaMemAdviseSetReadMostly or cudaMemAdviseSetPreferredLocation.",
        "Keep data that the host touches between kernels out of managed memory, or copy them explicitly.",
        "Record who touches the pages: "
        + record_line("--cuda-um-cpu-page-faults=true", "--cuda-um-gpu-page-faults=true"),
    )


def _direction(moves: pl.DataFrame) -> str:
    totals = (
        moves.group_by("copy_kind")
        .agg(pl.col("bytes").sum())
        .sort(["bytes", "copy_kind"], descending=[True, False])
    )
    kind = int(totals["copy_kind"][0]) if totals.height else UNIFIED
    return KINDS[kind].removeprefix("unified_").replace("_", " ")


RULE = Rule(
    id="unified-memory-migration",
    title="Migrations of unified memory",
    check=check,
    page=page_of(__doc__),
    needs=("memcpys",),
    thresholds={"share": CAUSE_THRESHOLD},
)
