from pathlib import Path

import pytest

from nsys_triage.rules.base import Outcome
from tests.builders.trace import ADD, GEMM, TraceBuilder
from tests.rules.kernel_support import back_to_back, evidence, found, not_run, passed
from tests.rules.support import outcome

NCHW = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, (bool)0, (bool)1>(cudnn::ops::nchw2nhwc_params_t<T3>)"
CAST = (
    "void at::native::vectorized_elementwise_kernel<(int)8, at::native::bfloat16_copy_kernel_cuda"
    "(at::TensorIteratorBase &)::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)"
)
COPY = (
    "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<"
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)>(at::TensorIteratorBase &)>(int, T3)"
)
CAT = (
    "void at::native::<unnamed>::CatArrayBatchedCopy<float, unsigned int, (int)2, (int)64, (int)64>"
    "(T1 *, at::native::<unnamed>::CatArrInputTensorMetadata<T1, T2, T4, T5>, T2)"
)


def run(folder: Path, name: str, length: float, rest: str = GEMM) -> Outcome:
    """Ten launches of `length` us each within 10 ms of work."""
    trace = TraceBuilder()
    back_to_back(trace, [(name, length, {}), (rest, 1_000 - length, {})] * 10)
    return outcome("layout-conversion", trace, folder)


@pytest.mark.parametrize(
    ("name", "kind", "high_ns", "advice"),
    [
        # the whole 2 000 us, and half of them where the data are read and written all the same
        (NCHW, "format changes", 2_000_000, "NHWC"),
        (CAST, "casts", 1_000_000, "type that the products use"),
        (COPY, "copies and transposes", 1_000_000, ".contiguous()"),
        (CAT, "concatenations", 1_000_000, ".contiguous()"),
    ],
)
def test_each_kind_has_its_advice(tmp_path: Path, name: str, kind: str, high_ns: int, advice: str) -> None:
    ended = found(run(tmp_path, name, 200))
    assert (ended.stake.low_ns, ended.stake.high_ns) == (0, high_ns)
    assert ended.title == "Copies, casts and transposes on the device take 20 % of the time"
    assert evidence(ended, f"time in {kind}") == 2_000_000
    assert advice in ended.actions[0]


def test_the_loop_is_named_with_what_it_applies(tmp_path: Path) -> None:
    ended = found(run(tmp_path, CAST, 200))
    name = "vectorized_elementwise_kernel (bfloat16_copy_kernel_cuda)"
    assert evidence(ended, "kernel that could give back most") == name
    assert "ncu --kernel-name regex:^vectorized_elementwise_kernel$ --launch-skip 0" in ended.actions[-1]


def test_kinds_are_split(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(NCHW, 100, {}), (CAST, 60, {}), (GEMM, 840, {})] * 10)
    ended = found(outcome("layout-conversion", trace, tmp_path))
    assert (evidence(ended, "time in format changes"), evidence(ended, "time in casts")) == (
        1_000_000,
        600_000,
    )
    # all of the format changes, half of the casts
    assert ended.stake.high_ns == 1_300_000


def test_exactly_at_the_threshold(tmp_path: Path) -> None:
    assert found(run(tmp_path, NCHW, 50)).stake.high_ns == 500_000


def test_just_below_the_threshold(tmp_path: Path) -> None:
    assert "take 5.0 % of the time" in passed(run(tmp_path, NCHW, 49.9)).note


def test_look_alike_elementwise_kernels(tmp_path: Path) -> None:
    passed(run(tmp_path, ADD, 900))


def test_look_alike_conversions_beside_other_kernels(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(GEMM, 1_000, {})] * 10)
    back_to_back(trace, [(NCHW, 1_000, {"stream": 20})] * 10)
    passed(outcome("layout-conversion", trace, tmp_path))


def test_not_recorded(tmp_path: Path) -> None:
    assert (
        not_run(outcome("layout-conversion", TraceBuilder().copy(1_000, 2_000), tmp_path)).option
        == "--trace=cuda"
    )
