"""All jobs of a batch together: sums, what limits them, the worst, and those unlike the others."""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from nsys_triage.batch.columns import JobRow
from nsys_triage.batch.plan import Failure
from nsys_triage.batch.schemas import cause_ns
from nsys_triage.render.fleet import CauseSum, FailureGroup, FleetView, JobLine, LimiterSum, Outlier, RuleSum
from nsys_triage.result.model import CAUSES

WORST: Final = 300
OUTLIERS: Final = 40
LEAST_JOBS: Final = 8  # fewer say nothing of what is usual
FAR: Final = 5.0  # robust standard deviations from the median
_TO_SIGMA: Final = 1.4826  # of a normal distribution, from the median absolute deviation
_LEAST_SPREAD: Final = 0.01  # of a share: less is no spread worth the name


@dataclass(frozen=True, slots=True)
class _Measure:
    """Something that jobs are compared by, as a share (0..1 or a ratio less one); `sign` 1 where more is worse."""

    name: str
    sign: int


MEASURES: Final = (
    _Measure("busy share of GPU time", -1),
    _Measure("exposed communication, share of GPU time", 1),
    _Measure("p95 of steps over their median", 1),
    _Measure("waiting for other ranks, share of collectives", 1),
)


@dataclass(frozen=True, slots=True)
class _Line:
    """What is kept of a job: little, for ten thousand of them."""

    line: JobLine
    values: tuple[float | None, ...]  # by MEASURES


class Fleet:
    """The sums over jobs as they are added one by one."""

    def __init__(self) -> None:
        self._causes: Counter[str] = Counter()
        self._limiters: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])  # jobs, at stake, span
        self._rules: dict[str, list[int]] = defaultdict(lambda: [0, 0])  # jobs, high ones
        self._span_ns = 0
        self._unsplit_ns = 0
        self._gpus = 0
        self._files = 0
        self._copies = 0
        self._lines: list[_Line] = []

    def add(self, row: JobRow) -> None:
        """One job."""
        result = row.result
        span = sum(gpu.span_ns for gpu in result.gpus)
        self._files += len(row.job.inputs)
        self._copies += len(row.job.also)
        self._gpus += len(result.gpus)
        self._span_ns += span
        for gpu in result.gpus:
            split = {cause: cause_ns([gpu], cause) for cause in CAUSES}
            if None in split.values():
                self._unsplit_ns += gpu.span_ns
            self._causes.update({cause: ns for cause, ns in split.items() if ns})
        for rule, severity in {finding.rule: finding.severity for finding in result.findings}.items():
            self._rules[rule][0] += 1
            self._rules[rule][1] += severity == "high"
        if result.verdict.limiter is not None:
            sums = self._limiters[result.verdict.limiter]
            sums[0] += 1
            sums[1] += row.at_stake_ns
            sums[2] += span
        self._lines.append(_Line(_line(row, span), _values(row, span)))

    def view(self, failures: Sequence[Failure], tool_version: str, jobs_folder: str) -> FleetView:
        """What the page shows: bounded, whatever the number of jobs."""
        worst = heapq.nsmallest(
            WORST,
            (kept.line for kept in self._lines),
            key=lambda line: (-line.at_stake_ns, line.label, line.name),
        )
        cannot = [kept.line for kept in self._lines if kept.line.limiter is None]
        return FleetView(
            tool_version=tool_version,
            jobs_folder=jobs_folder,
            jobs=len(self._lines),
            files=self._files,
            copies=self._copies,
            gpus=self._gpus,
            cannot_judge=len(cannot),
            span_ns=self._span_ns,
            unsplit_ns=self._unsplit_ns,
            causes=[CauseSum(cause, self._causes[cause]) for cause in CAUSES if self._causes[cause]],
            limiters=sorted(
                (LimiterSum(name, *sums) for name, sums in self._limiters.items()),
                key=lambda row: (-row.at_stake_ns, -row.jobs, row.limiter),
            ),
            rules=sorted(
                (RuleSum(rule, *sums) for rule, sums in self._rules.items()),
                key=lambda row: (-row.jobs, row.rule),
            ),
            worst=[line for line in worst if line.limiter is not None],
            outliers=outliers(self._lines),
            cannot=cannot[:WORST],
            failures=_groups(failures),
        )


def _line(row: JobRow, span: int) -> JobLine:
    result = row.result
    busy = sum(gpu.busy_ns for gpu in result.gpus)
    return JobLine(
        name=row.job.name,
        label=row.job.label,
        limiter=result.verdict.limiter,
        sentence=result.verdict.sentence,
        next_action=result.verdict.next_action,
        gpus=len(result.gpus),
        ranks=len(row.job.inputs) if len(row.job.inputs) > 1 else None,
        model=next((gpu.name for gpu in result.gpus if gpu.name), None),
        span_ns=span,
        busy_share=busy / span if span else None,
        at_stake_ns=row.at_stake_ns,
        also=len(row.job.also),
        rules=sorted({finding.rule for finding in result.findings}),
    )


def _values(row: JobRow, span: int) -> tuple[float | None, ...]:
    result = row.result
    if not span:
        return (None,) * len(MEASURES)
    busy = sum(gpu.busy_ns for gpu in result.gpus) / span
    exposed = sum(gpu.exposed_communication_ns for gpu in result.gpus) / span
    steps, collectives = result.steps, result.collectives
    p50, p95 = getattr(steps, "p50_ns", None), getattr(steps, "p95_ns", None)
    many = (getattr(steps, "count", 0) or 0) >= LEAST_JOBS
    return (
        busy,
        exposed if getattr(collectives, "count", 0) else None,
        p95 / p50 - 1 if p50 and p95 and many else None,
        getattr(collectives, "wait_share", None),
    )


def outliers(lines: Sequence[_Line]) -> list[Outlier]:
    """Jobs that are far from the median of all on the bad side, the farthest first, each once per measure.

    Far is five times the median absolute deviation, scaled to a standard deviation (Leys et al. 2013); measures that
    fewer than eight jobs have are left out.
    """
    found = []
    for index, measure in enumerate(MEASURES):
        known = [
            (kept, value)
            for kept in lines
            if (value := kept.values[index]) is not None and math.isfinite(value)
        ]
        if len(known) < LEAST_JOBS:
            continue
        middle = median(value for _, value in known)
        spread = max(_TO_SIGMA * median(abs(value - middle) for _, value in known), _LEAST_SPREAD)
        for kept, value in known:
            distance = measure.sign * (value - middle) / spread
            if distance > FAR:
                found.append(Outlier(kept.line.name, kept.line.label, measure.name, value, middle, distance))
    found.sort(key=lambda row: (-row.distance, row.label, row.name, row.measure))
    return found[:OUTLIERS]


def _groups(failures: Sequence[Failure]) -> list[FailureGroup]:
    """Failures by kind, those with most inputs first, unfinished files last."""
    kinds: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        kinds[failure.kind].append(failure)
    return [
        FailureGroup(kind, len(rows), [(row.input, row.reason) for row in rows])
        for kind, rows in sorted(
            kinds.items(), key=lambda item: (item[0] == "unfinished", -len(item[1]), item[0])
        )
    ]
