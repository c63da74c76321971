"""The timeline: rows of marks over the window, the findings pinned to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from nsys_triage.render.charts import MAX_MARKS
from nsys_triage.render.charts.scale import Tick, clock_ticks, percent

LABEL = 18
LANE = {"gpu": 14.0, "idle": 18.0, "host": 12.0, "steps": 12.0}
SPACE = 10
PINS = 22
MAX_ROWS = 48
WIDEST_LABELS = 24
_THINNEST = 0.06  # percent of the width that even the shortest mark takes
_PIN = 1.9  # percent of the width that a number takes
_WIDE = 12.0  # percent of the width that takes a word
_FULL = 0.85  # share of a bin from which its mark is high enough for a word
_LOWEST = 0.3  # part of the lane's height that even the smallest share of a bin takes


@dataclass(frozen=True, slots=True)
class Span:
    """One mark before it is placed."""

    start_ns: int
    end_ns: int
    what: str
    share: float
    text: str


@dataclass(frozen=True, slots=True)
class Strip:
    """One row before it is placed; where `split` is set, each kind of mark has a lane of its own."""

    label: str
    kind: str
    spans: list[Span]
    split: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A rectangle: horizontally in percent, vertically in pixels."""

    x: float
    width: float
    y: float
    height: float
    span: Span


@dataclass(frozen=True, slots=True)
class Lane:
    """Marks of one kind in one lane."""

    what: str
    top: float
    height: float
    marks: list[Mark]

    @property
    def total_ns(self) -> int:
        """The time that is really this kind, bins counted by their share."""
        return round(sum((m.span.end_ns - m.span.start_ns) * m.span.share for m in self.marks))


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row with its label's base line and its lanes."""

    label: str
    kind: str
    label_y: float
    top: float
    height: float
    lanes: list[Lane]


@dataclass(frozen=True, slots=True)
class Pin:
    """A finding on the timeline: where it is, and where its number stands beside those of others."""

    number: int
    x: float
    width: float
    at: float


@dataclass(frozen=True, slots=True)
class Label:
    """What a wide mark shows, written onto it: its ends and middle in percent, its base line in pixels."""

    what: str
    kind: str
    start: float
    end: float
    y: float

    @property
    def middle(self) -> float:
        """Where the text stands."""
        return round((self.start + self.end) / 2, 3)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The picture; `left_out` counts marks and rows beyond the bounds."""

    start_ns: int
    end_ns: int
    height: float
    rows: list[PlacedRow]
    pins: list[Pin]
    ticks: list[Tick]
    left_out_marks: int
    left_out_rows: int
    legend: list[tuple[str, str]]  # (kind of row, what)
    labels: list[Label]


def timeline(
    strips: Sequence[Strip], start_ns: int, end_ns: int, places: Sequence[tuple[int, int, int]]
) -> Timeline | None:
    """The picture of the window `[start_ns, end_ns)`; None where there is nothing to draw.

    `places` are findings as (number, start, end). Beyond `MAX_MARKS` marks the shortest are left out and
    counted, beyond `MAX_ROWS` rows the last ones.
    """
    shown = list(strips[:MAX_ROWS])
    if end_ns <= start_ns or not any(strip.spans for strip in shown):
        return None
    total = sum(len(strip.spans) for strip in shown)
    shown = _bounded(shown, total)
    y = float(PINS if places else 4)
    rows = []
    for strip in shown:
        row = _row(strip, y, start_ns, end_ns)
        rows.append(row)
        y = row.top + row.height + SPACE
    kinds: dict[str, str] = {}
    for row in rows:
        for lane in row.lanes if row.kind != "steps" else []:
            kinds.setdefault(lane.what, row.kind)
    return Timeline(
        start_ns=start_ns,
        end_ns=end_ns,
        height=y,
        rows=rows,
        pins=_pins(places, start_ns, end_ns),
        ticks=clock_ticks(start_ns, end_ns),
        left_out_marks=max(0, total - MAX_MARKS),
        left_out_rows=max(0, len(strips) - MAX_ROWS),
        legend=[(kind, what) for what, kind in kinds.items()],
        labels=_labels(rows),
    )


def _bounded(strips: list[Strip], total: int) -> list[Strip]:
    """The strips without the shortest marks beyond the bound."""
    if total <= MAX_MARKS:
        return strips
    order = sorted(
        (
            (s.start_ns - s.end_ns, row, place)
            for row, strip in enumerate(strips)
            for place, s in enumerate(strip.spans)
        )
    )
    kept = {(row, place) for _, row, place in order[:MAX_MARKS]}
    return [
        Strip(
            strip.label,
            strip.kind,
            [s for place, s in enumerate(strip.spans) if (row, place) in kept],
            strip.split,
        )
        for row, strip in enumerate(strips)
    ]


def _row(strip: Strip, y: float, start_ns: int, end_ns: int) -> PlacedRow:
    kinds = list(dict.fromkeys(span.what for span in strip.spans))
    height = LANE.get(strip.kind, 12.0)
    top = y + LABEL
    lanes = []
    for number, what in enumerate(kinds):
        lane_top = top + number * (height + 2) if strip.split else top
        spans = [span for span in strip.spans if span.what == what]
        lanes.append(
            Lane(what, lane_top, height, [_mark(s, lane_top, height, start_ns, end_ns) for s in spans])
        )
    rows = len(kinds) if strip.split and kinds else 1
    return PlacedRow(strip.label, strip.kind, y + LABEL - 5, top, rows * (height + 2) - 2, lanes)


def _mark(span: Span, top: float, height: float, start_ns: int, end_ns: int) -> Mark:
    """A mark as wide as it lasts and as high as its share of the bin, standing on the lane's lower edge."""
    x = percent(span.start_ns, start_ns, end_ns)
    width = max(_THINNEST, round(percent(span.end_ns, start_ns, end_ns) - x, 3))
    size = round(height * max(_LOWEST, min(1.0, span.share)), 1)
    return Mark(min(x, 100 - width), width, round(top + height - size, 1), size, span)


def _labels(rows: Sequence[PlacedRow]) -> list[Label]:
    """The widest of the marks that a word fits onto; rows of steps and of the GPU's work have none."""
    found = [
        Label(lane.what, row.kind, m.x, round(m.x + m.width, 3), round(lane.top + lane.height / 2 + 4, 1))
        for row in rows
        if row.kind in ("idle", "host")
        for lane in row.lanes
        for m in lane.marks
        if m.width >= _WIDE and m.span.share >= _FULL
    ]
    return sorted(found, key=lambda label: (label.start - label.end, label.y, label.start))[:WIDEST_LABELS]


def _pins(places: Sequence[tuple[int, int, int]], start_ns: int, end_ns: int) -> list[Pin]:
    """The findings in the order of time; numbers that would cover each other move to the right."""
    pins: list[Pin] = []
    for number, first, last in sorted(places, key=lambda place: (place[1], place[0])):
        x = percent(first, start_ns, end_ns)
        width = round(percent(last, start_ns, end_ns) - x, 3)
        at = max(x, pins[-1].at + _PIN) if pins else x
        pins.append(Pin(number, x, width, round(at, 3)))
    return pins
