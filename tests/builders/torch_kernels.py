"""Kernels as PyTorch launches them, with their usual launch configurations, and passes made of them."""

from collections.abc import Iterator
from typing import Final, NamedTuple


class Kernel(NamedTuple):
    """What a launch of it looks like; shared memory in bytes."""

    name: str
    grid: tuple[int, int, int] = (2048, 1, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    registers: int = 32
    static_shared: int = 0
    dynamic_shared: int = 0
    carveout: int = 32_768
    launch: str = "cudaLaunchKernel_v7000"


Work = tuple[Kernel, float]  # a kernel and its length in microseconds


def _elementwise(function: str, operands: int, blocks: int = 16_384) -> Kernel:
    template = f"(int)4, {function}, std::array<char *, (unsigned long){operands}>"
    return Kernel(f"void at::native::vectorized_elementwise_kernel<{template}>(int, T2, T3)", (blocks, 1, 1))


def _conv(name: str, grid: int, registers: int) -> Kernel:
    full = f"sm80_xmma_{name}_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4_cudnn"
    return Kernel(full, (grid, 1, 1), (128, 1, 1), registers, 0, 65_536, 102_400, "cuLaunchKernel")


# matrix products and attention
GEMM_AMPERE: Final = Kernel(
    "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn",
    (24, 36, 1),
    (256, 1, 1),
    236,
    dynamic_shared=147_456,
    carveout=167_936,
)
GEMM_AMPERE_SMALL_TILE: Final = Kernel(
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
    (32, 27, 1),
    (256, 1, 1),
    220,
    dynamic_shared=81_920,
    carveout=102_400,
)
GEMM_HOPPER: Final = Kernel(
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT",
    (24, 44, 1),
    (384, 1, 1),
    168,
    dynamic_shared=213_504,
    carveout=233_472,
    launch="cuLaunchKernelEx",
)
GEMM_SMALL: Final = Kernel(
    "ampere_sgemm_32x32_sliced1x4_tn", (4, 8, 1), (128, 1, 1), 86, static_shared=32_768, carveout=65_536
)
ATTENTION: Final = Kernel(
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (int)128, (int)64, (int)4, "
    "cutlass::bfloat16_t>, (bool)0, (bool)1>(flash::Flash_fwd_params)",
    (16, 8, 16),
    (128, 1, 1),
    255,
    dynamic_shared=65_536,
    carveout=102_400,
)
ATTENTION_BACKWARD: Final = Kernel(
    "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<(int)128, (int)64, "
    "(int)128, (int)8, cutlass::bfloat16_t>, (bool)0, (bool)1>(flash::Flash_bwd_params)",
    (16, 8, 16),
    (256, 1, 1),
    255,
    dynamic_shared=81_920,
    carveout=102_400,
)
# convolutions
CONV: Final = _conv("fprop_implicit_gemm", 1568, 128)
CONV_DGRAD: Final = _conv("dgrad_implicit_gemm", 1568, 168)
CONV_WGRAD: Final = _conv("wgrad_implicit_gemm_indexed", 864, 200)
BATCH_NORM: Final = Kernel(
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<__half2, float, (int)512, (bool)1, (int)1, (bool)0>"
    "(cudnnTensorStruct, const T1 *, T1 *)",
    (256, 1, 1),
    (512, 1, 1),
    44,
    480,
)
BATCH_NORM_BACKWARD: Final = Kernel(
    "void cudnn::bn_bw_1C11_kernel_new<__half, float, float2, (int)512, (bool)1, (int)1>"
    "(T2, cudnnTensorStruct, const T1 *)",
    (256, 1, 1),
    (512, 1, 1),
    48,
    480,
)
# the rest
LAYER_NORM: Final = Kernel(
    "void at::native::<unnamed>::vectorized_layer_norm_kernel<c10::BFloat16, float>"
    "(int, T2, const T1 *, const T1 *, const T1 *, T2 *, T2 *, T1 *)",
    (16_384, 1, 1),
    (32, 4, 1),
    40,
    24,
)
LAYER_NORM_BACKWARD: Final = Kernel(
    "void at::native::<unnamed>::layer_norm_grad_input_kernel_vectorized<c10::BFloat16, float>"
    "(const T1 *, const T1 *, const T2 *, const T2 *, const T1 *, T1 *, int)",
    (16_384, 1, 1),
    (128, 1, 1),
    48,
    32,
)
SOFTMAX: Final = Kernel(
    "void at::native::<unnamed>::cunn_SoftMaxForward<(int)4, c10::BFloat16, float, float, "
    "at::native::<unnamed>::LogSoftMaxForwardEpilogue>(T4 *, const T2 *, int)",
    (8192, 1, 1),
    (1024, 1, 1),
    dynamic_shared=128,
)
LOSS: Final = Kernel(
    "void at::native::<unnamed>::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>"
    "(T1 *, T1 *, const T1 *, const T3 *, const T1 *, bool, long, long, long, long)",
    (1, 1, 1),
    (32, 1, 1),
    34,
    256,
)
MEAN: Final = Kernel(
    "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, "
    "at::native::MeanOps<float, float, float, float>, unsigned int, float, (int)4>>(T3)",
    (1, 1, 1),
    (512, 1, 1),
    32,
    16,
)
ADD: Final = _elementwise("at::native::CUDAFunctor_add<c10::BFloat16>", 3)
GELU: Final = _elementwise("at::native::GeluCUDAKernelImpl", 2, 32_768)
RELU: Final = _elementwise("at::native::launch_clamp_scalar", 2, 38_000)
RELU_BACKWARD: Final = _elementwise("at::native::threshold_kernel_impl<c10::BFloat16>", 3, 38_000)
MUL_SMALL: Final = _elementwise(
    "at::native::BinaryFunctor<float, float, float, at::native::MulFunctor>", 3, 4
)
TANH_SMALL: Final = _elementwise("at::native::tanh_kernel_cuda", 2, 4)
CONCAT_SMALL: Final = Kernel(
    "void at::native::<unnamed>::CatArrayBatchedCopy<float, unsigned int, (int)2, (int)64, (int)64>"
    "(T1 *, at::native::<unnamed>::CatArrInputTensorMetadata<T1, T2, T4, T5>, T2)",
    (8, 2, 1),
)
GATHER_SMALL: Final = Kernel(
    "void at::native::<unnamed>::indexSelectSmallIndex<float, long, unsigned int, (int)2, (int)2>(T1, T2)",
    (4, 1, 1),
)
OPTIMIZER: Final = Kernel(
    "void at::native::<unnamed>::multi_tensor_apply_kernel<"
    "at::native::<unnamed>::FusedOptimizerTensorListMetadata<(int)4>, "
    "at::native::<unnamed>::FusedAdamMathFunctor<float, (int)4>>(T1, T2, T3...)",
    (320, 1, 1),
    (512, 1, 1),
    64,
)
ALL_REDUCE: Final = Kernel(
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    (24, 1, 1),
    (544, 1, 1),
    96,
    7104,
    82_240,
    102_400,
    "cuLaunchKernelEx",
)


def transformer_forward(gemm: Kernel, scale: float, layers: int) -> Iterator[Work]:
    """So many transformer layers and the loss, forward; `scale` 1 takes 3 ms a layer."""
    for _ in range(layers):
        yield LAYER_NORM, 90 * scale
        yield gemm, 620 * scale
        yield ATTENTION, 410 * scale
        yield ADD, 80 * scale
        yield gemm, 850 * scale
        yield GELU, 120 * scale
        yield gemm, 830 * scale
    yield SOFTMAX, 210 * scale
    yield LOSS, 6


def transformer_backward(gemm: Kernel, scale: float, layers: int) -> Iterator[Work]:
    """The same, backward: 4.4 ms a layer."""
    for _ in range(layers):
        yield gemm, 840 * scale
        yield gemm, 840 * scale
        yield GELU, 150 * scale
        yield gemm, 860 * scale
        yield ATTENTION_BACKWARD, 930 * scale
        yield gemm, 610 * scale
        yield LAYER_NORM_BACKWARD, 140 * scale


def conv_forward(layers: int) -> Iterator[Work]:
    """A convolutional network and its loss, forward."""
    for layer in range(layers):
        yield CONV, 760 - 40 * layer
        yield BATCH_NORM, 210 - 10 * layer
        yield RELU, 150 - 10 * layer
    yield MEAN, 40
    yield SOFTMAX, 20
    yield LOSS, 6


def conv_backward(layers: int) -> Iterator[Work]:
    """The same, backward."""
    for layer in reversed(range(layers)):
        yield RELU_BACKWARD, 180 - 10 * layer
        yield BATCH_NORM_BACKWARD, 330 - 10 * layer
        yield CONV_DGRAD, 810 - 40 * layer
        yield CONV_WGRAD, 880 - 40 * layer


def message_passing(rounds: int) -> Iterator[Work]:
    """A small graph network: nothing but kernels of a few microseconds."""
    for _ in range(rounds):
        yield GATHER_SMALL, 2.6
        yield CONCAT_SMALL, 2.9
        yield GEMM_SMALL, 4.1
        yield MUL_SMALL, 1.9
        yield TANH_SMALL, 2.0
        yield GEMM_SMALL, 3.8
        yield MUL_SMALL, 1.8
    yield MEAN, 3.2
