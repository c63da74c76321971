"""`nsys-triage report`: from traces to one HTML report, a JSON result, and a summary on the terminal."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsys_triage.cli.console import progress_display, set_up_logging
from nsys_triage.cli.options import PATH, export_options, force_option, verbosity_options, window_option
from nsys_triage.errors import UsageError

if TYPE_CHECKING:
    from nsys_triage.ingest import ExportSettings
    from nsys_triage.result.model import Result

EXIT_CANNOT_JUDGE = 3


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where the result goes; checked before any work is done."""

    html: Path | None
    json: Path | None
    json_to_stdout: bool


@click.command("report")
@click.argument("traces", nargs=-1, required=True, type=PATH, metavar="TRACE...")
@click.option(
    "-o", "--output", type=PATH, metavar="FILE", help="The HTML report [default: TRACE.triage.html here]."
)
@click.option(
    "--json", "json_file", type=PATH, metavar="FILE|-", help="Write the result as JSON; HTML only with -o."
)
@window_option
@export_options
@force_option
@verbosity_options
def command(
    traces: tuple[Path, ...],
    output: Path | None,
    json_file: Path | None,
    window: str,
    nsys: Path | None,
    cache_dir: Path | None,
    keep_sqlite: Path | None,
    export_timeout: float | None,
    force: bool,
    quiet: bool,
    verbose: int,
) -> int:
    """Make one report of a job.

    TRACE is a report (.nsys-rep, .qdrep) or its SQLite export; several are the ranks of one job.
    """
    set_up_logging(verbose)
    from nsys_triage.ingest import ExportSettings

    _check_inputs(traces, keep_sqlite)
    outputs = plan_outputs(traces, output, json_file, force)
    settings = ExportSettings(nsys, cache_dir, keep_sqlite, force, export_timeout)
    result = _analyze(traces, window, settings, show_progress=not quiet and not verbose)
    _write(result, outputs, force)
    if outputs.json_to_stdout:
        from nsys_triage.result.codec import encode

        sys.stdout.buffer.write(encode(result))
        sys.stdout.buffer.flush()
    elif not quiet:
        _print_summary(result, outputs.html)
    return EXIT_CANNOT_JUDGE if result.status == "cannot_judge" else 0


def plan_outputs(
    traces: tuple[Path, ...], output: Path | None, json_file: Path | None, force: bool
) -> Outputs:
    """The places to write to. Raises `OutputError` where one of them may not be written."""
    from nsys_triage.ingest.files import check_target

    to_stdout = json_file == Path("-")
    if output == Path("-"):
        raise UsageError("-o needs the name of a file: `--json -` is what prints the result on stdout.")
    if output is None and json_file is None:
        output = Path(f"{traces[0].absolute().stem}.triage.html")
    html = check_target(output, traces, force) if output else None
    json = check_target(json_file, traces, force) if json_file and not to_stdout else None
    if html is not None and html == json:
        raise UsageError(f"{html.name} cannot be both the HTML report and the JSON result: name two files.")
    return Outputs(html, json, to_stdout)


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
    traces: tuple[Path, ...], window: str, settings: "ExportSettings", show_progress: bool
) -> "Result":
    # before the window is read: what is wrong with a file is said at once, without the libraries for numbers
    from nsys_triage.ingest import open_source

    with progress_display(show_progress) as progress:
        sources = [open_source(trace, settings, progress) for trace in traces]
        from nsys_triage.analyze import analyze
        from nsys_triage.metrics.window import parse_window

        return analyze(sources, parse_window(window), progress)


def _write(result: "Result", outputs: Outputs, force: bool) -> None:
    from nsys_triage.ingest.files import whole_file

    if outputs.html:
        from nsys_triage.render.html import render_html

        page = render_html(result).encode()
        with whole_file(outputs.html, force) as temporary:
            temporary.write_bytes(page)
    if outputs.json:
        from nsys_triage.result.codec import encode

        data = encode(result)
        with whole_file(outputs.json, force) as temporary:
            temporary.write_bytes(data)


def _print_summary(result: "Result", html: Path | None) -> None:
    from rich.console import Console

    from nsys_triage.ingest.files import base_name
    from nsys_triage.render.terminal import print_summary

    print_summary(result, Console(file=sys.stdout, highlight=False), base_name(html) if html else None)
