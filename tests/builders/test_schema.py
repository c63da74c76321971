"""The builder's tables are those of real exports."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders.schema import TABLES, VERSIONS, columns, has_table

REAL_EXPORTS = Path(__file__).parents[3] / "shared" / "traces" / "sqlite"
needs_real_exports = pytest.mark.skipif(
    not REAL_EXPORTS.is_dir(), reason="the folder of real exports is not beside the project"
)

Declared = list[tuple[str, str, bool]]


def real_tables(version: str) -> list[tuple[str, str, Declared]]:
    """(file, table, columns) of every table that a real export of that version and the builder share."""
    found = []
    for path in sorted(REAL_EXPORTS.glob("*.sqlite")):
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            meta = "META_DATA_EXPORT" if "META_DATA_EXPORT" in tables else "EXPORT_META_DATA"
            settings = dict(db.execute(f'SELECT name, value FROM "{meta}"'))  # noqa: S608
            if settings["EXPORT_PRODUCT_VERSION"].rpartition(".")[0] == version:
                for table in tables:
                    declared = db.execute(f'PRAGMA table_info("{table}")').fetchall()
                    found.append((path.name, table, [(c[1], c[2], bool(c[3])) for c in declared]))
    return found


@needs_real_exports
@pytest.mark.parametrize("version", VERSIONS)
def test_columns_are_those_of_real_exports(version: str) -> None:
    seen = real_tables(version)
    if not seen:
        pytest.skip(f"no real export of {version}")
    for file, table, declared in seen:
        if table in TABLES:
            assert has_table(table, version), f"{table} in {file}"
            ours = [(c.name, c.type, c.not_null) for c in columns(table, version)]
            assert ours == declared, f"{table} in {file}"


def test_columns_follow_the_version() -> None:
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    added = [{c.name for c in columns(kernel, new)} for new in VERSIONS]
    assert [len(found) for found in added] == [27, 27, 28, 28, 38, 40]
    assert "greenContextId" in added[2] - added[1]


@pytest.mark.parametrize(
    ("table", "versions"),
    [
        ("EXPORT_META_DATA", ["2021.5.2", "2022.4.2"]),
        ("META_DATA_EXPORT", ["2023.4.4", "2024.6.2", "2025.5.2", "2026.3.1"]),
        ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", ["2024.6.2", "2025.5.2", "2026.3.1"]),
        ("CUPTI_ACTIVITY_KIND_OVERHEAD", ["2025.5.2", "2026.3.1"]),
        ("StringIds", list(VERSIONS)),
    ],
)
def test_tables_come_and_go(table: str, versions: list[str]) -> None:
    assert [version for version in VERSIONS if has_table(table, version)] == versions


def test_no_exporter_writes_an_unknown_table() -> None:
    with pytest.raises(KeyError, match="KERNELS"):
        has_table("KERNELS", "2026.3.1")
