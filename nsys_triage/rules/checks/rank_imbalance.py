"""Ranks wait for each other: one of them arrives late, or the work is uneven.

What it means

A collective ends when the last rank has come, so what the others spend in it is mostly waiting. The same collective is
matched over the ranks: the shortest time among them is taken for its transfer, the rest of every rank is waiting. The
rank that has the shortest time most often arrives last: the straggler.

What to do next

1. Look at what the straggler does before it arrives: its own report, at the same step.
2. If it computes longer: even out the work (sequence lengths, experts, pipeline stages).
3. If its host is late or it waits for data: give it the cores, the storage and the loader workers of the others.
4. If one GPU is slower: look at its clocks and temperature (nvidia-smi -q -d CLOCK,PERFORMANCE).

When it is wrong

Where ranks take turns being late, no single rank is to blame: the work varies. And some waiting is meant, as in a
pipeline whose stages wait for each other.
"""

from dataclasses import dataclass
from typing import Final

from nsys_triage import units
from nsys_triage.metrics.ranks import clear_straggler
from nsys_triage.metrics.straggler import SLOWER_KERNELS
from nsys_triage.result.model import Cause, Evidence, Ranks, Stake
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
from nsys_triage.rules.context import NEEDS, Context


@dataclass(frozen=True, slots=True)
class _Late:
    """What is said of a late rank: how it differs from the others, and what to do first."""

    why: str
    action: str


_HOST: Final = "give it the cores, memory and clocks of the others, bind it to the NUMA node of its GPU"
_LATE: Final[dict[str, _Late]] = {
    SLOWER_KERNELS: _Late(
        "on a slower GPU",
        "Look at the GPU of rank {rank} while the job runs: nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE. It"
        " takes longer for the same kernels: throttled, capped, or shared with another job.",
    ),
    "compute": _Late(
        "with more to compute",
        "Even out the work: rank {rank} computes more per step than the others (longer sequences, a larger shard, a"
        " task that only it has).",
    ),
    "input_pipeline": _Late(
        "after waiting for its input",
        "Give rank {rank} as many loader workers, cores and as fast storage as the others, and equal shards of data.",
    ),
    "host_compute": _Late(
        "from a busy host",
        f"See what the host of rank {{rank}} computes (logging, metrics, checks that only it does); {_HOST}.",
    ),
    "launch": _Late(
        "from a slow host",
        f"See why the host of rank {{rank}} launches more slowly; {_HOST}.",
    ),
    "host_blocked": _Late(
        "from a blocked host",
        "See what blocks the host of rank {rank} (writing logs or checkpoints, locks), and do it in the background or"
        " on no rank.",
    ),
    "host_sync": _Late(
        "after waiting for its own GPU",
        "Take the calls that wait for the GPU out of the step of rank {rank}, such as the loss that only it prints.",
    ),
}
"""By cause of the ledger; other causes have no advice of their own."""


_SHARED: Final[tuple[Cause, ...]] = ("communication", "host_communication")


def check(context: Context) -> Outcome:
    """Fires where waiting for other ranks, as mean per GPU, reaches the threshold."""
    ranks = context.ranks
    if ranks is None:
        return NotRun(*NEEDS["several_ranks"])
    rows = [row for row in ranks.per_rank if row.wait_ns is not None]
    total = sum(row.communication_ns for row in rows)
    if not ranks.matched_collectives or not rows or not total:
        return NotRun("collectives that several ranks have in common: none could be matched")
    waited = sum(row.wait_ns or 0 for row in rows)
    share = min(1.0, _exposed_wait(ranks) / _span(context, ranks))
    if share < context.thresholds["share"]:
        return Passed(
            f"{units.share(waited / total)} of the communication is waiting for other ranks,"
            f" {units.share(share)} of the time."
        )
    late = clear_straggler(ranks, context.thresholds["votes"]) is not None
    who = f"rank {ranks.straggler} arrives last{_why(ranks)}" if late else "no rank is late alone"
    return Found(
        title=f"Ranks wait for each other {units.share(share)} of the time: {who}",
        stake=_stake(context, share),
        causes=tuple(cause for cause in _SHARED if context.total_ns(cause)) or _SHARED[:1],
        evidence=_evidence(ranks, waited / total),
        actions=_actions(ranks, late=late),
        caveat="Waiting is estimated from durations alone: the shortest time of a collective is taken for its"
        " transfer.",
        confidence="high" if late else "medium",
    )


def _why(ranks: Ranks) -> str:
    cause = ranks.straggler_cause
    return f", {_LATE[cause].why}" if isinstance(cause, str) and cause in _LATE else ""


def _span(context: Context, ranks: Ranks) -> float:
    """The mean span of the ranks' GPUs (ns)."""
    spans = [row.span_ns for row in ranks.per_rank if isinstance(row.span_ns, int) and row.span_ns > 0]
    return sum(spans) / len(spans) if spans else context.span_ns / max(1, len(context.gpus))


def _exposed_wait(ranks: Ranks) -> float:
    """Waiting as mean per rank (ns): of each rank no more than what is exposed, where that is known."""
    waits = [
        min(row.wait_ns or 0, row.exposed_ns) if isinstance(row.exposed_ns, int) else row.wait_ns or 0
        for row in ranks.per_rank
    ]
    return sum(waits) / max(1, len(waits))


def _stake(context: Context, share: float) -> Stake:
    """That share of the GPUs' time: a rank's own span is the sum of its GPUs, so its waiting is no time of one GPU."""
    return context.stake(
        share * context.span_ns,
        "high: with even work no rank waits unhidden; low: half of it, since some unevenness stays",
    )


def _evidence(ranks: Ranks, wait_share: float) -> tuple[Evidence, ...]:
    found = [
        number("share of communication that is waiting", wait_share, "share"),
        number("waiting that nothing hides, mean per rank", round(_exposed_wait(ranks)), "ns"),
        number("collectives matched", ranks.matched_collectives, "count"),
        number("ranks", ranks.count, "count"),
    ]
    if ranks.straggler is not None:
        found.append(number("rank that arrives last most often", str(ranks.straggler), "text"))
        if ranks.straggler_votes_share is not None:
            found.append(number("in this share of the collectives", ranks.straggler_votes_share, "share"))
    if isinstance(ranks.straggler_reason, str) and ranks.straggler_reason:
        found.append(number("why it is late", ranks.straggler_reason, "text"))
    if ranks.missing:
        found.append(number("ranks without a trace", len(ranks.missing), "count"))
    return tuple(found)


def _actions(ranks: Ranks, *, late: bool) -> tuple[str, ...]:
    if not late:
        return (
            "Even out what varies from step to step: sort or pack sequences by length, balance experts, equal shards.",
            "Give the host of every rank the same cores and storage; check for jobs beside it.",
        )
    cause = ranks.straggler_cause if isinstance(ranks.straggler_cause, str) else ""
    known = [_LATE[cause].action.format(rank=ranks.straggler)] if cause in _LATE else []
    return (
        *known,
        _look_at(ranks),
        *(
            ()
            if known
            else (
                "If it computes longer, even out the work; if its host is late, give it the cores, storage and loader"
                " workers of the others.",
                "If its kernels are slower than the same ones elsewhere, look at the GPU: nvidia-smi -q -d"
                " CLOCK,PERFORMANCE.",
            )
        ),
    )


def _look_at(ranks: Ranks) -> str:
    """Where the late rank is to be seen by itself: in a file of its own, or among its GPUs in this report."""
    files = [row.file for row in ranks.per_rank if isinstance(row.file, str)]
    own = next((row.file for row in ranks.per_rank if row.rank == ranks.straggler), None)
    what = "what it does before it arrives is what the others wait for."
    if isinstance(own, str) and files.count(own) == 1:
        return f"Look at rank {ranks.straggler} alone (nsys-triage report {own}): {what}"
    return f"Look at rank {ranks.straggler} in the timeline and in its GPU's ledger: {what}"


RULE = Rule(
    id="rank-imbalance",
    title="Ranks that wait for each other",
    check=check,
    page=page_of(__doc__),
    needs=("several_ranks",),
    thresholds={
        "share": CAUSE_THRESHOLD,
        "votes": Threshold(
            0.5, "share", "of the collectives, in which one rank arrives last, to call it the straggler"
        ),
    },
    job=True,
)
