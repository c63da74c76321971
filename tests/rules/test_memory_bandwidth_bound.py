from pathlib import Path

from nsys_triage.rules.base import Outcome
from tests.builders.trace import ADD, GEMM, TraceBuilder
from tests.rules.kernel_support import back_to_back, evidence, found, not_run, passed
from tests.rules.support import outcome


def run(folder: Path, elementwise: float, **metrics: int) -> Outcome:
    """Ten times so long an elementwise kernel within 10 ms of kernels, a sample every 100 us."""
    trace = TraceBuilder()
    back_to_back(trace, [(ADD, elementwise, {}), (GEMM, 1_000 - elementwise, {})] * 10)
    for index in range(110):
        trace.gpu_metrics(100 * index, **metrics)
    return outcome("memory-bandwidth-bound", trace, folder)


def test_streaming_kernels_at_the_peak(tmp_path: Path) -> None:
    ended = found(run(tmp_path, 600, dram_read=50, dram_write=32))
    # 6 000 us of elementwise kernels; fused two by two they take half of it
    assert (ended.stake.low_ns, ended.stake.high_ns) == (0, 3_000_000)
    assert ended.title.startswith("Memory bandwidth is the limit: 82 % of its peak while kernels run")
    assert evidence(ended, "peak bandwidth of device memory used while kernels run") == 0.82
    assert "torch.compile" in ended.actions[0]
    assert "ncu --kernel-name regex:^vectorized_elementwise_kernel$" in ended.actions[-1]


def test_exactly_at_the_bandwidth(tmp_path: Path) -> None:
    found(run(tmp_path, 600, dram_read=40, dram_write=30))


def test_just_below_the_bandwidth(tmp_path: Path) -> None:
    assert "69 % of its peak" in passed(run(tmp_path, 600, dram_read=40, dram_write=29)).note


def test_exactly_at_the_share(tmp_path: Path) -> None:
    # half of 1 000 us in 10 ms
    assert found(run(tmp_path, 100, dram_read=80)).stake.high_ns == 500_000


def test_just_below_the_share(tmp_path: Path) -> None:
    passed(run(tmp_path, 99.9, dram_read=80))


def test_look_alike_matrix_products_that_stream_their_weights(tmp_path: Path) -> None:
    # nothing to fuse: a kernel at the limit of the memory is a good kernel
    assert "80 % of its peak" in passed(run(tmp_path, 1, dram_read=80)).note


def test_copies_at_the_peak_are_no_kernels(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for index in range(10):
        trace.kernel(1_000 + 1_000 * index, 1_500 + 1_000 * index, ADD)
        trace.copy(1_500 + 1_000 * index, 2_000 + 1_000 * index, "device_to_device")
    for index in range(110):
        trace.gpu_metrics(100 * index, dram_read=10 if index % 10 < 5 else 95)
    assert "at 10 % of its peak" in passed(outcome("memory-bandwidth-bound", trace, tmp_path)).note


def test_not_sampled(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(ADD, 1_000, {})] * 10)
    assert not_run(outcome("memory-bandwidth-bound", trace, tmp_path)).option == "--gpu-metrics-devices=all"


def test_another_metric_was_sampled(tmp_path: Path) -> None:
    assert (
        not_run(run(tmp_path, 600, sm_active=90)).missing
        == "the sampled metric DRAM Read and Write Bandwidth"
    )


def test_kernels_are_shorter_than_the_period(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for index in range(100):
        trace.kernel(1_000 + 100 * index, 1_050 + 100 * index, ADD).gpu_metrics(
            1_000 + 100 * index, dram_read=80
        )
    ended = not_run(outcome("memory-bandwidth-bound", trace, tmp_path))
    assert ended.option == "--gpu-metrics-devices=all --gpu-metrics-frequency=100000"
