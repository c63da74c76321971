"""CUDA graphs of which the recording does not show what ran inside.

What it means

Either graphs were launched and the export holds no GPU time of them at all: then time in which the GPU works looks
idle. Or every execution was recorded as a whole: then the time is there, but not the kernels in it, nor idle time
between them.

What to do next

1. Record graphs node by node: nsys profile --cuda-graph-trace=node. It costs more overhead; take a short stretch.
2. If the export came from an older nsys (before 2024.6), export the report again with a newer one.

When it is wrong

A graph that really does nothing for the GPU (host nodes alone) leaves no device work in any recording.
"""

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.api_names import GRAPH_LAUNCH
from nsys_triage.metrics.unexplained import unexplained_time
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, NotRun, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context, record_line


def check(context: Context) -> Outcome:
    """Fires where idle time that graphs without any recorded GPU time leave unexplained reaches the threshold."""
    m = context.m
    launches = m.window.rows(m.workload.calls.filter((pl.col("group") & GRAPH_LAUNCH) > 0))
    graphs = m.window.rows(m.trace.graphs)
    hidden = unexplained_time(m.pieces, m.gaps).graphs_ns
    share = hidden / context.span_ns
    if share < context.thresholds["share"]:
        if graphs.height:
            return NotRun(
                f"what runs inside {units.plural(graphs.height, 'CUDA graph execution')} recorded as a whole"
                f" ({units.share(context.share('graph'))} of the time), and idle time between their nodes",
                "--cuda-graph-trace=node",
            )
        return Passed(
            f"{units.plural(launches.height, 'graph launch', 'graph launches')}; graphs without recorded GPU time leave"
            f" {units.share(share)} of the time unexplained."
        )
    return Found(
        title=f"CUDA graphs hide what the GPU did in {units.share(share)} of the time",
        stake=context.stake(
            hidden,
            "high: all of that time is really idle; low: none of it, since the graphs ran in it and were not recorded",
            0,
        ),
        causes=("unknown",),
        evidence=(
            number("graph launches", launches.height, "count"),
            number("graph executions with recorded GPU time", graphs.height, "count"),
            number("time that looks idle and may not be", context.mean_ns(hidden), "ns"),
        ),
        actions=(
            "Record again node by node: " + record_line("--cuda-graph-trace=node"),
            "Or export the same report with nsys 2024.6 or newer, which keeps the time of whole graphs:"
            " nsys export --type=sqlite REPORT.nsys-rep",
        ),
        caveat="A graph of host nodes alone leaves no device work in any recording.",
        where=context.where("unknown"),
        gpu=context.one_gpu("unknown"),
    )


RULE = Rule(
    id="graphs-opaque",
    title="CUDA graphs that hide what runs",
    check=check,
    page=page_of(__doc__),
    needs=("api",),
    thresholds={"share": CAUSE_THRESHOLD},
)
