"""The capture is mostly start-up, or start-up is what the window shows.

What it means

Loading modules, compiling kernels, first allocations and slow first steps happen once. Where they fill most of the
capture, the steady state rests on little; where they lie in the window, the figures are about the start and not about
the job. In a long run this time disappears by itself; it matters for jobs that are short or restarted often.

What to do next

1. Record later: nsys profile --delay=SECONDS, or between cudaProfilerStart and cudaProfilerStop with
   --capture-range=cudaProfilerApi.
2. Record some tens of steps, so that the steady state is most of the capture.
3. If the start-up itself is the problem: keep compiled code between runs, ship machine code for the GPU, load lazily.

When it is wrong

Short jobs (inference that starts per request, tests) are start-up: there the time counts in full.
"""

from typing import Final

from nsys_triage import units
from nsys_triage.metrics.loading import Loading, summarize_loading
from nsys_triage.metrics.startup import Startup, find_startup
from nsys_triage.result.model import Evidence, Interval
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context

_ONCE: Final = "high: the window holds no loading; low: nothing, since a longer run does not pay it again"
_OUTSIDE: Final = "nothing in a long run: start-up is paid once"


def check(context: Context) -> Outcome:
    """Fires where most of the capture is start-up, or where loading that does not repeat reaches the threshold."""
    m = context.m
    startup = find_startup(m.trace, m.workload, m.steps, m.window)
    loading = summarize_loading(m.trace, m.workload, m.pieces, m.window)
    loading_ns = _once_ns(context, loading)
    mostly = (
        startup is not None
        and m.window.mode in ("auto", "all")
        and startup.share >= context.thresholds["capture"]
    )
    loads = loading_ns > 0 and loading_ns / context.span_ns >= context.thresholds["share"]
    share = startup.share if startup else 0.0
    if not mostly and not loads:
        return Passed(
            f"{units.share(share)} of the capture is start-up; loading that happens once takes"
            f" {units.share(loading_ns / max(1, context.span_ns))} of the window."
        )
    return Found(
        title=_title(context, startup if mostly else None, loading_ns if loads else 0),
        stake=context.stake(loading_ns, _ONCE, 0) if loads else context.stake(0, _OUTSIDE, 0),
        causes=("module_load",) if loads else (),
        evidence=(
            *(_startup_evidence(startup) if startup else ()),
            *(_loading_evidence(context, loading, loading_ns) if loads else ()),
        ),
        actions=_actions(context, startup),
        caveat="For a job that is short, or started anew for each request, start-up counts in full.",
        confidence="high" if startup else "medium",
        where=context.where("module_load") if loads else _where(startup),
    )


def _once_ns(context: Context, loading: Loading) -> int:
    """Loading that does not keep coming, summed over the GPUs: only the first tenth's where the rest repeats."""
    if not loading.repeated_ns or loading.repeated_ns < context.thresholds["share"] * context.span_ns:
        return loading.total_ns
    return 0 if context.m.window.cuts else loading.first_ns


def _title(context: Context, startup: Startup | None, loading_ns: int) -> str:
    if startup is None or loading_ns:
        share = units.share(loading_ns / context.span_ns)
        return f"Start-up is in the window: loading and compiling kernels once takes {share} of the time"
    return f"{units.share(startup.share)} of the capture is start-up ({units.time(startup.ns)})"


def _where(startup: Startup | None) -> Interval | None:
    return Interval(start_ns=startup.start_ns, end_ns=startup.end_ns) if startup else None


def _startup_evidence(startup: Startup) -> tuple[Evidence, ...]:
    return (
        number("start-up", startup.ns, "ns"),
        number("of the capture", startup.share, "share"),
        number("steady state", startup.capture_ns - startup.ns, "ns"),
        number("how it was told", startup.reason, "text"),
    )


def _loading_evidence(context: Context, loading: Loading, loading_ns: int) -> tuple[Evidence, ...]:
    return (
        number("idle while kernels are loaded or compiled once", context.mean_ns(loading_ns), "ns"),
        number("module and library loading calls", loading.calls, "count"),
        number("loading and compilation reported by CUDA", loading.compilations, "count"),
        number("first launches of a kernel that take 1 ms or more", loading.slow_launches, "count"),
    )


def _actions(context: Context, startup: Startup | None) -> tuple[str, ...]:
    seconds = -(-startup.end_ns // 1_000_000_000) if startup and startup.end_ns > 0 else 30
    last_ns = int(context.m.workload.work["end_ns"].max() or 0)  # type: ignore[arg-type]
    # a delay beyond the last work would record nothing of a job that is no longer
    longer = (
        "Let the job run for a minute longer, and record" if seconds * 1_000_000_000 >= last_ns else "Record"
    )
    return (
        (
            f"{longer} later: nsys profile --delay={seconds} --duration=30 --kill=none --trace=cuda,nvtx,osrt"
            " --output=job <your command>"
        ),
        "Better still, record exact steps, "
        + context.wording(
            pytorch=(
                "with torch.cuda.profiler.start() before the step that you want and torch.cuda.profiler.stop() "
                "some tens of steps later"
            ),
            jax="with cudaProfilerStart and cudaProfilerStop (through ctypes on libcudart) around some tens of steps",
            cuda="with cudaProfilerStart() before the iterations that you want and cudaProfilerStop() after them",
        )
        + ": nsys profile --capture-range=cudaProfilerApi --capture-range-end=stop --trace=cuda,nvtx,osrt --output=job"
        " <your command>",
        context.wording(
            pytorch=(
                "If the start itself matters: keep compiled code between runs (TORCHINDUCTOR_CACHE_DIR), and leave "
                "CUDA_MODULE_LOADING=LAZY."
            ),
            jax="If the start itself matters: set jax_compilation_cache_dir, and leave CUDA_MODULE_LOADING=LAZY.",
            cuda="If the start itself matters: build for this GPU's architecture, and leave CUDA_MODULE_LOADING=LAZY.",
        ),
    )


RULE = Rule(
    id="startup-dominates",
    title="Start-up instead of steady state",
    check=check,
    page=page_of(__doc__),
    thresholds={
        "share": CAUSE_THRESHOLD,
        "capture": Threshold(
            0.5, "share", "of the capture that is start-up: with more than half, a longer recording is needed"
        ),
    },
)
