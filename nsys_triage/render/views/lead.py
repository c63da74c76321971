"""The top of the page: what was recorded, the verdict, and what to do next."""

import re
from dataclasses import dataclass

from nsys_triage import units
from nsys_triage.render import text, words
from nsys_triage.render.views import known
from nsys_triage.render.views.commands import YOURS, compare_after
from nsys_triage.result.model import Check, Finding, Result

MOST_FINDINGS = 8
MOST_WARNINGS = 12
# the page and the terminal say this themselves, right after the action
_AGAIN = re.compile(r"[;,.]?\s*then record again and compare\.?\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Lead:
    """The verdict as the page says it; `record` is the command line that would make the capture judgeable."""

    kind: str  # "finding", "healthy", "cannot_judge", "unjudged"
    label: str
    sentence: str
    action: str
    record: str | None
    compare: list[str]


def lead(result: Result) -> Lead:
    """The verdict; without one, what is known all the same: how busy the GPUs were."""
    verdict = result.verdict
    action, command = text.split_command(_AGAIN.sub(".", verdict.next_action))
    sentence = text.cut(verdict.sentence, 400)
    limiter = known.given(verdict.limiter)
    if result.status == "cannot_judge" or not result.gpus:
        return Lead(
            kind="cannot_judge",
            label="This capture cannot be judged",
            sentence=sentence or "No work of a GPU was recorded.",
            action="" if command and action.lower() in ("record again", "record again with") else action,
            record=command or f"nsys profile --trace=cuda,nvtx,osrt -o job {YOURS}",
            compare=[],
        )
    if limiter is None:
        return Lead(
            "unjudged", "No verdict", sentence or _busy(result), action, command, compare_after(result)
        )
    kind = "healthy" if limiter == "compute" and not result.findings else "finding"
    label = "Nothing worth chasing here" if kind == "healthy" else f"Limited by: {limiter_name(limiter)}"
    if kind == "healthy" and sentence.lower().startswith(label.lower()):
        label = "Healthy"
    return Lead(kind, label, sentence or _busy(result), action, command, compare_after(result))


def limiter_name(limiter: str) -> str:
    """What a limiter is called."""
    names = {
        "host_launch": "launching from the host", "communication": "communication", "copy": "copies",
        "compute": "the GPU itself", "dependency": "waits between streams", "imbalance":
        "imbalance between ranks",
        "mixed": "several causes", "unknown": "an unknown cause", "profiler": "the recording itself",
    }  # fmt: skip
    return names.get(limiter, words.cause(limiter))


def _busy(result: Result) -> str:
    busy, span = sum(g.busy_ns for g in result.gpus), sum(g.span_ns for g in result.gpus)
    who = "The GPU is" if len(result.gpus) == 1 else f"The {len(result.gpus)} GPUs are"
    return f"{who} busy {units.share(busy / span if span else 0)} of the time."


def header_facts(result: Result) -> list[str]:
    """The header's one line, as parts: GPUs, processes, nsys versions, window."""
    parts = [
        known.gpus_line(result) or None,
        known.processes_line(result),
        known.versions_line(result),
        known.window_line(result),
    ]
    return [part for part in parts if part]


def files_line(result: Result) -> str:
    """The file's name; of several, the first and how many more."""
    files = known.given(result.capture.files) or []
    more = f" and {units.plural(len(files) - 1, 'more file')}" if len(files) > 1 else ""
    return text.shorten(result.capture.file, 120) + more


def shown_findings(result: Result) -> list[Finding]:
    """The findings that get a card."""
    return result.findings[:MOST_FINDINGS]


def checks_by_status(result: Result) -> dict[str, list[Check]]:
    """The checks as `passed`, `not_run` and `error`, each in the order of the result."""
    return {
        status: [c for c in result.checks if c.status == status] for status in ("passed", "not_run", "error")
    }
