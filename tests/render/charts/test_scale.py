import pytest

from nsys_triage.render.charts.scale import (
    Tick,
    clock_ticks,
    duration_ticks,
    percent,
    round_step,
    round_values,
)


def test_percent_is_cut_to_the_axis() -> None:
    assert percent(25, 0, 200) == 12.5
    assert percent(-5, 0, 10) == 0
    assert percent(50, 0, 10) == 100
    assert percent(1, 0, 3) == 33.333
    assert percent(7, 7, 7) == 0


@pytest.mark.parametrize(
    ("span", "parts", "step"), [(10, 5, 2), (10.1, 5, 5), (9, 10, 1), (0.03, 5, 0.01), (0, 5, 1)]
)
def test_round_steps(span: float, parts: int, step: float) -> None:
    assert round_step(span, parts) == pytest.approx(step)


def test_round_values_include_round_ends() -> None:
    assert round_values(0, 10, 5) == [0, 2, 4, 6, 8, 10]
    assert round_values(3, 11, 4) == [4, 6, 8, 10]
    assert round_values(5, 1, 4) == []


def test_duration_ticks_begin_at_zero() -> None:
    second = 1_000_000_000
    assert duration_ticks(10 * second, 2) == [Tick(0, "0"), Tick(50, "5 s"), Tick(100, "10 s")]


def test_clock_ticks_have_the_decimals_of_their_step() -> None:
    assert clock_ticks(4_000_000_000, 14_000_000_000, 5) == [
        Tick(0, "4 s"), Tick(20, "6 s"), Tick(40, "8 s"), Tick(60, "10 s"), Tick(80, "12 s"), Tick(100,
        "14 s"),
    ]  # fmt: skip
    assert [t.label for t in clock_ticks(155_400_000_000, 155_600_000_000, 2)] == [
        "155.4 s",
        "155.5 s",
        "155.6 s",
    ]
