from pathlib import Path

from nsys_triage.rules.base import Outcome
from tests.builders.trace import GEMM, TraceBuilder
from tests.rules.kernel_support import back_to_back, evidence, found, not_run, passed
from tests.rules.support import outcome


def run(folder: Path, length: float, active: int) -> Outcome:
    """Ten kernels of that length within 10 ms, a sample every 50 us; in the pauses no SM is active."""
    trace = TraceBuilder().kernel(900, 1_000).kernel(11_000, 11_100)
    for index in range(10):
        trace.kernel(1_000 + 1_000 * index, 1_000 + 1_000 * index + length)
    for time in range(0, 11_500, 50):
        trace.gpu_metrics(time, sm_active=active if time % 1_000 < length or 900 <= time < 1_000 else 0)
    return outcome("sm-underfilled", trace, folder)


def test_sms_without_warps(tmp_path: Path) -> None:
    ended = found(run(tmp_path, 600, 40))
    # 6 200 us of kernels, the SMs have warps 40 % of it: 60 % of 6 200
    assert (ended.stake.low_ns, ended.stake.high_ns) == (0, 3_720_000)
    assert ended.title == "SMs have no warp 60 % of the time while kernels run"
    assert evidence(ended, "SMs with a warp while kernels run") == 0.4
    assert "ncu --kernel-name regex:^" in ended.actions[-1]


def test_exactly_at_the_activity(tmp_path: Path) -> None:
    found(run(tmp_path, 600, 70))


def test_just_above_the_activity(tmp_path: Path) -> None:
    assert passed(run(tmp_path, 600, 71)).note == "SMs have warps 71 % of the time in which kernels run."


def test_exactly_at_the_share(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(GEMM, 1_000, {})] * 2)
    trace.copy(3_000, 9_000)
    for index in range(60):
        trace.gpu_metrics(50 * index, sm_active=70)
    # 2 000 us, 30 % of it, in a span of 8 000
    assert found(outcome("sm-underfilled", trace, tmp_path, share=0.075)).stake.high_ns == 600_000
    passed(outcome("sm-underfilled", trace, tmp_path, share=0.0751))


def test_look_alike_pauses_between_full_kernels(tmp_path: Path) -> None:
    # 95 % in the kernels, nothing in the pauses: 40 % of the whole time
    assert "95 %" in passed(run(tmp_path, 400, 95)).note


def test_not_sampled(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(GEMM, 1_000, {})] * 10)
    assert not_run(outcome("sm-underfilled", trace, tmp_path)).option == "--gpu-metrics-devices=all"


def test_another_metric_was_sampled(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(GEMM, 1_000, {})] * 10)
    for index in range(110):
        trace.gpu_metrics(100 * index, dram_read=90)
    assert not_run(outcome("sm-underfilled", trace, tmp_path)).missing == "the sampled metric SMs Active"
