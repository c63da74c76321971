from pathlib import Path

import polars as pl
import pytest

from nsys_triage.metrics import launch_parts as parts
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.measure import Measurement
from tests.builders.trace import TraceBuilder
from tests.rules.support import measured


def split(m: Measurement) -> list[tuple[object, ...]]:
    found = parts.launch_parts(m.workload, m.gaps, m.pieces)
    assert (
        found["ns"].sum()
        == m.pieces.filter(pl.col("cause") == CODE["launch"])
        .select((pl.col("end_ns") - pl.col("start_ns")).sum())
        .item()
    )
    return found.select("part", "api", "ns").rows()


def test_a_gap_is_split_between_calls_in_calls_and_after_them(tmp_path: Path) -> None:
    # idle from 100 to 160: an event is recorded from 105 to 108, the launch call lasts from 120 to 126, the kernel
    # starts at 160. From 98 on the thread is never longer than 100 us outside of calls.
    builder = (
        TraceBuilder()
        .kernel(0, 100)
        .api("cudaEventQuery_v3020", 90, 98)
        .api("cudaEventRecord_v3020", 105, 108)
    )
    builder.kernel(160, 200, call=(120, 126))
    assert split(measured(builder, tmp_path)) == [
        (parts.LATENCY, None, 34_000),
        # 108 to 120 is the way to the launch; 100 to 105 is not, as it ends with another call: host_compute
        (parts.BETWEEN, None, 12_000),
        (parts.KERNEL_CALLS, "cudaLaunchKernel", 6_000),
        (parts.OTHER_CALLS, "cudaEventRecord", 3_000),
    ]


@pytest.mark.parametrize(
    ("api", "part"),
    [
        ("cudaMemcpyAsync_v3020", parts.COPY_CALLS),
        ("cudaMemsetAsync_v3020", parts.COPY_CALLS),
        ("cudaLaunchKernelExC_v11060", parts.KERNEL_CALLS),
        ("cudaStreamIsCapturing_v10000", parts.OTHER_CALLS),
    ],
)
def test_calls_by_what_they_do(tmp_path: Path, api: str, part: str) -> None:
    # the GPU is idle from 100 to 150; the call before the launch lasts from 102 to 112
    builder = (
        TraceBuilder()
        .kernel(0, 100)
        .api("cudaEventQuery_v3020", 90, 98)
        .api(api, 102, 112)
        .kernel(150, 200, call=(112, 150))
    )
    rows = split(measured(builder, tmp_path))
    assert (part, api.rpartition("_")[0], 10_000) in rows


def test_graph_launches(tmp_path: Path) -> None:
    builder = (
        TraceBuilder().kernel(0, 100).api("cudaEventQuery_v3020", 90, 98).graph(150, 200, call=(112, 150))
    )
    assert (parts.GRAPH_CALLS, "cudaGraphLaunch", 38_000) in split(measured(builder, tmp_path))


def test_a_call_inside_another_counts_once(tmp_path: Path) -> None:
    builder = (
        TraceBuilder()
        .kernel(0, 100)
        .api("cudaEventQuery_v3020", 90, 98)
        .api("cudaMemcpyAsync_v3020", 102, 112)
    )
    builder.api("cuMemcpyHtoDAsync_v2", 104, 110).kernel(150, 200, call=(112, 150))
    rows = split(measured(builder, tmp_path))
    assert (parts.COPY_CALLS, "cudaMemcpyAsync", 10_000) in rows
    assert all(api != "cuMemcpyHtoDAsync" for _, api, _ in rows)


def test_gpus_are_apart(tmp_path: Path) -> None:
    builder = TraceBuilder(gpus=("H100", "H100"))
    builder.api("cudaEventQuery_v3020", 90, 98)
    for device in (0, 1):
        builder.kernel(0, 100, device=device)
        builder.kernel(200, 300, device=device, call=(120 + 30 * device, 125 + 30 * device))
    m = measured(builder, tmp_path)
    found = parts.launch_parts(m.workload, m.gaps, m.pieces)
    # the second GPU's work starts 45 us after its call has ended, the first one's 75
    latency = found.filter(pl.col("part") == parts.LATENCY).select("gpu", "ns").rows()
    assert latency == [(0, 75_000), (1, 45_000)]
    # up to its launch at 150 the thread was in the launch call of the other GPU for 5 us
    assert found.filter((pl.col("gpu") == 1) & (pl.col("part") == parts.KERNEL_CALLS))["ns"].to_list() == [
        10_000
    ]


def test_no_launch_time(tmp_path: Path) -> None:
    assert split(measured(TraceBuilder().kernel(0, 100).kernel(100, 200), tmp_path)) == []


def queued(count: int, pause: float) -> TraceBuilder:
    """`count` kernels that are queued in time and start `pause` us after the one before; then one that is late."""
    builder = TraceBuilder().kernel(0, 100, call=(-1000, -995))
    at = 100.0
    for number in range(count):
        builder.kernel(at + pause, at + pause + 50, call=(-990 + number, -989.5 + number))
        at += pause + 50
    return builder.kernel(at + 40, at + 90, call=(at + 1, at + 6))


@pytest.mark.parametrize(("count", "switch"), [(19, 1_500), (20, 1_200)])
def test_the_switch_is_measured_where_there_is_enough(tmp_path: Path, count: int, switch: int) -> None:
    m = measured(queued(count, 1.2), tmp_path)
    assert parts.switch_ns(m.pieces) == switch
    # the last gap is 40 us; the host computes for 1 us of it, 39 are under launch
    launch = m.pieces.filter(pl.col("cause") == CODE["launch"])
    total = int((launch["end_ns"] - launch["start_ns"]).sum())
    assert parts.beyond_switch_ns(m.pieces) == total - switch
