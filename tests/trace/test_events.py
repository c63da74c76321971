"""What each event table becomes."""

from pathlib import Path

import polars as pl
import pytest

from nsys_triage.trace import model
from tests.trace.tables import (
    GRAPH,
    GTID,
    KERNEL,
    MEMCPY,
    MEMSET,
    NVTX,
    PID,
    RUNTIME,
    SYNC,
    TID,
    call,
    device,
    duration,
    host,
    kernel,
    load,
    names,
    nvtx,
    strings,
)

NOT_APPLICABLE = 4_294_967_295


def test_every_frame_follows_its_schema_and_is_empty_where_nothing_is(tmp_path: Path) -> None:
    trace = load(
        tmp_path / "t.sqlite",
        {"StringIds": []},
        sql=["ALTER TABLE StringIds ADD COLUMN id", "ALTER TABLE StringIds ADD COLUMN value"],
    )
    for name, schema in model.FRAMES.items():
        frame = getattr(trace, name)
        assert frame.schema == pl.Schema(schema), name
        assert frame.height == 0, name
    assert trace.recorded == {"strings"}
    assert trace.counts == model.Counts()
    assert trace.dropped == dict.fromkeys(model.DROP_REASONS, 0)


def test_recorded_is_not_the_same_as_not_empty(tmp_path: Path) -> None:
    trace = load(tmp_path / "t.sqlite", {KERNEL: [], MEMCPY: [device(1, 2)], RUNTIME: []})
    assert trace.recorded == {"kernels", "memcpys", "api"}
    assert (trace.counts.kernels, trace.counts.memcpys, trace.counts.api_calls) == (0, 1, 0)
    assert (trace.counts.memsets, trace.counts.graphs, trace.counts.syncs, trace.counts.nvtx_ranges) == (
        None,
    ) * 4


def test_a_kernel(tmp_path: Path) -> None:
    row = {
        **kernel(10, 30, 2),
        "gridX": 2**31 - 1,
        "gridY": 2,
        "gridZ": 3,
        "blockX": 1024,
        "blockY": 5,
        "blockZ": 6,
        "registersPerThread": 255,
        "staticSharedMemory": 1_024,
        "dynamicSharedMemory": 233_472,
        "sharedMemoryExecuted": 32_768,
        "shortName": 1,
        "correlationId": 4_000_000_000,
        "deviceId": 3,
        "contextId": 9,
        "streamId": 24,
    }
    trace = load(tmp_path / "t.sqlite", {KERNEL: [row], "StringIds": strings("short", "void f<int>()")})
    assert trace.kernels.row(0, named=True) == {
        "start_ns": 10,
        "end_ns": 30,
        "pid": PID,
        "device": 3,
        "context": 9,
        "stream": 24,
        "correlation": 4_000_000_000,
        "name": 2,
        "grid_x": 2**31 - 1,
        "grid_y": 2,
        "grid_z": 3,
        "block_x": 1024,
        "block_y": 5,
        "block_z": 6,
        "registers": 255,
        "static_shared_bytes": 1_024,
        "dynamic_shared_bytes": 233_472,
        "shared_carveout_bytes": 32_768,
        "graph_node": None,
    }
    assert names(trace, "kernels") == ["void f<int>()"]


def test_columns_that_an_old_exporter_lacks_are_null_but_the_process(tmp_path: Path) -> None:
    trace = load(
        tmp_path / "t.sqlite", {KERNEL: [{"start": 1, "end": 2, "shortName": 1}], "StringIds": strings("k")}
    )
    known = {name: value for name, value in trace.kernels.row(0, named=True).items() if value is not None}
    assert known == {"start_ns": 1, "end_ns": 2, "pid": 0, "name": 1}


@pytest.mark.parametrize(
    ("recorded", "expected"), [(5, 5), (0, None), (None, None), (-1, None), (2**32, None)]
)
def test_correlations_that_never_join_are_null(
    tmp_path: Path, recorded: int | None, expected: int | None
) -> None:
    tables = {
        KERNEL: [kernel(1, 2, correlationId=recorded)],
        RUNTIME: [call(1, 2, correlationId=recorded)],
    }
    trace = load(tmp_path / "t.sqlite", tables)
    assert trace.kernels["correlation"].to_list() == trace.api["correlation"].to_list() == [expected]


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (None, None),
        (0, None),
        (2 << 32 | 5, 2 << 32 | 5),
        ((2**31 + 1 << 32 | 5) - 2**64, 2**31 + 1 << 32 | 5),
    ],
)
def test_graph_nodes(tmp_path: Path, recorded: int | None, expected: int | None) -> None:
    tables = {table: [device(1, 2, graphNodeId=recorded)] for table in (KERNEL, MEMCPY, MEMSET)}
    trace = load(tmp_path / "t.sqlite", tables)
    for frame in (trace.kernels, trace.memcpys, trace.memsets):
        assert frame["graph_node"].to_list() == [expected]


def test_copies(tmp_path: Path) -> None:
    rows = [
        device(1, 2, bytes=2**40, copyKind=1, srcKind=0, dstKind=2),
        device(3, 4, bytes=0, copyKind=10, srcKind=2, dstKind=2, srcDeviceId=1, dstDeviceId=0),
        device(5, 6, bytes=4, copyKind=11, srcKind=7, dstKind=7, correlationId=0, streamId=0),
        device(7, 8, bytes=4, copyKind=2, srcKind=None, dstKind=None),
    ]
    trace = load(tmp_path / "t.sqlite", {MEMCPY: rows})
    columns = ("bytes", "copy_kind", "source_kind", "target_kind", "source_device", "target_device")
    assert trace.memcpys.select(columns).rows() == [
        (2**40, 1, 0, 2, None, None),
        (0, 10, 2, 2, 1, 0),
        (4, 11, None, None, None, None),
        (4, 2, None, None, None, None),
    ]


def test_memsets_and_graph_executions(tmp_path: Path) -> None:
    tables = {
        MEMSET: [device(1, 2, bytes=512, memKind=2), device(3, 4, bytes=1, memKind=None)],
        GRAPH: [device(5, 9, graphId=4, graphExecId=6)],
    }
    trace = load(tmp_path / "t.sqlite", tables)
    assert trace.memsets.select("bytes", "memory_kind").rows() == [(512, 2), (1, None)]
    assert trace.graphs.select("start_ns", "graph", "graph_exec", "correlation").rows() == [(5, 4, 6, 1)]
    assert trace.counts.graphs == 1


def test_calls_that_carry_a_backtrace_are_no_calls(tmp_path: Path) -> None:
    failed = call(3, 4, eventClass=1, returnValue=600)
    rows = [call(1, 2), call(1, 2, 2, eventClass=67), failed, call(5, 6, eventClass=None)]
    trace = load(tmp_path / "t.sqlite", {RUNTIME: rows, "StringIds": strings("cudaLaunchKernel_v7000", "c")})
    assert trace.api.select("start_ns", "pid", "tid", "name", "return_value").rows() == [
        (1, PID, TID, 1, 0),
        (3, PID, TID, 1, 600),
        (5, PID, TID, 1, 0),
    ]
    assert trace.counts.api_calls == 3
    assert names(trace, "api") == ["cudaLaunchKernel_v7000"] * 3
    assert trace.strings.height == 1


def test_synchronisation_records(tmp_path: Path) -> None:
    rows = [
        device(1, 2, streamId=NOT_APPLICABLE, eventId=NOT_APPLICABLE),
        device(3, 4, streamId=13, eventId=NOT_APPLICABLE),
        device(5, 6, streamId=13, eventId=0),
    ]
    trace = load(tmp_path / "t.sqlite", {SYNC: rows})
    assert trace.syncs.select("stream", "event").rows() == [(None, None), (13, None), (13, 0)]
    assert trace.counts.syncs == 3


def test_overheads_of_both_tables(tmp_path: Path) -> None:
    tables = {
        "CUPTI_ACTIVITY_KIND_OVERHEAD": [host(5, 6, 2, overheadType=7), host(7, 8, None, overheadType=8)],
        "PROFILER_OVERHEAD": [host(1, 2, 1, overheadType=0), host(3, 4, 1, overheadType=3)],
        "StringIds": strings("CUDA profiling initialization", "Lazy Function Loading"),
    }
    trace = load(tmp_path / "t.sqlite", tables)
    rows = list(
        zip(trace.overheads["start_ns"], names(trace, "overheads"), trace.overheads["kind"], strict=True)
    )
    assert rows == [
        (1, "CUDA profiling initialization", None),
        (3, "CUDA profiling initialization", 3),
        (5, "Lazy Function Loading", 7),
        (7, "[unknown]", 8),
    ]


def test_overheads_before_they_had_a_type(tmp_path: Path) -> None:
    trace = load(tmp_path / "t.sqlite", {"PROFILER_OVERHEAD": [host(1, 2, returnValue=3)]})
    assert trace.overheads["kind"].to_list() == [None]


def test_os_calls_and_scheduling(tmp_path: Path) -> None:
    tables = {
        "OSRT_API": [host(1, 2, 1, nestingLevel=0)],
        "SCHED_EVENTS": [
            {"start": -9, "cpu": 3, "isSchedIn": 1, "globalTid": GTID},
            {"start": 4, "cpu": 3, "isSchedIn": 0, "globalTid": GTID},
        ],
        "StringIds": strings("poll"),
    }
    trace = load(tmp_path / "t.sqlite", tables)
    assert trace.osrt.rows() == [(1, 2, PID, TID, 1)]
    assert names(trace, "osrt") == ["poll"]
    assert trace.scheduling.rows() == [(-9, PID, TID, 3, True), (4, PID, TID, 3, False)]


def test_samples_have_their_innermost_symbol(tmp_path: Path) -> None:
    samples = [
        {"id": number, "start": number * 100, "cpu": 0, "globalTid": GTID, "cpuCycles": cycles}
        for number, cycles in ((1, 500), (2, 0), (3, 900), (4, 7))
    ]
    chains = [
        {"id": number, "symbol": symbol, "module": 4, "stackDepth": depth}
        for number, symbol, depth in ((1, 2, 1), (1, 1, 0), (2, 2, 0), (3, 3, 0))
    ]
    tables = {
        "COMPOSITE_EVENTS": samples,
        "SAMPLING_CALLCHAINS": chains,
        "StringIds": strings("inner", "outer", "other", "libc.so.6"),
    }
    trace = load(tmp_path / "t.sqlite", tables)
    assert trace.samples["time_ns"].to_list() == [100, 300, 400]
    assert names(trace, "samples", "symbol") == ["inner", "other", None]
    assert names(trace, "samples", "module") == ["libc.so.6", "libc.so.6", None]


def test_samples_without_call_chains(tmp_path: Path) -> None:
    samples = [{"id": 1, "start": 5, "globalTid": GTID, "cpuCycles": 3}]
    trace = load(tmp_path / "t.sqlite", {"COMPOSITE_EVENTS": samples})
    assert trace.samples.rows() == [(5, PID, TID, None, None)]


MPI = {
    "MPI_P2P_EVENTS": [host(1, 2)],
    "MPI_COLLECTIVES_EVENTS": [host(3, 4)],
    "UCP_SUBMIT_EVENTS": [host(5, 6)],
}
DOMAIN = [nvtx(0, None, "MPI", kind=75, domainId=2)]


def mpi_tables() -> dict[str, list[dict[str, object]]]:
    return {
        table: [{"start": row["start"], "end": row["end"], "globalTid": GTID, "textId": 1} for row in rows]
        for table, rows in MPI.items()
    }


def test_mpi_calls_have_tables_of_their_own(tmp_path: Path) -> None:
    tables = {**mpi_tables(), "StringIds": strings("MPI_Send")}
    trace = load(tmp_path / "t.sqlite", tables)
    assert trace.host_communication["start_ns"].to_list() == [1, 3, 5]
    assert names(trace, "host_communication") == ["MPI_Send"] * 3
    assert "host_communication" in trace.recorded


def test_mpi_calls_in_nvtx(tmp_path: Path) -> None:
    rows = [
        *DOMAIN,
        nvtx(1, 2, "MPI_Allreduce", domainId=2),
        nvtx(3, 4, "mine"),
        nvtx(5, 6, "other library", domainId=3),
        nvtx(7, None, "MPI_Finalize", domainId=2),
        nvtx(
            8, 9, "MPI_Allreduce", domainId=2, globalTid=GTID + (1 << 24)
        ),  # another process has no such domain
    ]
    trace = load(tmp_path / "t.sqlite", {NVTX: rows, **duration(1_000)})
    assert names(trace, "host_communication") == ["MPI_Allreduce", "MPI_Finalize"]
    assert trace.host_communication.select("start_ns", "end_ns").rows() == [(1, 2), (7, 1_000)]
    assert names(trace, "nvtx") == ["mine", "other library", "MPI_Allreduce"]
    assert (trace.counts.nvtx_ranges, trace.counts.nvtx_open_ranges) == (5, 1)
    assert trace.recorded == {"nvtx", "host_communication"}


def test_mpi_calls_are_never_taken_from_both(tmp_path: Path) -> None:
    tables = {**mpi_tables(), NVTX: [*DOMAIN, nvtx(1, 2, "MPI_Allreduce", domainId=2), nvtx(3, 4, "mine")]}
    trace = load(tmp_path / "t.sqlite", tables)
    assert trace.host_communication.height == 3
    assert names(trace, "nvtx") == ["mine"]
    assert trace.counts.nvtx_ranges == 2
