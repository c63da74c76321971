"""The summary on the terminal: what the capture is, the verdict, a bar per GPU, what to do next."""

import textwrap

from rich.console import Console
from rich.text import Text

from nsys_triage import units
from nsys_triage.render import text, words
from nsys_triage.render.views import known
from nsys_triage.render.views.lead import files_line, lead
from nsys_triage.result.model import Gpu, Result

WIDTH = 80
INDENT = 7
BAR = 52
MOST_GPUS = 8
MOST_CAUSES = 4


def print_summary(result: Result, console: Console, report: str | None) -> None:
    """Prints the summary to `console`, at most 80 columns wide, plain where the console is.

    `report` is the name of the HTML file that was written, None where there is none.
    """
    for line in summary_lines(result, report):
        console.print(line, highlight=False, soft_wrap=True)


def summary_lines(result: Result, report: str | None) -> list[Text]:
    """The lines of the summary, at most 80 columns wide but for commands, which stay whole."""
    top = lead(result)
    lines = [_header(result)]
    style = {"healthy": "bold green", "finding": "bold"}.get(top.kind, "bold yellow")
    lines += [Text(line, style=style) for line in _wrapped(text.cut(top.sentence, 400), 0)]
    lines += _gpu_lines(result)
    if top.action:
        again = top.kind == "finding" and "record" not in top.action.lower()
        then = "; then record again and compare" if again else ""
        lines += _labelled("Next", text.cut(top.action, 400).rstrip(".") + then)
    if top.record:
        lines.append(_label("Record" if top.kind == "cannot_judge" else "Run", text.cut(top.record, 900)))
    lines += _checks_lines(result, report)
    lines += [
        line
        for warning in result.capture.warnings[:3]
        for line in _labelled("Note", text.cut(warning.text, 200))
    ]
    if report is not None:
        lines.append(_label("Report", text.clean(report)))
    return lines


def _header(result: Result) -> Text:
    window = known.given(result.capture.window)
    parts = [text.shorten(files_line(result), 40), text.shorten(known.gpus_line(result), 34)]
    if window is not None:
        parts.append(
            f"{text.shorten(known.window_name(result), 24)}, {units.time(window.end_ns - window.start_ns)}"
        )
    parts = [part for part in parts if part]
    line = Text("   ".join(parts))
    if len(line) > WIDTH:
        line = Text(
            "\n".join(textwrap.wrap("   ".join(parts), WIDTH, subsequent_indent="  ", drop_whitespace=True))
        )
    return line


def _gpu_lines(result: Result) -> list[Text]:
    names = {gpu.id: f"GPU {number}" for number, gpu in enumerate(result.gpus)}
    shown = list(result.gpus)
    if len(shown) > MOST_GPUS:
        shown = sorted(shown, key=lambda gpu: (known.busy_share(gpu), result.gpus.index(gpu)))[:4]
    lines = []
    for gpu in shown:
        lines.append(_bar(names[gpu.id], gpu))
        lines += [Text(line, style="dim") for line in _wrapped(_causes(gpu), INDENT)]
    left = len(result.gpus) - len(shown)
    if left:
        rest = [known.busy_share(gpu) for gpu in result.gpus if gpu not in shown]
        span = f"{units.share(min(rest))} to {units.share(max(rest))}"
        lines += [Text(" " * INDENT + f"{units.plural(left, 'busier GPU')}: busy {span}", style="dim")]
    return lines


def _bar(name: str, gpu: Gpu) -> Text:
    share = known.busy_share(gpu)
    filled = round(share * BAR)
    if gpu.busy_ns and not filled:
        filled = 1
    if gpu.idle_ns and filled == BAR:
        filled = BAR - 1
    head = f"{name:<{INDENT - 1}} busy {units.share(share)}"
    room = min(BAR, WIDTH - 24)
    line = Text(f"{head:<21} |")
    line.append("#" * round(filled * room / BAR), style="cyan")
    line.append("." * (room - round(filled * room / BAR)), style="yellow")
    return line.append("|")


def _causes(gpu: Gpu) -> str:
    """The largest losses of a GPU: idle causes, and exposed communication and copies."""
    ledger = known.given(gpu.ledger)
    if ledger is None or not gpu.span_ns:
        return ""
    lost = sorted((e for e in ledger if e.cause not in ("compute", "graph")), key=lambda e: (-e.ns, e.cause))
    named, rest = lost[:MOST_CAUSES], sum(entry.ns for entry in lost[MOST_CAUSES:])
    parts = [f"{words.cause(entry.cause)} {units.share(entry.ns / gpu.span_ns)}" for entry in named]
    if rest:
        parts.append(f"other {units.share(rest / gpu.span_ns)}")
    return "  ".join(part.replace(" ", "\u00a0") for part in parts)


def _checks_lines(result: Result, report: str | None) -> list[Text]:
    """How many findings are beside the first, and how the checks ended."""
    lesser = max(0, len(result.findings) - 1)
    passed = sum(check.status == "passed" for check in result.checks)
    not_run = sum(check.status in ("not_run", "error") for check in result.checks)
    parts = []
    if lesser:
        parts.append(units.plural(lesser, "lesser finding"))
    if passed:
        parts.append(f"{units.plural(passed, 'check')} passed")
    if not_run:
        parts.append(f"{units.count(not_run)} could not run")
    if not parts or result.status == "cannot_judge":
        return []
    return _plain(", ".join(parts) + (": see the report" if report is not None else ""))


def _plain(line: str) -> list[Text]:
    return [Text(part, style="dim") for part in _wrapped(line, INDENT)]


def _label(label: str, rest: str) -> Text:
    return Text(f"{label:<{INDENT}}", style="bold").append(rest, style="not bold")


def _labelled(label: str, rest: str) -> list[Text]:
    first, *others = _wrapped(rest, INDENT) or [" " * INDENT]
    return [_label(label, first[INDENT:]), *(Text(line) for line in others)]


def _wrapped(line: str, indent: int) -> list[str]:
    """Lines of at most `WIDTH` columns; what a no-break space holds together stays on one line."""
    wrapped = textwrap.wrap(
        line, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * indent, break_on_hyphens=False
    )
    return [part.replace("\u00a0", " ") for part in wrapped]
