"""Opens SQLite files read-only, and tells a complete Nsight Systems export from everything else.

Completion marker: section 1.4 of the schema reference. nsys fills its metadata table last, so an export is
complete where that table has rows; exporters before 2021.5 have none.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from nsys_triage.errors import InputError
from nsys_triage.ingest.files import base_name, shell_name

MAGIC: Final = b"SQLite format 3\0"
META_TABLES: Final = ("META_DATA_EXPORT", "EXPORT_META_DATA")
FILTER_KEYS: Final = ("EXPORT_PARAM_TABLES_TO_EXPORT", "EXPORT_PARAM_TIMES_TO_EXPORT")
# exporters write these since 2021.5, as they do the metadata table: one without the other is a partial export
_SINCE_META: Final = frozenset({"ANALYSIS_DETAILS", "PROCESSES"})
_LOCK_WAIT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class SqliteFacts:
    """What the metadata table of an export says; empty for exporters before 2021.5."""

    exporter_version: str | None
    filtered: bool


def uri(path: Path, immutable: bool = False) -> str:
    """The SQLite URI that opens a file read-only, whatever characters its name has."""
    # a path that begins with two slashes would read as a host name
    quoted = quote(os.fsencode(path.absolute()).lstrip(b"/"))
    return f"file:///{quoted}?{'immutable=1' if immutable else 'mode=ro'}"


@contextmanager
def read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that changes neither the file nor its folder; invalid UTF-8 in texts becomes U+FFFD.

    Raises `InputError` where changes in a write-ahead log would be missed, `sqlite3.Error` where it cannot be
    read.
    """
    immutable = _write_ahead_log(path)
    try:
        connection = _connect(path, immutable)
    except sqlite3.OperationalError as error:
        if immutable or "unable to open" not in str(error):
            raise
        connection = _connect(path, immutable=True)
    with closing(connection):
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        yield connection


def _connect(path: Path, immutable: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(uri(path, immutable), uri=True, timeout=_LOCK_WAIT_S)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opening alone reads nothing
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _write_ahead_log(path: Path) -> bool:
    """Whether the file was left in WAL mode: opened in the usual way it would get two files beside it."""
    with path.open("rb") as stream:
        head = stream.read(20)
    if head[18:20] != b"\2\2":
        return False
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        name = base_name(path)
        raise InputError(
            f"{name} has changes that are still in {name}-wal: close the program that has it open, or run "
            f"`sqlite3 {shell_name(name)} 'PRAGMA journal_mode=delete'`."
        )
    return True


def inspect(path: Path) -> SqliteFacts:
    """The facts of a complete export. Raises `InputError` with one sentence where it is none."""
    name = base_name(path)
    _check_size(path, name)
    try:
        with read_only(path) as connection:
            return _facts(connection, name)
    except sqlite3.Error as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise InputError(
                f"{name} is locked by another program, perhaps a running export: try again when it is done."
            ) from error
        raise InputError(f"{name} is a damaged SQLite file ({text}): {_again(name)}.") from error


def _check_size(path: Path, name: str) -> None:
    """A file shorter than the pages its header counts has been cut off; SQLite may open it all the same."""
    with path.open("rb") as stream:
        head = stream.read(100)
        size_bytes = os.fstat(stream.fileno()).st_size
    page_bytes = int.from_bytes(head[16:18], "big")
    page_bytes = 65536 if page_bytes == 1 else page_bytes
    pages = int.from_bytes(head[28:32], "big")
    counted = head[24:28] == head[92:96]  # else the count is not to be trusted (file format, section 1.3.7)
    if len(head) < 100 or (counted and size_bytes < page_bytes * pages):
        raise InputError(
            f"{name} is truncated (shorter than its header says): copy it again, or {_again(name)}."
        )


def _facts(connection: sqlite3.Connection, name: str) -> SqliteFacts:
    tables = dict(
        connection.execute("SELECT name, coalesce(sql, '') FROM sqlite_master WHERE type = 'table'")
    )
    meta = next((table for table in META_TABLES if table in tables), None)
    ours = meta is not None or "ThreadNames" in tables or any(t.startswith("TARGET_INFO_") for t in tables)
    if "StringIds" not in tables and not ours:
        raise InputError(
            f"{name} is a SQLite database but not an Nsight Systems export (it has no table StringIds): give "
            "the report itself, or what `nsys export --type=sqlite` made of it."
        )
    if meta is None:
        # since 2022.2 exporters comment every column; nobody else does
        recent = not _SINCE_META.isdisjoint(tables) or any("--" in sql for sql in tables.values())
        if recent or not ours or "StringIds" not in tables:
            raise InputError(f"{name} is a partial export (its metadata table is missing): {_again(name)}.")
        return SqliteFacts(exporter_version=None, filtered=False)
    # the name of the table is one of two constants
    values = dict(connection.execute(f'SELECT name, value FROM "{meta}"'))  # noqa: S608
    if not values:
        raise InputError(f"{name} is a partial export (its metadata table is empty): {_again(name)}.")
    if "StringIds" not in tables:
        raise InputError(f"{name} is a partial export (it has no table StringIds): {_again(name)}.")
    version = values.get("EXPORT_PRODUCT_VERSION")
    return SqliteFacts(
        exporter_version=str(version) if version else None,
        filtered=any(values.get(key) for key in FILTER_KEYS),
    )


def _again(name: str) -> str:
    """What to do about a partial export."""
    stem = name.removesuffix(".sqlite")
    return (
        "give the report itself, or export it again with `nsys export --type=sqlite --force-overwrite=true "
        f"--output={shell_name(stem + '.sqlite')} {shell_name(stem + '.nsys-rep')}`"
    )
