"""Stating of facts about the capture: GPUs, processes, environment, settings, diagnostics, and how it is
stored."""

import json
from collections.abc import Mapping
from typing import Final, Self, Unpack

from tests.builders.gpus import GPUS
from tests.builders.recording import Row, Scope, Text, Time, Where, at
from tests.builders.schema import Column, at_least, has_table

# the same metric under the names of the releases
_METRIC_NAMES: Final = {
    "sm_active": ("SM Active", "SMs Active [Throughput %]"),
    "sm_issue": ("SM Issue", "SM Issue [Throughput %]"),
    "tensor_active": ("Tensor Active", "Tensor Active [Throughput %]"),
    "dram_read": ("DRAM Read Throughput", "DRAM Read Bandwidth [Throughput %]"),
    "dram_write": ("DRAM Write Throughput", "DRAM Write Bandwidth [Throughput %]"),
    "gr_active": ("GR Active", "GR Active [Throughput %]"),
    "sm_clock_mhz": (
        "GPC Clock Frequency",
        "GPC Clock Frequency [MHz]",
    ),  # stored in Hz whatever the name says
}


class CaptureFacts(Scope):
    """Facts about the machine and the capture."""

    # --- machine ----------------------------------------------------------------------------------------

    def gpu(self, model: str = "H100", **columns: object) -> Self:
        """One more GPU ("H100", "A100", "RTX 3090"), whose CUDA ordinal is the number of GPUs before it.
        `columns` replace columns of TARGET_INFO_GPU."""
        index = len(self._recording.gpus)
        row: Row = {
            "busLocation": f"0000:{0x17 + 8 * index:02x}:00.0",
            "uuid": f"{0x5EED0000 + index:08x}-3b9e-499c-9b49-6e4bbbd5a613",
            "cuDevice": index,
        }
        self._recording.gpus.append(GPUS[model].columns() | row | columns)
        return self

    def cuda_device(self, ordinal: int, gpu: int, **where: Unpack[Where]) -> Self:
        """Says that CUDA ordinal `ordinal` of a process is the GPU that was stated `gpu`-th (from 0), as
        under CUDA_VISIBLE_DEVICES. Processes of which nothing is said see all GPUs in order."""
        place = self._place.with_(where)
        self._recording.cuda_devices.setdefault(place.pid, {})[ordinal] = gpu
        return self

    def gpu_id(self, gpu: int) -> int:
        """TARGET_INFO_GPU.id of a GPU: counted against the CUDA order, as in many real captures."""
        return len(self._recording.gpus) - 1 - gpu

    def gpu_metrics(self, time: float, gpu: int = 0, **values: int) -> Self:
        """One sample of GPU metrics: percentages, and clocks in Hz (wrapped to 32 bits signed as nsys does).
        The GPUs must all be stated before."""
        kind = self._recording.global_pid(0) >> 48 << 48 | 1 << 32 | self.gpu_id(gpu)
        late = at_least(self.version, "2024.1")
        names = {key: _METRIC_NAMES.get(key, (key, key))[late] for key in values}
        if has_table("GPU_METRICS", self.version):
            for number, key in enumerate(sorted(values)):
                self._define_metric(kind, number, names[key])
                stored = (values[key] + 2**31) % 2**32 - 2**31
                row: Row = {"timestamp": at(time), "typeId": kind, "metricId": number, "value": stored}
                self._recording.add("GPU_METRICS", row)
        data = json.dumps({names[key]: str(value) for key, value in values.items()})
        generic: Row = {"rawTimestamp": at(time), "timestamp": None, "typeId": kind, "data": data}
        self._define_generic_type(kind)
        self._recording.add("GENERIC_EVENTS", generic)
        return self

    def _define_metric(self, kind: int, number: int, name: str) -> None:
        row: Row = {"typeId": kind, "sourceId": kind, "typeName": "", "metricId": number, "metricName": name}
        if row not in self._recording.rows["TARGET_INFO_GPU_METRICS"]:
            self._recording.add("TARGET_INFO_GPU_METRICS", row)

    def _define_generic_type(self, kind: int) -> None:
        if any(row["typeId"] == kind for row in self._recording.rows["GENERIC_EVENT_TYPES"]):
            return
        source = {"Name": "GPU Metrics", "TimeSource": "SessionNs"}
        self._recording.add("GENERIC_EVENT_SOURCES", {"sourceId": kind, "data": json.dumps(source)})
        described = {"Name": "GPU Metrics"}
        self._recording.add(
            "GENERIC_EVENT_TYPES", {"typeId": kind, "sourceId": kind, "data": json.dumps(described)}
        )

    # --- processes and capture --------------------------------------------------------------------------

    def process_name(self, name: str, **where: Unpack[Where]) -> Self:
        """The process' name; "python3" where nothing is said."""
        self._recording.process_names[self._place.with_(where).pid] = name
        return self

    def thread_name(self, name: str, **where: Unpack[Where]) -> Self:
        """The thread's name."""
        place = self._place.with_(where)
        self._recording.thread_names[place.pid, place.tid] = name
        return self

    def environment(self, variables: Mapping[str, str] | None = None, **more: str) -> Self:
        """Variables of the environment that nsys was started in."""
        self._recording.environment.update({**(variables or {}), **more})
        return self

    def system(self, **facts: str) -> Self:
        """Rows of TARGET_INFO_SYSTEM_ENV: Hostname, CudaDriverVersion ..."""
        self._recording.system.update(facts)
        return self

    def capture_setting(self, name: str, value: str) -> Self:
        """A row of META_DATA_CAPTURE (exporters from 2023.3.1), whose names may repeat."""
        self._recording.capture_settings.append((name, value))
        return self

    def export_setting(self, name: str, value: str) -> Self:
        """A row of the export's metadata, such as EXPORT_PARAM_TABLES_TO_EXPORT of a filtered export."""
        self._recording.export_settings[name] = value
        return self

    def graph_trace(self, mode: str) -> Self:
        """--cuda-graph-trace: "graph" or "node"."""
        prefix = "" if at_least(self.version, "2026.3") else "PROCESS_0:"
        return self.capture_setting(f"{prefix}CUDA_GRAPH_TRACE_OPTIONS:MODE", mode.capitalize())

    def output(self, text: str, *, file: str = "stdout", **where: Unpack[Where]) -> Self:
        """Program output that the capture kept."""
        gpid = self._recording.global_pid(self._place.with_(where).pid)
        row: Row = {"globalPid": gpid, "filenameId": Text(file), "contentId": Text(text)}
        self._recording.add("ProcessStreams", row)
        return self

    def diagnostic(self, text: str, *, severity: int = 2, time: Time = 0, **where: Unpack[Where]) -> Self:
        """A message of nsys itself (exporters from 2024.4.1): severity 1 info, 2 warning, 3 error, 4
        verbose."""
        row: Row = {
            "timestamp": at(time),
            "timestampType": 2,
            "source": 3,
            "severity": severity,
            "text": text,
        }
        self._recording.add("DIAGNOSTIC_EVENT", row)
        return self

    # --- how it is stored -------------------------------------------------------------------------------

    def duration(self, length: float) -> Self:
        """Length of the capture in microseconds; 1 ms after the last event where nothing is said."""
        self._recording.duration_ns = round(length * 1000)
        return self

    def started(self, utc_ns: int) -> Self:
        """When the capture began, in nanoseconds since the epoch."""
        self._recording.started_utc_ns = utc_ns
        return self

    def shifted(self, by_ns: int, *, recorded: bool = True) -> Self:
        """Stores all event times later by so much; `recorded` says so in EXPORT_CONFIG_TIME_SHIFT
        (--ts-shift)."""
        self._recording.stored_shift_ns = by_ns
        self._recording.said_shift_ns = by_ns if recorded else 0
        return self

    def epoch_times(self, *, recorded: bool = False) -> Self:
        """Stores event times as nanoseconds since the epoch (--ts-normalize)."""
        return self.shifted(self._recording.started_utc_ns, recorded=recorded)

    def empty(self, *tables: str) -> Self:
        """Tables that exist even if they have no rows, as in an export with --lazy=false."""
        self._recording.present.extend(tables)
        return self

    def without(self, *tables: str) -> Self:
        """Tables that are left out, whatever was planted."""
        self._recording.absent.update(tables)
        return self

    def without_column(self, table: str, *columns: str) -> Self:
        """Columns that are left out, as in an older export."""
        self._recording.absent_columns.update((table, column) for column in columns)
        return self

    def extra_column(
        self, table: str, name: str, value: object, *, sql_type: str = "TEXT", position: int | None = None
    ) -> Self:
        """A column that a user added, the same value in all rows; `position` puts it among the others."""
        column = Column(name, sql_type, not_null=False, key=False)
        self._recording.extra_columns.append((table, column, value, position))
        return self

    def sql(self, *statements: str) -> Self:
        """Statements to run on the finished export: tables and indices that a user added, damage of any
        kind."""
        self._recording.statements.extend(statements)
        return self
