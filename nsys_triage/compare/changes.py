"""One number on both sides: what changed of it, and whether that is more than noise."""

from collections.abc import Sequence
from typing import Final

from nsys_triage.compare.noise import Interval, Sample, between, interval, mean
from nsys_triage.compare.numbers import IDLE, Numbers
from nsys_triage.result.compare_model import CauseChange, Outcome, TimeChange
from nsys_triage.result.model import CAUSES

LEVEL: Final = 0.95
CAUSE_LEVEL: Final = 0.99
"""Of the intervals of causes, of which there are up to 17 at once."""
LEAST_CHANGE: Final = 0.01
"""Of the step time. What is less is not worth a look, whatever the noise."""
RESOLVED: Final = 0.05
"""Of the step time: an interval that reaches further from 0 leaves open what changed."""


def outcome_of(change: float, reference: float, noise: Interval | None) -> Outcome:
    """Lower or higher where the interval leaves 0 out and the change is at least LEAST_CHANGE of the reference.

    Otherwise no change, or inconclusive where the interval reaches beyond RESOLVED of the reference, or nothing is
    known of the noise and the change is not small.
    """
    least = LEAST_CHANGE * reference
    if noise is None:
        return "no_change" if abs(change) < least else "inconclusive"
    if abs(change) >= least and (noise.low > 0 or noise.high < 0):
        return "higher" if change > 0 else "lower"
    return "no_change" if max(-noise.low, noise.high) <= RESOLVED * reference else "inconclusive"


def time_change(before: float, after: float, noise: Interval | None, reference: float) -> TimeChange:
    """The change of a time; `reference` is what its size is judged against."""
    low, high = round(before), round(after)
    return TimeChange(
        before_ns=low,
        after_ns=high,
        change_ns=high - low,
        change_share=round((after - before) / before, 6) if before else None,
        low_ns=None if noise is None else round(noise.low),
        high_ns=None if noise is None else round(noise.high),
        outcome=outcome_of(after - before, reference, noise),
    )


def step_time(before: Sequence[Numbers], after: Sequence[Numbers]) -> TimeChange:
    """The mean duration of a steady step, mean of the runs."""
    return _per_step([[run.step_time for run in side] for side in (before, after)], "step time")


def step_busy(before: Sequence[Numbers], after: Sequence[Numbers]) -> TimeChange:
    """The mean busy time of a steady step, mean of the runs."""
    return _per_step([[run.step_busy for run in side] for side in (before, after)], "step busy")


def _per_step(sides: Sequence[Sequence[Sample]], seed: str) -> TimeChange:
    means = [mean([sample.mean for sample in side]) for side in sides]
    return time_change(means[0], means[1], interval(sides[0], sides[1], LEVEL, seed), means[0])


def causes(
    before: Sequence[Numbers], after: Sequence[Numbers], stepwise: bool, reference: float
) -> list[CauseChange]:
    """Every cause that occurs, in the fixed order; per step where `stepwise`, else per second of the window.

    The total is the window's, the mean of its GPUs; `in_steps` is what lies in the judged steps, of the main process'
    GPUs as the steps are, so that its parts add up to the step time. The total's noise is that of the time in the
    steps, widened by what the two say differently, of which no noise is known.
    """
    found = []
    for cause in CAUSES:
        values = [[_rate(run, run.ledger[cause], stepwise) for run in side] for side in (before, after)]
        if any(mean(side) for side in values):
            total, in_steps = _cause(cause, values, before, after, stepwise, reference)
            found.append(CauseChange(cause=cause, total=total, in_steps=in_steps))
    return found


def idle_time(
    before: Sequence[Numbers], after: Sequence[Numbers], stepwise: bool, reference: float
) -> tuple[TimeChange, TimeChange | None]:
    """All idle causes together, as `causes` has each: of the window, and in the steps."""
    values = [[_rate(run, run.span_ns - run.busy_ns, stepwise) for run in side] for side in (before, after)]
    return _cause(IDLE, values, before, after, stepwise, reference)


def _cause(
    cause: str,
    values: Sequence[Sequence[float]],
    before: Sequence[Numbers],
    after: Sequence[Numbers],
    stepwise: bool,
    reference: float,
) -> tuple[TimeChange, TimeChange | None]:
    """The window's change, and that in the steps where the results have it."""
    means = [mean(side) for side in values]
    samples = [_samples(side, cause) if stepwise else None for side in (before, after)]
    if not samples[0] or not samples[1]:
        return time_change(means[0], means[1], _between(values[0], values[1]), reference), None
    noise = interval(samples[0], samples[1], CAUSE_LEVEL, cause)
    inside = [mean([s.mean for s in side]) for side in samples if side]
    in_steps = time_change(inside[0], inside[1], noise, reference)
    if noise:
        shift = (means[1] - means[0]) - (inside[1] - inside[0])
        noise = Interval(noise.low + min(0, shift), noise.high + max(0, shift))
    return time_change(means[0], means[1], noise, reference), in_steps


def _rate(run: Numbers, ns: float, stepwise: bool) -> float:
    if stepwise:
        return ns / run.steps.count if run.steps else 0.0
    return ns / run.span_ns * 1e9 if run.span_ns else 0.0


def _samples(side: Sequence[Numbers], cause: str) -> list[Sample] | None:
    found = [run.in_steps(cause) for run in side]
    known = [sample for sample in found if sample is not None]
    return known if len(known) == len(found) else None


def _between(before: Sequence[float], after: Sequence[float]) -> Interval | None:
    return between(before, after, CAUSE_LEVEL)


def span_change(before: Sequence[float], after: Sequence[float]) -> TimeChange:
    """The change of a span, of which only repeats show the noise."""
    means = mean(before), mean(after)
    return time_change(means[0], means[1], _between(before, after), means[0])
