"""Where the time went: one stacked bar per GPU on one scale, and the table under it."""

from collections.abc import Sequence
from dataclasses import dataclass

from nsys_triage import units
from nsys_triage.render import words
from nsys_triage.render.charts.bars import Segment, segments
from nsys_triage.render.charts.scale import Tick, duration_ticks
from nsys_triage.render.views.known import (
    busy_share,
    given,
    gpu_names,
    model_name,
    whole_differs,
    window_name,
)
from nsys_triage.result.model import BUSY_CAUSES, CAUSES, CauseTime, Gpu, Result

MOST_BARS = 32
WORST = 10
MOST_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class LedgerBar:
    """One GPU's bar; vertical places in pixels."""

    label: str
    note: str
    label_y: int
    y: int
    segments: list[Segment]


@dataclass(frozen=True, slots=True)
class LedgerChart:
    """All bars on the scale of the longest span."""

    bars: list[LedgerBar]
    bar_height: int
    height: int
    ticks: list[Tick]
    left_out: int


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table: what it is about, and what its shares are of."""

    title: str
    of: str


@dataclass(frozen=True, slots=True)
class Cell:
    """Time and its share of the column's span; None where it was not measured."""

    ns: int | None
    share: float | None


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One cause, or the sum of a group (`cause` None)."""

    name: str
    cause: str | None
    meaning: str
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Ledger:
    """The section: picture and table."""

    chart: LedgerChart
    columns: list[Column]
    rows: list[LedgerRow]
    split: bool


def parts_of(gpu: Gpu) -> list[tuple[str, int]]:
    """The GPU's ledger in the fixed order; where it was not made, busy and idle time with idle as unknown."""
    entries = given(gpu.ledger)
    if entries is None:
        return [("busy", gpu.busy_ns), ("idle", gpu.idle_ns)]
    return [(entry.cause, entry.ns) for entry in sorted(entries, key=lambda entry: CAUSES.index(entry.cause))]


def ledger(result: Result) -> Ledger | None:
    """The section; None without GPUs."""
    if not result.gpus:
        return None
    split = all(given(gpu.ledger) is not None for gpu in result.gpus)
    columns, totals = _columns(result)
    return Ledger(_chart(result), columns, _rows(totals) if split else _plain_rows(totals), split)


def _chart(result: Result) -> LedgerChart:
    names = gpu_names(result)
    shown = list(result.gpus)
    if len(shown) > MOST_BARS:
        shown = sorted(shown, key=lambda gpu: (busy_share(gpu), result.gpus.index(gpu)))[:WORST]
    scale = max((gpu.span_ns for gpu in shown), default=0)
    height, pitch = (34, 64) if len(shown) <= 4 else (20, 42)
    bars = []
    for number, gpu in enumerate(shown):
        label = names[gpu.id] + (f", {name}" if (name := model_name(gpu)) and len(shown) <= 8 else "")
        label += ", identity assumed" if gpu.identity == "assumed" and len(shown) <= 8 else ""
        note = f"busy {units.share(busy_share(gpu))} of {units.time(gpu.span_ns)}"
        parts = parts_of(gpu)
        labels = {key: _labels(key, ns, gpu.span_ns) for key, ns in parts}
        bars.append(
            LedgerBar(label, note, number * pitch + 15, number * pitch + 22, segments(parts, scale, labels))
        )
    return LedgerChart(
        bars, height, len(shown) * pitch + 24, duration_ticks(scale, 6), len(result.gpus) - len(shown)
    )


def _labels(key: str, ns: int, span_ns: int) -> Sequence[str]:
    if not span_ns:
        return ()
    name, share = words.cause(key), units.share(ns / span_ns)
    return (f"{name} {share}", name, share)


def _columns(result: Result) -> tuple[list[Column], list[tuple[dict[str, int] | None, int, int]]]:
    """Columns of the table, and for each (time by cause or None, busy, span)."""
    names = gpu_names(result)
    gpus = result.gpus
    columns, totals = [], []
    if len(gpus) <= MOST_COLUMNS:
        for gpu in gpus:
            columns.append(
                Column(
                    names[gpu.id] if len(gpus) > 1 else words.capital(window_name(result)),
                    units.time(gpu.span_ns),
                )
            )
            totals.append((_by_cause(given(gpu.ledger)), gpu.busy_ns, gpu.span_ns))
    else:
        total = sum(gpu.span_ns for gpu in gpus)
        columns.append(Column(f"All {len(gpus)} GPUs", units.time(total)))
        totals.append(
            (_sum([_by_cause(given(gpu.ledger)) for gpu in gpus]), sum(g.busy_ns for g in gpus), total)
        )
        for title, pick in (("Busiest GPU", max), ("Least busy GPU", min)):
            gpu = pick(gpus, key=busy_share)
            columns.append(Column(f"{title}: {names[gpu.id]}", units.time(gpu.span_ns)))
            totals.append((_by_cause(given(gpu.ledger)), gpu.busy_ns, gpu.span_ns))
    if whole_differs(result):
        total = sum(gpu.whole.span_ns for gpu in gpus)
        columns.append(Column("Whole capture" + (", all GPUs" if len(gpus) > 1 else ""), units.time(total)))
        entries = [_by_cause(given(gpu.whole.ledger)) for gpu in gpus]
        totals.append((_sum(entries), sum(gpu.whole.busy_ns for gpu in gpus), total))
    return columns, totals


def _by_cause(entries: list[CauseTime] | None) -> dict[str, int] | None:
    return None if entries is None else {str(entry.cause): entry.ns for entry in entries}


def _sum(parts: list[dict[str, int] | None]) -> dict[str, int] | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return {cause: sum(part.get(cause, 0) for part in known) for cause in CAUSES}


def _rows(totals: list[tuple[dict[str, int] | None, int, int]]) -> list[LedgerRow]:
    rows = []
    for name, group in (("Busy", BUSY_CAUSES), ("Idle", CAUSES[len(BUSY_CAUSES) :])):
        rows.append(_group(name, totals))
        for cause in group:
            if any(times and times.get(cause) for times, _, _ in totals):
                cells = [
                    _cell(None if times is None else times.get(cause, 0), span) for times, _, span in totals
                ]
                rows.append(LedgerRow(words.cause(cause), cause, words.CAUSE_MEANINGS[cause], cells))
    return rows


def _plain_rows(totals: list[tuple[dict[str, int] | None, int, int]]) -> list[LedgerRow]:
    return [_group("Busy", totals), _group("Idle", totals)]


def _group(name: str, totals: list[tuple[dict[str, int] | None, int, int]]) -> LedgerRow:
    cells = [_cell(busy if name == "Busy" else span - busy, span) for _, busy, span in totals]
    return LedgerRow(name, None, "", cells)


def _cell(ns: int | None, span_ns: int) -> Cell:
    return Cell(ns, None if ns is None or not span_ns else ns / span_ns)
