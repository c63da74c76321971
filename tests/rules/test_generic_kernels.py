from pathlib import Path

import pytest

from nsys_triage.rules.base import Outcome
from tests.builders.trace import ADD, GEMM, TraceBuilder
from tests.rules.kernel_support import Planted, back_to_back, evidence, found, not_run, passed
from tests.rules.support import outcome

SOFTMAX = (
    "void <unnamed>::softmax_warp_forward<float, float, float, (int)9, (bool)0, (bool)0>"
    "(T2 *, const T1 *, int, int, int, const bool *, int, bool)"
)
LOG_SOFTMAX = (
    "void at::native::<unnamed>::cunn_SoftMaxForward<(int)4, float, float, float, "
    "at::native::<unnamed>::LogSoftMaxForwardEpilogue>(T4 *, const T2 *, int)"
)
BATCHED = {"grid": (4, 4, 48)}
DEPTHWISE = (
    "void at::native::<unnamed>::conv_depthwise2d_forward_kernel<(int)3, float, int>"
    "(at::GenericPackedTensorAccessor<const T2, (unsigned long)4>)"
)


def run(folder: Path, kernels: list[Planted], times: int = 10, span: float = 10_000) -> Outcome:
    """So many repetitions of these kernels within `span` us of work."""
    trace = TraceBuilder()
    rest = span / times - sum(length for _, length, _ in kernels)
    back_to_back(trace, [*kernels, (ADD, rest, {})] * times)
    return outcome("generic-kernels", trace, folder)


def attention(softmax: float) -> list[Planted]:
    """Scale, softmax and what follows between two batched products."""
    return [(GEMM, 100, BATCHED), (ADD, 20, {}), (SOFTMAX, softmax, {}), (GEMM, 100, BATCHED)]


def test_attention_in_separate_kernels(tmp_path: Path) -> None:
    ended = found(run(tmp_path, attention(80)))
    # 10 x (20 + 80) us between the products
    assert (ended.stake.low_ns, ended.stake.high_ns) == (0, 1_000_000)
    assert ended.title == (
        "General kernels where a library has a better one take 10 % of the time: attention in separate kernels"
    )
    assert "scaled_dot_product_attention" in ended.actions[0]
    assert "ncu --kernel-name regex:^softmax_warp_forward$ --launch-skip 0" in ended.actions[1]
    assert evidence(ended, "launches of them") == 20


def test_softmax_by_hand(tmp_path: Path) -> None:
    reduction = "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, {}>>(T3)"
    exponential = (
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::exp_kernel_cuda(int)>(int, T2)"
    )
    by_hand: list[Planted] = [
        (GEMM, 100, BATCHED),
        (reduction.format("at::native::MaxOps<float>"), 30, {}),
        (exponential, 30, {}),
        (reduction.format("at::native::sum_functor"), 30, {}),
        (GEMM, 100, BATCHED),
    ]
    assert found(run(tmp_path, by_hand)).stake.high_ns == 900_000
    # without the exponential it is some other normalisation
    passed(run(tmp_path, [by_hand[0], by_hand[1], by_hand[3], by_hand[4]]))


def test_exactly_at_the_threshold(tmp_path: Path) -> None:
    found(run(tmp_path, attention(30)))


def test_just_below_the_threshold(tmp_path: Path) -> None:
    assert (
        "attention in separate kernels) take 5.0 % of the time" in passed(run(tmp_path, attention(29.9))).note
    )


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        (DEPTHWISE, "channels_last"),
        ("void at::native::vol2col_kernel<float>(long, const T1 *, int)", "cuDNN"),
        ("void at::native::<unnamed>::indexing_backward_kernel<float, (int)4>(const long *)", "index_select"),
        ("void at::native::<unnamed>::kernel::lstm_cell_forward<float, float, int, (int)1>(int)", "nn.LSTM"),
        ("void at::native::<unnamed>::upsample_bilinear2d_backward_out_frame<float>(int)", "channels_last"),
    ],
)
def test_kernels_with_a_better_one(tmp_path: Path, name: str, advice: str) -> None:
    ended = found(run(tmp_path, [(name, 200, {})]))
    # 2 000 us, half of it at most
    assert (ended.stake.low_ns, ended.stake.high_ns) == (0, 1_000_000)
    assert advice in ended.actions[0]


def test_the_largest_kind_is_named(tmp_path: Path) -> None:
    ended = found(run(tmp_path, [*attention(80), (DEPTHWISE, 101, {})]))
    assert "depthwise convolutions outside cuDNN" in ended.title


@pytest.mark.parametrize(
    "kernels",
    [
        # the loss: logarithmic softmax
        [(GEMM, 100, BATCHED), (LOG_SOFTMAX, 300, {}), (GEMM, 100, BATCHED)],
        # a softmax after a plain product, as in a classifier or a router
        [(GEMM, 100, {}), (SOFTMAX, 300, {}), (GEMM, 100, {})],
        # fused attention
        [
            (
                "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128>>(flash::Flash_fwd_params)",
                500,
                {},
            )
        ],
        # the faster variant for the other memory format
        [
            (
                "void at::native::<unnamed>::upsample_bilinear2d_nhwc_out_frame<float, float>(unsigned long)",
                500,
                {},
            )
        ],
        # cuDNN's own depthwise kernel
        [
            (
                "void conv2d_grouped_direct_kernel<__half, __half, __half, float, float>(cudnnTensorStruct)",
                500,
                {},
            )
        ],
        # backward of indexing by another way
        [("void at::native::<unnamed>::indexFuncLargeIndex<float, long>(T1)", 500, {})],
    ],
)
def test_look_alikes(tmp_path: Path, kernels: list[Planted]) -> None:
    assert (
        passed(run(tmp_path, kernels)).note
        == "No kernels for which libraries are known to have a better one."
    )


def test_two_streams_do_not_make_an_attention(tmp_path: Path) -> None:
    trace = TraceBuilder()
    products = (GEMM, 100, BATCHED)
    back_to_back(trace, [products, (SOFTMAX, 300, {"stream": 20}), products, (ADD, 500, {})] * 10)
    passed(outcome("generic-kernels", trace, tmp_path))


def test_not_recorded(tmp_path: Path) -> None:
    assert (
        not_run(outcome("generic-kernels", TraceBuilder().copy(1_000, 2_000), tmp_path)).option
        == "--trace=cuda"
    )
