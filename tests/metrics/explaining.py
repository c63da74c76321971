"""The traces and questions that the tests of the ledger's definition share. Times are microseconds.

Most traces have one gap, [1100, 2000): a kernel ends at 1100, the next is launched by a call [1990, 1995) and starts
at 2000. So the host part is [1100, 1990), 890 us, and the launch part [1990, 2000), 10 us.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from nsys_triage.metrics.ledger import by_cause
from nsys_triage.metrics.measure import Measurement, measure
from nsys_triage.metrics.window import parse_window
from nsys_triage.result.model import CAUSES
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import TraceBuilder

Causes = dict[str, float]

PLAIN: Causes = {"host_compute": 890, "launch": 10}  # the gap where nothing else is known
WORKER = 77  # another thread


def one_gap(**kernel: Any) -> TraceBuilder:
    """The trace above; keywords are about the kernel that ends the gap."""
    return TraceBuilder().kernel(1_000, 1_100).kernel(2_000, 2_100, **kernel)


def measured(trace: TraceBuilder, window: str = "all") -> Measurement:
    """The trace, written, loaded and measured."""
    with TemporaryDirectory() as folder:
        path = trace.write(Path(folder) / "t.sqlite")
        loaded = load_trace(path, file=path.name, kind="sqlite", capture_version=None)
    found = measure(loaded, parse_window(window))
    assert found is not None
    return found


def explained(trace: TraceBuilder, at: float = 1_100, *, gpu: int = 0, window: str = "all") -> Causes:
    """The causes of the gap that begins at that time, cut to the window; GPUs count by lowest process."""
    m = measured(trace, window)
    gaps = m.gaps.gaps.filter((pl.col("gpu") == gpu) & (pl.col("start_ns") == round(at * 1_000)))
    assert gaps.height == 1, m.gaps.gaps.select("gpu", "start_ns", "end_ns").rows()
    return _by_name(m.pieces.filter(pl.col("gap") == gaps["gap"][0]))


def each_explained(names: list[str], plant: Callable[[TraceBuilder, float, str], object]) -> list[Causes]:
    """The causes of one gap for each name: the gap above, 3000 us after the one before, with what `plant` adds."""
    trace = TraceBuilder()
    for number, name in enumerate(names):
        at = 3_000.0 * number
        trace.kernel(at + 1_000, at + 1_100).kernel(at + 2_000, at + 2_100)
        plant(trace, at, name)
    m = measured(trace)
    gaps = m.gaps.gaps.filter((pl.col("start_ns") - 1_100_000) % 3_000_000 == 0)
    assert gaps.height == len(names)
    return [_by_name(m.pieces.filter(pl.col("gap") == gap)) for gap in gaps["gap"]]


def totals(m: Measurement, gpu: int = 0) -> Causes:
    """The ledger of one GPU in the window."""
    return _by_name(m.pieces.filter(pl.col("gpu") == gpu))


def _by_name(pieces: pl.DataFrame) -> Causes:
    return {CAUSES[code]: ns / 1_000 for code, ns in by_cause(pieces).iter_rows()}
