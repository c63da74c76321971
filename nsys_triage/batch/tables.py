"""Writes the tables: a Parquet file each, row group by row group, so that any number of jobs fits into memory."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final

import pyarrow.parquet as pq

from nsys_triage.batch.columns import JobRow, Table
from nsys_triage.batch.plan import Failure
from nsys_triage.batch.schemas import TABLES, job_parts
from nsys_triage.ingest.files import whole_file

_ROWS: Final = 4_096  # per row group


class _Writer:
    """One table that is being written."""

    def __init__(self, table: Table, file: BinaryIO) -> None:
        self._table = table
        self._rows: list[Any] = []
        self._writer = pq.ParquetWriter(file, table.schema, compression="zstd")

    def add(self, rows: Iterable[Any]) -> None:
        """Add rows."""
        self._rows += rows
        if len(self._rows) >= _ROWS:
            self._flush()

    def close(self) -> None:
        """Write what is left; a table without rows has its columns all the same."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_batch(self._table.batch(self._rows))
            self._rows = []


class Tables:
    """All tables of a batch in a folder. They get their names at the end of the context, none where it fails."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._writers: dict[str, _Writer] = {}

    def __enter__(self) -> "Tables":
        with ExitStack() as stack:
            for table in TABLES:
                path = stack.enter_context(whole_file(self._folder / f"{table.name}.parquet", force=True))
                # an open file: Arrow takes no path that is not UTF-8
                file = stack.enter_context(path.open("wb"))
                self._writers[table.name] = _Writer(table, file)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            for writer in self._writers.values():
                writer.close()
        except BaseException as failed:
            self._stack.__exit__(type(failed), failed, failed.__traceback__)
            raise
        self._stack.__exit__(kind, error, traceback)

    def add(self, row: JobRow) -> None:
        """Add a job to all tables."""
        for name, rows in job_parts(row).items():
            self._writers[name].add(rows)

    def fail(self, failures: Sequence[Failure]) -> None:
        """Add inputs without a result."""
        self._writers["failures"].add(failures)
