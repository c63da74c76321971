"""Switches for debugging in the captured environment."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "debug-environment"


def trace(**environment: str) -> TraceBuilder:
    """1 ms: kernels, and a gap from 400 to 500 that a wait of 60 us opened."""
    builder = TraceBuilder().environment({"LANG": "C.UTF-8", **environment}).kernel(0, 400)
    return builder.wait("cudaDeviceSynchronize_v3020", 340, 402).kernel(500, 1000, call=(490, 495))


def test_fires_with_all_that_it_could_lengthen(tmp_path: Path) -> None:
    found = outcome(RULE, trace(CUDA_LAUNCH_BLOCKING="1"), tmp_path)
    assert isinstance(found, Found)
    assert found.title == "Recorded with CUDA_LAUNCH_BLOCKING=1: every launch waits until its kernel is done"
    # the gap of 100 us: 60 of the wait, the rest launching
    assert (found.stake.low_ns, found.stake.high_ns) == (0, 100_000)
    assert found.causes == ("launch", "host_sync", "host_compute")
    assert (
        found.actions[0]
        == "Unset CUDA_LAUNCH_BLOCKING and record again: a measurement is worth little with it."
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_DEBUG", "INFO"), ("NCCL_DEBUG", "TRACE"), ("NCCL_DEBUG", "info"), ("NCCL_P2P_DISABLE", "1"),
        ("TORCH_DISTRIBUTED_DEBUG", "DETAIL"), ("PYTORCH_NO_CUDA_MEMORY_CACHING", "1"), ("NVIDIA_TF32_OVERRIDE", "0"),
        ("PYTHONTRACEMALLOC", "1"),
    ],
)  # fmt: skip
def test_each_switch_fires(tmp_path: Path, name: str, value: str) -> None:
    found = outcome(RULE, trace(**{name: value}), tmp_path)
    assert isinstance(found, Found)
    assert f"{name}={value}" in found.title


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUDA_LAUNCH_BLOCKING", "0"), ("NCCL_DEBUG", "WARN"), ("NCCL_DEBUG", "VERSION"), ("OMP_NUM_THREADS", "1"),
        ("CUDA_DEVICE_MAX_CONNECTIONS", "1"), ("TORCH_DISTRIBUTED_DEBUG", "OFF"), ("NVIDIA_TF32_OVERRIDE", "1"),
        ("MY_CUDA_LAUNCH_BLOCKING", "1"), ("CUDA_MODULE_LOADING", "LAZY"),
    ],
)  # fmt: skip
def test_look_alikes_pass(tmp_path: Path, name: str, value: str) -> None:
    assert isinstance(outcome(RULE, trace(**{name: value}), tmp_path), Passed)


def test_several_switches_are_one_finding(tmp_path: Path) -> None:
    found = outcome(RULE, trace(CUDA_LAUNCH_BLOCKING="1", NCCL_DEBUG="INFO", NCCL_IB_DISABLE="1"), tmp_path)
    assert isinstance(found, Found)
    assert found.title.startswith("Recorded with CUDA_LAUNCH_BLOCKING=1 and 2 more switches")
    assert found.actions[0].startswith(
        "Unset CUDA_LAUNCH_BLOCKING, NCCL_DEBUG, NCCL_IB_DISABLE and record again"
    )


def test_of_a_checking_tool_only_the_name_is_shown(tmp_path: Path) -> None:
    found = outcome(RULE, trace(NV_COMPUTE_SANITIZER_LOG_FILE="private/place/log.txt"), tmp_path)
    assert isinstance(found, Found)
    assert found.title == "Recorded with NV_COMPUTE_SANITIZER_LOG_FILE: a checking tool is loaded"
    assert "private" not in repr(found)


def test_not_run_where_the_file_holds_no_environment(tmp_path: Path) -> None:
    assert outcome(RULE, TraceBuilder().kernel(0, 1000), tmp_path) == NotRun(
        "the environment of the process: the file does not hold it"
    )
