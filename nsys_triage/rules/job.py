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
    """How a rule ended on one trace of the job, which may hold several ranks."""

    ranks: tuple[int, ...]  # ascending
    gpus: int
    span_ns: int  # of its GPUs together
    gpu: str | None  # the identifier in the job of the GPU that it is about, None where it is about several
    outcome: Outcome | Failed


def ranks_of(ranks: Sequence[int]) -> str:
    """Which ranks those are: "rank 3", "ranks 0 to 3", "ranks 0, 2, 5"; `ranks` ascend."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 2 and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"ranks {ranks[0]} to {ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks))}"


def _how_many(some: int, outcomes: Sequence[RankOutcome]) -> str:
    """On how many of the traces; of the ranks, where every trace is one rank's."""
    what = "ranks" if all(len(o.ranks) == 1 for o in outcomes) else "traces"
    return f"on {some} of {len(outcomes)} {what}"


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


def join_outcomes(outcomes: Sequence[RankOutcome], least_share: float = CAUSE_SHARE) -> Outcome | Failed:
    """One outcome for the job. `outcomes` are not empty.

    A finding on some ranks is one of the job where most have it or where the job's GPUs lose `least_share` to it; its
    text and numbers are those of the rank that loses most, and the title says which and how many.
    """
    found = [o for o in outcomes if isinstance(o.outcome, Found)]
    if found:
        return _joined_finding(outcomes, found, least_share)
    failed = [o.outcome for o in outcomes if isinstance(o.outcome, Failed)]
    if failed:
        return failed[0]
    passed = [(o.ranks, o.outcome.note) for o in outcomes if isinstance(o.outcome, Passed)]
    if passed:
        ranks, note = passed[0]
        if len(outcomes) == 1:
            return Passed(note)
        return Passed(f"{note.rstrip('.')} ({ranks_of(ranks)}; passed {_how_many(len(passed), outcomes)})")
    missing = [o.outcome for o in outcomes if isinstance(o.outcome, NotRun)]
    return missing[0]


def _joined_finding(
    outcomes: Sequence[RankOutcome], found: Sequence[RankOutcome], least_share: float
) -> Outcome:
    stake = _joined_stake(outcomes)
    worst, worst_found = max(
        ((o, o.outcome) for o in found if isinstance(o.outcome, Found)),
        key=lambda pair: (pair[1].stake.high_ns, -pair[0].ranks[0]),
    )
    mean = sum(o.span_ns for o in outcomes) / max(1, sum(o.gpus for o in outcomes))
    where = f"{ranks_of(worst.ranks)}; {_how_many(len(found), outcomes)}"
    if len(found) <= MOST_RANKS * len(outcomes) and stake.high_ns < least_share * mean:
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
