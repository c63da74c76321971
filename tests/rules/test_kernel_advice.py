from pathlib import Path

from nsys_triage.rules import kernel_advice as ka
from nsys_triage.rules.context import Context
from tests.builders.trace import ADD, GEMM, TraceBuilder
from tests.rules.support import measured


def context(trace: TraceBuilder, folder: Path, window: str = "all") -> Context:
    return Context(measured(trace, folder, window), {})


def test_launches_before_the_window_are_skipped(tmp_path: Path) -> None:
    trace = (
        TraceBuilder()
        .kernels(1_000, 5, every=100, length=90, name="mine")
        .kernels(2_000, 5, every=100, length=90)
    )
    trace.kernels(3_000, 5, every=100, length=90, name="mine").kernels(
        1_000, 4, every=100, length=90, name="mine", pid=9
    )
    c = context(trace, tmp_path, "0.0025:0.004")
    row = ka.first(c.m.launch_shapes)
    # those of the other process do not count
    assert ka.ncu_line(c, row) == (
        "ncu --kernel-name regex:^mine$ --launch-skip 5 --launch-count 3 --set full --export kernel <your command>"
    )


def test_unusual_names_are_quoted(tmp_path: Path) -> None:
    c = context(TraceBuilder().kernel(1_000, 2_000, "fusion.12"), tmp_path)
    assert r"--kernel-name regex:'^fusion\.12$' --launch-skip 0" in ka.ncu_line(
        c, ka.first(c.m.launch_shapes)
    )


def test_short_names() -> None:
    assert ka.short_name({"own_name": "jacobi_kernel", "text": "jacobi_kernel(float *)"}) == "jacobi_kernel"
    loop = {"own_name": "vectorized_elementwise_kernel", "text": ADD}
    assert ka.short_name(loop) == "vectorized_elementwise_kernel (CUDAFunctor_add)"
    nested = "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<"
    nested += (
        "at::native::BinaryFunctor<float, at::native::binary_internal::MulFunctor<float>>>(int)>(int, T3)"
    )
    assert (
        ka.short_name({"own_name": "elementwise_kernel", "text": nested}) == "elementwise_kernel (MulFunctor)"
    )
    long = "k" * 50 + "_" + "m" * 50
    assert ka.short_name({"own_name": long, "text": long}) == "k" * 34 + "..." + "m" * 34


def test_one_of_several_gpus(tmp_path: Path) -> None:
    trace = (
        TraceBuilder(gpus=("H100", "H100")).kernel(1_000, 1_081, GEMM).kernel(1_000, 1_020, GEMM, device=1)
    )
    c = context(trace, tmp_path)
    # 81 of 101 us are more than four fifths
    assert ka.one_of_several(c, ka.with_gain(c.m.launch_shapes, ka.pl.col("alone_ns"))) == "gpu1"
    trace = (
        TraceBuilder(gpus=("H100", "H100")).kernel(1_000, 1_080, GEMM).kernel(1_000, 1_020, GEMM, device=1)
    )
    c = context(trace, tmp_path)
    assert ka.one_of_several(c, ka.with_gain(c.m.launch_shapes, ka.pl.col("alone_ns"))) is None
