"""Attention computed in pieces: what runs between the two batched products around a softmax.

The score matrix of such an attention goes to memory and back for every kernel between the products; a fused
attention kernel keeps it on the chip.
"""

from typing import Final

import polars as pl

from nsys_triage.metrics.work import COMPUTE, Workload
from nsys_triage.trace.model import Schema, Trace

ATTENTION_PARTS: Final[Schema] = {
    "gpu": pl.UInt16,
    "pid": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "row": pl.UInt32,  # in the trace's kernels
    "attention": pl.Int64,  # number of the pair of products that the kernel runs between
}
"""Kernels between the products, without the products themselves; sorted by gpu and start."""

_MOST_BETWEEN: Final = 16  # kernels: scale, mask, softmax by hand, dropout, and their backward passes
_BETWEEN: Final = ("elementwise", "layout", "reduction", "random", "gather")
_SOFTMAX: Final = r"soft_?max"
_NOT_ATTENTION: Final = r"log_?soft_?max|nll_?loss|cross_?entropy|top_?k"
_EXPONENT: Final = r"exp_kernel|exp_fused|_exp_"
_LARGEST: Final = r"maxops|max_op|amax|_max_"
_SUM: Final = r"sum_functor|sumops|_sum_"


def attention_parts(trace: Trace, workload: Workload, work: pl.DataFrame) -> pl.DataFrame:
    """The kernels among `work` (rows of WORK) that run between the two products of an attention: ATTENTION_PARTS.

    An attention is, on one stream, a batched product (a grid with a third dimension), at most 16 kernels that are
    elementwise, reductions or the like, and another batched product; among them is a softmax by name, or its parts by
    hand: a greatest value, an exponential and a sum. The logarithmic softmax of a loss is none. Without any an empty
    frame.
    """
    kernels = _in_order(trace, workload, work)
    numbered = kernels.with_columns(
        # kernels of one stream are one run, so a number never spans two streams
        (pl.col("matmul") | pl.col("new_stream")).cum_sum().alias("attention"),
        (pl.col("matmul") & (pl.col("grid_z") > 1)).alias("product"),
    )
    held = numbered.group_by("attention").agg(
        pl.col("product", "gpu", "stream", "pid").first(),
        (~pl.col("matmul")).sum().alias("between"),
        (pl.col("plain") | pl.col("matmul")).all(),
        pl.col("softmax", "exponent", "largest", "sum", "loss").any(),
    )
    followed = (
        pl.col("product").shift(-1)
        & (pl.col("stream") == pl.col("stream").shift(-1))
        & (pl.col("gpu") == pl.col("gpu").shift(-1))
        & (pl.col("pid") == pl.col("pid").shift(-1))
    )
    found = held.sort("attention").filter(
        pl.col("product")
        & followed.fill_null(value=False)
        & pl.col("plain")
        & ~pl.col("loss")
        & (pl.col("softmax") | (pl.col("exponent") & pl.col("largest") & pl.col("sum")))
        & (pl.col("between") <= _MOST_BETWEEN)
    )
    parts = numbered.filter(~pl.col("matmul") & pl.col("attention").is_in(found["attention"].implode()))
    return parts.select(pl.col(name).cast(dtype) for name, dtype in ATTENTION_PARTS.items()).sort(
        "gpu", "start_ns", "row"
    )


def _in_order(trace: Trace, workload: Workload, work: pl.DataFrame) -> pl.DataFrame:
    """Compute kernels by stream and start, with what their names say; `new_stream` marks a stream's first."""
    rows = work.filter((pl.col("activity") == COMPUTE) & (pl.col("end_ns") > pl.col("start_ns")))
    kernels = rows.select("gpu", "pid", "stream", "start_ns", "end_ns", "row").with_columns(
        trace.kernels["name"].gather(rows["row"]), trace.kernels["grid_z"].gather(rows["row"])
    )
    text, matmul = pl.col("text").str.to_lowercase(), pl.col("kernel_class") == "matmul"
    said = workload.names.select(
        pl.col("code").alias("name"),
        matmul.alias("matmul"),
        pl.col("kernel_class").is_in(_BETWEEN).alias("plain"),
        *(
            (~matmul & text.str.contains(pattern)).alias(word)
            for word, pattern in (
                ("softmax", _SOFTMAX),
                ("exponent", _EXPONENT),
                ("largest", _LARGEST),
                ("sum", _SUM),
                ("loss", _NOT_ATTENTION),
            )
        ),
    )
    stream = pl.struct("gpu", "pid", "stream")
    return (
        kernels.join(said, on="name", how="left")
        .sort("gpu", "pid", "stream", "start_ns", "row")
        .with_columns((stream != stream.shift(1)).fill_null(value=True).alias("new_stream"))
    )
