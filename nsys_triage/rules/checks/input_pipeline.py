"""The GPU waits for input data.

What it means

The GPU runs dry because the next batch is not there yet: the thread that launches work is inside an NVTX range that
says data loading, waits or reads in the operating system before an input copy, or prepares the batch itself.
An input copy is a host-to-device copy of at least 64 KiB that comes after kernel work and recurs.

What to do next

1. Raise the number of loader workers until the gaps close, and watch the CPU cores while you do.
2. Keep the workers alive between epochs, and let them prefetch, if the gaps cluster at epoch starts.
3. If the CPU is full: decode on the GPU (DALI, nvImageCodec), cache decoded data, or store it in a format that is
   cheaper to read.
4. Then pin host memory and copy without blocking, so that the copy overlaps with computing.

When it is wrong

The same waits occur where the process waits for requests (a server without load) or for another rank or process that
feeds it.
"""

from typing import Final

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.cpu_cores import CoreUse, core_use
from nsys_triage.metrics.host_activity import host_spans, loader_ranges_in, os_calls_in
from nsys_triage.result.model import Evidence
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context, record_line

_NAMED: Final = 2
_DIRECT: Final = 0.5  # share of the waits that NVTX ranges or OS calls have to show for high confidence


def check(context: Context) -> Outcome:
    """Fires where waiting for input reaches the threshold."""
    share, total_ns = context.share("input_pipeline"), context.total_ns("input_pipeline")
    if not total_ns or share < context.thresholds["share"]:
        return Passed(f"The GPU waits for input {units.share(share)} of the time.")
    m = context.m
    spans = host_spans(context.pieces_of("input_pipeline"), m.gaps.gaps)
    ranges = loader_ranges_in(m.trace, m.workload, spans)
    calls = os_calls_in(m.trace, m.workload, spans)
    shown_ns = max(int(ranges["ns"].sum()), int(calls["ns"].sum()))
    use = core_use(m.trace, m.window.start_ns, m.window.end_ns)
    bound = use if use is not None and use.cores < use.threads else None
    return Found(
        title=f"The GPU waits for input {units.share(share)} of the time",
        stake=context.cause_stake("input_pipeline"),
        causes=("input_pipeline",),
        evidence=(
            number("idle while input is loaded", context.mean_ns(total_ns), "ns"),
            number("gaps in which the GPU waits for input", context.gap_count("input_pipeline"), "count"),
            *_longest(context),
            *(
                number(f"of it in the NVTX range {text} ({units.plural(n, 'range')})", ns, "ns")
                for text, n, ns in ranges.head(1).iter_rows()
            ),
            *(
                number(f"of it in {text} ({units.plural(n, 'call')})", ns, "ns")
                for text, n, ns in calls.head(_NAMED).iter_rows()
            ),
            *_copies(context),
            *((number("CPU cores that its threads ran on", bound.cores, "count"),) if bound else ()),
        ),
        actions=_actions(context, bound),
        caveat="The same waits occur where the process waits for requests, or for another process that feeds it.",
        confidence="high" if shown_ns >= _DIRECT * total_ns / max(1, len(context.gpus)) else "medium",
        where=context.where("input_pipeline"),
        gpu=context.one_gpu("input_pipeline"),
    )


def _longest(context: Context) -> tuple[Evidence, ...]:
    """The longest wait for input in one gap."""
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns")
    longest = context.pieces_of("input_pipeline").group_by("gap").agg(length)["ns"].max()
    return (number("longest wait for input", longest, "ns"),) if isinstance(longest, int) else ()


def _copies(context: Context) -> tuple[Evidence, ...]:
    """The copies that bring the input, where there are any: how many, how large, and what they cost by themselves."""
    copies = context.m.inputs
    if copies.is_empty():
        return ()
    size = copies["bytes"].quantile(0.5, interpolation="lower")
    exposed_ns = sum(gpu.exposed_input_copy_ns or 0 for gpu in context.gpus)
    return (
        number("input copies", copies.height, "count"),
        number("size of an input copy (median)", int(size or 0), "bytes"),
        number("time in these copies while nothing computes", context.mean_ns(exposed_ns), "ns"),
    )


def _actions(context: Context, bound: CoreUse | None) -> tuple[str, ...]:
    found = []
    if bound is not None:
        found.append(
            "See that the job may use more CPU cores (Slurm --cpus-per-task, docker --cpus, taskset):"
            f" its recorded threads ran on {units.count(bound.cores)} only, and more loader workers need more."
        )
    found += [
        context.wording(
            pytorch=(
                "Raise num_workers of the DataLoader until the gaps close, watching the CPU cores; then record "
                "again and compare."
            ),
            jax=(
                "Give the input pipeline more parallelism (tf.data num_parallel_calls and prefetch, or more Grain "
                "workers) until the gaps close."
            ),
            cuda="Load and prepare the next batch on another thread while the GPU works on this one.",
        ),
        context.wording(
            pytorch="Set persistent_workers=True and a larger prefetch_factor if the gaps cluster at epoch starts.",
            jax="Keep two or more batches on the device ahead of the step (flax.jax_utils.prefetch_to_device).",
            cuda="Keep two or more batches in flight (double buffering with a copy stream and events).",
        ),
        "If the CPU cores are full: decode on the GPU (DALI, nvImageCodec), cache decoded data, or use faster storage.",
        context.wording(
            pytorch="Afterwards pin_memory=True with non_blocking=True, so that copies overlap with computing.",
            jax="Afterwards overlap the transfer of the next batch with the step.",
            cuda="Afterwards copy from pinned memory with cudaMemcpyAsync on a stream of its own.",
        ),
    ]
    if not (context.has("osrt") and context.has("scheduling")):
        found.append(
            f"To see what the loader waits for, and on how many cores: {record_line('--cpuctxsw=process-tree')}"
        )
    return tuple(found)


RULE = Rule(
    id="input-pipeline",
    title="Input pipeline",
    check=check,
    page=page_of(__doc__),
    needs=("api",),
    thresholds={"share": CAUSE_THRESHOLD},
)
