"""Kernels of both sides matched by name and launch shape: faster, slower, more or fewer calls, new, gone."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from nsys_triage.compare.noise import between, mean, t_quantile
from nsys_triage.compare.numbers import Numbers, ShapeKey
from nsys_triage.metrics.kernels_by_shape import pooled
from nsys_triage.result.compare_model import (
    KernelChange,
    KernelChanges,
    KernelFigures,
    KernelSums,
    TimeChange,
)
from nsys_triage.result.model import KernelShape

FEWEST_LAUNCHES: Final = 5
LEAST_CHANGE: Final = 0.05
"""Of a launch's time. The same program's kernels differ by 1 to 2 % from run to run on one GPU: its clock,
and single short ones by up to 6 %."""
LEAST_CHANGE_NS: Final = 64
"""Two steps of the GPU's clock for time stamps."""
DEVIATIONS: Final = 4.0
"""Of the standard error: hundreds of kernels are tested at once, and one in 16,000 is beyond that by chance."""
CALLS_CHANGE: Final = 0.02
CALLS_CHANGE_WITHOUT_STEPS: Final = 0.05

Calls = Literal["same", "more", "fewer", "new", "gone"]


@dataclass
class _Side:
    """One kernel on one side, all runs."""

    runs: list[KernelShape] = field(default_factory=list)
    shapes: int = 0

    def figures(self, units: float) -> KernelFigures | None:
        """Per basis and GPU, `units` being the GPUs times steps or seconds of all runs; None where it did not run."""
        if not self.runs:
            return None
        all_runs = pooled(self.runs)
        return KernelFigures(
            count=all_runs.count,
            calls=round(all_runs.count / units, 4),
            total_ns=round(all_runs.total_ns / units),
            mean_ns=round(all_runs.total_ns / all_runs.count),
            p50_ns=all_runs.p50_ns,
        )


@dataclass
class _Pair:
    kernel_class: str
    before: _Side = field(default_factory=_Side)
    after: _Side = field(default_factory=_Side)


@dataclass(frozen=True, slots=True)
class Scale:
    """What counts and times are divided by, and what counts may differ by at the window's edges."""

    basis: Literal["step", "second"]
    before: float  # GPUs times steps or seconds, all runs
    after: float
    before_gpus: int
    after_gpus: int


def compare_kernels(before: Sequence[Numbers], after: Sequence[Numbers], scale: Scale) -> KernelChanges:
    """All kernels of both sides; rows by how much their time per basis changed, then name and shape."""
    by_name_only = not all(run.lists_all_kernels for run in (*before, *after))
    pairs = _pairs(before, after, by_name_only)
    ratio = 1.0 if scale.basis == "step" else work_ratio(before, after, scale)
    rows = [_row(key, pair, scale, ratio) for key, pair in pairs.items()]
    rows.sort(key=lambda row: (-abs(row.total_change_ns), row.name, row.grid or [], row.block or []))
    return KernelChanges(
        sums=_sums(rows),
        same_launches=_same_launches(pairs.values(), scale),
        only_before_share=_alone_share((row.before, row.after) for row in rows),
        only_after_share=_alone_share((row.after, row.before) for row in rows),
        rows=rows,
        not_listed_before=sum(run.not_listed for run in before),
        not_listed_after=sum(run.not_listed for run in after),
    )


def _alone_share(rows: Iterable[tuple[KernelFigures | None, KernelFigures | None]]) -> float:
    """Of one side's kernel time, what is of kernels that the other lacks; rows are (own, other). 0 without kernels."""
    known = [(own.total_ns, other is None) for own, other in rows if own]
    whole = sum(ns for ns, _ in known)
    return round(sum(ns for ns, alone in known if alone) / whole, 6) if whole else 0.0


def work_ratio(before: Sequence[Numbers], after: Sequence[Numbers], scale: Scale) -> float:
    """By how much the calls per second of the window differ: the median over common kernels, weighted by calls."""
    counts = [_counts(before), _counts(after)]
    ratios = sorted(
        (counts[1][name] / scale.after / (counts[0][name] / scale.before), counts[0][name])
        for name in counts[0].keys() & counts[1].keys()
    )
    half, reached = sum(weight for _, weight in ratios) / 2, 0
    for ratio, weight in ratios:
        reached += weight
        if reached >= half:
            return ratio
    return 1.0


def _counts(runs: Sequence[Numbers]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for run in runs:
        for name, count in run.launches_by_name.items():
            counts[name] = counts.get(name, 0) + count
    return counts


def _pairs(before: Sequence[Numbers], after: Sequence[Numbers], by_name_only: bool) -> dict[ShapeKey, _Pair]:
    """Kernels by name and shape. Shapes that one side alone has are one row per name where both sides have such."""
    keys = [
        {key for run in side for key in run.shapes} if not by_name_only else set() for side in (before, after)
    ]
    common = keys[0] & keys[1]
    alone = [{name for name, _, _ in side - common} for side in keys]
    merged = alone[0] & alone[1]
    pairs: dict[ShapeKey, _Pair] = {}
    for which, runs in (("before", before), ("after", after)):
        for run in runs:
            own: dict[ShapeKey, tuple[str, list[KernelShape]]] = {}
            for key, (kernel_class, shape) in run.shapes.items():
                whole = by_name_only or (key not in common and key[0] in merged)
                own.setdefault((key[0], (), ()) if whole else key, (kernel_class, []))[1].append(shape)
            for key, (kernel_class, shapes) in own.items():
                side: _Side = getattr(pairs.setdefault(key, _Pair(kernel_class)), which)
                side.runs.append(pooled(shapes))
                side.shapes = max(side.shapes, len(shapes))
    return pairs


def _row(key: ShapeKey, pair: _Pair, scale: Scale, ratio: float) -> KernelChange:
    name, grid, block = key
    before, after = pair.before.figures(scale.before), pair.after.figures(scale.after)
    duration, low, high, share = None, None, None, None
    if before and after:
        duration, low, high = _duration(pair, before, after, reshaped=not grid)
        share = after.mean_ns / before.mean_ns - 1 if before.mean_ns else None
    return KernelChange(
        name=name,
        kernel_class=pair.kernel_class,
        grid=list(grid) or None,
        block=list(block) or None,
        match="none" if before is None or after is None else "shape" if grid else "name",
        calls=_calls(before, after, scale, ratio),
        duration=duration,
        before=before,
        after=after,
        mean_change_share=_rounded(share),
        low_share=_rounded(low),
        high_share=_rounded(high),
        total_change_ns=(after.total_ns if after else 0) - (before.total_ns if before else 0),
    )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 6)


def _calls(before: KernelFigures | None, after: KernelFigures | None, scale: Scale, ratio: float) -> Calls:
    """How often it is called per basis. One step's calls may fall on either side of a window's edge."""
    if before is None:
        return "new"
    if after is None:
        return "gone"
    expected = before.calls * ratio
    if scale.basis == "step":
        edges = 1 / (scale.before / scale.before_gpus) + 1 / (scale.after / scale.after_gpus)
        most = max(CALLS_CHANGE, edges) * expected + 0.5 * edges
    else:
        edges = 2 / scale.before + 2 / scale.after
        most = CALLS_CHANGE_WITHOUT_STEPS * expected + edges
    difference = after.calls - expected
    if abs(difference) <= most:
        return "same"
    return "more" if difference > 0 else "fewer"


def _error(shape: KernelShape) -> float:
    """The standard error of the mean of its launches."""
    return shape.stddev_ns / math.sqrt(max(1, shape.count - 1))


def _median_error(shape: KernelShape) -> float:
    """The standard error of the median, from the quartiles as if the middle of the distribution were normal."""
    return 0.93 * (shape.p75_ns - shape.p25_ns) / math.sqrt(shape.count)


def _duration(
    pair: _Pair, before: KernelFigures, after: KernelFigures, reshaped: bool
) -> tuple[Literal["same", "faster", "slower", "inconclusive"], float | None, float | None]:
    """Whether a launch takes longer or shorter, and the interval of the change of its mean as a share of before.

    It does where the mean differs by LEAST_CHANGE, and either the mean or the median by more than DEVIATIONS of its
    standard error. The mean alone hangs on a few outliers, the median alone on which of two modes is the larger.
    """
    a, b = pooled(pair.after.runs), pooled(pair.before.runs)
    change = after.mean_ns - before.mean_ns
    fewest = min(a.count, b.count)
    if not before.mean_ns or fewest < FEWEST_LAUNCHES:
        return "inconclusive", None, None
    few = 1 + 5 / fewest
    half = few * DEVIATIONS * math.hypot(_error(a), _error(b))
    per_run = [[s.total_ns / s.count for s in side.runs] for side in (pair.before, pair.after)]
    runs = between(per_run[0], per_run[1], 0.99)
    half = max(half, (runs.high - runs.low) / 2 if runs else 0)
    low, high = (change - half) / before.mean_ns, (change + half) / before.mean_ns
    least = max(LEAST_CHANGE * before.mean_ns, LEAST_CHANGE_NS)
    median_change = a.p50_ns - b.p50_ns
    # several shapes in one row have no median that means anything
    by_median = not reshaped and runs is None and median_change * change > 0 and abs(median_change) >= least
    by_median = by_median and abs(median_change) > few * DEVIATIONS * math.hypot(
        _median_error(a), _median_error(b)
    )
    if abs(change) < least:
        return "same", low, high
    if abs(change) > half or by_median:
        return ("slower" if change > 0 else "faster"), low, high
    return ("inconclusive" if half > 0.2 * before.mean_ns else "same"), low, high


def _sums(rows: Iterable[KernelChange]) -> KernelSums:
    sums = KernelSums()
    for row in rows:
        states = {row.calls, row.duration or "same"}
        if states == {"same"}:
            sums.same += 1
        for state in states - {"same"}:
            setattr(sums, state, getattr(sums, state) + 1)
    return sums


def _same_launches(pairs: Iterable[_Pair], scale: Scale) -> TimeChange | None:
    """The time of the launches that both sides have, as often as before: what the kernels' own speed changed.

    The interval is two standard errors of the means, or Student's t between runs where it is wider. None where no
    kernel is common.
    """
    common = [pair for pair in pairs if pair.before.runs and pair.after.runs]
    if not common:
        return None
    weights = [sum(s.count for s in pair.before.runs) / scale.before for pair in common]
    means = [[_means(pair.before), _means(pair.after)] for pair in common]
    before = math.fsum(w * m[0] for w, m in zip(weights, means, strict=True))
    after = math.fsum(w * m[1] for w, m in zip(weights, means, strict=True))
    squares = math.fsum(
        (w * few_error(pair.before)) ** 2 + (w * few_error(pair.after)) ** 2
        for w, pair in zip(weights, common, strict=True)
    )
    half = 2 * math.sqrt(squares)
    runs = [min(len(p.before.runs) for p in common), min(len(p.after.runs) for p in common)]
    if sum(runs) > 2:
        totals = [
            [
                math.fsum(
                    w * side.runs[i].total_ns / side.runs[i].count
                    for w, side in zip(weights, sides, strict=True)
                )
                for i in range(count)
            ]
            for count, sides in zip(
                runs, ([p.before for p in common], [p.after for p in common]), strict=True
            )
        ]
        found = between(totals[0], totals[1], 0.95)
        half = max(half, (found.high - found.low) / 2 if found else 0)
    change = after - before
    least = LEAST_CHANGE * before
    outcome: Literal["lower", "higher", "no_change", "inconclusive"] = "no_change"
    if abs(change) >= least:
        outcome = "inconclusive" if abs(change) <= half else "higher" if change > 0 else "lower"
    return TimeChange(
        before_ns=round(before),
        after_ns=round(after),
        change_ns=round(after) - round(before),
        change_share=_rounded(change / before) if before else None,
        low_ns=round(change - half),
        high_ns=round(change + half),
        outcome=outcome,
    )


def few_error(side: _Side) -> float:
    """The standard error of a kernel's mean; its whole mean where it was launched once, which says nothing."""
    shape = pooled(side.runs)
    if shape.count < 2:
        return shape.total_ns / shape.count
    return _error(shape) * t_quantile(0.95, shape.count - 1) / 1.96


def _means(side: _Side) -> float:
    return mean([s.total_ns / s.count for s in side.runs])
