"""The outcomes of a rule on every rank as one outcome for the job."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from nsys_triage import units
from nsys_triage.result.model import Stake
from nsys_triage.rules.base import CAUSE_SHARE, Found, NotRun, Outcome, Passed
from nsys_triage.rules.run import Failed

MOST_RANKS: Final = 0.5


@dataclass(frozen=True, slots=True)
class RankOutcome:
    """How a rule ended on one trace of the job."""

    rank: int
    gpus: int
    span_ns: int  # of its GPUs together
    gpu: str | None  # its GPU's identifier in the job, where it has one
    outcome: Outcome | Failed


def _joined_stake(outcomes: Sequence[RankOutcome]) -> Stake:
    """The mean per GPU of the job; ranks on which the rule did not fire have nothing at stake."""
    gpus, span = sum(o.gpus for o in outcomes), sum(o.span_ns for o in outcomes)
    found = [(o.gpus, o.outcome.stake) for o in outcomes if isinstance(o.outcome, Found)]
    low, high = (
        sum(n * ns for n, ns in pairs) // max(1, gpus)
        for pairs in ([(n, s.low_ns) for n, s in found], [(n, s.high_ns) for n, s in found])
    )
    mean = span / max(1, gpus)
    return Stake(
        low_ns=low,
        high_ns=high,
        share=round(min(1.0, (low + high) / 2 / mean), 6) if mean else 0.0,
        basis=f"mean of the ranks; {found[0][1].basis}",
    )


def join_outcomes(outcomes: Sequence[RankOutcome]) -> Outcome | Failed:
    """One outcome for the job. `outcomes` are not empty.

    A finding on some ranks is one of the job where most have it or where the job's GPUs lose 5 % to it; its text and
    numbers are those of the rank that loses most, and the title says which and how many.
    """
    found = [o for o in outcomes if isinstance(o.outcome, Found)]
    if found:
        return _joined_finding(outcomes, found)
    failed = [o.outcome for o in outcomes if isinstance(o.outcome, Failed)]
    if failed:
        return failed[0]
    passed = [o.outcome for o in outcomes if isinstance(o.outcome, Passed)]
    if passed:
        note = passed[0].note
        return (
            Passed(f"{note} (rank {outcomes[0].rank}; passed on {len(passed)} of {len(outcomes)} ranks)")
            if len(outcomes) > 1
            else passed[0]
        )
    missing = [o.outcome for o in outcomes if isinstance(o.outcome, NotRun)]
    return missing[0]


def _joined_finding(outcomes: Sequence[RankOutcome], found: Sequence[RankOutcome]) -> Outcome:
    stake = _joined_stake(outcomes)
    worst, worst_found = max(
        ((o, o.outcome) for o in found if isinstance(o.outcome, Found)),
        key=lambda pair: (pair[1].stake.high_ns, -pair[0].rank),
    )
    mean = sum(o.span_ns for o in outcomes) / max(1, sum(o.gpus for o in outcomes))
    where = f"rank {worst.rank}; on {len(found)} of {len(outcomes)} ranks"
    if len(found) <= MOST_RANKS * len(outcomes) and stake.high_ns < CAUSE_SHARE * mean:
        return Passed(
            f"{worst_found.title} ({where}), which is {units.share(stake.high_ns / mean if mean else 0)}"
            " of the job's GPU time."
        )
    return replace(
        worst_found,
        title=f"{worst_found.title} ({where})",
        stake=stake,
        gpu=worst.gpu if len(found) == 1 else None,
    )
