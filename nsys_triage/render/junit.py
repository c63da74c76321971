"""The checks as JUnit XML, for pipelines that show test results.

There is no standard; the elements are those that the Ant task wrote and that Jenkins, GitLab and pytest agree on.
"""

import re
from typing import Final
from xml.etree import ElementTree as Xml

from nsys_triage import units
from nsys_triage.render import text
from nsys_triage.result.model import Check, Finding, Result

# what XML 1.0 cannot hold even as a reference, beyond the control characters that `clean` takes out
_NOT_XML: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def render_junit(result: Result) -> str:
    """One test suite with one test case per check, as XML with a declaration and a final newline.

    A finding is a failure, an error of the tool an error, a check that could not run is skipped. Where nothing could
    be judged all are skipped and one more test case, `judged`, is an error, since a pipeline that sees skipped tests
    alone goes on. The properties of the suite have the verdict. The same result gives the same text.
    """
    statuses: list[str] = [check.status for check in result.checks]
    unjudged = result.status != "ok"
    if unjudged:
        statuses.append("error")
    numbers = {
        "tests": str(len(statuses)),
        "failures": str(statuses.count("finding")),
        "errors": str(statuses.count("error")),
        "skipped": str(statuses.count("not_run")),
    }
    root = Xml.Element("testsuites", {"name": "nsys-triage", **numbers})
    suite = Xml.SubElement(root, "testsuite", {"name": _xml(result.capture.file), **numbers})
    properties = Xml.SubElement(suite, "properties")
    verdict = result.verdict
    for name, value in (
        ("version", result.tool_version),
        ("status", result.status),
        ("limiter", verdict.limiter or ""),
        ("verdict", verdict.sentence),
        ("next_action", verdict.next_action),
    ):
        Xml.SubElement(properties, "property", {"name": name, "value": _xml(value)})
    findings = {finding.rule: finding for finding in result.findings}
    for check in result.checks:
        _test_case(suite, check, findings.get(check.rule))
    if unjudged:
        case = Xml.SubElement(suite, "testcase", {"classname": "nsys-triage", "name": "judged"})
        message = _xml(verdict.sentence)
        Xml.SubElement(case, "error", {"message": message, "type": "cannot_judge"}).text = message
    Xml.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _test_case(suite: Xml.Element, check: Check, finding: Finding | None) -> None:
    case = Xml.SubElement(suite, "testcase", {"classname": "nsys-triage", "name": _xml(check.rule)})
    note = _xml(check.note)
    match check.status:
        case "finding":
            severity = finding.severity if finding else "finding"
            failure = Xml.SubElement(case, "failure", {"message": note, "type": severity})
            failure.text = _xml(_details(finding)) if finding else note
        case "error":
            Xml.SubElement(case, "error", {"message": note, "type": "error"}).text = note
        case "not_run":
            Xml.SubElement(case, "skipped", {"message": note})
        case "passed":
            Xml.SubElement(case, "system-out").text = note


def _details(finding: Finding) -> str:
    """The finding in lines: stake, confidence, where, evidence, actions, caveat."""
    stake = units.times(finding.stake.low_ns, finding.stake.high_ns)
    lines = [
        f"At stake: {stake} ({units.share(finding.stake.share)} of the time); {finding.stake.basis}",
        f"Severity {finding.severity}, confidence {finding.confidence}",
    ]
    if finding.where:
        lines.append(f"Look at: {units.stretch(finding.where.start_ns, finding.where.end_ns)}")
    lines += [f"Evidence: {e.label}: {units.quantity(e.value, e.unit)}" for e in finding.evidence]
    lines += [f"Do {number}: {action}" for number, action in enumerate(finding.actions, start=1)]
    lines.append(f"When this is wrong: {finding.caveat}")
    return "\n".join(lines)


def _xml(value: str) -> str:
    """Text that XML can hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text.clean(value))
