"""The ranks of the job: who waits for whom."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nsys_triage import units
from nsys_triage.render import text
from nsys_triage.render.charts.bars import Segment, segments
from nsys_triage.render.charts.ranks import HeatStrip, heat_strip
from nsys_triage.render.charts.steps import StepChart, StepParts, step_chart
from nsys_triage.render.views.known import given
from nsys_triage.result.model import RankRow, Ranks, RankStep, Result

MOST_RANKS = 64
WORST = 10
PERCENTILES = (0, 10, 50, 90, 100)


@dataclass(frozen=True, slots=True)
class RankBar:
    """Wait and transfer of one rank, or its communication where they could not be told apart."""

    label: str
    note: str
    y: int
    segments: list[Segment]
    straggler: bool


@dataclass(frozen=True, slots=True)
class PercentileRow:
    """One quantity over all ranks: its values at `PERCENTILES`."""

    label: str
    values: list[int]


@dataclass(frozen=True, slots=True)
class RanksView:
    """The section; `rows` are all ranks, or of very many the worst ten (then with percentiles)."""

    ranks: Ranks
    rows: list[RankRow]
    strip: HeatStrip | None
    bars: list[RankBar]
    bars_height: int
    percentiles: list[PercentileRow]
    facts: list[str]
    folded: bool
    chart: StepChart | None  # of the steps that the ranks have in common
    late_in: str | None  # in which of them the straggler comes last


def ranks_view(result: Result) -> RanksView | None:
    """The section; None where the result is about one rank."""
    ranks = given(result.ranks)
    if ranks is None or not ranks.per_rank:
        return None
    everyone = sorted(ranks.per_rank, key=lambda row: row.rank)
    folded = len(everyone) > MOST_RANKS
    shown = sorted(sorted(everyone, key=_badness)[:WORST], key=lambda row: row.rank) if folded else everyone
    bars = _bars(shown, ranks.straggler)
    return RanksView(
        ranks=ranks,
        rows=shown,
        strip=_strip(shown),
        bars=bars,
        bars_height=len(bars) * 26,
        percentiles=_percentiles(everyone) if folded else [],
        facts=_facts(ranks),
        folded=folded,
        chart=_chart(given(ranks.steps) or []),
        late_in=_late_in(given(ranks.steps) or [], ranks.straggler),
    )


def _chart(steps: Sequence[RankStep]) -> StepChart | None:
    """A bar per step as long as the slowest rank's, of which the mean waiting is a part."""
    rows = [
        StepParts(
            step.index,
            step.max_ns,
            "steady",
            (("busy", max(0, step.max_ns - step.wait_ns)), ("wait", step.wait_ns)),
        )
        for step in steps
    ]
    durations = sorted(step.max_ns for step in steps)
    if not durations:
        return None
    return step_chart(rows, nearest_rank(durations, 50), nearest_rank(durations, 95))


def _late_in(steps: Sequence[RankStep], straggler: int | None) -> str | None:
    """The steps in which the straggler comes last, as text; runs of them are joined."""
    judged = [step for step in steps if step.last is not None]
    if straggler is None or not judged:
        return None
    runs: list[list[int]] = []
    for step in judged:
        if step.last != straggler:
            continue
        if runs and step.index == runs[-1][1] + 1:
            runs[-1][1] = step.index
        else:
            runs.append([step.index, step.index])
    some = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in runs[:8]) + (
        " ..." if len(runs) > 8 else ""
    )
    late = sum(step.last == straggler for step in judged)
    return f"It comes last in {units.count(late)} of {units.plural(len(judged), 'step')}{': ' if some else ''}{some}."


def _badness(row: RankRow) -> tuple[float, int]:
    """Sorts the ranks that the others wait for first: the least waiting, else the longest step."""
    if row.wait_ns is not None:
        return (row.wait_ns, row.rank)
    return (-(row.step_p50_ns or 0), row.rank)


def _span(row: RankRow) -> int | None:
    return given(row.span_ns) or None


def _strip(rows: Sequence[RankRow]) -> HeatStrip | None:
    def shares(pick: Callable[[RankRow], int | None]) -> list[float | None]:
        values: list[float | None] = []
        for row in rows:
            value, span = pick(row), _span(row)
            values.append(None if value is None or span is None else value / span)
        return values

    candidates = [
        ("busy", "busy", shares(lambda row: row.busy_ns)),
        ("waiting in collectives", "wait", shares(lambda row: row.wait_ns)),
        ("exposed communication", "exposed", shares(lambda row: given(row.exposed_ns))),
    ]
    return heat_strip([row.rank for row in rows], [c for c in candidates if any(s is not None for s in c[2])])


def _bars(rows: Sequence[RankRow], straggler: int | None) -> list[RankBar]:
    scale = max((row.communication_ns for row in rows), default=0)
    if not scale:
        return []
    bars = []
    for number, row in enumerate(rows):
        if row.wait_ns is None or row.transfer_ns is None:
            parts, note = [("communication", row.communication_ns)], units.time(row.communication_ns)
        else:
            parts = [("wait", row.wait_ns), ("transfer", row.transfer_ns)]
            note = f"wait {units.time(row.wait_ns)}, transfer {units.time(row.transfer_ns)}"
        labels = {key: (f"{key} {units.time(ns)}", units.time(ns)) for key, ns in parts}
        bars.append(
            RankBar(
                f"rank {row.rank}", note, number * 26, segments(parts, scale, labels), row.rank == straggler
            )
        )
    return bars


def _percentiles(rows: Sequence[RankRow]) -> list[PercentileRow]:
    picks: list[tuple[str, Callable[[RankRow], int | None]]] = [
        ("busy", lambda row: row.busy_ns),
        ("communication", lambda row: row.communication_ns),
        ("wait", lambda row: row.wait_ns),
        ("transfer", lambda row: row.transfer_ns),
        ("exposed communication", lambda row: given(row.exposed_ns)),
        ("median step", lambda row: row.step_p50_ns),
    ]
    table = []
    for label, pick in picks:
        values = sorted(value for row in rows if (value := pick(row)) is not None)
        if values:
            table.append(PercentileRow(label, [nearest_rank(values, q) for q in PERCENTILES]))
    return table


def nearest_rank(values: Sequence[int], q: int) -> int:
    """The nearest-rank percentile of ascending values: the ceil(q n / 100)-th smallest."""
    return values[max(1, -(-q * len(values) // 100)) - 1]


def _facts(ranks: Ranks) -> list[str]:
    facts = []
    if ranks.missing:
        some = ", ".join(str(rank) for rank in ranks.missing[:12]) + (
            " ..." if len(ranks.missing) > 12 else ""
        )
        facts.append(
            f"Missing: {units.plural(len(ranks.missing), 'rank')} ({some}); the others may wait for them."
        )
    source = given(ranks.source)
    notes = [text.cut(note, 300) for note in (given(ranks.notes) or [])[:12]]
    if source in ("assumed", "mixed") and not any("assumed" in note for note in notes):
        facts.append(
            "Rank numbers are assumed from the order of files or processes, not read from the capture."
        )
    world = given(ranks.world_size)
    if world and world != ranks.count:
        facts.append(f"The job had {units.plural(world, 'rank')}; {units.count(ranks.count)} are here.")
    return facts + notes
