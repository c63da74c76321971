from xml.etree import ElementTree as Xml

import pytest

from nsys_triage.render.junit import render_junit
from nsys_triage.result.model import Check, Result
from tests.render import blocks, results

ENDS = {"finding": "failure", "error": "error", "not_run": "skipped", "passed": "system-out"}


def suite_of(result: Result) -> Xml.Element:
    text = render_junit(result)
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ')
    root = Xml.fromstring(text.encode())  # noqa: S314 - made here
    assert root.tag == "testsuites"
    (suite,) = root
    assert suite.tag == "testsuite"
    for element in (root, suite):
        assert {name: element.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
            "tests": str(len(suite.findall("testcase"))),
            "failures": str(len(suite.findall("testcase/failure"))),
            "errors": str(len(suite.findall("testcase/error"))),
            "skipped": str(len(suite.findall("testcase/skipped"))),
        }
    return suite


@pytest.mark.parametrize("name", results.ALL)
def test_one_case_for_each_check(name: str) -> None:
    result = results.ALL[name]()
    cases = suite_of(result).findall("testcase")
    assert len(cases) == len(result.checks) + (result.status != "ok")
    for case, check in zip(cases, result.checks, strict=False):
        assert case.get("classname") == "nsys-triage"
        assert [child.tag for child in case] == [ENDS[check.status]]


def test_how_each_check_ended() -> None:
    suite = suite_of(results.baseline())
    assert suite.get("name") == "job.nsys-rep"
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert list(cases) == [check.rule for check in blocks.CHECKS]
    failure = cases["input-pipeline"][0]
    assert failure.attrib == {"message": "94 % of GPU time", "type": "high"}
    assert failure.text == (
        "At stake: 7 to 9.5 s (82 % of the time); all gaps under input pipeline removed\n"
        "Severity high, confidence high\n"
        "Look at: 0.500 to 0.900 s\n"
        "Evidence: gaps longer than 1 ms: 78\n"
        "Evidence: idle before input copies: 9.5 s\n"
        "Evidence: size of an input copy: 3.1 MB\n"
        "Evidence: input copies run at: 11.2 GB/s\n"
        "Evidence: share of the gaps in poll and read: 97 %\n"
        "Evidence: range: DataLoader.__next__\n"
        "Do 1: Raise `num_workers` of the DataLoader until the gaps close, watching CPU cores.\n"
        "Do 2: `persistent_workers=True` if gaps cluster at epoch starts.\n"
        "Do 3: Look at the longest kernel: ncu --kernel-name regex:sgemm --launch-count 3 python train.py\n"
        "When this is wrong: The same waits occur where the process waits for requests or for another rank."
    )
    assert cases["host-sync"][0].text == "host sync cost 0.3 % of GPU time"
    assert (
        cases["cpu-saturated"][0].get("message") == "no scheduling rows: nsys profile --cpuctxsw=process-tree"
    )
    assert cases["wave-tail"][0].get("message") == "ended with a bug: ZeroDivisionError"


def test_the_verdict_is_in_the_properties() -> None:
    properties = {p.get("name"): p.get("value") for p in suite_of(results.cannot_judge()).iter("property")}
    assert properties == {
        "version": "0.1.0",
        "status": "cannot_judge",
        "limiter": "",
        "verdict": "No GPU work was recorded: CUDA was not traced.",
        "next_action": "Record again: nsys profile --trace=cuda,nvtx,osrt -o job python train.py",
    }


def test_what_could_not_be_judged_is_an_error_for_the_pipeline() -> None:
    suite = suite_of(results.cannot_judge())
    error = suite.find("testcase[@name='judged']/error")
    assert error is not None
    assert error.text == "No GPU work was recorded: CUDA was not traced."
    assert suite.get("errors") == "1"
    assert suite_of(results.baseline()).find("testcase[@name='judged']") is None


def test_characters_that_xml_cannot_hold() -> None:
    note = "a\x00b\x1b[2J\ufffe\uffffc\ud800d <&>\"'\x85 ä \U0001f600"
    checks = [Check(rule="host-sync", status=status, note=note) for status in ENDS]  # type: ignore[arg-type]
    result = results.baseline(checks=checks, capture=blocks.capture(file=note))
    suite = suite_of(result)
    assert suite.get("name") == "a b [2J\ufffd\ufffdc d <&>\"'  ä \U0001f600"
    assert suite.findall("testcase")[3][0].text == "a b [2J\ufffd\ufffdc d <&>\"'  ä \U0001f600"
