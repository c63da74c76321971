"""`nsys-triage explain`: the page of one rule."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from nsys_triage.cli.console import stdout_console

if TYPE_CHECKING:
    from nsys_triage.rules.base import Rule

_WIDTH: Final = 80
_WIDEST: Final = 100  # longer lines are hard to read
_INDENT: Final = 2


@click.command("explain")
@click.argument("name", metavar="RULE")
def command(name: str) -> None:
    """Explain one rule: what it means, what to do, when it is wrong.

    RULE is a name that a report shows, as host-sync; `nsys-triage rules` lists all. The page also has the
    rule's thresholds and what nsys has to record for it.
    """
    from rich.text import Text

    from nsys_triage.rules.settings import known_rule

    rule = known_rule(name)
    console = stdout_console()
    width = min(console.width, _WIDEST) if console.is_terminal else _WIDTH
    for line, style in page_lines(rule, width):
        console.print(Text(line, style=style), soft_wrap=True)


def page_lines(rule: "Rule", width: int) -> Iterator[tuple[str, str]]:
    """The lines of a rule's page with their style; commands stay whole, whatever the width."""
    from nsys_triage.cli.pages import need_line, record_command, threshold_line, wrapped
    from nsys_triage.rules.base import SECTIONS

    yield f"{rule.id}: {rule.title}", "bold"
    yield "", ""
    for line in wrapped(rule.page.summary, width):
        yield line, ""
    for head, prose in zip(SECTIONS, (rule.page.meaning, rule.page.actions, rule.page.caveat), strict=True):
        yield from _section(head, wrapped(prose, width, _INDENT))
    lines = []
    for name, threshold in rule.thresholds.items():
        lines += [" " * _INDENT + threshold_line(name, threshold)]
        lines += wrapped(threshold.why, width, 3 * _INDENT)
    if rule.thresholds:
        yield from _section("Thresholds", lines)
        yield (
            f"  To change it: nsys-triage report TRACE --threshold {rule.id}.{next(iter(rule.thresholds))}=VALUE",
            "dim",
        )
    yield from _section(
        "What it needs", wrapped("\n".join(f"- {need_line(need)}" for need in rule.needs), width, _INDENT)
    )
    if not rule.needs:
        yield "  Nothing but GPU work in the trace.", ""
    yield f"  To record: {record_command(rule)}", "dim"


def _section(head: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    yield "", ""
    yield head, "bold"
    for line in lines:
        yield line, ""
