"""Matrix kernels load their operands in small pieces, because sizes or addresses are not multiples of 16 bytes.

What it means

A library has several versions of a matrix kernel. The fastest load 16 bytes at a time (align8 for 16-bit
operands); where the rows of a matrix are not a multiple of that, it falls back to align2 or align1
(CUTLASS), to notaligned (attention), or to 16-bit products without tensor cores (fp16_sgemm, hgemm). The
usual reason is one odd size: a vocabulary of 50 257, a hidden size of 3 420, an image with 3 channels, a
sliced view.

What to do next

1. Pad the odd dimension to a multiple of 8 elements for 16-bit operands, better of 64 (for 8-bit ones 16
   and 128).
2. Do not slice along the last dimension just before a product; make the operand contiguous once.
3. Record again: the names then say align8, ldg8, or nvjet.

When it is wrong

A library may take such a version for a small problem where it makes no difference. Padding costs memory and
some arithmetic, which is worth it only if the product is large.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.tensor_cores import half_on_plain_cores, with_throughput
from nsys_triage.rules import kernel_advice as ka
from nsys_triage.rules.base import Found, NotRun, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context

_GAIN: Final = 0.5  # an aligned version takes half of the time at best
# on the text in lower case; simt kernels of CUTLASS are always align1, whatever the operands
_LOADS: Final = r"tensorop.*_align[12]([^0-9]|$)|fmha_cutlass[fb]_\w*_notaligned"


def _unaligned(context: Context) -> pl.DataFrame:
    """The launch shapes whose names say that loads are narrow or that 16-bit operands meet no tensor cores."""
    shapes = context.m.launch_shapes
    narrow = shapes.filter(pl.col("text").str.to_lowercase().str.contains(_LOADS))
    plain = with_throughput(shapes.filter(half_on_plain_cores())).select(shapes.columns)
    return pl.concat([narrow, plain]).unique(maintain_order=True)


def check(context: Context) -> Outcome:
    """Fires where matrix kernels with unaligned operands take the threshold of the span."""
    hidden = ka.kernels_in_graphs(context)
    if hidden is not None:
        return hidden
    matrix = context.m.launch_shapes.filter(
        pl.col("kernel_class").is_in(["matmul", "attention", "convolution"])
    )
    if matrix.is_empty():
        return NotRun("matrix kernels: the trace has none")
    long = _unaligned(context).filter(pl.col("median_ns") >= context.thresholds["length"])
    rows = ka.with_gain(long, pl.col("alone_ns") * _GAIN)
    time_ns = ka.total(rows, "alone_ns")
    time_share = ka.share_of_span(context, time_ns)
    if time_share < context.thresholds["share"]:
        return Passed(f"Matrix kernels with unaligned operands take {units.share(time_share)} of the time.")
    row = ka.first(rows)
    return Found(
        title=f"Matrix kernels with unaligned operands take {units.share(time_share)} of the time",
        stake=context.stake(
            time_ns * _GAIN,
            "high: kernels with aligned operands take half of the time; low: the loads are not what limits them",
            low_ns=0,
        ),
        causes=("compute",),
        evidence=(
            *ka.kernel_numbers(context, rows, row),
            number("matrix kernels of all kinds, time", context.mean_ns(ka.total(matrix, "alone_ns")), "ns"),
        ),
        actions=(
            context.wording(
                pytorch=(
                    "Pad the odd dimension (vocabulary, hidden size, channels) to a multiple of 64, at least of 8, "
                    "and do not slice the last dimension before a product."
                ),
                jax="Pad the odd dimension (vocabulary, hidden size, channels) to a multiple of 64, at least of 8.",
                cuda="Make leading dimensions and addresses of the operands multiples of 16 bytes, better of 128.",
            ),
            "Find the product: its grid and the NVTX range or layer around it, at the time given here.",
            ka.ncu_action(context, row, "Compare the version that runs with one on padded operands"),
        ),
        caveat=(
            "For small products the library may take such a kernel without any loss, and padding costs memory and "
            "arithmetic."
        ),
        confidence="medium",
        where=ka.longest_launch(row),
        gpu=ka.one_of_several(context, rows),
    )


RULE = Rule(
    id="unaligned-matmul",
    title="Matrix kernels with unaligned operands",
    check=check,
    page=page_of(__doc__),
    needs=("kernels",),
    thresholds={
        "share": Threshold(
            0.05, "share", "of the span, that these kernels must take: less is not worth a change"
        ),
        "length": ka.LONG_KERNEL,
    },
)
