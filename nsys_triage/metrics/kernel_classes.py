"""The class of a kernel as data: an ordered table of patterns, the first that fits decides.

Patterns are matched against lower-case text: `name` is the own name, `qualified` the name with its
namespaces, `detail` the whole text with template arguments, given only for `WRAPPERS`, whose own name says
nothing. The names are those of cuBLAS, cuDNN, CUTLASS, TensorRT, Triton and Inductor, ATen, XLA, Thrust and
CUB, CuPy, FlashAttention, FlashInfer, vLLM, Transformer Engine, apex and bitsandbytes. A program's own
kernels, which follow no convention, end in `other`.
"""

from collections.abc import Iterable
from typing import Final

import polars as pl

Rule = tuple[str, str, str]  # word, column, pattern

WRAPPERS: Final[tuple[str, ...]] = (
    "elementwise_kernel",
    "vectorized_elementwise_kernel",
    "vectorized_templated_elementwise_kernel",
    "unrolled_elementwise_kernel",
    "elementwise_kernel_with_index",
    "multi_tensor_apply_kernel",
    "Kernel",
    "Kernel2",
    "kernel",
    "device_kernel",
    "static_kernel",
    "transform_kernel",
    "_kernel_agent",
    "cuda_parallel_launch_local_memory",
    "cuda_parallel_launch_constant_memory",
    "cuda_parallel_launch_constant_or_global_memory",
)
"""Kernels that run what their template arguments say: ATen's loops, CUTLASS, xmma, Thrust, CUB, Kokkos."""

CLASSES: Final[tuple[Rule, ...]] = (
    # Inductor and XLA list the operations that were fused: the prefix says what came of it
    ("attention", "name", r"^triton_tem_\w*(attention|flex)"),
    ("convolution", "name", r"^triton_tem_\w*conv"),
    ("matmul", "name", r"^triton_(tem_|mm|bmm|addmm|gemm)"),
    ("optimizer", "name", r"^triton_for_"),
    ("reduction", "name", r"^triton_(red|per|spl)_"),
    ("random", "name", r"^triton_poi_fused_\w*(rand|bernoulli|dropout)"),
    ("gather", "name", r"^triton_poi_fused_\w*(embedding|index|gather|scatter)"),
    ("layout", "name", r"^triton_poi_fused_((_to_copy|clone|copy|permute|transpose|cat|stack|view|t)_)+\d+$"),
    ("elementwise", "name", r"^triton_(poi|unk)_"),
    # wrappers: what the template arguments say
    ("reduction", "detail", r"multi_tensor_apply_kernel<.*(lpnorm|l2norm|maxnorm|normfunctor)"),
    ("layout", "detail", r"multi_tensor_apply_kernel<.*copyfunctor"),
    # the loops of torch._foreach and apex, which optimizers, gradient clipping and scaling are made of
    ("optimizer", "detail", r"multi_tensor_apply_kernel<"),
    ("layout", "detail", r"elementwise_kernel\w*<.*copy_kernel"),
    ("gather", "detail", r"elementwise_kernel\w*<.*(index_kernel|masked_scatter|take_kernel|put_kernel)"),
    ("elementwise", "detail", r"elementwise_kernel\w*<"),
    ("attention", "detail", r"flash|fmha|attention|attn|_mla"),
    ("convolution", "detail", r"[fdw](prop|grad)|implicit_?gemm|conv(olution|2d|3d|_)"),
    ("matmul", "detail", r"gemm|gemv|matmul|blockscaled|ptrarray"),
    ("gather", "detail", r"sort|merge|partition|copy_?if|unique|select|gather|scatter|permutation"),
    ("reduction", "detail", r"reduce|scan"),
    ("layout", "detail", r"\bcopy|uninitialized_copy"),
    ("elementwise", "detail", r"transform|for_each|foreach|parallel_?for|fill|generate|tabulate"),
    ("matmul", "qualified", r"^cutlass"),
    # everything else by its own name
    (
        "gather",
        "name",
        r"reshape_and_cache|concat_and_cache|append_paged|kv_?cache_(copy|store|write|scatter)",
    ),
    (
        "optimizer",
        "name",
        r"(^|[^h])adam|optimizer|(^|_)(lamb|sgd|lion|adagrad|rmsprop|adafactor|momentum)(_|kernel|$)"
        r"|apply(gradient|momentum|adagrad|rmsprop|ftrl)|multi_?tensor_?(scale|axpby)|amp_(update|non_finite)",
    ),
    (
        "attention",
        "name",
        r"attention|attn|(^|_)f?mha|_mha|flash_?(fwd|bwd|fprop|bprop|infer|mla|decode|prefill)|flash.*attn"
        r"|sdpa|(prefill|decode)with(paged|ragged|kv)|^mergestate|persistentvariablelengthmerge"
        r"|gated_delta_rule|_mla(_|$)|^_(fwd|bwd)_kernel(_stage\d|_dkdv|_dq)?$|^_fwd_grouped_kernel",
    ),
    (
        "reduction",
        "name",
        r"soft_?max|(batch|layer|group|instance|rms|rmsl|weight|l[12]|lp|vector)_?norm|norm_?(fwd|bwd)"
        r"|normaliz|(^|_)(ln|bn)_(fwd|bwd|fw|bw|fused|stats|parallel)|gammabeta|welford|rowwisemoments"
        r"|internalgradients|cross_?entropy|nll_?loss|ctc_?loss|log_?sum_?exp|pool(ing)?[_\d]|pooling|_pool",
    ),
    (
        "convolution",
        "name",
        r"fprop|dgrad|wgrad|winograd|implicit_?gemm|(im|ex)plicit_convolve|im2col|col2im|vol2col|col2vol"
        r"|cudnn_\d|[sdhc]\d*cudnn|(^|[^a-z])conv([^e]|$)|depthwise|conv(olution|olve|2d|3d|1d)"
        r"|compute(wgrad|b)?\w*offsetskernel|flip_filter",
    ),
    (
        "matmul",
        "name",
        r"gemm|gemv|gevm|matmul|nvjet|cutlass|cublas|split_?k_?(reduce|kernel)|(^|_)(b|add)?mm(_|\d|$)|wgmma|wmma"
        r"|(tr[sm]m|sy(rk|mm)|he(rk|mm)|getrf|potrf)_|marlin|machete|exllama|fused_moe|groupedmm|spm[mv]|csrm[mv]"
        r"|sddmm|(^|_)fc(_|\d|$)|^dot(_\d|_fusion|$)|_dot(_\d+|_fusion\w*)?$|^bmm_|dot_fusion",
    ),
    ("matmul", "qualified", r"gemv|gemm|cublaslt"),
    (
        "random",
        "name",
        r"dropout|random|rand(n|int|perm)?(_|$)|philox|curand|xorwow|mtgp|(^|_)rng|rng(_|$)|bernoulli|multinomial"
        r"|distribution_|generate_(seed|normal|uniform)|gen_sequenced|sampling",
    ),
    ("random", "qualified", r"curand"),
    (
        "layout",
        "name",
        r"nchw_?(to|2)_?nhwc|nhwc_?(to|2)_?nchw|nc[dh]+w\w*to|transpose|im2row|permut(e|ation)kernelplc",
    ),
    (
        "elementwise",
        "name",
        r"act_and_mul|silu|gelu|swiglu|geglu|relu|sigmoid|tanh|rotary|rope(_|$)|rope_|activation|add_?bias|bias_?add",
    ),
    (
        "gather",
        "name",
        r"embedding|(^|_)index|indexing|index(select|put|add|copy|fill)|gather|scatter|sort|top_?k|unique|nonzero"
        r"|search_?sorted|radix|onesweep|histogram|bincount|compact|partition|partials?_(per_)?segment|num_of_partial|compute_grad_weight|moe_align"
        r"|expandinputrows|lookup|take(_|$)|dedup|(^|_)select(_|$)|merge_?path|permute|run_?length|selectif|selectsweep",
    ),
    (
        "layout",
        "name",
        r"copy|concat|cat_?array|chunk_cat|(^|_)cat(_|$)|cast(_|$)|cast_|convert|reformat|reorder|repack|interleav"
        r"|quant|(^|_)pad(_|ding|$)|shuffle|(^|_)(slice|split|stack|pack|unpack|roll|flip|tile)(_|$)|dynamic_\w*slice"
        r"|convertor|expand_dims|repeatbuffer|bitcast|tensor_?format|split_with_sizes",
    ),
    (
        "reduction",
        "name",
        r"reduc(e|tion)|scan(_|[a-z]*kernel|$)|(^|_)(arg)?(sum|max|min|mean|var|std|norm|prod|any|all|amax|amin)(_|kernel|$)"
        r"|(^|_)cum(sum|prod|max|min)|argm(ax|in)|asum|nrm2|(^|_)i[sdcz]?am(ax|in)|dot_?(kernel|product)|variance"
        r"|moments|^__myl_\w*(sof|sum|mea|max)|nvfuser_\w*persistent",
    ),
    (
        "elementwise",
        "name",
        r"element_?wise|point_?wise|(^|_)(un|bin|tern)ary|unary|binaryop|^cupy_|broadcast|[sdcz]?axp[yb]|[sdcz]scal(_|$)"
        r"|(^|_)(add|sub|subtract|mul|multiply|div|divide|scale|fill|memset|set|zero|exp|log|sqrt|rsqrt|pow|clamp|clip"
        r"|where|compare|select|not|and|or|abs|neg|round|masked_fill|iota|arange|triu|tril|triu_tril|linspace|lerp)"
        r"(_|\d|kernel|$)|upsample|interpolate|grid_?sampl|fused_add|^loop_|^__myl_|nvfuser_(pointwise|no_op)"
        r"|fusion([_.]\d+)*$|^wrapped_",
    ),
)


def first_match(rules: Iterable[Rule], otherwise: str) -> pl.Expr:
    """Word of the first rule whose pattern is found in its column; a null column matches nothing."""
    found = [
        pl.when(pl.col(column).str.contains(pattern)).then(pl.lit(word)) for word, column, pattern in rules
    ]
    return pl.coalesce(*found, pl.lit(otherwise))
