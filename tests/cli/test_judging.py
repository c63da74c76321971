import json
from pathlib import Path

import pytest

from nsys_triage.metrics.window import WindowRequest
from nsys_triage.result.model import (
    Check,
    Finding,
    Stake,
)
from nsys_triage.rules.registry import all_rules
from nsys_triage.rules.run import RuleSettings
from tests.builders.samples import FOLDER
from tests.cli.conftest import Command
from tests.cli.stages import Stages, files


def finding(rule: str, severity: str) -> Finding:
    return Finding(
        rule=rule,
        title=f"{rule} costs much",
        severity=severity,  # type: ignore[arg-type]
        confidence="high",
        stake=Stake(low_ns=1, high_ns=2, share=0.1, basis=""),
        gpu=None,
        where=None,
        evidence=[],
        causes=[],
        actions=[],
        caveat="",
    )


def test_thresholds_of_options_and_file(trace: Path, stages: Stages, command: Command) -> None:
    config = Path("triage.toml")
    config.write_text(
        'window = "all"\n[thresholds.host-sync]\nshare = 0.1\n[thresholds.copy-bound]\nshare = 0.2\n'
    )
    ask = ["report", trace, "--json", "-", "--config", config]
    assert command(*ask)[0] == 0
    assert stages.settings == RuleSettings({("host-sync", "share"): 0.1, ("copy-bound", "share"): 0.2})
    assert stages.calls[-1][1] == WindowRequest(mode="all")
    given = ["--threshold", "host-sync.share=0.3", "--threshold", "host-sync.share=0.4", "--window", "auto"]
    assert command(*ask, *given)[0] == 0
    assert stages.settings == RuleSettings({("host-sync", "share"): 0.4, ("copy-bound", "share"): 0.2})
    assert stages.calls[-1][1] == WindowRequest(mode="auto")
    assert command("report", trace, "--json", "-")[0] == 0
    assert stages.settings == RuleSettings()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--threshold", "host-snyc.share=1"], "there is no rule 'host-snyc': did you mean host-sync"),
        (["--threshold", "host-sync.share=2"], "2.0 is out of range: host-sync.share is a share above 0"),
        (["--fail-on", "hihg"], "--fail-on hihg: there is no level 'hihg': did you mean high?"),
        (["--config", "none.toml"], "--config none.toml cannot be read: no such file or directory"),
        (["--config", "."], "cannot be read: is a directory"),
        (["--config", "bad.toml"], "bad.toml, line 2: thresholds.host-sync.shar: host-sync has no threshold"),
        (["--config", "window.toml"], "window.toml, line 1: window: 'no' is neither auto"),
        (["--config", "binary.toml"], "--config binary.toml is no text in TOML"),
        (["--config", "/dev/zero"], "--config zero is no text in TOML"),
    ],
)
def test_what_is_wrong_in_options_is_said_before_any_trace_is_read(
    options: list[str], sentence: str, stages: Stages, command: Command
) -> None:
    Path("bad.toml").write_text("[thresholds.host-sync]\nshar = 1\n")
    Path("window.toml").write_text('window = "no"\n')
    Path("binary.toml").write_bytes(b"SQLite format 3\0\xff\xfe")
    code, out, err = command("report", "no-such-file.nsys-rep", "--json", "-", *options)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_the_configuration_is_never_overwritten(trace: Path, stages: Stages, command: Command) -> None:
    Path("a.toml").write_text("")
    code, _, err = command("report", trace, "--config", "a.toml", "-o", "a.toml", "--force")
    assert code == 2
    assert "a.toml is an input and cannot be the output too" in err


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        ([], 0),
        (["high"], 0),
        (["medium"], 1),
        (["low"], 1),
        (["host-sync"], 1),
        (["copy-bound"], 1),
        (["input-pipeline"], 0),
        (["input-pipeline", "medium"], 1),
        (["high", "input-pipeline"], 0),
    ],
)
def test_gates(gates: list[str], code: int, trace: Path, stages: Stages, command: Command) -> None:
    stages.findings = [finding("host-sync", "medium"), finding("copy-bound", "low")]
    options = [part for gate in gates for part in ("--fail-on", gate)]
    got, out, err = command("report", trace, "--json", "a.json", *options)
    assert got == code
    assert out == "summary of my job.v2.sqlite in None\n"
    assert files() == ["a.json"]
    assert err.startswith(f"nsys-triage: failed on {' or '.join(gates)}: ") == bool(code)
    assert command("report", trace, "-q", "--json", "-", *options)[0] == code


def test_a_gate_says_what_stopped_it(trace: Path, stages: Stages, command: Command) -> None:
    stages.findings = [finding("host-sync", "medium"), finding("copy-bound", "low")]
    code, out, err = command("report", trace, "-q", "--fail-on", "low")
    assert (code, out) == (1, "")
    assert err == "nsys-triage: failed on low: host-sync (medium), copy-bound (low).\n"


def test_gates_of_the_file_and_of_options(trace: Path, stages: Stages, command: Command) -> None:
    stages.findings = [finding("host-sync", "medium")]
    Path("a.toml").write_text('fail_on = ["low"]')
    ask = ["report", trace, "--json", "-", "--config", "a.toml"]
    assert command(*ask)[0] == 1
    assert command(*ask, "--fail-on", "high")[0] == 0


def test_a_gate_that_cannot_be_decided_is_named(trace: Path, stages: Stages, command: Command) -> None:
    stages.checks = [Check(rule="host-sync", status="not_run", note="Not recorded: calls.")]
    ask = ["report", trace, "--json", "a.json", "--force", "--fail-on", "host-sync"]
    assert command(*ask)[::2] == (
        0,
        "nsys-triage: --fail-on host-sync could not be decided: Not recorded: calls.\n",
    )
    assert command(*ask, "-q") == (0, "", "")


def test_cannot_judge_is_3_whatever_the_gates(trace: Path, stages: Stages, command: Command) -> None:
    stages.status = "cannot_judge"
    stages.checks = [Check(rule="host-sync", status="not_run", note="No GPU work was recorded.")]
    code, _, err = command("report", trace, "--fail-on", "low", "--fail-on", "host-sync")
    assert (code, err) == (3, "")
    assert files() == ["my job.v2.triage.html"]


def test_on_a_real_trace(command: Command) -> None:
    """A third of the time of `item_sync` is lost to waits for values that are read in every step."""
    ask = ["report", FOLDER / "item_sync.sqlite", "--format", "sarif", "--fail-on", "host-sync"]
    code, out, err = command(*ask)
    (run,) = json.loads(out)["runs"]
    assert code == 1
    assert err.startswith("nsys-triage: failed on host-sync: host-sync (high")
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [rule.id for rule in all_rules()]
    assert "host-sync" in [result["ruleId"] for result in run["results"]]
    code, out, err = command(*ask, "--threshold", "host-sync.share=0.5")
    assert (code, err) == (0, "")
    assert "host-sync" not in [result["ruleId"] for result in json.loads(out)["runs"][0]["results"]]


@pytest.mark.parametrize("lowest", [True, False])
def test_no_threshold_makes_a_rule_fail(lowest: bool, command: Command) -> None:
    options = [
        f"--threshold={rule.id}.{name}={_extreme(threshold.unit, lowest)}"
        for rule in all_rules()
        for name, threshold in rule.thresholds.items()
    ]
    for name in ("item_sync", "healthy"):
        _, out, _ = command("report", FOLDER / f"{name}.sqlite", "--json", "-", *options)
        assert [check for check in json.loads(out)["checks"] if check["status"] == "error"] == []


def _extreme(unit: str, lowest: bool) -> float:
    if unit == "share":
        return 1e-300 if lowest else 1
    return 0 if lowest else 1e300
