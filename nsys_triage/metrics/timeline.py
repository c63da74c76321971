"""The window in at most 2,000 marks: binned first, neighbours of one kind joined."""

from typing import Final, Literal

import polars as pl

from nsys_triage.intervals import merge, subtract, time_in
from nsys_triage.metrics.api_names import LAUNCH, SYNC
from nsys_triage.metrics.window import Window
from nsys_triage.metrics.work import Workload, on_threads
from nsys_triage.result.model import BUSY_CAUSES, CAUSES, Mark, Row, Timeline
from nsys_triage.trace.model import Trace

RowKind = Literal["gpu", "idle", "host", "steps"]
MARKS: Final = 2_000
MOST_BINS: Final = 400
GPU_ROWS: Final = 16
HOST_ROWS: Final = 4
STEP_MARKS: Final = 150


def _edges(window: Window, bins: int) -> pl.Series:
    span = window.end_ns - window.start_ns
    return (
        pl.Series([window.start_ns + span * i // bins for i in range(bins + 1)], dtype=pl.Int64)
        .unique()
        .sort()
    )


def _binned(kinds: dict[str, pl.DataFrame], edges: pl.Series) -> pl.DataFrame:
    """Per bin the kind with the most time and its share of the bin; neighbours of one kind joined.

    `kinds` are disjoint, sorted intervals by name. Columns start_ns, end_ns, what, share; sorted. Bins in which
    nothing lies are left out.
    """
    bins = pl.int_range(edges.len() - 1, dtype=pl.Int64, eager=True)
    times = [
        pl.DataFrame({"bin": bins, "what": what, "ns": time_in(own, edges)}) for what, own in kinds.items()
    ]
    best = (
        pl.concat([pl.DataFrame(schema={"bin": pl.Int64, "what": pl.String, "ns": pl.Int64}), *times])
        .filter(pl.col("ns") > 0)
        .sort("bin", "ns", "what", descending=[False, True, False])
        .unique("bin", keep="first", maintain_order=True)
    )
    begin, end = edges.gather(best["bin"]), edges.gather(best["bin"] + 1)
    new_run = (best["bin"] != best["bin"].shift(1) + 1) | (best["what"] != best["what"].shift(1))
    return (
        best.with_columns(
            begin.alias("start_ns"), end.alias("end_ns"), new_run.fill_null(value=True).cum_sum().alias("run")
        )
        .group_by("run", maintain_order=True)
        .agg(pl.col("start_ns").first(), pl.col("end_ns").last(), pl.col("what").first(), pl.col("ns").sum())
        .with_columns(
            (pl.col("ns") / (pl.col("end_ns") - pl.col("start_ns"))).round(4).clip(0, 1).alias("share")
        )
    )


def _row(label: str, kind: RowKind, marks: pl.DataFrame) -> Row:
    columns = marks.select("start_ns", "end_ns", "what", "share")
    return Row(label=label, kind=kind, marks=[Mark(**mark) for mark in columns.iter_rows(named=True)])


def _host_rows(trace: Trace, workload: Workload) -> list[tuple[str, dict[str, pl.DataFrame]]]:
    """The thread of each process that launches most: its label, and when it was in which kind of call."""
    launching = workload.calls.filter((pl.col("group") & LAUNCH) > 0).group_by("pid", "thread").len()
    busiest = launching.sort(["pid", "len", "thread"], descending=[False, True, False]).unique(
        "pid", keep="first", maintain_order=True
    )
    rows = []
    for pid, thread, _ in busiest.head(HOST_ROWS).iter_rows():
        calls = workload.calls.filter(pl.col("thread") == thread)
        os_rows = on_threads(trace.osrt, workload.threads).filter(pl.col("thread") == thread)
        waits = merge(calls.filter((pl.col("group") & SYNC) > 0))
        in_os = subtract(os_rows, waits)
        kinds = {"sync": waits, "os": in_os, "api": subtract(calls, pl.concat([waits, in_os]))}
        rows.append(
            (f"process {pid} launching thread", {name: own for name, own in kinds.items() if own.height})
        )
    return rows


def build_timeline(
    trace: Trace,
    workload: Workload,
    pieces: pl.DataFrame,
    window: Window,
    steps: pl.DataFrame,
    marks: int = MARKS,
) -> Timeline:
    """Rows for the GPUs (busy and idle), the launching threads and the steps, of at most `marks` marks.

    `pieces` are the ledger's in the window.
    """
    gpus = workload.gpus.all[:GPU_ROWS]
    step_marks = min(STEP_MARKS, marks // 8)
    hosts = _host_rows(trace, workload)
    span = window.end_ns - window.start_ns
    bins = max(1, min(MOST_BINS, span, (marks - step_marks) // max(1, 2 * len(gpus) + len(hosts))))
    edges = _edges(window, bins)
    rows = []
    for gpu in gpus:
        own = pieces.filter(pl.col("gpu") == gpu.index).partition_by("cause", as_dict=True)
        kinds = {CAUSES[code]: frame for (code,), frame in own.items()}
        label = f"GPU {gpu.index}" + (f" ({gpu.name})" if gpu.name else "")
        rows.append(_row(label, "gpu", _binned({c: f for c, f in kinds.items() if c in BUSY_CAUSES}, edges)))
        rows.append(
            _row(
                f"{label} idle",
                "idle",
                _binned({c: f for c, f in kinds.items() if c not in BUSY_CAUSES}, edges),
            )
        )
    rows += [_row(label, "host", _binned(kinds, edges)) for label, kinds in hosts]
    if steps.height:
        chosen = steps.gather_every(-(-steps.height // step_marks))
        shown = [
            Mark(
                start_ns=start,
                end_ns=end,
                what="startup" if startup else "steady",
                share=1.0,
                text=f"step {index}",
            )
            for index, start, end, startup in chosen.select(
                "index", "start_ns", "end_ns", "startup"
            ).iter_rows()
        ]
        rows.append(Row(label="steps", kind="steps", marks=shown))
    return Timeline(bin_ns=span // bins, rows=rows)
