"""CUDA calls returned errors.

What it means

A launch call that fails runs no kernel: the GPU idles, and the program may not notice if it does not look at the return
value. Other failing calls cost at least their own time, and often mean that the program does something else than meant.
Answers that programs ask for (not ready, peer access already enabled, probes of pointers) are not errors.

What to do next

1. Check the return value of every call, and cudaGetLastError after every launch.
2. No kernel image or PTX too new: build for this GPU's compute capability, or install a newer driver.
3. Out of memory: a smaller batch, or less fragmentation; the caching allocator frees and tries again, which is slow.
4. Illegal or misaligned address: run the program once under compute-sanitizer.

When it is wrong

A program may try a call that it expects to fail, and go on with something else.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.api_errors import api_errors, error_name
from nsys_triage.metrics.api_names import LAUNCH
from nsys_triage.rules.base import Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context

_ADVICE: Final[dict[int, str]] = {
    2: "Out of memory: use a smaller batch or free what is not needed; in PyTorch"
    " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lessens fragmentation.",
    98: "Build for the compute capability of this GPU (nvcc -gencode arch=compute_XX,code=sm_XX).",
    209: "Build for the compute capability of this GPU (nvcc -gencode arch=compute_XX,code=sm_XX).",
    218: "Build for the compute capability of this GPU (nvcc -gencode arch=compute_XX,code=sm_XX).",
    222: "Install a driver at least as new as the CUDA toolkit, or build device code for this GPU (nvcc -gencode"
    " arch=compute_XX,code=sm_XX) with the toolkit of the driver.",
    700: "Find the access with compute-sanitizer <your command>.",
    701: "Launch with fewer threads per block, or limit registers (__launch_bounds__, -maxrregcount).",
    716: "Find the access with compute-sanitizer <your command>.",
}


def check(context: Context) -> Outcome:
    """Fires where a CUDA call returned an error that none asked for."""
    m = context.m
    errors = api_errors(m.workload, m.window)
    calls = m.window.rows(m.workload.calls)
    if errors.is_empty():
        return Passed(f"None of {units.plural(calls.height, 'CUDA call')} returned an error.")
    launched = calls.filter((pl.col("group") & LAUNCH) > 0).height
    failed = int(errors.filter("launches")["calls"].sum())
    first = (errors.filter("launches") if failed else errors).row(0, named=True)
    what = f"{first['api']} returned {error_name(first['code'])}"
    if failed:
        title = f"{units.count(failed)} of {units.count(launched)} launches failed and ran no kernel: {what}"
        at_most = context.span_ns * failed / launched
        basis = (
            "high: the share of the time that the failed launches are of all, since their work is missing;"
            " low: nothing"
        )
    else:
        title = f"{units.plural(int(errors['calls'].sum()), 'CUDA call')} returned an error: {what}"
        at_most = min(context.span_ns, int(errors["ns"].sum()))
        basis = "high: the time in the failing calls; low: nothing, if they were made beside the GPU's work"
    return Found(
        title=title,
        stake=context.stake(at_most, basis, 0),
        causes=("launch",),
        evidence=(
            number("calls that returned an error", int(errors["calls"].sum()), "count"),
            number("of them launches, which therefore have no kernel", failed, "count"),
            number("time in those calls", int(errors["ns"].sum()), "ns"),
            *(
                number(f"{row['api']} returned {error_name(row['code'])}", row["calls"], "count")
                for row in errors.head(3).iter_rows(named=True)
            ),
        ),
        actions=_actions(first["code"]),
        caveat="A program may try a call that it expects to fail, and go on with something else.",
        where=context.where("launch") if failed else None,
    )


def _actions(code: int) -> tuple[str, ...]:
    return (
        *([_ADVICE[code]] if code in _ADVICE else []),
        "Check the return value of every CUDA call, and cudaGetLastError() after each launch.",
        "See where they come from: nsys profile --trace=cuda,nvtx --cudabacktrace=all --output=job <your command>",
    )


RULE = Rule(
    id="cuda-errors", title="CUDA calls that failed", check=check, page=page_of(__doc__), needs=("api",)
)
