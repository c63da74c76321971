"""What was recorded, as one Polars frame per kind of event, each with a declared schema.

Times are integer nanoseconds relative to the start of the capture. Text is kept once, in `Trace.strings`;
events hold its code. A frame always exists; whether its table was in the export is in `Trace.recorded`:
"not recorded" is not "zero".
"""

from dataclasses import dataclass, field
from typing import Final

import polars as pl

Schema = dict[str, pl.DataType | type[pl.DataType]]

_TIMES: Final[Schema] = {"start_ns": pl.Int64, "end_ns": pl.Int64}
_THREAD: Final[Schema] = {"pid": pl.Int32, "tid": pl.Int32}
# correlation: null where the id is 0, NULL or negative, since those never join
_DEVICE: Final[Schema] = {
    "pid": pl.Int32,
    "device": pl.Int32,
    "context": pl.UInt32,
    "stream": pl.UInt32,
    "correlation": pl.UInt32,
}

KERNELS: Final[Schema] = {
    **_TIMES,
    **_DEVICE,
    "name": pl.UInt32,  # demangled, with templates
    "grid_x": pl.UInt32,
    "grid_y": pl.UInt32,
    "grid_z": pl.UInt32,
    "block_x": pl.UInt16,
    "block_y": pl.UInt16,
    "block_z": pl.UInt16,
    "registers": pl.UInt16,
    "static_shared_bytes": pl.UInt32,
    "dynamic_shared_bytes": pl.UInt32,
    "shared_carveout_bytes": pl.UInt32,
    "graph_node": pl.UInt64,  # null outside CUDA graphs
}
MEMCPYS: Final[Schema] = {
    **_TIMES,
    **_DEVICE,
    "bytes": pl.Int64,
    "copy_kind": pl.UInt8,  # codes of section 12 of the reference: 1 host to device, 2 device to host ...
    "source_kind": pl.UInt8,  # 0 pageable, 1 pinned, 2 device, 3 array, 4 managed ... null unknown
    "target_kind": pl.UInt8,
    "source_device": pl.Int32,  # peer copies only
    "target_device": pl.Int32,
    "graph_node": pl.UInt64,
}
MEMSETS: Final[Schema] = {
    **_TIMES,
    **_DEVICE,
    "bytes": pl.Int64,
    "memory_kind": pl.UInt8,
    "graph_node": pl.UInt64,
}
GRAPHS: Final[Schema] = {**_TIMES, **_DEVICE, "graph": pl.UInt32, "graph_exec": pl.UInt32}
API: Final[Schema] = {
    **_TIMES,
    **_THREAD,
    "correlation": pl.UInt32,
    "name": pl.UInt32,  # as recorded; suffixes are stripped by metrics
    "return_value": pl.Int32,
}
# stream and event: null where they do not apply (both: the whole context)
SYNCS: Final[Schema] = {**_TIMES, **_DEVICE, "event": pl.UInt32}
NVTX: Final[Schema] = {
    **_TIMES,  # an open range ends at the capture's end
    **_THREAD,
    "name": pl.UInt32,
    "domain": pl.UInt32,  # code of the domain's name; null for the default domain
    "kind": pl.UInt8,  # 59 push/pop, 60 start/end
    "open": pl.Boolean,
    "payload": pl.UInt32,  # code of a JSON payload's text (NCCL), null otherwise
}
OSRT: Final[Schema] = {**_TIMES, **_THREAD, "name": pl.UInt32}
HOST_COMMUNICATION: Final[Schema] = {**_TIMES, **_THREAD, "name": pl.UInt32}  # MPI and UCX calls
OVERHEADS: Final[Schema] = {
    **_TIMES,
    **_THREAD,
    "name": pl.UInt32,
    "kind": pl.UInt8,  # overheadType; null where the exporter has none or 0, "undefined": the name tells
}
SCHEDULING: Final[Schema] = {"time_ns": pl.Int64, **_THREAD, "cpu": pl.Int32, "scheduled_in": pl.Boolean}
SAMPLES: Final[Schema] = {"time_ns": pl.Int64, **_THREAD, "symbol": pl.UInt32, "module": pl.UInt32}
GPU_METRICS: Final[Schema] = {
    "time_ns": pl.Int64,
    "gpu_id": pl.Int32,  # TARGET_INFO_GPU.id, not the CUDA ordinal
    "metric": pl.String,  # sm_active, tensor_active, dram_read, dram_write, sm_clock_mhz, gr_active, ...
    "value": pl.Float64,  # percent metrics as shares 0..1, clocks in MHz
}
STRINGS: Final[Schema] = {"code": pl.UInt32, "text": pl.String}
GPU_INFO: Final[Schema] = {
    "gpu_id": pl.Int32,
    "name": pl.String,
    "bus_location": pl.String,
    "uuid": pl.String,  # without the GPU- prefix
    "cuda_ordinal": pl.Int32,  # cuDevice; null unknown
    "sm_count": pl.Int32,
    "compute_major": pl.Int32,
    "compute_minor": pl.Int32,
    "max_warps_per_sm": pl.Int32,  # the limits: null where 0 or not recorded
    "max_blocks_per_sm": pl.Int32,
    "max_registers_per_sm": pl.Int32,
    "max_registers_per_block": pl.Int32,
    "max_shared_per_sm_bytes": pl.Int64,
    "max_shared_per_block_bytes": pl.Int64,  # opt-in limit
    "threads_per_warp": pl.Int32,
    "memory_bytes": pl.Int64,
    "memory_bytes_per_s": pl.Int64,
    "clock_hz": pl.Int64,
}
CUDA_DEVICES: Final[Schema] = {
    "pid": pl.Int32,
    "cuda_ordinal": pl.Int32,
    "gpu_id": pl.Int32,
    "uuid": pl.String,
    "sm_count": pl.Int32,
}
CONTEXTS: Final[Schema] = {
    "pid": pl.Int32,
    "device": pl.Int32,
    "context": pl.UInt32,
    "null_stream": pl.UInt32,
}
STREAMS: Final[Schema] = {
    "pid": pl.Int32,
    "context": pl.UInt32,
    "stream": pl.UInt32,
    "priority": pl.Int32,
    "flag": pl.UInt8,
}
PROCESSES: Final[Schema] = {"pid": pl.Int32, "name": pl.String}  # base name only
THREADS: Final[Schema] = {"pid": pl.Int32, "tid": pl.Int32, "name": pl.String}

FRAMES: Final[dict[str, Schema]] = {
    "kernels": KERNELS,
    "memcpys": MEMCPYS,
    "memsets": MEMSETS,
    "graphs": GRAPHS,
    "api": API,
    "syncs": SYNCS,
    "nvtx": NVTX,
    "osrt": OSRT,
    "host_communication": HOST_COMMUNICATION,
    "overheads": OVERHEADS,
    "scheduling": SCHEDULING,
    "samples": SAMPLES,
    "gpu_metrics": GPU_METRICS,
    "strings": STRINGS,
    "gpu_info": GPU_INFO,
    "cuda_devices": CUDA_DEVICES,
    "contexts": CONTEXTS,
    "streams": STREAMS,
    "processes": PROCESSES,
    "threads": THREADS,
}

DROP_REASONS: Final = ("not_finished", "zero_times", "inverted", "too_long")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message that nsys itself left in the capture; `text` is nsys' own wording, paths removed."""

    severity: int  # 1 info, 2 warning, 3 error, 4 verbose
    text: str
    count: int = 1  # how often it was left


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of the export before anything is dropped (API without class 67); None where there is no table."""

    kernels: int | None = None
    memcpys: int | None = None
    memsets: int | None = None
    graphs: int | None = None
    nvtx_ranges: int | None = None
    nvtx_points: int | None = None
    nvtx_open_ranges: int | None = None
    api_calls: int | None = None
    syncs: int | None = None


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """What is known of the capture itself. Nothing here is private: only allow-listed metadata is read."""

    file: str  # base name
    kind: str  # "nsys-rep", "qdrep", "sqlite"
    exporter_version: str | None = None
    capture_version: str | None = None
    schema_version: str | None = None
    started_utc: str | None = None  # ISO 8601 with Z
    started_epoch_ns: int | None = None
    system_clock_ns: int | None = None
    duration_ns: int | None = None
    filtered: bool = False  # exported with --tables or --times
    captured: frozenset[str] = (
        frozenset()
    )  # CAPTURE_EVENT_TYPE: Cuda, NvtxEvents, OSRuntime ...; empty where unknown
    graph_trace_mode: str | None = None  # "graph", "node"
    environment: dict[str, str] = field(default_factory=dict)  # allow-listed names only
    secret_variables: int = 0  # variables of the environment whose names look like secrets
    private_variables: int = 0  # all variables of the environment in the file
    host_key: str | None = None  # tells two hosts apart, does not name them; never written to an output
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything that was recorded. Frames follow `FRAMES`; rows come in any order."""

    info: CaptureInfo
    recorded: frozenset[str]  # names of frames whose table is in the export, even if empty
    counts: Counts
    dropped: dict[str, int]  # by reason, every reason listed
    kernels: pl.DataFrame
    memcpys: pl.DataFrame
    memsets: pl.DataFrame
    graphs: pl.DataFrame
    api: pl.DataFrame
    syncs: pl.DataFrame
    nvtx: pl.DataFrame
    osrt: pl.DataFrame
    host_communication: pl.DataFrame
    overheads: pl.DataFrame
    scheduling: pl.DataFrame
    samples: pl.DataFrame
    gpu_metrics: pl.DataFrame
    strings: pl.DataFrame
    gpu_info: pl.DataFrame
    cuda_devices: pl.DataFrame
    contexts: pl.DataFrame
    streams: pl.DataFrame
    processes: pl.DataFrame
    threads: pl.DataFrame


def empty(schema: Schema) -> pl.DataFrame:
    """A frame of that schema without rows."""
    return pl.DataFrame(schema=schema)
