"""CUDA calls that returned an error."""

from pathlib import Path

from nsys_triage.metrics.api_errors import ERRORS, api_errors, error_name
from tests.builders.trace import LAUNCH, TraceBuilder
from tests.rules.support import measured


def test_by_call_and_code_most_calls_first(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000)
    builder.api("cudaMalloc_v3020", 10, 13, result=2).api("cudaMalloc_v3020", 20, 24, result=2)
    builder.api("cudaFree_v3020", 30, 31, result=1).api(LAUNCH, 40, 45, result=700)
    builder.api("cudaFree_v3020", 50, 51, result=700).api("cudaEventQuery_v3020", 60, 61, result=600)
    m = measured(builder, tmp_path)
    found = api_errors(m.workload, m.window)
    assert found.schema == ERRORS
    assert found.rows() == [
        ("cudaMalloc", 2, 2, 7_000, False),
        ("cudaFree", 1, 1, 1_000, False),
        ("cudaFree", 700, 1, 1_000, False),
        ("cudaLaunchKernel", 700, 1, 5_000, True),
    ]


def test_versions_of_a_call_are_one(tmp_path: Path) -> None:
    builder = (
        TraceBuilder()
        .kernel(0, 100)
        .api("cudaFree_v3020", 10, 11, result=1)
        .api("cudaFree_ptsz_v7000", 20, 21, result=1)
    )
    m = measured(builder, tmp_path)
    assert api_errors(m.workload, m.window).select("api", "calls").rows() == [("cudaFree", 2)]


def test_none(tmp_path: Path) -> None:
    m = measured(TraceBuilder().kernel(0, 100), tmp_path)
    found = api_errors(m.workload, m.window)
    assert found.is_empty()
    assert found.schema == ERRORS


def test_names() -> None:
    assert error_name(700) == "700 (illegal address)"
    assert error_name(12_345) == "12345"
