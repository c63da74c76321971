"""Ranks that wait for each other, from the result's block of ranks."""

from pathlib import Path

import msgspec
import pytest

from nsys_triage.metrics.measure import Measurement
from nsys_triage.result.model import RankRow, Ranks
from nsys_triage.rules.base import Found, NotRun, Outcome, Passed, severity_of
from nsys_triage.rules.checks.rank_imbalance import RULE
from nsys_triage.rules.context import Context
from nsys_triage.rules.run import RuleSettings
from tests.builders.trace import TraceBuilder
from tests.rules.support import measured, outcome

SPAN = 1_000_000  # ns, of every rank


@pytest.fixture
def one_rank(tmp_path: Path) -> Measurement:
    return measured(TraceBuilder().kernel(0, 1000), tmp_path)


def ranks(*waits: int, communication: int = 400_000, votes: float = 0.9, straggler: int | None = 0) -> Ranks:
    """Ranks that spend so long waiting in their communication."""
    rows = [
        RankRow(
            rank=rank, gpu=None, communication_ns=communication, transfer_ns=communication - wait, wait_ns=wait,
            busy_ns=SPAN, step_p50_ns=None, span_ns=SPAN, exposed_ns=communication, file=f"rank{rank}.sqlite",
        )
        for rank, wait in enumerate(waits)
    ]  # fmt: skip
    return Ranks(
        count=len(waits), missing=[], matched_collectives=50, straggler=straggler, straggler_votes_share=votes,
        per_rank=rows, straggler_reason="it computes longer",
    )  # fmt: skip


def check(m: Measurement, block: Ranks | None, **thresholds: float) -> Outcome:
    return RULE.check(Context(m, RuleSettings().of(RULE) | thresholds, block))


def test_fires_with_the_straggler_and_the_mean_wait(one_rank: Measurement) -> None:
    found = check(one_rank, ranks(0, 200_000, 200_000, 200_000))
    assert isinstance(found, Found)
    # 600 us over 4 ranks are 150 us of 1 ms
    assert found.title == "Ranks wait for each other 15 % of the time: rank 0 arrives last"
    assert (found.stake.low_ns, found.stake.high_ns) == (75_000, 150_000)
    assert found.stake.share == pytest.approx(0.1125)
    assert severity_of(found.stake.share) == "medium"
    assert found.confidence == "high"
    values = {e.label: e.value for e in found.evidence}
    # 600 of 1600 us
    assert values["share of communication that is waiting"] == 0.375
    assert values["rank that arrives last most often"] == "0"
    assert values["in this share of the collectives"] == 0.9
    assert values["why it is late"] == "it computes longer"
    assert "rank0.sqlite" in found.actions[0]


@pytest.mark.parametrize(("wait", "fires"), [(99_999, False), (100_000, True)])
def test_threshold_is_the_mean_wait(one_rank: Measurement, wait: int, fires: bool) -> None:
    # two ranks, one waits: 5 % of 1 ms as mean are 100 us
    assert isinstance(check(one_rank, ranks(0, wait)), Found if fires else Passed)


@pytest.mark.parametrize(("votes", "named"), [(0.499, False), (0.5, True)])
def test_one_straggler_needs_half_of_the_votes(one_rank: Measurement, votes: float, named: bool) -> None:
    found = check(one_rank, ranks(0, 200_000, votes=votes))
    assert isinstance(found, Found)
    assert found.title.endswith("rank 0 arrives last" if named else "no rank is late alone")
    assert found.confidence == ("high" if named else "medium")


def test_only_waiting_that_nothing_hides_counts(one_rank: Measurement) -> None:
    block = ranks(0, 200_000)
    hidden = [msgspec.structs.replace(row, exposed_ns=20_000) for row in block.per_rank]
    passed = check(one_rank, msgspec.structs.replace(block, per_rank=hidden))
    # 20 of 1000 us on one of two ranks; of the communication it is 200 of 800 us
    assert passed == Passed("25 % of the communication is waiting for other ranks, 1.0 % of the time.")


def test_look_alike_slow_network(one_rank: Measurement) -> None:
    assert isinstance(check(one_rank, ranks(10_000, 10_000, communication=900_000)), Passed)


def test_not_run_without_other_ranks(one_rank: Measurement, tmp_path: Path) -> None:
    assert check(one_rank, None) == NotRun("other ranks of the job: give their traces together")
    assert outcome("rank-imbalance", TraceBuilder().kernel(0, 1000), tmp_path) == NotRun(
        "other ranks of the job: give their traces together"
    )


def test_not_run_where_no_collective_was_matched(one_rank: Measurement) -> None:
    block = ranks(0, 0)
    rows = [msgspec.structs.replace(row, wait_ns=None, transfer_ns=None) for row in block.per_rank]
    found = check(one_rank, msgspec.structs.replace(block, per_rank=rows, matched_collectives=0))
    assert isinstance(found, NotRun)
    assert "none could be matched" in found.missing


def test_context_offers_several_ranks(one_rank: Measurement) -> None:
    assert Context(one_rank, {}, ranks(0, 0)).has("several_ranks")
    assert not Context(one_rank, {}, ranks(0)).has("several_ranks")
    assert not Context(one_rank, {}).has("several_ranks")


@pytest.mark.parametrize(
    ("cause", "title", "advice"),
    [
        ("slower_kernels", "rank 0 arrives last, on a slower GPU", "nvidia-smi"),
        ("compute", "rank 0 arrives last, with more to compute", "Even out the work: rank 0"),
        (
            "input_pipeline",
            "rank 0 arrives last, after waiting for its input",
            "Give rank 0 as many loader workers",
        ),
        ("host_blocked", "rank 0 arrives last, from a blocked host", "blocks the host of rank 0"),
        ("memset", "rank 0 arrives last", "Look at rank 0 alone"),
    ],
)
def test_advice_follows_why_the_rank_is_late(
    one_rank: Measurement, cause: str, title: str, advice: str
) -> None:
    found = check(one_rank, msgspec.structs.replace(ranks(0, 200_000), straggler_cause=cause))
    assert isinstance(found, Found)
    assert found.title.endswith(title)
    assert advice in found.actions[0]
    # a rank that is not clearly the one is not spoken of
    unclear = check(one_rank, msgspec.structs.replace(ranks(0, 200_000, votes=0.4), straggler_cause=cause))
    assert isinstance(unclear, Found)
    assert "rank 0" not in unclear.title + " ".join(unclear.actions)


def test_ranks_of_one_file_have_no_report_of_their_own(one_rank: Measurement) -> None:
    block = ranks(0, 200_000)
    rows = [msgspec.structs.replace(row, file="all.sqlite") for row in block.per_rank]
    found = check(one_rank, msgspec.structs.replace(block, per_rank=rows))
    assert isinstance(found, Found)
    assert not any("all.sqlite" in action for action in found.actions)


def test_stake_is_a_share_of_a_gpu_where_a_rank_has_two(one_rank: Measurement) -> None:
    """A rank's waiting and span are sums over its GPUs: 400 of 2000 us, so 200 of the 1000 us of a GPU."""
    block = ranks(400_000, 400_000)
    rows = [msgspec.structs.replace(row, span_ns=2 * SPAN) for row in block.per_rank]
    found = check(one_rank, msgspec.structs.replace(block, per_rank=rows))
    assert isinstance(found, Found)
    assert (found.stake.low_ns, found.stake.high_ns, found.stake.share) == (100_000, 200_000, 0.15)
