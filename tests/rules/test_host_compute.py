"""The launching thread is on the CPU, outside of all calls, and the GPU has nothing to do."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import PID, TraceBuilder
from tests.rules.support import outcome

RULE = "host-compute"


def loop(steps: int = 11, work: float = 200.0) -> TraceBuilder:
    """Kernels of 800 us; after each the host works for `work` us and launches the next one, 10 us before it starts."""
    return TraceBuilder().kernels(0, steps, every=810 + work, length=800)


def test_fires_with_the_idle_time_and_where(tmp_path: Path) -> None:
    found = outcome(RULE, loop(), tmp_path)
    assert isinstance(found, Found)
    # 10 stretches of 200 us in 11 * 800 + 10 * 210 = 10 900 us; all but the longest gap
    assert found.title == "The GPU waits 18 % of its time while the launching thread is busy elsewhere"
    assert (found.stake.low_ns, found.stake.high_ns) == (1_800_000, 2_000_000)
    assert found.causes == ("host_compute",)
    # without OS calls in the recording the thread may have waited there
    assert found.confidence == "medium"
    assert {e.label: e.value for e in found.evidence} == {
        "idle while the launching thread computes": 2_000_000,
        "gaps in which it does": 10,
        "median of it in one gap": 200_000,
        "longest of it in one gap": 200_000,
    }
    assert "--sample=process-tree" in found.actions[0]
    assert found.where is not None
    assert (found.where.start_ns, found.where.end_ns) == (800_000, 1_010_000)


@pytest.mark.parametrize(("work", "fires"), [(49.999, False), (50.0, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, work: float, fires: bool) -> None:
    # 1000 us with one gap: the host part is the work, the launch part 10 us
    builder = TraceBuilder().kernel(0, 500).kernel(510 + work, 1000)
    assert isinstance(outcome(RULE, builder, tmp_path), Found if fires else Passed)


def test_a_higher_threshold_is_the_users_choice(tmp_path: Path) -> None:
    assert outcome(RULE, loop(), tmp_path, share=0.2) == Passed(
        "The GPU waits 18 % of the time while the launching thread computes."
    )


def test_hot_functions_come_first_where_there_are_samples(tmp_path: Path) -> None:
    builder = loop()
    for number in range(6):
        builder.sample(850 + 1010 * number, ["json_dump"])
    builder.sample(900, ["collect"]).sample(400, ["while_the_gpu_works"]).sample(
        860, ["other_thread"], tid=99
    )
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    values = {e.label: e.value for e in found.evidence}
    assert values["CPU samples in json_dump"] == 6
    assert values["CPU samples in collect"] == 1
    assert len(values) == 6
    assert found.actions[0] == "Start with json_dump, collect: CPU samples found the launching thread there."
    assert found.confidence == "high"


def test_the_range_of_the_longest_gap_is_named(tmp_path: Path) -> None:
    found = outcome(RULE, loop().range("postprocess", 790, 1000), tmp_path)
    assert isinstance(found, Found)
    assert {e.label: e.value for e in found.evidence}["NVTX range around the longest"] == "postprocess"


def test_recorded_os_calls_show_that_it_was_in_none(tmp_path: Path) -> None:
    found = outcome(RULE, loop().os_call("read", -100, -50), tmp_path)
    assert isinstance(found, Found)
    assert found.confidence == "high"


def test_a_thread_that_is_on_no_core_does_not_compute(tmp_path: Path) -> None:
    builder = loop()
    for number in range(11):
        builder.scheduled(1010 * number - 20, 1010 * number + 820)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    # in each step it leaves its core 20 us after the gap has begun, and is back 10 us before the launch: 170 of 200 us
    assert {e.label: e.value for e in found.evidence}["of it, the thread was on no CPU core"] == 10 * 170_000
    assert found.confidence == "low"


def test_once_is_said(tmp_path: Path) -> None:
    # a single stretch of 2 ms; all but the longest gap is nothing
    found = outcome(RULE, TraceBuilder().kernel(0, 4000).kernel(6010, 10_000), tmp_path)
    assert isinstance(found, Found)
    assert found.title.endswith("busy elsewhere, most of it once")
    assert found.stake.low_ns == 0


def test_short_stretches_are_an_interpreter(tmp_path: Path) -> None:
    found = outcome(RULE, loop(25).range("aten::mm", 0, 5), tmp_path)
    assert isinstance(found, Found)
    assert "torch.compile" in found.actions[1]


def test_not_recorded(tmp_path: Path) -> None:
    builder = loop().without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")


def test_look_alike_short_dispatch_before_each_launch(tmp_path: Path) -> None:
    # 60 us from call to call: the framework's dispatch, paid per launch
    builder = TraceBuilder().kernels(0, 20, every=65, length=20)
    assert outcome(RULE, builder, tmp_path) == Passed(
        "The GPU waits 0 % of the time while the launching thread computes."
    )


def test_look_alike_the_thread_is_in_an_os_call(tmp_path: Path) -> None:
    builder = loop(3)
    for number in range(2):
        builder.os_call("write", 805 + 1010 * number, 995 + 1010 * number)
    # 5 us before the call; the 5 us after it are the way to the launch: 10 of 2820 us
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_look_alike_another_thread_computes(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000).kernel(1000, 2000)
    builder.sample(500, ["busy"], tid=99)
    assert PID != 99
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)
