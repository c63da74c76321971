import pytest
from msgspec import UNSET
from msgspec.structs import replace

from nsys_triage.render.views.ledger import MOST_BARS, ledger
from nsys_triage.result.model import WholeCapture
from tests.render import blocks, results
from tests.render.blocks import S, causes, gpu


def test_bars_are_on_one_scale() -> None:
    long, short = gpu(0, causes(compute=6 * S, launch=4 * S)), gpu(1, causes(compute=5 * S))
    view = ledger(results.baseline(gpus=[long, short]))
    assert view is not None
    first, second = view.chart.bars
    assert [(s.key, s.x, s.width) for s in first.segments] == [("compute", 0, 60), ("launch", 60, 40)]
    assert [(s.key, s.x, s.width) for s in second.segments] == [("compute", 0, 50)]
    assert first.note == "busy 60 % of 10 s"
    assert [t.label for t in view.chart.ticks] == ["0", "2 s", "4 s", "6 s", "8 s", "10 s"]


def test_causes_stand_in_the_fixed_order_whatever_order_they_come_in() -> None:
    mixed = causes(launch=1 * S, compute=1 * S, unknown=1 * S)[::-1]
    view = ledger(results.baseline(gpus=[gpu(0, mixed)]))
    assert view is not None
    assert [row.name for row in view.rows] == ["Busy", "compute", "Idle", "launch", "unknown"]
    assert [s.key for s in view.chart.bars[0].segments] == ["compute", "launch", "unknown"]


def test_the_table_has_the_whole_capture_beside_the_window_where_they_differ() -> None:
    ledger_ = causes(compute=6 * S, launch=4 * S)
    whole = WholeCapture(
        span_ns=20 * S, busy_ns=8 * S, ledger=causes(compute=8 * S, launch=2 * S, module_load=10 * S)
    )
    view = ledger(results.baseline(gpus=[gpu(0, ledger_, whole=whole)]))
    assert view is not None
    assert [(c.title, c.of) for c in view.columns] == [("Whole capture", "10 s"), ("Whole capture", "20 s")]
    cells = {row.name: [(c.ns, c.share) for c in row.cells] for row in view.rows}
    assert cells["Busy"] == [(6 * S, 0.6), (8 * S, 0.4)]
    assert cells["module load"] == [(0, 0), (10 * S, 0.5)]
    assert ledger(results.baseline()).columns[1:] == []  # type: ignore[union-attr]


def test_a_whole_capture_without_ledger_says_so() -> None:
    view = ledger(results.baseline(gpus=[replace(gpu(), whole=WholeCapture(span_ns=20 * S, busy_ns=8 * S))]))
    assert view is not None
    rows = {row.name: row.cells[-1] for row in view.rows}
    assert (rows["Busy"].ns, rows["Busy"].share) == (8 * S, 0.4)
    assert (rows["launch"].ns, rows["launch"].share) == (None, None)


def test_more_than_four_gpus_are_summed_with_the_extremes_beside() -> None:
    gpus = [gpu(n, causes(compute=n * S, launch=(10 - n) * S)) for n in range(1, 6)]
    view = ledger(results.baseline(gpus=gpus))
    assert view is not None
    titles = [c.title for c in view.columns]
    assert titles == ["All 5 GPUs", "Busiest GPU: GPU 4", "Least busy GPU: GPU 0"]
    busy = view.rows[0]
    assert [c.ns for c in busy.cells] == [15 * S, 5 * S, 1 * S]
    assert [c.share for c in busy.cells] == [0.3, 0.5, 0.1]


def test_of_very_many_gpus_the_ten_least_busy_are_drawn() -> None:
    gpus = [gpu(n, causes(compute=(n + 1) * S, launch=(200 - n) * S)) for n in range(MOST_BARS + 1)]
    view = ledger(results.baseline(gpus=gpus[::-1]))
    assert view is not None
    assert len(view.chart.bars) == 10
    assert view.chart.left_out == MOST_BARS - 9
    shares = [bar.segments[0].share for bar in view.chart.bars]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(1 / 201)


def test_without_a_ledger_busy_and_idle_remain() -> None:
    view = ledger(results.baseline(gpus=[replace(blocks.gpu(), ledger=UNSET)]))
    assert view is not None
    assert not view.split
    assert [s.key for s in view.chart.bars[0].segments] == ["busy", "idle"]
    assert [row.name for row in view.rows] == ["Busy", "Idle"]


def test_no_gpus_no_section() -> None:
    assert ledger(results.cannot_judge()) is None
