"""The floor: the time SQLite itself needs to read the columns that the tool needs, on one thread.

python -m tests.bench.floor TRACE.sqlite

`SELECT max(column), ...` over each table makes SQLite decode every value without keeping any. No reader that
goes through SQLite can be faster on one thread.
"""

import json
import sqlite3
import sys
import time
from contextlib import closing
from typing import Final

_DEVICE: Final = ("start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId")
_KERNEL: Final = (
    *("demangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread"),
    *("staticSharedMemory", "dynamicSharedMemory", "sharedMemoryExecuted", "graphNodeId"),
)
_COPY: Final = ("bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId", "graphNodeId")
_NVTX: Final = ("globalTid", "eventType", "domainId", "textId", "text", "jsonTextId", "jsonText")

# the physical columns behind the frames of nsys_triage/trace/model.py
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (*_DEVICE, *_KERNEL),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (*_DEVICE, *_COPY),
    "CUPTI_ACTIVITY_KIND_MEMSET": (*_DEVICE, "bytes", "memKind", "graphNodeId"),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (*_DEVICE, "graphId", "graphExecId"),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        *("start", "end", "globalTid", "correlationId", "nameId", "returnValue", "eventClass"),
    ),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (*_DEVICE, "eventId"),
    "NVTX_EVENTS": ("start", "end", *_NVTX),
    "OSRT_API": ("start", "end", "globalTid", "nameId"),
    "MPI_P2P_EVENTS": ("start", "end", "globalTid", "textId"),
    "MPI_COLLECTIVES_EVENTS": ("start", "end", "globalTid", "textId"),
    "MPI_START_WAIT_EVENTS": ("start", "end", "globalTid", "textId"),
    "MPI_OTHER_EVENTS": ("start", "end", "globalTid", "textId"),
    "PROFILER_OVERHEAD": ("start", "end", "globalTid", "nameId", "overheadType"),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": ("start", "end", "globalTid", "nameId", "overheadType"),
    "SCHED_EVENTS": ("start", "globalTid", "cpu", "isSchedIn"),
    "COMPOSITE_EVENTS": ("start", "globalTid", "id", "cpuCycles"),
    "SAMPLING_CALLCHAINS": ("id", "symbol", "module", "stackDepth"),
    "GPU_METRICS": ("timestamp", "typeId", "metricId", "value"),
    "StringIds": ("id", "value"),
}


def statements(db: sqlite3.Connection) -> dict[str, str]:
    """The SELECT for each table that the export has, over those of the columns that the table has."""
    found = {}
    for table, wanted in COLUMNS.items():
        present = {row[1] for row in db.execute(f'PRAGMA table_info("{table}")')}
        read = [f'max("{column}")' for column in wanted if column in present]
        if read:
            found[table] = f'SELECT {", ".join(read)} FROM "{table}"'  # noqa: S608
    return found


def floor(path: str) -> dict[str, float]:
    """Seconds that SQLite needs for each table of the export."""
    seconds = {}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        for table, statement in statements(db).items():
            started = time.perf_counter()
            db.execute(statement).fetchall()
            seconds[table] = time.perf_counter() - started
    return seconds


if __name__ == "__main__":
    sys.stdout.write(json.dumps(floor(sys.argv[1])))
