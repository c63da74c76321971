"""The blocks of several traces of one job as the blocks of the job.

Counts and times are summed. Percentiles over all kernels are exact, from the distribution of every trace; other
percentiles are the nearest-rank ones of the traces' own, each with the weight of its trace, which is a value that
occurs and within the range of the ranks.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec
import polars as pl

from nsys_triage.metrics.kernels import SMALL_NS
from nsys_triage.metrics.kernels_by_shape import join_by_shape
from nsys_triage.metrics.measure import Measurement
from nsys_triage.metrics.work import COMMUNICATION, COMPUTE
from nsys_triage.result.model import (
    Bucket,
    ClassTime,
    CollectiveOp,
    Collectives,
    Copies,
    CopyKind,
    KernelRow,
    Kernels,
    Launches,
    RangeRow,
    Readbacks,
    SizeBucket,
    Sync,
    SyncApi,
)

TOP_KERNELS: Final = 20
TOP_RANGES: Final = 30
DISTRIBUTION: Final = {"duration_ns": pl.Int64, "count": pl.Int64}
Block = TypeVar("Block", bound=msgspec.Struct)


@dataclass(frozen=True)
class Blocks:
    """The blocks of one trace."""

    kernels: Kernels
    durations: pl.DataFrame  # DISTRIBUTION of all kernels
    launches: Launches
    sync: Sync
    copies: Copies
    collectives: Collectives
    ranges: list[RangeRow]
    unattributed_ns: int


def blocks_of(m: Measurement) -> Blocks:
    """The blocks of a measured trace."""
    rows = m.work.filter(pl.col("activity").is_in([COMPUTE, COMMUNICATION]))
    durations = (
        rows.select((pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"))
        .group_by("duration_ns")
        .agg(pl.len().cast(pl.Int64).alias("count"))
    )
    ranges, unattributed = m.ranges
    return Blocks(
        m.kernels,
        durations.sort("duration_ns"),
        m.launches,
        m.sync,
        m.copies,
        m.collectives,
        ranges,
        unattributed,
    )


def weighted_rank(values: Iterable[tuple[int | None, int]], q: int) -> int | None:
    """The nearest-rank percentile of weighted values: the least with q percent of the weight up to it; None without."""
    known = sorted((value, weight) for value, weight in values if value is not None and weight > 0)
    need = sum(weight for _, weight in known) * q
    reached = 0
    for value, weight in known:
        reached += weight
        if reached * 100 >= need:
            return value
    return None


def _grouped(rows: Iterable[Block], key: Callable[[Block], object]) -> list[list[Block]]:
    groups: dict[object, list[Block]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def _most(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None


def _known_sum(values: Iterable[int | None]) -> int | None:
    """The sum; None where one of them is not known."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _buckets(histograms: Sequence[Sequence[Bucket]]) -> list[Bucket]:
    return [
        Bucket(
            from_ns=same[0].from_ns,
            to_ns=same[0].to_ns,
            count=sum(b.count for b in same),
            total_ns=sum(b.total_ns for b in same),
        )
        for same in zip(*histograms, strict=True)
    ]


def join_kernels(blocks: Sequence[Blocks]) -> Kernels:
    """The kernels of all traces."""
    parts = [b.kernels for b in blocks]
    counts = (
        pl.concat([b.durations for b in blocks])
        .group_by("duration_ns")
        .agg(pl.col("count").sum())
        .sort("duration_ns")
    )
    reached = counts["count"].cum_sum()
    total = int(counts["count"].sum())

    def percentile(q: int) -> int | None:
        row = reached.search_sorted(-(-q * total // 100), side="left")
        return int(counts["duration_ns"][int(row)]) if total else None

    small = counts.filter(pl.col("duration_ns") < SMALL_NS)
    sum_ns = sum(k.sum_ns for k in parts)
    small_ns = int((small["duration_ns"] * small["count"]).sum())
    classes = [
        ClassTime(
            kernel_class=same[0].kernel_class,
            count=sum(c.count for c in same),
            total_ns=sum(c.total_ns for c in same),
        )
        for same in _grouped((c for k in parts for c in k.classes), lambda c: c.kernel_class)
    ]
    return Kernels(
        count=total,
        sum_ns=sum_ns,
        p50_ns=percentile(50),
        p90_ns=percentile(90),
        p95_ns=percentile(95),
        p99_ns=percentile(99),
        max_ns=percentile(100),
        histogram=_buckets([k.histogram for k in parts]),
        small_share=round(int(small["count"].sum()) / total, 6) if total else None,
        small_time_share=round(small_ns / sum_ns, 6) if sum_ns else None,
        classes=sorted(classes, key=lambda c: (-c.total_ns, c.kernel_class)),
        top=_top_kernels([row for k in parts for row in k.top]),
        distinct=_distinct(parts),
        by_shape=join_by_shape([k.by_shape for k in parts if k.by_shape]),
    )


def _distinct(parts: Sequence[Kernels]) -> int:
    """How many names there are in all traces; where a trace does not list all of its own, at least so many."""
    listed = {row.name for k in parts for row in k.top}
    listed |= {kernel.name for k in parts if k.by_shape for kernel in k.by_shape.kernels}
    return max(len(listed), *(k.distinct for k in parts))


def _top_kernels(rows: Sequence[KernelRow]) -> list[KernelRow]:
    joined = []
    for same in _grouped(rows, lambda row: row.name):
        shown = max(same, key=lambda row: row.count)  # of equal ones the lowest rank's
        joined.append(
            msgspec.structs.replace(
                shown,
                count=sum(row.count for row in same),
                total_ns=sum(row.total_ns for row in same),
                p50_ns=weighted_rank(((row.p50_ns, row.count) for row in same), 50) or 0,
                max_ns=max(row.max_ns for row in same),
                shapes=max(row.shapes for row in same),
            )
        )
    return sorted(joined, key=lambda row: (-row.total_ns, row.name))[:TOP_KERNELS]


def join_launches(blocks: Sequence[Blocks]) -> Launches:
    """The launch calls of all traces."""
    parts = [b.launches for b in blocks]
    rates = [part.per_s for part in parts if part.per_s is not None]
    return Launches(
        host_calls=sum(p.host_calls for p in parts),
        api_ns=sum(p.api_ns for p in parts),
        latency_p50_ns=weighted_rank(((p.latency_p50_ns, p.host_calls) for p in parts), 50),
        latency_p95_ns=weighted_rank(((p.latency_p95_ns, p.host_calls) for p in parts), 95),
        blocked_calls=sum(p.blocked_calls for p in parts),
        clock_faults=sum(p.clock_faults for p in parts),
        per_s=round(sum(rates), 1) if rates else None,
        blocked_ns=sum(p.blocked_ns or 0 for p in parts),
        queue_depth_p50=weighted_rank(((p.queue_depth_p50, p.host_calls) for p in parts), 50),
        threads=sum(p.threads or 0 for p in parts),
    )


def join_sync(blocks: Sequence[Blocks], steps: int) -> Sync:
    """The synchronising calls of all traces; `steps` of one rank."""
    parts = [b.sync for b in blocks]
    by_api = [
        SyncApi(
            api=same[0].api,
            calls=sum(row.calls for row in same),
            total_ns=sum(row.total_ns for row in same),
            idle_ns=sum(row.idle_ns for row in same),
            cost_ns=sum(row.cost_ns or 0 for row in same),
            blocking_copies=any(bool(row.blocking_copies) for row in same),
        )
        for same in _grouped((row for s in parts for row in s.by_api), lambda row: row.api)
    ]
    readbacks = sum(s.readbacks.count for s in parts)
    return Sync(
        calls=sum(s.calls for s in parts),
        total_ns=sum(s.total_ns for s in parts),
        union_ns=sum(s.union_ns for s in parts),
        idle_ns=sum(s.idle_ns for s in parts),
        cost_ns=sum(s.cost_ns or 0 for s in parts),
        by_api=sorted(by_api, key=lambda row: (-row.total_ns, row.api)),
        readbacks=Readbacks(
            count=readbacks,
            cost_ns=sum(s.readbacks.cost_ns or 0 for s in parts),
            per_step=round(readbacks / len(parts) / steps, 3) if steps else None,
        ),
    )


def join_copies(blocks: Sequence[Blocks]) -> Copies:
    """The copies of all traces."""
    parts = [b.copies for b in blocks]
    kinds = []
    for same in _grouped((kind for c in parts for kind in c.kinds), lambda kind: kind.kind):
        size, time = sum(k.bytes for k in same), sum(k.total_ns for k in same)
        kinds.append(
            CopyKind(
                kind=same[0].kind,
                count=sum(k.count for k in same),
                bytes=size,
                total_ns=time,
                pageable_bytes=sum(k.pageable_bytes for k in same),
                bytes_per_s=round(size * 1e9 / time, 1) if time else None,
                small_count=sum(k.small_count for k in same),
                p50_bytes=weighted_rank(((k.p50_bytes, k.count) for k in same), 50),
                max_bytes=_most(k.max_bytes for k in same),
            )
        )
    links = {(c.link_bytes_per_s, c.link_name) for c in parts}
    link = links.pop() if len(links) == 1 else (None, None)
    sizes = [
        SizeBucket(
            from_bytes=s[0].from_bytes,
            to_bytes=s[0].to_bytes,
            count=sum(b.count for b in s),
            total_bytes=sum(b.total_bytes for b in s),
        )
        for s in zip(*[c.sizes for c in parts], strict=True)
    ]
    return Copies(
        kinds=sorted(kinds, key=lambda k: (-k.total_ns, k.kind)),
        small_count=sum(c.small_count for c in parts),
        sizes=sizes,
        link_bytes_per_s=link[0],
        link_name=link[1],
    )


def join_collectives(blocks: Sequence[Blocks], events: pl.DataFrame) -> Collectives:
    """The communication kernels of all traces, with wait and transfer from the matched `events` (ranks.EVENTS).

    Bytes of an operation are known where they are for every trace that has it.
    """
    return with_waits(
        Collectives(
            count=sum(b.collectives.count for b in blocks),
            total_ns=sum(b.collectives.total_ns for b in blocks),
            exposed_ns=sum(b.collectives.exposed_ns for b in blocks),
            other_count=sum(b.collectives.other_count for b in blocks),
            wait_ns=None,
            transfer_ns=None,
            wait_share=None,
            by_op=sorted(
                (
                    CollectiveOp(
                        op=same[0].op,
                        count=sum(o.count for o in same),
                        total_ns=sum(o.total_ns for o in same),
                        exposed_ns=sum(o.exposed_ns for o in same),
                        bytes=_known_sum(o.bytes for o in same),
                    )
                    for same in _grouped((op for b in blocks for op in b.collectives.by_op), lambda op: op.op)
                ),
                key=lambda op: (-op.total_ns, op.op),
            ),
        ),
        events,
    )


def with_waits(collectives: Collectives, events: pl.DataFrame) -> Collectives:
    """The block with wait and transfer from matched events, sums over the ranks; as it was where nothing is matched."""
    if events.is_empty() or not collectives.total_ns:
        return collectives
    wait, transfer = int(events["wait_ns"].sum()), int(events["transfer_ns"].sum())
    by_op = {
        op: (int(rows["wait_ns"].sum()), int(rows["transfer_ns"].sum()))
        for (op,), rows in events.partition_by("op", as_dict=True).items()
    }
    ops = [
        msgspec.structs.replace(op, wait_ns=by_op[op.op][0], transfer_ns=by_op[op.op][1])
        if op.op in by_op
        else op
        for op in collectives.by_op
    ]
    share = round(min(1.0, wait / collectives.total_ns), 6)
    return msgspec.structs.replace(
        collectives, wait_ns=wait, transfer_ns=transfer, wait_share=share, by_op=ops
    )


def join_ranges(blocks: Sequence[Blocks]) -> list[RangeRow]:
    """The NVTX ranges of all traces with the most time, by name."""
    rows = [
        RangeRow(
            name=same[0].name,
            count=sum(row.count for row in same),
            total_ns=sum(row.total_ns for row in same),
            gpu_ns=sum(row.gpu_ns for row in same),
            gpu_window_ns=sum(row.gpu_window_ns for row in same),
            p50_ns=weighted_rank(((row.p50_ns or 0, row.count) for row in same), 50) or 0,
        )
        for same in _grouped((row for b in blocks for row in b.ranges), lambda row: row.name)
    ]
    return sorted(rows, key=lambda row: (-row.total_ns, row.name))[:TOP_RANGES]
