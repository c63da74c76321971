from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nsys_triage.batch.columns import JobRow
from nsys_triage.batch.plan import Failure, Job
from nsys_triage.batch.schemas import TABLES, schema_markdown
from nsys_triage.batch.tables import Tables
from nsys_triage.result.model import CAUSES, Result
from nsys_triage.rules.verdict import balance
from tests.render import results


def row_of(result: Result, name: str = "a") -> JobRow:
    job = Job(
        f"key-{name}",
        name,
        f"x/{name}.sqlite",
        (f"{name}.sqlite",),
        ("/p",),
        ("c",),
        5,
        (("copy.sqlite", "c"),),
    )
    lost = balance(result.gpus, imbalance=False)
    return JobRow(job, result, lost, lost.lost_ns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables on every result that there is."""
    folder = tmp_path_factory.mktemp("tables")
    with Tables(folder) as tables:
        for name, make in results.ALL.items():
            tables.add(row_of(make(), name))
        tables.fail([Failure("bad.sqlite", "input", "it is empty.")])
    return folder


def read_polars(path: Path) -> dict[str, list[Any]]:
    import polars as pl

    return pl.read_parquet(path).to_dict(as_series=False)


def read_duckdb(path: Path) -> dict[str, list[Any]]:
    duckdb = pytest.importorskip("duckdb")
    cursor = duckdb.connect().execute("SELECT * FROM read_parquet(?)", [str(path)])
    names = [column[0] for column in cursor.description]
    return dict(zip(names, map(list, zip(*cursor.fetchall(), strict=True)), strict=True))


def read_pandas(path: Path) -> dict[str, list[Any]]:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(path, dtype_backend="pyarrow")
    return {name: [None if value is pandas.NA else value for value in frame[name]] for name in frame.columns}


def plain(value: Any) -> Any:
    """The same value whatever the reader makes of lists."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return (
        [plain(part) for part in value]
        if hasattr(value, "__iter__") and not isinstance(value, str)
        else value
    )


@pytest.mark.parametrize("reader", [read_polars, read_duckdb, read_pandas])
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_reader_reads_the_same(folder: Path, table: Any, reader: Any) -> None:
    path = folder / f"{table.name}.parquet"
    wanted = pq.read_table(path).to_pydict()
    found = reader(path)
    assert list(found) == [column.name for column in table.columns]
    assert {name: plain(values) for name, values in found.items()} == {n: plain(v) for n, v in wanted.items()}
    assert len(wanted[table.columns[0].name]) > 0


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_schema_is_documented_and_kept_in_the_file(folder: Path, table: Any) -> None:
    schema = pq.read_schema(folder / f"{table.name}.parquet")
    assert schema.equals(table.schema)
    for field in schema:
        assert len(field.metadata[b"description"]) > 3
    assert f"`{table.name}.parquet`" in schema_markdown()


def test_one_row_per_job_with_the_numbers_of_the_result(folder: Path) -> None:
    rows = pq.read_table(folder / "metrics.parquet").to_pylist()
    assert [row["job"] for row in rows] == list(results.ALL)
    for row in rows:
        result = results.ALL[row["job"]]()
        assert row["status"] == result.status
        if result.gpus:
            assert row["span_ns"] == sum(gpu.span_ns for gpu in result.gpus)
            causes = [row[f"{cause}_ns"] for cause in CAUSES]
            if None not in causes:
                assert sum(causes) == sum(entry.ns for gpu in result.gpus for entry in gpu.ledger)
        assert row["also"] == ["copy.sqlite"]


def test_tables_without_rows_have_their_columns(tmp_path: Path) -> None:
    with Tables(tmp_path):
        pass
    for table in TABLES:
        assert pq.read_table(tmp_path / f"{table.name}.parquet").schema.equals(table.schema)


def test_tables_that_fail_halfway_leave_the_old_ones(tmp_path: Path) -> None:
    with Tables(tmp_path) as tables:
        tables.fail([Failure("old.sqlite", "input", "old")])
    with pytest.raises(KeyError), Tables(tmp_path):
        raise KeyError
    assert pq.read_table(tmp_path / "failures.parquet").to_pydict()["input"] == ["old.sqlite"]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".parquet"] * 5
