"""Communication that nothing hides, on the device and on the host."""

from pathlib import Path

import pytest

from nsys_triage.result.model import RankRow, Ranks
from nsys_triage.rules.base import Found, NotRun, Passed
from nsys_triage.rules.checks.exposed_communication import RULE as EXPOSED
from nsys_triage.rules.context import Context
from nsys_triage.rules.run import RuleSettings
from tests.builders.trace import ALL_REDUCE, TraceBuilder
from tests.rules.support import measured, outcome

RULE = "exposed-communication"


def trace(exposed_us: float = 100.0) -> TraceBuilder:
    """1 ms without idle time: an all-reduce begins 50 us before a kernel ends, and runs alone after it."""
    end = 500 + exposed_us
    return TraceBuilder().kernel(0, 500).kernel(450, end, ALL_REDUCE, stream=20).kernel(end, 1000)


def test_fires_with_the_exposed_part(tmp_path: Path) -> None:
    found = outcome(RULE, trace(), tmp_path)
    assert isinstance(found, Found)
    assert found.title == "Communication that nothing hides takes 10 % of the time"
    assert found.stake.high_ns == 100_000
    assert found.causes == ("communication",)
    values = {e.label: e.value for e in found.evidence}
    assert values["communication kernels while nothing computes"] == 100_000
    assert values["all time in communication kernels"] == 150_000
    assert values["longest of them"] == 150_000
    assert values["operation that is exposed longest"] == "all reduce"
    # one rank alone: said in so many words
    assert "cannot split" in found.caveat
    assert "all ranks" in found.actions[0] or "every rank" in found.actions[0]


def test_host_side_communication_counts(tmp_path: Path) -> None:
    # the GPU idles from 400 to 500; the host is in MPI from 410 to 480
    builder = TraceBuilder().kernel(0, 400).mpi("MPI_Sendrecv", 410, 480).kernel(500, 1000, call=(490, 495))
    found = outcome(RULE, builder, tmp_path)
    assert isinstance(found, Found)
    assert found.stake.high_ns == 70_000
    assert found.causes == ("host_communication",)
    assert any("MPI_Isend" in action for action in found.actions)


@pytest.mark.parametrize(("exposed_us", "fires"), [(49.999, False), (50, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, exposed_us: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(exposed_us), tmp_path), Found if fires else Passed)


def test_look_alike_overlapped(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1000).kernel(100, 900, ALL_REDUCE, stream=20)
    assert outcome(RULE, builder, tmp_path) == Passed(
        "Communication that nothing hides takes 0 % of the time (1 communication kernel)."
    )


def test_look_alike_name_that_only_mentions_nccl(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 500).kernel(500, 1000, "void pack<ncclFloat16>(float*)")
    assert isinstance(outcome(RULE, builder, tmp_path), NotRun)


def test_does_not_apply_without_communication(tmp_path: Path) -> None:
    assert outcome(RULE, TraceBuilder().kernel(0, 1000), tmp_path) == NotRun(
        "communication kernels: the trace has none"
    )


def test_with_several_ranks_the_share_of_waiting_is_said(tmp_path: Path) -> None:
    m = measured(trace(), tmp_path)
    rows = [
        RankRow(
            rank=rank,
            gpu=None,
            communication_ns=100,
            transfer_ns=100 - wait,
            wait_ns=wait,
            busy_ns=0,
            step_p50_ns=None,
        )
        for rank, wait in ((0, 0), (1, 80))
    ]
    ranks = Ranks(
        count=2, missing=[], matched_collectives=3, straggler=0, straggler_votes_share=1.0, per_rank=rows
    )
    found = EXPOSED.check(Context(m, RuleSettings().of(EXPOSED), ranks))
    assert isinstance(found, Found)
    # 80 of 200
    assert {e.label: e.value for e in found.evidence}["share of it that is waiting for other ranks"] == 0.4
    assert "cannot split" not in found.caveat
