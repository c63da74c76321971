"""Small files of every kind that a user may give: exports, first and last bytes of reports, bad ones."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

SHARED = Path(__file__).parents[2].parent / "shared"

META_2023 = {"EXPORT_PRODUCT_VERSION": "2023.4.4.54", "EXPORT_SCHEMA_VERSION": "3.7.2"}
# a report as far as it is looked at before nsys reads it
REPORT_2023 = b"NVIDIA Tegra Profiler Report 2023@4@4@54-234433681190v0.\n" + bytes(64) + b"U3w[END]"
REPORT_OLD = b"NVIDIA Tegra Profiler Report 1.\n" + bytes(64) + b"U3w[END]"
REPORT_FUTURE = b"NVIDIA Tegra Profiler Report 2031@2@1@7-310207v0.\n" + bytes(64) + b"U3w[END]"


def make_sqlite(path: Path, tables: dict[str, str], meta: tuple[str, dict[str, str]] | None = None) -> Path:
    """A SQLite file with empty tables (name to column list), and a metadata table with rows."""
    with closing(sqlite3.connect(path)) as connection:
        for name, columns in tables.items():
            connection.execute(f'CREATE TABLE "{name}" ({columns}\n)')  # a comment may end it
        if meta:
            name, rows = meta
            connection.execute(f'CREATE TABLE "{name}" (name TEXT, value TEXT)')
            connection.executemany(f'INSERT INTO "{name}" VALUES (?, ?)', rows.items())  # noqa: S608
        connection.commit()
    return path


def make_export(path: Path, **meta: str) -> Path:
    """The smallest complete export, of nsys 2023.4.4; `meta` adds metadata rows."""
    tables = {
        "StringIds": "id INTEGER, value TEXT",
        "ANALYSIS_DETAILS": "startTime INTEGER -- clock",
        "ThreadNames": "nameId INTEGER",
    }
    return make_sqlite(path, tables, ("META_DATA_EXPORT", META_2023 | meta))


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below a folder: mode, time of change and content by relative path."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    } | {".": (folder.stat().st_mode, folder.stat().st_mtime_ns, os.fsencode(folder))}
