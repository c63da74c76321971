"""Communication kernels of one rank: counts, times, exposed times, sizes. Numbers by hand, in microseconds."""

from pathlib import Path

from nsys_triage.metrics.collectives import communication_work
from nsys_triage.result.model import CollectiveOp
from tests.builders.trace import ALL_REDUCE, TraceBuilder
from tests.rules.support import measured

ALL_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
ONE_SHOT = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)"
COMMUNICATOR = 13429301450432826988  # above 2^63, as NCCL's are


def by_op(ops: list[CollectiveOp]) -> dict[str, CollectiveOp]:
    return {op.op: op for op in ops}


def test_counts_times_and_exposed_times(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 500)
    builder.kernel(450, 600, ALL_REDUCE, stream=20)  # 100 of 150 exposed
    builder.kernel(600, 1000).kernel(700, 900, ALL_GATHER, stream=20)  # hidden
    builder.kernel(1000, 1040, ONE_SHOT)  # no NCCL, exposed
    found = measured(builder, tmp_path).collectives
    assert (found.count, found.other_count) == (2, 1)
    assert found.total_ns == 150_000 + 200_000 + 40_000
    assert found.exposed_ns == 140_000
    # waiting and transfer are one number for one rank
    assert (found.wait_ns, found.transfer_ns, found.wait_share) == (None, None, None)
    assert [(op.op, op.count, op.total_ns, op.exposed_ns) for op in found.by_op] == [
        ("all_gather", 1, 200_000, 0),
        ("all_reduce", 2, 190_000, 140_000),
    ]


def test_overlapping_collectives_are_exposed_once(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100)
    builder.kernel(100, 200, ALL_REDUCE, stream=20).kernel(150, 250, ALL_GATHER, stream=21)
    found = measured(builder, tmp_path).collectives
    assert found.total_ns == 200_000
    assert found.exposed_ns == 150_000
    # each operation has the time in which it ran, so the two sum to more
    assert {op.op: op.exposed_ns for op in found.by_op} == {"all_reduce": 100_000, "all_gather": 100_000}


def test_exposed_time_of_two_gpus_is_summed(tmp_path: Path) -> None:
    builder = TraceBuilder(gpus=("H100", "H100"))
    for device in (0, 1):
        builder.kernel(0, 100, device=device, context=device + 1)
        builder.kernel(100, 150, ALL_REDUCE, device=device, context=device + 1, stream=20)
    assert measured(builder, tmp_path).collectives.exposed_ns == 100_000


def test_a_collective_hidden_on_one_gpu_is_not_hidden_on_the_other(tmp_path: Path) -> None:
    builder = TraceBuilder(gpus=("H100", "H100")).kernel(0, 200)
    builder.kernel(100, 150, ALL_REDUCE, stream=20).kernel(
        100, 150, ALL_REDUCE, device=1, context=2, stream=20
    )
    found = measured(builder, tmp_path).collectives
    assert found.exposed_ns == 50_000
    assert by_op(found.by_op)["all_reduce"].exposed_ns == 50_000


def test_sizes_come_from_payloads(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100)
    for at, size in ((100, 4096), (200, 1 << 20)):
        builder.kernel(at, at + 100, ALL_REDUCE, stream=20)
        payload = {
            "NCCL communicator ID": COMMUNICATOR,
            "Message size [bytes]": size,
            "Reduction operation": "Sum",
        }
        builder.range("ncclAllReduce", at - 12, at - 3, domain="NCCL", json_payload=payload)
    # of this one nothing is recorded
    builder.kernel(300, 350, ALL_GATHER, stream=20)
    found = by_op(measured(builder, tmp_path).collectives.by_op)
    assert found["all_reduce"].bytes == 4096 + (1 << 20)
    assert found["all_gather"].bytes is None


def test_one_unknown_size_leaves_the_sum_unknown(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(100, 200, ALL_REDUCE, stream=20)
    builder.range("ncclAllReduce", 88, 97, domain="NCCL", json_payload={"Message size [bytes]": 8})
    builder.kernel(200, 300, ALL_REDUCE, stream=20)
    assert by_op(measured(builder, tmp_path).collectives.by_op)["all_reduce"].bytes is None


def test_window_counts_what_starts_in_it_and_exposed_time_is_the_ledgers(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400).kernel(400, 600, ALL_REDUCE, stream=20)
    builder.kernel(600, 700).kernel(700, 750, ALL_REDUCE, stream=20).kernel(750, 1000)
    m = measured(builder, tmp_path, window="0.0005:0.001")
    found = m.collectives
    assert (found.count, found.total_ns) == (1, 50_000)
    # the first one still runs from 500 to 600
    assert found.exposed_ns == 150_000
    assert by_op(found.by_op)["all_reduce"].exposed_ns == 150_000
    assert found.exposed_ns == m.gpus[0].exposed_communication_ns


def test_no_communication(tmp_path: Path) -> None:
    found = measured(TraceBuilder().kernel(0, 100), tmp_path).collectives
    assert (found.count, found.other_count, found.total_ns, found.exposed_ns, found.by_op) == (0, 0, 0, 0, [])


def test_rows_carry_operation_and_whether_it_is_nccl(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(100, 200, ALL_REDUCE, stream=20).kernel(200, 300, ONE_SHOT)
    m = measured(builder, tmp_path)
    rows = communication_work(m.trace, m.workload, m.window)
    assert rows.select("operation", "collective").rows() == [("all_reduce", True), ("all_reduce", False)]
