"""Collectives on streams that also compute."""

from pathlib import Path

from nsys_triage.metrics.shared_streams import exposed_collective_ns, exposed_each, on_compute_streams
from tests.builders.trace import ALL_REDUCE, TraceBuilder
from tests.rules.support import measured


def test_a_stream_is_process_gpu_context_and_stream(tmp_path: Path) -> None:
    builder = TraceBuilder(gpus=("H100", "H100")).kernel(0, 100)
    builder.kernel(100, 150, ALL_REDUCE)  # the kernels' stream
    builder.kernel(150, 200, ALL_REDUCE, context=2)  # the same number in another context
    builder.kernel(200, 250, ALL_REDUCE, stream=20)
    builder.kernel(0, 100, device=1, context=3, stream=9).kernel(100, 150, ALL_REDUCE, device=1, context=3)
    m = measured(builder, tmp_path)
    found = on_compute_streams(m.trace, m.workload.work)
    assert found.select("gpu", "start_ns").rows() == [(0, 100_000)]
    assert found.columns == m.workload.work.columns


def test_exposed_part(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(100, 200, ALL_REDUCE).kernel(150, 300, stream=8)
    builder.kernel(300, 340, ALL_REDUCE)
    m = measured(builder, tmp_path)
    found = on_compute_streams(m.trace, m.workload.work)
    assert exposed_collective_ns(m.pieces, found) == 90_000
    assert exposed_each(m.pieces, found).to_list() == [50_000, 40_000]


def test_without_compute_or_collectives(tmp_path: Path) -> None:
    for builder in (TraceBuilder().kernel(0, 100), TraceBuilder().kernel(0, 100, ALL_REDUCE)):
        m = measured(builder, tmp_path)
        assert on_compute_streams(m.trace, m.workload.work).is_empty()
        assert exposed_collective_ns(m.pieces, on_compute_streams(m.trace, m.workload.work)) == 0
