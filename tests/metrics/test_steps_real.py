"""Steps of public traces, against what their programs do; skipped where the traces are not beside the project."""

from pathlib import Path

import pytest

from nsys_triage.metrics.measure import Measurement, measure
from nsys_triage.metrics.window import WindowRequest
from nsys_triage.trace.sqlite import load_trace

TRACES = Path(__file__).parents[2].parent / "shared" / "traces" / "sqlite"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason=f"no traces in {TRACES.parent.parent.name}/")


def measured(name: str, window: WindowRequest) -> Measurement:
    path = TRACES / f"{name}.sqlite"
    found = measure(load_trace(path, file=path.name, kind="sqlite", capture_version=None), window)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "source", "count", "p50_ms"),
    [
        # 59 batches of one epoch, the wait for the next one in each
        ("mnist_ladder_0_baseline_nvtx", "nvtx", 59, 153),
        ("mnist_ladder_2_pinned", "nvtx", 59, 107),
        ("lm_training_rtx3070", "nvtx", 5, 223),
        # without ranges: 59 batches of training and 9 or 10 of the test, which launches a part of the same kernels
        ("mnist_ladder_0_baseline", "periodicity", 68, 120),
        ("lm_training_h100", "periodicity", 13, 31.3),
        # layers of a transformer, since the capture is 0.3 s of one pass
        ("torchrun_2gpu_before", "periodicity", 16, 16.8),
        # ten graphs, all launched within 6 ms: what a step takes is the GPU's time
        ("lm_2_7b_compiled_graphs", "periodicity", 10, 781),
        # one kernel over and over
        ("jacobi_gh200", "none", 0, None),
    ],
)
def test_steps_as_a_person_would_count_them(name: str, source: str, count: int, p50_ms: float | None) -> None:
    found = measured(name, WindowRequest("all")).step_block
    assert (found.source, found.count) == (source, count)
    if p50_ms is None:
        assert found.p50_ns is None
    else:
        assert found.p50_ns == pytest.approx(p50_ms * 1e6, rel=0.02)


@pytest.mark.parametrize(
    ("name", "start_s", "warmup"),
    [
        ("lm_training_rtx3070", 3.795, 1),
        ("lm_training_h100", 3.193, 1),
        ("mnist_ladder_0_baseline_nvtx", 2.844, 0),
        ("lm_2_7b_compiled_graphs", 0.0339, 0),
    ],
)
def test_where_the_steady_state_begins(name: str, start_s: float, warmup: int) -> None:
    m = measured(name, WindowRequest("auto"))
    assert m.window.start_ns == pytest.approx(start_s * 1e9, abs=1e6)
    assert m.step_block.warmup_count == warmup
