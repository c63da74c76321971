"""Whole comparisons of results: identical, unjudged, not comparable, and the contract."""

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
from msgspec.structs import replace

from nsys_triage.compare.build import compare
from nsys_triage.compare.codec import decode, encode, json_schema, schema_text, shipped_schema_path
from nsys_triage.result.compare_model import SCHEMA
from nsys_triage.result.model import Result
from tests.builders.trace import TraceBuilder
from tests.compare.jobs import Plan, compared, one, repeats, result_of, write

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return result_of(write(Plan(steps=12), 1, tmp_path_factory.mktemp("job") / "job.sqlite"))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Result:
    path = tmp_path_factory.mktemp("empty") / "empty.sqlite"
    TraceBuilder().api("cudaDeviceSynchronize_v3020", 10, 20).write(path)
    return result_of(path)


def test_shipped_schema_is_that_of_the_structs() -> None:
    assert shipped_schema_path().read_text(encoding="utf-8") == schema_text()
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == SCHEMA


def test_comparisons_follow_the_schema(job: Result, empty: Result) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    other = result_of(SAMPLES / "data_loader_stall.sqlite")
    for found in (compared(job, job, 0.05), compared(job, other), compared(job, empty, 0.05)):
        data = encode(found)
        validator.validate(json.loads(data))
        assert encode(decode(data)) == data
    with pytest.raises(msgspec.ValidationError, match="host"):
        decode(data.replace(b'"verdict":', b'"host": 1, "verdict":', 1))


def test_the_same_content_is_identical_whatever_the_name(job: Result) -> None:
    renamed = replace(job, capture=replace(job.capture, file="other.sqlite"))
    found = compared(job, renamed, 0.05)
    assert (found.status, found.verdict.outcome) == ("identical", "identical")
    assert found.gate is not None
    assert found.gate.outcome == "passed"
    assert found.comparability.grade == "good"


def test_the_same_capture_exported_otherwise_is_identical(job: Result) -> None:
    other = replace(job, capture=replace(job.capture, exporter_version="2022.4.2.1"))
    found = compared(job, other)
    assert found.status == "identical"
    assert [note.id for note in found.comparability.notes] == ["same-capture"]


def test_nothing_is_no_better_result(job: Result, empty: Result) -> None:
    for sides in ((job, empty), (empty, job), (empty, empty)):
        found = compared(*sides, 0.05)
        assert (found.status, found.verdict.outcome) == ("cannot_judge", "inconclusive")
        assert found.comparability.grade == "poor"
        assert found.step_time is None
        assert found.gate is not None
        assert found.gate.outcome == "inconclusive"


def test_another_workload_gives_no_number(job: Result) -> None:
    found = compared(job, result_of(SAMPLES / "launch_bound.sqlite"), 0.05)
    assert found.comparability.grade == "poor"
    assert "other-workload" in [note.id for note in found.comparability.notes]
    assert found.verdict.outcome == "inconclusive"
    assert found.gate is not None
    assert found.gate.outcome == "inconclusive"


def test_another_gpu_and_another_number_of_gpus(job: Result) -> None:
    (gpu,) = job.gpus
    other = replace(job, gpus=[replace(gpu, name="NVIDIA H100 80GB HBM3")])
    assert "other-gpu" in [
        note.id for note in compared(job, other).comparability.notes if note.level == "poor"
    ]
    two = replace(job, gpus=[gpu, replace(gpu, id="gpu1")])
    notes = [note.id for note in compared(job, two).comparability.notes if note.level == "poor"]
    assert "other-gpu-count" in notes


def test_another_window_is_said(job: Result) -> None:
    window = job.capture.window
    assert window is not None
    other = replace(
        job, capture=replace(job.capture, window=replace(window, mode="user")), tool_version="0.0.1"
    )
    first = replace(other, steps=msgspec.UNSET)
    notes = {note.id: note.level for note in compared(job, first).comparability.notes}
    assert notes["other-window"] == "limited"
    assert notes["other-tool-version"] == "limited"
    assert notes["no-steps"] == "limited"


def test_without_steps_the_same_launches_are_compared(job: Result, tmp_path: Path) -> None:
    slower = Plan(steps=12, work=tuple((kernel, 1.2 * length) for kernel, length in Plan().work))
    after = result_of(write(slower, 2, tmp_path / "after.sqlite"))
    sides = [replace(result, steps=msgspec.UNSET) for result in (job, after)]
    found = compared(*sides, 0.05)
    assert (found.basis, found.verdict.metric) == ("second", "same_launches")
    assert found.verdict.outcome == "slower"
    assert found.kernels is not None
    assert found.kernels.same_launches is not None
    assert found.kernels.same_launches.change_share == pytest.approx(0.2, abs=0.02)
    assert {row.calls for row in found.kernels.rows} == {"same"}
    assert found.gate is not None
    assert found.gate.outcome == "failed"


def test_results_without_all_kernels_are_matched_by_name(job: Result) -> None:
    kernels = job.kernels
    assert not isinstance(kernels, msgspec.UnsetType)
    old = replace(job, kernels=replace(kernels, by_shape=msgspec.UNSET))
    found = compared(old, job)
    assert found.kernels is not None
    assert {row.match for row in found.kernels.rows} == {"name"}
    assert {row.calls for row in found.kernels.rows} == {"same"}
    assert "top-kernels-only" in [note.id for note in found.comparability.notes]


def test_every_launch_is_in_a_row(job: Result) -> None:
    found = compare(one(job), one(result_of(SAMPLES / "data_loader_stall.sqlite")))
    kernels = job.kernels
    assert not isinstance(kernels, msgspec.UnsetType)
    assert found.kernels is not None
    assert sum(row.before.count for row in found.kernels.rows if row.before) == kernels.count


def test_causes_in_the_steps_add_up_to_the_step_time(job: Result, tmp_path: Path) -> None:
    """A part is no larger than its step, whatever lies outside of the steps."""
    after = result_of(write(Plan(steps=12, stall=3_000.0), 2, tmp_path / "after.sqlite"))
    found = compared(job, after)
    step = found.step_time
    assert step is not None
    for end in ("before_ns", "after_ns", "change_ns"):
        parts = [getattr(cause.in_steps, end) for cause in found.causes]
        assert sum(parts) == pytest.approx(getattr(step, end), abs=0.005 * step.after_ns)
    idle, busy = found.idle_in_steps, found.step_busy
    assert idle is not None
    assert busy is not None
    assert idle.after_ns + busy.after_ns == pytest.approx(step.after_ns, rel=0.005)


def test_steps_of_several_ranks_are_those_of_one(tmp_path: Path) -> None:
    """The window is the mean of the ranks, the steps are of one: the causes in the steps are its, as the step is."""
    slow = Plan(steps=12, rank=1, world=2, stall=4_000.0)
    sides = []
    for side in ("before", "after"):
        plans = [Plan(steps=12, rank=0, world=2), slow]
        paths = [write(p, 3 * i, tmp_path / f"{side}{i}.sqlite") for i, p in enumerate(plans)]
        sides.append(result_of(*paths))
    found = compared(sides[0], replace(sides[1], tool_version="0.0.1"))
    step = found.step_time
    assert step is not None
    parts = [cause.in_steps.before_ns for cause in found.causes if cause.in_steps]
    assert len(parts) == len(found.causes)
    assert sum(parts) == pytest.approx(step.before_ns, rel=0.005)
    totals = sum(cause.total.before_ns for cause in found.causes)
    assert totals > 1.2 * step.before_ns


def test_what_the_steps_do_not_show_widens_the_interval_of_the_window(job: Result, tmp_path: Path) -> None:
    """The window of one side holds a second of waiting outside its steps, of which no noise is known."""
    after = result_of(write(Plan(steps=12), 2, tmp_path / "after.sqlite"))
    (gpu,) = after.gpus
    assert not isinstance(gpu.ledger, msgspec.UnsetType)
    ledger = [replace(e, ns=e.ns + 10**9) if e.cause == "copy" else e for e in gpu.ledger]
    after = replace(after, gpus=[replace(gpu, ledger=ledger, span_ns=gpu.span_ns + 10**9)])
    (cause,) = [c for c in compared(job, after).causes if c.cause == "copy"]
    assert cause.in_steps is not None
    assert cause.in_steps.outcome == "no_change"
    assert cause.total.change_ns > 50_000_000
    assert cause.total.outcome == "inconclusive"


def test_copies_of_one_run_are_no_repeats(job: Result, tmp_path: Path) -> None:
    other = result_of(write(Plan(steps=12), 2, tmp_path / "other.sqlite"))
    alone = compared(job, other)
    found = compare(repeats([job, job, job], "before"), repeats([other], "after"), 0.05)
    (note,) = [n for n in found.comparability.notes if n.id == "copies"]
    assert note.level == "limited"
    assert note.text.startswith("3 of the 3 runs of before are copies of one capture (before0.sqlite, ")
    assert "tell nothing about noise" in note.text
    assert "one-run" in [n.id for n in found.comparability.notes]
    assert found.step_time == alone.step_time
    assert len(found.before.runs) == 3
    # two of three are one run, and the third is another
    mixed = compare(repeats([job, other, job], "before"), one(other, "after"))
    (note,) = [n for n in mixed.comparability.notes if n.id == "copies"]
    assert note.text.startswith("2 of the 3 runs")
    assert "one-run" not in [n.id for n in mixed.comparability.notes]


def test_copies_against_their_original_are_identical(job: Result) -> None:
    assert compare(repeats([job, job]), one(job), 0.05).status == "identical"


def test_runs_that_differ_are_no_copies(job: Result, tmp_path: Path) -> None:
    runs = [result_of(write(Plan(steps=12), seed, tmp_path / f"{seed}.sqlite")) for seed in (5, 6)]
    found = compare(repeats([job, *runs]), one(runs[0]))
    assert "copies" not in [n.id for n in found.comparability.notes]
