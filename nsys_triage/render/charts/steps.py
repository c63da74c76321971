"""Duration by step, each bar stacked by what the GPU did; of very many, neighbours share a bar."""

from collections.abc import Sequence
from dataclasses import dataclass

from nsys_triage.render.charts import MAX_MARKS
from nsys_triage.render.charts.scale import Tick, duration_ticks, percent

PLOT_HEIGHT = 170
MOST_BARS = 180


@dataclass(frozen=True, slots=True)
class StepParts:
    """One step: its number, duration, state, and the parts `(key, ns)` of its duration in drawing order."""

    index: int
    duration_ns: int
    state: str
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar; vertical numbers in percent of the plot's height, from its top."""

    key: str
    y: float
    height: float
    ns: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One step, or several in a row: then `duration_ns` and the parts are those of the longest."""

    first: int
    last: int
    x: float
    width: float
    top: float
    state: str
    duration_ns: int
    cut: bool
    parts: list[Part]

    @property
    def middle(self) -> float:
        """The bar's middle in percent of the width."""
        return round(self.x + self.width / 2, 3)


@dataclass(frozen=True, slots=True)
class StepChart:
    """Bars over an axis of durations up to `top_ns`; longer ones are cut there and say so."""

    bars: list[Bar]
    top_ns: int
    ticks: list[Tick]
    median: float | None
    per_bar: int
    height: int = PLOT_HEIGHT


def step_chart(steps: Sequence[StepParts], p50_ns: int | None, p95_ns: int | None) -> StepChart | None:
    """The chart; None without steps. Steps over three times the 95th percentile are cut at that height."""
    if not steps:
        return None
    top = max(step.duration_ns for step in steps)
    if p95_ns and top > 3 * p95_ns:
        top = 3 * p95_ns
    top = max(1, top)
    kinds = max((len(step.parts) for step in steps), default=1) or 1
    most = max(1, min(MOST_BARS, MAX_MARKS // (kinds + 1)))
    per_bar = -(-len(steps) // most)
    groups = [steps[place : place + per_bar] for place in range(0, len(steps), per_bar)]
    pitch = 100 / len(groups)
    bars = [_bar(group, number * pitch, pitch, top) for number, group in enumerate(groups)]
    median = round(100 - percent(p50_ns, 0, top), 3) if p50_ns else None
    ticks = [Tick(round(100 - tick.place, 3), tick.label) for tick in duration_ticks(top, 4) if tick.place]
    return StepChart(bars, top, ticks, median, per_bar)


def _bar(group: Sequence[StepParts], x: float, pitch: float, top_ns: int) -> Bar:
    longest = max(group, key=lambda step: (step.duration_ns, -step.index))
    states = {step.state for step in group}
    state = next((s for s in ("slow", "startup") if s in states), "steady")
    gap = 0.15 * pitch
    parts, done = [], 0
    for key, ns in longest.parts:
        if ns <= 0 or done >= top_ns:
            continue
        upper = percent(done + ns, 0, top_ns)
        parts.append(Part(key, round(100 - upper, 3), round(upper - percent(done, 0, top_ns), 3), ns))
        done += ns
    return Bar(
        first=group[0].index,
        last=group[-1].index,
        x=round(x + gap / 2, 3),
        width=round(pitch - gap, 3),
        top=round(100 - percent(longest.duration_ns, 0, top_ns), 3),
        state=state,
        duration_ns=longest.duration_ns,
        cut=longest.duration_ns > top_ns,
        parts=parts,
    )
