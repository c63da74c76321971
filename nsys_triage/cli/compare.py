"""`nsys-triage compare`: what changed between two runs, and a gate on it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from nsys_triage.cli.console import progress_display, set_up_logging, stdout_console
from nsys_triage.cli.judging import judging
from nsys_triage.cli.options import PATH, export_options, force_option, verbosity_options, window_option
from nsys_triage.errors import UsageError

if TYPE_CHECKING:
    from nsys_triage.cli.outputs import Output
    from nsys_triage.result.compare_model import Comparison

EXIT_REGRESSION: Final = 1
EXIT_INCONCLUSIVE: Final = 3
FORMATS: Final = ("html", "json", "markdown")
EPILOG = """\b
Examples:
  nsys-triage compare before.nsys-rep after.nsys-rep
  nsys-triage compare before.json after.json -o change.md
  nsys-triage compare runs/main runs/branch --fail-on-regression 5%

A folder holds repeats, one file each, which show how much two runs of the
same program differ. Its files are taken as the ranks of one job where each
was recorded with a WORLD_SIZE above 1 and another RANK; folders in it are
runs. Copies of one capture count once. The page says what was assumed.

\b
Exit codes: 0 done; 1 --fail-on-regression stopped it; 2 wrong usage, a
missing file; 3 a side cannot be analysed or judged, or --fail-on-regression
could not be decided.
"""


class Percent(click.ParamType[float]):
    """`5%`, `5` or `2.5 %` as a share."""

    name = "percent"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share (0..1)."""
        try:
            number = float(str(value).strip().removesuffix("%"))
        except ValueError:
            number = -1.0
        if not 0 < number <= 1000:
            self.fail(f"{value!r} is no percentage: write it as 5%.", param, ctx)
        return number / 100


@click.command("compare", epilog=EPILOG)
@click.argument("before", type=PATH, metavar="BEFORE")
@click.argument("after", type=PATH, metavar="AFTER")
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE|-",
    help="Write the comparison there, - being stdout [default: AFTER.compare.html here for HTML, else stdout].",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS, case_sensitive=False),
    help="Form of the comparison [default: by the suffix of -o (.json .md), else html].",
)
@click.option(
    "--json",
    "json_file",
    type=PATH,
    metavar="FILE|-",
    help="Write the comparison as JSON too; alone, without -o and --format, it is all that is written.",
)
@click.option(
    "--fail-on-regression",
    "threshold",
    type=Percent(),
    metavar="PERCENT",
    help="End with exit code 1 where a step takes that much more time or keeps the GPU busy that much longer, or "
    "without steps the same launches take more: the measured change decides, where its whole interval lies above 0. "
    "End with 3 where noise or the inputs leave it open. All outputs are written all the same.",
)
@window_option
@export_options
@force_option
@verbosity_options
def command(
    before: Path,
    after: Path,
    output: Path | None,
    format_name: str | None,
    json_file: Path | None,
    threshold: float | None,
    window: str,
    nsys: Path | None,
    cache_dir: Path | None,
    keep_sqlite: Path | None,
    export_timeout: float | None,
    force: bool,
    quiet: bool,
    verbose: int,
) -> int:
    """Compare two runs of a job: what changed, by how much, and whether it is more than noise.

    BEFORE and AFTER are reports (.nsys-rep, .qdrep), their SQLite exports, results (the JSON of `nsys-triage
    report`), or folders of them.
    """
    set_up_logging(verbose)
    from nsys_triage.ingest import ExportSettings

    if keep_sqlite:
        raise UsageError(
            "--keep-sqlite keeps one export, and here are two: use `nsys-triage report` for each."
        )
    asked = judging(window, (), (), None)
    for path in (before, after):
        _check_exists(path)
    outputs = _plan(before, after, output, format_name, json_file, force)
    settings = ExportSettings(nsys, cache_dir, None, force, export_timeout)
    with progress_display(not quiet and not verbose) as progress:
        from nsys_triage.compare.run import compare_paths

        comparison = compare_paths(
            before, after, asked.window_request(), settings, asked.rule_settings(), threshold, progress
        )
    _write(comparison, outputs, force)
    if not quiet and all(planned.target for planned in outputs):
        _print_summary(comparison, outputs[0] if output or format_name or not json_file else None)
    return _exit_code(comparison, quiet)


def _check_exists(path: Path) -> None:
    from nsys_triage.ingest.files import base_name

    if not path.exists():
        raise UsageError(f"{base_name(path)} does not exist: check the path.")


def _plan(
    before: Path,
    after: Path,
    output: Path | None,
    format_name: str | None,
    json_file: Path | None,
    force: bool,
) -> "list[Output]":
    from nsys_triage.cli.outputs import plan_outputs

    default = Path(f"{after.absolute().stem}.compare.html")
    suffix = output.suffix.lower() if output else ""
    if format_name is None and suffix in (".sarif", ".xml"):
        raise UsageError(
            "A comparison is written as HTML, JSON or Markdown: choose another suffix, or --format."
        )
    wants_html = (format_name or "html") == "html"
    if output is None and wants_html and (format_name is not None or json_file is None):
        output = default
    return plan_outputs((after,), output, format_name, json_file, force, (before,))


def _write(comparison: "Comparison", outputs: "list[Output]", force: bool) -> None:
    """Write all outputs, stdout last; nothing is written where one of them cannot be made."""
    from nsys_triage.ingest.files import whole_file

    made = [(planned.target, _FORMS[planned.format](comparison)) for planned in outputs]
    for target, data in made:
        if target is not None:
            with whole_file(target, force) as temporary:
                temporary.write_bytes(data)
    for target, data in made:
        if target is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()


def _html(comparison: "Comparison") -> bytes:
    from nsys_triage.render.compare_html import render_compare_html

    return render_compare_html(comparison).encode()


def _json(comparison: "Comparison") -> bytes:
    from nsys_triage.compare.codec import encode

    return encode(comparison)


def _markdown(comparison: "Comparison") -> bytes:
    from nsys_triage.render.compare_markdown import render_compare_markdown

    return render_compare_markdown(comparison).encode()


_FORMS: Final[dict[str, Callable[["Comparison"], bytes]]] = {
    "html": _html,
    "json": _json,
    "markdown": _markdown,
}


def _print_summary(comparison: "Comparison", output: "Output | None") -> None:
    from nsys_triage.ingest.files import base_name
    from nsys_triage.render.compare_terminal import print_comparison

    print_comparison(
        comparison, stdout_console(), base_name(output.target) if output and output.target else None
    )


def _exit_code(comparison: "Comparison", quiet: bool) -> int:
    if comparison.status == "cannot_judge":
        return EXIT_INCONCLUSIVE
    if comparison.gate is None or comparison.gate.outcome == "passed":
        return 0
    failed = comparison.gate.outcome == "failed"
    if failed or not quiet:
        click.echo(f"nsys-triage: --fail-on-regression: {comparison.gate.sentence}", err=True)
    return EXIT_REGRESSION if failed else EXIT_INCONCLUSIVE
