"""The page, the Markdown and the summary of a comparison."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from nsys_triage import units
from nsys_triage.compare.build import compare
from nsys_triage.render import compare_view
from nsys_triage.render.compare_html import render_compare_html
from nsys_triage.render.compare_markdown import render_compare_markdown
from nsys_triage.render.compare_terminal import summary_lines
from nsys_triage.render.compare_words import share_range
from nsys_triage.result.compare_model import Comparison, TimeChange
from tests.compare.jobs import NEW_KERNEL, Plan, one, result_of, write
from tests.render.pages import Page
from tests.render.results import HOSTILE


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("traces")
    before = result_of(write(Plan(steps=12, stall=6_000.0), 1, folder / "before.sqlite"))
    after = result_of(write(Plan(steps=12).with_kernel(NEW_KERNEL, 80.0), 2, folder / "after.sqlite"))
    return compare(one(before, "before"), one(after, "after"), 0.05)


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


def test_page_shows_the_comparison(comparison: Comparison) -> None:
    text = render_compare_html(comparison)
    page = parsed(text)
    (headline,) = page.all("h1")
    assert " ".join(headline.text.replace("\u00a0", " ").split()) == comparison.verdict.sentence
    assert [section.attributes["id"] for section in page.all("section")] == [
        "verdict", "time", "steps", "findings", "kernels", "measures", "terms",
    ]  # fmt: skip
    ids = {e.attributes["id"] for e in page.elements if "id" in e.attributes}
    assert {a.attributes["href"].lstrip("#") for a in page.all("a")} <= ids
    assert "as predicted" in text
    assert page.all("script") == []
    assert render_compare_html(comparison) == text


def test_every_kernel_is_in_the_table(comparison: Comparison) -> None:
    assert comparison.kernels is not None
    page = parsed(render_compare_html(comparison))
    shown = " ".join(e.text for e in page.all("code"))
    assert all(row.name in shown for row in comparison.kernels.rows)


def test_sides_and_steps_are_on_one_scale(comparison: Comparison) -> None:
    ledger, steps = compare_view.ledger_chart(comparison), compare_view.steps_chart(comparison)
    assert ledger is not None
    assert steps is not None
    widths = [sum(s.width for s in bar.segments) for bar in ledger.bars]
    assert max(widths) == pytest.approx(100, abs=0.1)
    assert widths[1] < 0.5 * widths[0]
    assert steps.rows[1].mean < 0.5 * steps.rows[0].mean
    assert all(b.x >= 0 and b.x + b.width <= 100.01 for row in steps.rows for b in row.bins)


def test_names_cannot_break_out(comparison: Comparison) -> None:
    assert comparison.kernels is not None
    rows = [replace(row, name=HOSTILE) for row in comparison.kernels.rows]
    sides = [replace(side, name=HOSTILE) for side in (comparison.before, comparison.after)]
    hostile = replace(
        comparison,
        before=sides[0],
        after=sides[1],
        kernels=replace(comparison.kernels, rows=rows),
        verdict=replace(comparison.verdict, sentence=HOSTILE, details=[HOSTILE]),
    )
    page = parsed(render_compare_html(hostile))
    assert page.all("script") == []
    assert page.all("img") == []
    assert "<img" not in render_compare_markdown(hostile).replace(r"\<img", "")


def test_without_judgement_only_the_reason_is_shown(comparison: Comparison) -> None:
    bare = replace(
        comparison, status="cannot_judge", step_time=None, outside_steps=None, whole=None, idle_time=None,
        causes=[], kernels=None, measures=[], findings=[], gate=None,
        before=replace(
            comparison.before, status="cannot_judge", steps=None, window=None, ledger=[], busy_share=None, gpus=[]
        ),
    )  # fmt: skip
    assert [s.attributes["id"] for s in parsed(render_compare_html(bare)).all("section")] == ["verdict"]
    assert "not judged" in render_compare_markdown(bare)
    assert summary_lines(bare, None)


def test_markdown_stays_below_its_bound(comparison: Comparison) -> None:
    text = render_compare_markdown(comparison)
    assert comparison.verdict.sentence[:20] in text
    assert "| input pipeline |" in text
    long = replace(
        comparison, verdict=replace(comparison.verdict, sentence="long " * 300, details=["detail " * 60] * 30)
    )
    assert len(text.encode()) < 2_000
    assert len(render_compare_markdown(long).encode()) < 2_000


def test_summary_fits_80_columns(comparison: Comparison) -> None:
    lines = [line.plain for line in summary_lines(comparison, "after.compare.html")]
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("A step takes ")
    assert lines[-1] == "Page    after.compare.html"


@pytest.mark.parametrize(
    ("share", "wanted"),
    [
        (None, ""),
        (0.0, "0 %"),
        (0.0001, "+0.01 %"),
        (-0.00042, "-0.042 %"),
        (0.12, "+12 %"),
        (-0.031, "-3.1 %"),
        (1.5, "+150 %"),
        (19.0, "x 20"),
    ],
)
def test_signed_shares(share: float | None, wanted: str) -> None:
    assert compare_view.signed_share(share) == wanted


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (-0.0392, -0.0367, "-3.9 % to -3.7 %"),
        (0.041, 0.276, "+4.1 % to +28 %"),
        (-0.11, 0.11, "-11 % to +11 %"),
        (-0.0004, 0.0003, "less than 0.1 % either way"),
        (-0.0004, 0.02, "-0.04 % to +2.0 %"),
        (0.0004, 0.0009, "+0.04 % to +0.09 %"),
        (0.0, 0.0, "less than 0.1 % either way"),
        (-1.3, 2.5, "-100 % to +250 %"),
    ],
)
def test_intervals_of_shares_keep_their_signs(low: float, high: float, wanted: str) -> None:
    assert share_range(low, high) == wanted


def test_the_page_adds_up_to_the_step(comparison: Comparison) -> None:
    step, busy = comparison.step_time, comparison.step_busy
    assert step is not None
    assert busy is not None
    rows = compare_view.cause_rows(comparison)
    for end in ("before_ns", "after_ns"):
        parts = sum(getattr(change, end) for _, change, _ in rows)
        assert parts == pytest.approx(getattr(step, end), rel=0.005)
    sums = {row.label: row for row in compare_view.sum_rows(comparison)}
    assert sums["A step, mean"].before_ns == step.before_ns
    assert sums["Busy time of a step"].after_ns == busy.after_ns
    assert "Outside the steps, for each step" in sums
    ledger = compare_view.ledger_chart(comparison)
    assert ledger is not None
    assert f"{units.time(step.before_ns)} a step" in ledger.bars[0].note
    twice = [
        replace(c, total=replace(c.total, before_ns=2 * c.total.before_ns, after_ns=3 * c.total.after_ns))
        for c in comparison.causes
    ]
    assert compare_view.ledger_chart(replace(comparison, causes=twice)) == ledger
    shown = " ".join(
        " ".join(cell.text for cell in parsed(render_compare_html(comparison)).all("td")).split()
    )
    assert f"Busy time of a step {units.time(busy.before_ns)}".replace(" ", "") in shown.replace(
        "\u00a0", ""
    ).replace(" ", "")
    assert f"| _Busy time of a step_ | {units.time(busy.before_ns)} |" in render_compare_markdown(comparison)


def test_what_lies_outside_the_steps_is_a_row_of_its_own(comparison: Comparison) -> None:
    outside = TimeChange(1_200_000_000, 240_000_000, -960_000_000, -0.8, None, None, "inconclusive")
    (row,) = [
        row
        for row in compare_view.sum_rows(replace(comparison, outside_steps=outside))
        if row.label.startswith("Outside")
    ]
    counts = [side.steps.count for side in (comparison.before, comparison.after) if side.steps]
    assert (row.before_ns, row.after_ns) == (
        round(1_200_000_000 / counts[0]),
        round(240_000_000 / counts[1]),
    )
    assert row.change is None


def test_results_without_causes_by_step_are_shown_by_window(comparison: Comparison) -> None:
    """One cause that is not known by step is enough: a mixture of both would not add up to anything."""
    causes = [replace(comparison.causes[0], in_steps=None), *comparison.causes[1:]]
    old = replace(comparison, causes=causes)
    assert [change for _, change, _ in compare_view.cause_rows(old)] == [c.total for c in causes]
    assert [row.label for row in compare_view.sum_rows(old)] == ["All idle time"]
    ledger = compare_view.ledger_chart(old)
    assert ledger is not None
    assert "per step of the window" in ledger.bars[0].note
    assert "divided by its steps" in render_compare_html(old)


def test_the_time_of_steps_is_labelled(comparison: Comparison) -> None:
    steps = comparison.before.steps
    assert steps is not None
    wanted = f"{steps.count} steps, mean {units.time(steps.mean_ns)}, median {units.time(steps.p50_ns)}"
    page = " ".join(parsed(render_compare_html(comparison)).all("p")[1].text.replace("\u00a0", " ").split())
    assert wanted in page
    assert wanted in render_compare_markdown(comparison)
    assert any(wanted in line.plain for line in summary_lines(comparison, None))


def test_a_change_that_is_certain_and_small_is_called_so() -> None:
    small = TimeChange(1_000, 990, -10, -0.01, -15, -5, "no_change")
    assert compare_view.outcome_text(small) == "too small to matter"
    assert compare_view.outcome_text(replace(small, high_ns=5)) == "no change"
    assert compare_view.outcome_text(replace(small, low_ns=None, high_ns=None)) == "too small to matter"
    assert compare_view.signed_time(small) == "-10 ns, too small to matter"


def test_page_is_private(comparison: Comparison, tmp_path: Path) -> None:
    assert str(tmp_path.parent) not in render_compare_html(comparison)
