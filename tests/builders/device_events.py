"""Planting of device work: kernels, copies, memsets, graph executions, migrations, and the calls that launch
it."""

import re
from collections.abc import Sequence
from typing import Final, Self, Unpack

from tests.builders.recording import At, Place, Raw, Row, Scope, Text, Time, Where, at

LAUNCH: Final = "cudaLaunchKernel_v7000"
GRAPH_LAUNCH: Final = "cudaGraphLaunch_v10000"
COPY: Final = "cudaMemcpyAsync_v3020"
FILL: Final = "cudaMemsetAsync_v3020"

GEMM: Final = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
ADD: Final = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "std::array<char *, (unsigned long)3>>(int, T2, T3)"
)
ALL_REDUCE: Final = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"

_COPY_KINDS: Final = {
    "unknown": 0,
    "host_to_device": 1,
    "device_to_host": 2,
    "host_to_array": 3,
    "array_to_host": 4,
    "array_to_array": 5,
    "array_to_device": 6,
    "device_to_array": 7,
    "device_to_device": 8,
    "host_to_host": 9,
    "peer_to_peer": 10,
}
_MIGRATIONS: Final = {"host_to_device": 11, "device_to_host": 12, "device_to_device": 13}
_CAUSES: Final = {"prefetch": 1, "page_fault": 2, "speculative": 3, "eviction": 4, "access_counters": 5}
_PAGEABLE, _PINNED, _DEVICE, _ARRAY, _UNKNOWN = 0, 1, 2, 3, 7

Call = tuple[Time, Time]


def base_name(name: str | bytes) -> str | bytes:
    """The shortName of a kernel: no return type, namespace, template or argument."""
    if isinstance(name, bytes):
        return name
    plain = re.sub(r"<unnamed>|\(anonymous namespace\)", "unnamed", name)
    words = plain.partition("<")[0].partition("(")[0].rpartition("::")[2].split()
    return words[-1] if words else name


def call_row(name: str | bytes, call: Call, global_tid: int, correlation: int | None) -> Row:
    """A row of the API table; `cu` followed by a capital is the driver API."""
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    return {
        "start": at(call[0]),
        "end": at(call[1]),
        "eventClass": 1 if re.match(r"cu[A-Z]", text) else 0,
        "globalTid": global_tid,
        "correlationId": correlation,
        "nameId": Text(name),
        "returnValue": 0,
    }


def memory_kinds(kind: str, pinned: bool | None) -> tuple[int | None, int | None]:
    """srcKind and dstKind of a copy between such ends; `pinned` None: not known."""
    host = None if pinned is None else _PINNED if pinned else _PAGEABLE
    ends = {"host": host, "device": _DEVICE, "array": _ARRAY, "peer": _DEVICE, "unknown": None}
    source, _, target = kind.partition("_to_")
    return ends[source], ends[target or source]


class DeviceEvents(Scope):
    """Device work. Every time is in microseconds from the start of the capture."""

    def kernel(
        self,
        start: Time,
        end: Time,
        name: str | bytes = GEMM,
        *,
        call: Call | None = None,
        launch: str | bytes | None = LAUNCH,
        correlation: int | None = None,
        grid: tuple[int, int, int] = (1056, 1, 1),
        block: tuple[int, int, int] = (256, 1, 1),
        registers: int = 64,
        static_shared: int = 0,
        dynamic_shared: int = 0,
        carveout: int | None = 32_768,
        graph_node: int | None = None,
        **where: Unpack[Where],
    ) -> Self:
        """A kernel and its launch call, from 10 to 5 us before it unless `call` gives (start, end); `launch`
        None plants no call, `launch` another name another one, `correlation` an id of your own."""
        place = self._place.with_(where)
        row = self._work(place, start, end, launch, call, correlation) | {
            "demangledName": Text(name),
            "shortName": Text(base_name(name)),
            "mangledName": Text(name),
            "launchType": 1,
            "cacheConfig": 1,
            "registersPerThread": registers,
            "staticSharedMemory": static_shared,
            "dynamicSharedMemory": dynamic_shared,
            "localMemoryTotal": 115_539_968,
            "gridId": len(self._recording.rows["CUPTI_ACTIVITY_KIND_KERNEL"]) + 1,
            "sharedMemoryExecuted": carveout,
            "graphNodeId": graph_node,
            "sharedMemoryLimitConfig": 0,
            "tensorSizeMinusOneElements": "[]",
        }
        for axis, blocks, threads in zip("XYZ", grid, block, strict=True):
            row |= {f"grid{axis}": blocks, f"block{axis}": threads, f"cluster{axis}": 0}
        self._recording.add("CUPTI_ACTIVITY_KIND_KERNEL", row)
        return self

    def kernels(
        self,
        start: float,
        count: int,
        *,
        every: float,
        length: float,
        name: str | bytes = GEMM,
        **where: Unpack[Where],
    ) -> Self:
        """`count` kernels of one length, one `every` so many microseconds, each with its launch call before
        it."""
        for index in range(count):
            begin = start + index * every
            self.kernel(begin, begin + length, name, **where)
        return self

    def copy(
        self,
        start: Time,
        end: Time,
        kind: str = "host_to_device",
        *,
        bytes_: int = 1 << 20,
        pinned: bool | None = True,
        peers: tuple[int, int] | None = None,
        call: Call | None = None,
        launch: str | bytes | None = COPY,
        correlation: int | None = None,
        graph_node: int | None = None,
        **where: Unpack[Where],
    ) -> Self:
        """A copy; `pinned` is about its host side (False: pageable, None: not recorded), `peers` are the
        devices of a peer_to_peer copy. A blocking copy is one whose `call` ends after it and whose `launch`
        says so."""
        place = self._place.with_(where)
        source, target = memory_kinds(kind, pinned)
        row = self._work(place, start, end, launch, call, correlation) | {
            "bytes": bytes_,
            "copyKind": _COPY_KINDS[kind],
            "srcKind": source,
            "dstKind": target,
            "graphNodeId": graph_node,
            "copyCount": 1,
        }
        if peers is not None:
            row |= {"srcDeviceId": peers[0], "srcContextId": 1, "dstDeviceId": peers[1], "dstContextId": 1}
        self._recording.add("CUPTI_ACTIVITY_KIND_MEMCPY", row)
        return self

    def memset(
        self,
        start: Time,
        end: Time,
        *,
        bytes_: int = 4096,
        call: Call | None = None,
        launch: str | bytes | None = FILL,
        correlation: int | None = None,
        graph_node: int | None = None,
        **where: Unpack[Where],
    ) -> Self:
        """A memset and its call."""
        place = self._place.with_(where)
        row = self._work(place, start, end, launch, call, correlation)
        row |= {"bytes": bytes_, "memKind": _DEVICE, "graphNodeId": graph_node}
        self._recording.add("CUPTI_ACTIVITY_KIND_MEMSET", row)
        return self

    def graph(
        self,
        start: Time,
        end: Time,
        *,
        graph: int = 1,
        graph_exec: int = 2,
        call: Call | None = None,
        launch: str | bytes | None = GRAPH_LAUNCH,
        correlation: int | None = None,
        **where: Unpack[Where],
    ) -> Self:
        """A graph execution recorded as a whole (exporters from 2024.6.2)."""
        place = self._place.with_(where)
        row = self._work(place, start, end, launch, call, correlation)
        self._recording.add(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", row | {"graphId": graph, "graphExecId": graph_exec}
        )
        return self

    def graph_nodes(
        self,
        nodes: Sequence[tuple[Time, Time] | tuple[Time, Time, str]],
        *,
        graph_exec: int = 2,
        call: Call | None = None,
        **where: Unpack[Where],
    ) -> Self:
        """One graph launch recorded node by node: kernels that share the launch's correlation id."""
        place = self._place.with_(where)
        correlation = self._recording.correlate(place.pid)
        call = call or _before(nodes[0][0])
        if call is not None:
            self._launch(place, GRAPH_LAUNCH, call, correlation)
        for index, (start, end, *name) in enumerate(nodes):
            node = (graph_exec << 32) | index
            self.kernel(
                start,
                end,
                *name,
                launch=None,
                correlation=correlation,
                graph_node=node,
                **where,
            )
        return self

    def migration(
        self,
        start: Time,
        end: Time,
        kind: str = "host_to_device",
        *,
        bytes_: int = 65_536,
        cause: str = "page_fault",
        **where: Unpack[Where],
    ) -> Self:
        """A unified-memory migration: a copy without launch, stream or context, as nsys records it."""
        place = self._place.with_(where)
        row: Row = {
            "start": at(start),
            "end": at(end),
            "deviceId": place.device,
            "contextId": 0,
            "streamId": 0,
            "correlationId": 0,
            "globalPid": self._recording.global_pid(place.pid),
            "bytes": bytes_,
            "copyKind": _MIGRATIONS[kind],
            "srcKind": _UNKNOWN,
            "dstKind": _UNKNOWN,
            "migrationCause": _CAUSES[cause],
            "virtualAddress": 0x7AD2_0000_0000
            + 65_536 * len(self._recording.rows["CUPTI_ACTIVITY_KIND_MEMCPY"]),
        }
        self._recording.add("CUPTI_ACTIVITY_KIND_MEMCPY", row)
        return self

    def _work(
        self,
        place: Place,
        start: Time,
        end: Time,
        launch: str | bytes | None,
        call: Call | None,
        correlation: int | None,
    ) -> Row:
        """The columns that all device work has, after planting the call that launches it."""
        if correlation is None:
            correlation = self._recording.correlate(place.pid)
        call = call or _before(start)
        if launch is not None and call is not None:
            self._launch(place, launch, call, correlation)
        return {
            "start": at(start),
            "end": at(end),
            "deviceId": place.device,
            "contextId": place.context,
            "greenContextId": 0,
            "streamId": place.stream,
            "correlationId": correlation,
            "globalPid": self._recording.global_pid(place.pid),
        }

    def _launch(self, place: Place, name: str | bytes, call: Call, correlation: int) -> None:
        global_tid = self._recording.global_tid(place.pid, place.tid)
        self._recording.add("CUPTI_ACTIVITY_KIND_RUNTIME", call_row(name, call, global_tid, correlation))


def _before(start: Time) -> Call | None:
    """When work that starts then is launched; None for a row without a usable time."""
    return None if start is None or isinstance(start, Raw) else (start - 10, start - 5)


__all__ = ["ADD", "ALL_REDUCE", "GEMM", "LAUNCH", "At", "Call", "DeviceEvents", "call_row"]
