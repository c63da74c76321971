"""Reads tables of an SQLite export into Polars frames: the needed columns alone, large tables in parallel.

Row-id ranges are read by several threads, each with a connection of its own (the driver releases the GIL).
Each Arrow batch is narrowed before the next one is fetched, so that the int64 columns never exist at once.
"""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import adbc_driver_manager
import polars as pl
from adbc_driver_sqlite import StatementOptions, dbapi

from nsys_triage.errors import InputError, UsageError
from nsys_triage.trace.versions import Source

MAGIC: Final = b"SQLite format 3\0"
BATCH_ROWS: Final = 65_536
RANGE_ROWS: Final = 262_144  # row ids per task
MAX_RANGES: Final = 64  # per table, so that sparse row ids do not make millions of tasks
_WORKERS: Final = max(1, min(4, len(os.sched_getaffinity(0))))
# connecting and executing raise the first, fetching raises what Arrow makes of the driver's message
_READ_ERRORS: Final = (adbc_driver_manager.Error, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class Piece:
    """Narrowed rows of one or more batches."""

    frame: pl.DataFrame
    rows: int  # of the table, before any was dropped
    dropped: dict[str, int] = field(default_factory=dict)  # by reason

    @classmethod
    def join(cls, pieces: Sequence["Piece"]) -> "Piece":
        """One piece of several (at least one), in order."""
        dropped: Counter[str] = Counter()
        for piece in pieces:
            dropped.update(piece.dropped)
        frame = pl.concat([piece.frame for piece in pieces], how="vertical", rechunk=False)
        return cls(frame, sum(piece.rows for piece in pieces), dict(dropped))

    def compact(self) -> "Piece":
        """The same with each column in one block. Empties its own frame."""
        # column by column, so that the old and the new frame are never both there
        columns = [self.frame.drop_in_place(name).rechunk() for name in self.frame.columns]
        return Piece(pl.DataFrame(columns), self.rows, self.dropped)


# from a batch with the logical columns of `versions.py` (int64, float64, bytes) to what is kept of it
Narrow = Callable[[pl.DataFrame], Piece]


def quoted(name: str) -> str:
    """A name of a table or column in SQL."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Resolved:
    """A source as this export has it: its table, and for each logical column the physical one or None."""

    table: str
    integers: dict[str, str | None]
    reals: dict[str, str | None]
    texts: dict[str, str | None]
    longest_bytes: dict[str, int]
    where: str

    @property
    def types(self) -> dict[str, type[pl.DataType]]:
        """The type of each logical column as it is read."""
        return {
            **dict.fromkeys(self.integers, pl.Int64),
            **dict.fromkeys(self.reals, pl.Float64),
            **dict.fromkeys(self.texts, pl.Binary),
        }

    def sql(self, *, exact: bool, extra: str = "") -> str:
        """The query. With `exact` each value is converted on its own: slower, for columns of mixed types."""
        columns = [f"{_integer(column, exact)} AS {quoted(name)}" for name, column in self.integers.items()]
        columns += [f"{_real(column)} AS {quoted(name)}" for name, column in self.reals.items()]
        columns += [
            f"{_text(column, self.longest_bytes.get(name))} AS {quoted(name)}"
            for name, column in self.texts.items()
        ]
        conditions = " AND ".join(f"({part})" for part in (self.where, extra) if part)
        where = f" WHERE {conditions}" if conditions else ""
        return f"SELECT {', '.join(columns)} FROM {quoted(self.table)}{where}"  # noqa: S608 (quoted names)


def _integer(column: str | None, exact: bool) -> str:
    if column is None:
        return "NULL"
    name = quoted(column)
    if not exact:
        return name
    number = f"CAST({name} AS INTEGER)"
    digits = f"{name} GLOB '[0-9]*' OR {name} GLOB '-[0-9]*'"
    return (
        f"CASE typeof({name}) WHEN 'integer' THEN {name} WHEN 'real' THEN {number}"
        f" WHEN 'text' THEN CASE WHEN {digits} THEN {number} END END"
    )


def _real(column: str | None) -> str:
    return "NULL" if column is None else f"CAST({quoted(column)} AS REAL)"


def _text(column: str | None, longest_bytes: int | None) -> str:
    # bytes, since texts may hold invalid UTF-8; never NULL, since the driver takes a column whose first batch
    # is NULL for integers and fails on the first text
    if column is None:
        return "x''"
    text = f"CAST({quoted(column)} AS BLOB)"
    if longest_bytes is None:
        return f"ifnull({text}, x'')"
    return f"CASE WHEN length({text}) <= {longest_bytes} THEN {text} ELSE x'' END"


@dataclass(frozen=True, slots=True)
class Task:
    """A table to be read; `extra` is a condition over physical columns."""

    source: Resolved
    narrow: Narrow
    extra: str = ""


class _MixedTypesError(Exception):
    """A column holds values of several types."""


class Database:
    """An SQLite export, opened read-only; nothing is written beside it.

    Raises `UsageError` where there is no such file, `InputError` where it is locked, damaged or no database.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        printable = "".join(c if c.isprintable() else "\ufffd" for c in path.name)
        self.name = printable.encode("utf-8", "replace").decode()
        self._immutable = _must_be_immutable(path, self.name)
        self.tables = self._introspect()

    def _introspect(self) -> dict[str, tuple[str, ...]]:
        # virtual tables need modules that this library may not have
        sql = (
            "SELECT CAST(m.name AS BLOB) AS t, CAST(c.name AS BLOB) AS c FROM sqlite_master AS m"
            " JOIN pragma_table_info(m.name) AS c"
            " WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY m.rowid, c.cid"
        )
        try:
            rows = self.query(sql)
        except InputError as error:
            if self._immutable or "unable to open" not in str(error.__cause__):
                raise
            self._immutable = True  # on a medium where SQLite can create no lock
            rows = self.query(sql)
        found: dict[str, list[str]] = {}
        for table, column in rows.iter_rows():
            found.setdefault(_decode(table), []).append(_decode(column))
        return {table: tuple(columns) for table, columns in found.items()}

    def resolve(self, source: Source, *, strict: bool = False) -> Resolved | None:
        """The source as this export has it; None where it has none of its tables.

        Where it has the table without a column that the source needs: None, with `strict` `InputError`.
        """
        table = next((name for name in source.tables if name in self.tables), None)
        if table is None:
            return None
        there = set(self.tables[table])

        def pick(candidates: Sequence[str]) -> str | None:
            return next((name for name in candidates if name in there), None)

        integers = {name: pick(candidates) for name, candidates in source.integers.items()}
        reals = {name: pick(candidates) for name, candidates in source.reals.items()}
        texts = {name: pick(candidates) for name, candidates in source.texts.items()}
        every = integers | reals | texts
        missing = [name for name in source.needs if every[name] is None]
        if missing and strict:
            raise InputError(
                f"{self.name} has a table {table} without its column `{missing[0]}`: export the report again."
            )
        if missing:
            return None
        where = source.where if there.issuperset(source.where_needs) else ""
        return Resolved(table, integers, reals, texts, dict(source.longest_bytes), where)

    def rows(self, source: Source, extra: str = "") -> list[dict[str, Any]]:
        """All rows of a small table, texts decoded; empty where the table is not there."""
        resolved = self.resolve(source)
        if resolved is None:
            return []
        rows = self.query(resolved.sql(exact=True, extra=extra)).iter_rows(named=True)
        texts = set(resolved.texts)
        return [
            {name: _decode(value) if name in texts else value for name, value in row.items()} for row in rows
        ]

    def query(self, sql: str) -> pl.DataFrame:
        """The rows of a query whose columns have one type each; at least its columns."""
        try:
            return pl.concat(list(self._batches(sql)), how="vertical_relaxed")
        except _MixedTypesError as error:
            raise self._unreadable(error) from error

    def frame(self, resolved: Resolved, extra: str = "") -> pl.DataFrame:
        """All rows of a source in one frame: integers as int64, texts as bytes."""
        return self._range(Task(resolved, lambda batch: Piece(batch, batch.height), extra), "").frame

    def read(self, tasks: Sequence[Task]) -> list[Piece]:
        """Each task's rows in the order of the table; tables and row-id ranges in parallel."""
        pieces: list[Piece] = []
        with ThreadPoolExecutor(_WORKERS) as pool:
            ranges = deque([pool.submit(self._range, task, at) for at in self._parts(task)] for task in tasks)
            try:
                while ranges:
                    # nothing else may hold the rows while they are copied into one block: a future does
                    pieces.append(Piece.join([future.result() for future in ranges.popleft()]).compact())
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return pieces

    def _parts(self, task: Task) -> list[str]:
        """Conditions that split a table by row id; one, empty, for a small table and one without row ids."""
        table = quoted(task.source.table)
        # each query goes straight to its end of the tree; min and max in one would read the whole table
        ends = [f"(SELECT {end}(_rowid_) FROM {table}) AS {end}" for end in ("min", "max")]  # noqa: S608
        sql = f"SELECT {', '.join(ends)}"
        try:
            first, last = self.query(sql).row(0)
        except InputError as error:
            if "no such column" in str(error.__cause__):
                return [""]
            raise
        if first is None or last - first < RANGE_ROWS:
            return [""]
        step = max(RANGE_ROWS, -(-(last - first + 1) // MAX_RANGES))
        return [f"_rowid_ BETWEEN {at} AND {min(at + step - 1, last)}" for at in range(first, last + 1, step)]

    def _range(self, task: Task, part: str) -> Piece:
        extra = " AND ".join(f"({one})" for one in (task.extra, part) if one)
        try:
            batches = self._batches(task.source.sql(exact=False, extra=extra), task.source.types)
            return Piece.join([task.narrow(batch) for batch in batches])
        except _MixedTypesError:
            batches = self._batches(task.source.sql(exact=True, extra=extra), task.source.types)
            return Piece.join([task.narrow(batch) for batch in batches])

    def _batches(
        self, sql: str, types: Mapping[str, type[pl.DataType]] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Batches of a query, and before them one without rows.

        The driver takes each column's type from the first batch, and int64 where that has NULL alone. Raises
        `_MixedTypesError` where a later value has another type, and where a column of integers has.
        """
        try:
            with self._connect() as connection, connection.cursor() as cursor:
                cursor.adbc_statement.set_options(**{StatementOptions.BATCH_ROWS.value: str(BATCH_ROWS)})
                cursor.execute(sql)
                reader = cursor.fetch_record_batch()
                no_rows = pl.DataFrame(reader.schema.empty_table())
                changed = pl.Schema(
                    {name: kind for name, kind in (types or {}).items() if no_rows.schema[name] != kind}
                )
                if pl.Int64 in changed.values():
                    raise _MixedTypesError
                yield no_rows.cast(changed)
                for batch in reader:
                    yield pl.DataFrame(batch).cast(changed)
        except _READ_ERRORS as error:
            if "Type mismatch" in str(error):
                raise _MixedTypesError from error
            raise self._unreadable(error) from error

    @contextmanager
    def _connect(self) -> Iterator[dbapi.Connection]:
        # a path that begins with two slashes would read as a host name
        path = quote(os.fsencode(self.path.absolute()).lstrip(b"/"))
        uri = f"file:///{path}?{'immutable=1' if self._immutable else 'mode=ro'}"
        with closing(dbapi.connect(uri, autocommit=True)) as connection:
            yield connection

    def _unreadable(self, error: Exception) -> InputError:
        text = str(error).partition("\nquery:")[0]  # the driver adds the query
        if "locked" in text or "busy" in text:
            return InputError(
                f"{self.name} is locked by another program, perhaps an export that still runs: "
                "try again when it is done."
            )
        if "readonly database" in text:
            # a journal lies beside the file: reading without taking its pages back would mix old and new ones
            return InputError(
                f"{self.name} was left in the middle of a change by the program that wrote it: open it once with "
                "that program, or export the report again."
            )
        return InputError(
            f"{self.name} is damaged and cannot be read: copy it again, or export the report again."
        )


def _decode(value: Any) -> str:
    return (
        value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)
    )


def _must_be_immutable(path: Path, name: str) -> bool:
    """Whether the file was left in WAL mode: opened in the usual way it would get two files beside it."""
    try:
        with path.open("rb") as stream:
            head = stream.read(20)
    except FileNotFoundError as error:
        raise UsageError(f"{name} does not exist.") from error
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}.") from error
    if not head:
        raise InputError(f"{name} is empty, as an export that failed: export the report again.")
    if not head.startswith(MAGIC):
        raise InputError(f"{name} is not an SQLite database, or an export that did not finish.")
    if head[18:20] != b"\2\2":
        return False
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise InputError(
            f"{name} has changes that are still in {name}-wal: close the program that has it open."
        )
    return True
