"""The outcomes of a rule on the ranks of a job as one outcome. Numbers by hand."""

import pytest

from nsys_triage.result.model import Evidence, Interval, Stake
from nsys_triage.rules.base import Found, NotRun, Outcome, Passed
from nsys_triage.rules.job import RankOutcome, join_outcomes, ranks_of
from nsys_triage.rules.run import Failed

SPAN = 1_000_000  # ns, of every GPU


def found(high: int, title: str = "Slow", low: int | None = None) -> Found:
    return Found(
        title=title,
        stake=Stake(
            low_ns=high // 2 if low is None else low, high_ns=high, share=high / SPAN, basis="all of it"
        ),
        causes=("launch",),
        evidence=(Evidence(label="time", value=high, unit="ns"),),
        actions=(f"Do that about {title}.",),
        caveat="Perhaps not.",
        confidence="medium",
        where=Interval(start_ns=1, end_ns=2),
        gpu="gpu0",
    )


def on(*outcomes: Outcome | Failed, gpus: int = 1) -> list[RankOutcome]:
    """Those outcomes on a rank each, with so many GPUs."""
    return [
        RankOutcome(
            ranks=(rank,), gpus=gpus, span_ns=gpus * SPAN, gpu=f"rank{rank}-gpu0" if gpus == 1 else None, outcome=o
        )
        for rank, o in enumerate(outcomes)
    ]  # fmt: skip


def joined(*outcomes: Outcome | Failed, gpus: int = 1) -> Found:
    ended = join_outcomes(on(*outcomes, gpus=gpus))
    assert isinstance(ended, Found), ended
    return ended


# --- findings -----------------------------------------------------------------------------------------------


def test_all_ranks_found_it() -> None:
    ended = joined(found(100_000), found(300_000, "Slower"), found(200_000))
    assert ended.title == "Slower (rank 1; on 3 of 3 ranks)"
    assert (ended.stake.low_ns, ended.stake.high_ns) == (100_000, 200_000)
    assert ended.stake.share == 0.15
    assert ended.stake.basis == "mean of the ranks; all of it"
    # text and numbers are those of the rank that loses most
    assert ended.evidence == (Evidence(label="time", value=300_000, unit="ns"),)
    assert (ended.actions, ended.caveat) == (("Do that about Slower.",), "Perhaps not.")
    assert (ended.causes, ended.confidence, ended.where) == (
        ("launch",),
        "medium",
        Interval(start_ns=1, end_ns=2),
    )
    assert ended.gpu is None  # it is about several


def test_equal_losses_are_said_of_the_lowest_rank() -> None:
    assert joined(found(100_000, "A"), found(100_000, "B")).title == "A (rank 0; on 2 of 2 ranks)"


def test_most_is_what_may_be_gained_not_what_is_sure() -> None:
    ended = joined(found(100_000, "Sure", low=90_000), found(200_000, "Most", low=0))
    assert ended.title == "Most (rank 1; on 2 of 2 ranks)"


def test_ranks_that_did_not_fire_have_nothing_at_stake() -> None:
    ended = joined(found(200_000), Passed("fine"), NotRun("calls"), found(120_000, low=0))
    # 320 and 100 us over four ranks
    assert (ended.stake.low_ns, ended.stake.high_ns, ended.stake.share) == (25_000, 80_000, 0.0525)
    assert ended.title == "Slow (rank 0; on 2 of 4 ranks)"


def test_one_rank_alone_is_named_with_its_gpu() -> None:
    ended = joined(Passed("fine"), found(200_000))
    assert (ended.title, ended.gpu) == ("Slow (rank 1; on 1 of 2 ranks)", "rank1-gpu0")
    assert joined(found(200_000), Passed("fine"), gpus=2).gpu is None  # of two GPUs no single one


@pytest.mark.parametrize(("high", "fires"), [(199_996, False), (200_000, True)])
def test_a_minority_needs_a_twentieth_of_the_jobs_time(high: int, fires: bool) -> None:
    # over four ranks 49 999 and 50 000 ns
    ended = join_outcomes(on(*[Passed("fine")] * 3, found(high)))
    if fires:
        assert isinstance(ended, Found)
    else:
        assert ended == Passed("Slow (rank 3; on 1 of 4 ranks), which is 5.0 % of the job's GPU time.")


@pytest.mark.parametrize(("ranks", "fires"), [(2, False), (3, True)])
def test_most_ranks_need_no_more_than_they_have(ranks: int, fires: bool) -> None:
    ended = join_outcomes(on(*[found(10_000)] * ranks, *[Passed("fine")] * (4 - ranks)))
    assert isinstance(ended, Found if fires else Passed)


def test_ranks_count_by_their_gpus() -> None:
    # 100 us on each of three GPUs, 20 us on one
    rows = [*on(found(100_000), gpus=3), *on(found(20_000))]
    ended = join_outcomes(rows)
    assert isinstance(ended, Found)
    assert (ended.stake.low_ns, ended.stake.high_ns, ended.stake.share) == (40_000, 80_000, 0.06)


def test_shares_are_of_the_mean_span() -> None:
    rows = [
        RankOutcome((0,), 1, 1_000_000, "a", found(300_000)),
        RankOutcome((1,), 1, 3_000_000, "b", found(300_000)),
    ]
    ended = join_outcomes(rows)
    assert isinstance(ended, Found)
    # 150 to 300 us of 2 ms
    assert (ended.stake.high_ns, ended.stake.share) == (300_000, 0.1125)


def test_no_share_above_one() -> None:
    rows = [
        RankOutcome((0,), 1, 1_000, "a", found(300_000)),
        RankOutcome((1,), 1, 1_000, "b", found(300_000)),
    ]
    ended = join_outcomes(rows)
    assert isinstance(ended, Found)
    assert ended.stake.share == 1.0


def test_traces_of_several_ranks() -> None:
    rows = [
        RankOutcome((0, 1), 2, 2 * SPAN, None, found(400_000)),
        RankOutcome((2, 3), 2, 2 * SPAN, None, Passed("fine")),
    ]
    ended = join_outcomes(rows)
    assert isinstance(ended, Found)
    assert (ended.title, ended.stake.high_ns) == ("Slow (ranks 0, 1; on 1 of 2 traces)", 200_000)
    # where one trace alone holds several, they are no ranks either
    mixed = join_outcomes([rows[0], RankOutcome((2,), 1, SPAN, "a", Passed("fine"))])
    assert isinstance(mixed, Found)
    assert mixed.title == "Slow (ranks 0, 1; on 1 of 2 traces)"


def test_a_rank_whose_rule_raised_does_not_hide_a_finding() -> None:
    assert joined(Failed("ValueError in the rule"), found(200_000)).title == "Slow (rank 1; on 1 of 2 ranks)"


# --- no finding ---------------------------------------------------------------------------------------------


def test_a_rule_that_raised_anywhere_failed() -> None:
    failed = Failed("ValueError in the rule")
    assert join_outcomes(on(Passed("fine"), failed, NotRun("calls"))) == failed


def test_passed_says_where_and_on_how_many() -> None:
    assert join_outcomes(
        on(NotRun("calls"), Passed("2 % of the time."), Passed("3 % of the time."))
    ) == Passed("2 % of the time (rank 1; passed on 2 of 3 ranks)")


def test_not_run_where_no_rank_could() -> None:
    first = NotRun("CUDA API calls", "--trace=cuda")
    assert join_outcomes(on(first, NotRun("steps"))) == first


def test_one_trace_alone() -> None:
    assert join_outcomes(on(Passed("fine"))) == Passed("fine")
    assert join_outcomes(on(NotRun("calls"))) == NotRun("calls")
    ended = joined(found(200_000))
    assert (ended.stake.low_ns, ended.stake.high_ns, ended.stake.share) == (100_000, 200_000, 0.15)
    assert ended.gpu == "rank0-gpu0"


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ((3,), "rank 3"),
        ((3, 4), "ranks 3, 4"),
        ((0, 1, 2, 3), "ranks 0 to 3"),
        ((0, 2, 5), "ranks 0, 2, 5"),
        ((0, 1, 3), "ranks 0, 1, 3"),
    ],
)
def test_which_ranks(ranks: tuple[int, ...], text: str) -> None:
    assert ranks_of(ranks) == text


def test_the_threshold_of_the_user_counts_for_the_job_too() -> None:
    # one of four ranks loses 40 of its 1 000 us: 1 % of the job
    rows = on(*[Passed("fine")] * 3, found(40_000))
    assert isinstance(join_outcomes(rows), Passed)
    assert isinstance(join_outcomes(rows, 0.0100001), Passed)
    assert isinstance(join_outcomes(rows, 0.01), Found)
