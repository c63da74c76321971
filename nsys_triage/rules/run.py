"""Runs every rule on a measured trace. A rule that raises costs its own row, never the report."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import polars as pl

from nsys_triage.metrics.measure import Measurement
from nsys_triage.result.model import Check, Finding, Gpu, Ranks
from nsys_triage.rules.base import Found, NotRun, Outcome, Passed, Rule, severity_of
from nsys_triage.rules.context import NEEDS, Context

LOG: Final = logging.getLogger(__name__)
MOST_FINDINGS: Final = 8
UNLISTED: Final = (
    f"Smaller than the {MOST_FINDINGS} findings that are listed: "  # begins the note of a rule that fired
)
_LEVELS: Final = {"high": 0, "medium": 1, "low": 2}
_CHECK: Final = msgspec.json.Decoder(Check)
_FINDING: Final = msgspec.json.Decoder(Finding)


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """What a user may set: thresholds by (rule, name)."""

    thresholds: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def of(self, rule: Rule) -> dict[str, float]:
        """The thresholds of a rule, the user's where given."""
        return {name: self.thresholds.get((rule.id, name), t.default) for name, t in rule.thresholds.items()}


@dataclass(frozen=True, slots=True)
class Failed:
    """The rule raised: a bug; `note` names the kind of error."""

    note: str


@dataclass(frozen=True, slots=True)
class JobView:
    """All ranks of a job: what rules with `job` are shown beside one trace."""

    ranks: Ranks
    gpus: tuple[Gpu, ...] | None  # None where a rule looks at one trace, as one of a job's
    alike: float | None = (
        None  # least share of a rank's kernel time in kernels that all run; None: of one trace
    )


def run_rule(
    rule: Rule, measured: Measurement, settings: RuleSettings, job: JobView | None = None
) -> Outcome:
    """One rule's outcome; NotRun where something that it needs was not recorded. Raises what the rule raises."""
    seen = (job.ranks, job.gpus, job.alike) if job is not None else (None, None, None)
    context = Context(measured, settings.of(rule), *seen)
    for need in rule.needs:
        if not context.has(need):
            missing, option = NEEDS[need]
            return NotRun(missing, option)
    return _valid(rule.check(context))


def _valid(outcome: Outcome) -> Outcome:
    """The outcome, where a result can hold it.

    Raises TypeError for what is no outcome, `msgspec.ValidationError` for one that breaks the contract: text in place
    of a number, a share above 1, a number that is none.
    """
    if not isinstance(outcome, Outcome):
        raise TypeError(f"a rule ended in {type(outcome).__name__}")
    _CHECK.decode(msgspec.json.encode(_check("", outcome, listed=True)))
    if isinstance(outcome, Found):
        _FINDING.decode(msgspec.json.encode(finding_of("", outcome)))
    return outcome


def run_rules(
    rules: Iterable[Rule], measured: Measurement, settings: RuleSettings, job: JobView | None = None
) -> dict[str, Outcome | Failed]:
    """The outcome of every rule by identifier."""
    outcomes: dict[str, Outcome | Failed] = {}
    for rule in rules:
        try:
            outcomes[rule.id] = run_rule(rule, measured, settings, job)
        except (Exception, pl.exceptions.PanicException) as error:  # a panic of Polars is no Exception
            LOG.warning("rule %s failed", rule.id, exc_info=True)
            outcomes[rule.id] = Failed(f"{type(error).__name__} in the rule: please report this.")
    return outcomes


def finding_of(rule: str, found: Found) -> Finding:
    """The finding as the contract has it; its severity comes from the share at stake."""
    return Finding(
        rule=rule,
        title=found.title,
        severity=severity_of(found.stake.share),
        confidence=found.confidence,
        stake=found.stake,
        gpu=found.gpu,
        where=found.where,
        evidence=list(found.evidence),
        causes=list(found.causes),
        actions=list(found.actions),
        caveat=found.caveat,
    )


def ranked(findings: Sequence[Finding]) -> list[Finding]:
    """Findings by severity, then by stake, then by rule."""
    return sorted(findings, key=lambda f: (_LEVELS[f.severity], -f.stake.high_ns, f.rule))


def settle(outcomes: Mapping[str, Outcome | Failed]) -> tuple[list[Finding], list[Check]]:
    """The findings (at most eight, the largest) and how every rule ended, by identifier."""
    findings = ranked([finding_of(rule, o) for rule, o in outcomes.items() if isinstance(o, Found)])
    listed = {finding.rule for finding in findings[:MOST_FINDINGS]}
    checks = [_check(rule, outcome, rule in listed) for rule, outcome in sorted(outcomes.items())]
    return findings[:MOST_FINDINGS], checks


def _check(rule: str, outcome: Outcome | Failed, listed: bool) -> Check:
    match outcome:
        case Found(title=title) if listed:
            return Check(rule=rule, status="finding", note=title)
        case Found(title=title):
            return Check(rule=rule, status="passed", note=f"{UNLISTED}{title}")
        case Passed(note=note):
            return Check(rule=rule, status="passed", note=note)
        case NotRun(missing=missing, option=option):
            record = f"; record with nsys profile {option}" if option else ""
            return Check(
                rule=rule,
                status="not_run",
                note=f"Not recorded: {missing}{record}." if option else f"Does not apply: {missing}.",
            )
        case Failed(note=note):
            return Check(rule=rule, status="error", note=note)
