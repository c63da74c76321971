"""Writes SQLite files table by table, for tests of what a table may hold.

A table is a list of rows, a row is a dict; columns are those of all rows, NULL where a row lacks one. Columns
have no declared type: SQLite then stores each value as it is given.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from nsys_triage.trace.model import Trace
from nsys_triage.trace.read import quoted
from nsys_triage.trace.sqlite import load_trace

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Row]]

PID, TID, VM = 4_000, 4_001, 1 << 48
GPID, GTID = VM | PID << 24, VM | PID << 24 | TID
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPH = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
SYNC = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
NVTX = "NVTX_EVENTS"


def write(path: Path, tables: Tables, *, sql: Sequence[str] = ()) -> Path:
    with closing(sqlite3.connect(path)) as db:
        for table, rows in tables.items():
            columns = list(dict.fromkeys(name for row in rows for name in row)) or [
                "start",
                "end",
                "globalPid",
            ]
            body = ", ".join(quoted(name) for name in columns)
            db.execute(f"CREATE TABLE {quoted(table)} ({body})")
            marks = ", ".join("?" * len(columns))
            values = ([row.get(name) for name in columns] for row in rows)
            db.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", values)  # noqa: S608
        for statement in sql:
            db.execute(statement)
        db.commit()
    return path


def load(path: Path, tables: Tables | None = None, **more: Any) -> Trace:
    """The trace of these tables, or of the file as it is."""
    if tables is not None:
        write(path, tables, **more)
    return load_trace(path, file=path.name, kind="sqlite", capture_version=None)


def strings(*texts: str | bytes) -> list[Row]:
    """StringIds with the codes 1, 2 ...; bytes are stored as text, valid or not."""
    return [{"id": code, "value": text} for code, text in enumerate(texts, 1)]


def device(start: int | None, end: int | None, **more: Any) -> Row:
    row = {"start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 1}
    return {**row, "globalPid": GPID, **more}


def kernel(start: int | None, end: int | None, name: int | None = 1, **more: Any) -> Row:
    sizes = dict.fromkeys(("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), 1)
    return device(start, end, demangledName=name, registersPerThread=32, **sizes, **more)


def host(start: int | None, end: int | None, name: int | None = 1, **more: Any) -> Row:
    return {"start": start, "end": end, "globalTid": GTID, "nameId": name, **more}


def call(start: int | None, end: int | None, name: int | None = 1, **more: Any) -> Row:
    return host(start, end, name, **({"eventClass": 0, "correlationId": 1, "returnValue": 0} | more))


def nvtx(
    start: int | None, end: int | None, text: str | bytes | None = None, kind: int = 59, **more: Any
) -> Row:
    return {
        "start": start,
        "end": end,
        "eventType": kind,
        "text": text,
        "globalTid": GTID,
        "domainId": 0,
        **more,
    }


def duration(length: int) -> dict[str, list[Row]]:
    return {
        "ANALYSIS_DETAILS": [{"globalVid": VM, "duration": length, "startTime": 5, "stopTime": 5 + length}]
    }


def names(trace: Trace, frame: str, column: str = "name") -> list[str | None]:
    """The texts behind a column of codes, in order of rows."""
    codes = getattr(trace, frame)[column].to_list()
    texts = dict(trace.strings.iter_rows())
    return [None if code is None else texts[code] for code in codes]
