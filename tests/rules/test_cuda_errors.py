"""CUDA calls that failed, and answers that are no errors."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed, severity_of
from tests.builders.trace import LAUNCH, TraceBuilder
from tests.rules.support import outcome

RULE = "cuda-errors"


def trace() -> TraceBuilder:
    """1 ms of one kernel and its launch."""
    return TraceBuilder().kernel(0, 1000)


def test_launches_that_failed_have_no_kernel(tmp_path: Path) -> None:
    builder = (
        trace()
        .api(LAUNCH, 100, 110, result=222)
        .api(LAUNCH, 120, 130, result=222)
        .api(LAUNCH, 140, 150, result=222)
    )
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.title == (
        "3 of 4 launches failed and ran no kernel: cudaLaunchKernel returned 222"
        " (PTX made by a newer compiler than the driver knows)"
    )
    # three quarters of the work is missing, so three quarters of the time at most
    assert (found.stake.low_ns, found.stake.high_ns) == (0, 750_000)
    assert severity_of(found.stake.share) == "high"
    assert found.causes == ("launch",)
    values = {e.label: e.value for e in found.evidence}
    assert values["calls that returned an error"] == 3
    assert values["of them launches, which therefore have no kernel"] == 3
    assert values["time in those calls"] == 30_000
    assert "driver" in found.actions[0]


def test_other_calls_cost_their_own_time(tmp_path: Path) -> None:
    found = outcome(RULE, trace().api("cudaMalloc_v3020", 100, 112, result=2), tmp_path)
    assert isinstance(found, Found)
    assert found.title == "1 CUDA call returned an error: cudaMalloc returned 2 (out of memory)"
    assert found.stake.high_ns == 12_000
    assert "smaller batch" in found.actions[0]


def test_a_graph_launch_is_a_launch(tmp_path: Path) -> None:
    found = outcome(RULE, trace().api("cudaGraphLaunch_v10000", 100, 110, result=700), tmp_path)
    assert isinstance(found, Found)
    assert found.title.startswith("1 of 2 launches failed")


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("cudaEventQuery_v3020", 600), ("cuEventQuery", 600), ("cudaDeviceEnablePeerAccess_v4000", 704),
        ("cudaHostRegister_v4000", 712), ("cuPointerGetAttributes", 1), ("cudaPointerGetAttributes_v4000", 1),
        ("cudaGetLastError_v3020", 222), ("cuGetProcAddress_v2", 500), ("cuModuleGetGlobal_v2", 500),
        ("cuCtxGetCurrent", 201),
    ],
)  # fmt: skip
def test_look_alikes_are_answers(tmp_path: Path, name: str, result: int) -> None:
    assert outcome(RULE, trace().api(name, 100, 110, result=result), tmp_path) == Passed(
        "None of 2 CUDA calls returned an error."
    )


@pytest.mark.parametrize("failing", [0, 1])
def test_one_error_is_enough(tmp_path: Path, failing: int) -> None:
    builder = trace().api("cudaFree_v3020", 100, 101, result=failing)
    assert isinstance(outcome(RULE, builder, tmp_path), Found if failing else Passed)


def test_errors_outside_of_the_window_do_not_count(tmp_path: Path) -> None:
    builder = trace().api("cudaFree_v3020", 100, 101, result=1)
    assert isinstance(outcome(RULE, builder, tmp_path, window="0.0005:0.001"), Passed)


def test_not_run_without_calls(tmp_path: Path) -> None:
    builder = trace().without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")
