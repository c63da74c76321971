"""Slow general kernels run where a library has a better one.

What it means

Frameworks keep a general kernel for cases that the fast one does not take: attention in separate products
and a softmax, depthwise convolutions outside cuDNN, indexing whose backward pass sorts and adds one by one,
recurrent cells step by step, interpolation in the wrong memory format. Their names show which. Only kernels
with a well-known better one are listed.

What to do next

1. Attention: torch.nn.functional.scaled_dot_product_attention, or FlashAttention; in JAX
   jax.nn.dot_product_attention.
2. Depthwise convolutions and interpolation: channels_last with 16-bit types.
3. Indexing with a tensor that needs a gradient: index_select, gather or F.embedding in place of x[index].
4. Recurrent layers: nn.LSTM and nn.GRU over the whole sequence in place of cells in a loop.

When it is wrong

The fast kernel may not take this case (a type, a head size, a custom mask), or be no faster for small
sizes.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.attention_parts import attention_parts
from nsys_triage.metrics.kernel_counters import named_kernels
from nsys_triage.metrics.launch_shapes import exposed_ns
from nsys_triage.result.model import Interval
from nsys_triage.rules import kernel_advice as ka
from nsys_triage.rules.base import Found, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context


@dataclass(frozen=True, slots=True)
class _Kind:
    """Slow kernels of one kind, and what is better; `gain` is the part of their time that it gives back at most."""

    name: str
    pattern: str  # on the text in lower case
    better: str
    gain: float


_ATTENTION: Final = _Kind(
    "attention in separate kernels",
    "",
    (
        "Use one fused attention kernel: torch.nn.functional.scaled_dot_product_attention or FlashAttention, "
        "jax.nn.dot_product_attention in JAX"
    ),
    1.0,
)
_KINDS: Final = (
    _Kind(
        "depthwise convolutions outside cuDNN",
        r"at::native::.*conv_depthwise[23]d",
        (
            "Run depthwise convolutions in channels_last with a 16-bit type, where cuDNN has kernels for them, or "
            "as plain convolutions if the channels are few"
        ),
        0.5,
    ),
    _Kind(
        "convolutions by unfolding",
        r"at::native::.*(vol2col|col2vol)_kernel",
        (
            "Let cuDNN do the convolution: enable it (torch.backends.cudnn.enabled) and use a type and dilation "
            "that it takes"
        ),
        0.5,
    ),
    _Kind(
        "backward passes of indexing",
        r"at::native::.*indexing_backward_kernel",
        (
            "Replace x[index] by index_select, gather or torch.nn.functional.embedding, whose backward pass does "
            "not sort"
        ),
        0.5,
    ),
    _Kind(
        "recurrent cells step by step",
        r"at::native::.*(lstm|gru)_cell_(forward|backward)",
        "Use nn.LSTM or nn.GRU over the whole sequence, which run in cuDNN",
        0.5,
    ),
    _Kind(
        "interpolation outside channels_last",
        r"at::native::.*upsample_(bilinear|nearest)2d(_backward)?_out_frame",
        (
            "Convert the model to channels_last (model.to(memory_format=torch.channels_last)), for which "
            "interpolation has faster kernels"
        ),
        0.5,
    ),
)


def check(context: Context) -> Outcome:
    """Fires for the kind of slow kernel that takes most of the span, where it takes the threshold by itself."""
    hidden = ka.kernels_in_graphs(context)
    if hidden is not None:
        return hidden
    found = [(kind, _work(context, kind)) for kind in (_ATTENTION, *_KINDS)]
    # the plain sum bounds what is exposed: only the kind with most has to be looked at closely
    kind, work = max(found, key=lambda one: _sum_ns(one[1]))
    time_ns = exposed_ns(context.m.work, work) if work.height else 0
    time_share = ka.share_of_span(context, time_ns)
    if time_share < context.thresholds["share"]:
        return Passed(
            f"General kernels that libraries have better ones for ({kind.name}) take {units.share(time_share)} "
            "of the time."
            if time_ns
            else "No kernels for which libraries are known to have a better one."
        )
    longest = work.sort([pl.col("end_ns") - pl.col("start_ns"), "start_ns"], descending=[True, False]).row(
        0, named=True
    )
    row = ka.first(
        context.m.launch_shapes.filter(pl.col("name") == context.m.trace.kernels["name"][longest["row"]])
    )
    return Found(
        title=(
            f"General kernels where a library has a better one take {units.share(time_share)} of the time: "
            f"{kind.name}"
        ),
        stake=context.stake(time_ns * kind.gain, _basis(kind), low_ns=0),
        causes=("compute",),
        evidence=(
            number(f"time of {kind.name} while nothing else computes", context.mean_ns(time_ns), "ns"),
            number("launches of them", work.height, "count"),
            number("the longest of them", ka.short_name(row), "text"),
        ),
        actions=(
            f"{kind.better}; then record again and compare.",
            ka.ncu_action(context, row, "See what limits the longest of them"),
        ),
        caveat=(
            "The fast kernel may not take this case (a type, a head size, a custom mask), or be no faster for "
            "small sizes."
        ),
        confidence="medium",
        where=Interval(start_ns=longest["start_ns"], end_ns=longest["end_ns"]),
    )


def _basis(kind: _Kind) -> str:
    if kind is _ATTENTION:
        return (
            "high: everything between the two products of an attention is fused into them; low: the fused kernel "
            "does not take this case"
        )
    return "high: the better kernel takes half of the time; low: it does not take this case"


def _sum_ns(work: pl.DataFrame) -> int:
    return int((work["end_ns"] - work["start_ns"]).sum())


def _work(context: Context, kind: _Kind) -> pl.DataFrame:
    """The rows (gpu, start_ns, end_ns, row) of that kind in the window."""
    m = context.m
    if kind is _ATTENTION:
        return attention_parts(m.trace, m.workload, m.work).select("gpu", "start_ns", "end_ns", "row")
    named = pl.col("text").str.to_lowercase().str.contains(kind.pattern)
    return named_kernels(m.trace, m.workload, m.work, named).select("gpu", "start_ns", "end_ns", "row")


RULE = Rule(
    id="generic-kernels",
    title="General kernels where a library has a better one",
    check=check,
    page=page_of(__doc__),
    needs=("kernels",),
    thresholds={
        "share": Threshold(
            0.05, "share", "of the span, that kernels of one kind must take: less is not worth a change"
        )
    },
)
