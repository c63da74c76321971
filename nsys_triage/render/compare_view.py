"""What the page of a comparison shows: side-by-side ledgers, step durations, tables, as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nsys_triage import units
from nsys_triage.render import text, words
from nsys_triage.render.charts.bars import segments
from nsys_triage.render.charts.scale import Tick, duration_ticks, percent, round_step
from nsys_triage.render.compare_words import (
    by_step,
    certain,
    share_range,
    shown,
    side_text,
    signed,
    signed_percent,
)
from nsys_triage.render.views.ledger import LedgerBar, LedgerChart
from nsys_triage.result.compare_model import (
    Comparison,
    FindingChange,
    KernelChange,
    Measure,
    Outcome,
    Side,
    SideSteps,
    TimeChange,
)
from nsys_triage.result.model import BUSY_CAUSES, Cause

MOST_KERNELS: Final = 200
MOST_BINS: Final = 40
STEPS_HEIGHT: Final = 90
_TENFOLD: Final = 9
_UNEXPLAINED: Final = 0.005  # of a step: what its causes may leave open without a row of its own
_BAR_HEIGHT, _PITCH = 34, 64
VERDICTS: Final = {
    "identical": "Identical",
    "faster": "Faster",
    "slower": "Slower",
    "mixed": "Steps and whole capture disagree",
    "no_change": "No change",
    "inconclusive": "Inconclusive",
}
OUTCOMES: Final[dict[Outcome, str]] = {
    "lower": "lower",
    "higher": "higher",
    "no_change": "no change",
    "inconclusive": "cannot be told",
}
STATES: Final[dict[str, str]] = {
    "fixed": "fixed",
    "new": "new",
    "remaining": "still there",
    "at_threshold": "close to its threshold, inside the noise",
    "not_checked": "checked on one side only",
    "not_compared": "on one side; the two cannot be compared",
}
TOPICS: Final = {
    "gpu": "GPU",
    "copies": "Copies",
    "communication": "Communication",
    "sync": "Synchronising calls",
    "launches": "Launches",
}


@dataclass(frozen=True, slots=True)
class StepBin:
    """A bar of the distribution: places in percent, height of the plot's."""

    x: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class StepRow:
    """The distribution of one side's step durations."""

    label: str
    note: str
    y: int
    bins: list[StepBin]
    mean: float
    median: float


@dataclass(frozen=True, slots=True)
class StepsChart:
    """Both distributions over one axis of durations; `beyond` steps lie past its end."""

    rows: list[StepRow]
    ticks: list[Tick]
    height: int
    beyond: int


def side_facts(side: Side) -> list[str]:
    """The facts of a side for the header."""
    models: dict[str, int] = {}
    for name in side.gpus:
        models[name or "GPU, model not recorded"] = models.get(name or "GPU, model not recorded", 0) + 1
    parts = [
        f"{number} x {text.shorten(name, 40)}" if number > 1 else text.shorten(name, 40)
        for name, number in models.items()
    ]
    if side.ranks > 1:
        parts.append(units.plural(side.ranks, "rank"))
    if side.taken_as != "one run":
        parts.append(f"{units.plural(len(side.files), 'file')} taken as {side.taken_as}")
    parts.append(side_text(side))
    if side.busy_share is not None:
        parts.append(f"busy {units.share(side.busy_share)} of the window")
    return parts


def signed_time(change: TimeChange) -> str:
    """`-36.9 ms`, `+2 us`, `no change`, `-5 ms, cannot be told from noise`, `-3 us, too small to matter`."""
    if change.outcome == "no_change" and not _small(change):
        return "no change"
    size = signed(change.change_ns)
    if change.outcome == "inconclusive":
        return f"{size}, cannot be told from noise"
    return f"{size}, too small to matter" if change.outcome == "no_change" else size


def _small(change: TimeChange) -> bool:
    noise_known = change.low_ns is not None and change.high_ns is not None
    return change.outcome == "no_change" and bool(change.change_ns) and (certain(change) or not noise_known)


def outcome_text(change: TimeChange) -> str:
    """What became of a time; a small change that is certain, or of which no noise is known, is called small."""
    if _small(change):
        return "too small to matter"
    return OUTCOMES[change.outcome]


def signed_share(share: float | None) -> str:
    """`+12 %`, `-3.1 %`; nothing where it is not known, `x 20` where a percentage says little."""
    if share is None:
        return ""
    if share > _TENFOLD:
        return f"x {units.count(round(1 + share))}"
    return signed_percent(share)


def interval(low: float | None, high: float | None) -> str:
    """An interval of shares: `-5.1 % to +3 %`."""
    return "" if low is None or high is None else share_range(low, high)


def time_interval(change: TimeChange) -> str:
    """An interval of a change of time: `-45 ms to -31 ms`."""
    if change.low_ns is None or change.high_ns is None:
        return "not known"
    return f"{signed(change.low_ns)} to {signed(change.high_ns)}"


@dataclass(frozen=True, slots=True)
class SumRow:
    """A row under the causes: a sum of theirs, or what they leave out. `level` names its interval where it has one."""

    label: str
    note: str
    before_ns: int
    after_ns: int
    change: TimeChange | None = None
    level: str = ""


def cause_rows(comparison: Comparison) -> list[tuple[Cause, TimeChange, TimeChange | None]]:
    """Cause, the figure that is shown, and that of the whole window beside it where the first is of the steps."""
    whole = [cause.total if by_step(comparison.causes) else None for cause in comparison.causes]
    return [(*figure, total) for figure, total in zip(shown(comparison.causes), whole, strict=True)]


def sum_rows(comparison: Comparison) -> list[SumRow]:
    """Idle and busy time, the step that the causes add up to, and what lies outside of the steps."""
    inside = by_step(comparison.causes)
    idle = comparison.idle_in_steps if inside else comparison.idle_time
    rows = [] if idle is None else [_sum("All idle time", "", idle, "99 %")]
    if comparison.step_busy is not None and inside:
        rows.append(_sum("Busy time of a step", "", comparison.step_busy, "95 %"))
    step = comparison.step_time
    if step is None or not inside:
        return rows
    sums = [
        sum(getattr(change, end) for _, change in shown(comparison.causes))
        for end in ("before_ns", "after_ns")
    ]
    rest = step.before_ns - sums[0], step.after_ns - sums[1]
    if max(rest) > _UNEXPLAINED * step.before_ns:
        rows.append(
            SumRow("In a step without a GPU at work yet, or any more", "", max(0, rest[0]), max(0, rest[1]))
        )
    rows.append(_sum("A step, mean", "what the causes add up to", step, "95 %"))
    outside, counts = comparison.outside_steps, [s.steps.count if s.steps else 0 for s in _sides(comparison)]
    if outside is not None and all(counts):
        apart = [round(outside.before_ns / counts[0]), round(outside.after_ns / counts[1])]
        rows.append(SumRow("Outside the steps, for each step", "not in the sums above", apart[0], apart[1]))
    return rows


def _sum(label: str, note: str, change: TimeChange, level: str) -> SumRow:
    return SumRow(label, note, change.before_ns, change.after_ns, change, level)


def _sides(comparison: Comparison) -> tuple[Side, Side]:
    return comparison.before, comparison.after


def ledger_chart(comparison: Comparison) -> LedgerChart | None:
    """Both sides' ledgers on one scale: of a step, or per step or second of the window; None without."""
    sides = []
    inside = by_step(comparison.causes)
    for label, side, end in (
        ("Before", comparison.before, "before_ns"),
        ("After", comparison.after, "after_ns"),
    ):
        parts = [(str(cause), getattr(change, end)) for cause, change in shown(comparison.causes)]
        if not sum(ns for _, ns in parts):
            return None
        sides.append((label, side, [part for part in parts if part[1] > 0]))
    scale = max(sum(ns for _, ns in parts) for _, _, parts in sides)
    bars = []
    for number, (label, side, parts) in enumerate(sides):
        span = sum(ns for _, ns in parts)
        labels = {
            key: (f"{words.cause(key)} {units.share(ns / span)}", words.cause(key), units.share(ns / span))
            for key, ns in parts
        }
        busy = sum(ns for key, ns in parts if key in BUSY_CAUSES) / span
        of = "a step" if inside else f"per {comparison.basis} of the window"
        note = f"{units.time(span)} {of}, busy {units.share(busy)} of it"
        bars.append(
            LedgerBar(
                f"{label}: {text.shorten(side.name, 60)}", note, number * _PITCH + 15, number * _PITCH + 22,
                segments(parts, scale, labels),
            )
        )  # fmt: skip
    return LedgerChart(bars, _BAR_HEIGHT, len(bars) * _PITCH + 24, duration_ticks(scale, 6), 0)


def steps_chart(comparison: Comparison) -> StepsChart | None:
    """Step durations of both sides in bins of one round width; None where a side has none."""
    before, after = comparison.before.steps, comparison.after.steps
    if before is None or after is None:
        return None
    longest = max(before.max_ns, after.max_ns)
    top = max(1, min(longest, 3 * max(before.p95_ns, after.p95_ns)))
    width = max(1, round(round_step(top, MOST_BINS)))
    bins = -(-top // width)
    top = bins * width
    rows, beyond = [], 0
    for number, (label, steps) in enumerate((("Before", before), ("After", after))):
        counts = [0] * bins
        for duration in steps.durations_ns:
            if duration < top:
                counts[duration // width] += 1
            else:
                counts[-1] += 1
                beyond += duration > top
        rows.append(_step_row(label, steps, counts, width, top, number * (STEPS_HEIGHT + 34) + 22))
    return StepsChart(rows, duration_ticks(top, 6), 2 * (STEPS_HEIGHT + 34) + 20, beyond)


def _step_row(label: str, steps: SideSteps, counts: Sequence[int], width: int, top: int, y: int) -> StepRow:
    most = max(counts) or 1
    bins = [
        StepBin(
            x=percent(place * width, 0, top),
            width=round(100 * width / top, 3),
            height=round(STEPS_HEIGHT * count / most, 2),
            label=f"{units.time_bucket(place * width, (place + 1) * width)}: {units.plural(count, 'step')}",
        )
        for place, count in enumerate(counts)
        if count
    ]
    note = f"mean {units.time(steps.mean_ns)}, median {units.time(steps.p50_ns)}, 95 % up to {units.time(steps.p95_ns)}"
    return StepRow(label, note, y, bins, percent(steps.mean_ns, 0, top), percent(steps.p50_ns, 0, top))


def kernel_rows(comparison: Comparison) -> tuple[list[KernelChange], int]:
    """The kernels of the table, changed ones first, and how many are in the JSON alone."""
    if comparison.kernels is None:
        return [], 0
    rows = sorted(
        comparison.kernels.rows,
        key=lambda row: row.calls == "same" and row.duration in ("same", "inconclusive"),
    )
    return rows[:MOST_KERNELS], max(0, len(rows) - MOST_KERNELS)


def kernel_state(row: KernelChange) -> str:
    """What became of a kernel: `slower, more calls`, `new`, `no change`."""
    durations = {"faster": "faster", "slower": "slower", "inconclusive": "too few or too varied launches"}
    calls = {"more": "more calls", "fewer": "fewer calls", "new": "new", "gone": "gone"}
    parts = [durations.get(row.duration or "", ""), calls.get(row.calls, "")]
    return ", ".join(part for part in parts if part) or "no change"


def kernel_sums(comparison: Comparison) -> str:
    """How many kernels changed: `2 slower, 1 new, 122 without change`."""
    if comparison.kernels is None:
        return ""
    sums = comparison.kernels.sums
    counts = [
        (sums.slower, "slower"), (sums.faster, "faster"), (sums.new, "new"), (sums.gone, "gone"),
        (sums.more, "called more often"), (sums.fewer, "called less often"), (sums.same, "without change"),
        (sums.inconclusive, "launched too seldom or too unevenly to tell"),
    ]  # fmt: skip
    return ", ".join(f"{units.count(number)} {what}" for number, what in counts if number)


def measure_name(measure: Measure) -> str:
    """What a measure is of: `host to device, size`."""
    name = words.copy_kind(measure.name) if measure.topic == "copies" else text.shorten(measure.name, 60)
    return f"{name}: {measure.what}" if name else measure.what


def measure_value(measure: Measure, value: float | None) -> str:
    """A value in its unit."""
    return "" if value is None else units.quantity(value, measure.unit)


def finding_title(finding: FindingChange) -> str:
    """The title of the finding where it was."""
    side = finding.after or finding.before
    return side.title if side else finding.rule
