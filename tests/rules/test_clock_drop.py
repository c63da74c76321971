from pathlib import Path

from tests.builders.trace import ADD, ALL_REDUCE, GEMM, TraceBuilder
from tests.rules.kernel_support import STENCIL, Planted, back_to_back, evidence, found, not_run, passed
from tests.rules.support import outcome

NAMES = (GEMM, ADD, STENCIL)


def rounds(times: int, length: float) -> list[Planted]:
    """So many rounds of three kernels of that length."""
    return [(name, length, {}) for name in NAMES] * times


def slowing(trace: TraceBuilder, late: float) -> TraceBuilder:
    """30 rounds of three kernels: 20 of 100 us each, then 10 as long as given."""
    end = back_to_back(trace, rounds(20, 100))
    back_to_back(trace, rounds(10, late), end)
    return trace


def test_everything_is_slower_in_the_last_third(tmp_path: Path) -> None:
    ended = found(outcome("clock-drop", slowing(TraceBuilder(), 130), tmp_path))
    # 6 000 + 3 900 us from 1 000 on: the last third begins at 7 600, the slow kernels at 7 000. Five of them lie in
    # the middle third, whose median stays 100, and 25 in the last, 30 us too long each
    assert (ended.stake.low_ns, ended.stake.high_ns) == (0, 750_000)
    assert ended.title == "The same kernels take 30 % longer in the last third than in the first"
    assert evidence(ended, "kernels with launch shapes compared") == 3
    assert evidence(ended, "part of the kernel time that they make up") == 1.0
    assert ended.confidence == "low"
    assert "nvidia-smi --query-gpu" in ended.actions[0]
    assert "--gpu-metrics-devices=all" in ended.actions[1]
    assert ended.gpu is None
    assert ended.where is not None
    assert (ended.where.start_ns, ended.where.end_ns) == (7_600_000, 10_900_000)


def test_exactly_at_a_tenth(tmp_path: Path) -> None:
    found(outcome("clock-drop", slowing(TraceBuilder(), 110), tmp_path, share=0.01))


def test_just_below_a_tenth(tmp_path: Path) -> None:
    note = passed(outcome("clock-drop", slowing(TraceBuilder(), 109.9), tmp_path, share=0.01)).note
    assert note == "The same kernels take at most 9.9 % longer later on."


def test_exactly_at_the_share(tmp_path: Path) -> None:
    # 750 of 9 900 us
    found(outcome("clock-drop", slowing(TraceBuilder(), 130), tmp_path, share=750 / 9_900))
    passed(outcome("clock-drop", slowing(TraceBuilder(), 130), tmp_path, share=750.1 / 9_900))


def test_look_alike_one_kernel_with_growing_work(tmp_path: Path) -> None:
    trace = TraceBuilder()
    end = back_to_back(trace, rounds(20, 100))
    back_to_back(trace, [(GEMM, 100, {}), (ADD, 100, {}), (STENCIL, 150, {})] * 10, end)
    passed(outcome("clock-drop", trace, tmp_path))


def test_look_alike_two_of_three_kernels(tmp_path: Path) -> None:
    trace = TraceBuilder()
    end = back_to_back(trace, rounds(20, 100))
    back_to_back(trace, [(GEMM, 100, {}), (ADD, 130, {}), (STENCIL, 130, {})] * 10, end)
    # 6 600 of 9 600 us are in the two that are slower: less than 70 %
    passed(outcome("clock-drop", trace, tmp_path, share=0.01))


def test_look_alike_a_program_of_one_kernel(tmp_path: Path) -> None:
    trace = TraceBuilder()
    end = back_to_back(trace, [(STENCIL, 100, {})] * 60)
    back_to_back(trace, [(STENCIL, 150, {})] * 30, end)
    assert "the trace has none" in not_run(outcome("clock-drop", trace, tmp_path)).missing


def test_look_alike_other_launch_shapes(tmp_path: Path) -> None:
    trace = TraceBuilder()
    end = back_to_back(trace, rounds(20, 100))
    larger = {"grid": (2_112, 1, 1)}
    back_to_back(trace, [(name, 150, larger) for name in NAMES] * 10, end)
    not_run(outcome("clock-drop", trace, tmp_path))


def test_look_alike_a_collective_runs_beside_the_late_kernels(tmp_path: Path) -> None:
    trace = slowing(TraceBuilder(), 130)
    trace.kernel(6_500, 10_900, ALL_REDUCE, stream=20)
    not_run(outcome("clock-drop", trace, tmp_path))


def sampled(trace: TraceBuilder, early_mhz: int, late_mhz: int) -> TraceBuilder:
    """A sample of the clock every 50 us; the late one from 7 ms on."""
    for index in range(220):
        mhz = early_mhz if 50 * index < 7_000 else late_mhz
        trace.gpu_metrics(50 * index, sm_clock_mhz=mhz * 1_000_000)
    return trace


def test_the_sampled_clock_fell_too(tmp_path: Path) -> None:
    ended = found(outcome("clock-drop", sampled(slowing(TraceBuilder(), 130), 1_980, 1_520), tmp_path))
    assert ended.confidence == "high"
    assert evidence(ended, "median clock in the first third") == 1_980
    assert evidence(ended, "median clock in the last third") == 1_520
    assert not any("--gpu-metrics-devices" in action for action in ended.actions)


def test_look_alike_the_sampled_clock_held(tmp_path: Path) -> None:
    passed(outcome("clock-drop", sampled(slowing(TraceBuilder(), 130), 1_980, 1_980), tmp_path))


def one_kernel() -> TraceBuilder:
    """A program of one kernel, which cannot tell by itself: 90 launches of 100 us from 1 ms on."""
    trace = TraceBuilder()
    back_to_back(trace, [(STENCIL, 100, {})] * 90)
    return trace


def test_the_sampled_clock_alone(tmp_path: Path) -> None:
    ended = found(outcome("clock-drop", sampled(one_kernel(), 2_000, 1_500), tmp_path))
    # a quarter slower in two thirds of 9 000 us
    assert (ended.stake.low_ns, ended.stake.high_ns) == (0, 1_500_000)
    assert ended.title == "The GPU clock fell from 2 000 MHz to 1 500 MHz while kernels ran"
    assert ended.confidence == "medium"


def test_the_sampled_clock_alone_exactly_at_a_tenth(tmp_path: Path) -> None:
    found(outcome("clock-drop", sampled(one_kernel(), 2_200, 2_000), tmp_path))
    not_run(outcome("clock-drop", sampled(one_kernel(), 2_199, 2_000), tmp_path))


def test_look_alike_a_fallen_clock_that_slows_no_kernel(tmp_path: Path) -> None:
    # limited by memory
    passed(outcome("clock-drop", sampled(slowing(TraceBuilder(), 100), 2_000, 1_500), tmp_path))


def test_look_alike_the_clock_of_an_idle_gpu(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(STENCIL, 100, {})] * 30)
    trace.kernel(10_800, 10_900, STENCIL)
    not_run(outcome("clock-drop", sampled(trace, 2_000, 300), tmp_path))


def two_gpus(slow: float, *, collective: bool = False) -> TraceBuilder:
    """Two GPUs with the same rounds, on the second one of `slow` us a kernel."""
    trace = TraceBuilder(gpus=("H100", "H100"))
    back_to_back(trace, rounds(20, 100))
    end = back_to_back(trace.on(device=1, stream=9), rounds(20, slow))
    if collective:
        trace.kernel(end, end + 100, ALL_REDUCE, device=1, stream=9).kernel(7_000, end + 100, ALL_REDUCE)
    return trace


def test_one_gpu_is_slower(tmp_path: Path) -> None:
    ended = found(outcome("clock-drop", two_gpus(150), tmp_path))
    # 60 kernels, 50 us each, mean of two GPUs
    assert (ended.stake.low_ns, ended.stake.high_ns) == (750_000, 1_500_000)
    assert ended.title == "One GPU runs the same kernels 50 % slower than the others"
    assert ended.gpu == "gpu0"  # TARGET_INFO_GPU.id of CUDA ordinal 1


def test_the_others_wait_for_it_in_collectives(tmp_path: Path) -> None:
    ended = found(outcome("clock-drop", two_gpus(150, collective=True), tmp_path))
    # the same 3 000 us for both GPUs
    assert (ended.stake.low_ns, ended.stake.high_ns) == (1_500_000, 3_000_000)


def test_look_alike_equal_gpus(tmp_path: Path) -> None:
    assert "at most 2.0 % longer" in passed(outcome("clock-drop", two_gpus(102), tmp_path)).note


def test_look_alike_two_models(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "A100"))
    back_to_back(trace, rounds(20, 100))
    back_to_back(trace.on(device=1, stream=9), rounds(20, 150))
    passed(outcome("clock-drop", trace, tmp_path))


def test_too_few_launches(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, rounds(3, 100))
    not_run(outcome("clock-drop", trace, tmp_path))


def test_not_recorded(tmp_path: Path) -> None:
    assert (
        not_run(outcome("clock-drop", TraceBuilder().copy(1_000, 2_000), tmp_path)).option == "--trace=cuda"
    )
