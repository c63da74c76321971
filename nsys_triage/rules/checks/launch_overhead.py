"""The GPU is done before the host has launched the next kernel.

What it means

A launch costs the host a few microseconds in the call and more in the framework before it. Where kernels are shorter
than that, the GPU waits for every launch: this is the idle time before launches that came too late although the host
did nothing else. The split below says where that time goes: in the launch calls, in copy calls, in other CUDA calls,
or between the calls (the framework, the interpreter). Launch calls that are slow because the queue is full while the
GPU works are back-pressure and are not counted.

What to do next

1. Record the repeated part once as a CUDA graph and launch that: one launch for many kernels.
2. Fuse small kernels (torch.compile, jit, hand-written), and use fused or foreach optimizers.
3. Give each kernel more to do: a larger batch, several sequences or systems at once.
4. Where copy calls or other CUDA calls take the time, take those out of the loop first: a graph does not mend them.

When it is wrong

The profiler adds one to a few microseconds to every call, so a job that is just at the edge looks worse than it is. A
server that waits for requests launches late as well, and that is not a fault.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.launch_parts import BETWEEN, COPY_CALLS, OTHER_CALLS, beyond_switch_ns, launch_parts
from nsys_triage.result.model import Evidence, Stake
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, NotRun, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context, record_line

_FEW_GAPS: Final = 10
_NOTABLE: Final = 0.2  # share of the launch time from which a kind of call gets advice of its own
_MOSTLY: Final = 0.5
_BASIS: Final = (
    "high: all of it is gone; low: every launch is early, and the GPU idles from one operation to the next"
    " as long as it does where work is queued; what may be chance is left out"
)


def check(context: Context) -> Outcome:
    """Fires where idle time because of late launches reaches the threshold."""
    if not (context.has("kernels") or context.m.trace.graphs.height):
        return NotRun("kernels", "--trace=cuda")
    share, launches = context.share("launch"), context.m.launches
    total_ns = context.total_ns("launch")
    if not total_ns or share < context.thresholds["share"]:
        return Passed(f"The GPU waits for late launches {units.share(share)} of the time.")
    parts = launch_parts(context.m.workload, context.m.gaps, context.m.pieces)
    gaps = context.gap_count("launch")
    return Found(
        title=_title(share, _most(parts, COPY_CALLS, total_ns, _MOSTLY)),
        stake=_stake(context, total_ns),
        causes=("launch",),
        evidence=(
            number("idle because the next launch came late", context.mean_ns(total_ns), "ns"),
            number("gaps in which it did", gaps, "count"),
            *_split(context, parts),
            number("kernel and graph launches", launches.host_calls, "count"),
            number("kernels under 10 us", context.m.kernels.small_share or 0.0, "share"),
            number("median kernel", context.m.kernels.p50_ns or 0, "ns"),
        ),
        actions=_actions(context, parts, total_ns),
        caveat=(
            "The profiler adds a few microseconds to each call; a program that waits for requests launches late, "
            "too."
        ),
        confidence="high" if gaps >= _FEW_GAPS else "low",
        where=context.where("launch"),
        gpu=context.one_gpu("launch"),
    )


def _title(share: float, copying: str | None) -> str:
    if copying:
        return f"The GPU waits {units.share(share)} of its time for late launches, mostly with the host in {copying}"
    return f"The host launches too slowly: the GPU waits {units.share(share)} of its time for the next launch"


def _stake(context: Context, total_ns: int) -> Stake:
    """Sums over the GPUs; the low end also leaves out what may have happened by chance."""
    usual = context.cause_stake("launch").low_ns * len(context.gpus)
    return context.stake(total_ns, _BASIS, min(usual, beyond_switch_ns(context.m.pieces)))


def _split(context: Context, parts: pl.DataFrame) -> tuple[Evidence, ...]:
    """The parts of that time, the largest first; those under a hundredth of it are left out."""
    by_part = parts.group_by("part").agg(pl.col("ns").sum()).sort(["ns", "part"], descending=[True, False])
    shown = by_part.filter(pl.col("ns") * 100 >= by_part["ns"].sum())
    return tuple(number(f"of it, {part}", context.mean_ns(ns), "ns") for part, ns in shown.iter_rows())


def _most(parts: pl.DataFrame, part: str, total_ns: int, least: float) -> str | None:
    """The call that takes most of that part, where the part is at least that share of the time."""
    rows = (
        parts.filter(pl.col("part") == part)
        .group_by("api")
        .agg(pl.col("ns").sum())
        .sort(["ns", "api"], descending=[True, False])
    )
    return str(rows["api"][0]) if rows.height and rows["ns"].sum() >= least * total_ns else None


def _actions(context: Context, parts: pl.DataFrame, total_ns: int) -> tuple[str, ...]:
    found = []
    copying, other = (_most(parts, part, total_ns, _NOTABLE) for part in (COPY_CALLS, OTHER_CALLS))
    if copying and "Memset" in copying:
        found.append(
            f"Call {copying} less often: clear memory in the kernel that writes it, or all of it in one call."
        )
    elif copying:
        found.append(
            f"Take {copying} out of the loop first: put many small copies into one, copy from pinned memory, and copy"
            " the next input while the GPU works."
        )
    if other:
        found.append(f"Call {other} before the loop instead of in it: it takes a notable part of this time.")
    found += [
        context.wording(
            pytorch=(
                "Compile the model with torch.compile(mode='reduce-overhead'), or capture the step with "
                "torch.cuda.graph."
            ),
            jax=(
                "Put the whole step under one jax.jit (with lax.scan over steps), so that one launch runs many "
                "kernels."
            ),
            cuda="Capture the repeated launches into a CUDA graph (cudaStreamBeginCapture, cudaGraphLaunch).",
        ),
        context.wording(
            pytorch="Use fused or foreach optimizers (fused=True), and fuse chains of elementwise operations.",
            jax="Keep Python out of the step: no per-parameter loops outside of jit.",
            cuda="Fuse small kernels, and batch independent problems into one launch.",
        ),
        "Give each launch more work: a larger batch or several problems at once; then record again and compare.",
    ]
    if parts.filter(pl.col("part") == BETWEEN)["ns"].sum() >= _NOTABLE * total_ns and not context.has(
        "samples"
    ):
        found.append(
            "To see what the host does between the calls: "
            + record_line("--sample=process-tree", "--python-sampling=true")
        )
    return tuple(found)


RULE = Rule(
    id="launch-overhead",
    title="Launches that come too late",
    check=check,
    page=page_of(__doc__),
    needs=("api",),
    thresholds={"share": CAUSE_THRESHOLD},
)
