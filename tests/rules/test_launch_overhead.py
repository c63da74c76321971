"""Late launches: what they cost, by call; not back-pressure, not other work of the host."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "launch-overhead"


def loop(count: int = 21, gap: float = 10.0) -> TraceBuilder:
    """Kernels of 40 us; each is launched by a call of 6 us that begins `gap` us before it, as the one before ends."""
    builder = TraceBuilder().kernel(0, 40)
    for number in range(1, count):
        start = number * (40 + gap)
        builder.kernel(start, start + 40, call=(start - gap, start - gap + 6))
    return builder


def test_fires_with_the_time_before_late_launches(tmp_path: Path) -> None:
    found = outcome(RULE, loop(), tmp_path)
    assert isinstance(found, Found)
    # 20 gaps of 10 us in 21 * 40 + 20 * 10 = 1040 us
    assert found.title == "The host launches too slowly: the GPU waits 19 % of its time for the next launch"
    assert found.stake.high_ns == 200_000
    # beyond 1.5 us for each switch (nothing is queued here, so that it is not measured): 20 * 8.5 us; all but the
    # longest gap would be 190 us
    assert found.stake.low_ns == 170_000
    assert found.stake.share == pytest.approx(185 / 1040, abs=1e-6)
    assert (found.causes, found.confidence, found.gpu) == (("launch",), "high", None)
    assert {e.label: e.value for e in found.evidence} == {
        "idle because the next launch came late": 200_000,
        "gaps in which it did": 20,
        "of it, kernel launch calls": 120_000,
        "of it, start of the work": 80_000,
        "kernel and graph launches": 21,
        "kernels under 10 us": 0.0,
        "median kernel": 40_000,
    }
    assert found.where is not None
    assert (found.where.start_ns, found.where.end_ns) == (40_000, 50_000)


@pytest.mark.parametrize(("gap", "fires"), [(49.999, False), (50.0, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, gap: float, fires: bool) -> None:
    # one gap in 1000 us, all of it within the launch call
    builder = TraceBuilder().kernel(0, 500).kernel(500 + gap, 1000, call=(495, 500 + gap))
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found if fires else Passed)
    if isinstance(found, Found):
        # one gap may be chance: nothing is certain
        assert (found.stake.low_ns, found.stake.high_ns, found.confidence) == (0, 50_000, "low")


def test_a_higher_threshold_is_the_users_choice(tmp_path: Path) -> None:
    passed = outcome(RULE, loop(), tmp_path, share=0.2)
    assert passed == Passed("The GPU waits for late launches 19 % of the time.")


def test_copy_calls_are_named_first_where_they_take_the_time(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400)
    # a copy call of 150 us, then the launch: 150 of 158 us of idle time under this cause, in 910
    builder.copy(900, 910, call=(402, 552)).kernel(560, 900, call=(552, 558))
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert (
        found.title
        == "The GPU waits 17 % of its time for late launches, mostly with the host in cudaMemcpyAsync"
    )
    assert found.actions[0].startswith("Take cudaMemcpyAsync out of the loop first")
    assert any("CUDA graph" in action for action in found.actions)


def test_other_calls_are_named(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400).api("cudaFuncGetAttributes_v3020", 402, 450)
    builder.kernel(500, 900, call=(450, 490))
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.actions[0].startswith("Call cudaFuncGetAttributes before the loop")


def test_wording_for_pytorch(tmp_path: Path) -> None:
    found = outcome(RULE, loop().range("aten::add", 0, 10), tmp_path)
    assert isinstance(found, Found)
    assert "torch.compile" in found.actions[0]


def test_nothing_is_late(tmp_path: Path) -> None:
    assert outcome(RULE, TraceBuilder().kernel(0, 100).kernel(100, 200), tmp_path) == Passed(
        "The GPU waits for late launches 0 % of the time."
    )
    assert isinstance(outcome(RULE, TraceBuilder().kernel(0, 100), tmp_path, share=0.0), Passed)


def test_not_recorded(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(200, 300)
    builder.without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")


def test_not_run_without_kernels(tmp_path: Path) -> None:
    assert outcome(RULE, TraceBuilder().copy(0, 100).copy(200, 300), tmp_path) == NotRun(
        "kernels", "--trace=cuda"
    )


def test_look_alike_back_pressure(tmp_path: Path) -> None:
    # launch calls that are slow because the queue is full, with the GPU busy all the time
    builder = TraceBuilder()
    for number in range(30):
        builder.kernel(100 * number, 100 * number + 100, call=(100 * number - 500, 100 * number - 405))
    passed = outcome(RULE, builder, tmp_path)
    assert passed == Passed("The GPU waits for late launches 0 % of the time.")


def test_look_alike_the_host_computes_before_each_launch(tmp_path: Path) -> None:
    # 300 us of host work before each launch; 10 us for the launch are 2.5 % of each 400
    builder = TraceBuilder().kernels(0, 10, every=410, length=100)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)
