"""What nsys itself says about events that it lost, and rows whose end was never recorded."""

from dataclasses import dataclass
from typing import Final

from nsys_triage.trace.model import Diagnostic, Trace

SAYS_SINCE: Final = (2024, 4)
"""Exports hold nsys' own messages since 2024.4.1."""

_WARNING, _ERROR = 2, 3
_LOST: Final = (
    "not all",
    "lost",
    "dropped",
    "reached the size limit",
    "might have not been started",
    "buffer",
)
_DEVICE: Final = ("cuda", "size limit")


@dataclass(frozen=True, slots=True)
class LostEvents:
    """Messages about lost events, the gravest first; of CUDA events alone; rows without an end."""

    messages: tuple[Diagnostic, ...]
    device: tuple[Diagnostic, ...]  # lost device work looks like idle time
    not_finished: int
    says: bool  # whether the export would hold such messages at all


def lost_events(trace: Trace) -> LostEvents:
    """What is known about lost events of the capture."""
    messages = tuple(
        d
        for d in trace.info.diagnostics
        if d.severity in (_WARNING, _ERROR) and any(w in d.text.lower() for w in _LOST)
    )
    return LostEvents(
        messages=messages,
        device=tuple(d for d in messages if any(word in d.text.lower() for word in _DEVICE)),
        not_finished=trace.dropped.get("not_finished", 0),
        says=bool(trace.info.diagnostics) or _release(trace.info.exporter_version) >= SAYS_SINCE,
    )


def _release(version: str | None) -> tuple[int, ...]:
    """Year and number of an nsys version, (0, 0) where it is not known."""
    parts = (version or "").split(".")[:2]
    return (
        tuple(int(part) for part in parts)
        if len(parts) == 2 and all(part.isdigit() for part in parts)
        else (0, 0)
    )
