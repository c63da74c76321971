"""Large copies between host and GPU are slower than the GPU's link allows.

What it means

Copies of at least 1 MiB from or to pinned memory reach much less than what the link of this GPU model gives in
practice. The slot may have fewer lanes or an older generation, the GPU and the memory may be on different sockets,
several GPUs may share one switch, or something else loads the host's memory.

What to do next

1. Look at the link under load: nvidia-smi -q -d PCIE (or nvidia-smi --query-gpu=pcie.link.gen.current,
   pcie.link.width.current --format=csv) while copies run.
2. Bind the process to the socket of the GPU: nvidia-smi topo -m shows it, numactl --cpunodebind --membind sets it.
3. Measure the link alone with nvbandwidth and compare.
4. If the link is what the machine has: copy fewer bytes.

When it is wrong

The expectation comes from the name of the GPU model, not from the machine. A slot with fewer lanes may be intended,
and virtual machines and shared switches give less.
"""

from typing import NamedTuple

from nsys_triage import units
from nsys_triage.metrics import copy_costs as cc
from nsys_triage.result.model import Interval
from nsys_triage.rules.base import (
    CAUSE_THRESHOLD,
    Found,
    NotRun,
    Outcome,
    Passed,
    Rule,
    Threshold,
    number,
    page_of,
)
from nsys_triage.rules.context import Context


class _Direction(NamedTuple):
    """Large copies of pinned memory in one direction."""

    name: str
    exposed_ns: int
    rate: float
    copies: int
    place: tuple[int, int] | None


def check(context: Context) -> Outcome:
    """Fires where large pinned copies matter for the time and reach too little of the link's practical rate."""
    m = context.m
    copies = cc.all_copies(m.trace, m.workload)
    found = []
    for kind, name in cc.DIRECTIONS.items():
        large = cc.large_pinned(copies, kind)
        inside = m.window.rows(large)
        rate = cc.rate_of(inside)
        if rate is not None:
            exposed = cc.exposed_ns(m.pieces, large)
            found.append(_Direction(name, exposed, rate, inside.height, cc.longest_exposed(m.pieces, large)))
    if not found:
        return NotRun("copies of at least 1 MiB from or to pinned memory: the window has none")
    matter = [d for d in found if d.exposed_ns / context.span_ns >= context.thresholds["share"]]
    rates = " and ".join(f"{units.rate(d.rate)} {d.name}" for d in found)
    if not matter:
        share = max(d.exposed_ns for d in found) / context.span_ns
        return Passed(
            f"Large pinned copies reach {rates} and take {units.share(share)} of the time unhidden."
        )
    link, link_name = m.copies.link_bytes_per_s, m.copies.link_name
    if link is None or link_name is None:
        return NotRun(f"the GPU's model and with it its link to the host (large pinned copies reach {rates})")
    practical = cc.practical_rate(link_name, link)
    slow = [d for d in matter if d.rate / practical <= context.thresholds["rate"]]
    if not slow:
        return Passed(
            f"Large pinned copies reach {rates}; {link_name} gives about {units.rate(practical)} in practice."
        )
    return _found(
        context, max(slow, key=lambda d: d.exposed_ns * (1 - d.rate / practical)), link_name, practical
    )


def _found(context: Context, worst: _Direction, link: str, practical: float) -> Found:
    saved = worst.exposed_ns * (1 - worst.rate / practical)
    return Found(
        title=f"Large copies {worst.name} reach {units.rate(worst.rate)}, where {link} gives about"
        f" {units.rate(practical)}",
        stake=context.stake(
            saved,
            f"high: the exposed copies run at what {link} gives in practice; low: nothing, where the slot of this"
            " machine cannot give more",
            0,
        ),
        causes=("copy",),
        evidence=(
            number(f"rate of large pinned copies {worst.name}", worst.rate, "bytes_per_s"),
            number(f"what {link} gives large copies in practice", practical, "bytes_per_s"),
            number("copies of at least 1 MiB", worst.copies, "count"),
            number("their exposed time", context.mean_ns(worst.exposed_ns), "ns"),
        ),
        actions=(
            "Look at the link while copies run: nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current"
            " --format=csv",
            "Bind the process and its memory to the GPU's socket: nvidia-smi topo -m shows it,"
            " numactl --cpunodebind=N --membind=N sets it.",
            "Measure the link alone (nvbandwidth) and compare; several GPUs behind one switch share its link.",
            "Record the link's traffic beside the job: nsys profile --gpu-metrics-devices=all"
            " --trace=cuda,nvtx,osrt --output=job <your command>",
        ),
        caveat="The expectation comes from the GPU's model name; a slot with fewer lanes may be intended.",
        confidence="medium",
        where=Interval(*worst.place) if worst.place else None,
        gpu=context.one_gpu("copy"),
    )


RULE = Rule(
    id="slow-link",
    title="Copies slower than the link",
    check=check,
    page=page_of(__doc__),
    needs=("memcpys",),
    thresholds={
        "share": CAUSE_THRESHOLD,
        "rate": Threshold(
            0.6,
            "share",
            "of the link's practical rate, at most: half the lanes or the generation before give half",
        ),
    },
)
