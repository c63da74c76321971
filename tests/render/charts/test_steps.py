import pytest

from nsys_triage.render.charts import MAX_MARKS
from nsys_triage.render.charts.steps import MOST_BARS, StepParts, step_chart


def step(index: int, duration: int, state: str = "steady", busy: int = 0) -> StepParts:
    return StepParts(index, duration, state, (("busy", busy), ("launch", duration - busy)))


def test_bars_stand_on_the_axis_and_their_parts_are_stacked_from_below() -> None:
    chart = step_chart([step(3, 100, busy=25), step(4, 50, busy=50)], 50, 100)
    assert chart is not None
    first, second = chart.bars
    assert chart.top_ns == 100
    assert chart.median == 50
    assert (first.first, first.last, first.top, first.cut) == (3, 3, 0, False)
    assert [(p.key, p.y, p.height, p.ns) for p in first.parts] == [
        ("busy", 75, 25, 25),
        ("launch", 0, 75, 75),
    ]
    assert [(p.key, p.y, p.height) for p in second.parts] == [("busy", 50, 50)]
    # two bars of 50 percent each, of which 15 percent are gap
    assert (first.x, first.width, second.x) == (3.75, 42.5, 53.75)
    assert first.middle == 25


def test_very_long_steps_are_cut_at_three_times_the_95th_percentile() -> None:
    chart = step_chart([step(0, 10_000, "startup"), step(1, 100), step(2, 100)], 100, 100)
    assert chart is not None
    assert chart.top_ns == 300
    assert chart.bars[0].cut
    assert chart.bars[0].top == 0
    assert chart.bars[0].duration_ns == 10_000
    assert sum(p.height for p in chart.bars[0].parts) == pytest.approx(100)
    assert not chart.bars[1].cut


def test_of_many_steps_neighbours_share_a_bar_that_shows_the_longest() -> None:
    steps = [step(n, 100 + (50 if n == 37 else 0), "slow" if n == 37 else "steady") for n in range(10_000)]
    chart = step_chart(steps, 100, 100)
    assert chart is not None
    assert len(chart.bars) <= MOST_BARS
    assert sum(len(bar.parts) for bar in chart.bars) <= MAX_MARKS
    assert chart.per_bar == 56
    assert (chart.bars[0].first, chart.bars[0].last) == (0, 55)
    assert (chart.bars[0].state, chart.bars[0].duration_ns) == ("slow", 150)
    assert chart.bars[-1].last == 9_999
    assert chart.bars[1].state == "steady"


def test_no_steps_no_chart() -> None:
    assert step_chart([], None, None) is None


def test_steps_of_no_length_are_drawn() -> None:
    chart = step_chart([step(0, 0)], None, None)
    assert chart is not None
    assert chart.bars[0].parts == []
    assert chart.median is None
