"""Synchronising calls: how many, how long, and what they cost.

A call that waits while the GPU works, and after which the host is soon back, costs next to nothing however often
it is made; so the time in the calls, the part of it during which the GPUs were idle, and the idle time that the
ledger puts under `host_sync` because of them are three numbers.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.intervals import count_inside, covered, merge, subtract, union_length
from nsys_triage.metrics.api_names import ASYNC_COPY, BLOCKING_COPY, SYNC
from nsys_triage.metrics.gpus import Gpus
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.window import Window
from nsys_triage.metrics.work import DEVICE_TO_HOST, Workload
from nsys_triage.result.model import Readbacks, Sync, SyncApi
from nsys_triage.trace.model import Trace

READBACK_BYTES: Final = 64


def process_groups(gpus: Gpus) -> pl.DataFrame:
    """Columns pid, gpu and group: processes that share a GPU, directly or through others, are one group."""
    group = {pid: pid for gpu in gpus.all for pid in gpu.processes}
    for gpu in gpus.all:
        joined = {group[pid] for pid in gpu.processes}
        group = {pid: min(joined) if of in joined else of for pid, of in group.items()}
    rows = [(pid, gpu.index, group[pid]) for gpu in gpus.all for pid in gpu.processes]
    return pl.DataFrame(rows, schema={"pid": pl.Int32, "gpu": pl.UInt16, "group": pl.Int32}, orient="row")


def all_idle(pieces: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """When all GPUs of a process group were idle: group, start_ns, end_ns; `pieces` are the ledger's in the window."""
    placed = pieces.select("gpu", "start_ns", "end_ns", "gap").join(
        groups.select("gpu", "group").unique(), on="gpu"
    )
    idle = placed.filter(pl.col("gap").is_not_null())
    if groups.select("gpu").n_unique() == groups["group"].n_unique():
        return merge(idle, "group")
    return subtract(idle, placed.filter(pl.col("gap").is_null()), "group")


def sync_calls(workload: Workload, window: Window, groups: pl.DataFrame) -> pl.DataFrame:
    """The synchronising calls of the window: call, pid, group, start_ns, end_ns, api, code (of its name), copying."""
    named = workload.api.select("code", "api")
    calls = window.rows(workload.calls.with_row_index("call").filter((pl.col("group") & SYNC) > 0))
    return (
        calls.with_columns(((pl.col("group") & (BLOCKING_COPY | ASYNC_COPY)) > 0).alias("copying"))
        .select("call", "pid", "start_ns", "end_ns", "copying", pl.col("name").alias("code"))
        .join(groups.select("pid", "group").unique(), on="pid", how="left", maintain_order="left")
        .join(named, on="code", how="left", maintain_order="left")
        .with_columns(pl.col("group").fill_null(-1), pl.col("api").fill_null("unknown"))
    )


def readback_copies(trace: Trace, workload: Workload, window: Window, calls: pl.DataFrame) -> pl.DataFrame:
    """Device-to-host copies of at most 64 bytes that the process waited for: pid, start_ns, end_ns.

    A synchronising call of it began before the copy's end and ended at or after it.
    """
    copies = workload.copies(trace, window.rows(workload.work)).filter(
        (pl.col("copy_kind") == DEVICE_TO_HOST) & (pl.col("bytes") <= READBACK_BYTES)
    )
    last_ns = copies.select("pid", (pl.col("end_ns") - 1).alias("start_ns"), "end_ns")
    return copies.filter(covered(last_ns, calls, "pid") > 0).select("pid", "start_ns", "end_ns")


def summarize_sync(
    trace: Trace, workload: Workload, pieces: pl.DataFrame, window: Window, steps: int
) -> Sync:
    """The synchronising calls of the window; `pieces` are the ledger's in the window, `steps` how many it holds."""
    groups = process_groups(workload.gpus)
    calls = sync_calls(workload, window, groups)
    idle = all_idle(pieces, groups)
    length = pl.col("end_ns") - pl.col("start_ns")
    costs = (
        pieces.lazy()
        .filter(pl.col("cause") == CODE["host_sync"])
        .group_by("call")
        .agg(length.sum().alias("cost_ns"))
        .collect()
    )
    api_of = workload.api.select("code", "api")
    named_costs = (
        costs.with_columns(workload.calls["name"].gather(costs["call"]).alias("code"))
        .join(api_of, on="code", how="left")
        .group_by(pl.col("api").fill_null("unknown"))
        .agg(pl.col("cost_ns").sum())
    )
    rows = []
    for (api,), of_api in calls.group_by(["api"], maintain_order=True):
        together = merge(of_api, "group")
        cost = named_costs.filter(pl.col("api") == api)["cost_ns"].sum()
        rows.append(
            SyncApi(
                api=str(api),
                calls=of_api.height,
                total_ns=int(of_api.select(length.sum()).item()),
                idle_ns=int(covered(together, idle, "group").sum()),
                cost_ns=int(cost),
                blocking_copies=bool(of_api["copying"].any()),
            )
        )
    together = merge(calls, "group")
    readbacks = readback_copies(trace, workload, window, workload.calls.filter((pl.col("group") & SYNC) > 0))
    return Sync(
        calls=calls.height,
        total_ns=int(calls.select(length.sum()).item()),
        union_ns=int(union_length(calls, "group")["ns"].sum()),
        idle_ns=int(covered(together, idle, "group").sum()),
        cost_ns=int(costs["cost_ns"].sum()),
        by_api=sorted(rows, key=lambda row: (-row.total_ns, row.api)),
        readbacks=Readbacks(
            count=readbacks.height,
            cost_ns=_readback_cost(workload, costs, readbacks),
            per_step=readbacks.height / steps if steps else None,
        ),
    )


def _ended_in(workload: Workload, waits: pl.Series, readbacks: pl.DataFrame) -> pl.Series:
    """In which of those waits (rows of CALLS, no nulls) a read-back ended (Boolean)."""
    # a copy that ends with the wait is inside it, one that ends as it begins is not: both bounds are one later
    bounds = workload.calls[waits].select("pid", pl.col("start_ns") + 1, pl.col("end_ns") + 1)
    return count_inside(bounds, readbacks.select("pid", pl.col("end_ns").alias("at_ns")), "pid") > 0


def _readback_cost(workload: Workload, costs: pl.DataFrame, readbacks: pl.DataFrame) -> int:
    """The cost of those waits in which a read-back ended."""
    if costs.is_empty() or readbacks.is_empty():
        return 0
    known = costs.drop_nulls("call")
    return int(known.filter(_ended_in(workload, known["call"], readbacks))["cost_ns"].sum())


@dataclass(frozen=True, slots=True)
class ReadbackWaits:
    """The waits for tiny read-backs that cost idle time."""

    apis: tuple[str, ...]  # plain names of the calls, the dearest first
    where: tuple[int, int] | None  # the gap that costs most: (start_ns, end_ns)


def readback_waits(trace: Trace, workload: Workload, pieces: pl.DataFrame, window: Window) -> ReadbackWaits:
    """Which calls wait for the read-backs of the window, and the gap in which they cost most.

    `pieces` are the ledger's in the window. No calls and no gap where none of them costs anything.
    """
    readbacks = readback_copies(trace, workload, window, workload.calls.filter((pl.col("group") & SYNC) > 0))
    waited = pieces.filter(
        (pl.col("cause") == CODE["host_sync"]) & pl.col("call").is_not_null() & pl.col("gap").is_not_null()
    )
    own = (
        waited.filter(_ended_in(workload, waited["call"], readbacks))
        if waited.height and readbacks.height
        else waited.clear()
    )
    if own.is_empty():
        return ReadbackWaits((), None)
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns")
    by_code = (
        own.with_columns(workload.calls["name"].gather(own["call"]).alias("code"))
        .group_by("code")
        .agg(length)
    )
    apis = by_code.join(workload.api.select("code", "api"), on="code").group_by("api").agg(pl.col("ns").sum())
    dearest = own.group_by("gap").agg(length).sort(["ns", "gap"], descending=[True, False])["gap"][0]
    gap = pieces.filter(pl.col("gap") == dearest)
    return ReadbackWaits(
        tuple(apis.sort(["ns", "api"], descending=[True, False])["api"].to_list()),
        (int(gap["start_ns"].min()), int(gap["end_ns"].max())),  # type: ignore[arg-type]
    )
