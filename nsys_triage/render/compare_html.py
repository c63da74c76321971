"""The page of a comparison: one self-contained file made from a `Comparison` alone."""

from typing import Final

from nsys_triage.render import compare_view, templates, words
from nsys_triage.result.compare_model import Comparison

PAGE: Final = "compare.html.j2"


def render_compare_html(comparison: Comparison) -> str:
    """The comparison as one HTML page: no script, nothing loaded. The same comparison gives the same page.

    Raises `TriageError` where the templates are missing.
    """
    rows, left_out = compare_view.kernel_rows(comparison)
    return templates.render(
        PAGE,
        c=comparison,
        label=compare_view.VERDICTS[comparison.verdict.outcome],
        ledger=compare_view.ledger_chart(comparison),
        steps=compare_view.steps_chart(comparison),
        kernels=rows,
        kernels_left_out=left_out,
        view=compare_view,
        meanings=words.CAUSE_MEANINGS,
    )
