from nsys_triage.render.charts.ranks import CELL_HEIGHT, LABEL, SPACE, WIDEST, heat_strip


def test_cells_are_filled_from_below_by_share() -> None:
    ranks = list(range(20))
    strip = heat_strip(ranks, [("busy", "busy", [0.5] * 20), ("wait", "wait", [None] * 19 + [1.0])])
    assert strip is not None
    busy, wait = strip.rows
    assert strip.pitch == 5
    assert len(busy.cells) == 20
    assert busy.cells[1].x == 5.2
    assert busy.cells[1].width == 4.6
    assert busy.cells[1].middle == 7.5
    assert (busy.cells[0].y, busy.cells[0].height) == (LABEL + CELL_HEIGHT / 2, CELL_HEIGHT / 2)
    assert [cell.rank for cell in wait.cells] == [19]
    assert wait.top == LABEL + CELL_HEIGHT + SPACE + LABEL
    assert strip.label_every == 2


def test_few_ranks_do_not_fill_the_page() -> None:
    strip = heat_strip([0, 1], [("busy", "busy", [0.1, 0.2])])
    assert strip is not None
    assert strip.pitch == WIDEST
    assert strip.label_every == 1


def test_nothing_has_no_strip() -> None:
    assert heat_strip([], [("busy", "busy", [])]) is None
    assert heat_strip([1], []) is None
