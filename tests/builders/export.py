"""Writes a recording as one SQLite file, the way `nsys export` lays it out."""

import random
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.builders.recording import At, Duration, Recording, Row, Text
from tests.builders.schema import TABLES, VERSIONS, Column, at_least, columns, create_table, has_table

_SYSTEM_CLOCK_NS: Final = 4_195_699_913_304
_DEVICE_TABLES: Final = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
)
_SYSTEM_FACTS: Final = {
    "CpuCores": "32",
    "CpuDescription": "AMD EPYC 7543 32-Core Processor",
    "OsDescription": "Ubuntu 22.04.4 LTS",
    "CudaDriverVersion": "12080",
    "NvDriverVersion": "570.86.15",
    "Hostname": "gpu-node-042",
}
_SYSTEM_NUMBERS: Final = {
    "CpuCores": 1,
    "CpuDescription": 13,
    "NvDriverVersion": 205,
    "OsDescription": 605,
    "DeviceEnvironment": 610,
    "CudaDriverVersion": 611,
    "SoftwareReleaseVersion": 618,
    "Hostname": 619,
}
# what was switched on, as META_DATA_CAPTURE calls it
_EVENT_TYPES: Final = {
    "NvtxEvents": ("NVTX_EVENTS",),
    "Cuda": ("CUPTI_ACTIVITY_KIND_RUNTIME", *_DEVICE_TABLES),
    "OSRuntime": ("OSRT_API",),
    "CpuCycles": ("COMPOSITE_EVENTS",),
}
# in these the order of rows means something or is always kept
_ORDERED: Final = ("META_", "EXPORT_META_", "TARGET_INFO_", "StringIds", "ANALYSIS_")


def write_export(recording: Recording, path: Path) -> Path:
    """Writes the recording to `path`, replacing what is there."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA page_size = 4096")
        db.execute("PRAGMA synchronous = OFF")
        _Export(recording, db).write()
        db.commit()
    return path


class _Export:
    def __init__(self, recording: Recording, db: sqlite3.Connection) -> None:
        self.recording = recording
        self.db = db
        self.strings: dict[str | bytes, int] = {}
        self.duration_ns = _duration(recording)
        seed = recording.shuffle_seed
        self.shuffle = None if seed is None else random.Random(seed)  # noqa: S311 a row order, no secret

    def write(self) -> None:
        rows = {table: list(found) for table, found in self.recording.rows.items() if found}
        for table, found in _target_tables(self.recording, self.duration_ns).items():
            rows[table] = found + rows.get(table, [])
        last = "META_DATA_EXPORT" if at_least(self.recording.version, "2023.3.1") else "EXPORT_META_DATA"
        rows[last] = _export_settings(self.recording)
        for table in TABLES:
            if table not in ("StringIds", last):
                self._table(table, rows.get(table, []))
        self._table("StringIds", [{"id": number, "value": text} for text, number in self.strings.items()])
        self._table(last, rows[last])
        for statement in self.recording.statements:
            self.db.execute(statement)

    def _table(self, table: str, rows: list[Row]) -> None:
        recording = self.recording
        if table in recording.absent or not (rows or table in recording.present):
            return
        null = {name for row in rows for name, value in row.items() if value is None}
        found = [
            column._replace(not_null=column.not_null and column.name not in null)
            for column in columns(table, recording.version)
            if (table, column.name) not in recording.absent_columns
        ]
        constants: Row = {}
        for owner, column, value, position in recording.extra_columns:
            if owner == table:
                found.insert(len(found) if position is None else position, column)
                constants[column.name] = value
        _refuse_unknown(table, rows, recording.absent_columns)
        self.db.execute(create_table(table, found))
        # a cast stores bytes that are not UTF-8 as the text that they would be in a real export
        marks = ", ".join("CAST(? AS TEXT)" if column.type == "TEXT" else "?" for column in found)
        values = [[self._value(constants | row, column) for column in found] for row in rows]
        if self.shuffle is not None and not table.startswith(_ORDERED):
            self.shuffle.shuffle(values)
        self.db.executemany(f'INSERT INTO "{table}" VALUES ({marks})', values)  # noqa: S608

    def _value(self, row: Row, column: Column) -> object:
        value = row.get(column.name)
        if isinstance(value, At):
            return value.ns + self.recording.stored_shift_ns
        if isinstance(value, Duration):
            return self.duration_ns + self.recording.stored_shift_ns
        if isinstance(value, Text):
            return self.strings.setdefault(value.value, len(self.strings) + 1)
        if value is None and column.not_null:
            return "" if column.type == "TEXT" else 0
        return value


def _duration(recording: Recording) -> int:
    """The capture's length: as stated, else 1 ms after the last event."""
    if recording.duration_ns is not None:
        return recording.duration_ns
    times = (
        v.ns for rows in recording.rows.values() for row in rows for v in row.values() if isinstance(v, At)
    )
    return max(times, default=0) + 1_000_000


def _refuse_unknown(table: str, rows: Iterable[Row], absent: set[tuple[str, str]]) -> None:
    """ValueError for a column that no exporter has, so that a typing error in a test is not a NULL."""
    known = {column.name for version in VERSIONS for column in columns(table, version)}
    for row in rows:
        if unknown := row.keys() - known - {name for owner, name in absent if owner == table}:
            raise ValueError(f"{table} has no column {', '.join(sorted(unknown))}")


def _target_tables(recording: Recording, duration_ns: int) -> dict[str, list[Row]]:
    """The tables that say where and how it was recorded."""
    vid = recording.global_pid(0)
    started = datetime.fromtimestamp(recording.started_utc_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    clock = recording.stored_shift_ns if recording.said_shift_ns else _SYSTEM_CLOCK_NS
    tables: dict[str, list[Row]] = {
        "TARGET_INFO_SYSTEM_ENV": _system(recording, vid),
        "TARGET_INFO_SESSION_START_TIME": [
            {
                "utcEpochNs": recording.started_utc_ns,
                "utcTime": started,
                "localTime": started,
                "systemClockNs": _SYSTEM_CLOCK_NS,
            }
        ],
        "ANALYSIS_DETAILS": [
            {"globalVid": vid, "duration": duration_ns, "startTime": clock, "stopTime": clock + duration_ns}
        ],
        "TARGET_INFO_GPU": _gpus(recording, vid),
        **_processes(recording),
        **_cuda(recording),
    }
    if has_table("META_DATA_CAPTURE", recording.version):
        tables["META_DATA_CAPTURE"] = _capture_settings(recording)
    return {table: rows for table, rows in tables.items() if rows}


def _system(recording: Recording, vid: int) -> list[Row]:
    facts = _SYSTEM_FACTS | recording.system
    if recording.environment:
        mark = ";" if at_least(recording.version, "2023.1") else "\0"
        facts["DeviceEnvironment"] = mark.join(
            f"{name}={text}" for name, text in recording.environment.items()
        )
    return [
        {
            "globalVid": vid,
            "devStateName": "Local (CLI)",
            "name": name,
            "nameEnum": _SYSTEM_NUMBERS.get(name, 0),
            "value": value,
        }
        for name, value in facts.items()
    ]


def _gpus(recording: Recording, vid: int) -> list[Row]:
    last = len(recording.gpus) - 1
    rows = [
        {"vmId": vid, "id": last - index, "pwGpuId": last - index} | gpu
        for index, gpu in enumerate(recording.gpus)
    ]
    return rows[::-1]


def _processes(recording: Recording) -> dict[str, list[Row]]:
    threads = set(recording.thread_names) | {(pid, pid) for pid in recording.process_names}
    for rows in recording.rows.values():
        for row in rows:
            for column in ("globalTid", "globalPid"):
                if isinstance(number := row.get(column), int):
                    pid = number >> 24 & 0xFFFFFF
                    threads |= {(pid, number & 0xFFFFFF or pid), (pid, pid)}
    process_rows: list[Row] = [
        {
            "globalPid": recording.global_pid(pid),
            "pid": pid,
            "name": recording.process_names.get(pid, "python3"),
        }
        for pid in sorted({pid for pid, _ in threads})
    ]
    thread_rows: list[Row] = [
        {
            "nameId": Text(recording.thread_names.get((pid, tid), "python3")),
            "priority": 20,
            "globalTid": recording.global_tid(pid, tid),
        }
        for pid, tid in sorted(threads)
    ]
    return {"PROCESSES": process_rows, "ThreadNames": thread_rows}


def _cuda(recording: Recording) -> dict[str, list[Row]]:
    """The tables of devices, contexts and streams, for those on which there is work."""
    used = {
        (row["globalPid"], row["deviceId"], row["contextId"], row["streamId"])
        for table in _DEVICE_TABLES
        for row in recording.rows.get(table, ())
        if row.get("contextId") and "globalPid" in row and table != "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
    }
    places = sorted((int(str(g)) >> 24 & 0xFFFFFF, d, c, s) for g, d, c, s in used)
    owner: Row = {"hwId": recording.hardware, "vmId": recording.vm}
    late = has_table("TARGET_INFO_CUDA_CONTEXT_INFO", recording.version)
    null_stream: Row = (
        {"nullStreamId": 7, "parentContextId": 0, "isGreenContext": 0} if late else {"streamId": 7}
    )
    contexts: list[Row] = [
        owner | null_stream | {"processId": pid, "deviceId": device, "contextId": context}
        for pid, device, context in dict.fromkeys((p, d, c) for p, d, c, _ in places)
    ]
    streams: list[Row] = [
        owner
        | {"processId": pid, "contextId": context, "streamId": stream, "priority": 0}
        | {"flag": 3 if stream == 7 else 2}
        for pid, _, context, stream in places
    ]
    wanted = "TARGET_INFO_CUDA_CONTEXT_INFO" if late else "TARGET_INFO_CUDA_NULL_STREAM"
    tables = {wanted: contexts, "TARGET_INFO_CUDA_STREAM": streams}
    if has_table("TARGET_INFO_CUDA_DEVICE", recording.version):
        pids = {pid for pid, *_ in places} | recording.cuda_devices.keys()
        tables["TARGET_INFO_CUDA_DEVICE"] = [
            row for pid in sorted(pids) for row in _cuda_devices(recording, pid)
        ]
    return tables


def _cuda_devices(recording: Recording, pid: int) -> list[Row]:
    last = len(recording.gpus) - 1
    seen = recording.cuda_devices.get(pid, {index: index for index in range(last + 1)})
    return [
        {
            "gpuId": last - gpu,
            "cudaId": ordinal,
            "pid": pid,
            "uuid": recording.gpus[gpu]["uuid"],
            "numMultiprocessors": recording.gpus[gpu]["smCount"],
        }
        for ordinal, gpu in sorted(seen.items(), reverse=True)
    ]


def _capture_settings(recording: Recording) -> list[Row]:
    has = {*recording.present, *(table for table, rows in recording.rows.items() if rows)}
    pairs = [("CAPTURE_EVENT_TYPE", name) for name, tables in _EVENT_TYPES.items() if has & set(tables)]
    pairs += [("RATE_HZ", "0"), ("START_TRIGGER", "Immediate"), ("STOP_TRIGGER", "Delayed")]
    pairs += [
        ("PROCESS_0:ENVIRONMENT_VARIABLE", f'{name}="{text}"') for name, text in recording.environment.items()
    ]
    return [{"name": name, "value": value} for name, value in pairs + recording.capture_settings]


def _export_settings(recording: Recording) -> list[Row]:
    product, schema = VERSIONS[recording.version]
    major, minor, micro = schema.split(".")
    pairs = {
        "EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems",
        "EXPORT_PRODUCT_VERSION": product,
        "EXPORT_PRODUCT_DATE": product.rsplit(".", 2)[0],
        "EXPORT_SCHEMA_VERSION": schema,
        "EXPORT_SCHEMA_VERSION_MAJOR": major,
        "EXPORT_SCHEMA_VERSION_MINOR": minor,
        "EXPORT_SCHEMA_VERSION_MICRO": micro,
        "EXPORT_PLATFORM": "linux-desktop",
        "EXPORT_ARCH": "x64",
        "EXPORT_HOST": "gpu-node-042",
        "EXPORT_USER": "traceuser",
    }
    if at_least(recording.version, "2023.1"):
        pairs |= {"EXPORT_PARAM_LAZY": "true", "EXPORT_PARAM_TIME_NORMALIZE": "false"}
        pairs |= {"EXPORT_PARAM_INPUT_PATH": "/home/traceuser/runs/job.nsys-rep"}
        pairs |= {"EXPORT_CONFIG_TIME_SHIFT": str(recording.said_shift_ns)}
    if at_least(recording.version, "2023.3"):
        pairs |= {"EXPORT_PARAM_TABLES_TO_EXPORT": "", "EXPORT_PARAM_TIMES_TO_EXPORT": ""}
    pairs |= recording.export_settings
    return [{"name": name, "value": value} for name, value in (pairs | {"EXPORT_TIME": "0.05 sec"}).items()]
