"""Findings of both sides by rule: fixed, new, remaining; and whether what they had at stake was freed."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from nsys_triage import units
from nsys_triage.compare.numbers import Numbers
from nsys_triage.result.compare_model import CauseChange, FindingChange, FindingSize, Prediction, TimeChange
from nsys_triage.result.model import Finding

NEAR_THRESHOLD: Final = 0.08
"""Of the GPU time: most rules begin at 5 %, and a stake close above it comes and goes by chance."""
BARELY_CHANGED: Final = 0.2


def compare_findings(
    before: Numbers,
    after: Numbers,
    causes: Sequence[CauseChange],
    step: TimeChange | None,
    stepwise: bool,
    comparable: bool,
) -> list[FindingChange]:
    """Rules with a finding on either side; those fixed first, then new ones, then the others, by stake, then rule.

    Where the sides are not `comparable` a finding on one side alone is neither fixed nor new.
    """
    changes = {str(c.cause): c.total for c in causes}
    sides = [_by_rule(run.result.findings) for run in (before, after)]
    found = []
    for rule in sides[0].keys() | sides[1].keys():
        old, new = sides[0].get(rule), sides[1].get(rule)
        state = _state(rule, old, new, changes, before, after)
        if not comparable and state != "remaining":
            state = "not_compared"
        prediction = None
        if state == "fixed" and old is not None:
            prediction = _prediction(old, changes, step, _units(before, stepwise))
        found.append(
            FindingChange(
                rule=rule,
                state=state,
                before=_size(old, _units(before, stepwise)),
                after=_size(new, _units(after, stepwise)),
                prediction=prediction,
            )
        )
    states = ("fixed", "new", "remaining", "at_threshold", "not_checked", "not_compared")
    return sorted(found, key=lambda f: (states.index(f.state), -_largest(f), f.rule))


def _largest(change: FindingChange) -> int:
    return max(side.high_ns for side in (change.before, change.after) if side)


def _by_rule(findings: Sequence[Finding]) -> dict[str, Finding]:
    """The finding of each rule with the largest stake."""
    found: dict[str, Finding] = {}
    for finding in findings:
        known = found.get(finding.rule)
        if known is None or finding.stake.high_ns > known.stake.high_ns:
            found[finding.rule] = finding
    return found


def _units(run: Numbers, stepwise: bool) -> float:
    if stepwise and run.steps:
        return float(run.steps.count)
    return max(1e-9, run.span_ns / 1e9)


def _size(finding: Finding | None, per: float) -> FindingSize | None:
    if finding is None:
        return None
    stake = finding.stake
    return FindingSize(
        title=finding.title,
        low_ns=round(stake.low_ns / per),
        high_ns=round(stake.high_ns / per),
        share=stake.share,
    )


State = Literal["fixed", "new", "remaining", "at_threshold", "not_checked", "not_compared"]


def _state(
    rule: str,
    old: Finding | None,
    new: Finding | None,
    changes: Mapping[str, TimeChange],
    before: Numbers,
    after: Numbers,
) -> State:
    if old is not None and new is not None:
        return "remaining"
    there, run = (old, after) if old is not None else (new, before)
    checked = {check.rule: check.status for check in run.result.checks}.get(rule)
    if checked not in ("passed", "finding"):
        return "not_checked"
    if there is not None and there.stake.share < NEAR_THRESHOLD and there.causes:
        own = [changes[cause] for cause in there.causes if cause in changes]
        if own and all(_barely(change) for change in own):
            return "at_threshold"
    return "fixed" if old is not None else "new"


def _barely(change: TimeChange) -> bool:
    if change.outcome in ("no_change", "inconclusive"):
        return abs(change.change_share or 0) < BARELY_CHANGED
    return False


def _prediction(
    finding: Finding, changes: Mapping[str, TimeChange], step: TimeChange | None, per: float
) -> Prediction:
    """What the stake said per basis, and what became of the time of its causes and of the step."""
    own = [changes[cause] for cause in finding.causes if cause in changes]
    low, high = round(finding.stake.low_ns / per), round(finding.stake.high_ns / per)
    freed = -sum(change.change_ns for change in own)
    gained = None if step is None else -step.change_ns
    clear = any(change.outcome in ("lower", "higher") for change in own)
    outcome: Literal["came_true", "less", "moved", "inconclusive"]
    if not own or not clear:
        outcome = "inconclusive"
    elif freed < low or freed <= 0:
        outcome = "less"
    elif gained is not None and gained < 0.5 * freed:
        outcome = "moved"
    else:
        outcome = "came_true"
    said = f"{units.times(low, high)} at stake"
    sentences = {
        "came_true": f"{said}, {units.time(max(0, freed))} freed: as predicted.",
        "less": f"{said}, {units.time(max(0, freed))} freed: less than predicted.",
        "moved": f"{said}, {units.time(max(0, freed))} freed, but the step is only {units.time(max(0, gained or 0))}"
        " shorter: something else takes the time now.",
        "inconclusive": f"{said}; what became of it is inside the noise.",
    }
    return Prediction(
        low_ns=low, high_ns=high, freed_ns=freed, step_change_ns=None if gained is None else -gained,
        outcome=outcome, sentence=sentences[outcome],
    )  # fmt: skip
