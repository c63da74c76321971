"""Start-up: quiet where the steady state is measured without it, said where the window shows it."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, Passed, severity_of
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "startup-dominates"


def steps(first: float = 9000.0, load: float = 0.0, number: int = 6) -> TraceBuilder:
    """Steps that are busy throughout: the first takes so many us, the others 1000.

    In the first one `load` us are spent in loading a module, and the GPU is idle meanwhile.
    """
    builder = TraceBuilder()
    start = 0.0
    for index in range(number):
        length = first if index == 0 else 1000.0
        builder.range(f"step {index}", start - 20, start + length - 21)
        if index == 0 and load:
            builder.kernel(start, 100).api("cuModuleLoadData", 110, 100 + load)
            builder.kernel(100 + load + 10, start + length)
        else:
            builder.kernel(start, start + length)
        start += length
    return builder


def test_a_capture_that_is_mostly_start_up_is_quiet_in_the_steady_state(tmp_path: Path) -> None:
    found = outcome(RULE, steps(), tmp_path, "auto")
    assert isinstance(found, Found)
    # work from 0 to 14 ms; the first settled step begins at 8.98 ms
    assert found.title == "64 % of the capture is start-up (9 ms)"
    assert (found.stake.low_ns, found.stake.high_ns, found.stake.share) == (0, 0, 0.0)
    assert severity_of(found.stake.share) == "low"
    assert found.causes == ()
    values = {e.label: e.value for e in found.evidence}
    assert values["start-up"] == 8_980_000
    assert values["of the capture"] == pytest.approx(8.98 / 14, abs=1e-6)
    assert values["steady state"] == 5_020_000
    assert found.actions[0].startswith(
        "Let the job run for a minute longer, and record later: nsys profile --delay=1 "
    )
    assert "--capture-range=cudaProfilerApi" in found.actions[1]
    assert found.where is not None
    assert (found.where.start_ns, found.where.end_ns) == (0, 8_980_000)


@pytest.mark.parametrize(("first", "fires"), [(5039, False), (5041, True)])
def test_half_of_the_capture_has_to_be_start_up(tmp_path: Path, first: float, fires: bool) -> None:
    # start-up ends 20 us before the second step: (first - 20) / (first + 5000) is a half at 5040
    assert isinstance(outcome(RULE, steps(first), tmp_path, "auto"), Found if fires else Passed)


def test_passes_with_both_numbers(tmp_path: Path) -> None:
    assert outcome(RULE, steps(2000), tmp_path, "auto") == Passed(
        "28 % of the capture is start-up; loading that happens once takes 0 % of the window."
    )


def test_loading_in_the_window_has_its_time_at_stake(tmp_path: Path) -> None:
    found = outcome(RULE, steps(9000, load=3000), tmp_path, "all")
    assert isinstance(found, Found)
    # the call lasts from 110 to 3100 us, and the 10 us of its gap before it belong to it: 3000 of 14 000
    assert (
        found.title == "Start-up is in the window: loading and compiling kernels once takes 21 % of the time"
    )
    assert (found.stake.low_ns, found.stake.high_ns) == (0, 3_000_000)
    assert found.causes == ("module_load",)
    values = {e.label: e.value for e in found.evidence}
    assert values["idle while kernels are loaded or compiled once"] == 3_000_000
    assert values["module and library loading calls"] == 1
    assert found.where is not None
    assert (found.where.start_ns, found.where.end_ns) == (100_000, 3_110_000)


@pytest.mark.parametrize(("load", "fires"), [(349.999, False), (350.0, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, load: float, fires: bool) -> None:
    # 7000 us, of which the start-up is less than half
    assert isinstance(outcome(RULE, steps(2000, load=load), tmp_path, "all"), Found if fires else Passed)


def test_the_default_window_leaves_the_loading_out(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, steps(2000, load=1000), tmp_path, "auto"), Passed)


def test_thresholds_are_the_users_choice(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, steps(), tmp_path, "auto", capture=0.7), Passed)
    assert isinstance(outcome(RULE, steps(2000, load=1000), tmp_path, "all", share=0.2), Passed)


def test_without_recorded_calls_there_is_no_loading_to_see(tmp_path: Path) -> None:
    # nothing is missing for the length of the start-up; the loading shows as unknown and is not claimed
    builder = steps(2000, load=1000).without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert isinstance(outcome(RULE, builder, tmp_path, "all"), Passed)


def test_look_alike_loading_that_keeps_coming(tmp_path: Path) -> None:
    # the same load before each of 20 kernels: another rule's, but for its first tenth
    builder = TraceBuilder().kernels(0, 20, every=1000, length=800)
    for number in range(1, 20):
        builder.api("cuModuleLoadData", 1000 * number - 190, 1000 * number - 20)
    assert isinstance(outcome(RULE, builder, tmp_path, "all"), Passed)


def test_look_alike_a_window_of_the_users(tmp_path: Path) -> None:
    assert isinstance(outcome(RULE, steps(), tmp_path, "0.0095:0.0135"), Passed)


def test_look_alike_no_start_up(tmp_path: Path) -> None:
    assert outcome(RULE, steps(1100), tmp_path, "auto") == Passed(
        "0 % of the capture is start-up; loading that happens once takes 0 % of the window."
    )
