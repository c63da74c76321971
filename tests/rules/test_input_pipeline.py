"""Waiting for input: before input copies, in loader ranges, in the OS."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import PID, TraceBuilder
from tests.rules.support import outcome

RULE = "input-pipeline"
MIB = 1 << 20


def loop(
    wait: float = 480.0, *, call: str | None = "poll", named: str | None = None, bytes_: int = MIB
) -> TraceBuilder:
    """Steps of 1000 us + `wait`: a copy of 20 us, 980 us of kernel, then the host waits for the next batch.

    The wait is an OS call, an NVTX range or nothing that was recorded; 10 us after it the next copy is launched, which
    starts 10 us later. The copy's own launch is 10 us of each gap, 10 us more are the host's.
    """
    builder = TraceBuilder()
    for number in range(6):
        start = (1020 + wait) * number
        builder.copy(start, start + 20, bytes_=bytes_, call=(start - 10, start - 5))
        builder.kernel(start + 20, start + 1000, call=(start, start + 5))
        if number < 5 and call:
            builder.os_call(call, start + 1000, start + 1000 + wait)
        if number < 5 and named:
            builder.range(named, start + 1000, start + 1000 + wait)
    return builder


def test_fires_with_what_the_host_waits_in(tmp_path: Path) -> None:
    found = outcome(RULE, loop(named="DataLoader"), tmp_path)
    assert isinstance(found, Found)
    # 5 waits of 480 us, and 10 us on the CPU up to the copy's launch, in 6 * 1000 + 5 * 500 = 8500 us
    assert found.title == "The GPU waits for input 29 % of the time"
    assert (found.stake.low_ns, found.stake.high_ns) == (4 * 490_000, 5 * 490_000)
    assert (found.causes, found.confidence) == (("input_pipeline",), "high")
    assert {e.label: e.value for e in found.evidence} == {
        "idle while input is loaded": 2_450_000,
        "gaps in which the GPU waits for input": 5,
        "longest wait for input": 490_000,
        "of it in the NVTX range DataLoader (5 ranges)": 2_400_000,
        "of it in poll (5 calls)": 2_400_000,
        "input copies": 5,
        "size of an input copy (median)": MIB,
        "time in these copies while nothing computes": 100_000,
    }
    assert found.where is not None
    assert (found.where.start_ns, found.where.end_ns) == (1_000_000, 1_500_000)


@pytest.mark.parametrize(("wait", "fires"), [(149.9, False), (150.0, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, wait: float, fires: bool) -> None:
    # three waits, each in a range that says so, in 9000 us
    builder = TraceBuilder().kernel(0, 9000 - 3 * (wait + 10) - 3000)
    start = 6000 - 3 * (wait + 10)
    for _ in range(3):
        builder.range("fetch", start, start + wait).kernel(start + wait + 10, start + wait + 1010)
        start += wait + 1010
    assert isinstance(outcome(RULE, builder, tmp_path), Found if fires else Passed)


def test_a_higher_threshold_is_the_users_choice(tmp_path: Path) -> None:
    assert outcome(RULE, loop(), tmp_path, share=0.3) == Passed("The GPU waits for input 29 % of the time.")


def test_a_host_that_prepares_the_batch_itself_is_less_certain(tmp_path: Path) -> None:
    found = outcome(RULE, loop(call=None), tmp_path)
    assert isinstance(found, Found)
    assert found.confidence == "medium"
    assert found.actions[-1].endswith(
        "nsys profile --trace=cuda,nvtx,osrt --output=job --cpuctxsw=process-tree <your command>"
    )


def test_a_job_that_is_bound_to_few_cores_needs_more_of_them_first(tmp_path: Path) -> None:
    builder = loop()
    for number, tid in enumerate((PID, 60, 61, 62)):
        builder.scheduled(1000 * number, 1000 * number + 500, cpu=number % 2, tid=tid)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert {e.label: e.value for e in found.evidence}["CPU cores that its threads ran on"] == 2
    assert "its recorded threads ran on 2 only" in found.actions[0]


def test_as_many_cores_as_threads_are_nothing_to_say(tmp_path: Path) -> None:
    builder = loop().scheduled(0, 500, cpu=0).scheduled(0, 500, cpu=1, tid=60)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert not any("cores" in e.label for e in found.evidence)


def test_wording_for_jax(tmp_path: Path) -> None:
    found = outcome(RULE, loop().range("XlaModule:#hlo_module=jit_step#", 0, 10), tmp_path)
    assert isinstance(found, Found)
    assert "tf.data" in found.actions[0]


def test_not_recorded(tmp_path: Path) -> None:
    builder = loop().without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")


def test_look_alike_weights_are_uploaded_once(tmp_path: Path) -> None:
    # the same wait before a single large copy
    builder = TraceBuilder().kernel(0, 1000).os_call("read", 1010, 1900)
    builder.copy(2000, 3000, bytes_=64 * MIB).kernel(3000, 4000)
    assert outcome(RULE, builder, tmp_path) == Passed("The GPU waits for input 0 % of the time.")


def test_look_alike_small_parameters_in_each_step(tmp_path: Path) -> None:
    # copies under 64 KiB are no batches
    assert isinstance(outcome(RULE, loop(bytes_=65_535), tmp_path), Passed)


def test_look_alike_a_decoder_in_the_model(tmp_path: Path) -> None:
    # a range that says decode, in which kernels are launched: a forward pass
    builder = TraceBuilder()
    for number in range(8):
        start = 1000 * number
        builder.range("decode", start - 100, start + 800)
        builder.kernel(start, start + 100).kernel(start + 300, start + 400).kernel(start + 600, start + 700)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_look_alike_the_loader_waits_while_the_gpu_works(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(6):
        start = 1000 * number
        builder.copy(start, start + 20, call=(start - 30, start - 25), stream=20)
        builder.kernel(start, start + 1000, call=(start - 40, start - 35)).range(
            "DataLoader", start, start + 900
        )
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)
