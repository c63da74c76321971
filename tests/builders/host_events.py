"""Planting of host activity: API calls, waits, NVTX, OS runtime, MPI, overheads, scheduling, samples."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, Self, Unpack

from tests.builders.device_events import call_row
from tests.builders.recording import NOT_APPLICABLE, At, Duration, Place, Row, Scope, Text, Time, Where, at
from tests.builders.schema import at_least, has_table, sync_code

_MARK, _RENAME, _PUSH_POP, _START_END, _DOMAIN = 34, 39, 59, 60, 75
_METADATA_TIME: Final = At(-1_904_512_337)  # names and domains may lie seconds before the capture

_MPI_TABLES: Final = {
    "collective": "MPI_COLLECTIVES_EVENTS",
    "point_to_point": "MPI_P2P_EVENTS",
    "wait": "MPI_START_WAIT_EVENTS",
    "other": "MPI_OTHER_EVENTS",
}
_OVERHEADS: Final = {
    "driver_jit": (2, "Driver Compiler"),
    "buffer_flush": (3, "CUPTI Buffer flush"),
    "instrumentation": (4, "CUPTI Instrumentation"),
    "resource": (5, "CUPTI Resource Management"),
    "module_load": (6, "Runtime Triggered Module Loading"),
    "lazy_load": (7, "Lazy Function Loading"),
    "command_buffer_full": (8, "Command Buffer Full"),
}


class HostEvents(Scope):
    """Host activity. Every time is in microseconds from the start of the capture."""

    # --- CUDA API ---------------------------------------------------------------------------------------

    def api(
        self,
        name: str | bytes,
        start: Time,
        end: Time,
        *,
        correlation: int | None = None,
        result: int = 0,
        duplicate: bool = False,
        **where: Unpack[Where],
    ) -> Self:
        """A CUDA API call; `duplicate` adds the row of class 67 that --cudabacktrace leaves for every
        call."""
        place = self._place.with_(where)
        if correlation is None:
            correlation = self._recording.correlate(place.pid)
        row = call_row(name, (start, end), self._thread(place), correlation) | {"returnValue": result}
        self._recording.add("CUPTI_ACTIVITY_KIND_RUNTIME", row)
        if duplicate:
            plain = re.sub(r"_v\d+$", "", name) if isinstance(name, str) else name
            again = {"eventClass": 67, "nameId": Text(plain), "callchainId": correlation}
            self._recording.add("CUPTI_ACTIVITY_KIND_RUNTIME", row | again)
        return self

    def wait(
        self,
        name: str,
        start: float,
        end: float,
        *,
        event: int = 1,
        record: bool = True,
        **where: Unpack[Where],
    ) -> Self:
        """A synchronising call with the synchronisation record that lies in it; what it waits for is read
        from its name (cudaDeviceSynchronize, cudaStreamSynchronize, cudaEventSynchronize and their driver
        twins)."""
        place = self._place.with_(where)
        correlation = self._recording.correlate(place.pid)
        self.api(name, start, end, correlation=correlation, **where)
        if record:
            waits_for = _waited_for(name)
            row: Row = {
                "start": at(min(start + 1, end)),
                "end": at(max(start, end - 1)),
                "deviceId": place.device,
                "contextId": place.context,
                "greenContextId": 0,
                "streamId": place.stream if waits_for == "stream" else NOT_APPLICABLE,
                "correlationId": correlation,
                "globalPid": self._recording.global_pid(place.pid),
                "syncType": sync_code(self.version, waits_for),
                "eventId": event if waits_for == "event" else NOT_APPLICABLE,
                "eventSyncId": 0 if waits_for == "event" else NOT_APPLICABLE,
            }
            self._recording.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", row)
        return self

    # --- NVTX -------------------------------------------------------------------------------------------

    def range(
        self,
        name: str | bytes | None,
        start: Time,
        end: Time,
        *,
        domain: str | None = None,
        registered: bool = False,
        payload: int | None = None,
        json_payload: Mapping[str, object] | str | None = None,
        **where: Unpack[Where],
    ) -> Self:
        """A push/pop range of a thread; `registered` names lie in StringIds, `json_payload` is what NCCL
        leaves."""
        text = None
        if json_payload is not None:
            text = json_payload if isinstance(json_payload, str) else json.dumps(json_payload)
        more: Row = {"uint64Value": payload, "jsonText": text}
        return self._nvtx(_PUSH_POP, name, at(start), at(end), domain, registered, more, where)

    def process_range(
        self,
        name: str | bytes | None,
        start: Time,
        end: Time,
        *,
        end_tid: int | None = None,
        domain: str | None = None,
        registered: bool = False,
        **where: Unpack[Where],
    ) -> Self:
        """A start/end range, which may end on another thread of its process."""
        place = self._place.with_(where)
        more: Row = {"rangeId": len(self._recording.rows["NVTX_EVENTS"]) + 1}
        if end_tid is not None:
            more["endGlobalTid"] = self._recording.global_tid(place.pid, end_tid)
        return self._nvtx(_START_END, name, at(start), at(end), domain, registered, more, where)

    def open_range(
        self,
        name: str | bytes,
        start: Time,
        *,
        process_wide: bool = False,
        closed: bool = False,
        **where: Unpack[Where],
    ) -> Self:
        """A range that was never ended: without an end, or `closed` at the capture's end as nsys usually
        does."""
        kind = _START_END if process_wide else _PUSH_POP
        return self._nvtx(kind, name, at(start), Duration() if closed else None, None, False, {}, where)

    def mark(
        self, name: str | bytes, time: Time, *, domain: str | None = None, **where: Unpack[Where]
    ) -> Self:
        """An instant."""
        return self._nvtx(_MARK, name, at(time), None, domain, False, {}, where)

    def _nvtx(
        self,
        kind: int,
        name: str | bytes | None,
        start: object,
        end: object,
        domain: str | None,
        registered: bool,
        more: Row,
        where: Where,
    ) -> Self:
        place = self._place.with_(where)
        row: Row = {
            "start": start,
            "end": end,
            "eventType": kind,
            "text": None if registered else name,
            "textId": Text(name) if registered and name is not None else None,
            "globalTid": self._thread(place),
            "domainId": self._domain(place, domain),
        }
        self._recording.add("NVTX_EVENTS", row | more)
        return self

    def _domain(self, place: Place, name: str | None) -> int:
        """The domain's number, which counts from 1 in each process; the first use plants the row that names
        it."""
        if name is None:
            return 0
        known = self._recording.domains
        if (place.pid, name) not in known:
            known[place.pid, name] = 1 + sum(pid == place.pid for pid, _ in known)
            row: Row = {
                "start": _METADATA_TIME,
                "eventType": _DOMAIN,
                "text": name,
                "globalTid": self._thread(place),
                "domainId": known[place.pid, name],
            }
            self._recording.add("NVTX_EVENTS", row)
        return known[place.pid, name]

    # --- operating system, MPI, overheads ---------------------------------------------------------------

    def os_call(self, name: str | bytes, start: Time, end: Time, **where: Unpack[Where]) -> Self:
        """An OS runtime call (poll, read, pthread_cond_wait ...)."""
        row: Row = {
            "start": at(start),
            "end": at(end),
            "eventClass": 27,
            "globalTid": self._thread(self._place.with_(where)),
            "nameId": Text(name),
            "nestingLevel": 0,
        }
        self._recording.add("OSRT_API", row)
        return self

    def mpi(
        self,
        name: str,
        start: Time,
        end: Time,
        kind: str = "collective",
        *,
        bytes_: int | None = None,
        **where: Unpack[Where],
    ) -> Self:
        """An MPI call: "collective", "point_to_point", "wait" or "other". Exporters before 2023.4.4 have no
        MPI tables and put it into the NVTX domain MPI."""
        place = self._place.with_(where)
        self._domain(place, "MPI")
        if not has_table(_MPI_TABLES[kind], self.version):
            return self.range(name, start, end, domain="MPI", **where)
        row: Row = {
            "start": at(start),
            "end": at(end),
            "globalTid": self._thread(place),
            "textId": Text(name),
            "size": bytes_,
        }
        self._recording.add(_MPI_TABLES[kind], row)
        return self

    def ucx(self, name: str, start: Time, end: Time, **where: Unpack[Where]) -> Self:
        """A UCX call (exporters from 2023.4.4)."""
        thread = self._thread(self._place.with_(where))
        row: Row = {"start": at(start), "end": at(end), "globalTid": thread, "textId": Text(name)}
        self._recording.add("UCP_EVENTS", row)
        return self

    def mpi_rank(self, rank: int, **where: Unpack[Where]) -> Self:
        """Says which MPI rank this process is: in MPI_RANKS where there is one, and as the thread's name."""
        place = self._place.with_(where)
        if has_table("MPI_RANKS", self.version):
            self._recording.add("MPI_RANKS", {"globalTid": self._thread(place), "rank": rank})
        return self._nvtx(_RENAME, f"MPI Rank {rank}", _METADATA_TIME, None, None, False, {}, where)

    def profiler_overhead(
        self, name: str, start: Time, end: Time, *, kind: int = 0, **where: Unpack[Where]
    ) -> Self:
        """A row of PROFILER_OVERHEAD: "CUDA profiling initialization", "Chunk Allocation" ...; the overhead
        type is stored by exporters from 2025.5.2 on."""
        row: Row = {
            "start": at(start),
            "end": at(end),
            "globalTid": self._thread(self._place.with_(where)),
            "nameId": Text(name),
            "overheadType": kind,
        }
        self._recording.add("PROFILER_OVERHEAD", row)
        return self

    def cuda_overhead(self, kind: str, start: Time, end: Time, **where: Unpack[Where]) -> Self:
        """A row of CUPTI_ACTIVITY_KIND_OVERHEAD (exporters from 2025.5.2): "module_load", "lazy_load",
        "driver_jit", "command_buffer_full", or the profiler's "buffer_flush", "instrumentation",
        "resource"."""
        code, name = _OVERHEADS[kind]
        place = self._place.with_(where)
        row: Row = {
            "start": at(start),
            "end": at(end),
            "eventClass": 103,
            "globalTid": self._thread(place),
            "correlationId": self._recording.correlate(place.pid),
            "nameId": Text(name),
            "overheadType": code,
        }
        self._recording.add("CUPTI_ACTIVITY_KIND_OVERHEAD", row)
        return self

    # --- CPU --------------------------------------------------------------------------------------------

    def scheduled(self, start: Time, end: Time, *, cpu: int = 0, **where: Unpack[Where]) -> Self:
        """A stretch of a thread on a CPU: one event for getting it, one for losing it; None leaves that one
        out."""
        thread = self._thread(self._place.with_(where))
        for time, scheduled_in in ((start, 1), (end, 0)):
            if time is not None:
                row: Row = {"start": at(time), "cpu": cpu, "isSchedIn": scheduled_in, "globalTid": thread}
                self._recording.add("SCHED_EVENTS", row | {"threadState": 0})
        return self

    def sample(
        self,
        time: Time,
        frames: Sequence[str | tuple[str, str]],
        *,
        cycles: int = 1_000_000,
        **where: Unpack[Where],
    ) -> Self:
        """A CPU sample; `frames` innermost first, a symbol or (symbol, module)."""
        number = len(self._recording.rows["COMPOSITE_EVENTS"]) + 1
        row: Row = {
            "id": number,
            "start": at(time),
            "cpu": 0,
            "threadState": 1,
            "globalTid": self._thread(self._place.with_(where)),
            "cpuCycles": cycles,
        }
        self._recording.add("COMPOSITE_EVENTS", row)
        undefined = 255 if at_least(self.version, "2025.5.1") else 1000
        for depth, frame in enumerate(frames):
            symbol, module = (frame, "/usr/bin/python3.11") if isinstance(frame, str) else frame
            entry: Row = {
                "id": number,
                "symbol": Text(symbol),
                "module": Text(module),
                "originalIP": 0x55D0_0000_0000 + depth,
                "unwindMethod": undefined,
                "stackDepth": depth,
            }
            self._recording.add("SAMPLING_CALLCHAINS", entry)
        return self

    def _thread(self, place: Place) -> int:
        return self._recording.global_tid(place.pid, place.tid)


def _waited_for(name: str) -> str:
    if "Event" in name:
        return "event"
    return "stream" if "Stream" in name else "device"
