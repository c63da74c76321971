"""Many small collectives: short, small where sizes are known, and exposed."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import ALL_REDUCE, TraceBuilder
from tests.rules.support import outcome

RULE = "small-collectives"


def trace(count: int = 10, each_us: float = 10.0, *, bytes_: int | None = None) -> TraceBuilder:
    """1 ms without idle time: `count` all-reduces that run alone, each behind a kernel."""
    builder = TraceBuilder()
    period = 1000 / count
    for index in range(count):
        begin = index * period
        at = begin + period - each_us
        builder.kernel(begin, at)
        # the call is made in a range of NCCL that tells the size
        builder.kernel(at, begin + period, ALL_REDUCE, stream=20, call=(at - 10, at - 5))
        if bytes_ is not None:
            payload = {"NCCL communicator ID": 13429301450432826988, "Message size [bytes]": bytes_}
            builder.range("ncclAllReduce", at - 12, at - 3, domain="NCCL", json_payload=payload)
    return builder


def test_fires_by_length_where_no_sizes_are_recorded(tmp_path: Path) -> None:
    found = outcome(RULE, trace(), tmp_path, count=10)
    assert isinstance(found, Found)
    assert found.title == "10 small collectives cost 10 % of the time"
    # each costs at least as much as the shortest: here all are alike
    assert (found.stake.low_ns, found.stake.high_ns) == (100_000, 100_000)
    assert found.confidence == "medium"
    assert any("--include-json=true" in action for action in found.actions)


def test_sizes_from_payloads_make_it_certain(tmp_path: Path) -> None:
    found = outcome(RULE, trace(bytes_=4096), tmp_path, count=10)
    assert isinstance(found, Found)
    assert found.confidence == "high"
    assert {e.label: e.value for e in found.evidence}["their size (median)"] == 4096


def test_the_low_end_is_the_shortest_of_them_each_time(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 500).kernel(500, 560, ALL_REDUCE, stream=20).kernel(560, 800)
    builder.kernel(800, 820, ALL_REDUCE, stream=20).kernel(820, 1000)
    found = outcome(RULE, builder, tmp_path, count=2)
    assert isinstance(found, Found)
    # 60 + 20 us are exposed; 2 x 20 us are what two of them cost at least
    assert (found.stake.low_ns, found.stake.high_ns) == (40_000, 80_000)


def test_what_is_hidden_is_not_in_the_low_end(tmp_path: Path) -> None:
    # two of 60 us; of the second 50 us lie beside a kernel
    builder = TraceBuilder().kernel(0, 500).kernel(500, 560, ALL_REDUCE, stream=20).kernel(560, 850)
    builder.kernel(800, 860, ALL_REDUCE, stream=20).kernel(860, 1000)
    found = outcome(RULE, builder, tmp_path, count=2)
    assert isinstance(found, Found)
    assert (found.stake.low_ns, found.stake.high_ns) == (70_000, 70_000)


@pytest.mark.parametrize(("each_us", "fires"), [(4.999, False), (5, True)])
def test_threshold_of_time(tmp_path: Path, each_us: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(each_us=each_us), tmp_path, count=10), Found if fires else Passed)


@pytest.mark.parametrize(("count", "fires"), [(11, False), (10, True)])
def test_threshold_of_number(tmp_path: Path, count: int, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(), tmp_path, count=count), Found if fires else Passed)


def test_look_alike_short_but_large(tmp_path: Path) -> None:
    # 1 MiB in 10 us over NVLink is no small collective
    assert isinstance(outcome(RULE, trace(bytes_=1 << 20), tmp_path, count=10), Passed)
    assert isinstance(outcome(RULE, trace(bytes_=(1 << 20) - 1), tmp_path, count=10), Found)


def test_look_alike_long_waits(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, trace(2, 100.0), tmp_path, count=2), Passed)


def test_look_alike_hidden(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000)
    for index in range(10):
        builder.kernel(100 * index, 100 * index + 50, ALL_REDUCE, stream=20)
    passed = outcome(RULE, builder, tmp_path, count=10)
    assert passed == Passed("10 collectives of less than 100 us cost 0 % of the time.")


def test_does_not_apply_without_communication(tmp_path: Path) -> None:
    assert outcome(RULE, TraceBuilder().kernel(0, 1000), tmp_path) == NotRun(
        "communication kernels: the trace has none"
    )
