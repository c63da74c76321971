"""The summary of a comparison on the terminal: verdict, what limits it, what changed."""

import textwrap
from typing import Final

from rich.console import Console
from rich.text import Text

from nsys_triage import units
from nsys_triage.render import text, words
from nsys_triage.render.compare_words import steps_text
from nsys_triage.result.compare_model import Comparison, Side

WIDTH: Final = 80
INDENT: Final = 8
BAR: Final = 40
_STYLES: Final = {"faster": "bold green", "slower": "bold red", "identical": "bold green"}


def print_comparison(comparison: Comparison, console: Console, page: str | None) -> None:
    """Prints the summary, at most 80 columns wide, plain where the console is; `page` is the HTML file's name."""
    for line in summary_lines(comparison, page):
        console.print(line, highlight=False, soft_wrap=True)


def summary_lines(comparison: Comparison, page: str | None) -> list[Text]:
    """The lines of the summary."""
    verdict = comparison.verdict
    style = _STYLES.get(verdict.outcome, "bold")
    lines = [Text(line, style=style) for line in _wrapped(text.cut(verdict.sentence, 500), 0)]
    for label, side in (("Before", comparison.before), ("After", comparison.after)):
        lines += _side(label, side)
    able = comparability_line(comparison)
    if able and comparison.status == "compared":
        lines += _labelled("Compare", able)
    for detail in verdict.details[:6]:
        lines += _item(text.cut(detail, 240))
    if comparison.gate is not None:
        lines += _labelled("Gate", f"{comparison.gate.outcome}: {comparison.gate.sentence}")
    if page is not None:
        lines.append(_label("Page", text.clean(page)))
    return lines


def comparability_line(comparison: Comparison) -> str:
    """The grade, and the gravest notes."""
    able = comparison.comparability
    limits = [note.text for note in able.notes if note.level != "info"]
    notes = limits[:2] if limits else [note.text for note in able.notes if note.id == "one-run"]
    return " ".join([f"Comparability is {able.grade}.", *(text.cut(note, 240) for note in notes)])


def _side(label: str, side: Side) -> list[Text]:
    parts = [text.shorten(side.name, 40)]
    if side.taken_as != "one run":
        parts.append(f"{units.plural(len(side.files), 'file')}, {side.taken_as}")
    if side.steps:
        parts.append(steps_text(side.steps))
    elif side.window:
        parts.append(units.time(side.window.span_ns))
    lines = _labelled(label, "   ".join(parts))
    if side.busy_share is not None:
        filled = min(BAR - (side.busy_share < 1), max(side.busy_share > 0, round(side.busy_share * BAR)))
        bar = Text(" " * INDENT + f"busy {units.share(side.busy_share):<7} |")
        bar.append("#" * filled, style="cyan").append("." * (BAR - filled), style="yellow").append("|")
        lines.append(bar)
        idle = sorted((e for e in side.ledger if e.cause not in ("compute", "graph")), key=lambda e: -e.ns)
        total = sum(entry.ns for entry in side.ledger)
        said = [
            f"{words.cause(e.cause)} {units.share(e.ns / total)}".replace(" ", "\u00a0") for e in idle[:4]
        ]
        lines += [Text(line, style="dim") for line in _wrapped("  ".join(said), INDENT)]
    return lines


def _item(line: str) -> list[Text]:
    wrapped = textwrap.wrap(line, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
    return [Text(part) for part in wrapped]


def _label(label: str, rest: str) -> Text:
    return Text(f"{label:<{INDENT}}", style="bold").append(rest, style="not bold")


def _labelled(label: str, rest: str) -> list[Text]:
    first, *others = _wrapped(rest, INDENT) or [" " * INDENT]
    return [_label(label, first[INDENT:]), *(Text(line) for line in others)]


def _wrapped(line: str, indent: int) -> list[str]:
    """Lines of at most WIDTH columns; what a no-break space holds together stays on one line."""
    wrapped = textwrap.wrap(
        line, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * indent, break_on_hyphens=False
    )
    return [part.replace("\u00a0", " ") for part in wrapped]
