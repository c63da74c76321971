"""Narrows rows of the event tables to the declared schemas, batch by batch.

Each function takes a batch as `read.py` gives it (logical columns of `versions.py`, all int64) and returns
rows of the schema in `model.py`. Integers that do not fit their narrow type become null.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import polars as pl

from nsys_triage.trace import model
from nsys_triage.trace.clean import Clock, drop_bad
from nsys_triage.trace.read import Narrow, Piece

NOT_APPLICABLE: Final = 4_294_967_295  # an id that a synchronisation record does not have
_UNKNOWN_MEMORY: Final = 7


def process_id(column: str) -> pl.Expr:
    """The process of a serialized global id (bits 24 to 47)."""
    return ((pl.col(column) // (1 << 24)) & 0xFFFFFF).cast(pl.Int32)


def thread_id(column: str) -> pl.Expr:
    """The thread of a serialized global id (bits 0 to 23)."""
    return (pl.col(column) & 0xFFFFFF).cast(pl.Int32)


def _positive(column: str) -> pl.Expr:
    return pl.when(pl.col(column) > 0).then(pl.col(column))


def _graph_node() -> pl.Expr:
    # ids of graphs are in the upper half: a large one makes the signed column negative
    return pl.when(pl.col("graph_node") != 0).then(pl.col("graph_node")).reinterpret(signed=False)


def _memory_kind(column: str) -> pl.Expr:
    return pl.when(pl.col(column) != _UNKNOWN_MEMORY).then(pl.col(column))


def _applicable(column: str) -> pl.Expr:
    return pl.when(pl.col(column) != NOT_APPLICABLE).then(pl.col(column))


def _overhead_kind() -> pl.Expr:
    # 0 is "undefined": nsys writes it for its own start-up and flushes, which only the name tells apart
    return pl.when(pl.col("kind") != 0).then(pl.col("kind"))


_CONVERTED: Final[Mapping[str, Mapping[str, Callable[[], pl.Expr]]]] = {
    "kernels": {"graph_node": _graph_node},
    "memcpys": {
        "graph_node": _graph_node,
        "source_kind": partial(_memory_kind, "source_kind"),
        "target_kind": partial(_memory_kind, "target_kind"),
    },
    "memsets": {"graph_node": _graph_node, "memory_kind": partial(_memory_kind, "memory_kind")},
    "syncs": {"stream": partial(_applicable, "stream"), "event": partial(_applicable, "event")},
    "overheads": {"kind": _overhead_kind},
}
DEVICE_WORK: Final = ("kernels", "memcpys", "memsets", "graphs")


def _column(frame: str, name: str, clock: Clock) -> pl.Expr:
    converted = _CONVERTED.get(frame, {}).get(name)
    if converted:
        return converted()
    match name:
        case "start_ns":
            return clock.relative("start")
        case "end_ns":
            return clock.relative("end")
        case "pid":
            process = process_id("global_tid" if "tid" in model.FRAMES[frame] else "global_pid")
            # device work without one is a process of its own: its GPU was busy all the same
            return process.fill_null(0) if frame in DEVICE_WORK else process
        case "tid":
            return thread_id("global_tid")
        case "correlation":
            return _positive("correlation")
        case _:
            return pl.col(name)


def narrow_intervals(frame: str, clock: Clock) -> Narrow:
    """For tables of rows with a start and an end: bad rows are dropped and counted."""
    schema = model.FRAMES[frame]
    columns = [
        _column(frame, name, clock).cast(dtype, strict=False).alias(name) for name, dtype in schema.items()
    ]
    device = frame in DEVICE_WORK

    def narrow(batch: pl.DataFrame) -> Piece:
        good, dropped = drop_bad(batch, clock, device=device)
        return Piece(good.select(columns), batch.height, dropped)

    return narrow


def narrow_scheduling(clock: Clock) -> Narrow:
    """For rows that say that a thread came onto or left a CPU."""

    def narrow(batch: pl.DataFrame) -> Piece:
        rows = batch.filter(pl.col("start").is_not_null()).select(
            clock.relative("start").alias("time_ns"),
            process_id("global_tid").alias("pid"),
            thread_id("global_tid").alias("tid"),
            pl.col("cpu").cast(pl.Int32, strict=False),
            (pl.col("scheduled_in") != 0).alias("scheduled_in"),
        )
        return Piece(rows, batch.height)

    return narrow


def narrow_samples(clock: Clock) -> Narrow:
    """For samples of the CPU, before their symbols are joined: `id` is that of the call chain."""

    def narrow(batch: pl.DataFrame) -> Piece:
        rows = batch.filter(pl.col("start").is_not_null()).select(
            clock.relative("start").alias("time_ns"),
            process_id("global_tid").alias("pid"),
            thread_id("global_tid").alias("tid"),
            pl.col("id"),
        )
        return Piece(rows, batch.height)

    return narrow


def narrow_callchains(batch: pl.DataFrame) -> Piece:
    """For the innermost frames of call chains."""
    rows = batch.select(
        pl.col("id"),
        pl.col("symbol").cast(pl.UInt32, strict=False),
        pl.col("module").cast(pl.UInt32, strict=False),
    )
    return Piece(rows, batch.height)


def join_samples(samples: pl.DataFrame, innermost: pl.DataFrame) -> pl.DataFrame:
    """Samples with the symbol and module in which they were taken; null where the chain is not recorded."""
    chains = innermost.unique("id", keep="first", maintain_order=True)
    return samples.join(chains, on="id", how="left", maintain_order="left").select(list(model.SAMPLES))
