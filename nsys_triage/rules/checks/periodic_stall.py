"""Every n-th step takes longer, and the GPU does not compute meanwhile.

What it means

Steps are slow at regular intervals: a checkpoint, a log that is written, statistics, a validation. What counts is how
much longer the GPU idles or copies in these steps than in a usual one; a step that is longer because the GPU computes
more is no stall.

What to do next

1. Open one of these steps in the timeline and see what the host does there: writing, copying to the host, waiting.
2. Do it asynchronously: copy to pinned memory, and write from another thread or process.
3. Do it less often.

When it is wrong

With three or four such steps the regularity may be chance. Loader workers that deliver in bursts also make every n-th
step wait; that is the input pipeline and is not reported here.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.stalls import COMPUTING, stall_extra
from nsys_triage.result.model import CAUSES, Cause, Interval, PeriodicStall
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context

_NAMED: Final = 3
_FEW: Final = 4
_BASIS: Final = "high: these steps are like the others; low: half of it, as such work is hidden only in part"
_ADVICE: Final[dict[Cause, str]] = {
    "host_blocked": "Write from another thread or process, and flush outside of the loop.",
    "host_compute": "Prepare what is written or logged on another thread or process.",
    "copy": "Copy to pinned memory on a stream of its own, so that the next step goes on meanwhile.",
    "host_sync": "Collect values on the device, and read them one step later instead of waiting for them.",
    "communication": "Let not all ranks wait for what one rank writes: gather less, or on a stream of its own.",
    "allocation": "Keep the buffers that these steps need from one time to the next.",
    "module_load": "Run this phase once before the loop, so that its kernels are loaded.",
}


def check(context: Context) -> Outcome:
    """Fires where steps that are slow at regular intervals lose enough time outside of computing."""
    m = context.m
    periodic = m.step_block.periodic
    if not isinstance(periodic, PeriodicStall) or not isinstance(m.step_block.slow, list):
        return Passed(
            f"No steps that are slow at regular intervals among {units.plural(m.window_steps.height, 'step')}."
        )
    steps = m.window_steps
    extra = stall_extra(context.step_split, steps["index"], m.step_block.slow, steps["startup"])
    lost = extra.filter(~pl.col("cause").is_in(COMPUTING))
    total_ns = int(lost["ns"].sum()) * len(context.gpus)
    share = total_ns / context.span_ns if context.span_ns else 0.0
    every = f"Every {_ordinal(periodic.every)} step takes {units.time(periodic.extra_ns)} longer"
    named: list[tuple[Cause, int]] = [(CAUSES[code], ns) for code, ns in lost.head(_NAMED).iter_rows()]
    if not total_ns or share < context.thresholds["share"]:
        return Passed(f"{every}; {units.share(share)} of the time is lost to that outside of computing.")
    if named[0][0] == "input_pipeline":
        return Passed(f"{every}, most of it waiting for input: see the input pipeline.")
    slow = steps.filter(pl.col("index").is_in(m.step_block.slow)).sort(
        ["duration_ns", "index"], descending=[True, False]
    )
    return Found(
        title=f"{every}: {units.share(share)} of the time is lost to that",
        stake=context.stake(total_ns, _BASIS),
        causes=tuple(cause for cause, _ in named),
        evidence=(
            number("slow steps", periodic.steps, "count"),
            number("steps from one to the next", periodic.every, "count"),
            number("such a step is longer by", periodic.extra_ns, "ns"),
            *(number(f"more time under {cause.replace('_', ' ')} in them", ns, "ns") for cause, ns in named),
        ),
        actions=(
            *(_ADVICE[cause] for cause, _ in named if cause in _ADVICE),
            context.wording(
                pytorch=(
                    "If it is a checkpoint: torch.distributed.checkpoint.async_save, or copy the state to pinned "
                    "memory and save it from a thread."
                ),
                jax="If it is a checkpoint: orbax AsyncCheckpointer.",
                cuda="If it is output: copy it to pinned memory asynchronously, and write it from a thread of its own.",
            ),
            "Do it less often, where the job allows that.",
        ),
        caveat=(
            "With a handful of such steps the regularity may be chance; a phase that the job needs can be hidden, "
            "not removed."
        ),
        confidence="high" if periodic.steps > _FEW else "medium",
        where=Interval(start_ns=int(slow["start_ns"][0]), end_ns=int(slow["end_ns"][0])),
    )


def _ordinal(number: int) -> str:
    """2nd, 3rd, 10th, 21st."""
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


RULE = Rule(
    id="periodic-stall",
    title="Every n-th step is slow",
    check=check,
    page=page_of(__doc__),
    needs=("steps",),
    thresholds={"share": CAUSE_THRESHOLD},
)
