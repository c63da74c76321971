"""Copies that hold the host: only the idle time after them counts."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "blocking-copies"
COPY = "cudaMemcpy_v3020"


def trace(begin: float = 390.0, *, bytes_: int = 1 << 19, launch: str = COPY) -> TraceBuilder:
    """A copy from 400 to 450 whose call holds the host from `begin` to 452; the next launch is made at 540.

    The GPU runs dry at 450. Had the call not waited, the host could have run ahead by the wait up to then: from `begin`
    to 450. That much of the gap from 450 to 550 is the wait's cost.
    """
    builder = TraceBuilder().kernel(0, 400)
    builder.copy(400, 450, "device_to_host", bytes_=bytes_, launch=launch, call=(begin, 452))
    return builder.kernel(550, 1000, call=(540, 545))


def test_fires_with_the_idle_time_that_the_waits_cost(tmp_path: Path) -> None:
    builder = trace(launch="cudaMemcpy_ptds_v7000")
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.title == "The GPU idles 6.0 % of the time because copies hold the host"
    assert (found.stake.low_ns, found.stake.high_ns) == (30_000, 60_000)
    values = {e.label: e.value for e in found.evidence}
    assert values["blocking copy and memset calls, tiny read-backs left out"] == 1
    assert values["idle time because the host was held in them"] == 60_000
    assert values["time in those calls"] == 62_000
    assert values["call that is made most"] == "cudaMemcpy"
    assert values["of them with pageable memory"] == 0


def test_counts_the_time_that_the_call_takes_to_start_its_copy(tmp_path: Path) -> None:
    # the GPU is dry from 400 to 500; the blocking call begins at 420 and its copy starts at 500
    builder = TraceBuilder().kernel(0, 400)
    builder.copy(500, 510, "host_to_device", launch=COPY, call=(420, 512)).kernel(510, 1000)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.stake.high_ns == 80_000
    assert found.causes == ("host_sync", "launch")


@pytest.mark.parametrize(("begin", "fires"), [(400.001, False), (400, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, begin: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(begin), tmp_path), Found if fires else Passed)


def test_an_asynchronous_call_that_did_block_counts(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400)
    builder.copy(400, 450, pinned=False, call=(390, 452)).kernel(550, 1000, call=(540, 545))
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert {e.label: e.value for e in found.evidence}["of them with pageable memory"] == 1


def test_look_alike_asynchronous_call_that_did_not_wait(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400).copy(400, 450, pinned=False, call=(390, 395))
    assert isinstance(outcome(RULE, builder.kernel(550, 1000, call=(540, 545)), tmp_path), Passed)


def test_look_alike_thousands_of_waits_while_the_gpu_works(tmp_path: Path) -> None:
    # the host waits all the time, but the next kernel is queued behind every copy
    builder = TraceBuilder().kernel(0, 1000)
    for index in range(100):
        begin = 10 * index
        builder.copy(begin + 2, begin + 4, launch=COPY, call=(begin, begin + 9), stream=20)
    passed = outcome(RULE, builder, tmp_path)
    assert passed == Passed("100 blocking copy and memset calls cost 0 % of the time in idle GPU.")


def test_look_alike_tiny_read_back_is_looked_at_elsewhere(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, trace(bytes_=64), tmp_path), Passed)
    assert isinstance(outcome(RULE, trace(bytes_=65), tmp_path), Found)


def test_look_alike_large_results_are_fetched(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, trace(bytes_=1 << 20), tmp_path), Passed)


def test_not_run_without_calls(tmp_path: Path) -> None:
    builder = trace().without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")
