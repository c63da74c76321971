"""`nsys-triage rules`: all rules in a table."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from nsys_triage.cli.console import stdout_console
from nsys_triage.errors import UsageError

if TYPE_CHECKING:
    from nsys_triage.rules.base import Rule

HEADS: Final = ("rule", "what it says", "thresholds", "needs")


@click.command("rules")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print the rules and their whole pages as JSON.")
def command(markdown: bool, as_json: bool) -> None:
    """List all rules: what each says, its thresholds, what it needs.

    `nsys-triage explain RULE` shows the page of one rule. Without options the table has one line for each
    rule, which grep and cut can read; on a terminal it is fitted to its width.
    """
    from nsys_triage.rules.registry import all_rules

    if markdown and as_json:
        raise UsageError("--markdown and --json cannot be printed together: leave one of them out.")
    rules = all_rules()
    if as_json:
        click.echo(json.dumps([rule_object(rule) for rule in rules], indent=1))
    elif markdown:
        click.echo(markdown_table(rules), nl=False)
    elif sys.stdout.isatty():
        _print_table(rules)
    else:
        click.echo(plain_table(rules), nl=False)


def cells(rule: "Rule") -> tuple[str, str, str, str]:
    """A rule as a row of the table: its name, first line, thresholds, needs."""
    from nsys_triage.cli.pages import NO_NEEDS, need_text, threshold_text

    thresholds = "; ".join(threshold_text(name, threshold) for name, threshold in rule.thresholds.items())
    needs = "; ".join(need_text(need) for need in rule.needs)
    return rule.id, rule.page.summary, thresholds or "-", needs or NO_NEEDS


def plain_table(rules: Iterable["Rule"]) -> str:
    """The table as text, columns padded, with a final newline."""
    rows = [HEADS, *(cells(rule) for rule in rules)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS))]
    return "".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"
        for row in rows
    )


def markdown_table(rules: Iterable["Rule"]) -> str:
    """The table as Markdown, as the README has it, with a final newline."""
    lines = [f"| {' | '.join(HEADS)} |", f"|{'---|' * len(HEADS)}"]
    for rule in rules:
        name, *rest = (cell.replace("|", "\\|") for cell in cells(rule))
        lines.append(f"| `{name}` | {' | '.join(rest)} |")
    return "\n".join(lines) + "\n"


def rule_object(rule: "Rule") -> dict[str, Any]:
    """A rule and its page as JSON has it."""
    from nsys_triage.cli.pages import need_text
    from nsys_triage.rules.context import NEEDS

    page = rule.page
    return {
        "rule": rule.id,
        "title": rule.title,
        "summary": page.summary,
        "meaning": page.meaning,
        "actions": page.actions,
        "caveat": page.caveat,
        "thresholds": [
            {"name": name, "default": t.default, "unit": t.unit, "why": t.why}
            for name, t in rule.thresholds.items()
        ],
        "needs": [{"what": need_text(need), "nsys_option": NEEDS[need][1] or None} for need in rule.needs],
    }


def _print_table(rules: Sequence["Rule"]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in HEADS:
        table.add_column(head, no_wrap=head == "rule", header_style="bold")
    for rule in rules:
        table.add_row(*map(Text, cells(rule)))
    stdout_console().print(table)
