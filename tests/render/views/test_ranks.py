import pytest
from msgspec.structs import replace

from nsys_triage.render.html import render_html
from nsys_triage.render.views.ranks import nearest_rank, ranks_view
from nsys_triage.result.model import RankRow, RankStep
from tests.render import blocks, results
from tests.render.blocks import MS


@pytest.mark.parametrize(("q", "value"), [(0, 1), (10, 1), (50, 5), (90, 9), (91, 10), (100, 10)])
def test_nearest_rank_is_a_value_that_occurs(q: int, value: int) -> None:
    assert nearest_rank(list(range(1, 11)), q) == value


def view_of(rows: list[RankRow], **changes: object):  # type: ignore[no-untyped-def]
    view = ranks_view(results.baseline(ranks=replace(blocks.ranks(2), per_rank=rows, **changes)))
    assert view is not None
    return view


def test_bars_split_communication_into_wait_and_transfer_on_one_scale() -> None:
    view = view_of([blocks.rank_row(0, 1_400 * MS), blocks.rank_row(1, 400 * MS)])
    first, second = view.bars
    assert [(s.key, s.x, s.width) for s in first.segments] == [("wait", 0, 70), ("transfer", 70, 30)]
    assert [(s.key, s.x, s.width) for s in second.segments] == [("wait", 0, 20), ("transfer", 20, 30)]
    assert (first.straggler, second.straggler) == (False, True)
    assert not view.folded


def test_what_was_not_matched_is_communication_as_a_whole() -> None:
    view = view_of([blocks.rank_row(0, None, transfer_ns=None, communication_ns=500 * MS)])
    assert [(s.key, s.width) for s in view.bars[0].segments] == [("communication", 100)]
    assert view.strip is not None
    assert [row.label for row in view.strip.rows] == ["busy", "exposed communication"]


def test_shares_of_the_strip_are_of_the_rank_span() -> None:
    view = view_of([blocks.rank_row(0, 2_500 * MS)])
    assert view.strip is not None
    assert [row.cells[0].share for row in view.strip.rows] == [0.7, 0.25, 0.13]


def test_of_very_many_ranks_the_ten_that_others_wait_for_are_shown() -> None:
    rows = [blocks.rank_row(n, (100 - n) * MS) for n in range(65)]
    view = view_of(rows)
    assert view.folded
    assert [row.rank for row in view.rows] == list(range(55, 65))
    wait = next(row for row in view.percentiles if row.label == "wait")
    # 36 to 100 ms over 65 ranks: the 7th, 33rd and 59th smallest
    assert wait.values == [36 * MS, 42 * MS, 68 * MS, 94 * MS, 100 * MS]


def test_exactly_64_ranks_are_all_shown() -> None:
    assert len(view_of([blocks.rank_row(n, 1) for n in range(64)]).rows) == 64


def test_facts_say_what_is_missing_and_what_is_assumed() -> None:
    facts = view_of(
        [blocks.rank_row(0, 1)], source="assumed", missing=[2, 5], world_size=4, count=2, notes=["n"]
    ).facts
    assert facts == [
        "Missing: 2 ranks (2, 5); the others may wait for them.",
        "Rank numbers are assumed from the order of files or processes, not read from the capture.",
        "The job had 4 ranks; 2 are here.",
        "n",
    ]


def test_an_assumption_is_said_once() -> None:
    note = "Rank numbers are assumed from the devices."
    assert view_of(
        [blocks.rank_row(0, 1)], source="mixed", missing=[], world_size=1, count=1, notes=[note]
    ).facts == [note]


def test_one_rank_has_no_section() -> None:
    assert ranks_view(results.baseline()) is None


def step(index: int, last: int | None, wait_ns: int = 25) -> RankStep:
    return RankStep(index=index, p50_ns=90, max_ns=100, wait_ns=wait_ns, last=last)


def test_steps_of_all_ranks_with_their_waiting() -> None:
    view = view_of([blocks.rank_row(n, 0) for n in (0, 1)], steps=[step(3, 1), step(4, 0)])
    assert view.chart is not None
    first, second = view.chart.bars
    assert [(part.key, part.ns) for part in first.parts] == [("busy", 75), ("wait", 25)]
    assert (first.first, second.first) == (3, 4)
    assert view.late_in == "It comes last in 1 of 2 steps: 3."
    none = view_of([blocks.rank_row(n, 0) for n in (0, 1)])
    assert (none.chart, none.late_in) == (None, None)


def test_runs_of_late_steps_are_joined() -> None:
    late = [step(n, 1 if n not in {4, 9} else None if n == 9 else 0) for n in range(12)]
    view = view_of([blocks.rank_row(n, 0) for n in (0, 1)], steps=late)
    assert view.late_in == "It comes last in 10 of 11 steps: 0 to 3, 5 to 8, 10 to 11."


def test_a_rank_that_is_not_clearly_late_gets_no_card() -> None:
    ranks = replace(blocks.ranks(2), straggler_clear=False)
    assert "is the <" not in render_html(results.baseline(ranks=ranks)).split('id="ranks"')[1][:1_500]
    assert "Rank 1 is the <" in render_html(results.baseline(ranks=blocks.ranks(2)))
