import io
import json
import sys
from pathlib import Path

import pytest

from nsys_triage.cli import console as console_module
from nsys_triage.metrics.window import WindowRequest
from nsys_triage.result.codec import decode, encode
from nsys_triage.result.model import (
    Result,
)
from tests.cli.conftest import Command
from tests.cli.stages import Stages, files, result_of
from tests.tools.fake_nsys import FakeNsys
from tests.tools.small_files import REPORT_2023, make_export, snapshot


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


def test_folder_is_the_traces_in_it(tmp_path: Path, stages: Stages, command: Command) -> None:
    job = tmp_path / "job"
    job.mkdir()
    for name in ("rank10.sqlite", "rank9.sqlite"):
        make_export(job / name)
    code, _, _ = command("report", job, "--json", tmp_path / "r.json", "-q")
    assert code == 0
    assert [source.file for source in stages.calls[0][0]] == ["rank9.sqlite", "rank10.sqlite"]
    (tmp_path / "none").mkdir()
    code, _, err = command("report", tmp_path / "none")
    assert code == 2
    assert "none holds no report and no export" in err


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
