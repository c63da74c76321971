from pathlib import Path

import pytest

from nsys_triage.rules.base import Outcome
from tests.builders.trace import ADD, GEMM, TraceBuilder
from tests.rules.kernel_support import back_to_back, evidence, found, not_run, passed
from tests.rules.support import outcome

OWN = "void tiled_matmul_kernel<(int)64>(const __half *, const __half *, __half *, int)"


def run(folder: Path, name: str, length: float, active: int, gpu: str = "RTX 3090") -> Outcome:
    """Ten matrix kernels of that length within 10 ms, a sample every 50 us."""
    trace = TraceBuilder(gpus=(gpu,))
    back_to_back(trace, [(name, length, {}), (ADD, 1_000 - length, {})] * 10)
    for index in range(220):
        trace.gpu_metrics(50 * index, tensor_active=active if (50 * index) % 1_000 < length else 0)
    return outcome("tensor-cores-idle", trace, folder)


def test_a_matrix_kernel_without_tensor_cores(tmp_path: Path) -> None:
    ended = found(run(tmp_path, OWN, 600, 1))
    # 8.6: 16 bit is twice as fast, so half of 6 000 us
    assert (ended.stake.low_ns, ended.stake.high_ns) == (0, 3_000_000)
    assert ended.title == (
        "Tensor cores are active 1.0 % of the time while matrix kernels run, which take 60 % of it"
    )
    assert evidence(ended, "tensor cores active in matrix kernels") == 0.01
    assert "ncu --kernel-name regex:^tiled_matmul_kernel$" in ended.actions[-1]


def test_exactly_at_the_activity(tmp_path: Path) -> None:
    found(run(tmp_path, OWN, 600, 5))


def test_just_above_the_activity(tmp_path: Path) -> None:
    assert passed(run(tmp_path, OWN, 600, 6)).note == (
        "Tensor cores are active 6.0 % of the time in which matrix kernels run."
    )


def test_exactly_at_the_share(tmp_path: Path) -> None:
    # half of 1 000 us in 10 ms
    assert found(run(tmp_path, OWN, 100, 1)).stake.high_ns == 500_000


def test_just_below_the_share(tmp_path: Path) -> None:
    passed(run(tmp_path, OWN, 99.9, 1))


@pytest.mark.parametrize(
    "name",
    [
        "ampere_sgemm_128x64_tn",  # math-precision tells
        "void gemv2T_kernel_val<int, int, float, float, float, float, (int)128>(T12, float, float)",
        "volta_dgemm_128x64_nn",
        ADD,
    ],
)
def test_look_alikes_are_no_work_for_tensor_cores(tmp_path: Path, name: str) -> None:
    assert not_run(run(tmp_path, name, 600, 0)).missing == (
        "matrix kernels on a GPU with tensor cores: the trace has none"
    )


def test_look_alike_idle_tensor_cores_between_products(tmp_path: Path) -> None:
    # 30 % in the products, 0 in the elementwise kernels around them
    assert "active 30 %" in passed(run(tmp_path, GEMM, 100, 30)).note


def test_not_sampled(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(OWN, 1_000, {})] * 10)
    assert not_run(outcome("tensor-cores-idle", trace, tmp_path)).option == "--gpu-metrics-devices=all"


def test_another_metric_was_sampled(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(OWN, 1_000, {})] * 10)
    for index in range(110):
        trace.gpu_metrics(100 * index, sm_active=90)
    assert (
        not_run(outcome("tensor-cores-idle", trace, tmp_path)).missing == "the sampled metric Tensor Active"
    )
