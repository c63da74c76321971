from pathlib import Path

from nsys_triage.metrics.startup import Startup, find_startup
from tests.builders.trace import TraceBuilder
from tests.rules.support import measured


def steps(first: float = 1000.0) -> TraceBuilder:
    """Six steps with a kernel each: the first one takes so many us, the others 100."""
    builder = TraceBuilder()
    start = 0.0
    for number in range(6):
        length = first if number == 0 else 100.0
        builder.range(f"step {number}", start - 20, start + length - 21).kernel(start, start + 50)
        start += length
    return builder


def startup(builder: TraceBuilder, folder: Path, window: str) -> Startup | None:
    m = measured(builder, folder, window)
    return find_startup(m.trace, m.workload, m.steps, m.window)


def test_what_the_default_window_leaves_out_whatever_was_asked_for(tmp_path: Path) -> None:
    # work from 0 to 1450; the first settled step begins at 980
    for window in ("auto", "all", "0.0011:0.0013"):
        found = startup(steps(), tmp_path, window)
        assert found is not None
        assert (found.start_ns, found.end_ns, found.capture_ns) == (0, 980_000, 1_450_000)
        assert found.ns == 980_000
        assert found.share == 980 / 1450
        assert found.reason.startswith("Start-up: 1 slow first step")


def test_no_start_up(tmp_path: Path) -> None:
    assert startup(steps(140), tmp_path, "auto") is None
    assert startup(steps(140), tmp_path, "all") is None
