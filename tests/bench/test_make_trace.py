"""The large traces are exports that hold together; nothing is timed here."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.bench.floor import COLUMNS, floor
from tests.bench.make_trace import SHAPES, Plan, due, make_trace
from tests.builders.schema import VERSIONS, columns


@pytest.mark.parametrize("version", VERSIONS)
def test_every_kernel_has_its_launch(tmp_path: Path, version: str) -> None:
    path = tmp_path / "t.sqlite"
    make_trace(path, Plan(2_000, SHAPES["training"], processes=2, version=version))
    with closing(sqlite3.connect(path)) as db:
        launched = db.execute(
            "SELECT count(*), min(kernel.start - call.end), count(DISTINCT globalPid) "
            "FROM CUPTI_ACTIVITY_KIND_KERNEL AS kernel JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS call "
            "ON kernel.correlationId = call.correlationId AND globalPid >> 24 = globalTid >> 24"
        ).fetchone()
        assert launched[0] == 2_000
        assert launched[1] > 0
        assert launched[2] == 2
        duration = db.execute("SELECT duration FROM ANALYSIS_DETAILS").fetchone()[0]
        assert db.execute("SELECT max(end) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0] < duration
        names = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId"
        assert (
            db.execute(names).fetchone()
            == db.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()
        )


def test_shapes_are_what_they_say(tmp_path: Path) -> None:
    shares = {}
    for name, shape in SHAPES.items():
        path = tmp_path / f"{name}.sqlite"
        make_trace(path, Plan(3_000, shape))
        with closing(sqlite3.connect(path)) as db:
            query = "SELECT sum(end - start) * 1.0 / (max(end) - min(start)) FROM CUPTI_ACTIVITY_KIND_KERNEL"
            shares[name] = db.execute(query).fetchone()[0]
    assert shares["training"] > 0.9
    assert shares["launch-bound"] < 0.3


def test_floor_reads_the_columns_that_a_version_has(tmp_path: Path) -> None:
    known = {
        (table, column.name)
        for table in COLUMNS
        for version in VERSIONS
        for column in columns(table, version)
    }
    assert {(table, column) for table, found in COLUMNS.items() for column in found} <= known
    path = tmp_path / "t.sqlite"
    make_trace(path, Plan(300, SHAPES["training"], version="2021.5.2"))
    assert {"CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", "StringIds"} <= floor(str(path)).keys()


def test_shares_are_spread_evenly() -> None:
    assert [due(index, 0.25) for index in range(8)] == [False, False, False, True] * 2
    assert sum(due(index, 0.3) for index in range(1_000)) == 300
    assert not any(due(index, 0.0) for index in range(100))
