"""The thread that launches is busy with something else while the GPU has nothing to do.

What it means

Between two launches the launching thread computes on the CPU for 100 us or more, outside of any CUDA call and of any
recorded OS call: preparing arguments, building the model, post-processing results, logging, garbage collection, Python
code in the step. Shorter stretches before a launch count as launch overhead.

What to do next

1. See what it does: the NVTX range or functions below, else record CPU samples with the line given.
2. Move work that the next launch does not need to another thread or process, or to the GPU.
3. Let the host run ahead: launch the next step before working on the results of this one.

When it is wrong

Without OS runtime calls in the recording, a thread that waits in the operating system looks as if it computed. A
server without requests idles too, and that is not a fault. Work that happens once (building a model) is start-up.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.cpu_cores import off_core_ns
from nsys_triage.metrics.histogram import nearest_rank
from nsys_triage.metrics.host_activity import host_spans, symbols_in
from nsys_triage.result.model import Evidence, Level
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context, record_line

_HOT: Final = 3
_SHORT_NS: Final = 1_000_000
_MANY: Final = 20


def check(context: Context) -> Outcome:
    """Fires where idle time while the launching thread computes reaches the threshold."""
    share, total_ns = context.share("host_compute"), context.total_ns("host_compute")
    if not total_ns or share < context.thresholds["share"]:
        return Passed(f"The GPU waits {units.share(share)} of the time while the launching thread computes.")
    m = context.m
    spans = host_spans(context.pieces_of("host_compute"), m.gaps.gaps)
    stake = context.cause_stake("host_compute")
    once = ", most of it once" if stake.low_ns * 2 < stake.high_ns else ""
    stretches = _stretches(context)
    hot = symbols_in(m.trace, m.workload, spans).head(_HOT)
    off_ns = off_core_ns(m.trace, spans, m.workload.threads)
    return Found(
        title=f"The GPU waits {units.share(share)} of its time while the launching thread is busy elsewhere{once}",
        stake=stake,
        causes=("host_compute",),
        evidence=(
            number("idle while the launching thread computes", context.mean_ns(total_ns), "ns"),
            number("gaps in which it does", stretches.len(), "count"),
            number("median of it in one gap", nearest_rank(stretches, 50) or 0, "ns"),
            number("longest of it in one gap", nearest_rank(stretches, 100) or 0, "ns"),
            *_range(context),
            *((number("of it, the thread was on no CPU core", off_ns, "ns"),) if off_ns else ()),
            *(number(f"CPU samples in {symbol}", count, "count") for symbol, count in hot.iter_rows()),
        ),
        actions=_actions(context, hot["text"].to_list(), stretches),
        caveat=(
            "Without recorded OS calls, waiting in the operating system looks the same; so does a server without "
            "requests."
        ),
        confidence=_confidence(context, total_ns, off_ns),
        where=context.where("host_compute"),
        gpu=context.one_gpu("host_compute"),
    )


def _stretches(context: Context) -> pl.Series:
    """How long the thread computes in each of these gaps (ns)."""
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns")
    return context.pieces_of("host_compute").group_by("gap").agg(length)["ns"].sort()


def _range(context: Context) -> tuple[Evidence, ...]:
    """The NVTX range that the host was in as the longest such gap began, of those gaps that are listed."""
    gaps = [
        (entry.ns, -gap.start_ns, gap.nvtx)
        for gpu in context.gpus
        for gap in gpu.gaps.longest
        for entry in gap.causes
        if entry.cause == "host_compute" and isinstance(gap.nvtx, str)
    ]
    return (number("NVTX range around the longest", max(gaps)[2] or "", "text"),) if gaps else ()


def _confidence(context: Context, total_ns: int, off_ns: int | None) -> Level:
    """High where it is recorded that the thread was in no OS call; low where it was mostly on no core."""
    if off_ns is not None and off_ns * 2 > total_ns:
        return "low"
    return "high" if context.has("osrt") or context.has("samples") or off_ns is not None else "medium"


def _actions(context: Context, hot: list[str], stretches: pl.Series) -> tuple[str, ...]:
    sampling = record_line("--sample=process-tree", "--cpuctxsw=process-tree", "--python-sampling=true")
    found = [
        f"Start with {', '.join(hot)}: CPU samples found the launching thread there."
        if hot
        else f"See what it does: {sampling}"
    ]
    if stretches.len() >= _MANY and (nearest_rank(stretches, 50) or 0) < _SHORT_NS:
        found.append(
            "Most of these stretches are short, as between operators of an interpreted program: "
            + context.wording(
                pytorch="torch.compile or a CUDA graph takes the interpreter out of the step.",
                jax="bring the operations of a step under one jax.jit.",
                cuda="launch a step as one CUDA graph, and prepare arguments before the loop.",
            )
        )
    return (
        *found,
        context.wording(
            pytorch=(
                "Move work that the next launch does not need (logging, metrics, post-processing, checkpoint "
                "preparation) to another thread or process, and Python loops over parameters into foreach "
                "operations."
            ),
            jax=(
                "Move Python work out of the step (logging, metrics, data handling), and dispatch the next step "
                "before using the results of this one."
            ),
            cuda="Move CPU work that the next launch does not need to another thread, or to the GPU.",
        ),
        "Launch the next step before working on the results of this one, so that the GPU has work meanwhile.",
        "Put NVTX ranges around the parts of the step, so that the next recording says which part it is.",
    )


RULE = Rule(
    id="host-compute",
    title="The launching thread is busy elsewhere",
    check=check,
    page=page_of(__doc__),
    needs=("api",),
    thresholds={"share": CAUSE_THRESHOLD},
)
