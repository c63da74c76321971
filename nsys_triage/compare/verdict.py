"""What changed, in one sentence, and what else matters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nsys_triage import units
from nsys_triage.compare.changes import LEAST_CHANGE
from nsys_triage.compare.kernels import LEAST_CHANGE as LEAST_OF_LAUNCHES
from nsys_triage.render.compare_words import certain, change_range, percent, shown, signed
from nsys_triage.result.compare_model import (
    CauseChange,
    Comparability,
    CompareVerdict,
    FindingChange,
    GateOutcome,
    KernelChange,
    KernelChanges,
    Measure,
    Side,
    TimeChange,
)

ALMOST: Final = 0.02
NOTEWORTHY: Final = 0.02
"""Of the step time: a difference that is mentioned although it may be noise."""
MOST_OF_WINDOW: Final = 0.9
"""Steps that are less of the window are said to be: their time is not that of the run."""
WORTH_SAYING: Final = 0.005
"""Of the kernel time: kernels that changed by less together are in the table alone."""
_KEPT: Final = 3  # of each kind of detail

_CAUSES: Final = {
    "graph": "CUDA graphs", "communication": "exposed communication", "copy": "exposed copies",
    "memset": "exposed memsets",
}  # fmt: skip
OTHER_WORK: Final = 0.2
"""Of the kernel time of a side: above it the kernels that the other side has too do not stand for the run."""
Metric = Literal["step_time", "same_launches"]
Outcome = Literal["faster", "slower", "mixed", "no_change", "inconclusive"]
_OUTCOMES: Final[dict[str, Outcome]] = {
    "lower": "faster", "higher": "slower", "no_change": "no_change", "inconclusive": "inconclusive",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Changes:
    """Everything that a verdict is made from."""

    stepwise: bool
    step: TimeChange | None
    whole: TimeChange | None
    outside: TimeChange | None
    idle: TimeChange | None
    causes: Sequence[CauseChange]
    kernels: KernelChanges | None
    measures: Sequence[Measure]
    findings: Sequence[FindingChange]
    comparable: bool  # whether a finding on one side alone is fixed or new


def verdict(comparability: Comparability, changes: Changes, sides: tuple[Side, Side]) -> CompareVerdict:
    """The verdict on the step time, or where there are no steps on the time of the launches that both sides have."""
    details = [
        *_whole(changes, sides),
        *_idle(changes),
        *_causes(changes),
        *_kernels(changes.kernels),
        *_copies(changes.measures),
        *_findings(changes.findings, changes.comparable),
        *_limiters(sides),
    ]
    if comparability.grade == "poor":
        sentence = f"Not comparable: {comparability.notes[0].text}"
        return CompareVerdict(outcome="inconclusive", metric=None, sentence=sentence, details=details)
    metric: Metric = "step_time" if changes.step else "same_launches"
    change = changes.step or (changes.kernels.same_launches if changes.kernels else None)
    if change is None:
        sentence = "Neither steps nor kernels of both sides can be compared."
        return CompareVerdict(outcome="inconclusive", metric=None, sentence=sentence, details=details)
    outcome, sentence = _OUTCOMES[change.outcome], _sentence(change, metric)
    differs = other_work(changes.kernels) if changes.kernels and not changes.step else None
    if differs:
        return CompareVerdict(
            outcome="inconclusive", metric=None, sentence=f"{differs} {_facts(change)}", details=details
        )
    if changes.whole is not None and at_odds(changes.step, changes.whole):
        outcome = "mixed"
        sentence += f" But the whole capture of the same work takes {_took(changes.whole)}."
    return CompareVerdict(outcome=outcome, metric=metric, sentence=sentence, details=details)


def _per(stepwise: bool) -> str:
    return "per step" if stepwise else "per second"


def capital(sentence: str) -> str:
    """The text with a capital at its start."""
    return sentence[:1].upper() + sentence[1:]


def _name(cause: str) -> str:
    return _CAUSES.get(cause, cause.replace("_", " "))


def _sentence(change: TimeChange, metric: Metric) -> str:
    if metric == "step_time":
        what, verb, least, tail = "a step", "takes", LEAST_CHANGE, ""
        numbers = f"{units.time(change.before_ns)} before, {units.time(change.after_ns)} after"
    else:
        what, verb, least, tail = (
            "the launches that both sides have",
            "take",
            LEAST_OF_LAUNCHES,
            _of_window(change),
        )
        numbers = _per_second(change)
    noise = change_range(change)
    if change.outcome == "no_change" and certain(change):
        small = f"certain, but below the {percent(least)} from which a change counts"
        return f"No change that matters: {what} {verb} {numbers} ({noise}; {small}).{tail}"
    if change.outcome == "no_change":
        return f"No change: {what} {verb} {numbers} ({noise}).{tail}"
    if change.outcome == "inconclusive":
        return f"It cannot be told whether {what} got faster or slower: {numbers} ({noise}).{tail}"
    direction = "less" if change.outcome == "lower" else "more"
    size = percent(change.change_share or 0)
    return f"{capital(what)} {verb} {size} {direction} time: {numbers} ({noise}).{tail}"


def _per_second(change: TimeChange) -> str:
    return f"{units.time(change.before_ns)} before, {units.time(change.after_ns)} after, per second of the window"


def _of_window(change: TimeChange) -> str:
    """What a time per second of the window is of it: the reader of 5.7 ms has to know that it is not all."""
    return f" They are {units.share(change.before_ns / 1e9)} of the window's time before."


def _facts(change: TimeChange) -> str:
    """What is known of the launches that both sides have, without a verdict."""
    numbers = f"{_per_second(change)} ({change_range(change)})"
    return f"The launches that both sides have take {numbers}.{_of_window(change)}"


def other_work(kernels: KernelChanges) -> str | None:
    """That the work differs, where kernels that one side lacks take much of the other's kernel time.

    The time of the launches that both have says little of a run then: forward against forward and backward.
    """
    shares = kernels.only_before_share, kernels.only_after_share
    if max(shares) < OTHER_WORK:
        return None
    said = []
    for number, what, share, when in (
        (kernels.sums.gone, "gone", shares[0], "before"),
        (kernels.sums.new, "new", shares[1], "after"),
    ):
        if number:
            verb = "is" if number == 1 else "are"
            said.append(f"{number} {verb} {what} ({units.share(share)} of the kernel time {when})")
    return f"The work differs: of {units.plural(len(kernels.rows), 'kernel')} {', '.join(said)}."


def _took(whole: TimeChange) -> str:
    """How long it took: `29 % less: 12.8 s before, 9 s after`."""
    numbers = f"{units.time(whole.before_ns)} before, {units.time(whole.after_ns)} after"
    if abs(whole.change_share or 0) < ALMOST:
        return f"as long as before: {numbers}"
    return f"{percent(whole.change_share or 0)} {'less' if whole.change_ns < 0 else 'more'}: {numbers}"


def at_odds(step: TimeChange | None, whole: TimeChange) -> bool:
    """Whether steps and the whole capture of the same work say different things.

    Steps got shorter and the whole did not by even a third of that, or they got longer and the whole shorter.
    """
    if step is None:
        return False
    of_step, of_whole = step.change_share or 0, whole.change_share or 0
    if step.outcome == "lower":
        return of_whole > of_step / 3
    return step.outcome == "higher" and of_whole < -ALMOST


def _whole(changes: Changes, sides: tuple[Side, Side]) -> list[str]:
    found = []
    whole, outside = changes.whole, changes.outside
    if outside is not None and whole is not None and abs(outside.change_ns) > 0.05 * whole.before_ns:
        more = outside.change_ns > 0
        text = (
            f"{'More' if more else 'Less'} time passes outside the steps: {units.time(outside.before_ns)} before,"
            f" {units.time(outside.after_ns)} after"
        )
        # per step of both what is in steps and what is not: the difference is what lies outside
        moved = [(c.total.change_ns - c.in_steps.change_ns, c.cause) for c in changes.causes if c.in_steps]
        size, cause = max(moved, key=lambda m: m[0] if more else -m[0], default=(0, ""))
        if size * outside.change_ns > 0:
            text += f", most of it {_name(cause)}"
        found.append(text + ".")
    inside = _inside(outside, sides) if changes.step and outside else None
    if inside is not None and min(inside) < MOST_OF_WINDOW:
        shares = [units.share(share) for share in inside]
        found.append(f"The steps are {shares[0]} of the window before, {shares[1]} after.")
    if whole is not None and not at_odds(changes.step, whole) and abs(whole.change_share or 0) >= ALMOST:
        found.append(f"The whole capture of the same work takes {_took(whole)}.")
    return found


def _inside(outside: TimeChange | None, sides: tuple[Side, Side]) -> tuple[float, float] | None:
    """What share of each window its steps are."""
    spans = [side.window.span_ns if side.window else 0 for side in sides]
    if outside is None or not all(spans):
        return None
    before, after = (
        min(1.0, max(0.0, 1 - ns / span))
        for ns, span in zip((outside.before_ns, outside.after_ns), spans, strict=True)
    )
    return before, after


def _idle(changes: Changes) -> list[str]:
    found = []
    busy = next((m for m in changes.measures if m.topic == "gpu" and m.what == "busy"), None)
    if busy and busy.before is not None and busy.after is not None and busy.outcome in ("lower", "higher"):
        before, after = units.share(busy.before), units.share(busy.after)
        found.append(f"The GPU is busy {before} of the time before, {after} after.")
    idle = changes.idle
    if idle is not None and idle.outcome in ("lower", "higher"):
        found.append(_told("idle time", idle, changes.stepwise))
    return found


def _told(what: str, change: TimeChange, stepwise: bool) -> str:
    return (
        f"{capital(what)} {signed(change.change_ns)} {_per(stepwise)}: {units.time(change.before_ns)} before,"
        f" {units.time(change.after_ns)} after."
    )


def _causes(changes: Changes) -> list[str]:
    ordered = sorted(shown(changes.causes), key=lambda c: (-abs(c[1].change_ns), c[0]))
    changed = [(cause, c) for cause, c in ordered if c.outcome in ("lower", "higher")]
    found = [_told(_name(cause), c, changes.stepwise) for cause, c in changed[:_KEPT]]
    reference = changes.step.before_ns if changes.step else 1_000_000_000
    left_open = [
        f"{_name(cause)} {units.time(c.before_ns)} before and {units.time(c.after_ns)} after"
        for cause, c in ordered
        if c.outcome == "inconclusive" and abs(c.change_ns) > NOTEWORTHY * reference
    ]
    if left_open:
        found.append(f"Not told from noise, {_per(changes.stepwise)}: {'; '.join(left_open[:_KEPT])}.")
    return found


def changed_kernels(kernels: KernelChanges) -> list[KernelChange]:
    """The rows that changed, those whose time changed most first."""
    return [r for r in kernels.rows if r.calls != "same" or r.duration in ("faster", "slower")]


def _kernels(kernels: KernelChanges | None) -> list[str]:
    if kernels is None:
        return []
    sums = kernels.sums
    counts = [
        (sums.slower, "slower"), (sums.faster, "faster"), (sums.new, "new"), (sums.gone, "gone"),
        (sums.more, "called more often"), (sums.fewer, "called less often"),
    ]  # fmt: skip
    said = ", ".join(f"{number} {what}" for number, what in counts if number)
    if not said:
        return []
    total = len(kernels.rows)
    changed = changed_kernels(kernels)
    of = kernels.same_launches.before_ns if kernels.same_launches else 0
    if sum(abs(row.total_change_ns) for row in changed) < WORTH_SAYING * of:
        return []
    first = changed[0]
    name = first.name if len(first.name) <= 60 else f"{first.name[:40]}...{first.name[-16:]}"
    return [f"Of {units.plural(total, 'kernel')} {said}; the largest difference is in {name}."]


def _copies(measures: Sequence[Measure]) -> list[str]:
    found = []
    for m in measures:
        if m.topic != "copies" or m.unit != "share" or m.outcome not in ("lower", "higher"):
            continue
        kind = m.name.replace("_", " ")
        found.append(
            f"Copies {kind} from or to pageable memory: {units.share(m.before or 0)} of their bytes before,"
            f" {units.share(m.after or 0)} after."
        )
    return found


def _findings(findings: Sequence[FindingChange], comparable: bool) -> list[str]:
    found = []
    both = "Still there" if comparable else "Found on both sides"
    for state, word in (("fixed", "Fixed"), ("new", "New"), ("remaining", both)):
        rules = [f.rule for f in findings if f.state == state]
        if rules:
            more = f" and {len(rules) - 4} more" if len(rules) > 4 else ""
            found.append(f"{word}: {', '.join(rules[:4])}{more}.")
    return found


def _limiters(sides: tuple[Side, Side]) -> list[str]:
    before, after = (side.limiter for side in sides)
    if not before or not after:
        return []
    names = before.replace("_", " "), after.replace("_", " ")
    if before == after:
        return [f"What limits the job is still: {names[1]}."]
    return [f"What limits the job: {names[0]} before, {names[1]} after."]


def gate(
    threshold: float, result: CompareVerdict, change: TimeChange | None, whole: TimeChange | None
) -> GateOutcome:
    """How a gate on a regression of the verdict's metric ends.

    It fails where the time is longer by the threshold or more and the interval leaves 0 out. It passes where the
    interval stays below the threshold, or the change does and the interval is narrow enough to show one of that size.
    Where the whole capture of the same work says the opposite it is inconclusive.
    """
    limit = percent(threshold)
    if result.outcome == "identical":
        return GateOutcome(threshold_share=threshold, outcome="passed", sentence="Both sides are identical.")
    if result.metric is None or change is None or change.low_ns is None or change.high_ns is None:
        reason = "the change cannot be judged" if result.metric is None else "its noise is not known"
        return GateOutcome(
            threshold_share=threshold,
            outcome="inconclusive",
            sentence=f"Whether it regressed by {limit}: {reason}.",
        )
    what = "step time" if result.metric == "step_time" else "time of the same launches"
    share, low, high = (
        ns / max(1, change.before_ns) for ns in (change.change_ns, change.low_ns, change.high_ns)
    )
    of_whole = (whole.change_share or 0) if whole else 0.0
    if result.outcome == "mixed" and (share >= threshold or of_whole >= threshold):
        sentence = f"Whether it regressed by {limit}: the {what} and the whole capture say different things."
        return GateOutcome(threshold_share=threshold, outcome="inconclusive", sentence=sentence)
    if share >= threshold and low > 0:
        sentence = f"The {what} regressed by {percent(share)}, {limit} is the limit."
        return GateOutcome(threshold_share=threshold, outcome="failed", sentence=sentence)
    if high <= threshold or (share < threshold and (high - low) / 2 <= threshold):
        sentence = f"The {what} did not regress by {limit}."
        return GateOutcome(threshold_share=threshold, outcome="passed", sentence=sentence)
    sentence = f"Whether the {what} regressed by {limit} cannot be told: {change_range(change)}."
    return GateOutcome(threshold_share=threshold, outcome="inconclusive", sentence=sentence)


def with_busy(decided: GateOutcome, busy: TimeChange | None, result: CompareVerdict) -> GateOutcome:
    """The gate's outcome, and where the busy time of a step regressed although the step takes no longer, that.

    Idle time hides it: the GPU works more for the same step, and the job will be slower once the idle time is gone.
    It fails where the busy time is longer by the threshold or more and the interval leaves 0 out, and is inconclusive
    where the interval does not. Where the step time cannot be judged at all the outcome stays.
    """
    judged = result.metric == "step_time" and result.outcome not in ("identical", "mixed")
    if not judged or decided.outcome == "failed" or busy is None or busy.low_ns is None or not busy.before_ns:
        return decided
    share, threshold = busy.change_ns / busy.before_ns, decided.threshold_share
    if share < threshold:
        return decided
    limit = percent(threshold)
    if busy.low_ns > 0:
        of_step = (
            "the step time did not" if decided.outcome == "passed" else "of the step time it cannot be told"
        )
        sentence = f"The busy time of a step regressed by {percent(share)}, {limit} is the limit; {of_step}."
        return GateOutcome(threshold_share=threshold, outcome="failed", sentence=sentence)
    if decided.outcome == "inconclusive":
        return decided
    sentence = (
        f"Whether the busy time of a step regressed by {limit} cannot be told: {change_range(busy)};"
        " the step time did not."
    )
    return GateOutcome(threshold_share=threshold, outcome="inconclusive", sentence=sentence)
