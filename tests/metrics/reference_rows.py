"""The rows of a trace as plain objects, and what their names mean, for the slow reference of the ledger.

It shares no code with the package's metrics: names are looked up in lists written for the tests.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from nsys_triage.trace.model import Trace

Thread = tuple[int, int]
GpuKey = int | tuple[int, int]  # the physical GPU where known, else (process, device)

# --- what names mean --------------------------------------------------------------------------------------------

COMMUNICATES = {
    "gemm": False,
    "my_non_nccl_kernel": False,
    "void attention<float>(float *)": False,
    "ncclDevKernel_AllReduce_Sum_f32": True,
    "rcclGenericKernel": True,
    "nvshmemi_transfer_rma": True,
}
SAYS_LOADING = {
    "next batch": True,
    "DataLoader": True,
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": True,
    "load_data": True,
    "Fetch, of 3": True,
    "decoder": False,
    "train": False,
    "aten::fetch": False,
    "prefetch weights": False,
}
SYNCHRONISES = {
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaThreadSynchronize",
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuEventSynchronize",
}
KERNEL_LAUNCHES = {
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cudaLaunchCooperativeKernel",
}
GRAPH_LAUNCHES = {"cudaGraphLaunch", "cuGraphLaunch"}
LOADS = {
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuModuleGetFunction",
    "cuLibraryLoadData",
    "cuLibraryGetKernel",
    "cuLinkComplete",
    "cudaLibraryLoadData",
}
ALLOCATES = {
    "cudaMalloc",
    "cudaFree",
    "cudaHostAlloc",
    "cudaMallocHost",
    "cudaFreeHost",
    "cudaHostRegister",
    "cudaMallocManaged",
    "cuMemAlloc",
    "cuMemFree",
}
READS = {
    "poll",
    "select",
    "epoll_wait",
    "read",
    "pread",
    "recv",
    "sem_wait",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "futex",
}
WAITS_FOR_A_THREAD = {"pthread_cond_wait", "pthread_cond_timedwait", "sem_wait"}
PROFILER_NAMES = (
    "buffer flush",
    "data flush",
    "profiling init",
    "instrumentation",
    "resource",
    "chunk allocation",
    "tls allocation",
)
LOADING_NAMES = ("module loading", "lazy function loading", "driver compiler")


def plain(name: str) -> str:
    """A CUDA call without `_v3020`, `_ptsz`, `_ptds`."""
    return re.sub(r"_pt(sz|ds)$", "", re.sub(r"_v\d+$", "", name))


def is_copy_call(name: str) -> bool:
    return plain(name).startswith(("cudaMemcpy", "cuMemcpy"))


def blocks(name: str) -> bool:
    """Whether the call waits by its name."""
    copies = plain(name).startswith(("cudaMemcpy", "cuMemcpy", "cudaMemset", "cuMemset"))
    return plain(name) in SYNCHRONISES or (copies and "Async" not in name)


# --- rows -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A row of the host side."""

    start: int
    end: int
    thread: Thread
    name: str
    kind: int | None = None  # of overheads

    def covers(self, start: int, end: int) -> bool:
        return self.start <= start and end <= self.end


@dataclass(frozen=True)
class Call(Row):
    """A CUDA call."""

    correlation: int | None = None
    waits: bool = False

    def inside(self, other: "Call") -> bool:
        return other.start <= self.start and self.end <= other.end


@dataclass(frozen=True)
class Operation:
    """Device work."""

    start: int
    end: int
    what: str
    gpu: GpuKey
    pid: int
    stream: tuple[Any, ...]
    stream_id: int | None
    correlation: int | None
    order: int
    name: str = ""
    size: int = 0
    copy_kind: int | None = None
    pageable: bool = False
    node: bool = False
    launch: Call | None = None

    @property
    def large_input(self) -> bool:
        return self.copy_kind == 1 and self.size >= 64 * 1024

    @property
    def large_read(self) -> bool:
        return self.copy_kind == 2 and self.size >= 1024 * 1024


# --- reading a trace --------------------------------------------------------------------------------------------


class Rows:
    """The rows of a trace as objects."""

    def __init__(self, trace: Trace) -> None:
        self.texts: dict[int, str] = dict(trace.strings.iter_rows())
        self.gpus = {
            (r["pid"], r["cuda_ordinal"]): r["gpu_id"] for r in trace.cuda_devices.iter_rows(named=True)
        }
        calls = [
            Call(
                r["start_ns"],
                r["end_ns"],
                (r["pid"], r["tid"]),
                self.texts[r["name"]],
                correlation=r["correlation"],
            )
            for r in trace.api.iter_rows(named=True)
        ]
        launching: dict[tuple[int, int | None], Call] = {
            (c.thread[0], c.correlation): c for c in calls if c.correlation is not None
        }
        ops = list(self._operations(trace))
        found = [(op, launching.get((op.pid, op.correlation))) for op in ops]
        did_block = {id(c) for op, c in found if c and self._did_block(op, c)}
        waiting = {id(c): replace(c, waits=blocks(c.name) or id(c) in did_block) for c in calls}
        self.calls = list(waiting.values())
        self.operations = [replace(op, launch=waiting[id(c)] if c else None) for op, c in found]
        self.os_calls, self.mpi, self.nvtx, self.overheads = (
            [
                Row(
                    r["start_ns"],
                    r["end_ns"],
                    (r["pid"], r["tid"]),
                    self.texts.get(r["name"], ""),
                    r.get("kind"),
                )
                for r in frame.iter_rows(named=True)
            ]
            for frame in (trace.osrt, trace.host_communication, trace.nvtx, trace.overheads)
        )

    @staticmethod
    def _did_block(op: Operation, call: Call) -> bool:
        return (
            op.what == "copy"
            and op.pageable
            and is_copy_call(call.name)
            and "Async" in call.name
            and call.end >= op.end
        )

    def _operations(self, trace: Trace) -> Iterator[Operation]:
        order = 0
        for table, what in (
            ("kernels", "kernel"),
            ("graphs", "graph"),
            ("memcpys", "copy"),
            ("memsets", "memset"),
        ):
            for r in getattr(trace, table).iter_rows(named=True):
                order += 1
                name = self.texts.get(r["name"], "") if what == "kernel" else ""
                yield Operation(
                    start=r["start_ns"],
                    end=r["end_ns"],
                    what=what if what != "kernel" else "communication" if COMMUNICATES[name] else "compute",
                    gpu=self.gpus.get((r["pid"], r["device"]), (r["pid"], r["device"])),
                    pid=r["pid"],
                    stream=(r["pid"], r["device"], r["context"], r["stream"]),
                    stream_id=r["stream"],
                    correlation=r["correlation"],
                    order=order,
                    name=name,
                    size=r.get("bytes") or 0 if what == "copy" else 0,
                    copy_kind=r.get("copy_kind"),
                    pageable=0 in (r.get("source_kind"), r.get("target_kind")),
                    node=bool(r.get("graph_node")),
                )
