"""Runs one rule on a trace that a test has built."""

from pathlib import Path

from nsys_triage.metrics.measure import Measurement, measure
from nsys_triage.metrics.window import parse_window
from nsys_triage.rules.base import Outcome
from nsys_triage.rules.registry import rule_named
from nsys_triage.rules.run import RuleSettings, run_rule
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import TraceBuilder


def measured(builder: TraceBuilder, folder: Path, window: str = "all") -> Measurement:
    """The built trace, written, loaded and measured."""
    path = builder.write(folder / "trace.sqlite")
    found = measure(
        load_trace(path, file=path.name, kind="sqlite", capture_version=None), parse_window(window)
    )
    if found is None:
        raise ValueError("the trace holds no device work")
    return found


def outcome(
    rule: str, builder: TraceBuilder, folder: Path, window: str = "all", **thresholds: float
) -> Outcome:
    """How the rule ends on the built trace; what the rule raises is raised."""
    named = rule_named(rule)
    if named is None:
        raise ValueError(f"no rule {rule}")
    settings = RuleSettings({(rule, name): value for name, value in thresholds.items()})
    return run_rule(named, measured(builder, folder, window), settings)
