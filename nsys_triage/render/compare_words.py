"""Changes as text: signs, percentages beyond 100 %, intervals that hold their value."""

from collections.abc import Sequence
from typing import Final

from nsys_triage import units
from nsys_triage.result.compare_model import CauseChange, Side, SideSteps, TimeChange
from nsys_triage.result.model import Cause

_ONE_DECIMAL: Final = 0.001  # below it a share needs more digits to be more than nothing


def signed(ns: int) -> str:
    """A change of a time: `+3.1 ms`, `-2 us`, `0 ns`."""
    return f"{'+' if ns > 0 else '-' if ns < 0 else ''}{units.time(abs(ns))}"


def percent(share: float) -> str:
    """A share that may be above 1, without its sign: `15 %`, `150 %`, `0.042 %`."""
    size = abs(share)
    if size > 1:
        return f"{units.count(round(100 * size))} %"
    return units.share(size) if size >= _ONE_DECIMAL or not size else f"{units.ratio(100 * size)} %"


def signed_percent(share: float) -> str:
    """A change as a share: `+12 %`, `-3.1 %`, `+0.042 %`, `0 %`."""
    return f"{'+' if share > 0 else '-' if share < 0 else ''}{percent(share)}"


def share_range(low: float, high: float) -> str:
    """An interval of shares, both ends with their signs: `-3.9 % to -3.7 %`, `less than 0.1 % either way`.

    A time cannot fall by more than all of it, so an interval ends there.
    """
    low = max(low, -1.0)
    if -_ONE_DECIMAL < low <= 0 <= high < _ONE_DECIMAL:
        return "less than 0.1 % either way"
    return f"{signed_percent(low)} to {signed_percent(high)}"


def change_range(change: TimeChange, level: str = "95 % confidence") -> str:
    """The interval of a change as shares of before: `-3.0 % to +4.0 %, 95 % confidence`; `noise not known`."""
    if change.low_ns is None or change.high_ns is None or not change.before_ns:
        return "noise not known"
    return f"{share_range(change.low_ns / change.before_ns, change.high_ns / change.before_ns)}, {level}"


def certain(change: TimeChange) -> bool:
    """Whether the interval of a change leaves 0 out."""
    return (
        change.low_ns is not None and change.high_ns is not None and (change.low_ns > 0 or change.high_ns < 0)
    )


def by_step(causes: Sequence[CauseChange]) -> bool:
    """Whether all causes are known by step: then their parts add up to the step time."""
    return bool(causes) and all(cause.in_steps is not None for cause in causes)


def shown(causes: Sequence[CauseChange]) -> list[tuple[Cause, TimeChange]]:
    """The figure of each cause that is shown: in the steps where all are known by step, else of the window."""
    inside = by_step(causes)
    return [(c.cause, c.in_steps if inside and c.in_steps else c.total) for c in causes]


def steps_text(steps: SideSteps) -> str:
    """Steps with what their time is: `59 steps, mean 117 ms, median 22.9 ms`."""
    times = f"mean {units.time(steps.mean_ns)}, median {units.time(steps.p50_ns)}"
    return f"{units.plural(steps.count, 'step')}, {times}"


def side_text(side: Side) -> str:
    """What a side is, in a line: its steps, or the length of its window without any."""
    if side.steps:
        return steps_text(side.steps)
    return units.time(side.window.span_ns) if side.window else "not judged"
