"""What a comparison needs of one run, taken out of its result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

from msgspec import UnsetType

from nsys_triage.compare.noise import Sample
from nsys_triage.result.model import BUSY_CAUSES, CAUSES, CauseTime, Kernels, KernelShape, Result, Step, Steps

T = TypeVar("T")
ShapeKey = tuple[str, tuple[int, ...], tuple[int, ...]]
"""A kernel's name, grid and block."""


def given(part: T | UnsetType | None) -> T | None:
    """The part, or None where the result does not have it."""
    return None if isinstance(part, UnsetType) else part


IDLE: Final = "idle"


@dataclass(frozen=True)
class Numbers:
    """One run. Times of causes and of spans are the mean of its GPUs."""

    result: Result

    @property
    def judged(self) -> bool:
        """Whether there is GPU work to compare."""
        return self.result.status == "ok" and bool(self.result.gpus)

    @property
    def gpus(self) -> int:
        """How many GPUs worked; at least 1, to divide by."""
        return max(1, len(self.result.gpus))

    @property
    def span_ns(self) -> float:
        """Of the window."""
        return sum(gpu.span_ns for gpu in self.result.gpus) / self.gpus

    @property
    def busy_ns(self) -> float:
        """Of the window."""
        return sum(gpu.busy_ns for gpu in self.result.gpus) / self.gpus

    @property
    def whole_span_ns(self) -> float:
        """Of the whole capture."""
        return sum(gpu.whole.span_ns for gpu in self.result.gpus) / self.gpus

    @property
    def whole_kernels(self) -> int | None:
        """Kernels in the whole capture."""
        return self.result.capture.counts.kernels

    @cached_property
    def ledger(self) -> dict[str, float]:
        """Time by cause in the window; every cause."""
        sums = dict.fromkeys((str(cause) for cause in CAUSES), 0.0)
        for gpu in self.result.gpus:
            for entry in given(gpu.ledger) or []:
                sums[entry.cause] += entry.ns / self.gpus
        return sums

    @property
    def kernels(self) -> Kernels | None:
        """The kernels of the window."""
        return given(self.result.kernels)

    @property
    def launches(self) -> int:
        """Kernels that start in the window."""
        return self.kernels.count if self.kernels else 0

    # --- steps ------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> Steps | None:
        """The steps; None where none were found."""
        steps = given(self.result.steps)
        return steps if steps is not None and steps.source != "none" and steps.count else None

    @property
    def launches_per_step(self) -> float:
        """Kernels of a step on one GPU; 0 without steps."""
        return self.launches / self.gpus / self.steps.count if self.steps else 0.0

    @cached_property
    def judged_steps(self) -> list[Step]:
        """The steady and slow steps that are listed, without the last one.

        The last one has no next step to end at: what was queued ahead of the GPU lies in it.
        """
        items = [step for step in self.steps.items if step.state != "startup"] if self.steps else []
        return items[:-1] if len(items) > 1 else items

    def _sample(self, values: Sequence[float]) -> Sample:
        """One value per judged step, weighted for those that the result does not list."""
        steps = self.steps
        if steps is None:
            return Sample(())
        startup = sum(step.state == "startup" for step in steps.items)
        if len(steps.items) >= steps.count:
            return Sample(values)
        slow = [step.state == "slow" for step in self.judged_steps]
        marked = [v for v, is_slow in zip(values, slow, strict=True) if is_slow]
        others = [v for v, is_slow in zip(values, slow, strict=True) if not is_slow]
        every = max(1.0, (steps.count - startup - len(marked)) / max(1, len(others)))
        return Sample(others, marked, every)

    @cached_property
    def step_time(self) -> Sample:
        """Durations of the judged steps."""
        return self._sample([float(step.duration_ns) for step in self.judged_steps])

    @cached_property
    def step_busy(self) -> Sample:
        """Busy time of the main process' GPUs in the judged steps."""
        return self._sample([float(step.busy_ns) for step in self.judged_steps])

    def in_steps(self, cause: str) -> Sample | None:
        """Time under a cause by step, of the main process' GPUs; None where the result does not have it."""
        values = [_of_step(step, cause) for step in self.judged_steps]
        known = [value for value in values if value is not None]
        return self._sample(known) if len(known) == len(values) else None

    @property
    def outside_steps_ns(self) -> float:
        """How much of the window lies in no step."""
        if self.steps is None:
            return 0.0
        inside = sum(step.duration_ns for step in self.steps.items)
        listed = len(self.steps.items)
        if listed < self.steps.count:
            inside = round(self.step_time.mean * self.steps.count)
        return max(0.0, self.span_ns - inside)

    # --- kernels ----------------------------------------------------------------------------------------------

    @cached_property
    def shapes(self) -> dict[ShapeKey, tuple[str, KernelShape]]:
        """Every kernel by name and launch shape with its class; of a result without that block the top ones."""
        kernels = self.kernels
        if kernels is None:
            return {}
        block = given(kernels.by_shape)
        if block is None:
            return {
                (row.name, tuple(row.grid), tuple(row.block)): (
                    row.kernel_class,
                    KernelShape(
                        grid=row.grid, block=row.block, count=row.count, total_ns=row.total_ns,
                        p25_ns=row.p50_ns, p50_ns=row.p50_ns, p75_ns=row.p50_ns, stddev_ns=0,
                    ),
                )
                for row in kernels.top
            }  # fmt: skip
        return {
            (kernel.name, tuple(shape.grid), tuple(shape.block)): (kernel.kernel_class, shape)
            for kernel in block.kernels
            for shape in kernel.shapes
        }

    @property
    def lists_all_kernels(self) -> bool:
        """Whether the result has the block of all kernels."""
        return self.kernels is not None and given(self.kernels.by_shape) is not None

    @property
    def not_listed(self) -> int:
        """Launches of kernels that the result does not list by shape."""
        return max(0, self.launches - sum(shape.count for _, shape in self.shapes.values()))

    @cached_property
    def launches_by_name(self) -> dict[str, int]:
        """Launches of each kernel on all GPUs."""
        return self._by_name(lambda shape: shape.count)

    @cached_property
    def time_by_name(self) -> dict[str, int]:
        """Time of each kernel on all GPUs."""
        return self._by_name(lambda shape: shape.total_ns)

    def _by_name(self, value: Callable[[KernelShape], int]) -> dict[str, int]:
        sums: dict[str, int] = {}
        for (name, _, _), (_, shape) in self.shapes.items():
            sums[name] = sums.get(name, 0) + value(shape)
        return sums

    def ledger_entries(self) -> list[CauseTime]:
        """The mean ledger of the GPUs, causes that occur, in the fixed order."""
        return [
            CauseTime(cause=cause, ns=round(self.ledger[cause])) for cause in CAUSES if self.ledger[cause]
        ]


def _of_step(step: Step, cause: str) -> float | None:
    """Time of a step under a cause, or under all idle ones (IDLE); None where the result does not have it by step."""
    if cause == IDLE:
        return float(sum(entry.ns for entry in step.idle))
    if cause not in BUSY_CAUSES:
        return float(sum(entry.ns for entry in step.idle if entry.cause == cause))
    if cause == "communication":
        return float(step.exposed_communication_ns)
    parts = {"copy": given(step.copy_ns), "memset": given(step.memset_ns), "graph": given(step.graph_ns)}
    if cause != "compute":
        value = parts[cause]
        return None if value is None else float(value)
    known = [value for value in parts.values() if value is not None]
    return (
        float(step.busy_ns - step.exposed_communication_ns - sum(known)) if len(known) == len(parts) else None
    )
