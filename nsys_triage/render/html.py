"""The HTML report: one self-contained page made from a `Result` alone."""

from typing import Any, Final

from nsys_triage.render import templates, words
from nsys_triage.render.views import known, topics
from nsys_triage.render.views.commands import record_missing
from nsys_triage.render.views.lead import (
    MOST_WARNINGS,
    checks_by_status,
    files_line,
    header_facts,
    lead,
    shown_findings,
)
from nsys_triage.render.views.ledger import ledger
from nsys_triage.render.views.ranks import ranks_view
from nsys_triage.render.views.steps import steps_view
from nsys_triage.render.views.timeline import overview, timeline_chart
from nsys_triage.result.model import Result

MOST_BYTES: Final = 1_048_576


def render_html(result: Result) -> str:
    """The report as one HTML page: no script needed, nothing loaded, below 1 MiB for any result.

    Parts that the result does not have are left out, or the page says that they are missing. The same
    result gives the same page. Raises `TriageError` where the templates are missing.
    """
    findings = shown_findings(result)
    timeline = timeline_chart(result, findings)
    context: dict[str, Any] = {
        "r": result,
        "lead": lead(result),
        "files": files_line(result),
        "facts": header_facts(result),
        "warnings": result.capture.warnings[:MOST_WARNINGS],
        "warnings_left_out": max(0, len(result.capture.warnings) - MOST_WARNINGS),
        "window_name": known.window_name(result),
        "gpu_names": known.gpu_names(result),
        "ledger": ledger(result),
        "findings": findings,
        "findings_left_out": len(result.findings) - len(findings),
        "timeline": timeline,
        "overview": overview(result),
        "steps": steps_view(result),
        "ranks": ranks_view(result),
        "topics": topics.topics(result),
        "gap_histogram": topics.gap_histogram(result),
        "longest_gaps": topics.longest_gaps(result),
        "size_histogram": topics.size_histogram(result),
        "checks": checks_by_status(result),
        "record_missing": record_missing(result),
        "terms": words.TERMS,
    }
    page = templates.render(templates.PAGE, tips=True, **context)
    if len(page.encode()) < MOST_BYTES:
        return page
    # tooltips of the timeline are what a page can do without: the table under it has the sums
    return templates.render(templates.PAGE, tips=False, **context)
