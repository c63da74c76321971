"""Where a result goes, and in which format: planned before any work is done, written when all of it is done."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsys_triage.errors import UsageError

if TYPE_CHECKING:
    from nsys_triage.result.model import Result

FORMATS: Final = ("html", "json", "markdown", "sarif", "junit")
_SUFFIXES: Final = {
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".sarif": "sarif",
    ".xml": "junit",
}
_STDOUT: Final = Path("-")


@dataclass(frozen=True, slots=True)
class Output:
    """One form of the result, and the file that it is written to; None is stdout."""

    format: str
    target: Path | None


def plan_outputs(
    traces: tuple[Path, ...],
    output: Path | None,
    format_name: str | None,
    json_file: Path | None,
    force: bool,
    also_read: Sequence[Path] = (),
) -> list[Output]:
    """All outputs, those of `-o` and `--format` first.

    Without `-o` HTML goes to TRACE.triage.html, other formats to stdout. Raises `OutputError` where a file may not be
    written, `UsageError` where two outputs would have one place.
    """
    planned = []
    if output is not None or format_name is not None or json_file is None:
        planned.append(_main_output(traces[0], output, format_name))
    if json_file is not None:
        planned.append(Output("json", None if json_file == _STDOUT else json_file))
    if [plan.target for plan in planned].count(None) > 1:
        raise UsageError(f"{planned[0].format} and JSON cannot both go to stdout: give one of them a file.")

    from nsys_triage.ingest.files import check_target

    inputs = (*traces, *also_read)
    checked = [Output(o.format, check_target(o.target, inputs, force) if o.target else None) for o in planned]
    if len(checked) == 2 and checked[0].target == checked[1].target:
        name = checked[0].target.name if checked[0].target else "-"
        raise UsageError(f"{name} cannot be both the report and the JSON result: name two files.")
    return checked


def _main_output(trace: Path, output: Path | None, format_name: str | None) -> Output:
    kind = format_name or (_SUFFIXES.get(output.suffix.lower(), "html") if output else "html")
    if kind == "html":
        if output == _STDOUT:
            raise UsageError(
                "-o - prints a text on stdout: add --format markdown, json, sarif or junit; HTML needs a file's name."
            )
        return Output(kind, output or Path(f"{trace.absolute().stem}.triage.html"))
    return Output(kind, None if output is None or output == _STDOUT else output)


def write_outputs(result: "Result", outputs: Sequence[Output], force: bool, command: str) -> None:
    """Write all outputs, stdout last; nothing is written where one of them cannot be made.

    `command` is the line that makes this result, for formats that name it.
    """
    from nsys_triage.ingest.files import whole_file

    made = [(output.target, _FORMS[output.format](result, command)) for output in outputs]
    for target, data in made:
        if target is not None:
            with whole_file(target, force) as temporary:
                temporary.write_bytes(data)
    for target, data in made:
        if target is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()


def _html(result: "Result", command: str) -> bytes:
    from nsys_triage.render.html import render_html

    del command
    return render_html(result).encode()


def _json(result: "Result", command: str) -> bytes:
    from nsys_triage.result.codec import encode

    del command
    return encode(result)


def _markdown(result: "Result", command: str) -> bytes:
    from nsys_triage.render.markdown import render_markdown

    return render_markdown(result, command).encode()


def _sarif(result: "Result", command: str) -> bytes:
    from nsys_triage.render.sarif import RuleText, render_sarif
    from nsys_triage.rules.registry import all_rules

    del command
    texts = [
        RuleText(r.id, r.title, r.page.summary, r.page.meaning, r.page.actions, r.page.caveat)
        for r in all_rules()
    ]
    return render_sarif(result, texts).encode()


def _junit(result: "Result", command: str) -> bytes:
    from nsys_triage.render.junit import render_junit

    del command
    return render_junit(result).encode()


_FORMS: Final[dict[str, Callable[["Result", str], bytes]]] = {
    "html": _html,
    "json": _json,
    "markdown": _markdown,
    "sarif": _sarif,
    "junit": _junit,
}
