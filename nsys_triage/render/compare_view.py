"""What the page of a comparison shows: side-by-side ledgers, step durations, tables, as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nsys_triage import units
from nsys_triage.render import text, words
from nsys_triage.render.charts.bars import segments
from nsys_triage.render.charts.scale import Tick, duration_ticks, percent, round_step
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

MOST_KERNELS: Final = 200
MOST_BINS: Final = 40
STEPS_HEIGHT: Final = 90
_UNREAD: Final = 0.0005  # reads as less than 0.1 %, where a sign says nothing
_TENFOLD: Final = 9
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
STATES: Final = {
    "fixed": "fixed",
    "new": "new",
    "remaining": "still there",
    "at_threshold": "close to its threshold, inside the noise",
    "not_checked": "checked on one side only",
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


def steps_line(side: Side) -> str:
    """What a side is, in a line: `59 steps of 154 ms`."""
    if side.steps:
        return f"{units.plural(side.steps.count, 'step')} of {units.time(side.steps.mean_ns)}"
    return units.time(side.window.span_ns) if side.window else "not judged"


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
    parts.append(steps_line(side))
    if side.busy_share is not None:
        parts.append(f"busy {units.share(side.busy_share)}")
    return parts


def signed_time(change: TimeChange) -> str:
    """`-36.9 ms`, `+2 us`, `no change`, `-5 ms, cannot be told from noise`."""
    if change.outcome == "no_change":
        return "no change"
    size = (
        f"{'+' if change.change_ns > 0 else '-'}{units.time(abs(change.change_ns))}"
        if change.change_ns
        else "0 ns"
    )
    return size if change.outcome != "inconclusive" else f"{size}, cannot be told from noise"


def outcome_text(change: TimeChange) -> str:
    """What became of a time; a change that is certain and small is called so."""
    certain = (
        change.low_ns is not None and change.high_ns is not None and (change.low_ns > 0 or change.high_ns < 0)
    )
    if change.outcome == "no_change" and certain:
        return "too small to matter"
    return OUTCOMES[change.outcome]


def signed_share(share: float | None) -> str:
    """`+12 %`, `-3.1 %`; nothing where it is not known, `more than tenfold` where a percentage says little."""
    if share is None:
        return ""
    if abs(share) < _UNREAD:
        return units.share(abs(share))
    if abs(share) < _UNREAD:
        return units.share(abs(share))
    if share > _TENFOLD:
        return f"x {units.count(round(1 + share))}"
    if share > 1:
        return f"+{units.count(round(100 * share))} %"
    return f"{'+' if share > 0 else '-' if share < 0 else ''}{units.share(abs(share))}"


def interval(low: float | None, high: float | None) -> str:
    """An interval of shares: `-5.1 % to +3 %`."""
    if low is None or high is None:
        return ""
    return f"{signed_share(max(low, -1))} to {signed_share(high)}"


def time_interval(change: TimeChange) -> str:
    """An interval of a change of time: `-45 to -31 ms` in words of both ends."""
    if change.low_ns is None or change.high_ns is None:
        return "not known"
    ends = [
        f"{'+' if end > 0 else '-' if end < 0 else ''}{units.time(abs(end))}"
        for end in (change.low_ns, change.high_ns)
    ]
    return f"{ends[0]} to {ends[1]}"


def ledger_chart(comparison: Comparison) -> LedgerChart | None:
    """Both sides' ledgers per step, or per second of the window, on one scale; None without."""
    sides = []
    for label, side in (("Before", comparison.before), ("After", comparison.after)):
        total = sum(entry.ns for entry in side.ledger)
        if not total:
            return None
        per = side.steps.count if comparison.basis == "step" and side.steps else total / 1e9
        sides.append((label, side, [(str(entry.cause), round(entry.ns / per)) for entry in side.ledger]))
    scale = max(sum(ns for _, ns in parts) for _, _, parts in sides)
    bars = []
    for number, (label, side, parts) in enumerate(sides):
        span = sum(ns for _, ns in parts)
        labels = {
            key: (f"{words.cause(key)} {units.share(ns / span)}", words.cause(key), units.share(ns / span))
            for key, ns in parts
        }
        note = f"{units.time(span)} per {comparison.basis}, busy {units.share(side.busy_share or 0)}"
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
