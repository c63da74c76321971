"""How far a difference of means may come from noise: within a run by its steps, between runs by repeats."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

ROUNDS: Final = 2_000
FEWEST_STEPS: Final = 5
"""Of fewer steps nothing can be said of their scatter."""

# quantiles of Student's t by degrees of freedom (1 to 10, 12, 15, 20, 30, many), two-sided
_T_FREEDOM: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 1_000_000)
_T: Final = {
    0.95: (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.179, 2.131, 2.086, 2.042, 1.960),
    0.99: (63.66, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.055, 2.947, 2.845, 2.750, 2.576),
}  # fmt: skip


def t_quantile(level: float, freedom: int) -> float:
    """The two-sided quantile of Student's t, of the next lower tabulated degrees of freedom."""
    row = max((i for i, known in enumerate(_T_FREEDOM) if known <= freedom), default=0)
    return _T[level][row]


def mean(values: Sequence[float]) -> float:
    """The mean; 0 without values."""
    return math.fsum(values) / len(values) if values else 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of one run, one per step in order. `every`: of how many steps a listed one stands for the others.

    `marked` are values that are all listed, whatever `every` is: the slow steps of a long run.
    """

    values: Sequence[float]
    marked: Sequence[float] = ()
    every: float = 1.0

    @property
    def size(self) -> int:
        """How many steps are listed."""
        return len(self.values) + len(self.marked)

    @property
    def weight(self) -> float:
        """How many steps the sample stands for."""
        return len(self.values) * self.every + len(self.marked)

    @property
    def total(self) -> float:
        """The sum over the steps that it stands for."""
        return math.fsum(self.values) * self.every + math.fsum(self.marked)

    @property
    def mean(self) -> float:
        """The mean over those steps; 0 without any."""
        return self.total / self.weight if self.size else 0.0


def replicates(sample: Sample, seed: str) -> list[float] | None:
    """ROUNDS means of the sample drawn anew; None where it has fewer than FEWEST_STEPS.

    Blocks of the cube root of the number of steps in a row are drawn (circular block bootstrap, Politis and Romano
    1992), since a slow step is often followed by a fast one. Deviations are widened for small samples, which the
    bootstrap takes for surer than they are.
    """
    if sample.size < FEWEST_STEPS:
        return None
    draw = random.Random(seed)  # noqa: S311 - no secret; the same input has to give the same interval
    parts = [
        (_block_means(part, draw), weight * len(part))
        for part, weight in ((sample.values, sample.every), (sample.marked, 1.0))
        if part
    ]
    centre = sample.mean
    length = _block_length(sample.size)
    wider = 1 + 3 * length / sample.size
    total = sum(weight for _, weight in parts)
    drawn = [sum(means[i] * weight for means, weight in parts) / total for i in range(ROUNDS)]
    return [centre + wider * (value - centre) for value in drawn]


def _block_length(count: int) -> int:
    return max(1, round(math.cbrt(count)))


def _block_means(values: Sequence[float], draw: random.Random) -> list[float]:
    length = _block_length(len(values))
    reached = [0.0, *accumulate([*values, *values[: length - 1]])]
    sums = [reached[i + length] - reached[i] for i in range(len(values))]
    blocks = -(-len(values) // length)
    return [math.fsum(draw.choices(sums, k=blocks)) / (blocks * length) for _ in range(ROUNDS)]


@dataclass(frozen=True, slots=True)
class Interval:
    """Of the change of a mean."""

    low: float
    high: float


def interval(before: Sequence[Sample], after: Sequence[Sample], level: float, seed: str) -> Interval | None:
    """The interval of `after - before`, each the mean of its runs' means; None where no noise is known.

    The wider of two: from the scatter of the steps (each run drawn anew), and, where a side has repeats, from the
    scatter between runs (Student's t, one variance for both sides).
    """
    found = [within for within in (_within(before, after, level, seed),) if within]
    found += [i for i in (between([s.mean for s in before], [s.mean for s in after], level),) if i]
    return max(found, key=lambda i: i.high - i.low) if found else None


def _within(before: Sequence[Sample], after: Sequence[Sample], level: float, seed: str) -> Interval | None:
    sides = []
    for name, samples in (("before", before), ("after", after)):
        drawn = [replicates(sample, f"{seed} {name} {number}") for number, sample in enumerate(samples)]
        known = [means for means in drawn if means is not None]
        if not known or len(known) < len(drawn):
            return None
        sides.append([mean(values) for values in zip(*known, strict=True)])
    changes = sorted(a - b for b, a in zip(*sides, strict=True))
    tail = round((1 - level) / 2 * ROUNDS)
    return Interval(changes[tail], changes[-1 - tail])


def between(before: Sequence[float], after: Sequence[float], level: float) -> Interval | None:
    """The interval of the change of the mean from one value per run; None where neither side has repeats."""
    freedom = len(before) + len(after) - 2
    if freedom < 1 or not before or not after:
        return None
    squares = sum((v - mean(side)) ** 2 for side in (before, after) for v in side)
    half = t_quantile(level, freedom) * math.sqrt(squares / freedom * (1 / len(before) + 1 / len(after)))
    change = mean(after) - mean(before)
    return Interval(change - half, change + half)
