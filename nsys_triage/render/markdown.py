"""The report as Markdown of under 2 kB, for pasting into a ticket."""

import re
from typing import Final

from nsys_triage import units
from nsys_triage.render import text, words
from nsys_triage.render.views import known
from nsys_triage.render.views.lead import files_line, header_facts, lead
from nsys_triage.result.model import BUSY_CAUSES, CAUSES, Result

MOST_BYTES: Final = 2_000
MOST_ROWS: Final = 8
MOST_FINDINGS: Final = 3
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|~#])")


def render_markdown(result: Result, command: str | None) -> str:
    """Verdict, next action, ledger, the three largest findings, the command: below 2,000 bytes.

    Names of the trace are escaped, so that they are neither Markdown nor HTML. `command` is the line that
    made it.
    """
    for room in (400, 240, 140, 80, 40):
        page = _page(result, command, room)
        if len(page.encode()) < MOST_BYTES:
            return page
    return page.encode()[: MOST_BYTES - 1].decode(errors="ignore")


def _page(result: Result, command: str | None, room: int) -> str:
    top = lead(result)
    facts = "; ".join(header_facts(result))
    blocks = [f"**{_escaped(top.sentence, room)}**"]
    if top.action:
        blocks.append(f"Next: {_escaped(top.action, room)}")
    if top.record:
        blocks.append(_code(top.record, 2 * room))
    blocks.append("_" + _escaped(f"{text.shorten(files_line(result), 60)}; {facts}", room) + "_")
    blocks += [block for block in (_ledger(result), _findings(result, room)) if block]
    if command:
        blocks.append(f"Made by {_code(command, 2 * room)}")
    return "\n\n".join(blocks) + "\n"


def _ledger(result: Result) -> str | None:
    """The causes of all GPUs together in the fixed order, the smallest beyond the bound as one row."""
    ledgers = [known.given(gpu.ledger) for gpu in result.gpus]
    total = sum(gpu.span_ns for gpu in result.gpus)
    if not total or any(entries is None for entries in ledgers):
        return None
    sums = dict.fromkeys(CAUSES, 0)
    for entries in ledgers:
        for entry in entries or []:
            sums[entry.cause] += entry.ns
    found = sorted((cause for cause in CAUSES if sums[cause]), key=lambda cause: -sums[cause])
    kept = found if len(found) <= MOST_ROWS else found[: MOST_ROWS - 1]
    rows = [
        (("busy: " if c in BUSY_CAUSES else "idle: ") + words.cause(c), sums[c]) for c in CAUSES if c in kept
    ]
    if len(kept) < len(found):
        rows.append(("others", sum(sums[cause] for cause in found[len(kept) :])))
    of = "GPU time" if len(result.gpus) == 1 else f"time of {len(result.gpus)} GPUs"
    head = f"| {of}: {units.time(total)} | time | share |\n|---|--:|--:|\n"
    return head + "\n".join(f"| {name} | {units.time(ns)} | {units.share(ns / total)} |" for name, ns in rows)


def _findings(result: Result, room: int) -> str:
    lines = []
    for finding in result.findings[:MOST_FINDINGS]:
        stake = units.times(finding.stake.low_ns, finding.stake.high_ns)
        where = finding.where
        look = f"; open {units.stretch(where.start_ns, where.end_ns)}" if where else ""
        lines.append(
            f"- {_escaped(finding.title, room)}: at stake {stake}, confidence {finding.confidence}{look}"
        )
    left = len(result.findings) - MOST_FINDINGS
    return "\n".join([*lines, f"- {units.plural(left, 'lesser finding')}"] if left > 0 else lines)


def _escaped(sentence: str, room: int) -> str:
    """Text in which nothing is Markdown or HTML: one line, special characters escaped."""
    line = " ".join(text.cut(sentence, room).split())
    return _SPECIAL.sub(r"\\\1", line.replace("&", "&amp;"))


def _code(line: str, room: int) -> str:
    """A command as code; backticks and line ends, which would end it, become quotes and spaces."""
    return "`" + " ".join(text.cut(line, room).replace("`", "'").split()) + "`"
