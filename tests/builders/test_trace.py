"""The builder stores what it was told, as `nsys export` would."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders.schema import has_table
from tests.builders.trace import ALL_REDUCE, MS, PID, VERSIONS, At, Raw, Text, TraceBuilder

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        db.text_factory = bytes
        return [
            tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in row)
            for row in db.execute(sql)
        ]


def everything(version: str) -> TraceBuilder:
    """One of each that the version can store."""
    trace = TraceBuilder(version, gpus=("H100", "A100"))
    trace.kernels(1_000, 5, every=100, length=90).memset(2_000, 2_010).migration(2_100, 2_200)
    trace.copy(1_600, 1_700, pinned=False).copy(1_800, 1_900, "peer_to_peer", peers=(0, 1))
    trace.graph_nodes([(2_300, 2_310), (2_310, 2_320, "second")])
    trace.api("cudaMalloc_v3020", 2_600, 2_700, duplicate=True)
    trace.wait("cudaEventSynchronize_v3020", 2_700, 2_800)
    trace.range("step", 0, 100).range("ncclAllReduce", 1, 2, domain="NCCL", json_payload={"id": 2**63 + 5})
    trace.process_range("epoch", 1, 2, end_tid=9).open_range("rest", 5).mark("here", 3).os_call("poll", 1, 2)
    trace.mpi("MPI_Allreduce", 1, 2).mpi_rank(3).profiler_overhead("Chunk Allocation", 1, 2)
    trace.scheduled(1, 2).sample(5, ["f", ("g", "libtorch.so")])
    trace.environment(RANK="1").output("epoch 1").graph_trace("node").thread_name("loader", tid=5)
    if has_table("GENERIC_EVENTS", version):
        trace.gpu_metrics(5, sm_active=80).gpu_metrics(5, gpu=1, sm_active=8)
    if has_table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", version):
        trace.graph(2_400, 2_500)
    if has_table("CUPTI_ACTIVITY_KIND_OVERHEAD", version):
        trace.cuda_overhead("lazy_load", 1, 2)
    if has_table("DIAGNOSTIC_EVENT", version):
        trace.diagnostic("Not all CUDA events might have been collected.")
    return trace


@pytest.mark.parametrize("version", VERSIONS)
def test_same_calls_give_the_same_bytes(tmp_path: Path, version: str) -> None:
    one, two = (everything(version).write(tmp_path / name) for name in ("one.sqlite", "two.sqlite"))
    assert one.read_bytes() == two.read_bytes()
    assert query(one, "PRAGMA integrity_check") == [("ok",)]
    assert query(one, "PRAGMA page_size") == [(4096,)]


def test_work_brings_its_launch_call(tmp_path: Path) -> None:
    path = TraceBuilder().kernel(100, 200, tid=7, stream=20).write(tmp_path / "t.sqlite")
    assert query(path, "SELECT start, end, streamId, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL") == [
        (100_000, 200_000, 20, 1)
    ]
    assert query(
        path, "SELECT start, end, correlationId, globalTid & 0xFFFFFF FROM CUPTI_ACTIVITY_KIND_RUNTIME"
    ) == [(90_000, 95_000, 1, 7)]


def test_two_processes_have_the_same_correlation_ids(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(100, 200)
    trace.on(pid=77, device=1).kernel(100, 200)
    path = trace.write(tmp_path / "t.sqlite")
    assert query(
        path,
        "SELECT globalPid >> 24 & 65535, deviceId, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY 1",
    ) == [
        (77, 1, 1),
        (PID, 0, 1),
    ]


def test_times_follow_the_clock_of_the_export(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(2 * MS, 3 * MS).kernel(Raw(0), Raw(0), launch=None).duration(5 * MS)
    trace.open_range("rest", 1, closed=True).shifted(1_000)
    path = trace.write(tmp_path / "t.sqlite")
    assert query(path, "SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY 1") == [
        (0, 0),
        (2_001_000, 3_001_000),
    ]
    assert query(path, "SELECT end FROM NVTX_EVENTS") == [(5_001_000,)]
    shift = "SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_CONFIG_TIME_SHIFT'"
    assert query(path, shift) == [("1000",)]
    trace.epoch_times().write(path)
    assert query(path, shift) == [("0",)]
    started = query(path, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")[0][0]
    assert isinstance(started, int)
    assert query(path, "SELECT max(start) FROM CUPTI_ACTIVITY_KIND_KERNEL") == [(started + 2_000_000,)]


def test_names_that_are_not_utf8_are_stored_byte_for_byte(tmp_path: Path) -> None:
    path = TraceBuilder().kernel(1, 2, b"k\xff").range(b"r\xfe", 1, 2).write(tmp_path / "t.sqlite")
    assert query(
        path,
        "SELECT typeof(value), hex(value) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = shortName",
    ) == [("text", "6BFF")]
    assert query(path, "SELECT typeof(text), hex(text) FROM NVTX_EVENTS") == [("text", "72FE")]


def test_null_is_stored_even_where_the_schema_forbids_it(tmp_path: Path) -> None:
    path = TraceBuilder().kernel(5, None).write(tmp_path / "t.sqlite")
    assert query(path, "SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL") == [(5_000, None)]


def test_rows_are_shuffled_unless_told_otherwise(tmp_path: Path) -> None:
    def starts(shuffle: int | None) -> list[tuple[object, ...]]:
        trace = TraceBuilder(shuffle=shuffle).kernels(100, 20, every=10, length=5)
        return query(trace.write(tmp_path / "t.sqlite"), "SELECT start FROM CUPTI_ACTIVITY_KIND_KERNEL")

    assert starts(None) == sorted(starts(1)) != starts(1)
    assert starts(2) != starts(1)


def test_mpi_is_nvtx_where_the_exporter_has_no_tables(tmp_path: Path) -> None:
    count = "SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59"
    old = TraceBuilder("2022.4.2").mpi("MPI_Allreduce", 1, 2).write(tmp_path / "old.sqlite")
    new = TraceBuilder("2023.4.4").mpi("MPI_Allreduce", 1, 2).write(tmp_path / "new.sqlite")
    assert query(old, count) == [(1,)]
    assert query(new, count) == [(0,)]
    assert query(new, "SELECT count(*) FROM MPI_COLLECTIVES_EVENTS") == [(1,)]


def test_gpu_order_is_the_reverse_of_the_cuda_order(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "A100")).kernel(1, 2)
    path = trace.write(tmp_path / "t.sqlite")
    gpus = "SELECT id, cuDevice, computeMajor FROM TARGET_INFO_GPU ORDER BY id"
    assert query(path, gpus) == [(0, 1, 8), (1, 0, 9)]
    assert [trace.gpu_id(0), trace.gpu_id(1)] == [1, 0]
    assert query(path, "SELECT gpuId, cudaId, pid FROM TARGET_INFO_CUDA_DEVICE ORDER BY 1") == [
        (0, 1, PID),
        (1, 0, PID),
    ]


def test_user_changes_to_the_export(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1, 2, ALL_REDUCE).empty("NVTX_EVENTS").without("PROCESSES")
    trace.extra_column(KERNEL, "note", "mine", position=0).without_column(KERNEL, "mangledName")
    path = trace.sql("CREATE TABLE my_notes(a)").write(tmp_path / "t.sqlite")
    tables = {name for (name,) in query(path, "SELECT name FROM sqlite_master")}
    assert {"my_notes", "NVTX_EVENTS"} <= tables
    assert "PROCESSES" not in tables
    names = [row[1] for row in query(path, f"PRAGMA table_info({KERNEL})")]
    assert names[:2] == ["note", "start"]
    assert "mangledName" not in names


def test_rows_as_given(tmp_path: Path) -> None:
    trace = TraceBuilder().row("OSRT_API", start=At(5), end=At(9), eventClass=27, nameId=Text("read"))
    path = trace.write(tmp_path / "t.sqlite")
    assert query(
        path, "SELECT start, end, value, callchainId FROM OSRT_API JOIN StringIds ON id = nameId"
    ) == [(5, 9, "read", 0)]


def test_mistakes_of_a_test_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown exporter version"):
        TraceBuilder("2020.1.1")
    with pytest.raises(ValueError, match="no table CUPTI_ACTIVITY_KIND_GRAPH_TRACE"):
        TraceBuilder("2023.4.4").graph(1, 2)
    with pytest.raises(ValueError, match="no column strat"):
        TraceBuilder().row(KERNEL, strat=1).write(tmp_path / "t.sqlite")
