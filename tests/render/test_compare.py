"""The page, the Markdown and the summary of a comparison."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from nsys_triage.compare.build import compare
from nsys_triage.render import compare_view
from nsys_triage.render.compare_html import render_compare_html
from nsys_triage.render.compare_markdown import render_compare_markdown
from nsys_triage.render.compare_terminal import summary_lines
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
        (0.0001, "< 0.1 %"),
        (0.12, "+12 %"),
        (-0.031, "-3.1 %"),
        (1.5, "+150 %"),
        (19.0, "x 20"),
    ],
)
def test_signed_shares(share: float | None, wanted: str) -> None:
    assert compare_view.signed_share(share) == wanted


def test_a_change_that_is_certain_and_small_is_called_so() -> None:
    small = TimeChange(1_000, 990, -10, -0.01, -15, -5, "no_change")
    assert compare_view.outcome_text(small) == "too small to matter"
    assert compare_view.outcome_text(replace(small, high_ns=5)) == "no change"


def test_page_is_private(comparison: Comparison, tmp_path: Path) -> None:
    assert str(tmp_path.parent) not in render_compare_html(comparison)
