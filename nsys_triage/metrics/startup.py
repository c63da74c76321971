"""How much of a capture is start-up, whatever window was asked for."""

from dataclasses import dataclass

from nsys_triage.metrics.steps import StepTable
from nsys_triage.metrics.window import Window, WindowRequest, resolve_window
from nsys_triage.metrics.work import Workload
from nsys_triage.trace.model import Trace


@dataclass(frozen=True, slots=True)
class Startup:
    """The part before the steady state, from the first device work on."""

    start_ns: int
    end_ns: int
    capture_ns: int  # from the first to the last device work
    reason: str

    @property
    def ns(self) -> int:
        """Its length."""
        return self.end_ns - self.start_ns

    @property
    def share(self) -> float:
        """Its share of the capture, 0 to 1."""
        return self.ns / self.capture_ns if self.capture_ns else 0.0


def find_startup(trace: Trace, workload: Workload, steps: StepTable, window: Window) -> Startup | None:
    """The start-up that the window `auto` leaves out; None where there is no evidence of one."""
    steady = window if window.mode == "auto" else resolve_window(trace, workload, steps, WindowRequest())
    if not steady.excluded:
        return None
    left_out = steady.excluded[0]
    return Startup(left_out.start_ns, left_out.end_ns, steady.end_ns - left_out.start_ns, left_out.reason)
