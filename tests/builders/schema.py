"""Tables and columns of an Nsight Systems SQLite export, by the version of the exporter that writes it.

`TABLES` holds the columns in the exporter's order, each word being

    name[:TEXT|:REAL|:KEY][!][>=version][<version]

INTEGER unless said otherwise, `:KEY` an INTEGER primary key, `!` NOT NULL, `>=` the first exporter that has
the column, `<` the first that no longer has it. `_FIRST` and `_GONE` say the same of whole tables.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

# exporter -> (EXPORT_PRODUCT_VERSION, EXPORT_SCHEMA_VERSION)
VERSIONS: Final = {
    "2021.5.2": ("2021.5.2.53", "2.7.0"),
    "2022.4.2": ("2022.4.2.1", "3.0.0"),
    "2023.4.4": ("2023.4.4.54", "3.7.2"),
    "2024.6.2": ("2024.6.2.225", "3.16.1"),
    "2025.5.2": ("2025.5.2.266", "3.24.0"),
    "2026.3.1": ("2026.3.1.157", "3.27.0"),
}
OLDEST: Final = "2021.5.2"
NEWEST: Final = "2026.3.1"

_INTERVAL = "start! end!"
_DEVICE = "deviceId! contextId! greenContextId>=2023.4.4 streamId! correlationId globalPid"
_CALL = "start! end globalTid textId"
_FRAME = (
    "id! symbol! module! kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth!"
)

TABLES: Final = {
    "StringIds": "id:KEY! value:TEXT!",
    "EXPORT_META_DATA": "name:TEXT! value:TEXT",
    "META_DATA_EXPORT": "name:TEXT! value:TEXT",
    "META_DATA_CAPTURE": "name:TEXT! value:TEXT",
    "TARGET_INFO_SYSTEM_ENV": (
        "globalVid!<2023.1 globalVid>=2023.1 devStateName:TEXT! name:TEXT! nameEnum! value:TEXT!"
    ),
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime:TEXT localTime:TEXT systemClockNs>=2025.6.1",
    "ANALYSIS_DETAILS": "globalVid! duration! startTime! stopTime!",
    "ANALYSIS_FILE": "id:KEY! filename:TEXT content:TEXT!<2024.6.1 contentId>=2024.6.1 globalPid!",
    "PROCESSES": "globalPid pid name:TEXT",
    "ThreadNames": "nameId! priority globalTid",
    "ProcessStreams": "globalPid! filenameId! contentId!",
    "TARGET_INFO_GPU": (
        "vmId! id! name:TEXT busLocation:TEXT isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate"
        " smCount"
        " pwGpuId uuid:TEXT luid chipName:TEXT cuDevice ctxswDevPath:TEXT ctrlDevPath:TEXT revision nodeMask"
        " constantMemory maxIPC maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm"
        " maxRegistersPerSm threadsPerWarp asyncEngines maxWarpsPerSm maxBlocksPerSm maxThreadsPerBlock"
        " maxBlockDimX maxBlockDimY maxBlockDimZ maxGridDimX maxGridDimY maxGridDimZ"
        " computeMajor computeMinor smMajor smMinor"
    ),
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId! pid! uuid:TEXT>=2025.6.1 numMultiprocessors>=2025.6.1",
    "TARGET_INFO_CUDA_NULL_STREAM": "streamId! hwId! vmId! processId! deviceId! contextId!",
    "TARGET_INFO_CUDA_CONTEXT_INFO": (
        "nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext"
        " numMultiprocessors>=2025.6.1 numTpcs>=2026.1.3 tpcMask:TEXT>=2026.1.3 workqueueResourceId>=2026.1.3"
        " workqueueConcurrencyLimit>=2026.1.3 workqueueSharingScope>=2026.1.3"
    ),
    "TARGET_INFO_CUDA_STREAM": "streamId! hwId! vmId! processId! contextId! priority! flag!",
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        f"{_INTERVAL} eventClass! globalTid correlationId nameId! returnValue! callchainId"
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        f"{_INTERVAL} {_DEVICE} demangledName! shortName! mangledName launchType cacheConfig"
        " registersPerThread!"
        " gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory!"
        " localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId"
        " sharedMemoryLimitConfig"
        " qmdBulkReleaseDone>=2025.5.1 qmdPreexitDone>=2025.5.1 qmdLastCtaDone>=2025.5.1 graphId>=2025.5.1"
        " clusterX>=2025.5.1 clusterY>=2025.5.1 clusterZ>=2025.5.1 clusterSchedulingPolicy>=2025.5.1"
        " maxPotentialClusterSize>=2025.5.1 maxActiveClusters>=2025.5.1"
        " sharedMemoryRequestedPercentage>=2025.6.3 tensorSizeMinusOneElements:TEXT!>=2026.2.1"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        f"{_INTERVAL} {_DEVICE} bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId"
        " dstDeviceId dstContextId migrationCause graphNodeId virtualAddress copyCount>=2025.1.3"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_INTERVAL} {_DEVICE} value! bytes! graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_INTERVAL} {_DEVICE} graphId! graphExecId!",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        f"{_INTERVAL} {_DEVICE} deprecatedSyncType>=2025.1.1 syncType! eventId! eventSyncId>=2025.1.1"
    ),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": f"timestamp>=2025.5.1 {_DEVICE} eventId! eventSyncId>=2025.1.3",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": f"{_INTERVAL} eventClass! globalTid correlationId nameId overheadType!",
    "CUDA_GRAPH_EVENTS": (
        f"{_INTERVAL} eventClass! globalTid nameId! graphNodeId!<2024.1 originalGraphNodeId<2024.1"
        " graphId>=2024.1 originalGraphId>=2024.1 graphExecId>=2024.1"
    ),
    "PROFILER_OVERHEAD": f"{_INTERVAL} globalTid nameId! returnValue!<2025.5.2 overheadType!>=2025.5.2",
    "NVTX_EVENTS": (
        "start! end eventType! rangeId category color text:TEXT globalTid endGlobalTid textId domainId"
        " uint64Value"
        " int64Value doubleValue:REAL uint32Value int32Value floatValue:REAL jsonTextId jsonText:TEXT"
        " binaryData:TEXT>=2024.6.2"
    ),
    "OSRT_API": (
        f"{_INTERVAL} eventClass! globalTid correlationId<2022.1 nameId! returnValue! nestingLevel"
        " callchainId!"
        " argumentsId!>=2025.5.1"
    ),
    "OSRT_CALLCHAINS": _FRAME,
    "SCHED_EVENTS": "start! cpu! isSchedIn! globalTid threadState>=2024.5.1 threadBlock>=2024.5.1",
    "COMPOSITE_EVENTS": "id:KEY! start! cpu threadState globalTid cpuCycles!",
    "SAMPLING_CALLCHAINS": _FRAME,
    "MPI_RANKS": "globalTid! rank!",
    "MPI_COLLECTIVES_EVENTS": f"{_CALL} commHandle rootRank size recvSize requestHandle",
    "MPI_P2P_EVENTS": f"{_CALL} commHandle tag remoteRank size requestHandle",
    "MPI_START_WAIT_EVENTS": f"{_CALL} requestHandle",
    "MPI_OTHER_EVENTS": _CALL,
    "UCP_SUBMIT_EVENTS": f"{_CALL} bufferAddr packedSize peerWorkerUid tag",
    "UCP_PROGRESS_EVENTS": f"{_CALL} bufferAddr packedSize peerWorkerUid tag",
    "UCP_EVENTS": _CALL,
    "GENERIC_EVENT_SOURCES": "sourceId:KEY! data:TEXT!",
    "GENERIC_EVENT_TYPES": "typeId:KEY! sourceId! data:TEXT!",
    "GENERIC_EVENTS": "rawTimestamp! timestamp typeId! data:TEXT!",
    "TARGET_INFO_GPU_METRICS": "typeId! sourceId! typeName:TEXT! metricId! metricName:TEXT!",
    "GPU_METRICS": "timestamp typeId! metricId! value!",
    "DIAGNOSTIC_EVENT": "timestamp! timestampType! source! severity! text:TEXT! globalPid",
}
_TABLE_KEYS: Final = {
    "OSRT_CALLCHAINS": "id, stackDepth",
    "SAMPLING_CALLCHAINS": "id, stackDepth",
}
_FIRST: Final = {
    "META_DATA_EXPORT": "2023.3.1",
    "META_DATA_CAPTURE": "2023.3.1",
    "ANALYSIS_FILE": "2024.4.1",
    "TARGET_INFO_CUDA_CONTEXT_INFO": "2023.4.4",
    "TARGET_INFO_CUDA_DEVICE": "2025.1.1",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "2024.6.2",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "2022.1.3",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "2025.5.2",
    "MPI_RANKS": "2023.4.4",
    "MPI_COLLECTIVES_EVENTS": "2023.4.4",
    "MPI_P2P_EVENTS": "2023.4.4",
    "MPI_START_WAIT_EVENTS": "2023.4.4",
    "MPI_OTHER_EVENTS": "2023.4.4",
    "UCP_SUBMIT_EVENTS": "2023.4.4",
    "UCP_PROGRESS_EVENTS": "2023.4.4",
    "UCP_EVENTS": "2023.4.4",
    "GENERIC_EVENT_SOURCES": "2022.4.2",
    "GENERIC_EVENT_TYPES": "2022.4.2",
    "GENERIC_EVENTS": "2022.4.2",
    "TARGET_INFO_GPU_METRICS": "2023.4.4",
    "GPU_METRICS": "2023.4.4",
    "DIAGNOSTIC_EVENT": "2024.4.1",
}
_GONE: Final = {
    "EXPORT_META_DATA": "2023.3.1",
    "TARGET_INFO_CUDA_NULL_STREAM": "2023.4.4",
}

# syncType as stored by each release: (device, event, stream); the codes changed meaning four times
_SYNC_CODES: Final = (
    ("2026.1", (4, 1, 3)),
    ("2025.1", (4, 1, 2)),
    ("2024.5", (0, 1, 2)),
    (OLDEST, (1, 2, 3)),
)

_WORD: Final = re.compile(r"(\w+)(?::(TEXT|REAL|KEY))?(!)?(?:>=([\d.]+))?(?:<([\d.]+))?")


class Column(NamedTuple):
    """One column of a table as one exporter declares it."""

    name: str
    type: str
    not_null: bool
    key: bool

    @property
    def sql(self) -> str:
        """The column's part of CREATE TABLE."""
        null = " NOT NULL" if self.not_null else ""
        return f'"{self.name}" {self.type}{null}{" PRIMARY KEY" if self.key else ""}'


def at_least(version: str, other: str) -> bool:
    """Whether `version` is `other` or newer."""
    return _number(version) >= _number(other)


def has_table(table: str, version: str) -> bool:
    """Whether an exporter of that version can write the table; KeyError for a table that no exporter has."""
    if table not in TABLES:
        raise KeyError(f"no exporter writes a table {table}")
    first, gone = _FIRST.get(table, OLDEST), _GONE.get(table)
    return at_least(version, first) and not (gone and at_least(version, gone))


def columns(table: str, version: str) -> list[Column]:
    """The table's columns in that exporter's order."""
    found = []
    for word in TABLES[table].split():
        match = _WORD.fullmatch(word)
        if match is None:
            raise ValueError(f"not a column: {word}")
        name, kind, not_null, first, gone = match.groups()
        if at_least(version, first or OLDEST) and not (gone and at_least(version, gone)):
            sql_type = "INTEGER" if kind in (None, "KEY") else kind
            found.append(Column(name, sql_type, not_null is not None, kind == "KEY"))
    return found


def create_table(table: str, found: Iterable[Column]) -> str:
    """The CREATE TABLE statement for these columns of the table."""
    parts = [column.sql for column in found]
    if table in _TABLE_KEYS:
        parts.append(f"PRIMARY KEY ({_TABLE_KEYS[table]})")
    return f'CREATE TABLE "{table}" ({", ".join(parts)})'


def sync_code(version: str, waits_for: str) -> int:
    """The syncType that a release stores for a wait on the "device", an "event" or a "stream"."""
    codes = next(codes for first, codes in _SYNC_CODES if at_least(version, first))
    return codes[("device", "event", "stream").index(waits_for)]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
