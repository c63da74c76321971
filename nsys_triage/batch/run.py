"""Looks at all files, makes the plan, and does what is to be done; what is done is kept at once."""

import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nsys_triage.batch.inputs import Found, Unreadable
from nsys_triage.batch.messages import Done, Exporting, Failed, JobTask, Looked, LookTask, Options
from nsys_triage.batch.plan import (
    Failure,
    Job,
    Plan,
    blamed,
    exports_of_reports,
    failures_of,
    make_plan,
    merged,
    named,
    without,
)
from nsys_triage.batch.pool import Executor
from nsys_triage.batch.store import Store, known
from nsys_triage.units import plural

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many of it are done and how many there are."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for."""

    options: Options = field(default_factory=Options)
    exporting: Exporting = field(default_factory=Exporting)
    group: bool = True
    again: bool = False  # do also what is done
    shard: tuple[int, int] | None = None  # part of how many


@dataclass(slots=True)
class Ran:
    """How a run ended."""

    jobs: list[Job]  # with a result
    failures: list[Failure]  # of a part of an array: its own
    new: int = 0  # results made by this run


def look_at(
    files: Sequence[Found],
    store: Store,
    executor: Executor,
    request: Request,
    progress: Progress,
    *,
    export: bool,
    keep: bool = True,
) -> list[Looked | Failed]:
    """What each file is, in order; what is known from an earlier run is not found out again.

    `keep` remembers that for later runs. With `export` reports that may be ranks of one job (several in one folder)
    are exported to find out.
    """
    looks = {} if request.again else store.looked()
    keeper = store if keep else None
    outcomes: list[Looked | Failed | None] = [
        known(looks, file.place, file.size_bytes, file.version) for file in files
    ]
    first = [index for index, outcome in enumerate(outcomes) if outcome is None]
    _look(files, first, keeper, executor, request, progress, outcomes, export=False)
    seen = [outcome if outcome is not None else Failed("internal", "no answer") for outcome in outcomes]
    if not (export and request.group):
        return seen
    second = _maybe_ranks(files, seen)
    outcomes[:] = seen
    _look(files, second, keeper, executor, request, progress, outcomes, export=True)
    return [outcome if outcome is not None else Failed("internal", "no answer") for outcome in outcomes]


def _maybe_ranks(files: Sequence[Found], outcomes: Sequence[Looked | Failed]) -> list[int]:
    """Reports without an export beside them that share a folder with another one that is or may be a rank."""
    pairs = exports_of_reports(files, outcomes)
    folders: dict[str, int] = {}
    for index, (file, looked) in enumerate(zip(files, outcomes, strict=True)):
        if (
            isinstance(looked, Looked)
            and index not in pairs
            and (not looked.ranks_read or looked.rank is not None)
        ):
            folders[file.folder] = folders.get(file.folder, 0) + 1
    return [
        index
        for index, (file, looked) in enumerate(zip(files, outcomes, strict=True))
        if isinstance(looked, Looked)
        and not looked.ranks_read
        and index not in pairs
        and folders[file.folder] > 1
    ]


def _look(
    files: Sequence[Found],
    indices: Sequence[int],
    store: Store | None,
    executor: Executor,
    request: Request,
    progress: Progress,
    outcomes: list[Looked | Failed | None],
    *,
    export: bool,
) -> None:
    """Fills `outcomes` at `indices`."""
    tasks = [
        LookTask(
            os.fsencode(files[i].place), files[i].size_bytes, files[i].version, request.exporting, export
        )
        for i in indices
    ]
    what = "exporting" if export else "looking"
    progress(what, 0, len(tasks))
    for count, (position, outcome) in enumerate(executor.run(tasks), 1):
        index = indices[position]
        if isinstance(outcome, Done):
            raise TypeError("a look gives no result")
        outcomes[index] = outcome
        if store and isinstance(outcome, Looked):
            store.remember(files[index].place, files[index].size_bytes, files[index].version, outcome)
        progress(what, count, len(tasks))


def plan_for(
    files: Sequence[Found],
    unreadable: Sequence[Unreadable],
    outcomes: Sequence[Looked | Failed],
    store: Store,
    request: Request,
) -> Plan:
    """The plan, with what is done already."""
    return make_plan(
        files,
        outcomes,
        unreadable,
        request.options,
        {} if request.again else store.done(),
        group=request.group,
    )


def run_plan(plan: Plan, store: Store, executor: Executor, request: Request, progress: Progress) -> Ran:
    """Does the plan. Each result is kept when it comes; a job that single ranks spoil is done without them."""
    mine = [job for job in plan.to_do if _in_shard(job, request.shard)]
    ran = Ran(
        jobs=[job for job in plan.jobs if job.key in plan.done],
        failures=[row for row in plan.failures if _is_of_part(row, request.shard)],
    )
    total, count = len(mine), 0
    progress("analysing", 0, total)
    while mine:
        follow: list[Job] = []
        tasks = [
            JobTask([os.fsencode(place) for place in job.places], request.options, request.exporting)
            for job in mine
        ]
        for position, outcome in executor.run(tasks):
            again = _settle(mine[position], outcome, store, request, ran)
            count += again is None
            follow += [again] if again else []
            progress("analysing", count, total)
        mine = merged(follow)
    return replace(ran, jobs=merged(ran.jobs), failures=_ordered(ran.failures))


def _settle(job: Job, outcome: object, store: Store, request: Request, ran: Ran) -> Job | None:
    """Keeps what a job gave; returns what is to be done instead, where single inputs of it are to blame."""
    match outcome:
        case Done():
            store.keep(job.name, outcome)
            ran.jobs.append(job)
            ran.new += 1
        case Failed(kind=kind, reason=reason, members=members) if members:
            ran.failures += blamed(job, kind, members)
            done: Mapping[str, str] = {} if request.again else store.done()
            rest = without(job, members, request.options, done)
            if rest is not None and rest.key in done:
                ran.jobs.append(rest)
                return None
            return rest
        case Failed(kind=kind, reason=reason):
            ran.failures += failures_of(job, kind, reason)
        case _:
            raise TypeError("a job gives a result or fails")
    return None


def _is_of_part(failure: Failure, shard: tuple[int, int] | None) -> bool:
    """Every part looks at all files; one that is bad counts in one part alone."""
    return shard is None or zlib.crc32(failure.input.encode()) % shard[1] == shard[0]


def _in_shard(job: Job, shard: tuple[int, int] | None) -> bool:
    return shard is None or int(job.key, 16) % shard[1] == shard[0]


def _ordered(failures: Sequence[Failure]) -> list[Failure]:
    return sorted(failures, key=lambda row: (row.input, row.kind, row.reason))


def plan_lines(plan: Plan, *, most: int = 20) -> Iterator[str]:
    """The plan as text: sums, then what is to be done, at most so many lines of each kind."""
    ranks = [job for job in plan.jobs if len(job.inputs) > 1]
    unfinished = [row for row in plan.failures if row.kind == "unfinished"]
    bad = [row for row in plan.failures if row.kind != "unfinished"]
    copies = sum(len(job.also) for job in plan.jobs)
    same = sum(len(job.same_run) for job in plan.jobs)
    yield (
        f"{plural(plan.files, 'file')}: {plural(len(plan.jobs), 'job')} ({len(ranks)} of several ranks),"
        f" {len(plan.done)} of them done already"
    )
    yield (
        f"{plural(copies, 'copy', 'copies')} of the same content,"
        f" {plural(same, 'report')} beside {'its export' if same == 1 else 'their exports'},"
        f" {len(unfinished)} unfinished, {len(bad)} bad"
    )
    rows = [
        ("to do", [f"{job.label}{_note(job)}" for job in plan.jobs if job.key not in plan.done]),
        ("done", [f"{job.label}{_note(job)}" for job in plan.jobs if job.key in plan.done]),
        ("unfinished", [named(row) for row in unfinished]),
        ("bad", [named(row) for row in bad]),
    ]
    for title, texts in rows:
        for text in texts[:most]:
            yield f"{title:<11}{text}"
        if len(texts) > most:
            yield f"{title:<11}... and {len(texts) - most} more"


def _note(job: Job) -> str:
    notes = [f"{len(job.inputs)} ranks"] if len(job.inputs) > 1 else []
    notes += [f"also as {', '.join(job.also[:3])}{' ...' if len(job.also) > 3 else ''}"] if job.also else []
    notes += [f"same run as {', '.join(job.same_run[:3])}"] if job.same_run else []
    return f" ({'; '.join(notes)})" if notes else ""
