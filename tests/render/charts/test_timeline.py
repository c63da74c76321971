import pytest

from nsys_triage.render.charts import MAX_MARKS
from nsys_triage.render.charts.timeline import (
    LABEL,
    LANE,
    MAX_ROWS,
    PINS,
    SPACE,
    WIDEST_LABELS,
    Span,
    Strip,
    timeline,
)


def span(start: int, end: int, what: str = "compute", share: float = 1.0) -> Span:
    return Span(start, end, what, share, "")


def test_marks_lie_where_they_are_and_are_as_high_as_their_share() -> None:
    picture = timeline([Strip("GPU 0", "gpu", [span(100, 300), span(500, 600, share=0.5)])], 100, 1_100, [])
    assert picture is not None
    row = picture.rows[0]
    first, second = row.lanes[0].marks
    assert (first.x, first.width) == (0, 20)
    assert (second.x, second.width) == (40, 10)
    assert first.height == LANE["gpu"]
    assert second.height == LANE["gpu"] / 2
    assert second.y + second.height == first.y + first.height
    assert row.top == 4 + LABEL
    assert picture.height == row.top + LANE["gpu"] + SPACE


def test_kinds_of_a_split_row_have_lanes_of_their_own() -> None:
    spans = [span(0, 10), span(5, 15, "communication"), span(20, 30)]
    split = timeline([Strip("GPU 0", "gpu", spans, split=True)], 0, 100, [])
    joint = timeline([Strip("GPU 0", "gpu", spans)], 0, 100, [])
    assert split is not None
    assert joint is not None
    assert [(lane.what, len(lane.marks)) for lane in split.rows[0].lanes] == [
        ("compute", 2),
        ("communication", 1),
    ]
    assert split.rows[0].lanes[1].top - split.rows[0].lanes[0].top == LANE["gpu"] + 2
    assert split.rows[0].height == 2 * LANE["gpu"] + 2
    assert joint.rows[0].height == LANE["gpu"]
    assert split.legend == [("gpu", "compute"), ("gpu", "communication")]


def test_even_the_shortest_mark_and_one_at_the_edge_can_be_seen() -> None:
    picture = timeline(
        [Strip("a", "host", [span(0, 1), span(999_999, 1_000_000), span(-50, -10)])], 0, 1_000_000, []
    )
    assert picture is not None
    for mark in picture.rows[0].lanes[0].marks:
        assert mark.width >= 0.06
        assert 0 <= mark.x <= 100 - mark.width


def test_findings_are_pinned_and_cut_to_the_window() -> None:
    picture = timeline([Strip("a", "gpu", [span(0, 10)])], 0, 100, [(1, 20, 40), (2, 90, 500)])
    assert picture is not None
    assert [(p.number, p.x, p.width, p.at) for p in picture.pins] == [(1, 20, 20, 20), (2, 90, 10, 90)]
    assert picture.rows[0].top == PINS + LABEL


def test_numbers_of_findings_at_one_place_stand_side_by_side() -> None:
    places = [(1, 50, 60), (2, 20, 30), (3, 50, 70), (4, 51, 52)]
    picture = timeline([Strip("a", "gpu", [span(0, 10)])], 0, 100, places)
    assert picture is not None
    assert [(p.number, p.x, p.at) for p in picture.pins] == [
        (2, 20, 20), (1, 50, 50), (3, 50, 51.9), (4, 51, 53.8),
    ]  # fmt: skip


def test_marks_and_rows_beyond_the_bounds_are_left_out_and_counted() -> None:
    many = [span(n * 10, n * 10 + 1 + n % 7) for n in range(MAX_MARKS + 100)]
    picture = timeline([Strip("a", "gpu", many)], 0, 30_000, [])
    assert picture is not None
    kept = [m.span.end_ns - m.span.start_ns for m in picture.rows[0].lanes[0].marks]
    assert len(kept) == MAX_MARKS
    assert picture.left_out_marks == 100
    lengths = sorted((1 + n % 7 for n in range(MAX_MARKS + 100)), reverse=True)
    assert sorted(kept, reverse=True) == lengths[:MAX_MARKS]

    rows = timeline([Strip(str(n), "gpu", [span(0, 10)]) for n in range(MAX_ROWS + 3)], 0, 100, [])
    assert rows is not None
    assert (len(rows.rows), rows.left_out_rows) == (MAX_ROWS, 3)


def test_wide_marks_of_idle_rows_are_named() -> None:
    spans = [span(0, 50, "launch"), span(50, 55, "queued"), span(60, 90, "host_sync", share=0.4)]
    picture = timeline(
        [Strip("GPU 0 idle", "idle", spans), Strip("GPU 0", "gpu", [span(0, 100)])], 0, 100, []
    )
    assert picture is not None
    assert [(label.what, label.start, label.end, label.middle) for label in picture.labels] == [
        ("launch", 0, 50, 25)
    ]
    many = timeline([Strip(str(n), "idle", [span(0, 90, "launch")]) for n in range(30)], 0, 100, [])
    assert many is not None
    assert len(many.labels) == WIDEST_LABELS


def test_time_of_a_lane_counts_bins_by_their_share() -> None:
    picture = timeline([Strip("a", "gpu", [span(0, 100), span(100, 200, share=0.25)])], 0, 1_000, [])
    assert picture is not None
    assert picture.rows[0].lanes[0].total_ns == 125


@pytest.mark.parametrize(("start", "end"), [(0, 0), (5, 1)])
def test_an_empty_window_has_no_picture(start: int, end: int) -> None:
    assert timeline([Strip("a", "gpu", [span(0, 1)])], start, end, []) is None


def test_rows_without_marks_have_no_picture() -> None:
    assert timeline([Strip("a", "gpu", [])], 0, 10, []) is None
