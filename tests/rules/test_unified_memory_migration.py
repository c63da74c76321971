"""Migrations of unified memory: idle time before them and their own exposed time."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "unified-memory-migration"


def trace(idle_us: float = 60.0, moving_us: float = 20.0) -> TraceBuilder:
    """1 ms: a kernel to 400, idle time, then a migration and the kernel that needed it."""
    begin = 400 + idle_us
    return TraceBuilder().kernel(0, 400).migration(begin, begin + moving_us).kernel(begin + moving_us, 1000)


def test_fires_with_idle_and_moving_time(tmp_path: Path) -> None:
    found = outcome(RULE, trace(), tmp_path)
    assert isinstance(found, Found)
    assert found.title == "Unified memory that moves between host and device costs 8.0 % of the time"
    # the migration itself at least
    assert (found.stake.low_ns, found.stake.high_ns) == (20_000, 80_000)
    assert found.causes == ("unified_memory", "copy")
    values = {e.label: e.value for e in found.evidence}
    assert values["migrations"] == 1
    assert values["bytes moved"] == 65_536
    assert values["idle time before migrations"] == 60_000
    assert values["migrations while nothing computed"] == 20_000
    assert values["direction that moved most bytes"] == "host to device"
    assert any("--cuda-um-gpu-page-faults=true" in action for action in found.actions)


@pytest.mark.parametrize(("idle_us", "fires"), [(29.999, False), (30, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, idle_us: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(idle_us, 20), tmp_path), Found if fires else Passed)


def test_look_alike_explicit_copy(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400).copy(460, 480).kernel(480, 1000)
    assert outcome(RULE, builder, tmp_path) == Passed("No migration of unified memory was recorded.")


def test_look_alike_migration_behind_a_kernel(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000).migration(300, 700)
    passed = outcome(RULE, builder, tmp_path)
    assert passed == Passed("1 migration of unified memory (65.5 kB) cost 0 % of the time.")


def test_time_beside_a_copy_of_the_program_is_the_copys(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400).copy(400, 500).migration(400, 500).kernel(500, 1000)
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_not_run_where_the_export_left_copies_out(tmp_path: Path) -> None:
    builder = trace().without("CUPTI_ACTIVITY_KIND_MEMCPY")
    builder.export_setting("EXPORT_PARAM_TABLES_TO_EXPORT", "CUPTI_ACTIVITY_KIND_KERNEL")
    assert outcome(RULE, builder, tmp_path) == NotRun("memory copies", "--trace=cuda")
