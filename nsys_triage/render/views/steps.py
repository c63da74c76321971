"""The steps: how long each took and what the GPU did in it."""

from collections import Counter
from dataclasses import dataclass

from nsys_triage.render.charts.steps import StepChart, StepParts, step_chart
from nsys_triage.render.views.known import given
from nsys_triage.result.model import CAUSES, Result, Step, Steps

MOST_CAUSES = 4
MOST_PROCESSES = 4
MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class Process:
    """The chart of one process' steps; `start` is the index of its first."""

    pid: int
    chart: StepChart


@dataclass(frozen=True, slots=True)
class StepsView:
    """Charts, the causes they tell apart in drawing order, and the rows of the table."""

    steps: Steps
    processes: list[Process]
    keys: list[str]
    rows: list[Step]
    left_out_rows: int
    left_out_processes: int


def steps_view(result: Result) -> StepsView | None:
    """The section; None where the result has no steps block or found no steps."""
    steps = given(result.steps)
    if steps is None or steps.source == "none" or not steps.items:
        return None
    totals = Counter[str]()
    for step in steps.items:
        for part in step.idle:
            totals[part.cause] += part.ns
    largest = {
        cause for cause, _ in sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:MOST_CAUSES]
    }
    causes = [str(cause) for cause in CAUSES if cause in largest]
    by_pid: dict[int, list[Step]] = {}
    for step in steps.items:
        by_pid.setdefault(step.pid, []).append(step)
    pids = sorted(by_pid, key=lambda pid: (-len(by_pid[pid]), pid))
    processes = []
    for pid in sorted(pids[:MOST_PROCESSES]):
        chart = step_chart([_parts(step, causes) for step in by_pid[pid]], steps.p50_ns, steps.p95_ns)
        if chart is not None:
            processes.append(Process(pid, chart))
    keys = list(dict.fromkeys(part.key for p in processes for bar in p.chart.bars for part in bar.parts))
    order = ["busy", "communication", *causes, "other", "rest"]
    rows = _rows(steps.items)
    return StepsView(
        steps=steps,
        processes=processes,
        keys=[key for key in order if key in keys],
        rows=rows,
        left_out_rows=len(steps.items) - len(rows),
        left_out_processes=len(pids) - len(processes),
    )


def _parts(step: Step, causes: list[str]) -> StepParts:
    """The step's duration as busy time without exposed communication, that, idle by cause, and the rest."""
    idle = {str(part.cause): part.ns for part in step.idle}
    exposed = min(step.exposed_communication_ns, step.busy_ns)
    other = sum(ns for cause, ns in idle.items() if cause not in causes)
    named = [(cause, idle.get(cause, 0)) for cause in causes]
    rest = step.duration_ns - step.busy_ns - sum(idle.values())
    parts = (
        ("busy", step.busy_ns - exposed),
        ("communication", exposed),
        *named,
        ("other", other),
        ("rest", rest),
    )
    return StepParts(step.index, step.duration_ns, step.state, parts)


def _rows(items: list[Step]) -> list[Step]:
    """All steps in order; of very many, the slow ones and the longest of the others."""
    if len(items) <= MOST_ROWS:
        return items
    ranked = sorted(items, key=lambda s: (s.state != "slow", -s.duration_ns, s.pid, s.index))[:MOST_ROWS]
    return sorted(ranked, key=lambda s: (s.pid, s.index))


def largest_idle(step: Step) -> tuple[str, int] | None:
    """The largest idle cause of a step with its time; None in a step without idle time."""
    if not step.idle:
        return None
    part = max(step.idle, key=lambda entry: (entry.ns, -CAUSES.index(entry.cause)))
    return part.cause, part.ns
