"""The window in at most 2,000 marks: binned first, neighbours of one kind joined."""

from typing import Final, Literal

import polars as pl

from nsys_triage.intervals import cut, paint
from nsys_triage.metrics import evidence as ev
from nsys_triage.metrics.api_names import LAUNCH
from nsys_triage.metrics.evidence import host_layers
from nsys_triage.metrics.window import Window
from nsys_triage.metrics.work import Workload
from nsys_triage.result.model import CAUSES, Mark, Row, Timeline
from nsys_triage.trace.model import Trace

RowKind = Literal["gpu", "idle", "host", "steps"]
MARKS: Final = 2_000
MOST_BINS: Final = 400
GPU_ROWS: Final = 16
HOST_ROWS: Final = 4
STEP_MARKS: Final = 150
_HOST: Final = ((ev.WAITING, "sync"), (ev.OS_CALL, "os"), (ev.CUDA_CALL, "api"))


def _edges(window: Window, bins: int) -> pl.Series:
    span = window.end_ns - window.start_ns
    return pl.Series([window.start_ns + span * i // bins for i in range(bins + 1)], dtype=pl.Int64).unique().sort()


def _binned(pieces: pl.DataFrame, edges: pl.Series) -> pl.DataFrame:
    """Per bin the kind (column `what`) with the most time and its share of the bin; neighbours of one kind joined.

    Columns start_ns, end_ns, what, share; sorted. Bins in which nothing lies are left out.
    """
    parts = cut(pieces.select("start_ns", "end_ns", "what"), edges)
    bin_of = edges.search_sorted(parts["start_ns"], side="right").cast(pl.Int64) - 1
    best = (
        parts.with_columns(bin_of.alias("bin"))
        .filter((pl.col("bin") >= 0) & (pl.col("bin") < edges.len() - 1))
        .group_by("bin", "what")
        .agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns"))
        .sort("bin", "ns", "what", descending=[False, True, False])
        .unique("bin", keep="first", maintain_order=True)
    )
    begin, end = edges.gather(best["bin"]), edges.gather(best["bin"] + 1)
    new_run = (best["bin"] != best["bin"].shift(1) + 1) | (best["what"] != best["what"].shift(1))
    return (
        best.with_columns(begin.alias("start_ns"), end.alias("end_ns"), new_run.fill_null(value=True).cum_sum().alias("run"))
        .group_by("run", maintain_order=True)
        .agg(pl.col("start_ns").first(), pl.col("end_ns").last(), pl.col("what").first(), pl.col("ns").sum())
        .with_columns((pl.col("ns") / (pl.col("end_ns") - pl.col("start_ns"))).round(4).clip(0, 1).alias("share"))
    )


def _row(label: str, kind: RowKind, marks: pl.DataFrame) -> Row:
    columns = marks.select("start_ns", "end_ns", "what", "share")
    return Row(label=label, kind=kind, marks=[Mark(**mark) for mark in columns.iter_rows(named=True)])


def _host_rows(trace: Trace, workload: Workload, window: Window) -> list[tuple[str, pl.DataFrame]]:
    """The thread of each process that launches most: its label, and its pieces with `what`."""
    launching = workload.calls.filter((pl.col("group") & LAUNCH) > 0).group_by("pid", "thread").len()
    busiest = launching.sort(["pid", "len", "thread"], descending=[False, True, False]).unique("pid", keep="first", maintain_order=True)
    rows = []
    for pid, thread, _ in busiest.head(HOST_ROWS).iter_rows():
        layers = {bit: layer for bit, layer in host_layers(trace, workload, pl.Series([thread], dtype=pl.UInt32)).items() if bit in dict(_HOST)}
        if not layers:
            continue
        what = pl.lit(None, pl.String)
        for bit, name in reversed(_HOST):
            what = pl.when((pl.col("mask") & bit) > 0).then(pl.lit(name)).otherwise(what)
        pieces = paint(layers, "thread").select("start_ns", "end_ns", what.alias("what")).drop_nulls("what")
        rows.append((f"process {pid} launching thread", window_part(pieces, window)))
    return rows


def window_part(pieces: pl.DataFrame, window: Window) -> pl.DataFrame:
    """The pieces that touch the window."""
    return pieces.filter((pl.col("end_ns") > window.start_ns) & (pl.col("start_ns") < window.end_ns))


def build_timeline(trace: Trace, workload: Workload, pieces: pl.DataFrame, window: Window, steps: pl.DataFrame) -> Timeline:
    """Rows for the GPUs (busy and idle), the launching threads and the steps; `pieces` are the ledger's in the window."""
    gpus = workload.gpus.all[:GPU_ROWS]
    hosts = _host_rows(trace, workload, window)
    bins = min(MOST_BINS, (MARKS - STEP_MARKS) // max(1, 2 * len(gpus) + len(hosts)))
    edges = _edges(window, bins)
    rows = []
    for gpu in gpus:
        own = pieces.filter(pl.col("gpu") == gpu.index).with_columns(pl.col("cause").replace_strict(range(len(CAUSES)), CAUSES, return_dtype=pl.String).alias("what"))
        label = f"GPU {gpu.index}" + (f" ({gpu.name})" if gpu.name else "")
        rows.append(_row(label, "gpu", _binned(own.filter(pl.col("gap").is_null()), edges)))
        rows.append(_row(f"{label} idle", "idle", _binned(own.filter(pl.col("gap").is_not_null()), edges)))
    rows += [_row(label, "host", _binned(own, edges)) for label, own in hosts]
    if steps.height:
        marks = steps.gather_every(-(-steps.height // STEP_MARKS))
        shown = [
            Mark(start_ns=start, end_ns=end, what="startup" if startup else "steady", share=1.0, text=f"step {index}")
            for index, start, end, startup in marks.select("index", "start_ns", "end_ns", "startup").iter_rows()
        ]
        rows.append(Row(label="steps", kind="steps", marks=shown))
    return Timeline(bin_ns=(window.end_ns - window.start_ns) // bins, rows=rows)
