"""From finished jobs to tables and the fleet page: every JSON file is read once, one at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from nsys_triage import __version__
from nsys_triage.batch.columns import JobRow
from nsys_triage.batch.fleet import Fleet
from nsys_triage.batch.plan import Failure, Job
from nsys_triage.batch.run import Ran
from nsys_triage.batch.store import JOBS, Store
from nsys_triage.batch.tables import Tables
from nsys_triage.ingest.files import whole_file
from nsys_triage.render.fleet import render_fleet
from nsys_triage.result.codec import decode
from nsys_triage.result.model import Result
from nsys_triage.rules.gates import fired
from nsys_triage.rules.verdict import Balance, balance, waits_dominate

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Collected:
    """What the tables hold."""

    jobs: int = 0
    cannot_judge: int = 0
    left_over: int = 0  # files of earlier runs that none of the jobs has
    failures: list[Failure] = field(default_factory=list)
    stopped: list[tuple[str, list[str]]] = field(default_factory=list)  # label of a job, what gates fired on


def collect(ran: Ran, store: Store, gates: Sequence[str], progress: Progress) -> Collected:
    """Writes all tables and the page; each appears whole. Raises `OutputError` where one cannot be written."""
    found = Collected(failures=list(ran.failures), left_over=store.left_over({job.name for job in ran.jobs}))
    fleet = Fleet()
    with Tables(store.folder) as tables:
        for count, job in enumerate(ran.jobs):
            progress("collecting", count, len(ran.jobs))
            row = _row(job, store, found)
            if row is None:
                continue
            tables.add(row)
            fleet.add(row)
            found.jobs += 1
            found.cannot_judge += row.result.status == "cannot_judge"
            stopped = fired(row.result, gates) if gates else []
            if stopped:
                found.stopped.append((job.label, stopped))
        found.failures.sort(key=lambda failure: (failure.input, failure.kind, failure.reason))
        tables.fail(found.failures)
    progress("collecting", len(ran.jobs), len(ran.jobs))
    page = render_fleet(fleet.view(found.failures, __version__, JOBS))
    with whole_file(store.folder / "index.html", force=True) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return found


def _row(job: Job, store: Store, found: Collected) -> JobRow | None:
    """A finished job; one whose file somebody changed or removed is a failure."""
    try:
        result = decode(store.read(job.name))
    except (OSError, msgspec.DecodeError):
        reason = f"the result jobs/{job.name}.json cannot be read any more: remove it and run the same command again."
        found.failures.append(Failure(job.label, "internal", reason))
        return None
    lost = lost_of(result)
    return JobRow(job, result, lost, at_stake_ns(result, lost))


def lost_of(result: Result) -> Balance:
    """What the job's GPUs lost and to what, as its verdict saw it."""
    collectives = None if isinstance(result.collectives, msgspec.UnsetType) else result.collectives
    ranks = None if isinstance(result.ranks, msgspec.UnsetType) else result.ranks
    return balance(result.gpus, ranks is not None and waits_dominate(collectives, ranks))


def at_stake_ns(result: Result, lost: Balance) -> int:
    """GPU time lost to the limiter, summed over GPUs; to all causes where it is mixed, 0 where the GPU is the limit."""
    limiter = result.verdict.limiter
    if limiter is None or limiter == "compute":
        return 0
    if limiter == "mixed":
        return lost.lost_ns
    return next((c.ns for c in lost.candidates if c.limiter == limiter), lost.lost_ns)
