import sqlite3
import time
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_triage.metrics.kernel_names import KERNEL_NAMES, describe, qualified_names
from nsys_triage.trace.model import STRINGS

TRACES = Path(__file__).parents[2].parent / "shared" / "traces" / "sqlite"


def described(*texts: str) -> pl.DataFrame:
    codes = pl.Series(range(len(texts)), dtype=pl.UInt32)
    return describe(pl.DataFrame({"code": codes, "text": list(texts)}, schema=STRINGS))


FOREACH = "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::{}>(T1)"
LAMBDA = (
    "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast"
    "<at::native::{}>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)"
)


@pytest.mark.parametrize(
    ("text", "own_name"),
    [
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("jacobi_kernel(float*, float const*, float*, int, int, int)", "jacobi_kernel"),
        ("void jacobi_kernel<32, 32>(float*, int)", "jacobi_kernel"),
        (
            "void at::native::(anonymous namespace)::softmax_warp_forward<float, 6>(float*)",
            "softmax_warp_forward",
        ),
        ("void <unnamed>::softmax_warp_forward<float, (int)6>(T2 *)", "softmax_warp_forward"),
        (
            "<unnamed>::nvfuser_none_f0_c0_r0_g0(<unnamed>::Tensor<<unnamed>::__half, (int)3>)",
            "nvfuser_none_f0_c0_r0_g0",
        ),
        (LAMBDA.format("CUDAFunctor_add<float>"), "elementwise_kernel"),
        # the type before the name has template arguments of its own
        ("std::enable_if<(bool)1, void>::type ns::fill<float>(float *)", "fill"),
        ("std::enable_if<!(4 > 2), std::pair<int, void>>::type ns::fill<float>(float *)", "fill"),
        ("decltype(f(a->b)) ns::fill<float>(float *)", "fill"),
        ("int returns_something(int)", "returns_something"),
        # a scope with template arguments
        ("void Solver<std::pair<int, int>>::step<true>(int)", "step"),
        ("void outer(int)::inner<float>(float *)", "inner"),
        # brackets that are operators
        ("foo<&ns::operator< , (a < b)>(int)", "foo"),
        ("foo<&ns::operator<< , (1 >> 2)>(int)", "foo"),
        ("std::enable_if<&ns::operator-> , (3 > 2)>::type foo<int>(int)", "foo"),
        ("void foo<bar<int>::operator ()(int) const::[lambda(float) (instance 1)]>(T1)", "foo"),
        ("cudapy::__main__::add[abi:v1][abi:cw51cXTL](Array<float, (int)1, C>)", "add"),
        ("foo(int) [clone .constprop.0]", "foo"),
        ("loop_add_fusion.12", "loop_add_fusion.12"),
        ("julia_kernel!_123", "julia_kernel!_123"),
        # mangled
        ("_Z13jacobi_kernelPfPKfi", "jacobi_kernel"),
        (
            "_ZN2at6native27unrolled_elementwise_kernelINS0_13BinaryFunctorEEEvT_",
            "unrolled_elementwise_kernel",
        ),
        ("_ZN12_GLOBAL__N_13fooEv", "foo"),
        ("_ZL6kernelPi", "kernel"),
        ("_Z", "_Z"),
        ("", ""),
        ("<", "<"),
        ("(((", "((("),
    ],
)
def test_own_name(text: str, own_name: str) -> None:
    assert described(text)["own_name"].item() == own_name


def test_namespaces_are_kept_in_the_qualified_name() -> None:
    texts = pl.Series(
        [
            "void at::native::(anonymous namespace)::k<int>(int)",
            "_ZN2at6native1kEi",
            "a::b<int>::type c::k<int>(int)",
        ]
    )
    assert qualified_names(texts).to_list() == ["at::native::<unnamed>::k", "at::native::k", "c::k"]


@pytest.mark.parametrize(
    ("text", "collective", "operation"),
    [
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
            True,
            "all_reduce",
        ),
        (
            "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm *, unsigned long, ncclWork *)",
            True,
            "all_reduce",
        ),
        ("_Z42ncclKernel_ReduceScatter_RING_LL_Sum_int8_tP11ncclDevCommmP8ncclWork", True, "reduce_scatter"),
        ("ncclAllGatherRingLLKernel_copy_i8(ncclWorkElem)", True, "all_gather"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)", True, "send_recv"),
        ("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)", True, "broadcast"),
        (
            "ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
            True,
            "reduce",
        ),
        ("ncclSymkDevKernel_AlltoAll_LL(ncclSymkDevWorkArgs)", True, "all_to_all"),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<(unsigned long)4096>)", True, "other"),
        ("NCCL_AllReduce_RING_LL", True, "all_reduce"),
        ("void ns::rcclGenericKernel<1, false>(ncclDevComm*)", True, "other"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData *)", False, "all_reduce"),
        (
            "void tensorrt_llm::kernels::oneShotAllReduceKernel<float, 8>(AllReduceParams)",
            False,
            "all_reduce",
        ),
        (
            "void trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<__half>(P)",
            False,
            "all_reduce",
        ),
        ("void (anonymous namespace)::multimem_all_gather_kernel<16>(char*)", False, "all_gather"),
        ("void <unnamed>::two_shot_all_reduce_kernel<c10::BFloat16, (int)16>(T1 *)", False, "all_reduce"),
        ("void c10d::symmetric_memory::barrier_kernel(unsigned int**, int)", False, "other"),
        ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)", False, "all_to_all"),
        ("void deep_ep::internode_ll::combine<true, 7168, 9>(void*)", False, "all_to_all"),
        ("nvshmemi_proxy_quiet_entrypoint(int)", False, "other"),
        ("barrier_all_on_stream_kernel_threadgroup(int)", False, "other"),
        ("kuserbuffers_pushrecv(int, int)", False, "send_recv"),
    ],
)
def test_communication(text: str, collective: bool, operation: str) -> None:
    row = described(text).row(0, named=True)
    assert (row["communication"], row["collective"], row["operation"]) == (True, collective, operation)
    assert row["kernel_class"] == "communication"


@pytest.mark.parametrize(
    "text",
    [
        "my_non_nccl_kernel(int)",
        "void unpack<ncclDevKernelArgs>(ncclDevComm *)",
        "void nccl_tests::fill_buffer<float>(float *)",  # a namespace is not the own name
        "void block_all_reduce_sum_f32_kernel<256>(float *)",
        "gemm_allreduce_kernel(float *)",
        "triton_red_fused_all_reduce_native_layer_norm_3",
        "void cub::DeviceReduceKernel<float>(float *)",
        "reduce_kernel(float *)",
        "_scatter_gather_elementwise_kernel",
    ],
)
def test_letters_alone_make_no_communication(text: str) -> None:
    row = described(text).row(0, named=True)
    assert (row["communication"], row["collective"], row["operation"]) == (False, False, None)
    assert row["kernel_class"] != "communication"


CLASSES = {
    "matmul": [
        "ampere_sgemm_128x64_tn",
        "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_execute_kernel__5x_cublas",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_tn_align8>(T1::Params)",
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int>>>(T1)",
        "void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, float>(cublasLt::cublasSplitKParams<T4>)",
        "void gemv2T_kernel_val<int, int, float, float>(T13, T7)",
        "void internal::gemvx::kernel<int, int, __nv_bfloat16>(T13)",
        "triton_tem_fused_addmm_relu_3",
        "triton_mm_12",
        "fused_moe_kernel",
        "void marlin::Marlin<__half, 4>(int4 const*)",
        "gemm_fusion_dot_7",
        "void deep_gemm::sm90_fp8_gemm_1d2d_impl<7168>(float*)",
        "void trsm_right_kernel<double, (int)256>(cublasTrsmParams<T1>)",
        "void cusparse::csrmv_v3_kernel<int, double>(int)",
    ],
    "attention": [
        "void flash::flash_fwd_kernel<Flash_fwd_traits<(int)128>, (bool)0>(flash::Params)",
        "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Traits>(flash::Flash_bwd_params)",
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<float>>>(T1)",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)",
        "void vllm::paged_attention_v1_kernel<unsigned short, 128, 16>(unsigned short*)",
        "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<float>>(T1)",
        "_attn_fwd",
        "kernel_unified_attention_2d",
        "triton_tem_fused_flex_attention_4",
        "void mmha::masked_multihead_attention_kernel<float>(float)",
    ],
    "convolution": [
        "void cutlass_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_256x64_16x4_nhwc>(T1::Params)",
        "void xmma_cudnn::gemm::kernel<xmma_cudnn::implicit_gemm::wgrad_indexed::Traits<int>>(T1)",
        "ampere_scudnn_128x32_relu_small_nn_v1",
        "turing_fp16_s1688cudnn_fp16_256x64_ldg8_relu_f2f_exp_small_nhwc_tn_v1",
        "sm80_xmma_dgrad_implicit_gemm_indexed_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x64x64",
        "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(T1)",
        "void implicit_convolve_sgemm<float, float, (int)128>(int)",
        "void cask__5x_cudnn::computeOffsetsKernel<int>(T1)",
        "void at::native::<unnamed>::conv_depthwise2d_forward_kernel<(int)3>(T1)",
        "void at::native::im2col_kernel<float>(long)",
    ],
    "reduction": [
        "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float>>(T3)",
        "void at::native::<unnamed>::vectorized_layer_norm_kernel<float, float, (bool)0>(int, T2)",
        "void <unnamed>::softmax_warp_forward<float, float, float, (int)6, (bool)0, (bool)0>(T2 *)",
        "void at::native::<unnamed>::cunn_SoftMaxForward<(int)4, float>(T2 *)",
        "triton_red_fused_native_layer_norm_scaled_dot_product_attention_2",
        "triton_per_fused__softmax_0",
        "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*)",
        "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)",
        "void cub::DeviceReduceSingleTileKernel<int>(T1)",
        "void cub::DeviceScanKernel<int>(T1)",
        "void at::native::<unnamed>::max_pool_forward_nchw<float, float>(int)",
        "void cudnn::bn_fw_tr_1C11_singleread<float, (int)512>(T1)",
        "void at::native::<unnamed>::GammaBetaBackwardSimpleCUDAKernel<float>(long)",
        FOREACH.format("TensorListMetadata<(int)1>, at::native::LpNormFunctor<float>"),
        "input_reduce_fusion_3",
        "cupy_sum",
        "liger_cross_entropy_kernel",
    ],
    "elementwise": [
        LAMBDA.format("CUDAFunctor_add<float>"),
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>>(int)",
        "triton_poi_fused_add_gelu_scaled_dot_product_attention_3",
        "loop_add_multiply_fusion",
        "fusion_12",
        "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel>(T1*)",
        "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)",
        "saxpy(double *, double *, double *, double, int)",
        "cupy_multiply__float_float32_float32",
        "void at::native::triu_tril_kernel<bool, int>(T1)",
    ],
    "layout": [
        "void cudnn::ops::nchwToNhwcKernel<float, float, float, (bool)0>(T3)",
        LAMBDA.format("direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]"),
        "void at::native::<unnamed>::CatArrayBatchedCopy<float, unsigned int, (int)4>(T1 *)",
        "void at::native::<unnamed>::batch_transpose_kernel<float>(T1 *)",
        "triton_poi_fused__to_copy_3",
        "triton_poi_fused_clone_transpose_0",
        "wrapped_transpose",
        "void genericReformat::copyVectorizedKernel<double, float, float>(int)",
        "void transformer_engine::detail::cast_transpose_kernel<float>(T1)",
        "void kDequantizeBlockwise<__nv_bfloat16, 512>(float*)",
    ],
    "gather": [
        "void at::native::<unnamed>::indexSelectLargeIndex<float, long>(T1)",
        "void at::native::index_elementwise_kernel<(int)128, (int)4, at::native::gpu_index_kernel<int>>(T3)",
        "void at::native::<unnamed>::embedding_backward_feature_kernel<float>(T1)",
        "void at::native::vectorized_gather_kernel<(int)16, long>(char *)",
        "void cub::DeviceRadixSortOnesweepKernel<int>(T1)",
        "void cub::DeviceMergeSortMergeKernel<(bool)0>(T1)",
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(T1)",
        "void vllm::moe::moe_align_block_size_kernel<int>(T1)",
        "triton_poi_fused_embedding_0",
    ],
    "optimizer": [
        FOREACH.format("FusedOptimizerTensorListMetadata<(int)4>, at::native::FusedAdamMathFunctor<float>"),
        FOREACH.format("TensorListMetadata<(int)1>, at::native::BinaryOpScalarFunctor<float>"),
        "triton_for_fused_0",
        "void kOptimizer32bit2State<float, 0>(float*)",
        "void adam_cuda_kernel<float>(float*)",
        "void apex_lamb_kernel(float*)",
    ],
    "random": [
        "void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, (int)4>(T1)",
        "void at::native::<unnamed>::fused_dropout_kernel_vec<float, float, unsigned int>(T1)",
        "void generate_seed_pseudo<(rngType)100>(unsigned long long)",
        "void curand::kernel<int>(T1)",
    ],
    "other": [
        "jacobi_kernel(float*, float const*, float*, int, int, int)",
        "Fan2(float *, float *, float *, int, int, int)",
        "calcAllLowestResidualsGPU",
        "hadamard_kernel(int)",  # holds the letters of adam
        "converge_check(int)",  # begins as conv does
        "lambda_update(int)",  # begins as lamb does
        "void clover::par_ranged2d_kernel<PdV_kernel(bool, int)::[lambda(int) (instance 1)]>(T1)",
    ],
}


@pytest.mark.parametrize(
    ("kernel_class", "text"), [(name, text) for name, texts in CLASSES.items() for text in texts]
)
def test_class(kernel_class: str, text: str) -> None:
    assert described(text)["kernel_class"].item() == kernel_class


def test_schema_order_and_empty_input() -> None:
    frame = pl.DataFrame(
        {"code": [9, 3, 5], "text": ["saxpy(int)", "ncclDevKernel_SendRecv", "saxpy(int)"]}, schema=STRINGS
    )
    found = describe(frame)
    assert found["code"].to_list() == [9, 3, 5]
    assert dict(found.schema) == KERNEL_NAMES
    assert dict(describe(pl.DataFrame(schema=STRINGS)).schema) == KERNEL_NAMES
    assert describe(pl.DataFrame(schema=STRINGS)).is_empty()


@settings(deadline=None)
@given(st.lists(st.text(alphabet="ab:<>()[] ->_Z1operatvid", max_size=60), min_size=1))
def test_any_text_has_a_name_and_a_class(texts: list[str]) -> None:
    found = described(*texts)
    assert found.height == len(texts)
    assert found.null_count().drop("operation").sum_horizontal().item() == 0


def test_five_thousand_long_names_are_read_at_once() -> None:
    functor = "at::native::BinaryFunctor<float, " + "std::pair<int, " * 40 + "int" + ">" * 40 + ">"
    texts = [LAMBDA.format(f"Functor{index}<{functor}>") for index in range(5_000)]
    described(*texts[:10])
    start = time.perf_counter()
    described(*texts)
    assert time.perf_counter() - start < 1.5  # 0.15 s on two cores; the margin is for a loaded machine


@pytest.mark.skipif(not TRACES.is_dir(), reason="the folder shared/ is not beside the project")
def test_library_kernels_of_real_traces_have_a_class() -> None:
    texts: set[str] = set()
    for path in sorted(TRACES.glob("*.sqlite")):
        connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        tables = {row[0] for row in connection.execute("select name from sqlite_master")}
        if "CUPTI_ACTIVITY_KIND_KERNEL" in tables:
            query = (
                "select distinct value from StringIds join CUPTI_ACTIVITY_KIND_KERNEL"
                " on StringIds.id = demangledName"
            )
            texts.update(row[0] for row in connection.execute(query))
        connection.close()
    frame = pl.DataFrame({"text": sorted(texts)}).with_row_index("code")
    library = frame.filter(
        pl.col("text").str.contains(r"^(void )?(at|cub|at_cuda_detail|cudnn|cutlass|xmma_cudnn|nccl)")
    )
    assert library.height > 100
    unclassified = library.join(describe(library), on="code").filter(pl.col("kernel_class") == "other")
    assert unclassified["text"].to_list() == []
