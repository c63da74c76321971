"""Makes the traces of `sample_traces/`: python -m tests.builders.samples [FOLDER]

Each is a small PyTorch-like job with one planted cause. The same code gives the same traces.
"""

import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from tests.builders import torch_kernels as torch
from tests.builders.job import Job, Launched
from tests.builders.torch_kernels import Work
from tests.builders.trace import MS, S, TraceBuilder

FOLDER: Final = Path(__file__).parents[2] / "sample_traces"

_ENVIRONMENT: Final = {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "8"}
_STARTED_UTC_NS: Final = 1_780_300_800_123_456_789
_COMMUNICATION_STREAM: Final = 20
_COMMUNICATOR: Final = 13_429_301_450_432_826_988  # NCCL's identifiers exceed 2**63
_PIN_MEMORY_THREAD, _AUTOGRAD_THREAD = 41, 60  # ids, counted from the process'


def data_loader_stall() -> TraceBuilder:
    """The data loader needs 55 ms for a batch that the GPU works off in less than 20."""
    trace = TraceBuilder("2025.5.2", gpus=("A100",)).environment(_ENVIRONMENT)
    job = Job(trace, pid=31_207, dispatch=9, seed=1, clock_ahead=2.1 * S)
    pin_memory = job.pid + _PIN_MEMORY_THREAD
    job.trace.thread_name("pt_pin_memory", tid=pin_memory)

    def next_batch(wait: float) -> None:
        job.host(180)
        start = job.now
        job.os_call("poll", wait)
        job.meanwhile(pin_memory, "sem_clockwait", start - 16 * MS, job.now - 4 * MS)
        job.meanwhile(pin_memory, "read", job.now - 3.6 * MS, job.now - 300)
        job.host(350)

    def step(index: int) -> None:
        wait = 54 * MS if index else 640 * MS  # the first batch needs worker processes
        job.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", partial(next_batch, wait))
        warm_up(job, index)
        job.copy("host_to_device", 256 * 3 * 224 * 224 * 2, 24.0)
        job.range("forward", lambda: launch(job, torch.conv_forward(5)))
        backward(job, torch.conv_backward(5), waiting_call="pthread_cond_wait")
        job.range("optimizer", lambda: launch(job, [(torch.OPTIMIZER, 640), (torch.OPTIMIZER, 210)]))

    start_up(job, weights=102 << 20)
    for index in range(30):
        job.range(f"train step {index}", partial(step, index))
    job.wait("cudaDeviceSynchronize_v3020", job.done())
    return trace


def launch_bound() -> TraceBuilder:
    """Fifty kernels of 2 to 4 us in a step, launched one by one from Python, which takes 14 us for each."""
    trace = TraceBuilder("2023.4.4", gpus=("A100",)).environment(_ENVIRONMENT)
    job = Job(trace, pid=8_816, dispatch=9.5, seed=2, clock_ahead=1.4 * S)
    start_up(job, weights=6 << 20)
    for index in range(28):
        warm_up(job, index)
        job.host(30)
        launch(job, torch.message_passing(7))
    job.wait("cudaDeviceSynchronize_v3020", job.done())
    return trace


def healthy() -> TraceBuilder:
    """Large kernels; `loss.item()` in every step waits long and costs nothing: the host is back at once."""
    trace = TraceBuilder("2026.3.1", gpus=("H100",)).environment(_ENVIRONMENT)
    job = Job(trace, pid=52_044, dispatch=9, seed=3, clock_ahead=3.3 * S)

    def step(index: int) -> None:
        warm_up(job, index)
        job.copy("host_to_device", 16 * 2048 * 8, 20.0)
        job.range("forward", lambda: launch(job, torch.transformer_forward(torch.GEMM_HOPPER, 1.6, 3)))
        backward(job, torch.transformer_backward(torch.GEMM_HOPPER, 1.6, 3))
        job.range("optimizer", lambda: launch(job, [(torch.OPTIMIZER, 1_900), (torch.OPTIMIZER, 800)]))
        job.item()

    start_up(job, weights=900 << 20)
    for index in range(26):
        job.range(f"step {index}", partial(step, index))
    job.wait("cudaDeviceSynchronize_v3020", job.done())
    return trace


def item_sync() -> TraceBuilder:
    """`loss.item()` in every step and 6 ms of host work after it, during which the GPU has nothing to do."""
    trace = TraceBuilder("2024.6.2", gpus=("RTX 3090",)).environment(_ENVIRONMENT)
    job = Job(trace, pid=19_350, dispatch=9, seed=4, clock_ahead=1.9 * S)
    start_up(job, weights=240 << 20)
    for index in range(30):
        warm_up(job, index)
        job.copy("host_to_device", 4 * 1024 * 8, 12.0)
        launch(job, torch.transformer_forward(torch.GEMM_AMPERE_SMALL_TILE, 0.8, 2))
        backward(job, torch.transformer_backward(torch.GEMM_AMPERE_SMALL_TILE, 0.8, 2), named=False)
        launch(job, [(torch.OPTIMIZER, 700)])
        job.item()
        job.host(6 * MS)
    job.wait("cudaDeviceSynchronize_v3020", job.done())
    return trace


def two_ranks() -> list[TraceBuilder]:
    """Data-parallel training on the two GPUs of a machine; the kernels of rank 1 take 1.4 times as long."""
    jobs = [_rank(0, slowdown=1.0), _rank(1, slowdown=1.4)]
    for rank, job in enumerate(jobs):
        start_up(job, weights=700 << 20)
        job.range(
            "ncclCommInitRankConfig",
            partial(job.host, 140 * MS),
            {"NCCL communicator ID": _COMMUNICATOR, "No. of ranks": 2, "Rank": rank, "CUDA device": rank},
        )
    for index in range(24):
        begun = [job.now for job in jobs]
        for job in jobs:
            warm_up(job, index)
            job.copy("host_to_device", 8 * 2048 * 8, 20.0)
            forward = torch.transformer_forward(torch.GEMM_HOPPER, 1.3, 2)
            job.range("forward", partial(launch, job, forward))
        for bucket in range(3):
            _backward_with_all_reduce(jobs, size=(46 << 20) + bucket * (3 << 20))
        for job, start in zip(jobs, begun, strict=True):
            job.join(_COMMUNICATION_STREAM)
            job.range("optimizer", partial(launch, job, [(torch.OPTIMIZER, 1_500)]))
            job.item()
            job.range_since(f"step {index}", start)
    for job in jobs:
        job.wait("cudaDeviceSynchronize_v3020", job.done())
    return [job.trace for job in jobs]


def _rank(rank: int, slowdown: float) -> Job:
    """One rank's job, whose capture began 137 ms earlier than that of the rank before."""
    trace = TraceBuilder("2026.3.1", gpus=("H100", "H100")).started(_STARTED_UTC_NS - rank * 137_000_000)
    trace.environment({**_ENVIRONMENT, "RANK": f"{rank}", "LOCAL_RANK": f"{rank}", "WORLD_SIZE": "2"})
    ahead = 4.2 * S + rank * 137 * MS
    pid = 70_110 + rank
    return Job(trace, pid=pid, device=rank, dispatch=9, seed=5 + rank, clock_ahead=ahead, slowdown=slowdown)


def _backward_with_all_reduce(jobs: list[Job], size: int) -> None:
    """A third of the backward pass, then an all-reduce of its gradients, which waits for the slower rank."""
    payload: dict[str, object] = {
        "NCCL communicator ID": _COMMUNICATOR,
        "Message size [bytes]": size,
        "Reduction operation": "Sum",
    }
    launched: list[Launched] = []
    for job in jobs:

        def part(job: Job = job) -> None:
            launch(job, torch.transformer_backward(torch.GEMM_HOPPER, 1.3, 1))
            job.range(
                "ncclAllReduce",
                lambda: launched.append(job.launch_collective(_COMMUNICATION_STREAM)),
                nccl=payload,
            )

        job.thread(job.pid + _AUTOGRAD_THREAD, part)
    end = max(work.start for work in launched) + jobs[0].jitter(size / 160e3)  # 160 GB/s
    for job, work in zip(jobs, launched, strict=True):
        job.finish_collective(torch.ALL_REDUCE, work, end + job.jitter(0.8, 0.5), _COMMUNICATION_STREAM)


# --- parts of a job -----------------------------------------------------------------------------------------


def launch(job: Job, work: Iterable[Work]) -> None:
    """Launches the kernels one after the other."""
    for kernel, length in work:
        job.kernel(kernel, length)


def backward(job: Job, work: Iterable[Work], *, waiting_call: str | None = None, named: bool = True) -> None:
    """The autograd thread launches the backward pass while the main thread waits for it."""

    def on_autograd_thread() -> None:
        job.thread(job.pid + _AUTOGRAD_THREAD, lambda: launch(job, work), waiting_call)

    if named:
        job.range("backward", on_autograd_thread)
    else:
        on_autograd_thread()


def start_up(job: Job, weights: int) -> None:
    """What comes before the first step: loading libraries, allocating, moving the weights to the GPU."""
    for _ in range(3):
        job.call("cuLibraryLoadData", 18 * MS)
        job.host(9 * MS)
    for _ in range(6):
        job.call("cudaMalloc_v3020", 320)
        job.copy("host_to_device", weights // 6, 9.5, pinned=False)
        job.host(700)
    job.wait("cudaStreamSynchronize_v3020", job.done())


def warm_up(job: Job, step: int) -> None:
    """What the first steps do and the later ones need no more: loading libraries, allocating."""
    if step == 0:
        for _ in range(4):
            job.call("cuLibraryLoadData", 42 * MS)
            job.host(11 * MS)
    if step <= 1:
        for _ in range(8):
            job.call("cudaMalloc_v3020", 410)


def make(folder: Path) -> list[Path]:
    """Writes all sample traces into the folder and returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    makers: list[Callable[[], TraceBuilder]] = [data_loader_stall, launch_bound, healthy, item_sync]
    traces = {maker.__name__: maker() for maker in makers}
    traces |= {f"two_ranks_rank{rank}": trace for rank, trace in enumerate(two_ranks())}
    return [trace.write(folder / f"{name}.sqlite") for name, trace in traces.items()]


if __name__ == "__main__":
    for made in make(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        sys.stdout.write(f"{made}\n")
