from pathlib import Path

import pytest

from tests.trace.tables import (
    GPID,
    GTID,
    KERNEL,
    NVTX,
    PID,
    RUNTIME,
    TID,
    Row,
    call,
    kernel,
    load,
    nvtx,
    strings,
)

GPU: Row = {
    "id": 3,
    "name": "NVIDIA A100-SXM4-80GB",
    "busLocation": "0000:07:00.0",
    "uuid": "36017b65-c648-392c-42c4-fe9c43000000",
    "cuDevice": 0,
    "smCount": 108,
    "totalMemory": 85_198_045_184,
    "memoryBandwidth": 2_039_040_000_000,
    "clockRate": 1_410_000_000,
    "maxRegistersPerBlock": 65_536,
    "maxShmemPerBlock": 49_152,
    "maxShmemPerBlockOptin": 166_912,
    "maxShmemPerSm": 167_936,
    "maxRegistersPerSm": 65_536,
    "threadsPerWarp": 32,
    "maxWarpsPerSm": 64,
    "maxBlocksPerSm": 32,
    "computeMajor": 8,
    "computeMinor": 0,
    "smMajor": 8,
    "smMinor": 2,
}


def test_a_gpu(tmp_path: Path) -> None:
    trace = load(tmp_path / "t.sqlite", {"TARGET_INFO_GPU": [GPU]})
    assert trace.gpu_info.row(0, named=True) == {
        "gpu_id": 3,
        "name": "NVIDIA A100-SXM4-80GB",
        "bus_location": "0000:07:00.0",
        "uuid": "36017b65-c648-392c-42c4-fe9c43000000",
        "cuda_ordinal": 0,
        "sm_count": 108,
        "compute_major": 8,
        "compute_minor": 0,
        "max_warps_per_sm": 64,
        "max_blocks_per_sm": 32,
        "max_registers_per_sm": 65_536,
        "max_registers_per_block": 65_536,
        "max_shared_per_sm_bytes": 167_936,
        "max_shared_per_block_bytes": 166_912,
        "threads_per_warp": 32,
        "memory_bytes": 85_198_045_184,
        "memory_bytes_per_s": 2_039_040_000_000,
        "clock_hz": 1_410_000_000,
    }


def test_other_adapters_are_left_out_and_limits_of_0_are_unknown(tmp_path: Path) -> None:
    intel = {**dict.fromkeys(GPU, 0), "id": 1, "name": "Intel(R) UHD Graphics"}
    old = {**dict.fromkeys(GPU), "id": 2, "name": "Tesla V100-SXM2-16GB", "busLocation": "0000:1a:00.0"}
    early = {**GPU, "id": 0, "uuid": "GPU-abc", "maxBlocksPerSm": 0, "memoryBandwidth": 0}
    trace = load(tmp_path / "t.sqlite", {"TARGET_INFO_GPU": [GPU, intel, old, early]})
    columns = ("gpu_id", "name", "sm_count", "uuid", "max_blocks_per_sm", "memory_bytes_per_s")
    assert trace.gpu_info.select(columns).rows() == [
        (0, "NVIDIA A100-SXM4-80GB", 108, "abc", None, None),
        (2, "Tesla V100-SXM2-16GB", None, None, None, None),
        (3, "NVIDIA A100-SXM4-80GB", 108, "36017b65-c648-392c-42c4-fe9c43000000", 32, 2_039_040_000_000),
    ]


@pytest.mark.parametrize("memory", [34_089_730_048, 32_510])
def test_gpus_of_exports_before_2021(tmp_path: Path, memory: int) -> None:
    row = {
        "vmId": 0,
        "name": "Tesla V100-PCIE-32GB",
        "pciBusId": "0000:AF:00.0",
        "globalMemoryBandwidth": 898_048_000,
        "globalMemorySize": memory,
        "coreClockRate": 1_380_000,
        "numMultiprocessors": 80,
        "maxWarpsPerMultiprocessor": 64,
        "maxBlocksPerMultiprocessor": 32,
        "maxSharedMemoryPerMultiprocessor": 98_304,
        "computeCapabilityMajor": 7,
        "computeCapabilityMinor": 0,
        "deviceId": 0,
    }
    basic = {"vmId": 0, "deviceId": 0, "name": "V100", "busLocation": "0000:AF:00.0", "isDiscrete": 1}
    tables = {"TARGET_INFO_GPU": [basic], "TARGET_INFO_CUDA_GPU": [{**row, "pid": 1}, {**row, "pid": 2}]}
    trace = load(tmp_path / "t.sqlite", tables)
    info = trace.gpu_info.row(0, named=True)
    assert trace.gpu_info.height == 1
    assert (info["gpu_id"], info["name"], info["bus_location"]) == (0, "Tesla V100-PCIE-32GB", "0000:AF:00.0")
    assert (info["sm_count"], info["compute_major"], info["max_shared_per_sm_bytes"]) == (80, 7, 98_304)
    assert info["memory_bytes"] == pytest.approx(34_089_730_048, rel=1e-4)
    assert (info["memory_bytes_per_s"], info["clock_hz"]) == (898_048_000_000, 1_380_000_000)
    assert (info["cuda_ordinal"], info["uuid"]) == (None, None)


def test_cuda_devices(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"gpuId": 0, "cudaId": 1, "pid": 8, "uuid": None, "numMultiprocessors": None},
        {"gpuId": 1, "cudaId": 0, "pid": 8, "uuid": "GPU-abc", "numMultiprocessors": 132},
        {"gpuId": None, "cudaId": 0, "pid": 7, "uuid": "", "numMultiprocessors": 0},
    ]
    trace = load(tmp_path / "t.sqlite", {"TARGET_INFO_CUDA_DEVICE": rows})
    assert trace.cuda_devices.rows() == [(7, 0, None, None, 0), (8, 0, 1, "abc", 132), (8, 1, 0, None, None)]


@pytest.mark.parametrize(
    ("table", "column"),
    [("TARGET_INFO_CUDA_CONTEXT_INFO", "nullStreamId"), ("TARGET_INFO_CUDA_NULL_STREAM", "streamId")],
)
def test_contexts(tmp_path: Path, table: str, column: str) -> None:
    rows = [{column: 7, "processId": 8, "deviceId": 1, "contextId": context} for context in (2, 1, 1)]
    trace = load(tmp_path / "t.sqlite", {table: rows})
    assert trace.contexts.rows() == [(8, 1, 1, 7), (8, 1, 2, 7)]
    assert trace.recorded == {"contexts"}


def test_streams(tmp_path: Path) -> None:
    row = {"streamId": 13, "processId": 8, "contextId": 1, "priority": -5, "flag": 2}
    trace = load(tmp_path / "t.sqlite", {"TARGET_INFO_CUDA_STREAM": [row, row]})
    assert trace.streams.rows() == [(8, 1, 13, -5, 2)]


def process(pid: int, name: str | None) -> Row:
    return {"globalPid": 1 << 48 | pid << 24, "pid": pid, "name": name}


def test_processes_that_have_events(tmp_path: Path) -> None:
    tables = {
        "PROCESSES": [
            process(PID, "/usr/bin/python3.11"),
            process(6, "C:\\Users\\somebody\\app.exe"),
            {**process(7, "worker"), "pid": None},
            process(8, "/home/somebody/editor"),
            process(9, None),
        ],
        KERNEL: [kernel(1, 2)],
        RUNTIME: [call(1, 2, globalTid=6 << 24)],
        NVTX: [nvtx(1, 2, "r", globalTid=7 << 24), nvtx(1, 2, "r", globalTid=9 << 24)],
        "SCHED_EVENTS": [{"start": 1, "globalTid": 8 << 24, "cpu": 0, "isSchedIn": 1}],
    }
    trace = load(tmp_path / "t.sqlite", tables)
    assert trace.processes.rows() == [(6, "app.exe"), (7, "worker"), (9, ""), (PID, "python3.11")]


def test_threads_of_those_processes(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"nameId": 1, "priority": 20, "globalTid": GTID},
        {"nameId": 2, "priority": 0, "globalTid": GTID},
        {"nameId": 3, "priority": 20, "globalTid": GPID | 9},
        {"nameId": 4, "priority": 20, "globalTid": 77 << 24},
        {"nameId": 5, "priority": 20, "globalTid": None},
        {"nameId": -1, "priority": None, "globalTid": GPID | 8},
    ]
    texts = strings("python3", "MPI Rank 1", "/home/somebody/thread/", "editor", "x")
    trace = load(tmp_path / "t.sqlite", {"ThreadNames": rows, KERNEL: [kernel(1, 2, 1)], "StringIds": texts})
    assert trace.threads.rows() == [(PID, 8, None), (PID, 9, "thread"), (PID, TID, "MPI Rank 1")]
    assert trace.strings.rows() == [(1, "python3")]


def test_a_capture_with_scheduling_alone(tmp_path: Path) -> None:
    tables = {"PROCESSES": [process(8, "a")], "SCHED_EVENTS": [{"start": 1, "globalTid": 8 << 24, "cpu": 0}]}
    assert load(tmp_path / "t.sqlite", tables).processes.rows() == [(8, "a")]
