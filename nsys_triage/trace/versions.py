"""What changed between exporters, as data: where each logical column of each logical table is found.

A logical table has one or more `Source`s; a source is read where its table is in the export. A source maps
logical columns to candidate columns, best first: the first one that the table has is read, and a column
without any candidate reads as NULL. Support for a renamed table or column is a row here, never an `if`
elsewhere. What a column means stands in the exports themselves: `sqlite_master.sql` has a comment for each
since 2022.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

Candidates = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Source:
    """One physical table, by the names that it has had, and its columns by logical name."""

    tables: tuple[str, ...]  # the first that the export has
    integers: Candidates = field(default_factory=dict)
    reals: Candidates = field(default_factory=dict)
    texts: Candidates = field(default_factory=dict)  # read as bytes: they may hold invalid UTF-8
    longest_bytes: Mapping[str, int] = field(default_factory=dict)  # longer texts of a column read as empty
    needs: tuple[str, ...] = ()  # logical columns without which this is another table, or an unusable one
    where: str = ""  # over physical columns that `where_needs` names; applies only if all of them are there
    where_needs: tuple[str, ...] = ()


def _same(*names: str) -> dict[str, tuple[str, ...]]:
    """Logical columns that have always had their one name."""
    return {name: (name,) for name in names}


_TIMES: Final = {"start": ("start",), "end": ("end",)}
_DEVICE: Final = {
    **_TIMES,
    "global_pid": ("globalPid",),
    "device": ("deviceId",),
    "context": ("contextId",),
    "stream": ("streamId",),
    "correlation": ("correlationId",),
}
_THREAD: Final = {**_TIMES, "global_tid": ("globalTid",)}
_NEEDS_TIMES: Final = ("start", "end")

KERNELS: Final = Source(
    ("CUPTI_ACTIVITY_KIND_KERNEL",),
    {
        **_DEVICE,
        "name": ("demangledName", "shortName", "mangledName"),
        "grid_x": ("gridX",),
        "grid_y": ("gridY",),
        "grid_z": ("gridZ",),
        "block_x": ("blockX",),
        "block_y": ("blockY",),
        "block_z": ("blockZ",),
        "registers": ("registersPerThread",),
        "static_shared_bytes": ("staticSharedMemory",),
        "dynamic_shared_bytes": ("dynamicSharedMemory",),
        "shared_carveout_bytes": ("sharedMemoryExecuted",),
        "graph_node": ("graphNodeId",),
    },
    needs=_NEEDS_TIMES,
)
MEMCPYS: Final = Source(
    ("CUPTI_ACTIVITY_KIND_MEMCPY",),
    {
        **_DEVICE,
        "bytes": ("bytes",),
        "copy_kind": ("copyKind",),
        "source_kind": ("srcKind",),
        "target_kind": ("dstKind",),
        "source_device": ("srcDeviceId",),
        "target_device": ("dstDeviceId",),
        "graph_node": ("graphNodeId",),
    },
    needs=_NEEDS_TIMES,
)
MEMSETS: Final = Source(
    ("CUPTI_ACTIVITY_KIND_MEMSET",),
    {**_DEVICE, "bytes": ("bytes",), "memory_kind": ("memKind",), "graph_node": ("graphNodeId",)},
    needs=_NEEDS_TIMES,
)
# not written by exporters up to 2023.4.4, which drop these executions without a trace
GRAPHS: Final = Source(
    ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",),
    {**_DEVICE, "graph": ("graphId",), "graph_exec": ("graphExecId",)},
    needs=_NEEDS_TIMES,
)
# runtime and driver API; class 67 doubles a call to carry its backtrace
API: Final = Source(
    ("CUPTI_ACTIVITY_KIND_RUNTIME",),
    {**_THREAD, "correlation": ("correlationId",), "name": ("nameId",), "return_value": ("returnValue",)},
    needs=_NEEDS_TIMES,
    where='"eventClass" IS NOT 67',
    where_needs=("eventClass",),
)
SYNCS: Final = Source(
    ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",), {**_DEVICE, "event": ("eventId",)}, needs=_NEEDS_TIMES
)
NVTX: Final = Source(
    ("NVTX_EVENTS",),
    {
        **_THREAD,
        "kind": ("eventType",),
        "domain_id": ("domainId",),
        "name_id": ("textId",),
        "payload_id": ("jsonTextId",),
    },
    texts={"text": ("text",), "payload_text": ("jsonText",)},
    longest_bytes={"payload_text": 4096},  # NCCL's have up to 200; a TensorRT layer's can have megabytes
    needs=("start", "kind"),
    # 34 mark, 59 push/pop, 60 start/end, 75 domain; the rest are names of categories and threads
    where='"eventType" IN (34, 59, 60, 75)',
    where_needs=("eventType",),
)
OSRT: Final = Source(("OSRT_API",), {**_THREAD, "name": ("nameId",)}, needs=_NEEDS_TIMES)
# written since 2023.4.4; 2022.4.2 puts the same calls into the NVTX domain `MPI`
HOST_COMMUNICATION: Final = tuple(
    Source((table,), {**_THREAD, "name": ("textId",)}, needs=_NEEDS_TIMES)
    for table in (
        "MPI_P2P_EVENTS",
        "MPI_COLLECTIVES_EVENTS",
        "MPI_START_WAIT_EVENTS",
        "MPI_OTHER_EVENTS",
        "UCP_EVENTS",
        "UCP_SUBMIT_EVENTS",
        "UCP_PROGRESS_EVENTS",
    )
)
# PROFILER_OVERHEAD has overheadType since 2025.5.2 (returnValue before); the other table came with it
OVERHEADS: Final = tuple(
    Source((table,), {**_THREAD, "name": ("nameId",), "kind": ("overheadType",)}, needs=_NEEDS_TIMES)
    for table in ("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD")
)
SCHEDULING: Final = Source(
    ("SCHED_EVENTS",),
    {"start": ("start",), "global_tid": ("globalTid",), "cpu": ("cpu",), "scheduled_in": ("isSchedIn",)},
    needs=("start",),
)
# rows without cycles are changes of a thread's state, not samples
SAMPLES: Final = Source(
    ("COMPOSITE_EVENTS",),
    {"start": ("start",), "global_tid": ("globalTid",), "id": ("id",)},
    needs=("start", "id"),
    where='"cpuCycles" IS NOT 0',
    where_needs=("cpuCycles",),
)
CALLCHAINS: Final = Source(
    ("SAMPLING_CALLCHAINS",),
    {"id": ("id",), "symbol": ("symbol",), "module": ("module",)},
    needs=("id",),
    where='"stackDepth" = 0',
    where_needs=("stackDepth",),
)
GPU_METRICS: Final = Source(
    ("GPU_METRICS",),
    {
        "start": ("timestamp",),
        "raw_start": ("rawTimestamp",),
        "type_id": ("typeId",),
        "metric_id": ("metricId",),
    },
    reals={"value": ("value",)},
    needs=("type_id", "metric_id", "value"),
)
GPU_METRIC_NAMES: Final = Source(
    ("TARGET_INFO_GPU_METRICS",),
    {"type_id": ("typeId",), "metric_id": ("metricId",)},
    texts={"name": ("metricName",)},
    needs=("type_id", "metric_id", "name"),
)
# 2022.4 has GPU metrics only here, as JSON; `timestamp` is NULL for them, `rawTimestamp` is the event's time
GENERIC_EVENTS: Final = Source(
    ("GENERIC_EVENTS",),
    {"start": ("timestamp",), "raw_start": ("rawTimestamp",), "type_id": ("typeId",)},
    texts={"data": ("data",)},
    needs=("type_id", "data"),
)
STRINGS: Final = Source(("StringIds",), {"code": ("id",)}, texts={"text": ("value",)}, needs=("code", "text"))

GPU_INFO: Final = (
    Source(
        ("TARGET_INFO_GPU",),
        {
            "gpu_id": ("id",),
            "cuda_ordinal": ("cuDevice",),
            "sm_count": ("smCount",),
            "compute_major": ("computeMajor",),
            "compute_minor": ("computeMinor",),
            "max_warps_per_sm": ("maxWarpsPerSm",),
            "max_blocks_per_sm": ("maxBlocksPerSm",),
            "max_registers_per_sm": ("maxRegistersPerSm",),
            "max_registers_per_block": ("maxRegistersPerBlock",),
            "max_shared_per_sm_bytes": ("maxShmemPerSm",),
            "max_shared_per_block_bytes": ("maxShmemPerBlockOptin", "maxShmemPerBlock"),
            "threads_per_warp": ("threadsPerWarp",),
            "memory_bytes": ("totalMemory",),
            "memory_bytes_per_s": ("memoryBandwidth",),
            "clock_hz": ("clockRate",),
        },
        texts={"name": ("name",), "bus_location": ("busLocation",), "uuid": ("uuid",)},
        needs=("gpu_id", "sm_count"),
    ),
    # exports before 2021.5: one row per process and device
    Source(
        ("TARGET_INFO_CUDA_GPU",),
        {
            "gpu_id": ("deviceId",),
            "sm_count": ("numMultiprocessors",),
            "compute_major": ("computeCapabilityMajor",),
            "compute_minor": ("computeCapabilityMinor",),
            "max_warps_per_sm": ("maxWarpsPerMultiprocessor",),
            "max_blocks_per_sm": ("maxBlocksPerMultiprocessor",),
            "max_registers_per_sm": ("maxRegistersPerMultiprocessor",),
            "max_registers_per_block": ("maxRegistersPerBlock",),
            "max_shared_per_sm_bytes": ("maxSharedMemoryPerMultiprocessor",),
            "max_shared_per_block_bytes": ("maxSharedMemoryPerBlock",),
            "threads_per_warp": ("numThreadsPerWarp",),
            "memory_bytes": ("globalMemorySize",),
            "memory_bytes_per_s": ("globalMemoryBandwidth",),
            "clock_hz": ("coreClockRate",),
        },
        texts={"name": ("name",), "bus_location": ("pciBusId",)},
        needs=("gpu_id", "sm_count"),
    ),
)
CUDA_DEVICES: Final = Source(
    ("TARGET_INFO_CUDA_DEVICE",),
    {"pid": ("pid",), "cuda_ordinal": ("cudaId",), "gpu_id": ("gpuId",), "sm_count": ("numMultiprocessors",)},
    texts={"uuid": ("uuid",)},
    needs=("pid", "cuda_ordinal"),
)
CONTEXTS: Final = Source(
    ("TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_NULL_STREAM"),
    {
        "pid": ("processId",),
        "device": ("deviceId",),
        "context": ("contextId",),
        "null_stream": ("nullStreamId", "streamId"),
    },
    needs=("pid", "context"),
)
STREAMS: Final = Source(
    ("TARGET_INFO_CUDA_STREAM",),
    {
        "pid": ("processId",),
        "context": ("contextId",),
        "stream": ("streamId",),
        "priority": ("priority",),
        "flag": ("flag",),
    },
    needs=("pid", "context", "stream"),
)
PROCESSES: Final = Source(
    ("PROCESSES",),
    {"pid": ("pid",), "global_pid": ("globalPid",)},
    texts={"name": ("name",)},
    needs=("global_pid",),
)
THREADS: Final = Source(
    ("ThreadNames",),
    {"global_tid": ("globalTid",), "name": ("nameId",), "priority": ("priority",)},
    needs=("global_tid", "name"),
)

EXPORT_METADATA: Final = Source(
    ("META_DATA_EXPORT", "EXPORT_META_DATA"),
    texts={"name": ("name",), "value": ("value",)},
    needs=("name", "value"),
)
CAPTURE_METADATA: Final = Source(
    ("META_DATA_CAPTURE",), texts={"name": ("name",), "value": ("value",)}, needs=("name", "value")
)
SYSTEM: Final = Source(
    ("TARGET_INFO_SYSTEM_ENV",), texts={"name": ("name",), "value": ("value",)}, needs=("name", "value")
)
SESSION_START: Final = Source(
    ("TARGET_INFO_SESSION_START_TIME",),
    {"utc_epoch_ns": ("utcEpochNs",), "system_clock_ns": ("systemClockNs",)},
    texts={"utc_time": ("utcTime",)},
)
ANALYSIS_DETAILS: Final = Source(
    ("ANALYSIS_DETAILS",), {"duration_ns": ("duration",)}, needs=("duration_ns",)
)
DIAGNOSTICS: Final = Source(
    ("DIAGNOSTIC_EVENT",), {"severity": ("severity",)}, texts={"text": ("text",)}, needs=("severity", "text")
)

# tables of events, by the frame that they feed (callchains: a part of samples)
EVENT_SOURCES: Final[dict[str, tuple[Source, ...]]] = {
    "kernels": (KERNELS,),
    "memcpys": (MEMCPYS,),
    "memsets": (MEMSETS,),
    "graphs": (GRAPHS,),
    "api": (API,),
    "syncs": (SYNCS,),
    "nvtx": (NVTX,),
    "osrt": (OSRT,),
    "host_communication": HOST_COMMUNICATION,
    "overheads": OVERHEADS,
    "scheduling": (SCHEDULING,),
    "samples": (SAMPLES,),
    "callchains": (CALLCHAINS,),
}
# frames of `Trace` by the sources that feed them: a frame is recorded where any of its tables is there
FRAME_SOURCES: Final[dict[str, tuple[Source, ...]]] = {
    **{name: sources for name, sources in EVENT_SOURCES.items() if name != "callchains"},
    "gpu_metrics": (GPU_METRICS,),
    "strings": (STRINGS,),
    "gpu_info": GPU_INFO,
    "cuda_devices": (CUDA_DEVICES,),
    "contexts": (CONTEXTS,),
    "streams": (STREAMS,),
    "processes": (PROCESSES,),
    "threads": (THREADS,),
}

# metric names without their unit in brackets, in lower case; not stable between sets and versions
METRIC_NAMES: Final[dict[str, str]] = {
    "sm active": "sm_active",
    "sms active": "sm_active",
    "sm issue": "sm_issue",
    "tensor active": "tensor_active",
    "tensor active / fp16 active": "tensor_active",
    "gr active": "gr_active",
    "dram read throughput": "dram_read",
    "dram read bandwidth": "dram_read",
    "vram read bandwidth": "dram_read",
    "vram read throughput": "dram_read",
    "dram write throughput": "dram_write",
    "dram write bandwidth": "dram_write",
    "vram write bandwidth": "dram_write",
    "vram write throughput": "dram_write",
    "dram throughput": "dram",
    "dram bandwidth": "dram",
    "vram throughput": "dram",
    "vram bandwidth": "dram",
    "dram active": "dram",
    "gpc clock frequency": "sm_clock_mhz",
    "pcie rx throughput": "pcie_rx",
    "pcie read throughput": "pcie_rx",
    "pcie tx throughput": "pcie_tx",
    "pcie write throughput": "pcie_tx",
    "nvlink rx bandwidth": "nvlink_rx",
    "nvlink rx throughput": "nvlink_rx",
    "nvlink bytes received": "nvlink_rx",
    "nvlink tx bandwidth": "nvlink_tx",
    "nvlink tx throughput": "nvlink_tx",
    "nvlink bytes transmitted": "nvlink_tx",
    # metric sets of 2022 and later that split a direction: shares of one peak, to be added
    "nvlink rx requests user data": "nvlink_rx",
    "nvlink rx requests protocol data": "nvlink_rx",
    "nvlink rx responses user data": "nvlink_rx",
    "nvlink rx responses protocol data": "nvlink_rx",
    "nvlink tx requests user data": "nvlink_tx",
    "nvlink tx requests protocol data": "nvlink_tx",
    "nvlink tx responses user data": "nvlink_tx",
    "nvlink tx responses protocol data": "nvlink_tx",
}
