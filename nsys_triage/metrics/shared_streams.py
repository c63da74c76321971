"""Collectives on the stream of the kernels that compute: work of one stream never overlaps."""

from typing import Final

import polars as pl

from nsys_triage.intervals import covered
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.work import COMMUNICATION, COMPUTE
from nsys_triage.trace.model import Trace

COMPUTE_STREAM_SHARE: Final = 0.1
"""A stream computes where it has this share of its GPU's kernel time: a few helper kernels beside collectives do not
make it one."""

_STREAM: Final = ("gpu", "pid", "context", "stream")


def _with_context(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(trace.kernels["context"].gather(rows["row"]))


def on_compute_streams(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    """The communication kernels among `work` (rows of WORK) whose stream also holds compute kernels; columns of WORK.

    A stream is (process, GPU, context, stream), and counts where it has at least a tenth of the GPU's compute time.
    """
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns")
    computing = _with_context(trace, work.filter(pl.col("activity") == COMPUTE)).group_by(_STREAM).agg(length)
    busy = computing.with_columns(pl.col("ns").sum().over("gpu").alias("all"))
    streams = busy.filter((pl.col("ns") > 0) & (pl.col("ns") >= COMPUTE_STREAM_SHARE * pl.col("all"))).select(
        _STREAM
    )
    collectives = _with_context(trace, work.filter(pl.col("activity") == COMMUNICATION))
    return collectives.join(streams, on=_STREAM, how="semi", nulls_equal=True, maintain_order="left").select(
        work.columns
    )


def exposed_collective_ns(pieces: pl.DataFrame, collectives: pl.DataFrame) -> int:
    """How long those collectives ran while nothing computed, summed over the GPUs; `pieces` are the ledger's."""
    exposed = pieces.filter(pl.col("cause") == CODE["communication"])
    return int(covered(exposed, collectives, "gpu").sum())


def exposed_each(pieces: pl.DataFrame, collectives: pl.DataFrame) -> pl.Series:
    """How long each of those collectives ran while nothing computed (ns, in the order of rows)."""
    return covered(collectives, pieces.filter(pl.col("cause") == CODE["communication"]), "gpu")
