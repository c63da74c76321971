"""The idle time of one GPU in the window: histogram, and the longest gaps with what the host was doing."""

from typing import Final

import polars as pl

from nsys_triage.metrics.copies import KINDS
from nsys_triage.metrics.gaps import GapTable
from nsys_triage.metrics.histogram import duration_histogram
from nsys_triage.metrics.ledger import by_cause, cause_times
from nsys_triage.metrics.steps import in_step
from nsys_triage.metrics.work import COMMUNICATION, COMPUTE, COPY, GRAPH, Workload
from nsys_triage.result.model import Gap, Gaps
from nsys_triage.trace.model import Trace

LONGEST: Final = 10


def summarize_gaps(
    trace: Trace, workload: Workload, table: GapTable, pieces: pl.DataFrame, steps: pl.DataFrame
) -> Gaps:
    """The gaps of one GPU; `pieces` are its ledger pieces cut to the window, `steps` all steps of the capture."""
    idle = pieces.filter(pl.col("gap").is_not_null())
    gaps = (
        idle.lazy()
        .group_by("gap")
        .agg(pl.col("start_ns").min(), pl.col("end_ns").max())
        .with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("length"))
        .collect()
    )
    longest = gaps.sort(["length", "start_ns"], descending=[True, False]).head(LONGEST)
    return Gaps(
        count=gaps.height,
        total_ns=int(gaps["length"].sum()),
        max_ns=int(longest["length"][0]) if longest.height else 0,
        histogram=duration_histogram(gaps["length"]),
        longest=_longest(trace, workload, table, idle, longest, steps),
    )


def _longest(
    trace: Trace,
    workload: Workload,
    table: GapTable,
    idle: pl.DataFrame,
    longest: pl.DataFrame,
    steps: pl.DataFrame,
) -> list[Gap]:
    facts = table.gaps[longest["gap"]]
    split = by_cause(idle.join(longest.select("gap"), on="gap", how="semi"), "gap")
    placed = in_step(facts.select("pid", pl.col("start_ns").alias("at_ns")), steps)["index"]
    found = []
    for row, (gap, fact, step) in enumerate(
        zip(longest.iter_rows(named=True), facts.iter_rows(named=True), placed, strict=True)
    ):
        own = (
            steps.filter((pl.col("pid") == fact["pid"]) & (pl.col("index") == step))
            if step is not None
            else None
        )
        place = None
        if own is not None and own.height:
            place = round(
                (fact["start_ns"] - own["start_ns"][0]) / (own["end_ns"][0] - own["start_ns"][0]), 4
            )
        host = _host_activity(trace, workload, fact)
        found.append(
            Gap(
                start_ns=gap["start_ns"],
                end_ns=gap["end_ns"],
                causes=cause_times(split.filter(pl.col("gap") == gap["gap"])),
                step=step,
                place_share=min(1.0, max(0.0, place)) if place is not None else None,
                ended_by=_ended_by(trace, workload, facts["work"][row]),
                **host,
            )
        )
    return found


def _ended_by(trace: Trace, workload: Workload, work: int) -> str:
    """What ran next: the kernel's own name, the kind of copy, `memset`, `CUDA graph`."""
    row = workload.work.row(work, named=True)
    if row["activity"] in (COMPUTE, COMMUNICATION):
        code = trace.kernels["name"][row["row"]]
        names = workload.names.filter(pl.col("code") == code)["own_name"]
        return str(names[0]) if names.len() else "kernel"
    if row["activity"] == COPY:
        copy = trace.memcpys.row(row["row"], named=True)
        return f"{KINDS.get(copy['copy_kind'], 'unknown')} copy"
    return "CUDA graph" if row["activity"] == GRAPH else "memset"


def _longest_inside(frame: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    """Rows that overlap `[start, end)`, with `inside` (ns), the longest first."""
    inside = pl.min_horizontal(pl.col("end_ns"), end) - pl.max_horizontal(pl.col("start_ns"), start)
    return (
        frame.with_columns(inside.alias("inside"))
        .filter(pl.col("inside") > 0)
        .sort(["inside", "start_ns"], descending=[True, False])
    )


def _text(trace: Trace, code: int) -> str | None:
    texts = trace.strings.filter(pl.col("code") == code)["text"]
    return str(texts[0]) if texts.len() else None


def _host_activity(trace: Trace, workload: Workload, gap: dict[str, int | None]) -> dict[str, str | None]:
    """The CUDA call and the OS call that the explaining thread spent most of the gap in, and its innermost range."""
    thread, start, end = gap["host_thread"], gap["start_ns"], gap["end_ns"]
    nothing: dict[str, str | None] = {"api": None, "os_call": None, "nvtx": None, "cpu": None}
    if thread is None or start is None or end is None:
        return nothing
    key = workload.threads.row(thread, named=True)
    mine = (pl.col("pid") == key["pid"]) & (pl.col("tid") == key["tid"])
    api = _longest_inside(workload.calls.filter(pl.col("thread") == thread), start, end)
    os_calls = _longest_inside(trace.osrt.filter(mine), start, end)
    around = trace.nvtx.filter(mine & (pl.col("start_ns") <= start) & (pl.col("end_ns") > start)).sort(
        "start_ns", "end_ns", descending=[True, False]
    )
    named = workload.api.filter(pl.col("code") == api["name"][0])["api"] if api.height else None
    samples = trace.samples.filter(mine & pl.col("time_ns").is_between(start, end, closed="left"))
    return {
        "api": str(named[0]) if named is not None and named.len() else None,
        "os_call": _text(trace, os_calls["name"][0]) if os_calls.height else None,
        "nvtx": _text(trace, around["name"][0]) if around.height and around["name"][0] is not None else None,
        "cpu": _cpu(trace, samples, trace.scheduling.filter(mine), start, end),
    }


def _cpu(trace: Trace, samples: pl.DataFrame, scheduling: pl.DataFrame, start: int, end: int) -> str | None:
    """What CPU samples or scheduling rows show of the thread; they explain nothing in the ledger."""
    if samples.height:
        top = (
            samples.drop_nulls("symbol")
            .group_by("symbol")
            .len()
            .sort(["len", "symbol"], descending=[True, False])
        )
        name = _text(trace, top["symbol"][0]) if top.height else None
        return f"{samples.height} samples, most in {name}" if name else f"{samples.height} samples"
    inside = scheduling.sort("time_ns").filter(pl.col("time_ns").is_between(start, end, closed="left"))
    if inside.is_empty():
        return None
    switched = int((~inside["scheduled_in"]).sum())
    return f"off the CPU {switched} times" if switched else "on the CPU"
