"""One measured trace under rules that are made for the test: how each ends, and what the report holds of it."""

import logging
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from nsys_triage.analyze import judged
from nsys_triage.metrics.measure import Measurement
from nsys_triage.result.codec import decode, encode
from nsys_triage.result.model import Evidence, Finding, Result, Stake
from nsys_triage.rules.base import Found, NotRun, Outcome, Page, Passed, Rule, Threshold
from nsys_triage.rules.context import NEEDS, Context
from nsys_triage.rules.registry import all_rules
from nsys_triage.rules.run import (
    MOST_FINDINGS,
    UNLISTED,
    Failed,
    RuleSettings,
    finding_of,
    ranked,
    run_rule,
    run_rules,
    settle,
)
from tests.builders.trace import TraceBuilder
from tests.rules.support import measured

NO_SETTINGS = RuleSettings()


@pytest.fixture(scope="module")
def m(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    """Ten kernels of 90 us, one every 100 us: 991 us, of which 81 are idle."""
    return measured(TraceBuilder().kernels(1_000, 10, every=100, length=90), tmp_path_factory.mktemp("trace"))


def a_rule(check: Callable[[Context], Outcome], name: str = "aa-planted", **more: object) -> Rule:
    return Rule(id=name, title="Planted", check=check, page=Page("a.", "b", "c", "d"), **more)  # type: ignore[arg-type]


def found(share: float = 0.2, high_ns: int = 1_000, **more: object) -> Found:
    stake = Stake(low_ns=0, high_ns=high_ns, share=share, basis="planted")
    return Found("t", stake, ("launch",), (), ("do",), "c", **more)  # type: ignore[arg-type]


def plant(monkeypatch: pytest.MonkeyPatch, *rules: Rule) -> None:
    monkeypatch.setattr("nsys_triage.analyze.all_rules", lambda: (*rules, *all_rules()))


def status(result: Result, rule: str = "aa-planted") -> tuple[str, str]:
    (check,) = [check for check in result.checks if check.rule == rule]
    return check.status, check.note


# --- a rule that is wrong ---------------------------------------------------------------------------------------


def raises(error: BaseException) -> Callable[[Context], Outcome]:
    def check(context: Context) -> Outcome:
        raise error

    return check


def panics(context: Context) -> Outcome:
    raise pl.exceptions.PanicException("index out of bounds")


WRONG: dict[str, tuple[Callable[[Context], object], str]] = {
    "division": (lambda context: 1 / 0, "ZeroDivisionError"),
    "key": (lambda context: context.thresholds["no such threshold"], "KeyError"),
    "column": (lambda context: context.m.pieces["no such column"], "ColumnNotFoundError"),
    "panic of Polars": (panics, "PanicException"),
    "nothing": (lambda context: None, "TypeError"),
    "text": (lambda context: "fine", "TypeError"),
    "share above 1": (lambda context: found(share=1.5), "ValidationError"),
    "share that is no number": (lambda context: found(share=float("nan")), "ValidationError"),
    "time that is no integer": (lambda context: found(high_ns=1.5), "ValidationError"),  # type: ignore[arg-type]
    "evidence that is no number": (
        lambda context: Found(
            "t",
            Stake(low_ns=0, high_ns=1, share=0.1, basis=""),
            (),
            (Evidence(label="a", value=float("nan"), unit="mhz"),),
            (),
            "",
        ),
        "ValidationError",
    ),
    "unknown confidence": (lambda context: found(confidence="certain"), "ValidationError"),
    "passed with a number": (lambda context: Passed(3), "ValidationError"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("check", "error"), WRONG.values(), ids=WRONG)
def test_a_wrong_rule_costs_its_own_row_and_the_report_stands(
    check: Callable[[Context], Outcome], error: str, m: Measurement, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = judged(m, NO_SETTINGS)
    plant(monkeypatch, a_rule(check))
    result = judged(m, NO_SETTINGS)
    assert status(result) == ("error", f"{error} in the rule: please report this.")
    rest = [check for check in result.checks if check.rule != "aa-planted"]
    assert rest == whole.checks
    assert all(check.status != "error" for check in rest)
    for block in Result.__struct_fields__:
        if block != "checks":
            assert getattr(result, block) == getattr(whole, block), block
    assert encode(decode(encode(result))) == encode(result)


def test_what_was_wrong_is_logged_with_the_place(m: Measurement, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        outcomes = run_rules([a_rule(raises(ValueError("the reason")))], m, NO_SETTINGS)
    assert outcomes == {"aa-planted": Failed("ValueError in the rule: please report this.")}
    assert "rule aa-planted failed" in caplog.text
    assert "ValueError: the reason" in caplog.text
    assert "Traceback" in caplog.text


def test_by_itself_a_rule_raises(m: Measurement) -> None:
    with pytest.raises(ZeroDivisionError):
        run_rule(a_rule(raises(ZeroDivisionError())), m, NO_SETTINGS)
    with pytest.raises(TypeError, match="a rule ended in NoneType"):
        run_rule(a_rule(lambda context: None), m, NO_SETTINGS)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_who_stops_the_program_stops_it(error: type[BaseException], m: Measurement) -> None:
    with pytest.raises(error):
        run_rules([a_rule(raises(error()))], m, NO_SETTINGS)


# --- needs ------------------------------------------------------------------------------------------------------


def test_what_was_not_recorded_is_said_with_the_option(
    m: Measurement, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = raises(AssertionError("a rule without what it needs is not asked"))
    plant(monkeypatch, a_rule(never, needs=("api", "osrt", "scheduling")))
    said = "Not recorded: OS runtime calls; record with nsys profile --trace=osrt."
    assert status(judged(m, NO_SETTINGS)) == ("not_run", said)


def test_where_no_option_would_record_it(m: Measurement, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, a_rule(raises(AssertionError()), needs=("several_gpus",)))
    said = "Does not apply: a second GPU: the trace has one."
    assert status(judged(m, NO_SETTINGS)) == ("not_run", said)


@pytest.mark.parametrize(
    "need", [need for need in NEEDS if need not in ("api", "kernels", "memcpys", "gpu_limits")]
)
def test_every_need_is_looked_at(need: str, m: Measurement) -> None:
    assert run_rule(a_rule(raises(AssertionError()), needs=(need,)), m, NO_SETTINGS) == NotRun(*NEEDS[need])


def test_a_rule_runs_where_everything_it_needs_is_there(m: Measurement) -> None:
    rule = a_rule(lambda context: Passed("0 of 3"), needs=("api", "kernels", "memcpys", "gpu_limits"))
    assert run_rule(rule, m, NO_SETTINGS) == Passed("0 of 3")


def test_a_rule_may_say_itself_what_is_missing(m: Measurement, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, a_rule(lambda context: NotRun("launches", "--trace=cuda")))
    said = "Not recorded: launches; record with nsys profile --trace=cuda."
    assert status(judged(m, NO_SETTINGS)) == ("not_run", said)


# --- thresholds -------------------------------------------------------------------------------------------------


def test_thresholds_are_the_defaults_unless_set(m: Measurement) -> None:
    seen: list[dict[str, float]] = []

    def check(context: Context) -> Outcome:
        seen.append(dict(context.thresholds))
        return Passed("fine")

    shares = {"share": Threshold(0.05, "share", "why"), "length": Threshold(3, "ns", "why")}
    rule, other = a_rule(check, thresholds=shares), a_rule(check, "bb-planted", thresholds=shares)
    settings = RuleSettings({("aa-planted", "share"): 0.2, ("aa-planted", "unknown"): 1.0})
    run_rules([rule, other], m, settings)
    assert seen == [{"share": 0.2, "length": 3}, {"share": 0.05, "length": 3}]


def test_a_threshold_of_a_user_decides(tmp_path: Path) -> None:
    # 10 us between kernels of 90, in launch calls: a tenth of the time is idle
    trace = TraceBuilder()
    for start in range(1_000, 3_000, 100):
        trace.kernel(start, start + 90, call=(start - 11, start - 1))
    slow = measured(trace, tmp_path)
    share = Context(slow, {}).share("launch")
    assert 0.05 < share < 0.1
    assert status(judged(slow, NO_SETTINGS), "launch-overhead")[0] == "finding"
    for threshold, ends in ((share, "finding"), (share + 1e-9, "passed")):
        settings = RuleSettings({("launch-overhead", "share"): threshold})
        assert status(judged(slow, settings), "launch-overhead")[0] == ends


# --- findings and checks ----------------------------------------------------------------------------------------


def test_a_finding_is_what_the_rule_said(m: Measurement) -> None:
    stake = Stake(low_ns=1, high_ns=2, share=0.05, basis="planted")
    evidence = (Evidence(label="a", value=1, unit="count"),)
    outcome = Found(
        "title", stake, ("launch", "queued"), evidence, ("one", "two"), "caveat", "medium", None, "gpu1"
    )
    assert finding_of("aa-planted", outcome) == Finding(
        rule="aa-planted",
        title="title",
        severity="medium",
        confidence="medium",
        stake=stake,
        gpu="gpu1",
        where=None,
        evidence=list(evidence),
        causes=["launch", "queued"],
        actions=["one", "two"],
        caveat="caveat",
    )


def test_findings_are_ordered_by_severity_then_stake_then_rule() -> None:
    outcomes = {
        "low-large": found(0.04, 9_000),
        "high-small": found(0.15, 10),
        "medium-b": found(0.05, 500),
        "medium-a": found(0.06, 500),
        "medium-large": found(0.05, 501),
        "high-large": found(0.99, 11),
    }
    order = ["high-large", "high-small", "medium-large", "medium-a", "medium-b", "low-large"]
    findings, checks = settle(outcomes)
    assert [finding.rule for finding in findings] == order
    assert [check.rule for check in checks] == sorted(outcomes)
    backwards = settle(dict(reversed(outcomes.items())))
    assert backwards == (findings, checks)
    assert ranked(list(reversed(findings))) == findings


def test_at_most_eight_findings_and_the_rest_is_said() -> None:
    # the largest have the last names, so that names alone would choose others
    outcomes = {f"rule-{number:02}": found(0.2, number) for number in range(11)}
    findings, checks = settle(outcomes)
    assert MOST_FINDINGS == len(findings) == 8
    assert [finding.rule for finding in findings] == [f"rule-{number:02}" for number in range(10, 2, -1)]
    assert [check.rule for check in checks] == sorted(outcomes)
    assert [check.status for check in checks] == ["passed"] * 3 + ["finding"] * 8
    assert {check.note for check in checks[:3]} == {f"{UNLISTED}t"}
    assert {check.note for check in checks[3:]} == {"t"}
    eight = settle(dict(list(outcomes.items())[:8]))
    assert {check.status for check in eight[1]} == {"finding"}


def test_a_report_holds_eight_findings_and_all_checks(
    m: Measurement, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"zz-planted-{number:02}" for number in range(10)]
    plant(monkeypatch, *(a_rule(lambda context: found(), name) for name in names))
    result = judged(m, NO_SETTINGS)
    assert [finding.rule for finding in result.findings] == names[:8]
    assert [check.rule for check in result.checks] == [*(rule.id for rule in all_rules()), *names]
    fired = {check.rule for check in result.checks if check.status == "finding"}
    assert fired == {finding.rule for finding in result.findings}
    assert [status(result, name) for name in names[8:]] == [("passed", f"{UNLISTED}t")] * 2


def test_every_way_to_end_has_its_row() -> None:
    _, checks = settle(
        {
            "e": Failed("bug"),
            "d": NotRun("steps"),
            "c": NotRun("samples", "--sample=process-tree"),
            "b": Passed("0 %"),
            "a": found(),
        }
    )
    assert [(check.rule, check.status, check.note) for check in checks] == [
        ("a", "finding", "t"),
        ("b", "passed", "0 %"),
        ("c", "not_run", "Not recorded: samples; record with nsys profile --sample=process-tree."),
        ("d", "not_run", "Does not apply: steps."),
        ("e", "error", "bug"),
    ]
    assert settle({}) == ([], [])
