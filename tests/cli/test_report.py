import io
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from rich.console import Console

from nsys_triage.cli import console as console_module
from nsys_triage.ingest import Source
from nsys_triage.metrics.window import WindowRequest
from nsys_triage.result.codec import decode, encode
from nsys_triage.result.model import (
    Capture,
    Check,
    Counts,
    DroppedByReason,
    DroppedRows,
    Finding,
    Result,
    Stake,
    Verdict,
)
from nsys_triage.rules.run import RuleSettings
from tests.cli.conftest import Command
from tests.tools.fake_nsys import FakeNsys
from tests.tools.small_files import REPORT_2023, make_export, snapshot


def result_of(file: str, status: str = "ok") -> Result:
    nothing = Counts(**dict.fromkeys(Counts.__struct_fields__, 0))
    dropped = DroppedRows(
        total=0, by_reason=DroppedByReason(**dict.fromkeys(DroppedByReason.__struct_fields__, 0))
    )
    capture = Capture(
        file=file,
        kind="sqlite",
        exporter_version=None,
        capture_version=None,
        schema_version=None,
        started_utc=None,
        duration_ns=None,
        window=None,
        counts=nothing,
        dropped_rows=dropped,
        launch_match=None,
        warnings=[],
    )
    verdict = Verdict(limiter=None, sentence="Nothing ran on a GPU.", next_action="record again")
    return Result(
        schema="nsys-triage/result/1",
        tool_version="0",
        status=status,  # type: ignore[arg-type]
        capture=capture,
        gpus=[],
        findings=[],
        checks=[],
        verdict=verdict,
    )


class Stages:
    """The stages after ingest, replaced: what they were given, and what they answer."""

    def __init__(self) -> None:
        self.status = "ok"
        self.findings: list[Finding] = []
        self.checks: list[Check] = []
        self.calls: list[tuple[list[Source], WindowRequest]] = []
        self.settings: RuleSettings | None = None
        self.commands: list[str] = []

    def analyze(
        self, sources: list[Source], window: WindowRequest, progress: object, settings: RuleSettings
    ) -> Result:
        self.calls.append((sources, window))
        self.settings = settings
        result = result_of(sources[0].file, self.status)
        return replace(result, findings=self.findings, checks=self.checks)

    @staticmethod
    def render_html(result: Result) -> str:
        return f"<!doctype html>\n<title>{result.capture.file} ä</title>"

    def render_markdown(self, result: Result, command: str) -> str:
        self.commands.append(command)
        return f"**{result.capture.file} ä**\n"

    @staticmethod
    def print_summary(result: Result, console: Console, report: str | None) -> None:
        console.print(f"summary of {result.capture.file} in {report}")


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> Stages:
    stages = Stages()
    monkeypatch.setattr("nsys_triage.analyze.analyze", stages.analyze)
    monkeypatch.setattr("nsys_triage.render.html.render_html", stages.render_html)
    monkeypatch.setattr("nsys_triage.render.markdown.render_markdown", stages.render_markdown)
    monkeypatch.setattr("nsys_triage.render.terminal.print_summary", stages.print_summary)
    return stages


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    folder = tmp_path / "user folder"
    folder.mkdir()
    return make_export(folder / "my job.v2.sqlite")


def files() -> list[str]:
    return sorted(path.name for path in Path.cwd().iterdir())


def test_html_here_and_a_summary(trace: Path, stages: Stages, command: Command) -> None:
    before = snapshot(trace.parent)
    assert command("report", trace) == (0, "summary of my job.v2.sqlite in my job.v2.triage.html\n", "")
    assert files() == ["my job.v2.triage.html"]
    page = Path("my job.v2.triage.html").read_text(encoding="utf-8")
    assert page == "<!doctype html>\n<title>my job.v2.sqlite ä</title>"
    assert snapshot(trace.parent) == before
    ((sources, window),) = stages.calls
    assert [source.path for source in sources] == [trace]
    assert window == WindowRequest(mode="auto")


def test_html_elsewhere_is_named_without_its_folder(
    trace: Path, tmp_path: Path, stages: Stages, command: Command
) -> None:
    code, out, err = command("report", trace, "-o", tmp_path / "out.html", "--window", "all")
    assert (code, out, err) == (0, "summary of my job.v2.sqlite in out.html\n", "")
    assert (tmp_path / "out.html").exists()
    assert files() == []
    assert stages.calls[0][1] == WindowRequest(mode="all")


def test_json_alone_on_stdout(trace: Path, stages: Stages, command: Command) -> None:
    code, out, err = command("report", trace, "--json", "-")
    assert (code, err) == (0, "")
    assert out.encode() == encode(result_of("my job.v2.sqlite"))
    assert json.loads(out)["status"] == "ok"
    assert files() == []


def test_json_on_stdout_and_html(trace: Path, stages: Stages, command: Command) -> None:
    code, out, err = command("report", trace, "--json", "-", "-o", "a.html")
    assert (code, err) == (0, "")
    assert json.loads(out)["status"] == "ok"
    assert files() == ["a.html"]


def test_json_file_alone(trace: Path, stages: Stages, command: Command) -> None:
    assert command("report", trace, "--json", "a.json") == (0, "summary of my job.v2.sqlite in None\n", "")
    assert files() == ["a.json"]
    assert decode(Path("a.json").read_bytes()) == result_of("my job.v2.sqlite")


def test_quiet(trace: Path, stages: Stages, command: Command) -> None:
    assert command("report", trace, "-q") == (0, "", "")
    assert files() == ["my job.v2.triage.html"]
    assert command("report", trace, "-q", "--json", "-")[1] != ""


def test_verbose_says_what_is_done(tmp_path: Path, fake: FakeNsys, stages: Stages, command: Command) -> None:
    report = tmp_path / "job.nsys-rep"
    report.write_bytes(REPORT_2023)
    code, out, err = command("report", report, "--nsys", fake.path, "-v")
    assert (code, out) == (0, "summary of job.nsys-rep in job.triage.html\n")
    assert err == "nsys-triage: job.nsys-rep: exporting with nsys 2023.4.4.54\n"
    err = command("report", report, "--nsys", fake.path, "-v", "--force")[2]
    assert err == "nsys-triage: job.nsys-rep: using the export in the cache\n"
    assert command("report", report, "--nsys", fake.path, "--force")[2] == ""


@pytest.mark.parametrize("output", [["-q"], ["--json", "-"], ["--json", "a.json"], ["-o", "a.html"]])
def test_cannot_judge_is_3_and_still_written(
    output: list[str], trace: Path, stages: Stages, command: Command
) -> None:
    stages.status = "cannot_judge"
    code, out, err = command("report", trace, *output)
    assert (code, err) == (3, "")
    if "-" in output:
        assert json.loads(out)["status"] == "cannot_judge"
    else:
        assert len(files()) == 1


@pytest.mark.parametrize(
    ("arguments", "existing"),
    [([], "my job.v2.triage.html"), (["-o", "a.html"], "a.html"), (["--json", "a.json"], "a.json")],
)
def test_nothing_is_overwritten_and_no_work_is_done(
    arguments: list[str], existing: str, trace: Path, stages: Stages, command: Command
) -> None:
    Path(existing).write_text("mine")
    code, out, err = command("report", trace, *arguments)
    assert (code, out) == (2, "")
    assert err == (
        f"nsys-triage: {existing} exists already: choose another name, or overwrite it with --force.\n"
    )
    assert stages.calls == []
    assert Path(existing).read_text() == "mine"
    assert command("report", trace, *arguments, "--force")[0] == 0
    assert Path(existing).read_text() != "mine"


def test_input_is_never_overwritten(trace: Path, stages: Stages, command: Command) -> None:
    before = snapshot(trace.parent)
    for option in ("-o", "--json"):
        code, _, err = command("report", trace, option, trace, "--force")
        assert code == 2
        assert "is an input and cannot be the output too" in err
    assert snapshot(trace.parent) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-o", "-"], "-o - prints a text on stdout: add --format markdown, json, sarif or junit"),
        (["-o", "-", "--format", "html"], "HTML needs a file's name"),
        (["-o", "-", "--format", "sarif", "--json", "-"], "sarif and JSON cannot both go to stdout"),
        (["--format", "markdown", "--json", "-"], "markdown and JSON cannot both go to stdout"),
        (["--format", "pdf"], "'pdf' is not one of 'html', 'json', 'markdown', 'sarif', 'junit'"),
        (["-o", "a.json", "--json", "./a.json"], "cannot be both"),
        (["-o", "a", "--json", "a"], "cannot be both"),
        (["-o", "no/folder/a.html"], "its folder does not exist"),
        (["--window", "bad"], "--window 'bad' is neither auto, all, START:END"),
        (["--keep-sqlite", "kept.sqlite"], "is an export already"),
    ],
)
def test_what_cannot_be_done(
    arguments: list[str], sentence: str, trace: Path, stages: Stages, command: Command
) -> None:
    code, out, err = command("report", trace, *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert files() == []


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


@pytest.mark.parametrize(
    ("output", "begins"),
    [
        (["-o", "a.md"], "**my job.v2.sqlite ä**"),
        (["-o", "a.MARKDOWN"], "**my job.v2.sqlite ä**"),
        (["-o", "a.json"], '{\n "schema": "nsys-triage/result/1"'),
        (["-o", "a.sarif"], '{\n "$schema": "https://json.schemastore.org/sarif-2.1.0.json"'),
        (["-o", "a.xml"], '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites'),
        (["-o", "a.html"], "<!doctype html>"),
        (["-o", "a"], "<!doctype html>"),
        (["-o", "a.txt", "--format", "markdown"], "**my job.v2.sqlite ä**"),
        (["-o", "a.json", "--format", "html"], "<!doctype html>"),
    ],
)
def test_format_of_a_file(
    output: list[str], begins: str, trace: Path, stages: Stages, command: Command
) -> None:
    code, out, err = command("report", trace, *output)
    assert (code, out, err) == (0, f"summary of my job.v2.sqlite in {output[1]}\n", "")
    assert files() == [output[1]]
    assert Path(output[1]).read_text(encoding="utf-8").startswith(begins)


@pytest.mark.parametrize("output", [[], ["-o", "-"]])
def test_text_formats_go_to_stdout_alone(
    output: list[str], trace: Path, stages: Stages, command: Command
) -> None:
    assert command("report", trace, "--format", "markdown", *output) == (0, "**my job.v2.sqlite ä**\n", "")
    assert command("report", trace, "-q", "--format", "json", *output)[1].encode() == encode(
        result_of("my job.v2.sqlite")
    )
    assert json.loads(command("report", trace, "--format", "sarif", *output)[1])["version"] == "2.1.0"
    root = ElementTree.fromstring(command("report", trace, "--format", "junit", *output)[1])  # noqa: S314
    assert root.tag == "testsuites"
    assert files() == []


def test_format_html_alone_has_the_usual_name(trace: Path, stages: Stages, command: Command) -> None:
    assert command("report", trace, "--format", "html")[1] == (
        "summary of my job.v2.sqlite in my job.v2.triage.html\n"
    )
    assert command("report", trace, "--format", "html", "--json", "a.json", "--force")[0] == 0
    assert files() == ["a.json", "my job.v2.triage.html"]


def test_markdown_on_stdout_and_json_in_a_file(trace: Path, stages: Stages, command: Command) -> None:
    code, out, err = command("report", trace, "--format", "markdown", "--json", "a.json")
    assert (code, out, err) == (0, "**my job.v2.sqlite ä**\n", "")
    assert files() == ["a.json"]


def test_the_command_that_made_it_names_no_folder(
    trace: Path, tmp_path: Path, stages: Stages, command: Command
) -> None:
    config = tmp_path / "my config.toml"
    config.write_text("")
    options = ["--window", "nvtx:a b", "--threshold", "host-sync.share=0.2", "--config", config]
    assert command("report", trace, "--format", "markdown", "-o", tmp_path / "a.md", *options)[0] == 0
    assert stages.commands == [
        "nsys-triage report 'my job.v2.sqlite' --window 'nvtx:a b' --threshold host-sync.share=0.2 "
        "--config 'my config.toml' --format markdown"
    ]


def test_thresholds_of_options_and_file(trace: Path, stages: Stages, command: Command) -> None:
    config = Path("triage.toml")
    config.write_text('window = "all"\n[thresholds.host-sync]\nshare = 0.1\n[thresholds.copy-bound]\nshare = 0.2\n')
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


def test_failure_while_rendering_leaves_nothing(
    trace: Path, stages: Stages, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(result: Result) -> str:
        raise RuntimeError("broken")

    monkeypatch.setattr("nsys_triage.render.html.render_html", broken)
    assert command("report", trace)[0] == 70
    assert command("report", trace, "-o", "a.html", "--json", "a.json")[0] == 70
    code, out, _ = command("report", trace, "-o", "a.html", "--json", "-")
    assert (code, out) == (70, "")
    assert files() == []


def test_several_traces(trace: Path, tmp_path: Path, stages: Stages, command: Command) -> None:
    other = make_export(tmp_path / "rank1.sqlite")
    code, out, _ = command("report", trace, other)
    assert (code, out) == (0, "summary of my job.v2.sqlite in my job.v2.triage.html\n")
    assert [source.file for source in stages.calls[0][0]] == ["my job.v2.sqlite", "rank1.sqlite"]
    code, _, err = command("report", trace, other, trace, "--force")
    assert code == 2
    assert "my job.v2.sqlite is given twice" in err
    code, _, err = command("report", trace, other, "--keep-sqlite", "kept.sqlite", "--force")
    assert code == 2
    assert "--keep-sqlite keeps one export" in err


def test_options_of_the_export(tmp_path: Path, fake: FakeNsys, stages: Stages, command: Command) -> None:
    report = tmp_path / "job.nsys-rep"
    report.write_bytes(REPORT_2023)
    where = ["--nsys", str(fake.path), "--cache-dir", str(tmp_path / "mine")]
    code, _, err = command("report", report, *where, "--keep-sqlite", "kept.sqlite")
    assert (code, err) == (0, "")
    assert files() == ["job.triage.html", "kept.sqlite"]
    assert len(list((tmp_path / "mine").iterdir())) == 1
    fake.hangs()
    report.write_bytes(b"NVIDIA Tegra Profiler Report 1.\nother U3w[END]")
    code, _, err = command("report", report, *where, "--export-timeout", "0.3", "--force")
    assert code == 3
    assert "job.nsys-rep was not exported within 300 ms" in err


def test_missing_nsys(tmp_path: Path, stages: Stages, command: Command) -> None:
    report = tmp_path / "job.nsys-rep"
    report.write_bytes(REPORT_2023)
    code, out, err = command("report", report)
    assert (code, out) == (3, "")
    assert "`nsys export --type=sqlite --output=job.sqlite job.nsys-rep`" in err
    assert err.count("\n") == 1


def test_name_that_begins_with_a_dash(trace: Path, stages: Stages, command: Command) -> None:
    trace.rename("-x.sqlite")
    assert command("report", "--", "-x.sqlite")[:2] == (0, "summary of -x.sqlite in -x.triage.html\n")


def test_progress_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    for stream, wanted, shown in (
        (Terminal(), True, True),
        (Terminal(), False, False),
        (io.StringIO(), True, False),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        with console_module.progress_display(wanted) as progress:
            assert (progress is not None) == shown
            if progress:
                progress("reading [bold]a[/bold]", None)
                progress("exporting [bold]a[/bold]", 40)
        assert ("exporting [bold]a[/bold]" in stream.getvalue()) == shown
