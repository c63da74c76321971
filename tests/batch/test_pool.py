import os
import sys
from pathlib import Path

import pytest

from nsys_triage.batch import machine, pool
from nsys_triage.batch.messages import (
    Done,
    Exporting,
    Failed,
    JobTask,
    Looked,
    LookTask,
    Options,
    Outcome,
    Task,
)
from nsys_triage.batch.pool import Budget, LocalPool
from nsys_triage.result.codec import decode
from tests.batch import folders
from tests.tools.fake_nsys import FakeNsys
from tests.tools.processes import alive, assert_gone
from tests.tools.small_files import REPORT_2023

ENOUGH = Budget(4_000_000_000)
KILLS_ITS_PARENT = "kill -KILL $PPID\nsleep 5"


def job(*paths: Path, nsys: Path | None = None, cache: Path | None = None) -> JobTask:
    exporting = Exporting(os.fsencode(nsys) if nsys else None, os.fsencode(cache) if cache else None)
    return JobTask([os.fsencode(path) for path in paths], Options(), exporting)


def outcomes(tasks: list[Task], budget: Budget = ENOUGH, jobs: int = 1) -> list[Outcome]:
    with LocalPool(jobs, budget) as running:
        found = dict(running.run(tasks))
        left = [process.popen.pid for process in running._processes]
    assert not any(map(alive, left))
    return [found[number] for number in range(len(tasks))]


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return folders.busy().write(tmp_path / "good.sqlite")


def test_results_and_looks(good: Path, tmp_path: Path) -> None:
    status = good.stat()
    first, second, third = outcomes(
        [
            job(good),
            LookTask(os.fsencode(good), status.st_size, str(status.st_mtime_ns)),
            job(folders.no_gpu_work().write(tmp_path / "b")),
        ],
        jobs=2,
    )
    assert isinstance(first, Done) and decode(first.json).status == "ok" and b"<html" in first.html
    assert isinstance(second, Looked) and len(second.content) == 40
    assert isinstance(third, Done) and decode(third.json).status == "cannot_judge"


def test_a_killed_process_costs_its_own_input_after_a_second_try(
    good: Path, tmp_path: Path, fake: FakeNsys
) -> None:
    report = tmp_path / "job.nsys-rep"
    report.write_bytes(REPORT_2023)
    fake._behave(KILLS_ITS_PARENT)
    before, dead, after = outcomes([job(good), job(report, nsys=fake.path, cache=tmp_path / "c"), job(good)])
    assert isinstance(before, Done) and isinstance(after, Done)
    assert isinstance(dead, Failed) and dead.kind == "crashed" and "signal 9" in dead.reason
    assert len(fake.calls()) == 2


def test_the_second_try_may_succeed(tmp_path: Path, fake: FakeNsys) -> None:
    report, flag, template = (
        tmp_path / "job.nsys-rep",
        tmp_path / "flag",
        folders.busy().write(tmp_path / "template"),
    )
    report.write_bytes(REPORT_2023)
    fake._behave(
        f'if [ ! -e "{flag}" ]; then : > "{flag}"; {KILLS_ITS_PARENT}; fi\ncp "{template}" "$output"'
    )
    (done,) = outcomes([job(report, nsys=fake.path, cache=tmp_path / "c")])
    assert isinstance(done, Done)
    assert len(fake.calls()) == 2


def test_an_input_that_takes_too_long_is_ended_with_all_it_started(
    good: Path, tmp_path: Path, fake: FakeNsys
) -> None:
    report = tmp_path / "job.nsys-rep"
    report.write_bytes(REPORT_2023)
    fake.hangs()
    with LocalPool(1, Budget(ENOUGH.memory_bytes, 6.0)) as running:
        coming = running.run([job(report, nsys=fake.path, cache=tmp_path / "c"), job(good)])
        (_, late) = next(coming)
        running.budget = ENOUGH
        ((_, other),) = coming
    assert isinstance(late, Failed) and late.kind == "timeout" and "6 s" in late.reason
    assert isinstance(other, Done)
    assert_gone(fake.pids())


def test_an_input_that_takes_too_much_memory_is_ended(good: Path) -> None:
    (over,) = outcomes([job(good)], Budget(20_000_000))
    assert isinstance(over, Failed) and over.kind == "memory" and "20 MB" in over.reason


def test_threads_and_processes_fit_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    class SeenError(Exception):
        pass

    def popen(*_command: object, env: dict[str, str], **_rest: object) -> None:
        seen.update(env)
        raise SeenError

    monkeypatch.setattr(machine, "cores", lambda: 8)
    monkeypatch.setattr(pool.subprocess, "Popen", popen)
    with LocalPool(3, ENOUGH) as running, pytest.raises(SeenError):
        list(running.run([job(Path("x"))]))
    assert seen["POLARS_MAX_THREADS"] == "2"


def test_a_process_is_given_up_after_some_inputs(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_MOST_INPUTS", 1)
    with LocalPool(1, ENOUGH) as running:
        assert [len(running._processes) for _ in running.run([job(good), job(good)])] == [0, 0]


def test_nothing_runs_on_when_the_consumer_stops(good: Path) -> None:
    with LocalPool(2, ENOUGH) as running:
        for _ in running.run([job(good)] * 4):
            pids = [process.popen.pid for process in running._processes]
            break
    assert pids and not any(map(alive, pids))


def test_processes_by_cores_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 16)
    gb = 1 << 30
    assert machine.default_jobs(None, 100 * gb) == 16
    assert machine.default_jobs(None, 4 * gb) == 3
    assert machine.default_jobs(8 * gb, 100 * gb) == 10
    assert machine.default_jobs(8 * gb, gb) == 1
    assert machine.default_budget(4, 10 * gb) == 2 * gb


def test_the_memory_of_a_process_is_seen() -> None:
    assert machine.resident_bytes(os.getpid()) > 10_000_000
    assert machine.tree(os.getpid())[0] == os.getpid()
    assert sys.platform == "linux"
