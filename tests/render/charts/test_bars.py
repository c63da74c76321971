from itertools import pairwise

import pytest

from nsys_triage.render.charts.bars import fits, segments


def test_parts_lie_end_to_end_on_the_given_scale() -> None:
    placed = segments([("compute", 50), ("launch", 25), ("queued", 0), ("unknown", 25)], 200, {})
    assert [(s.key, s.x, s.width, s.value_ns, s.share) for s in placed] == [
        ("compute", 0, 25, 50, 0.5),
        ("launch", 25, 12.5, 25, 0.25),
        ("unknown", 37.5, 12.5, 25, 0.25),
    ]
    assert placed[0].middle == 12.5


def test_rounding_leaves_no_hole() -> None:
    placed = segments([(str(n), 1) for n in range(7)], 7, {})
    for left, right in pairwise(placed):
        assert left.x + left.width == pytest.approx(right.x)
    assert placed[-1].x + placed[-1].width == pytest.approx(100)


def test_the_longest_label_that_fits_is_taken() -> None:
    labels = {
        "a": ("input pipeline 94 %", "94 %"),
        "b": ("host sync 8 %", "8 %"),
        "c": ("unknown 1 %", "1 %"),
    }
    a, b, c = segments([("a", 91), ("b", 8), ("c", 1)], 100, labels)
    assert (a.label, a.narrow) == ("input pipeline 94 %", True)
    assert (b.label, b.narrow) == ("8 %", False)
    assert c.label == ""


def test_a_label_needs_room_at_both_ends() -> None:
    # 1 percent of 1,040 px holds 1.625 characters of 6.4 px
    assert fits("a" * 14, 10)
    assert not fits("a" * 15, 10)


def test_nothing_gives_nothing() -> None:
    assert segments([], 0, {}) == []
    assert segments([("a", 0)], 10, {}) == []
