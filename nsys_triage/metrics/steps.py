"""The steps of the job: from repeated NVTX ranges, else from the period of the launch sequence.

A step runs from start to start: the wait between two ranges belongs to the step before it.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from nsys_triage.intervals import count_inside, covered
from nsys_triage.metrics.api_names import LAUNCH
from nsys_triage.metrics.periodicity import find_period
from nsys_triage.metrics.work import Workload, on_threads
from nsys_triage.trace.model import Schema, Trace

STEPS: Final[Schema] = {"pid": pl.Int32, "index": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64}
"""Sorted by pid and index; steps of one process do not overlap."""

MIN_STEPS: Final = 3
LAUNCHES_INSIDE: Final = 0.5
WITHIN_FACTOR: Final = 2.0
WITHIN_SHARE: Final = 0.5
_STEP_WORDS: Final = re.compile(
    r"(?:^|[^a-z])(?:train(?:ing)?[ _]?step|step|iter(?:ation)?|batch|mini[ _-]?batch)(?:$|[^a-z])"
)
_NOT_STEPS: Final = re.compile(r"epoch|optimizer|\.step|norm|zero_grad")


@dataclass(frozen=True, slots=True)
class StepTable:
    """All steps of the capture, and how they were found."""

    steps: pl.DataFrame  # STEPS
    source: Literal["nvtx", "periodicity", "none"]
    name: str | None  # of the ranges, digits as #; or the kernel that begins a period
    note: str | None
    launched: pl.DataFrame  # STEPS by the host's time: from launch to launch where `steps` begin on the GPU


def of_main_process(steps: pl.DataFrame) -> pl.DataFrame:
    """The steps of the process that has most of them (the lowest pid of several)."""
    if steps.is_empty():
        return steps
    most = steps.group_by("pid").len().sort(["len", "pid"], descending=[True, False])["pid"][0]
    return steps.filter(pl.col("pid") == most)


def _candidates(trace: Trace, workload: Workload) -> pl.DataFrame:
    """Kinds of NVTX ranges that could be steps: pid, thread, pattern, count, inside_share, median_ns, within_share."""
    used = trace.nvtx.select("name").drop_nulls().unique()
    texts = trace.strings.join(used, left_on="code", right_on="name", how="semi").filter(
        pl.col("text").str.strip_chars() != ""
    )
    # every number as #, so that `step 7` and `step 8` are one kind of range
    kinds = texts.select("code", pl.col("text").str.replace_all(r"\d+", "#").alias("pattern"))
    ranges = (
        on_threads(trace.nvtx, workload.threads)
        .join(kinds, left_on="name", right_on="code", maintain_order="left")
        .filter(~pl.col("open"))
        .with_columns(pl.struct("thread", "pattern").rank("dense").alias("kind_id"))
    )
    counts = ranges.group_by("kind_id").len().filter(pl.col("len") >= MIN_STEPS)
    return (
        ranges.join(counts, on="kind_id", how="semi")
        .select("kind_id", "pid", "thread", "pattern", "start_ns", "end_ns")
        .sort("kind_id", "start_ns", "end_ns")
    )


def _judged(ranges: pl.DataFrame, workload: Workload) -> pl.DataFrame:
    """One row per kind of range that qualifies: kind_id, pid, pattern, count, inside_share."""
    launched = workload.calls.filter((pl.col("group") & LAUNCH) > 0).select(
        "pid", pl.col("start_ns").alias("at_ns")
    )
    totals = launched.group_by("pid").len("launches")
    length = pl.col("end_ns") - pl.col("start_ns")
    previous = pl.col("end_ns").shift(1).over("kind_id")
    return (
        ranges.with_columns(
            count_inside(ranges, launched, "pid").alias("inside"),
            (pl.col("start_ns") < previous).fill_null(value=False).alias("overlaps"),
        )
        .with_columns(length.alias("length"), length.median().over("kind_id").alias("median"))
        .with_columns(
            pl.col("length")
            .is_between(pl.col("median") / WITHIN_FACTOR, pl.col("median") * WITHIN_FACTOR)
            .alias("within")
        )
        .group_by("kind_id")
        .agg(
            pl.col("pid", "pattern").first(), pl.len().alias("count"), pl.col("inside").sum().cast(pl.Int64),
            pl.col("overlaps").any(), pl.col("within").mean(), pl.col("length").sum().alias("total_ns"),
        )
        .join(totals, on="pid")
        .with_columns((pl.col("inside") / pl.col("launches")).alias("inside_share"))
        .filter(~pl.col("overlaps") & (pl.col("within") >= WITHIN_SHARE) & (pl.col("inside_share") > LAUNCHES_INSIDE))
        .sort("kind_id")
    )  # fmt: skip


def _chosen(kinds: pl.DataFrame) -> list[int]:
    """One kind per process: one that is named like a step first, then the one that is least often (the outermost)."""
    named = [
        bool(_STEP_WORDS.search(p.lower())) and not _NOT_STEPS.search(p.lower()) for p in kinds["pattern"]
    ]
    epoch = ["epoch" in p.lower() for p in kinds["pattern"]]
    ranked = (
        kinds.with_columns(
            pl.Series("named", named, dtype=pl.Boolean), pl.Series("epoch", epoch, dtype=pl.Boolean)
        )
        .filter(~pl.col("epoch"))
        .sort(["pid", "named", "count", "total_ns", "kind_id"], descending=[False, True, False, True, False])
    )
    return ranked.unique("pid", keep="first", maintain_order=True)["kind_id"].to_list()


def _from_ranges(trace: Trace, workload: Workload) -> tuple[pl.DataFrame, str] | None:
    ranges = _candidates(trace, workload)
    if ranges.is_empty():
        return None
    kinds = _judged(ranges, workload)
    chosen = _chosen(kinds)
    if not chosen:
        return None
    steps = ranges.filter(pl.col("kind_id").is_in(chosen)).sort("pid", "start_ns")
    names = kinds.filter(pl.col("kind_id").is_in(chosen))["pattern"].unique().sort().to_list()
    return _start_to_start(steps, workload), " / ".join(names)


def _start_to_start(ranges: pl.DataFrame, workload: Workload) -> pl.DataFrame:
    """Steps from sorted ranges (pid, start_ns, end_ns): each ends where the next begins.

    The last one ends with its range or with its device work, whichever is later.
    """
    launched = workload.work.filter(pl.col("call").is_not_null()).select("pid", "end_ns", "call")
    launched = launched.with_columns(workload.calls["start_ns"].gather(launched["call"]).alias("launch_ns"))
    last = (
        ranges.group_by("pid", maintain_order=True)
        .last()
        .select("pid", pl.col("start_ns").alias("last_start_ns"), pl.col("end_ns").alias("last_end_ns"))
    )
    ends = (
        launched.join(last, on="pid")
        .filter(pl.col("launch_ns").is_between(pl.col("last_start_ns"), pl.col("last_end_ns"), closed="left"))
        .group_by("pid")
        .agg(pl.col("end_ns").max().alias("work_end_ns"))
    )
    return (
        ranges.join(ends, on="pid", how="left", maintain_order="left")
        .with_columns(
            pl.col("start_ns").shift(-1).over("pid").alias("next_ns"),
            pl.int_range(pl.len(), dtype=pl.UInt32).over("pid").alias("index"),
        )
        .with_columns(pl.coalesce("next_ns", pl.max_horizontal("end_ns", "work_end_ns")).alias("end_ns"))
        .select(list(STEPS))
    )


def _from_period(trace: Trace, workload: Workload) -> StepTable | None:
    found = []
    for pid in sorted(workload.work["pid"].unique().to_list()):
        period = find_period(trace, workload, pid)
        if period is not None:
            found.append((pid, period))
    if not found:
        return None
    numbered = pl.concat(
        [
            period.steps.with_columns(
                pl.lit(pid, pl.Int32).alias("pid"), pl.int_range(pl.len(), dtype=pl.UInt32).alias("index")
            )
            for pid, period in found
        ]
    )
    _, first = max(found, key=lambda item: (item[1].steps.height, -item[0]))
    note = (
        f"Found from the launch sequence, not recorded: it repeats every {first.length} launches"
        f" ({100 * first.agreement:.0f} % of them agree with the ones a period later)."
        " A step of equal parts may show as its parts."
    )
    launched = numbered.select(
        "pid", "index", pl.col("launch_start_ns").alias("start_ns"), pl.col("launch_end_ns").alias("end_ns")
    )
    return StepTable(numbered.select(list(STEPS)), "periodicity", first.name, note, launched)


def find_steps(trace: Trace, workload: Workload) -> StepTable:
    """The steps of every process over the whole capture; source `none` and no rows where nothing repeats."""
    ranged = _from_ranges(trace, workload) if trace.nvtx.height else None
    if ranged is not None:
        steps, name = ranged
        return StepTable(steps, "nvtx", name, f"NVTX ranges named {name!r}, from start to start", steps)
    periodic = _from_period(trace, workload)
    if periodic is not None:
        return periodic
    none = pl.DataFrame(schema=STEPS)
    return StepTable(none, "none", None, "Neither NVTX ranges nor the launch sequence repeat.", none)


def in_step(moments: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """`moments` (pid, at_ns) in their order with `index` of the step of that process that holds each; null outside."""
    if steps.is_empty() or moments.is_empty():
        return moments.with_columns(pl.lit(None, pl.UInt32).alias("index"))
    bounds = steps.select(
        "pid", "index", pl.col("start_ns").alias("step_start_ns"), pl.col("end_ns").alias("step_end_ns")
    )
    return (
        moments.with_row_index("_row")
        .sort("at_ns")
        .join_asof(
            bounds.sort("step_start_ns"),
            left_on="at_ns",
            right_on="step_start_ns",
            by="pid",
            check_sortedness=False,
        )
        .with_columns(pl.when(pl.col("at_ns") < pl.col("step_end_ns")).then("index").alias("index"))
        .sort("_row")
        .drop("_row", "step_start_ns", "step_end_ns")
    )


def time_in_steps(pieces: pl.DataFrame, steps: pl.DataFrame) -> pl.Series:
    """For each step (rows of `steps`, one process) how much of it the union of `pieces` covers, in ns."""
    return covered(steps, pieces)
