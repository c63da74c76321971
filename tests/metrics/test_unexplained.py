"""Idle time without a known cause, by reason."""

from pathlib import Path

import pytest

from nsys_triage.metrics.measure import Measurement
from nsys_triage.metrics.unexplained import Unexplained, unexplained_time, without_launch
from tests.builders.trace import PID, TraceBuilder
from tests.rules.support import measured


def unknown_ns(m: Measurement) -> int:
    return sum(entry.ns for gpu in m.gpus for entry in gpu.ledger or [] if entry.cause == "unknown")


def check(m: Measurement, expected: Unexplained) -> None:
    found = unexplained_time(m.pieces, m.gaps)
    assert found == expected
    assert found.graphs_ns + found.launch_ns + found.clock_ns == unknown_ns(m)


def test_a_missing_launch(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(130, 200, launch=None).kernel(240, 300, call=(235, 236))
    check(measured(builder, tmp_path), Unexplained(graphs_ns=0, launch_ns=30_000, clock_ns=0))


def test_graphs_come_before_a_missing_launch(tmp_path: Path) -> None:
    # both gaps of the process with graphs, launch known or not; that of the other process has only the second reason
    builder = TraceBuilder("2023.4.4", gpus=("H100", "H100")).api("cudaGraphLaunch_v10000", 0, 5)
    builder.kernel(10, 100).kernel(130, 200, launch=None).kernel(240, 300, call=(235, 236))
    builder.kernel(10, 100, pid=PID + 1, device=1).kernel(107, 200, pid=PID + 1, device=1, launch=None)
    check(measured(builder, tmp_path), Unexplained(graphs_ns=70_000, launch_ns=7_000, clock_ns=0))


def test_a_missing_launch_comes_before_the_clock(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100, call=(1, 2)).kernel(130, 200, launch=None).kernel(240, 300)
    check(measured(builder, tmp_path), Unexplained(graphs_ns=0, launch_ns=30_000, clock_ns=40_000))


def test_nothing_unknown(tmp_path: Path) -> None:
    check(measured(TraceBuilder().kernel(0, 100).kernel(200, 300), tmp_path), Unexplained(0, 0, 0))


@pytest.mark.parametrize("migrations", [0, 5])
def test_migrations_are_neither_found_nor_missing(tmp_path: Path, migrations: int) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(100, 200, launch=None).copy(200, 210, launch=None)
    for index in range(migrations):
        builder.migration(300 + index, 301 + index)
    m = measured(builder, tmp_path)
    assert without_launch(m.trace, m.workload.work) == (2, 3)
