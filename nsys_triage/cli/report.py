"""`nsys-triage report`: from traces to one report in the form that is asked for, and a summary on the terminal."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsys_triage.cli.console import progress_display, set_up_logging, stdout_console
from nsys_triage.cli.judging import Judging, judging, stopped
from nsys_triage.cli.options import (
    PATH,
    export_options,
    force_option,
    judging_options,
    verbosity_options,
    window_option,
)
from nsys_triage.cli.outputs import FORMATS, Output, plan_outputs, write_outputs
from nsys_triage.errors import UsageError

if TYPE_CHECKING:
    from nsys_triage.ingest import ExportSettings
    from nsys_triage.result.model import Result

EXIT_GATE = 1
EXIT_CANNOT_JUDGE = 3
EPILOG = """\b
Examples:
  nsys-triage report job.nsys-rep
  nsys-triage report job.nsys-rep --format markdown
  nsys-triage report job.nsys-rep -o job.sarif --fail-on high --fail-on host-sync
  nsys-triage report job.nsys-rep --json - --window all | jq .verdict

\b
A file for --config:
  window = "all"
  fail_on = ["high", "host-sync"]
  [thresholds.host-sync]
  share = 0.1

\b
Exit codes: 0 done; 1 --fail-on stopped it; 2 wrong usage, a missing file, a
window without GPU work; 3 the trace cannot be analysed or judged.
"""


@click.command("report", epilog=EPILOG)
@click.argument("traces", nargs=-1, required=True, type=PATH, metavar="TRACE...")
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE|-",
    help="Write the report there, - being stdout [default: TRACE.triage.html here for HTML, else stdout].",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS, case_sensitive=False),
    help="Form of the report: the HTML page, the JSON result, Markdown for a ticket, SARIF 2.1.0 or JUnit XML for "
    "pipelines [default: by the suffix of -o (.json .md .sarif .xml), else html].",
)
@click.option(
    "--json",
    "json_file",
    type=PATH,
    metavar="FILE|-",
    help="Write the result as JSON too; alone, without -o and --format, it is all that is written.",
)
@window_option
@judging_options
@export_options
@force_option
@verbosity_options
def command(
    traces: tuple[Path, ...],
    output: Path | None,
    format_name: str | None,
    json_file: Path | None,
    window: str,
    thresholds: tuple[str, ...],
    fail_on: tuple[str, ...],
    config: Path | None,
    nsys: Path | None,
    cache_dir: Path | None,
    keep_sqlite: Path | None,
    export_timeout: float | None,
    force: bool,
    quiet: bool,
    verbose: int,
) -> int:
    """Make one report of a job.

    TRACE is a report (.nsys-rep, .qdrep) or its SQLite export; several, or a folder of them, are the ranks of one job.
    """
    set_up_logging(verbose)
    from nsys_triage.ingest import ExportSettings
    from nsys_triage.ingest.folder import traces_in

    traces = tuple(one for given in traces for one in (traces_in(given) if given.is_dir() else [given]))
    _check_inputs(traces, keep_sqlite)
    asked = judging(window, thresholds, fail_on, config)
    outputs = plan_outputs(traces, output, format_name, json_file, force, [config] if config else [])
    settings = ExportSettings(nsys, cache_dir, keep_sqlite, force, export_timeout)
    result = _analyze(traces, asked, settings, show_progress=not quiet and not verbose)
    write_outputs(result, outputs, force, _line(traces, window, thresholds, config))
    if not quiet and all(output.target for output in outputs):
        _print_summary(result, outputs[0] if output or format_name or not json_file else None)
    if result.status == "cannot_judge":
        return EXIT_CANNOT_JUDGE
    return EXIT_GATE if stopped(result, asked.gates, quiet) else 0


def _check_inputs(traces: tuple[Path, ...], keep_sqlite: Path | None) -> None:
    if keep_sqlite and len(traces) > 1:
        raise UsageError("--keep-sqlite keeps one export: give one trace with it.")
    seen: set[Path] = set()
    for trace in traces:
        place = trace.absolute()
        if place in seen:
            from nsys_triage.ingest.files import base_name

            raise UsageError(f"{base_name(trace)} is given twice: name each trace once.")
        seen.add(place)


def _analyze(
    traces: tuple[Path, ...], asked: Judging, settings: "ExportSettings", show_progress: bool
) -> "Result":
    # what is wrong with a file is said at once, before the libraries for numbers are imported
    from nsys_triage.ingest import open_source

    with progress_display(show_progress) as progress:
        sources = [open_source(trace, settings, progress) for trace in traces]
        from nsys_triage.analyze import analyze

        return analyze(sources, asked.window_request(), progress, asked.rule_settings())


def _line(traces: tuple[Path, ...], window: str, thresholds: tuple[str, ...], config: Path | None) -> str:
    """The command line that judges these traces so, with the base names of files alone."""
    from nsys_triage.ingest.files import base_name, shell_name

    parts = ["nsys-triage report", *(shell_name(base_name(trace)) for trace in traces)]
    if window != "auto":
        parts.append(f"--window {shlex.quote(window)}")
    parts += [f"--threshold {shlex.quote(threshold)}" for threshold in thresholds]
    if config is not None:
        parts.append(f"--config {shell_name(base_name(config))}")
    return " ".join([*parts, "--format markdown"])


def _print_summary(result: "Result", output: Output | None) -> None:
    from nsys_triage.ingest.files import base_name
    from nsys_triage.render.terminal import print_summary

    print_summary(result, stdout_console(), base_name(output.target) if output and output.target else None)
