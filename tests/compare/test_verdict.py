"""What is said of a change, and how a gate on it ends."""

import re
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from nsys_triage.compare.numbers import given
from nsys_triage.compare.verdict import gate, other_work, with_busy
from nsys_triage.result.compare_model import (
    CompareVerdict,
    GateOutcome,
    KernelChanges,
    KernelSums,
    TimeChange,
)
from nsys_triage.result.model import Result
from tests.builders import torch_kernels as torch
from tests.compare.jobs import NEW_KERNEL, Plan, changed_causes, compared, result_of, write

PERIODIC = Plan(steps=30, period=8_000.0)
STEPWISE = CompareVerdict(outcome="no_change", metric="step_time", sentence="", details=[])
PASSED, FAILED = GateOutcome(0.05, "passed", "ok"), GateOutcome(0.05, "failed", "longer")
OPEN = GateOutcome(0.05, "inconclusive", "open")


@pytest.fixture(scope="module")
def periodic(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return result_of(write(PERIODIC, 1, tmp_path_factory.mktemp("periodic") / "before.sqlite"))


def change(share: float, low: float | None, high: float | None) -> TimeChange:
    """A change of 100 us by shares of it."""
    ends = [None if end is None else round(100_000 * end) for end in (low, high)]
    after = round(100_000 * (1 + share))
    return TimeChange(100_000, after, after - 100_000, share, ends[0], ends[1], "no_change")


# --- a gate that looks at the busy time too -----------------------------------------------------------------------


def test_longer_kernels_hidden_in_idle_time_fail_a_gate(periodic: Result, tmp_path: Path) -> None:
    after = result_of(write(PERIODIC.all_longer(1.15), 2, tmp_path / "after.sqlite"))
    found = compared(periodic, after, 0.05)
    assert found.verdict.outcome == "no_change"
    assert found.step_time is not None
    assert found.step_time.change_share == pytest.approx(0, abs=0.01)
    assert found.step_busy is not None
    assert found.step_busy.outcome == "higher"
    assert found.step_busy.change_share == pytest.approx(0.15, abs=0.03)
    assert found.gate is not None
    assert found.gate.outcome == "failed"
    assert found.gate.sentence.startswith("The busy time of a step regressed by 1")
    assert found.gate.sentence.endswith("5.0 % is the limit; the step time did not.")


def test_the_same_kernels_pass_it(periodic: Result, tmp_path: Path) -> None:
    found = compared(periodic, result_of(write(PERIODIC, 3, tmp_path / "after.sqlite")), 0.05)
    assert found.gate is not None
    assert found.gate.outcome == "passed"
    assert changed_causes(found) == {}


@pytest.mark.parametrize(
    ("busy", "wanted"),
    [
        (change(0.06, 0.02, 0.10), "failed"),
        (change(0.05, 0.02, 0.10), "failed"),  # the measured change decides, and the limit itself is too much
        (change(0.049, 0.02, 0.10), "passed"),
        (change(0.06, -0.01, 0.13), "inconclusive"),
        (change(0.06, None, None), "passed"),
        (change(-0.2, -0.3, -0.1), "passed"),
    ],
)
def test_the_busy_time_of_a_step_by_its_interval(busy: TimeChange, wanted: str) -> None:
    assert with_busy(PASSED, busy, STEPWISE).outcome == wanted


def test_busy_time_changes_no_outcome_that_says_more() -> None:
    longer = change(0.2, 0.1, 0.3)
    assert with_busy(FAILED, longer, STEPWISE) is FAILED
    assert with_busy(PASSED, None, STEPWISE) is PASSED
    assert with_busy(OPEN, longer, STEPWISE).outcome == "failed"
    assert with_busy(OPEN, change(0.2, -0.1, 0.5), STEPWISE) is OPEN
    for unjudged in (
        replace(STEPWISE, metric=None),
        replace(STEPWISE, outcome="mixed"),
        replace(STEPWISE, outcome="identical"),
        replace(STEPWISE, metric="same_launches"),
    ):
        assert with_busy(OPEN, longer, unjudged) is OPEN


def test_a_gate_decides_by_the_measured_change() -> None:
    for share, wanted in ((0.05, "failed"), (0.049, "passed")):
        assert gate(0.05, STEPWISE, change(share, 0.01, 0.09), None).outcome == wanted


def test_a_change_beyond_100_percent_is_said_in_full() -> None:
    slower = replace(STEPWISE, outcome="slower")
    assert "regressed by 240 %, 150 % is" in gate(1.5, slower, change(2.4, 2.2, 2.6), None).sentence


# --- what the sentence says ---------------------------------------------------------------------------------------


def without_steps(result: Result) -> Result:
    return replace(result, steps=UNSET)


def test_a_certain_small_change_is_said_with_its_signs(periodic: Result, tmp_path: Path) -> None:
    after = result_of(write(PERIODIC.all_longer(0.965), 2, tmp_path / "after.sqlite"))
    found = compared(without_steps(periodic), without_steps(after))
    assert found.verdict.outcome == "no_change"
    same = found.kernels.same_launches if found.kernels else None
    assert same is not None
    assert same.high_ns is not None
    assert same.high_ns < 0
    assert found.verdict.sentence.startswith(
        "No change that matters: the launches that both sides have take "
    )
    ends = re.search(r"\((-?[0-9.]+) % to (-?[0-9.]+) %, 95 % confidence", found.verdict.sentence)
    assert ends is not None
    low, high = ends.groups()
    assert -4.5 < float(low) < -3.5 < float(high) < -2.5
    assert "certain, but below the 5.0 % from which a change counts" in found.verdict.sentence
    # 2 ms of work in a step of 8 ms
    assert found.verdict.sentence.endswith("They are 25 % of the window's time before.")


def test_other_work_has_no_verdict(periodic: Result, tmp_path: Path) -> None:
    """Forward against forward and backward: the launches that both have say nothing of the run."""
    more = PERIODIC.with_kernel(NEW_KERNEL, 700.0)
    after = without_steps(result_of(write(more, 2, tmp_path / "after.sqlite")))
    found = compared(without_steps(periodic), after, 0.05)
    assert (found.verdict.outcome, found.verdict.metric) == ("inconclusive", None)
    assert found.verdict.sentence.startswith(
        "The work differs: of 7 kernels 1 is new (41 % of the kernel time after)."
    )
    assert found.gate is not None
    assert found.gate.outcome == "inconclusive"
    assert {f.state for f in found.findings} <= {"remaining", "not_compared"}


def test_a_single_new_kernel_is_no_other_work(periodic: Result, tmp_path: Path) -> None:
    more = PERIODIC.with_kernel(NEW_KERNEL, 80.0)
    after = without_steps(result_of(write(more, 2, tmp_path / "after.sqlite")))
    assert compared(without_steps(periodic), after).verdict.outcome == "no_change"


def test_what_is_gone_is_told_from_what_is_new() -> None:
    kernels = KernelChanges(KernelSums(gone=3, same=1), None, 0.6, 0.0, [], 0, 0)
    said = other_work(kernels)
    assert said is not None
    assert "3 are gone (60 % of the kernel time before)" in said
    assert "new" not in said
    assert other_work(replace(kernels, only_before_share=0.1)) is None


def test_nothing_is_fixed_where_nothing_can_be_compared(periodic: Result, tmp_path: Path) -> None:
    """The input stall is gone, on another GPU and with other kernels."""
    stalled = result_of(write(Plan(steps=12, stall=6_000.0), 1, tmp_path / "before.sqlite"))
    fixed = result_of(write(Plan(steps=12), 2, tmp_path / "after.sqlite"))
    assert [f.state for f in compared(stalled, fixed).findings if f.rule == "input-pipeline"] == ["fixed"]
    other = replace(fixed, gpus=[replace(gpu, name="NVIDIA H100 80GB HBM3") for gpu in fixed.gpus])
    found = compared(stalled, other)
    assert found.comparability.grade == "poor"
    assert [f.state for f in found.findings if f.rule == "input-pipeline"] == ["not_compared"]
    assert all(f.prediction is None for f in found.findings)
    assert not any(text.startswith(("Fixed", "New", "Still there")) for text in found.verdict.details)
    back = compared(other, stalled)
    assert [f.state for f in back.findings if f.rule == "input-pipeline"] == ["not_compared"]


def test_steps_that_are_little_of_the_window_are_said_to_be(periodic: Result, tmp_path: Path) -> None:
    """One kernel is slower; what lies outside the steps is half of the window on one side."""
    after = result_of(write(PERIODIC.longer(torch.GEMM_AMPERE, 1.1), 2, tmp_path / "after.sqlite"))
    assert not any("of the window" in text for text in compared(periodic, after).verdict.details)
    steps, kernels = given(after.steps), given(after.kernels)
    assert steps is not None
    assert kernels is not None
    # every second step is none of the job's: validation, say
    items = steps.items[::2]
    fewer = replace(kernels, count=kernels.count * len(items) // steps.count)
    short = replace(after, kernels=fewer, steps=replace(steps, items=items, count=len(items)))
    details = compared(periodic, short).verdict.details
    (said,) = [text for text in details if text.startswith("The steps are ")]
    assert re.fullmatch(r"The steps are 100 % of the window before, 5[0-9] % after\.", said)
