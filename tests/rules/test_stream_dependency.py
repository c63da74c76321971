"""Work that was queued in good time, and what it waited for."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "stream-dependency"


def switching(gap: float = 130.0) -> TraceBuilder:
    """Two processes that share a GPU take turns: kernels of 400 us, `gap` us apart, all launched long before."""
    builder = TraceBuilder()
    for number in range(8):
        start = (400 + gap) * number
        builder.on(pid=4242 + number % 2).kernel(
            start, start + 400, call=(10 * number - 500, 10 * number - 495)
        )
    return builder


def test_fires_and_says_what_for(tmp_path: Path) -> None:
    found = outcome(RULE, switching(), tmp_path)
    assert isinstance(found, Found)
    # 7 gaps of 130 us in 8 * 400 + 910 = 4110 us
    assert found.title == (
        "The GPU idles 22 % of the time although work is queued, mostly to wait for another process on the GPU"
    )
    assert (found.stake.low_ns, found.stake.high_ns) == (0, 910_000)
    assert (found.causes, found.confidence) == (("queued",), "high")
    assert {e.label: e.value for e in found.evidence} == {
        "idle although work is queued": 910_000,
        "gaps in which it is": 7,
        "waiting for another process on the GPU (7 gaps)": 910_000,
        "most of it": "stream 7 after stream 7",
        "median wait there": 130_000,
    }
    assert found.actions[0].startswith("Run the processes that share this GPU under MPS")
    assert found.where is not None
    assert (found.where.start_ns, found.where.end_ns) == (400_000, 530_000)


def test_the_largest_kind_leads(tmp_path: Path) -> None:
    # 60 us after another GPU, and twice 20 us between two streams of its own
    builder = TraceBuilder(gpus=("H100", "H100")).kernel(0, 300).kernel(360, 500, call=(-50, -45))
    builder.kernel(520, 700, call=(-40, -35), stream=9).kernel(720, 1000, call=(-30, -25))
    builder.kernel(0, 355, device=1).kernel(355, 1000, device=1)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.title.endswith("mostly to wait for another GPU")
    values = {e.label: e.value for e in found.evidence}
    # stakes are the mean of the two GPUs
    assert values["idle although work is queued"] == 50_000
    assert values["waiting for another GPU (1 gap)"] == 30_000
    assert values["waiting for another stream (2 gaps)"] == 20_000
    assert str(values["most of it"]).startswith("stream 7 of ")
    assert found.actions[0].startswith("See what the other GPU does until then")


def test_the_pause_between_operations_of_one_stream(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(50):
        builder.kernel(11 * number, 11 * number + 10, call=(number - 100, number - 99.5))
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.title.endswith("mostly to wait for the operation before it on the same stream to make way")
    assert {e.label: e.value for e in found.evidence}["median wait there"] == 1_000
    assert found.confidence == "medium"


@pytest.mark.parametrize(("gap", "fires"), [(49.999, False), (50.0, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, gap: float, fires: bool) -> None:
    builder = TraceBuilder().kernel(0, 500).kernel(500 + gap, 1000, call=(100, 105), stream=20)
    assert isinstance(outcome(RULE, builder, tmp_path), Found if fires else Passed)


def test_a_higher_threshold_is_the_users_choice(tmp_path: Path) -> None:
    assert outcome(RULE, switching(), tmp_path, share=0.3) == Passed(
        "The GPU idles 22 % of the time although work is queued."
    )


def test_not_recorded(tmp_path: Path) -> None:
    builder = switching().without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")


def test_look_alike_a_launch_just_before_the_gap(tmp_path: Path) -> None:
    # the call ends 5 us before the GPU runs dry: with the usual latency of 10 us the host was late
    builder = TraceBuilder().kernel(0, 500).kernel(600, 1000, call=(490, 495), stream=20)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_look_alike_the_usual_pause_of_a_busy_gpu(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(20):
        builder.kernel(100 * number, 100 * number + 98.5, call=(number - 100, number - 99.5))
    assert outcome(RULE, builder, tmp_path) == Passed(
        "The GPU idles 1.4 % of the time although work is queued."
    )
