"""Stacked horizontal bars on one scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nsys_triage.render.charts.scale import percent

# at a page of 1,040 px a character of a 12 px label takes about 6.4 px
_CHARACTERS_PER_PERCENT = 10.4 / 6.4
_NARROW = 340 / 1040  # a phone shows this part of it


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a stacked bar; `label` is the text that fits into it, `narrow` whether it does on a phone."""

    key: str
    x: float
    width: float
    value_ns: int
    share: float
    label: str
    narrow: bool

    @property
    def middle(self) -> float:
        """Where the label stands."""
        return round(self.x + self.width / 2, 3)


def segments(
    parts: Sequence[tuple[str, int]], scale_ns: int, labels: Mapping[str, Sequence[str]]
) -> list[Segment]:
    """The parts `(key, ns)` laid end to end, `scale_ns` being the whole width; empty ones are left out.

    `labels` has the texts for each key, longest first, of which the first that fits is taken; shares are
    of the sum of the parts.
    """
    total = sum(ns for _, ns in parts)
    placed, done = [], 0
    for key, ns in parts:
        if ns <= 0:
            continue
        x, end = percent(done, 0, scale_ns), percent(done + ns, 0, scale_ns)
        width = round(end - x, 3)
        label = next((text for text in labels.get(key, ()) if fits(text, width)), "")
        placed.append(Segment(key, x, width, ns, ns / total, label, fits(label, width * _NARROW)))
        done += ns
    return placed


def fits(text: str, width: float) -> bool:
    """Whether a label fits into `width` percent of the page with a little room at both ends."""
    return len(text) + 2 <= width * _CHARACTERS_PER_PERCENT
