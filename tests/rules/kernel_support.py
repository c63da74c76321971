"""Plants kernels one after the other, for tests of the rules about the GPU's own kernels."""

from collections.abc import Iterable
from typing import Any

from nsys_triage.rules.base import Found, NotRun, Outcome, Passed
from tests.builders.trace import TraceBuilder

Planted = tuple[str, float, dict[str, Any]]

STENCIL = "stencil_kernel(float *, const float *, int)"


def back_to_back(trace: TraceBuilder, kernels: Iterable[Planted], start: float = 1_000) -> float:
    """Plants (name, length in us, keywords of `kernel`) without gaps from `start` on; gives the end."""
    for name, length, options in kernels:
        trace.kernel(start, start + length, name, **options)
        start += length
    return start


def found(outcome: Outcome) -> Found:
    """The outcome, which has to be a finding."""
    assert isinstance(outcome, Found), outcome
    return outcome


def passed(outcome: Outcome) -> Passed:
    """The outcome, which has to be a pass."""
    assert isinstance(outcome, Passed), outcome
    return outcome


def not_run(outcome: Outcome) -> NotRun:
    """The outcome, which has to be `not run`."""
    assert isinstance(outcome, NotRun), outcome
    return outcome


def evidence(outcome: Outcome, label: str) -> float | str:
    """The value of one piece of evidence."""
    return next(item.value for item in found(outcome).evidence if item.label == label)
