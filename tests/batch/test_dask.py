"""The Dask path on a real scheduler and two real workers on loopback, one of which is killed midway."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.batch import folders
from tests.batch.commands import ROOT, batch, results, start, wait_for

pytest.importorskip("distributed", reason="needs the extra dask")


class Cluster:
    """A scheduler and two workers with one thread each, without nannies: a killed worker is gone."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.file = folder / "scheduler.json"
        self._folder = folder
        self._stack = stack
        self._run("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
        self._wait(self.file.exists, "the scheduler did not start")
        self.workers = [
            self._run(
                "worker",
                "--no-nanny",
                "--nthreads",
                "1",
                "--dashboard-address",
                "127.0.0.1:0",
                "--local-directory",
                str(folder),
            )
            for _ in "ab"
        ]

    @property
    def address(self) -> str:
        return str(json.loads(self.file.read_text())["address"])

    def _run(self, what: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self._folder / f"{what}.log").open("ab"))
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", what, "--scheduler-file", str(self.file), *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), "POLARS_MAX_THREADS": "1"},
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    @staticmethod
    def _wait(so: "object", why: str) -> None:
        end = time.monotonic() + 120
        while not so():  # type: ignore[operator]
            assert time.monotonic() < end, why
            time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    with ExitStack() as stack:
        yield Cluster(folder, stack)


def test_same_bytes_as_on_this_machine_though_a_worker_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    made = folders.make(tmp_path / "traces", 14, bad=2, copies=1, jobs=1)
    local, far = tmp_path / "local", tmp_path / "far"
    assert batch(made.folder, "-o", local)[0] == 4
    process = start(made.folder, "-o", far, "--scheduler-file", cluster.file)
    wait_for(lambda: len(results(far)) >= 2, process)
    cluster.workers[0].send_signal(signal.SIGKILL)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 4, err
    assert set(results(far)) == set(results(local))
    for name in (
        *(f"jobs/{name}" for name in results(local)),
        "index.html",
        "metrics.parquet",
        "failures.parquet",
    ):
        assert (far / name).read_bytes() == (local / name).read_bytes(), name


def test_urls_by_address(cluster: Cluster, tmp_path: Path) -> None:
    made = folders.make(tmp_path / "traces", 4, jobs=1)
    local, far = tmp_path / "local", tmp_path / "far"
    assert batch(made.folder, "-o", local)[0] == 0
    code, _, err = batch(made.folder.as_uri(), "-o", far, "--dask", cluster.address)
    assert code == 0, err
    for name in results(local):
        assert (far / "jobs" / name).read_bytes() == (local / "jobs" / name).read_bytes()
    assert (far / "metrics.parquet").read_bytes() == (local / "metrics.parquet").read_bytes()


def test_no_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders.busy().write(tmp_path / "a.sqlite")
    code, _, err = batch(
        tmp_path / "a.sqlite", "-o", tmp_path / "out", "--scheduler-file", tmp_path / "none.json"
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "--scheduler-file none.json does not exist" in err
