"""Planted changes are found, and nothing else is called changed."""

from pathlib import Path

import pytest

from nsys_triage.compare.build import compare
from nsys_triage.result.compare_model import Comparison
from nsys_triage.result.model import Result
from tests.builders import torch_kernels as torch
from tests.compare.jobs import (
    NEW_KERNEL,
    Plan,
    changed_causes,
    changed_findings,
    changed_kernels,
    changed_measures,
    compared,
    one,
    repeats,
    result_of,
    write,
)

BASE = Plan(stall=6_000.0)
SEEDS = (0, 1)


@pytest.fixture(scope="module", params=SEEDS)
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def before(seed: int, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return result_of(write(BASE, seed, tmp_path_factory.mktemp("before") / "before.sqlite"))


def against(before: Result, plan: Plan, seed: int, tmp_path: Path) -> Comparison:
    return compared(before, result_of(write(plan, seed + 1_000, tmp_path / "after.sqlite")), 0.05)


def test_another_run_of_the_same_program_has_not_changed(before: Result, seed: int, tmp_path: Path) -> None:
    found = against(before, BASE, seed, tmp_path)
    assert found.verdict.outcome == "no_change"
    assert (changed_kernels(found), changed_causes(found)) == ({}, {})
    assert (changed_measures(found), changed_findings(found)) == ({}, {})
    assert found.comparability.grade == "good"
    assert found.gate is not None
    assert found.gate.outcome == "passed"


def test_a_kernel_10_percent_slower(before: Result, seed: int, tmp_path: Path) -> None:
    found = against(before, BASE.longer(torch.GEMM_AMPERE, 1.1), seed, tmp_path)
    assert changed_kernels(found) == {torch.GEMM_AMPERE.name: ("same", "slower")}
    (row,) = [r for r in found.kernels.rows if r.duration == "slower"] if found.kernels else []
    assert row.mean_change_share == pytest.approx(0.1, abs=0.015)
    assert row.low_share is not None
    assert row.high_share is not None
    assert row.low_share < 0.1 < row.high_share
    # 84 us of a step of 8 ms: about the least that counts
    assert changed_causes(found) in ({}, {"compute": "higher"})
    assert (changed_measures(found), changed_findings(found)) == ({}, {})


def test_a_kernel_gone(before: Result, seed: int, tmp_path: Path) -> None:
    found = against(before, BASE.without(torch.SOFTMAX), seed, tmp_path)
    assert changed_kernels(found) == {torch.SOFTMAX.name: ("gone", None)}
    assert changed_causes(found) == {"compute": "lower"}
    assert changed_measures(found) == {("launches", "", "calls"): "lower"}
    assert changed_findings(found) == {}


def test_a_new_kernel(before: Result, seed: int, tmp_path: Path) -> None:
    found = against(before, BASE.with_kernel(NEW_KERNEL, 80.0), seed, tmp_path)
    assert changed_kernels(found) == {NEW_KERNEL.name: ("new", None)}
    assert changed_causes(found) == {"compute": "higher"}
    assert changed_measures(found) == {("launches", "", "calls"): "higher"}
    assert changed_findings(found) == {}


def test_an_input_stall_fixed(before: Result, seed: int, tmp_path: Path) -> None:
    found = against(before, Plan(stall=0.0), seed, tmp_path)
    assert found.verdict.outcome == "faster"
    assert changed_kernels(found) == {}
    assert changed_causes(found) == {"input_pipeline": "lower"}
    assert changed_measures(found) == {("gpu", "", "busy"): "higher"}
    assert changed_findings(found) == {"input-pipeline": "fixed"}
    (finding,) = [f for f in found.findings if f.state == "fixed"]
    assert finding.prediction is not None
    assert finding.prediction.outcome == "came_true"
    assert finding.prediction.low_ns <= finding.prediction.freed_ns


def test_the_stall_back_again_fails_a_gate(before: Result, seed: int, tmp_path: Path) -> None:
    fixed = result_of(write(Plan(stall=0.0), seed + 1_000, tmp_path / "fixed.sqlite"))
    found = compared(fixed, before, 0.05)
    assert found.verdict.outcome == "slower"
    assert found.gate is not None
    assert found.gate.outcome == "failed"


def test_a_rank_lost(seed: int, tmp_path: Path) -> None:
    ranks = [Plan(rank=rank, world=2) for rank in (0, 1)]
    both = [write(plan, 10 * seed + i, tmp_path / f"before{i}.sqlite") for i, plan in enumerate(ranks)]
    left = write(ranks[0], 10 * seed + 5, tmp_path / "after0.sqlite")
    found = compared(result_of(*both), result_of(left))
    assert found.comparability.grade == "limited"
    assert [note.id for note in found.comparability.notes if note.level == "limited"] == ["lost-ranks"]
    assert found.after.missing_ranks == [1]
    assert found.verdict.outcome == "no_change"
    assert (changed_kernels(found), changed_causes(found), changed_measures(found)) == ({}, {}, {})


def test_few_steps_are_inconclusive(tmp_path: Path) -> None:
    short = [result_of(write(Plan(steps=4), i, tmp_path / f"{i}.sqlite")) for i in (1, 2)]
    found = compared(*short, 0.001)
    assert "few-steps" in [note.id for note in found.comparability.notes]
    if found.step_time is not None:
        assert found.step_time.low_ns is None
    assert found.gate is not None
    assert found.gate.outcome == "inconclusive"


def test_repeats_show_the_noise_between_runs(tmp_path: Path) -> None:
    """Each run is steady in itself, and the runs differ more than the two sides do."""
    stalls = ((2_000.0, 3_000.0, 2_500.0), (2_400.0, 3_300.0, 2_200.0))
    sides = [
        [
            result_of(write(Plan(steps=12, stall=stall), i, tmp_path / f"{side}{i}.sqlite"))
            for i, stall in enumerate(runs)
        ]
        for side, runs in enumerate(stalls)
    ]
    alone = compare(one(sides[0][1]), one(sides[1][1]))
    assert alone.verdict.outcome == "slower"
    found = compare(repeats(sides[0]), repeats(sides[1]), 0.05)
    assert found.verdict.outcome == "inconclusive"
    assert found.gate is not None
    assert found.gate.outcome == "inconclusive"
    assert "one-run" not in [note.id for note in found.comparability.notes]
    assert changed_kernels(found) == {}
