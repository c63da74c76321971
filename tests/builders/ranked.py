"""Data-parallel training in small: ranks of one job that all-reduce in every step, as one file or a file per rank."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.builders import torch_kernels as torch
from tests.builders.job import Job
from tests.builders.trace import TraceBuilder

STREAM: Final = 20
STEPS: Final = 12
KERNELS: Final = 6
KERNEL_US: Final = 400.0
TRANSFER_US: Final = 300.0
_STARTED_UTC_NS: Final = 1_700_000_000_000_000_000
_NONE: Final[dict[int, float]] = {}


def training(
    ranks: int,
    *,
    one_file: bool = False,
    overlapped: bool = False,
    slowdown: dict[int, float] = _NONE,
    input_us: dict[int, float] = _NONE,
    host_us: dict[int, float] = _NONE,
    more_kernels: dict[int, float] = _NONE,
) -> list[TraceBuilder]:
    """The traces of such a job; what is given by rank is what that rank has beyond the others.

    A step is six matrix products of 400 us, an all-reduce of 300 us that the next product hides if `overlapped`, and a
    wait for the GPU. `slowdown` is a factor on the kernels, `input_us` a wait for a batch before the step, `host_us`
    time of the thread that launches, `more_kernels` how many products more.
    """
    jobs = _jobs(ranks, slowdown, one_file=one_file)
    for step in range(STEPS):
        for rank, job in enumerate(jobs):
            job.range(f"step {step}", _first_part(job, input_us.get(rank, 0), host_us.get(rank, 0)))
            for _ in range(KERNELS + int(more_kernels.get(rank, 0))):
                job.kernel(torch.GEMM_HOPPER, KERNEL_US)
        _all_reduce(jobs, overlapped=overlapped)
        for job in jobs:
            job.wait("cudaStreamSynchronize_v3020", job.done())
    found = [job.trace for job in jobs]
    return found[:1] if one_file else found


def write(traces: Sequence[TraceBuilder], folder: Path) -> list[Path]:
    """Writes them as rank0.sqlite, rank1.sqlite, ..."""
    return [trace.write(folder / f"rank{rank}.sqlite") for rank, trace in enumerate(traces)]


def _jobs(ranks: int, slowdown: dict[int, float], *, one_file: bool) -> list[Job]:
    shared = TraceBuilder("2025.5.2", gpus=("H100",) * ranks).started(_STARTED_UTC_NS)
    jobs = []
    for rank in range(ranks):
        trace = shared
        if not one_file:
            trace = TraceBuilder("2025.5.2", gpus=("H100",) * ranks).started(_STARTED_UTC_NS)
            trace.environment(RANK=f"{rank}", WORLD_SIZE=f"{ranks}")
        jobs.append(
            Job(
                trace, pid=5_000 + rank, dispatch=9, seed=rank, device=rank, clock_ahead=1_000.0,
                slowdown=slowdown.get(rank, 1.0),
            )
        )  # fmt: skip
    return jobs


def _first_part(job: Job, input_us: float, host_us: float) -> Callable[[], None]:
    def body() -> None:
        if input_us:
            job.range("next_batch", lambda: job.os_call("poll", input_us))
        if host_us:
            job.host(host_us)
        job.copy("host_to_device", 1 << 20, 20.0)

    return body


def _all_reduce(jobs: Sequence[Job], *, overlapped: bool) -> None:
    """Ends a transfer after the last rank has come; the products after it wait for it, or hide it."""
    launched = [job.launch_collective(STREAM) for job in jobs]
    end = max(work.start for work in launched) + TRANSFER_US
    for job, work in zip(jobs, launched, strict=True):
        job.finish_collective(torch.ALL_REDUCE, work, end, STREAM)
        if not overlapped:
            job.join(STREAM)
        job.kernel(torch.GEMM_HOPPER, KERNEL_US)
        job.join(STREAM)
