"""Copies that hold the host until they are done, so that the GPU has nothing queued afterwards.

What it means

cudaMemcpy without Async, cudaMemset, and cudaMemcpyAsync from or to pageable memory return only when the copy is done
(or staged). Until then the host cannot launch what comes next, so the GPU idles from the end of the copy to the next
launch. Only that idle time counts: a blocking copy behind which the host is soon back costs next to nothing, and tiny
read-backs are looked at on their own.

What to do next

1. Copy with cudaMemcpyAsync from pinned memory on a stream of its own; order it with events, not with waits.
2. Launch what does not depend on the copy before it, so that the GPU has work meanwhile.
3. Replace cudaMemset by cudaMemsetAsync in the stream of the kernels.

When it is wrong

A result that the host must look at before it can go on has to be waited for; then only its place can change.
"""

import polars as pl

from nsys_triage import units
from nsys_triage.metrics import copy_costs as cc
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context


def check(context: Context) -> Outcome:
    """Fires where the idle time because of blocking copies reaches the threshold."""
    m = context.m
    copies = cc.all_copies(m.trace, m.workload)
    tiny = copies.filter("readback")["call"].drop_nulls()
    calls = cc.blocking_calls(m.workload).filter(~pl.col("call").is_in(tiny.implode()))
    inside = m.window.rows(calls)
    waited = cc.wait_cost_ns(m.pieces, calls["call"])
    launching = cc.launch_cost_ns(m.pieces, m.gaps.gaps, calls["call"], inside=True)
    share = (waited + launching) / context.span_ns
    if share < context.thresholds["share"]:
        return Passed(
            f"{units.plural(inside.height, 'blocking copy or memset call', 'blocking copy and memset calls')}"
            f" cost {units.share(share)} of the time in idle GPU."
        )
    held = copies.filter("pageable").join(inside.select("call"), on="call", how="semi").height
    return Found(
        title=f"The GPU idles {units.share(share)} of the time because copies hold the host",
        stake=context.stake(
            waited + launching,
            "high: the idle time after blocking copies and in their calls is gone;"
            " low: half of what follows the waits, since some results are needed at once",
            waited / 2,
        ),
        causes=("host_sync", "launch") if launching else ("host_sync",),
        evidence=(
            number("blocking copy and memset calls, tiny read-backs left out", inside.height, "count"),
            number("idle time because the host was held in them", context.mean_ns(waited), "ns"),
            number("idle time while such a call started its copy", context.mean_ns(launching), "ns"),
            number("time in those calls", int((inside["end_ns"] - inside["start_ns"]).sum()), "ns"),
            number("of them with pageable memory", held, "count"),
            number("call that is made most", _most(context, inside), "text"),
        ),
        actions=_actions(context),
        caveat="A result that the host must look at before it goes on has to be waited for.",
        where=context.where("host_sync"),
        gpu=context.one_gpu("host_sync"),
    )


def _actions(context: Context) -> tuple[str, ...]:
    return (
        context.wording(
            pytorch="Copy with non_blocking=True from and to pinned tensors; .cpu(), .numpy() and .to('cpu') wait.",
            jax="Call jax.device_get and np.asarray one step late, or use copy_to_host_async() first.",
            cuda="Replace cudaMemcpy and cudaMemset in the loop by cudaMemcpyAsync from pinned memory and"
            " cudaMemsetAsync, in the stream of the kernels or on one of its own with events.",
        ),
        "Launch the work that does not depend on the copy before the copy.",
        "If the call is cudaMemcpyAsync, its host side is pageable: pin it first.",
    )


def _most(context: Context, calls: pl.DataFrame) -> str:
    named = calls.join(
        context.m.workload.api.select("code", "api"), left_on="name", right_on="code", how="left"
    )
    counted = named.group_by("api").len().sort(["len", "api"], descending=[True, False])
    return str(counted["api"][0]) if counted.height else "not in the window"


RULE = Rule(
    id="blocking-copies",
    title="Copies that hold the host",
    check=check,
    page=page_of(__doc__),
    needs=("api", "memcpys"),
    thresholds={"share": CAUSE_THRESHOLD},
)
