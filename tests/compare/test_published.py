"""Public traces with a published story: each comparison says what changed, and what did not."""

from pathlib import Path

import pytest

from nsys_triage.compare.run import compare_paths
from nsys_triage.ingest import ExportSettings
from nsys_triage.metrics.window import WindowRequest
from nsys_triage.result.compare_model import Comparison, Measure
from nsys_triage.rules.run import RuleSettings

FOLDER = Path(__file__).parents[3] / "shared" / "traces" / "sqlite"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the folder shared/ with public traces is not beside the project"
)


def compared(before: str, after: str) -> Comparison:
    paths = [FOLDER / f"{name}.sqlite" for name in (before, after)]
    return compare_paths(paths[0], paths[1], WindowRequest(), ExportSettings(), RuleSettings(), 0.05)


def measure(found: Comparison, topic: str, name: str, what: str) -> Measure:
    (one,) = [m for m in found.measures if (m.topic, m.name, m.what) == (topic, name, what)]
    return one


def test_more_workers_moved_the_wait_out_of_the_steps() -> None:
    """The median of a step fell from 153 to 23 ms and the capture got longer: no claim from the median alone."""
    found = compared("mnist_ladder_0_baseline_nvtx", "mnist_ladder_1_workers")
    assert found.comparability.grade == "good"
    assert found.verdict.outcome == "mixed"
    assert "whole capture of the same work takes 3.0 % more" in found.verdict.sentence
    assert any("outside the steps" in text and "input pipeline" in text for text in found.verdict.details)
    (wait,) = [c for c in found.causes if c.cause == "input_pipeline"]
    assert wait.in_steps is not None
    assert (wait.in_steps.outcome, wait.total.outcome) == ("lower", "inconclusive")
    assert [(f.rule, f.state) for f in found.findings] == [("input-pipeline", "remaining")]
    assert found.kernels is not None
    assert (found.kernels.sums.new, found.kernels.sums.gone) == (0, 0)


def test_pinning_changed_the_copies_and_not_the_limiter() -> None:
    found = compared("mnist_ladder_1_workers", "mnist_ladder_2_pinned")
    pageable = measure(found, "copies", "host_to_device", "from or to pageable memory")
    assert (pageable.before, pageable.after, pageable.outcome) == (1.0, 0.0, "lower")
    # the steps got longer and the run shorter: less time passes outside of them, and nothing is said against that
    assert found.verdict.outcome == "mixed"
    (wait,) = [c for c in found.causes if c.cause == "input_pipeline"]
    assert wait.in_steps is not None
    assert found.step_time is not None
    assert wait.in_steps.before_ns < found.step_time.before_ns < wait.total.before_ns
    assert "The steps are 53 % of the window before, 87 % after." in found.verdict.details
    assert not any("-63" in text for text in found.verdict.details)
    (copy,) = [c for c in found.causes if c.cause == "copy"]
    assert copy.total.outcome == "no_change"  # 0.2 ms of a step of 117
    assert found.after.limiter == "input_pipeline"
    assert [(f.rule, f.state) for f in found.findings] == [("input-pipeline", "remaining")]


def test_mixed_precision_changed_the_kernels_and_not_the_step() -> None:
    found = compared("mnist_ladder_2_pinned", "mnist_ladder_3_amp")
    assert found.verdict.outcome in ("inconclusive", "no_change")
    outcomes = {c.cause: c.total.outcome for c in found.causes}
    assert outcomes["compute"] == "lower"
    assert outcomes["launch"] == "higher"
    assert found.kernels is not None
    assert found.kernels.sums.new > 20
    assert found.kernels.sums.gone > 20
    assert any("Half" in row.name or "half" in row.name for row in found.kernels.rows if row.calls == "new")
    assert found.after.limiter == "input_pipeline"


def test_the_exporter_alone_makes_no_difference() -> None:
    found = compared("mnist_ladder_3_amp", "mnist_ladder_3_amp_exported_2022")
    assert (found.status, found.verdict.outcome) == ("identical", "identical")


def test_the_optimised_job_waits_for_its_host() -> None:
    """Compute per step is as before; idle time and exposed communication rose: neutral is not healthy."""
    found = compared("torchrun_2gpu_before", "torchrun_2gpu_after")
    busy = measure(found, "gpu", "", "busy")
    assert (busy.outcome, busy.before, busy.after) == (
        "lower",
        pytest.approx(0.90, abs=0.01),
        pytest.approx(0.83, abs=0.01),
    )
    assert measure(found, "communication", "", "exposed").outcome == "higher"
    idle = found.idle_time
    assert idle is not None
    assert idle.after_ns > 1.8 * idle.before_ns
    new = {f.rule for f in found.findings if f.state == "new"}
    assert {"launch-overhead", "exposed-communication"} <= new
    assert found.verdict.outcome != "faster"


def test_a_part_of_a_step_is_no_larger_than_its_step() -> None:
    found = compared("torchrun_2gpu_before", "torchrun_2gpu_after")
    (compute,) = [c for c in found.causes if c.cause == "compute"]
    assert compute.in_steps is not None
    assert compute.in_steps.outcome == "no_change"
    assert not any(text.startswith("Compute") for text in found.verdict.details)
    step = found.step_time
    assert step is not None
    for end in ("before_ns", "after_ns"):
        parts = sum(getattr(c.in_steps, end) for c in found.causes if c.in_steps)
        assert parts == pytest.approx(getattr(step, end), rel=0.001)


def test_mixed_precision_without_common_steps_is_said_to_be_other_work() -> None:
    found = compared("mnist_ladder_0_baseline", "mnist_ladder_3_amp")
    assert found.basis == "second"
    assert found.verdict.outcome == "inconclusive"
    assert (
        "70 are gone (85 % of the kernel time before), 80 are new (83 % of the kernel time after)"
        in found.verdict.sentence
    )
    assert "(-3.9 % to -3.7 %, 95 % confidence)" in found.verdict.sentence
    assert "They are 0.6 % of the window's time before." in found.verdict.sentence


def test_forward_and_backward_are_not_the_work_of_forward_alone() -> None:
    found = compared("lm_small_fwd", "lm_small_bwd")
    assert found.verdict.outcome == "inconclusive"
    assert found.verdict.sentence.startswith("The work differs: of 83 kernels 54 are new (56 % of")
    assert {f.state for f in found.findings} <= {"remaining", "not_compared"}
    assert found.gate is not None
    assert found.gate.outcome == "inconclusive"


def test_a_trace_against_itself() -> None:
    found = compared("torchrun_2gpu_after", "torchrun_2gpu_after")
    assert found.status == "identical"
    assert found.gate is not None
    assert found.gate.outcome == "passed"


def test_against_a_trace_without_gpu_work() -> None:
    found = compared("torchrun_2gpu_after", "cpu_only")
    assert (found.status, found.verdict.outcome) == ("cannot_judge", "inconclusive")
