"""The timeline of the window, with the findings on it, and the part of the capture that the window is."""

from dataclasses import dataclass

from nsys_triage import units
from nsys_triage.render import text, words
from nsys_triage.render.charts.scale import percent
from nsys_triage.render.charts.timeline import Span, Strip, Timeline, timeline
from nsys_triage.render.views.known import given
from nsys_triage.result.model import CAUSES, Finding, Result, Row

MOST_SPLIT_ROWS = 18
MOST_LANES = 5
LONGEST_TIP = 48
LONGEST_LABEL = 80


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the capture, in percent of it."""

    x: float
    width: float
    text: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The window within the capture, and what was left out."""

    window: Part
    excluded: list[Part]
    reasons: list[str]
    start: str
    end: str


def activity(kind: str, what: str) -> str:
    """What a mark of a row shows, in words."""
    if kind in ("gpu", "idle"):
        return words.cause(what).removeprefix("exposed ")
    if kind == "steps":
        return words.STEP_STATES.get(what, words.plain(what))
    return words.HOST_ACTIVITIES.get(what, words.plain(what))


def timeline_chart(result: Result, findings: list[Finding]) -> Timeline | None:
    """The picture; None without timeline or window. `findings` are those that the page shows."""
    given_timeline, window = given(result.timeline), given(result.capture.window)
    if given_timeline is None or window is None:
        return None
    rows = given_timeline.rows
    strips = [_strip(row, len(rows)) for row in rows]
    places = [
        (number, finding.where.start_ns, finding.where.end_ns)
        for number, finding in enumerate(findings, 1)
        if finding.where is not None
        and finding.where.start_ns < window.end_ns
        and finding.where.end_ns > window.start_ns
    ]
    return timeline(strips, window.start_ns, window.end_ns, places)


def _strip(row: Row, rows: int) -> Strip:
    spans = [
        Span(mark.start_ns, mark.end_ns, mark.what, mark.share, given(mark.text) or "") for mark in row.marks
    ]
    order = {str(cause): place for place, cause in enumerate(CAUSES)}
    spans.sort(key=lambda span: (order.get(span.what, len(order)), span.what, span.start_ns, span.end_ns))
    kinds = len({span.what for span in spans})
    split = row.kind in ("gpu", "host") and rows <= MOST_SPLIT_ROWS and kinds <= MOST_LANES
    label = text.shorten(row.label, LONGEST_LABEL)
    return Strip(label, row.kind, spans, split)


def tip(kind: str, span: Span) -> str:
    """The tooltip of a mark: what it is, when, and how much of a bin it fills."""
    parts = [text.shorten(activity(kind, span.what), LONGEST_TIP)]
    if span.text:
        parts.append(text.shorten(span.text, LONGEST_TIP))
    parts.append(units.stretch(span.start_ns, span.end_ns))
    line = ", ".join(parts)
    return line if span.share >= 0.995 else f"{line}, {units.share(span.share)} of it"


def overview(result: Result) -> Overview | None:
    """The window within the capture; None where the window is the whole of it, or the length is not known."""
    window, duration = given(result.capture.window), given(result.capture.duration_ns)
    if (
        window is None
        or not duration
        or (window.mode == "all" or (window.mode == "auto" and not window.excluded))
    ):
        return None
    low, high = min(0, window.start_ns), max(duration, window.end_ns)

    def part(start_ns: int, end_ns: int, note: str) -> Part:
        x = percent(start_ns, low, high)
        return Part(x, round(percent(end_ns, low, high) - x, 3), note)

    excluded = [
        part(
            e.start_ns,
            e.end_ns,
            f"{units.stretch(e.start_ns, e.end_ns)}: {text.cut(e.reason, 200).rstrip('.')}",
        )
        for e in window.excluded[:20]
    ]
    return Overview(
        window=part(window.start_ns, window.end_ns, units.stretch(window.start_ns, window.end_ns)),
        excluded=excluded,
        reasons=[e.text for e in excluded],
        start=units.moment(low, 3),
        end=units.moment(high, 3),
    )
