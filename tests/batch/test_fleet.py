from dataclasses import replace
from pathlib import Path

import msgspec

from nsys_triage.analyze import analyze
from nsys_triage.batch.collect import at_stake_ns, lost_of
from nsys_triage.batch.fleet import OUTLIERS, WORST, Fleet
from nsys_triage.batch.plan import Failure
from nsys_triage.ingest import Source
from nsys_triage.metrics.window import parse_window
from nsys_triage.render.fleet import render_fleet
from nsys_triage.result.model import IDLE_CAUSES, Result, Verdict
from nsys_triage.rules.verdict import balance
from tests.batch.test_tables import row_of
from tests.builders.trace import TraceBuilder
from tests.render import results
from tests.render.pages import parse


def limited(result: Result, limiter: str) -> Result:
    return msgspec.structs.replace(result, verdict=Verdict(limiter, "It waits.", "Do it."))  # type: ignore[arg-type]


def judged() -> Result:
    return next(result for make in results.ALL.values() if (result := make()).gpus and result.gpus[0].ledger)


def test_sums_are_those_of_the_jobs() -> None:
    fleet, result = Fleet(), judged()
    for name in "ab":
        fleet.add(row_of(result, name))
    view = fleet.view([], "1", "jobs")
    idle = sum(row.ns for row in view.causes if row.cause in IDLE_CAUSES)
    assert view.jobs == 2 and view.span_ns == 2 * sum(gpu.span_ns for gpu in result.gpus)
    assert idle == 2 * sum(gpu.idle_ns for gpu in result.gpus)
    assert (view.files, view.copies) == (2, 2)


def test_limiters_by_time_at_stake() -> None:
    fleet, result = Fleet(), judged()
    for name, limiter, stake in (
        ("a", "host_sync", 5),
        ("b", "host_launch", 7),
        ("c", "host_sync", 4),
        ("d", "compute", 0),
    ):
        fleet.add(replace(row_of(limited(result, limiter), name), at_stake_ns=stake))
    view = fleet.view([], "1", "jobs")
    assert [(row.limiter, row.jobs, row.at_stake_ns) for row in view.limiters] == [
        ("host_sync", 2, 9),
        ("host_launch", 1, 7),
        ("compute", 1, 0),
    ]
    assert [line.name for line in view.worst] == ["b", "a", "c", "d"]


def test_at_stake_is_what_the_limiter_lost() -> None:
    result = judged()
    lost = balance(result.gpus, imbalance=False)
    first = lost.candidates[0]
    assert at_stake_ns(limited(result, first.limiter), lost) == first.ns > 0
    assert at_stake_ns(limited(result, "mixed"), lost) == lost.lost_ns
    assert at_stake_ns(limited(result, "compute"), lost) == 0


def test_the_causes_of_a_job_are_those_of_its_verdict(tmp_path: Path) -> None:
    """With MPI the ranks alone say that most of the communication is waiting."""
    sources = []
    for rank, length in enumerate((300, 800)):
        trace = TraceBuilder("2025.5.2").environment(OMPI_COMM_WORLD_RANK=f"{rank}", OMPI_COMM_WORLD_SIZE="2")
        for step in range(6):
            at = 1_000 * step
            trace.kernel(at, at + length).mpi("MPI_Allreduce", at + length + 5, at + 900)
        path = trace.write(tmp_path / f"{rank}.sqlite")
        sources.append(Source(path, path.name, "sqlite", None, filtered=False))
    result = analyze(sources, parse_window("all"))
    assert result.verdict.limiter == "imbalance"
    lost = lost_of(result)
    (waiting,) = (c for c in lost.candidates if c.limiter == "imbalance")
    assert at_stake_ns(result, lost) == waiting.ns < lost.lost_ns


def test_an_outlier_is_far_from_many() -> None:
    result = judged()
    gpu = result.gpus[0]
    fleet = Fleet()
    for number in range(20):
        busy = gpu.span_ns * (20 if number == 7 else 90 + number % 3) // 100
        fleet.add(
            row_of(
                msgspec.structs.replace(result, gpus=[msgspec.structs.replace(gpu, busy_ns=busy)]),
                f"j{number}",
            )
        )
    found = fleet.view([], "1", "jobs").outliers
    assert [(row.name, row.measure) for row in found] == [("j7", "busy share of GPU time")]
    assert round(found[0].value, 2) == 0.2 and found[0].distance > 5


def test_the_page_is_bounded() -> None:
    fleet, result = Fleet(), judged()
    row = row_of(limited(result, "host_sync"))
    for number in range(10_000):
        job = replace(row.job, name=f"{'n' * 80}-{number:016x}", label=f"{'folder/' * 10}job {number}.sqlite")
        fleet.add(replace(row, job=job, at_stake_ns=number))
    failures = [
        Failure(f"{'f/' * 60}{n}.sqlite", "input" if n % 2 else "export", "it is damaged. " * 30)
        for n in range(5_000)
    ]
    view = fleet.view(failures, "1", "jobs")
    assert (len(view.worst), view.worst[0].at_stake_ns) == (WORST, 9_999)
    assert len(view.outliers) <= OUTLIERS
    html = render_fleet(view)
    assert len(html.encode()) < 1_500_000
    page = parse(html)
    assert "10 000 jobs" in page.all("title")[0].text.replace("\u00a0", " ")
