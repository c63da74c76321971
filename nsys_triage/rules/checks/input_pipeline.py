"""The GPU waits for input data.

What it means

The GPU runs dry because the next batch is not there yet: the thread that launches work is inside an NVTX range that
says data loading, waits or reads in the operating system before an input copy, or prepares the batch itself.
An input copy is a host-to-device copy of at least 64 KiB that comes after kernel work and recurs.

What to do next

1. Raise the number of loader workers until the gaps close, and watch the CPU cores while you do.
2. Keep the workers alive between epochs, and let them prefetch, if the gaps cluster at epoch starts.
3. If the CPU is full: decode on the GPU (DALI, nvImageCodec), cache decoded data, or store it in a format that is cheaper to read.
4. Then pin host memory and copy without blocking, so that the copy overlaps with computing.

When it is wrong

The same waits occur where the process waits for requests (a server without load) or for another rank or process that feeds it.
"""

from nsys_triage import units
from nsys_triage.rules.base import CAUSE_THRESHOLD, Found, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context


def check(context: Context) -> Outcome:
    """Fires where waiting for input reaches the threshold."""
    share = context.share("input_pipeline")
    if share < context.thresholds["share"]:
        return Passed(f"The GPU waits for input {units.share(share)} of the time.")
    copies = context.m.inputs
    total_ns = context.total_ns("input_pipeline")
    return Found(
        title=f"The GPU waits for input {units.share(share)} of the time",
        stake=context.cause_stake("input_pipeline"),
        causes=("input_pipeline",),
        evidence=(
            number("idle while input is loaded", context.mean_ns(total_ns), "ns"),
            number("gaps in which the GPU waits for input", context.gap_count("input_pipeline"), "count"),
            number("input copies", copies.height, "count"),
            number("size of an input copy (median)", int(copies["bytes"].median() or 0) if copies.height else 0, "bytes"),  # type: ignore[arg-type]
        ),
        actions=(
            context.wording(
                pytorch="Raise num_workers of the DataLoader until the gaps close, watching the CPU cores; then record again and compare.",
                jax="Give the input pipeline more parallelism (tf.data num_parallel_calls and prefetch, or more Grain workers) until the gaps close.",
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
        ),
        caveat="The same waits occur where the process waits for requests, or for another process that feeds it.",
        confidence="high" if context.has("osrt") or context.has("nvtx") else "medium",
        where=context.where("input_pipeline"),
        gpu=context.one_gpu("input_pipeline"),
    )


RULE = Rule(
    id="input-pipeline",
    title="Input pipeline",
    check=check,
    page=page_of(__doc__),
    thresholds={"share": CAUSE_THRESHOLD},
)
