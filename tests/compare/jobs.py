"""Small training jobs that differ in one planted change."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nsys_triage.analyze import analyze
from nsys_triage.compare.build import SideInput, compare
from nsys_triage.ingest import ExportSettings, open_source
from nsys_triage.metrics.window import WindowRequest
from nsys_triage.result.compare_model import Comparison
from nsys_triage.result.model import Result
from tests.builders import torch_kernels as torch
from tests.builders.job import Job
from tests.builders.torch_kernels import Kernel
from tests.builders.trace import MS, TraceBuilder

WORK: tuple[tuple[Kernel, float], ...] = (
    (torch.GEMM_AMPERE, 420.0),
    (torch.BATCH_NORM, 130.0),
    (torch.SOFTMAX, 60.0),
    (torch.GEMM_AMPERE_SMALL_TILE, 210.0),
    (torch.LOSS, 25.0),
    (torch.OPTIMIZER, 160.0),
)
NEW_KERNEL = torch.LAYER_NORM


@dataclass(frozen=True)
class Plan:
    """A job of `steps` steps; each waits `stall` for input, then launches the work, and reads the loss.

    With a `period` the input is there every so many microseconds, however long the work takes.
    """

    work: Sequence[tuple[Kernel, float]] = WORK
    steps: int = 30
    stall: float = 0.0
    period: float = 0.0
    rank: int | None = None
    world: int = 1

    def longer(self, kernel: Kernel, factor: float) -> "Plan":
        """The same job with one kernel slower."""
        return replace(self, work=tuple((k, t * factor if k is kernel else t) for k, t in self.work))

    def all_longer(self, factor: float) -> "Plan":
        """The same job with every kernel slower."""
        return replace(self, work=tuple((k, t * factor) for k, t in self.work))

    def without(self, kernel: Kernel) -> "Plan":
        """The same job with one kernel gone."""
        return replace(self, work=tuple((k, t) for k, t in self.work if k is not kernel))

    def with_kernel(self, kernel: Kernel, length: float) -> "Plan":
        """The same job with one kernel more."""
        return replace(self, work=(*self.work, (kernel, length)))


def write(plan: Plan, seed: int, path: Path) -> Path:
    """The trace of a job; `seed` is that of its jitter, 3 % of every length."""
    trace = TraceBuilder("2025.5.2", gpus=("A100",))
    if plan.rank is not None:
        trace.environment(
            {"RANK": str(plan.rank), "WORLD_SIZE": str(plan.world), "LOCAL_RANK": str(plan.rank)}
        )
    job = Job(trace, pid=7_000 + (plan.rank or 0), dispatch=9, seed=seed, clock_ahead=1.2 * MS)

    due = 0.0

    def step() -> None:
        nonlocal due
        # the first steps load modules and are late: the loader does not make up for them
        wait = max(due - job.now, 0.7 * plan.period) if plan.period else plan.stall
        due = job.now + wait + plan.period
        if wait:
            job.range("DataLoader.__next__", lambda: job.os_call("poll", wait))
        job.copy("host_to_device", 1 << 20, 24.0)
        for _ in range(2):
            for kernel, length in plan.work:
                job.kernel(kernel, length)
        job.item()

    for index in range(plan.steps):
        job.range(f"train step {index}", step)
    job.wait("cudaDeviceSynchronize_v3020", job.done())
    return trace.write(path)


def result_of(*paths: Path) -> Result:
    """The result of a trace, or of the traces of a job's ranks."""
    return analyze([open_source(path, ExportSettings()) for path in paths], WindowRequest())


def one(result: Result, name: str = "run") -> SideInput:
    """A side of one run."""
    return SideInput(
        name=name, results=[result], sources=["trace"], files=[[f"{name}.sqlite"]], taken_as="one run"
    )


def repeats(results: Sequence[Result], name: str = "runs") -> SideInput:
    """A side of several runs."""
    return SideInput(
        name=name, results=results, sources=["trace"] * len(results),
        files=[[f"{name}{i}.sqlite"] for i in range(len(results))], taken_as="repeats",
    )  # fmt: skip


def compared(before: Result, after: Result, threshold: float | None = None) -> Comparison:
    """One run against another."""
    return compare(one(before, "before"), one(after, "after"), threshold)


def changed_kernels(comparison: Comparison) -> dict[str, tuple[str, str | None]]:
    """What is said of each kernel that changed: how often it is called, and how long it takes."""
    assert comparison.kernels is not None
    return {
        row.name: (row.calls, row.duration)
        for row in comparison.kernels.rows
        if (row.calls, row.duration) != ("same", "same")
    }


def changed_causes(comparison: Comparison) -> dict[str, str]:
    """Causes that changed."""
    return {c.cause: c.total.outcome for c in comparison.causes if c.total.outcome != "no_change"}


def changed_measures(comparison: Comparison) -> dict[tuple[str, str, str], str]:
    """Other numbers that changed."""
    return {
        (m.topic, m.name, m.what): m.outcome for m in comparison.measures if m.outcome in ("lower", "higher")
    }


def changed_findings(comparison: Comparison) -> dict[str, str]:
    """Rules whose finding is fixed or new."""
    return {f.rule: f.state for f in comparison.findings if f.state in ("fixed", "new")}
