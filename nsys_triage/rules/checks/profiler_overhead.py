"""The recording itself slows the job down.

What it means

The profiler takes time on the thread that launches work: when it flushes its buffers, when it instruments a call, and
a little for every call and range that it records. Where the host is late anyway, that time is idle time of the GPU that
the job does not have without the profiler.

What to do next

1. Record less: only the event types that you need, a short stretch, no annotation of every operator.
2. Flush at a harmless time: nsys profile --cuda-flush-interval, or one flush at the end.
3. Compare with the step time without the profiler before you trust idle time.

When it is wrong

A job whose host is late without the profiler as well looks the same; only a run without it can tell the two apart.
"""

from typing import Final

from nsys_triage import units
from nsys_triage.metrics.recording_density import Density, recording_density
from nsys_triage.result.model import Cause, Evidence
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context

_LATE: Final[tuple[Cause, ...]] = ("launch", "host_compute")  # idle time in which a slowed host shows
RANGE_COST_NS: Final = 3_000
"""What one NVTX range costs its thread where every operator is annotated, shapes included: three public traces whose
authors also timed the step without the profiler show 2.4, 3.1 and 4.7 us."""


def check(context: Context) -> Outcome:
    """Fires where the profiler's own time, or what dense annotation may cost, reaches the threshold."""
    m = context.m
    own = context.total_ns("profiler")
    density = recording_density(m.trace, m.workload, m.window)
    if context.share("profiler") >= context.thresholds["share"]:
        return _flushes(context, own, density)
    late = context.total_ns(*_LATE)
    dense = density.ranges_per_launch >= context.thresholds["ranges_per_launch"]
    cost = min(late, density.ranges * RANGE_COST_NS) if dense else 0
    if cost / context.span_ns < context.thresholds["share"]:
        return Passed(
            f"The profiler's own work takes {units.share(context.share('profiler'))} of the time;"
            f" {units.count(round(density.api_per_s))} CUDA calls and"
            f" {units.count(round(density.ranges_per_s))} NVTX ranges per second were recorded on launching threads."
        )
    return Found(
        title=f"Up to {units.share(cost / context.span_ns)} of the time may be the cost of"
        f" {units.count(density.ranges)} NVTX ranges, {units.ratio(density.ranges_per_launch)} for each launch",
        stake=context.stake(
            cost,
            f"high: each range costs the host {units.time(RANGE_COST_NS)} and the GPU waits for it; low: ranges"
            " cost nothing",
            0,
        ),
        causes=_LATE,
        evidence=(
            number("idle time because the host was late", context.mean_ns(late), "ns"),
            number("NVTX ranges on launching threads", density.ranges, "count"),
            *_density(density),
        ),
        actions=_actions(context),
        caveat="A host that is late without the profiler, too, looks the same.",
        confidence="low",
        where=context.where(*_LATE),
    )


def _actions(context: Context) -> tuple[str, ...]:
    return (
        context.wording(
            pytorch="Record without torch.autograd.profiler.emit_nvtx (above all record_shapes=True) and keep a few"
            " ranges around the parts of a step.",
            jax="Record without annotation of every operation and keep a few ranges around the parts of a step.",
            cuda="Keep a few ranges around the parts of a step instead of one in every function.",
        ),
        "Compare with the step time without the profiler before you work on idle time.",
        "Record a short stretch only: nsys profile --capture-range=cudaProfilerApi --trace=cuda,nvtx --output=job"
        " <your command>",
    )


def _flushes(context: Context, own_ns: int, density: Density) -> Found:
    return Found(
        title=f"The profiler's own work costs {units.share(context.share('profiler'))} of the time",
        stake=context.cause_stake("profiler"),
        causes=("profiler",),
        evidence=(
            number(
                "idle time while the profiler worked on the launching thread", context.mean_ns(own_ns), "ns"
            ),
            number("gaps with such time", context.gap_count("profiler"), "count"),
            *_density(density),
        ),
        actions=(
            "Read all other figures as those of a slowed job: without the profiler this time is not lost.",
            "Record less at once: leave out --cudabacktrace, --sample, --cpuctxsw and osrt where they are not needed:"
            " nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --output=job <your command>",
            "Let buffers be flushed at harmless times: --cuda-flush-interval=0 flushes at the end only; record a short"
            " stretch with --capture-range=cudaProfilerApi.",
        ),
        caveat="Time of the profiler on other threads is not counted, nor the small cost of each recorded call.",
        where=context.where("profiler"),
        gpu=context.one_gpu("profiler"),
    )


def _density(density: Density) -> tuple[Evidence, ...]:
    return (
        number("CUDA calls recorded per second on launching threads", density.api_per_s, "count"),
        number("NVTX ranges recorded per second on launching threads", density.ranges_per_s, "count"),
        number("NVTX ranges for each launch", units.ratio(density.ranges_per_launch), "text"),
    )


RULE = Rule(
    id="profiler-overhead",
    title="Overhead of the recording",
    check=check,
    page=page_of(__doc__),
    thresholds={
        "share": CAUSE_THRESHOLD,
        "ranges_per_launch": Threshold(
            2, "count", "NVTX ranges for each launch: annotation of every operator gives 4 to 8"
        ),
    },
)
