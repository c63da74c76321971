"""Copies, casts and transposes on the device take time that computes nothing.

What it means

Kernels that only move data: changes of the image format (NCHW to NHWC and back), transposes and contiguous
copies, casts between types, concatenations. Each reads and writes memory once and adds no arithmetic. They
come from operations that want another layout or type than the one before them delivers.

What to do next

1. Format changes around convolutions: keep model and input in one format, channels_last for 16-bit
   convolutions.
2. Casts: keep parameters and activations in the type that the products use; under autocast keep a block in
   one type.
3. Contiguous copies: use views and strides, and drop .contiguous(), permutes and concatenations that the
   next operation does not need; write into slices of one buffer.
4. Let a compiler fuse the rest into its neighbours (torch.compile, XLA).

When it is wrong

Some are necessary, and some make the next kernel faster than they cost themselves.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.rules import kernel_advice as ka
from nsys_triage.rules.base import Found, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context

_FORMATS: Final = "format changes"
_FUSED: Final = 0.5  # a conversion fused into its neighbour still reads its data, and writes them elsewhere
# kind, pattern on the text in lower case; the first that fits
_KINDS: Final = (
    (_FORMATS, r"nchw|nhwc|nc[dh]+w|tensor_?format|reformat|convertor"),
    (
        "casts",
        r"(b?float16|half|float8\w*)_copy_kernel|unrolled_elementwise_kernel.*copy_kernel|_to_copy|(^|_)cast|convert|quant",
    ),
    ("concatenations", r"cat_?array|concat|(^|_)cat_|chunk_cat|stack|split"),
    ("copies and transposes", r""),
)


def _kinds(rows: pl.DataFrame) -> pl.DataFrame:
    """Time by kind of conversion, the largest first: kind, alone_ns."""
    text = pl.col("text").str.to_lowercase()
    kind = pl.coalesce(*(pl.when(text.str.contains(pattern)).then(pl.lit(name)) for name, pattern in _KINDS))
    by_kind = rows.group_by(kind.alias("kind")).agg(pl.col("alone_ns").sum())
    return by_kind.sort(["alone_ns", "kind"], descending=[True, False])


def check(context: Context) -> Outcome:
    """Fires where kernels of the class `layout` take the threshold of the span while nothing else computes."""
    hidden = ka.kernels_in_graphs(context)
    if hidden is not None:
        return hidden
    moved = context.m.launch_shapes.filter(pl.col("kernel_class") == "layout")
    rows = ka.with_gain(moved, pl.col("alone_ns"))
    time_ns = ka.total(rows, "alone_ns")
    time_share = ka.share_of_span(context, time_ns)
    if time_share < context.thresholds["share"]:
        return Passed(
            f"Copies, casts and transposes on the device take {units.share(time_share)} of the time."
        )
    row, kinds = ka.first(rows), _kinds(rows)
    whole = ka.total(kinds.filter(pl.col("kind") == _FORMATS), "alone_ns")
    return Found(
        title=f"Copies, casts and transposes on the device take {units.share(time_share)} of the time",
        stake=context.stake(
            whole + (time_ns - whole) * _FUSED,
            "high: no format changes, and half of the time of the other conversions; low: all are needed",
            low_ns=0,
        ),
        causes=("compute",),
        evidence=(
            *ka.kernel_numbers(context, rows, row),
            *(number(f"time in {kind}", context.mean_ns(ns), "ns") for kind, ns in kinds.iter_rows()),
        ),
        actions=(
            *_advice(context, kinds["kind"][0]),
            ka.ncu_action(context, row, "See how much of the memory bandwidth the longest one reaches"),
        ),
        caveat="Some conversions are necessary, and some make the next kernel faster than they cost.",
        confidence="medium",
        where=ka.longest_launch(row),
        gpu=ka.one_of_several(context, rows),
    )


def _advice(context: Context, kind: str) -> tuple[str, ...]:
    fuse = context.wording(
        pytorch="Let torch.compile fuse what is left into its neighbours.",
        jax="See in the HLO (--xla_dump_to) why XLA does not fuse them.",
        cuda="Read and write the other layout or type inside the kernels that need it.",
    )
    if kind == _FORMATS:
        keep = context.wording(
            pytorch=(
                "Keep model and input in one format: model.to(memory_format=torch.channels_last), input likewise."
            ),
            jax="Keep the whole model in one dimension order (NHWC for convolutions on tensor cores).",
            cuda="Keep tensors in one format across all convolutions (NHWC for 16-bit ones).",
        )
        return keep, fuse
    if kind == "casts":
        keep = context.wording(
            pytorch=(
                "Keep parameters and activations in the type that the products use (a bfloat16 model, or one "
                "autocast region around whole blocks)."
            ),
            jax="Keep parameters and activations in one type, and cast once.",
            cuda="Keep operands in one type, and cast where they are produced.",
        )
        return keep, fuse
    keep = context.wording(
        pytorch=(
            "Look for .contiguous(), permute and cat before the operation at the time given here; views and "
            "preallocated outputs avoid them."
        ),
        jax="Look for transposes and concatenations around the operation at the time given here.",
        cuda="Let kernels take strides, and write results into slices of one buffer.",
    )
    return keep, fuse


RULE = Rule(
    id="layout-conversion",
    title="Copies, casts and transposes on the device",
    check=check,
    page=page_of(__doc__),
    needs=("kernels",),
    thresholds={
        "share": Threshold(
            0.05, "share", "of the span, that these kernels must take: less is not worth a change"
        )
    },
)
