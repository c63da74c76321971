"""All CPU cores that the job can use are busy, and the GPU waits for the host.

What it means

Scheduling rows show on which cores the recorded threads ran. Where more threads want to run than there are cores, and
all of these cores are busy while the GPU has nothing to do, loader workers, the launching thread and helper threads
take the time from each other. A job that a scheduler or container bound to a few cores has only those, however many
the machine has.

What to do next

1. Give the job more cores (Slurm --cpus-per-task, docker --cpus, taskset), or see why it has so few.
2. Use no more workers and threads than cores: OMP_NUM_THREADS=1 for loader workers, fewer workers.
3. Take work off the CPU: decode on the GPU, cache decoded data.

When it is wrong

Only recorded threads are seen: the process tree, unless the whole machine was recorded. Threads that spin while they
wait look busy.
"""

from typing import Final

from nsys_triage import units
from nsys_triage.intervals import covered
from nsys_triage.metrics.cpu_cores import core_use, off_core_ns
from nsys_triage.metrics.host_activity import host_spans
from nsys_triage.result.model import Cause
from nsys_triage.rules.base import (
    CAUSE_THRESHOLD,
    Found,
    NotRun,
    Outcome,
    Passed,
    Rule,
    Threshold,
    number,
    page_of,
)
from nsys_triage.rules.context import NEEDS, Context

_HOST: Final[tuple[Cause, ...]] = ("launch", "input_pipeline", "host_blocked", "host_compute")
_BASIS: Final = (
    "high: all idle time for want of the host while every core was busy is gone; low: the launching thread no longer"
    " waits for a core"
)


def check(context: Context) -> Outcome:
    """Fires where the cores are full, more threads than cores want them, and the GPU idles meanwhile."""
    m = context.m
    use = core_use(m.trace, m.window.start_ns, m.window.end_ns)
    if use is None:
        return NotRun(*NEEDS["scheduling"])
    pieces = {cause: context.pieces_of(cause) for cause in _HOST}
    meanwhile = {cause: int(covered(rows, use.all_busy).sum()) for cause, rows in pieces.items()}
    idle_ns = sum(meanwhile.values())
    share = idle_ns / context.span_ns if context.span_ns else 0.0
    crowded = use.active_threads > use.cores and use.busy_share >= context.thresholds["busy"]
    if not crowded or not idle_ns or share < context.thresholds["share"]:
        return Passed(
            f"The recorded threads keep the {units.plural(use.cores, 'core')} that they ran on "
            f"{units.share(use.busy_share)} busy;"
            f" the GPU waits for the host {units.share(share)} of the time while all of them are."
        )
    spans = host_spans(context.pieces_of("launch", "host_compute"), m.gaps.gaps)
    off_ns = off_core_ns(m.trace, spans, m.workload.threads) or 0
    return Found(
        title=(
            f"All {use.cores} CPU cores of the job are busy: the GPU waits for the host {units.share(share)} of the "
            "time meanwhile"
        ),
        stake=context.stake(idle_ns, _BASIS, min(off_ns, idle_ns)),
        causes=tuple(cause for cause in _HOST if meanwhile[cause]),
        evidence=(
            number("idle for want of the host while all cores were busy", context.mean_ns(idle_ns), "ns"),
            number("cores that the recorded threads ran on", use.cores, "count"),
            number("their use", use.busy_share, "share"),
            number(
                "threads that used a core for a twentieth of the time or more", use.active_threads, "count"
            ),
            number("launching thread ready to go on, but on no core", off_ns, "ns"),
        ),
        actions=(
            "Give the job more cores (Slurm --cpus-per-task, docker --cpus, taskset), or find out why it has so few.",
            context.wording(
                pytorch=(
                    "Use no more DataLoader workers than cores, and torch.set_num_threads(1) or OMP_NUM_THREADS=1 "
                    "in them."
                ),
                jax=(
                    "Limit the threads of the input pipeline (tf.data private_threadpool_size, fewer Grain "
                    "workers) to the cores."
                ),
                cuda=(
                    "Use no more threads than cores (OMP_NUM_THREADS), and let waiting threads block instead of "
                    "spin (cudaDeviceScheduleBlockingSync)."
                ),
            ),
            "Take work off the CPU: decode on the GPU (DALI, nvImageCodec), or cache decoded data.",
        ),
        caveat="Threads that spin while they wait look busy, and threads that were not recorded are not seen.",
        confidence="medium",
        where=context.where(max(_HOST, key=lambda cause: meanwhile[cause])),
        gpu=context.one_gpu(*_HOST),
    )


RULE = Rule(
    id="cpu-saturated",
    title="All CPU cores busy while the GPU waits",
    check=check,
    page=page_of(__doc__),
    needs=("scheduling", "api"),
    thresholds={
        "share": CAUSE_THRESHOLD,
        "busy": Threshold(
            0.9,
            "share",
            "of the time of all cores that were used: with a free tenth, a thread that is ready finds one",
        ),
    },
)
