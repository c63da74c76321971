"""Loading and compiling that keeps coming, not that of the start."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "recompilation"


def job(*loads: tuple[int, float]) -> TraceBuilder:
    """Ten kernels of 900 us, 1000 us apart; before kernel n a module is loaded for so many us (at most 80)."""
    builder = TraceBuilder().kernels(0, 10, every=1000, length=900)
    for number, length in loads:
        builder.api("cuModuleLoadData", 1000 * number - 100, 1000 * number - 100 + length)
    return builder


def every(length: float = 80.0, first: int = 1) -> TraceBuilder:
    """Loading before every kernel from `first` on."""
    return job(*((number, length) for number in range(first, 10)))


def test_fires_with_what_repeats(tmp_path: Path) -> None:
    found = outcome(RULE, every(), tmp_path)
    assert isinstance(found, Found)
    # 9 loads of 80 us in 9900 us, one per tenth of the ten operations but the first: without two of them 560
    assert found.title == "Kernels are loaded or compiled again and again: 7.3 % of the time"
    assert (found.stake.low_ns, found.stake.high_ns) == (560_000, 720_000)
    assert (found.causes, found.confidence) == (("module_load",), "high")
    assert {e.label: e.value for e in found.evidence} == {
        "idle while kernels are loaded or compiled": 720_000,
        "of it, beyond the start and one later phase": 560_000,
        "tenths of the device operations with loading": 9,
        "kernels that first appear in the later half": 0,
        "module and library loading calls": 9,
        "loading and compilation reported by CUDA": 0,
        "first launches of a kernel that take 1 ms or more": 0,
    }


@pytest.mark.parametrize(("length", "fires"), [(70.713, False), (70.715, True)])
def test_threshold_is_five_percent_of_the_span_beyond_the_start(
    tmp_path: Path, length: float, fires: bool
) -> None:
    # seven of nine loads count: 495 us of 9900 are 7 times 70.714
    assert isinstance(outcome(RULE, every(length), tmp_path), Found if fires else Passed)


def test_a_higher_threshold_is_the_users_choice(tmp_path: Path) -> None:
    assert outcome(RULE, every(), tmp_path, share=0.06) == Passed(
        "Loading and compiling of kernels takes 7.3 % of the time, 5.7 % beyond the start and one later phase."
    )


def test_the_first_tenth_of_the_whole_capture_is_left_to_start_up(tmp_path: Path) -> None:
    # a long load after the first of ten operations but before the second lies in the second tenth; one after 1 of 20
    # lies in the first
    builder = TraceBuilder().kernel(0, 50).api("cuModuleLoadData", 100, 1050).kernel(1060, 1900)
    for number in range(2, 20):
        builder.kernel(1000 * number, 1000 * number + 800)
        if number % 2:
            builder.api("cuModuleLoadData", 1000 * number - 190, 1000 * number - 20)
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    # 9 loads of 170 us, with the 10 us of their gap before them, and the long one of 950 with 50 before it
    assert found.stake.high_ns == 9 * 180_000
    assert found.stake.basis.startswith("high: all loading in the window is gone but for its first tenth;")
    assert {e.label: e.value for e in found.evidence}[
        "idle while kernels are loaded or compiled"
    ] == 2_620_000


def test_not_recorded(tmp_path: Path) -> None:
    builder = every().without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")


def test_look_alike_loading_at_the_start_and_for_one_later_phase(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 900).kernel(3000, 3900).kernels(4000, 8, every=1000, length=900)
    builder.api("cuModuleLoadData", 910, 2980).kernel(14_000, 14_900).api("cuLibraryLoadData", 12_000, 13_980)
    passed = outcome(RULE, builder, tmp_path)
    assert passed == Passed(
        "Loading and compiling of kernels takes 28 % of the time, 0 % beyond the start and one later phase."
    )


def test_look_alike_new_kernels_that_cost_nothing(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(20):
        builder.kernel(100 * number, 100 * number + 100, f"triton_poi_fused_{number}")
    assert outcome(RULE, builder, tmp_path, share=0.0) == Passed(
        "Loading and compiling of kernels takes 0 % of the time, 0 % beyond the start and one later phase."
    )


def test_wording_for_pytorch(tmp_path: Path) -> None:
    found = outcome(RULE, every().range("aten::add", 0, 10), tmp_path)
    assert isinstance(found, Found)
    assert "TORCH_LOGS=recompiles" in found.actions[0]
