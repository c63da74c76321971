from msgspec.structs import replace

from nsys_triage.result.model import Check
from nsys_triage.rules.base import Found
from nsys_triage.rules.gates import fired, undecided
from nsys_triage.rules.run import MOST_FINDINGS, settle
from tests.render import results
from tests.render.blocks import finding

RESULT = results.baseline(
    findings=[
        finding("input-pipeline", severity="high"),
        finding("host-sync", severity="medium"),
        finding("copy-bound", severity="low"),
    ]
)


def test_severities_count_what_is_at_least_as_severe() -> None:
    assert fired(RESULT, ["high"]) == ["input-pipeline (high)"]
    assert fired(RESULT, ["medium"]) == ["input-pipeline (high)", "host-sync (medium)"]
    assert fired(RESULT, ["low"]) == ["input-pipeline (high)", "host-sync (medium)", "copy-bound (low)"]
    assert fired(RESULT, ["high", "medium"]) == fired(RESULT, ["medium"])
    lesser = replace(RESULT, findings=RESULT.findings[1:])
    assert fired(lesser, ["high"]) == []


def test_rules() -> None:
    assert fired(RESULT, ["copy-bound"]) == ["copy-bound (low)"]
    assert fired(RESULT, ["wave-tail"]) == []
    assert fired(RESULT, ["copy-bound", "high"]) == ["input-pipeline (high)", "copy-bound (low)"]
    assert fired(RESULT, []) == []
    assert fired(replace(RESULT, findings=[]), ["low", "copy-bound"]) == []


def test_a_rule_that_fired_but_is_not_listed() -> None:
    stakes = [
        replace(RESULT.findings[0].stake, high_ns=1_000 - number) for number in range(MOST_FINDINGS + 1)
    ]
    found = [Found("t", stake, (), (), (), "") for stake in stakes]
    findings, checks = settle({f"rule-{number}": outcome for number, outcome in enumerate(found)})
    result = replace(RESULT, findings=findings, checks=checks)
    assert len(findings) == MOST_FINDINGS
    assert fired(result, ["rule-0"]) == ["rule-0 (high)"]
    assert fired(result, ["rule-8"]) == ["rule-8 (not listed)"]


def test_checks_that_could_not_look() -> None:
    checks = [
        Check(rule="a", status="not_run", note=""),
        Check(rule="b", status="error", note=""),
        Check(rule="c", status="passed", note=""),
    ]
    result = replace(RESULT, checks=checks)
    assert [check.rule for check in undecided(result, ["a", "b", "c", "high"])] == ["a", "b"]
    assert undecided(result, ["low"]) == []
