"""What a rule is, and the ways in which it can end.

The docstring of a rule's module is its page: a first line that a user reads, then `What it means`,
`What to do next` and `When it is wrong`. `explain`, the report, the table in the README and `rules` are made
from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nsys_triage.result.model import Cause, Evidence, Interval, Level, Stake, Unit

if TYPE_CHECKING:
    from nsys_triage.rules.context import Context

SECTIONS: Final = ("What it means", "What to do next", "When it is wrong")
CAUSE_SHARE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that decides, with its unit and why it is what it is."""

    default: float
    unit: Unit
    why: str


CAUSE_THRESHOLD: Final = Threshold(
    CAUSE_SHARE, "share", "of the span, that this cause must reach by itself: less is not worth a change"
)


@dataclass(frozen=True, slots=True)
class Found:
    """A finding: what was found, what is at stake, and what to do."""

    title: str
    stake: Stake
    causes: tuple[Cause, ...]
    evidence: tuple[Evidence, ...]
    actions: tuple[str, ...]
    caveat: str
    confidence: Level = "high"
    where: Interval | None = None
    gpu: str | None = None


@dataclass(frozen=True, slots=True)
class Passed:
    """Looked at and fine; the note holds the number that was measured."""

    note: str


@dataclass(frozen=True, slots=True)
class NotRun:
    """Could not be looked at: what is missing, and the `nsys profile` option that records it ("" where none would)."""

    missing: str
    option: str = ""


Outcome = Found | Passed | NotRun


@dataclass(frozen=True, slots=True)
class Page:
    """The parts of a rule's docstring."""

    summary: str
    meaning: str
    actions: str
    caveat: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One check. `needs` are names of `context.NEEDS`: where one is missing the rule is not run."""

    id: str
    title: str
    check: Callable[[Context], Outcome]
    page: Page
    needs: tuple[str, ...] = ()
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    job: bool = False  # looks at all ranks together, not at one trace


def page_of(docstring: str | None) -> Page:
    """The page in a rule module's docstring.

    Raises ValueError where a part is missing or empty, or where more than one line stands before the parts.
    """
    text = (docstring or "").strip()
    heads = [re.search(rf"^{re.escape(section)}\s*$", text, re.MULTILINE) for section in SECTIONS]
    if not text or any(head is None for head in heads):
        raise ValueError(f"a rule's docstring needs a first line and the parts {', '.join(SECTIONS)}")
    spots = [head for head in heads if head is not None]
    bounds = [*[head.start() for head in spots[1:]], len(text)]
    parts = [text[head.end() : end].strip() for head, end in zip(spots, bounds, strict=True)]
    if [head.start() for head in spots] != sorted(head.start() for head in spots) or not all(parts):
        raise ValueError("the parts of a rule's docstring are out of order, or one is empty")
    summary = text[: spots[0].start()].strip()
    if not summary or "\n" in summary:
        raise ValueError(f"one line stands before {SECTIONS[0]!r} in a rule's docstring")
    return Page(summary, *parts)


def severity_of(share: float) -> Level:
    """How severe a finding is: high from 15 % of the span at stake, medium from 5 %, else low."""
    return "high" if share >= 0.15 else "medium" if share >= CAUSE_SHARE else "low"


def number(label: str, value: float | str, unit: Unit) -> Evidence:
    """One number that a finding rests on; times, sizes and counts as integers, shares within 0..1.

    Raises ValueError for a number that is none or without end.
    """
    if not isinstance(value, str) and not math.isfinite(value):
        raise ValueError(f"{label} is {value}")
    if isinstance(value, float) and unit in ("ns", "bytes", "count"):
        value = round(value)
    if not isinstance(value, str) and unit == "share":
        value = round(min(1.0, max(0.0, value)), 6)
    return Evidence(label=label, value=value, unit=unit)
