from nsys_triage.render.charts.histogram import ROW_HEIGHT, Bin, histogram


def test_bars_are_relative_to_the_longest_and_empty_ends_are_not_drawn() -> None:
    bins = [Bin("a", 0, 0), Bin("b", 30, 10), Bin("c", 0, 0), Bin("d", 10, 90), Bin("e", 0, 0)]
    picture = histogram(bins)
    assert picture is not None
    assert [(r.label, r.y, r.count_width, r.weight_width) for r in picture.rows] == [
        ("b", 0, 100, 11.111),
        ("c", ROW_HEIGHT, 0, 0),
        ("d", 2 * ROW_HEIGHT, 33.333, 100),
    ]
    assert [(r.count_share, r.weight_share) for r in picture.rows] == [(0.75, 0.1), (0, 0), (0.25, 0.9)]
    assert (picture.count, picture.weight, picture.height) == (40, 100, 3 * ROW_HEIGHT)
    assert picture.bins == bins


def test_counts_without_weight_are_drawn_all_the_same() -> None:
    picture = histogram([Bin("a", 2, 0)])
    assert picture is not None
    assert (picture.rows[0].count_width, picture.rows[0].weight_width) == (100, 0)


def test_an_empty_histogram_has_no_picture() -> None:
    assert histogram([]) is None
    assert histogram([Bin("a", 0, 0)]) is None
