"""Gates: which findings make a command end with exit code 1. They read the result alone."""

from collections.abc import Iterable, Sequence
from typing import Final

from nsys_triage.result.model import Check, Finding, Level, Result
from nsys_triage.rules.run import UNLISTED

LEVELS: Final[tuple[Level, ...]] = ("high", "medium", "low")


def fired(result: Result, gates: Iterable[str]) -> list[str]:
    """What the gates stop at, largest first: `input-pipeline (high)`; empty where nothing does.

    A gate is a severity, which a finding reaches or exceeds, or the name of a rule that has fired, whether or not it
    is among the findings that are listed.
    """
    wanted = set(gates)
    reached = [LEVELS.index(level) for level in LEVELS if level in wanted]
    found = [f for f in result.findings if f.rule in wanted or _at_least(f, reached)]
    listed = {finding.rule for finding in result.findings}
    hidden = [c for c in result.checks if c.rule in wanted - listed and c.note.startswith(UNLISTED)]
    return [f"{f.rule} ({f.severity})" for f in found] + [f"{check.rule} (not listed)" for check in hidden]


def _at_least(finding: Finding, reached: Sequence[int]) -> bool:
    return any(LEVELS.index(finding.severity) <= level for level in reached)


def undecided(result: Result, gates: Iterable[str]) -> list[Check]:
    """The checks named by gates that could not look: not run, or ended in an error."""
    wanted = set(gates)
    return [check for check in result.checks if check.rule in wanted and check.status in ("not_run", "error")]
