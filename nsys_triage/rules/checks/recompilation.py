"""Kernels are loaded or compiled again and again after the start.

What it means

Modules are loaded, code is compiled, or kernels appear for the first time, and this does not stop after the start-up:
shapes or options change, so that a compiler or library needs new kernels, or code is compiled and thrown away per
call. The GPU has nothing to do meanwhile. The window is looked at in tenths of its device operations; the two with most
loading are taken as start-up and as the start of a later phase, and what is left has to be worth a change.

What to do next

1. Find what changes: sequence length, batch size of the last batch, options that are constants to the compiler.
2. Pad or bucket the sizes to a few fixed ones, or mark them as dynamic.
3. Keep what was compiled: a persistent compilation cache, modules loaded once and kept.
4. Ship machine code for this GPU (nvcc -gencode with its architecture), so that the driver does not compile PTX.

When it is wrong

A capture that holds many short phases (a test suite, an autotuner) loads new kernels all the time by design.
"""

from typing import Final

from nsys_triage import units
from nsys_triage.metrics.loading import summarize_loading
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context

_BASIS: Final = (
    "high: all loading in the window is gone{start}; low: without the two tenths of the device operations with "
    "most of it"
)


def check(context: Context) -> Outcome:
    """Fires where loading reaches the threshold, also without the two tenths of the window that have most of it."""
    m = context.m
    share = context.share("module_load")
    loading = summarize_loading(m.trace, m.workload, m.pieces, m.window)
    threshold = context.thresholds["share"]
    repeated = loading.repeated_ns / context.span_ns if context.span_ns else 0.0
    if not loading.repeated_ns or repeated < threshold:
        return Passed(
            f"Loading and compiling of kernels takes {units.share(share)} of the time, {units.share(repeated)}"
            " beyond the start and one later phase."
        )
    # the first tenth of an uncut window is start-up, which has a rule of its own
    start_ns = 0 if m.window.cuts else loading.first_ns
    high_ns = max(loading.repeated_ns, loading.total_ns - start_ns)
    return Found(
        title=f"Kernels are loaded or compiled again and again: {units.share(high_ns / context.span_ns)} of the time",
        stake=context.stake(
            high_ns, _BASIS.format(start=" but for its first tenth" if start_ns else ""), loading.repeated_ns
        ),
        causes=("module_load",),
        evidence=(
            number("idle while kernels are loaded or compiled", context.mean_ns(loading.total_ns), "ns"),
            number("of it, beyond the start and one later phase", context.mean_ns(loading.repeated_ns), "ns"),
            number("tenths of the device operations with loading", loading.tenths, "count"),
            number("kernels that first appear in the later half", loading.late_kernels, "count"),
            number("module and library loading calls", loading.calls, "count"),
            number("loading and compilation reported by CUDA", loading.compilations, "count"),
            number("first launches of a kernel that take 1 ms or more", loading.slow_launches, "count"),
        ),
        actions=(
            context.wording(
                pytorch=(
                    "Run with TORCH_LOGS=recompiles to see what changes; pad or bucket sequence lengths, drop the "
                    "last short batch, or mark sizes with torch._dynamo.mark_dynamic."
                ),
                jax=(
                    "Run with JAX_LOG_COMPILES=1 to see what changes; pad or bucket shapes, and keep Python values "
                    "out of static arguments."
                ),
                cuda="Load modules and build kernels once, before the loop, and keep their handles.",
            ),
            context.wording(
                pytorch=(
                    "Keep compiled code between runs (TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR on a disk that "
                    "stays)."
                ),
                jax="Keep compiled code between runs (jax_compilation_cache_dir on a disk that stays).",
                cuda=(
                    "Build with -gencode for this GPU's architecture, so that the driver compiles no PTX (or raise "
                    "CUDA_CACHE_MAXSIZE)."
                ),
            ),
            "Set CUDA_MODULE_LOADING=EAGER to load all kernels at the start, where first launches are what is slow.",
        ),
        caveat="A test suite or an autotuner loads new kernels all the time by design.",
        confidence="high" if loading.calls or loading.compilations else "medium",
        where=context.where("module_load"),
        gpu=context.one_gpu("module_load"),
    )


RULE = Rule(
    id="recompilation",
    title="Loading and compiling of kernels that keeps coming",
    check=check,
    page=page_of(__doc__),
    needs=("api",),
    thresholds={"share": CAUSE_THRESHOLD},
)
