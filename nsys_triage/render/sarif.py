"""The findings as SARIF 2.1.0, for pipelines and code-scanning views.

Source of the format: OASIS, Static Analysis Results Interchange Format 2.1.0; numbers in comments are its sections.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from nsys_triage import units
from nsys_triage.render import text
from nsys_triage.render.views import known
from nsys_triage.result.model import Finding, Result

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION: Final = "2.1.0"
LEVELS: Final = {"high": "error", "medium": "warning", "low": "note"}
_LINK: Final = re.compile(r"\[([^\[\]]*)\](?=\()")
# results are shown at a line of a file only, and a trace has none
_ANY_LINE: Final = {"startLine": 1}


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule and the parts of its page."""

    id: str
    title: str
    summary: str
    meaning: str
    actions: str
    caveat: str


def render_sarif(result: Result, rules: Sequence[RuleText]) -> str:
    """One SARIF log with one run, as indented JSON with a final newline; the same result gives the same text.

    `rules` are all rules that the result may name. Findings are the run's results; warnings about the capture and
    checks that failed are its notifications. Where nothing could be judged the run is marked as not successful, since
    no results would read as no findings. Files are named without their folders.
    """
    index = {rule.id: number for number, rule in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "nsys-triage",
                "version": result.tool_version,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "invocations": [
            {
                "executionSuccessful": result.status == "ok",
                "toolExecutionNotifications": _notifications(result),
            }
        ],
        "artifacts": [
            {"location": {"uri": _uri(file)}, "roles": ["analysisTarget"]} for file in _files(result)
        ],
        "results": [_result(finding, result, index) for finding in result.findings],
        "properties": {
            "limiter": result.verdict.limiter,
            "verdict": text.clean(result.verdict.sentence),
            "nextAction": text.clean(result.verdict.next_action),
            "checks": {check.rule: check.status for check in result.checks},
        },
    }
    return json.dumps({"$schema": SCHEMA, "version": VERSION, "runs": [run]}, indent=1) + "\n"


def _rule(rule: RuleText) -> dict[str, Any]:
    parts = (
        ("What it means", rule.meaning),
        ("What to do next", rule.actions),
        ("When it is wrong", rule.caveat),
    )
    return {
        "id": rule.id,
        "shortDescription": _message(rule.title),
        "fullDescription": _message(rule.summary),
        "help": {
            **_message("\n\n".join(f"{head}\n\n{part}" for head, part in parts)),
            "markdown": "\n\n".join(f"## {head}\n\n{_markdown(part)}" for head, part in parts),
        },
    }


def _result(finding: Finding, result: Result, index: dict[str, int]) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(result.capture.file), "index": 0},
            "region": _ANY_LINE,
        }
    }
    if finding.where:
        location["message"] = _message(units.stretch(finding.where.start_ns, finding.where.end_ns))
    found: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": LEVELS[finding.severity],
        "message": _message(_sentence(finding, result)),
        "locations": [location],
        "partialFingerprints": {"finding/1": f"{finding.rule}/{finding.gpu or 'all'}"},
        "rank": round(100 * finding.stake.share, 2),
        "properties": {
            name: msgspec.to_builtins(getattr(finding, name))
            for name in (
                "severity",
                "confidence",
                "stake",
                "gpu",
                "where",
                "evidence",
                "causes",
                "actions",
                "caveat",
            )
        },
    }
    if finding.rule in index:
        found["ruleIndex"] = index[finding.rule]
    return found


def _sentence(finding: Finding, result: Result) -> str:
    """Title, stake and first action; the first sentence is what narrow views show."""
    stake = units.times(finding.stake.low_ns, finding.stake.high_ns)
    parts = [
        f"{text.clean(finding.title).rstrip('.')}.",
        f"At stake: {stake} ({units.share(finding.stake.share)} of the time), confidence {finding.confidence}.",
    ]
    if finding.gpu is not None:
        parts.append(f"On {known.gpu_names(result).get(finding.gpu, finding.gpu)}.")
    if finding.where:
        parts.append(f"Look at {units.stretch(finding.where.start_ns, finding.where.end_ns)}.")
    if finding.actions:
        parts.append(f"Next: {text.clean(finding.actions[0])}")
    return " ".join(parts)


def _notifications(result: Result) -> list[dict[str, Any]]:
    """What went wrong or changes how the results read: no verdict, checks that failed, warnings of the capture."""
    found = []
    if result.status != "ok":
        sentence = f"{result.verdict.sentence} {result.verdict.next_action}"
        found.append({"level": "error", "message": _message(sentence), "descriptor": {"id": result.status}})
    found += [
        {"level": "error", "message": _message(check.note), "associatedRule": {"id": check.rule}}
        for check in result.checks
        if check.status == "error"
    ]
    found += [
        {
            "level": "warning",
            "message": _message(f"{warning.text} {warning.advice}".strip()),
            "descriptor": {"id": warning.id},
        }
        for warning in result.capture.warnings
    ]
    return found


def _files(result: Result) -> list[str]:
    """The names of all files, the capture's first."""
    files = known.given(result.capture.files) or []
    return list(dict.fromkeys([result.capture.file, *files]))


def _uri(file: str) -> str:
    """A base name as a relative URI reference."""
    return quote(text.clean(file).rpartition("/")[2] or "trace", safe="")


def _message(sentence: str) -> dict[str, str]:
    """Plain text as a message: braces doubled (3.11.5), and what would read as a link escaped (3.11.6)."""
    plain = text.clean(sentence).replace("{", "{{").replace("}", "}}")
    return {"text": _LINK.sub(r"\\[\1\\]", plain)}


def _markdown(prose: str) -> str:
    """Prose as Markdown, in which names as at::native::copy<T*> stay as they are."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text.clean(prose)).replace("{", "{{").replace("}", "}}")
