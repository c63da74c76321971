"""Stands in for what comes after ingest, so that tests see what a command gives it and does with its answer."""

from pathlib import Path

from msgspec.structs import replace
from rich.console import Console

from nsys_triage.ingest import Source
from nsys_triage.metrics.window import WindowRequest
from nsys_triage.result.model import (
    Capture,
    Check,
    Counts,
    DroppedByReason,
    DroppedRows,
    Finding,
    Result,
    Verdict,
)
from nsys_triage.rules.run import RuleSettings


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


def files() -> list[str]:
    return sorted(path.name for path in Path.cwd().iterdir())
