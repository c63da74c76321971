"""What each step went to, which are slow, and whether they are slow at regular intervals."""

from itertools import pairwise
from typing import Final

import polars as pl

from nsys_triage.intervals import count_inside, time_before
from nsys_triage.metrics.api_names import SYNC
from nsys_triage.metrics.histogram import nearest_rank
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.steps import StepTable, of_main_process
from nsys_triage.metrics.window import Window
from nsys_triage.metrics.work import Workload
from nsys_triage.result.model import BUSY_CAUSES, CAUSES, CauseTime, PeriodicStall, Step, Steps

SLOW_FACTOR: Final = 1.5
SLOW_DEVIATIONS: Final = 5
STALLS: Final = 3
STALL_REGULAR: Final = 0.75
LISTED: Final = 1_000


def steps_of_window(table: StepTable, window: Window) -> pl.DataFrame:
    """The steps that start in the window, of the process that has most of them there (the lowest pid of several).

    With `duration_ns` and `startup` (Boolean). Where none starts in the window, an empty frame.
    """
    own = of_main_process(window.rows(table.steps))
    pid = int(own["pid"][0]) if own.height else -1
    startup = pl.col("index") < window.startup_steps.get(pid, 0)
    return own.with_columns(
        (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"), startup.alias("startup")
    )


def slow_steps(durations: pl.Series) -> pl.Series:
    """Which durations are outliers: over 1.5 times the median and more than five median deviations above it."""
    median = nearest_rank(durations, 50)
    if median is None:
        return pl.Series([], dtype=pl.Boolean)
    deviation = nearest_rank((durations - median).abs(), 50) or 0
    return (durations > SLOW_FACTOR * median) & (durations - median > SLOW_DEVIATIONS * deviation)


def periodic_stall(indices: list[int], durations: list[int], slow: list[bool]) -> PeriodicStall | None:
    """Slow steps at regular intervals: every n-th step, three of them at least. None where they are not regular."""
    at = [i for i, is_slow in zip(indices, slow, strict=True) if is_slow]
    distances = [b - a for a, b in pairwise(at)]
    if len(at) < STALLS:
        return None
    every = max(set(distances), key=lambda d: (distances.count(d), -d))
    if every < 2 or distances.count(every) < STALL_REGULAR * len(distances):
        return None
    steady = sorted(d for d, is_slow in zip(durations, slow, strict=True) if not is_slow)
    late = sorted(d for d, is_slow in zip(durations, slow, strict=True) if is_slow)
    extra = late[(len(late) - 1) // 2] - (steady[(len(steady) - 1) // 2] if steady else 0)
    return PeriodicStall(every=every, steps=len(at), extra_ns=extra)


def causes_by_step(pieces: pl.DataFrame, steps: pl.DataFrame, gpus: list[int]) -> pl.DataFrame:
    """Time by cause in each step, the mean of those GPUs: row (of `steps`), cause, ns; sorted, zeros left out.

    `pieces` are ledger pieces.
    """
    rows = pl.int_range(steps.height, dtype=pl.Int64, eager=True)
    parts = [pl.DataFrame(schema={"row": pl.Int64, "cause": pl.UInt8, "ns": pl.Int64})]
    for (gpu, cause), own in (
        pieces.filter(pl.col("gpu").is_in(gpus)).partition_by("gpu", "cause", as_dict=True).items()
    ):
        ns = time_before(own, steps["end_ns"]) - time_before(own, steps["start_ns"])
        parts.append(
            pl.DataFrame(
                {"row": rows, "cause": pl.repeat(cause, rows.len(), dtype=pl.UInt8, eager=True), "ns": ns}
            )
        )
        del gpu
    return (
        pl.concat(parts)
        .group_by("row", "cause")
        .agg(pl.col("ns").sum() // max(1, len(gpus)))
        .filter(pl.col("ns") > 0)
        .sort("row", "cause")
    )


def _listed(steps: pl.DataFrame) -> pl.DataFrame:
    """At most LISTED rows: all of them, or the slow and start-up ones and an even choice of the others."""
    if steps.height <= LISTED:
        return steps
    marked = (
        steps.filter(pl.col("slow") | pl.col("startup"))
        .sort("duration_ns", "index", descending=[True, False])
        .head(LISTED // 2)
    )
    others = steps.join(marked.select("index"), on="index", how="anti")
    every = -(-others.height // (LISTED - marked.height))
    return pl.concat([marked, others.gather_every(every)]).sort("index")


def summarize_steps(workload: Workload, pieces: pl.DataFrame, table: StepTable, window: Window) -> Steps:
    """The steps of the window; `pieces` are the ledger's over the whole capture. Without steps: source `none`."""
    steps = steps_of_window(table, window)
    steady = steps.filter(~pl.col("startup"))
    # the process' last step has no next one to end at: what was queued ahead of the GPU lies in it, so it is not judged
    last = table.steps.filter(pl.col("pid").is_in(steps["pid"].implode())).select(pl.col("index").max())
    slow = slow_steps(steady["duration_ns"]) & ~steady["index"].is_in(last["index"].to_list())
    marked = steps.join(
        steady.select("index").with_columns(slow.alias("slow")), on="index", how="left"
    ).with_columns(pl.col("slow").fill_null(value=False))
    pid = int(steps["pid"][0]) if steps.height else -1
    return Steps(
        source=table.source,
        name=table.name,
        count=steps.height,
        warmup_count=window.startup_steps.get(pid, 0),
        p50_ns=nearest_rank(steady["duration_ns"], 50),
        p95_ns=nearest_rank(steady["duration_ns"], 95),
        max_ns=nearest_rank(steady["duration_ns"], 100),
        items=_items(workload, pieces, _listed(marked.sort("index"))) if steps.height else [],
        slow=steady.filter(slow)["index"].to_list() if steady.height else [],
        periodic=periodic_stall(steady["index"].to_list(), steady["duration_ns"].to_list(), slow.to_list()),
        note=table.note,
    )


def _items(workload: Workload, pieces: pl.DataFrame, steps: pl.DataFrame) -> list[Step]:
    pid = int(steps["pid"][0])
    gpus = [gpu.index for gpu in workload.gpus.all if pid in gpu.processes]
    split = causes_by_step(pieces, steps, gpus)
    waits = workload.calls.filter((pl.col("group") & SYNC) > 0).select(
        "pid", pl.col("start_ns").alias("at_ns")
    )
    calls = count_inside(steps, waits, "pid").to_list()
    by_row: dict[int, list[CauseTime]] = {}
    for row, code, ns in split.iter_rows():  # sorted by row and cause
        by_row.setdefault(row, []).append(CauseTime(cause=CAUSES[code], ns=ns))
    items = []
    for row, step in enumerate(steps.iter_rows(named=True)):
        times = by_row.get(row, [])
        busy = {t.cause: t.ns for t in times if t.cause in BUSY_CAUSES}
        items.append(
            Step(
                index=step["index"],
                pid=pid,
                start_ns=step["start_ns"],
                duration_ns=step["duration_ns"],
                busy_ns=sum(t.ns for t in times if t.cause in BUSY_CAUSES),
                exposed_communication_ns=sum(t.ns for t in times if CODE[t.cause] == CODE["communication"]),
                idle=[t for t in times if t.cause not in BUSY_CAUSES],
                sync_calls=calls[row],
                state="startup" if step["startup"] else "slow" if step["slow"] else "steady",
                copy_ns=busy.get("copy", 0),
                memset_ns=busy.get("memset", 0),
                graph_ns=busy.get("graph", 0),
            )
        )
    return items
