import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nsys_triage.result.codec import encode
from tests.cli.conftest import Command
from tests.cli.stages import Stages, files, result_of


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
        (["-o", "a.json", "--format", "HTML"], "<!doctype html>"),
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
