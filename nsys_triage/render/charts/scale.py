"""Places on a linear axis, and the round values that are written at it."""

import math
from dataclasses import dataclass

from nsys_triage import units


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on an axis, in percent of its length."""

    place: float
    label: str


def percent(value: float, low: float, high: float) -> float:
    """Where `value` lies between `low` (0) and `high` (100), cut to that range; 0 on an empty axis."""
    if high <= low:
        return 0.0
    return round(min(100.0, max(0.0, 100 * (value - low) / (high - low))), 3)


def round_step(span: float, parts: int) -> float:
    """The smallest of 1, 2, 5 x 10^n that cuts `span` into at most `parts` parts; 1 for an empty span."""
    if span <= 0 or parts <= 0:
        return 1.0
    raw = span / parts
    magnitude = 10.0 ** math.floor(math.log10(raw))
    return next(magnitude * m for m in (1, 2, 5, 10) if magnitude * m >= raw * (1 - 1e-9))


def round_values(low: float, high: float, parts: int) -> list[float]:
    """Round values from `low` to `high`, both included where round, ascending; at most `parts` + 1."""
    if high < low:
        return []
    step = round_step(high - low, parts)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def duration_ticks(high_ns: int, parts: int = 5) -> list[Tick]:
    """Ticks of an axis of durations that begins at 0 and ends at `high_ns`."""
    values = round_values(0, high_ns, parts)
    return [Tick(percent(value, 0, high_ns), units.time(value) if value else "0") for value in values]


def clock_ticks(start_ns: int, end_ns: int, parts: int = 8) -> list[Tick]:
    """Ticks of an axis of the capture's clock, in seconds with as many decimals as the step needs."""
    values = round_values(start_ns, end_ns, parts)
    decimals = min(9, max(0, 9 - math.floor(math.log10(round_step(end_ns - start_ns, parts)) + 1e-9)))
    return [Tick(percent(v, start_ns, end_ns), f"{v / 1e9:.{decimals}f} s") for v in values]
