"""The page on all jobs of a batch: sums, limiters, the worst jobs, outliers and failures, of bounded size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nsys_triage import units
from nsys_triage.render import templates, text, words
from nsys_triage.render.charts.bars import Segment, segments
from nsys_triage.render.views.lead import limiter_name
from nsys_triage.result.model import BUSY_CAUSES

TEMPLATE: Final = "fleet.html.j2"
MOST_FAILURES: Final = 400
_LONGEST_LABEL: Final = 90
_SECOND_NS: Final = 1_000_000_000
_USEFUL: Final = ("compute", "graph")  # of the busy causes; the others are waiting or moving of data
FAILURE_NAMES: Final = {
    "input": "cannot be read",
    "export": "cannot be exported",
    "window": "nothing in the window",
    "memory": "over the memory budget",
    "timeout": "over the time budget",
    "crashed": "process killed or crashed",
    "internal": "internal error",
    "unfinished": "skipped: still being written",
}


@dataclass(frozen=True, slots=True)
class CauseSum:
    """GPU time of all jobs under one cause of the ledger."""

    cause: str
    ns: int


@dataclass(frozen=True, slots=True)
class LimiterSum:
    """The jobs with one limiter: how many, their GPU time at stake, and all their GPU time."""

    limiter: str
    jobs: int
    at_stake_ns: int
    span_ns: int


@dataclass(frozen=True, slots=True)
class RuleSum:
    """How many jobs have a finding of a rule, and how many a severe one."""

    rule: str
    jobs: int
    high: int


@dataclass(frozen=True, slots=True)
class JobLine:
    """One job in a table; its report is JOBS_FOLDER/NAME.html."""

    name: str
    label: str
    limiter: str | None
    sentence: str
    next_action: str
    gpus: int
    ranks: int | None
    model: str | None
    span_ns: int
    busy_share: float | None
    at_stake_ns: int
    also: int
    rules: Sequence[str] = ()  # that found something


@dataclass(frozen=True, slots=True)
class Outlier:
    """A job that is far from the others by one measure; `distance` in robust standard deviations."""

    name: str
    label: str
    measure: str
    value: float
    median: float
    distance: float


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Inputs that failed alike: (label, reason)."""

    kind: str
    count: int
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class FleetView:
    """What the page shows."""

    tool_version: str
    jobs_folder: str
    jobs: int
    files: int
    copies: int
    gpus: int
    cannot_judge: int
    span_ns: int
    unsplit_ns: int  # GPU time without a ledger
    causes: Sequence[CauseSum]  # in the fixed order
    limiters: Sequence[LimiterSum]  # by GPU time at stake
    rules: Sequence[RuleSum]
    worst: Sequence[JobLine]
    outliers: Sequence[Outlier]
    cannot: Sequence[JobLine]
    failures: Sequence[FailureGroup]


def render_fleet(view: FleetView) -> str:
    """The page: one file that loads nothing, usable without its script. The same view gives the same page.

    Raises `TriageError` where the templates are missing.
    """
    return templates.render(
        TEMPLATE,
        v=view,
        headline=_headline(view),
        facts=_facts(view),
        bar=_bar(view),
        causes=_cause_rows(view),
        limiters=[row for row in view.limiters if row.at_stake_ns],
        compute_bound=next((row.jobs for row in view.limiters if row.limiter == "compute"), 0),
        failures=_shown(view.failures),
        failed=sum(group.count for group in view.failures if group.kind != "unfinished"),
        unfinished=sum(group.count for group in view.failures if group.kind == "unfinished"),
        longest=_LONGEST_LABEL,
        limiter_name=limiter_name,
        gpu_time=lambda ns: text.glued(_gpu_time(ns)),
        failure_name=lambda kind: FAILURE_NAMES.get(kind, words.plain(kind)),
    )


def _gpu_time(ns: int) -> str:
    """GPU time; less than a second of it in the units of plain time: 0.66 ms, not 0.00066 GPU-s."""
    return units.time(ns) if 0 < ns < _SECOND_NS else units.gpu_time(ns)


def _lost_ns(view: FleetView) -> int:
    """GPU time idle, in exposed communication or in exposed copies: what the time at stake is a part of."""
    return sum(row.ns for row in view.causes if row.cause not in _USEFUL)


def _headline(view: FleetView) -> str:
    """How much of the time is lost, and which limiter has most of it: all as shares of one whole."""
    if not view.span_ns:
        return "No job could be judged." if view.jobs else "No job has a result yet."
    whole = f"the GPU time looked at ({_gpu_time(view.span_ns)})"
    if not view.causes:
        return f"How much of {whole} was lost is not known: none of it could be split by cause."
    lost = units.share(_lost_ns(view) / view.span_ns)
    first = f"{lost} of {whole} was lost: idle, or in communication and copies that nothing hides."
    named = [row for row in view.limiters if row.at_stake_ns and row.limiter != "mixed"]
    if not named:
        return f"{first} Nothing stands out as worth chasing."
    top = named[0]
    stake = (
        f"{units.share(top.at_stake_ns / view.span_ns)} of the GPU time, in {units.plural(top.jobs, 'job')}"
    )
    return f"{first} The limiter with most at stake is {limiter_name(top.limiter)}: {stake}."


def _facts(view: FleetView) -> list[str]:
    facts = [
        units.plural(view.jobs, "job"),
        units.plural(view.files, "trace"),
        units.plural(view.gpus, "GPU"),
    ]
    if view.copies:
        facts.append(f"{units.plural(view.copies, 'copy', 'copies')} of the same content not read again")
    if view.cannot_judge:
        facts.append(f"{units.count(view.cannot_judge)} without GPU work")
    return facts


def _bar(view: FleetView) -> list[Segment]:
    parts = [(row.cause, row.ns) for row in view.causes]
    total = sum(ns for _, ns in parts)
    labels = {
        cause: (
            f"{words.cause(cause)} {units.share(ns / total)}",
            words.cause(cause),
            units.share(ns / total),
        )
        for cause, ns in parts
        if total
    }
    return segments(parts, total, labels)


@dataclass(frozen=True, slots=True)
class CauseRow:
    """A cause in the table."""

    cause: str
    meaning: str
    ns: int
    share: float
    busy: bool


def _cause_rows(view: FleetView) -> list[CauseRow]:
    """Idle causes by time, then busy ones in their order."""
    rows = [
        CauseRow(
            row.cause,
            words.CAUSE_MEANINGS[row.cause],
            row.ns,
            row.ns / view.span_ns,
            row.cause in BUSY_CAUSES,
        )
        for row in view.causes
        if view.span_ns
    ]
    return sorted(rows, key=lambda row: (row.busy, -row.ns if not row.busy else 0))


def _shown(groups: Sequence[FailureGroup]) -> list[FailureGroup]:
    """The groups with as many rows in all as the page has room for; every group keeps some."""
    each = max(20, MOST_FAILURES // max(1, len(groups)))
    return [FailureGroup(group.kind, group.count, group.rows[:each]) for group in groups]
