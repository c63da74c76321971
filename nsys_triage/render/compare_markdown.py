"""A comparison as Markdown of under 2 kB, for pasting into a ticket."""

import re
from typing import Final

from nsys_triage import units
from nsys_triage.render import text, words
from nsys_triage.render.compare_terminal import comparability_line
from nsys_triage.render.compare_view import signed_time, sum_rows
from nsys_triage.render.compare_words import by_step, shown, side_text
from nsys_triage.result.compare_model import Comparison

MOST_BYTES: Final = 2_000
MOST_ROWS: Final = 8
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|~#])")


def render_compare_markdown(comparison: Comparison) -> str:
    """Verdict, comparability, causes as a table of at most eight rows, what else changed: below 2,000 bytes.

    Names of the traces are escaped, so that they are neither Markdown nor HTML.
    """
    for room, details in ((400, 10), (240, 8), (160, 6), (100, 3), (60, 0)):
        page = _page(comparison, room, details)
        if len(page.encode()) < MOST_BYTES:
            return page
    return page.encode()[: MOST_BYTES - 1].decode(errors="ignore")


def _page(comparison: Comparison, room: int, most_details: int) -> str:
    verdict = comparison.verdict
    sides = [
        f"{text.shorten(side.name, 48)} ({side_text(side)})" for side in (comparison.before, comparison.after)
    ]
    blocks = [
        f"**{_escaped(verdict.sentence, 2 * room)}**",
        _escaped(f"Before: {sides[0]}; after: {sides[1]}", 400),
    ]
    if comparison.status == "compared":
        blocks.append("_" + _escaped(comparability_line(comparison), room) + "_")
        blocks += [table for table in (_causes(comparison),) if table]
    details = [f"- {_escaped(detail, room)}" for detail in verdict.details[:most_details]]
    if details:
        blocks.append("\n".join(details))
    if comparison.gate is not None:
        blocks.append(f"Gate {comparison.gate.outcome}: {_escaped(comparison.gate.sentence, room)}")
    return "\n\n".join(blocks) + "\n"


def _causes(comparison: Comparison) -> str:
    """The causes with most time on either side, and their sums."""
    rows = sorted(
        shown(comparison.causes), key=lambda row: (-max(row[1].before_ns, row[1].after_ns), row[0])
    )[:MOST_ROWS]
    if not rows:
        return ""
    of = "in a step" if by_step(comparison.causes) else f"per {comparison.basis} of the window"
    head = f"| GPU time {of} | before | after | change |\n|---|--:|--:|--:|\n"
    lines = [_row(words.cause(cause), c.before_ns, c.after_ns, signed_time(c)) for cause, c in rows]
    lines += [
        _row(f"_{row.label}_", row.before_ns, row.after_ns, signed_time(row.change) if row.change else "")
        for row in sum_rows(comparison)
    ]
    return head + "\n".join(lines)


def _row(label: str, before_ns: int, after_ns: int, change: str) -> str:
    return f"| {label} | {units.time(before_ns)} | {units.time(after_ns)} | {change} |"


def _escaped(sentence: str, room: int) -> str:
    """Text in which nothing is Markdown or HTML: one line, special characters escaped."""
    line = " ".join(text.cut(sentence, room).split())
    return _SPECIAL.sub(r"\\\1", line.replace("&", "&amp;"))
