"""Many small copies: their number and their time have to matter both."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "many-small-copies"


def trace(
    copies: int = 10, each_us: float = 5.0, *, bytes_: int = 1024, kind: str = "host_to_device"
) -> TraceBuilder:
    """1 ms without idle time: `copies` copies that nothing hides, each behind a kernel."""
    builder = TraceBuilder()
    period = 1000 / copies
    for index in range(copies):
        begin = index * period
        builder.kernel(begin, begin + period - each_us)
        builder.copy(begin + period - each_us, begin + period, kind, bytes_=bytes_)
    return builder


def test_fires_with_count_and_time(tmp_path: Path) -> None:
    found = outcome(RULE, trace(each_us=10), tmp_path, count=10)
    assert isinstance(found, Found)
    assert found.title == "10 copies under 64 KiB cost 10 % of the time"
    assert (found.stake.low_ns, found.stake.high_ns) == (50_000, 100_000)
    values = {e.label: e.value for e in found.evidence}
    assert values["their median size"] == 1024
    assert values["time in which they ran and nothing computed"] == 100_000
    assert values["idle time while the host launched them"] == 0


def test_counts_idle_time_while_the_host_launches_them(tmp_path: Path) -> None:
    # four copies of 2 us, one every 25 us; each call begins 20 us before its copy, 3 us after the copy before
    builder = TraceBuilder().kernel(0, 100)
    for index in range(4):
        begin = 123 + 25 * index
        builder.copy(begin, begin + 2, bytes_=256, call=(begin - 20, begin - 15))
    builder.kernel(200, 1000, call=(180, 185))
    found = outcome(RULE, builder, tmp_path, count=4)
    assert isinstance(found, Found)
    values = {e.label: e.value for e in found.evidence}
    # from the begin of each call to its copy; the 3 us before are the host's own work
    assert values["idle time while the host launched them"] == 4 * 20_000
    assert values["time in which they ran and nothing computed"] == 4 * 2_000
    assert found.stake.high_ns == 88_000


@pytest.mark.parametrize(("each_us", "fires"), [(4.999, False), (5, True)])
def test_threshold_of_time(tmp_path: Path, each_us: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(each_us=each_us), tmp_path, count=10), Found if fires else Passed)


@pytest.mark.parametrize(("count", "fires"), [(11, False), (10, True)])
def test_threshold_of_number(tmp_path: Path, count: int, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(), tmp_path, count=count), Found if fires else Passed)


def test_ten_are_not_many_by_default(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, trace(), tmp_path), Passed)


@pytest.mark.parametrize(("bytes_", "fires"), [(65_535, True), (65_536, False)])
def test_look_alike_of_64_kib_is_not_small(tmp_path: Path, bytes_: int, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(bytes_=bytes_), tmp_path, count=10), Found if fires else Passed)


def test_look_alike_tiny_read_backs_are_looked_at_elsewhere(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, trace(bytes_=4, kind="device_to_host"), tmp_path, count=10), Passed)


def test_look_alike_beside_kernels(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000)
    for index in range(10):
        builder.copy(100 * index, 100 * index + 50, bytes_=1024, stream=20)
    passed = outcome(RULE, builder, tmp_path, count=10)
    assert passed == Passed("10 copies under 64 KiB cost 0 % of the time.")


def test_not_run_where_the_export_left_copies_out(tmp_path: Path) -> None:
    builder = trace().without("CUPTI_ACTIVITY_KIND_MEMCPY")
    builder.export_setting("EXPORT_PARAM_TABLES_TO_EXPORT", "CUPTI_ACTIVITY_KIND_KERNEL")
    assert outcome(RULE, builder, tmp_path) == NotRun("memory copies", "--trace=cuda")
