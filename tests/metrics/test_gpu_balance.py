from pathlib import Path

from nsys_triage.metrics.gpu_balance import Balance, gpu_balance
from tests.builders.trace import ADD, ALL_REDUCE, GEMM, TraceBuilder
from tests.rules.support import measured


def balance(trace: TraceBuilder, folder: Path) -> Balance | None:
    m = measured(trace, folder)
    return gpu_balance(m.trace, m.workload, m.pieces)


def test_loads_over_the_common_time(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100"))
    trace.kernel(0, 500).kernel(1_000, 1_600).kernel(1_600, 2_000, ALL_REDUCE)
    trace.kernel(1_000, 1_200, device=1, stream=9).kernel(1_300, 2_500, ADD, device=1, stream=9)
    found = balance(trace, tmp_path)
    assert found is not None
    # the second GPU starts at 1 000, the first ends at 2 000
    assert (found.start_ns, found.end_ns) == (1_000_000, 2_000_000)
    assert [(load.gpu, load.compute_ns, load.waiting_ns, load.kernels) for load in found.loads] == [
        (0, 600_000, 400_000, 1),
        (1, 900_000, 100_000, 2),
    ]
    assert found.mean_ns == 750_000
    # GEMM runs on both: all of the first, 200 of 1 400 us of the second
    assert found.alike == 200 / 1_400


def test_copies_are_neither_work_nor_waiting(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100")).kernel(1_000, 2_000)
    trace.kernel(1_000, 1_400, device=1, stream=9).copy(1_400, 2_000, device=1, stream=9)
    found = balance(trace, tmp_path)
    assert found is not None
    assert [(load.compute_ns, load.waiting_ns) for load in found.loads] == [(1_000_000, 0), (400_000, 0)]


def test_one_gpu_or_no_common_time(tmp_path: Path) -> None:
    assert balance(TraceBuilder().kernel(1_000, 2_000), tmp_path) is None
    trace = (
        TraceBuilder(gpus=("H100", "H100"))
        .kernel(1_000, 2_000, GEMM)
        .kernel(2_000, 3_000, device=1, stream=9)
    )
    assert balance(trace, tmp_path) is None


def test_gpus_without_kernels_are_alike(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100")).copy(1_000, 2_000).copy(1_000, 2_000, device=1, stream=9)
    found = balance(trace, tmp_path)
    assert found is not None
    assert found.alike == 1.0
    assert [load.kernels for load in found.loads] == [0, 0]
