import random

import pytest

from nsys_triage.compare.noise import FEWEST_STEPS, Sample, between, interval, replicates, t_quantile


def draws(seed: int, count: int, centre: float, spread: float) -> list[float]:
    draw = random.Random(seed)  # noqa: S311 no secret
    return [draw.gauss(centre, spread) for _ in range(count)]


def test_the_interval_covers_the_true_change_about_as_often_as_it_says() -> None:
    inside = 0
    for seed in range(120):
        before, after = Sample(draws(seed, 30, 100, 10)), Sample(draws(1_000 + seed, 30, 105, 10))
        found = interval([before], [after], 0.95, "test")
        assert found is not None
        inside += found.low <= 5 <= found.high
    assert inside >= 0.91 * 120
    # and is no wider than it has to be: 1.96 * 10 * sqrt(2 / 30) is 5.1
    assert found is not None
    assert found.high - found.low < 3 * 5.1


def test_the_same_input_gives_the_same_interval() -> None:
    sample = Sample(draws(1, 20, 10, 1))
    assert replicates(sample, "a") == replicates(sample, "a")
    assert replicates(sample, "a") != replicates(sample, "b")


def test_steps_that_alternate_are_not_noise() -> None:
    """Blocks see that a slow step follows a fast one; drawn one by one the interval would be twice as wide."""
    sample = Sample([8.0, 230.0] * 30)
    found = interval([sample], [sample], 0.95, "test")
    assert found is not None
    assert found.high - found.low < 2 * 1.96 * 111 * (2 / 60) ** 0.5


def test_too_few_steps_have_no_interval() -> None:
    few, enough = Sample([1.0] * (FEWEST_STEPS - 1)), Sample([1.0] * FEWEST_STEPS)
    assert interval([few], [enough], 0.95, "x") is None
    assert interval([enough], [few], 0.95, "x") is None
    assert interval([enough], [enough], 0.95, "x") is not None


def test_listed_steps_stand_for_those_left_out() -> None:
    sample = Sample([1.0] * 10, [5.0], every=10.0)
    assert (sample.size, sample.weight, sample.mean) == (11, 101, pytest.approx(105 / 101))


def test_between_runs() -> None:
    assert between([1.0], [2.0], 0.95) is None
    found = between([10.0, 12.0], [14.0, 16.0], 0.95)
    assert found is not None
    # pooled variance 2, two degrees of freedom: 4 +- 4.303 * sqrt(2 * (1/2 + 1/2))
    assert (found.low, found.high) == (pytest.approx(4 - 4.303 * 2**0.5), pytest.approx(4 + 4.303 * 2**0.5))


@pytest.mark.parametrize(("freedom", "wanted"), [(1, 12.71), (11, 2.228), (40, 2.042), (2_000_000, 1.960)])
def test_t_quantiles(freedom: int, wanted: float) -> None:
    assert t_quantile(0.95, freedom) == wanted
