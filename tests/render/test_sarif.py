import json
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from nsys_triage.render.sarif import RuleText, render_sarif
from nsys_triage.result.model import Check
from tests.render import blocks, results

RULES = [
    RuleText(rule, f"Title of {rule}", "First line.", "Meaning.", "1. Do.\n2. Do more.", "Caveat.")
    for rule in ("host-sync", "input-pipeline", "pageable-copies")
]


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    """An object that has no other properties, as nearly all of SARIF's are."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": {name.rstrip("_"): part for name, part in properties.items()},
    }


def listed(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
INDEX = {"type": "integer", "minimum": -1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
BAG = {"type": "object"}
MESSAGE = closed(["text"], text=TEXT, markdown=TEXT)
REFERENCE = closed(["id"], id=TEXT, index=INDEX)
FILE = closed(
    ["uri"], uri={"type": "string", "format": "uri-reference", "pattern": "^[^/:\\\\ ]+$"}, index=INDEX
)
PLACE = closed(
    ["artifactLocation"],
    artifactLocation=FILE,
    region=closed(["startLine"], startLine={"type": "integer", "minimum": 1}),
)
RULE = closed(
    ["id"], id=TEXT, shortDescription=MESSAGE, fullDescription=MESSAGE, help=MESSAGE, properties=BAG
)
RESULT = closed(
    ["message", "ruleId", "locations"],
    ruleId=TEXT,
    ruleIndex=INDEX,
    level=LEVEL,
    message=MESSAGE,
    locations=listed(closed(["physicalLocation"], physicalLocation=PLACE, message=MESSAGE), minItems=1),
    partialFingerprints={"type": "object", "additionalProperties": {"type": "string"}},
    rank={"type": "number", "minimum": -1, "maximum": 100},
    properties=BAG,
)
NOTIFICATION = closed(
    ["message"], message=MESSAGE, level=LEVEL, descriptor=REFERENCE, associatedRule=REFERENCE
)
# the parts of the schema of SARIF 2.1.0 that are used: what is required, and that nothing else may stand there
SARIF = closed(
    ["version", "runs"],
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"enum": ["2.1.0"]},
    runs=listed(
        closed(
            ["tool"],
            tool=closed(["driver"], driver=closed(["name"], name=TEXT, version=TEXT, rules=listed(RULE))),
            invocations=listed(
                closed(
                    ["executionSuccessful"],
                    executionSuccessful={"type": "boolean"},
                    toolExecutionNotifications=listed(NOTIFICATION),
                )
            ),
            artifacts=listed(
                closed(["location"], location=FILE, roles=listed({"enum": ["analysisTarget"]})),
                uniqueItems=True,
                minItems=1,
            ),
            results=listed(RESULT),
            properties=BAG,
        ),
        minItems=1,
        maxItems=1,
    ),
)


def run_of(text: str) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator(SARIF).validate(log)
    (run,) = log["runs"]
    found: dict[str, Any] = run
    return found


@pytest.mark.parametrize("name", results.ALL)
def test_it_follows_the_schema_whatever_it_is_about(name: str) -> None:
    result = results.ALL[name]()
    text = render_sarif(result, RULES)
    run = run_of(text)
    assert text == render_sarif(result, RULES)
    assert len(run["results"]) == len(result.findings)
    names = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for found in run["results"]:
        if "ruleIndex" in found:
            assert names[found["ruleIndex"]] == found["ruleId"]
        place = found["locations"][0]["physicalLocation"]["artifactLocation"]
        assert run["artifacts"][place["index"]]["location"]["uri"] == place["uri"]


def test_findings_are_results() -> None:
    run = run_of(render_sarif(results.baseline(), RULES))
    first, second = run["results"]
    assert (first["ruleId"], first["ruleIndex"], first["level"], first["rank"]) == (
        "input-pipeline",
        1,
        "error",
        82,
    )
    assert first["message"]["text"] == (
        "The GPU waits for input 94 % of the time. At stake: 7 to 9.5 s (82 % of the time), confidence high. "
        "Look at 0.500 to 0.900 s. "
        "Next: Raise `num_workers` of the DataLoader until the gaps close, watching CPU cores."
    )
    assert first["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "job.nsys-rep", "index": 0},
                "region": {"startLine": 1},
            },
            "message": {"text": "0.500 to 0.900 s"},
        }
    ]
    assert first["properties"]["evidence"][0] == {
        "label": "gaps longer than 1 ms",
        "value": 78,
        "unit": "count",
    }
    assert first["properties"]["stake"]["high_ns"] == 9_524_000_000
    assert first["partialFingerprints"] == {"finding/1": "input-pipeline/all"}
    assert (second["ruleId"], second["level"]) == ("pageable-copies", "note")
    assert run["invocations"][0]["executionSuccessful"] is True
    assert run["properties"]["limiter"] == "input_pipeline"


def test_severities_are_levels() -> None:
    levels = [found["level"] for found in run_of(render_sarif(results.rich(), RULES))["results"]]
    assert levels == ["error", "error", "warning", "warning", "note", "note", "note", "note"]


def test_a_finding_about_one_gpu_says_which() -> None:
    found = run_of(render_sarif(results.rich(), RULES))["results"][3]
    assert " On GPU 1 (rank 1). " in found["message"]["text"]
    assert found["partialFingerprints"]["finding/1"].endswith("/gpu1")


def test_rules_come_from_their_pages() -> None:
    rule = run_of(render_sarif(results.healthy(), RULES))["tool"]["driver"]["rules"][0]
    assert rule == {
        "id": "host-sync",
        "shortDescription": {"text": "Title of host-sync"},
        "fullDescription": {"text": "First line."},
        "help": {
            "text": "What it means\n\nMeaning.\n\nWhat to do next\n\n1. Do.\n2. Do more.\n\n"
            "When it is wrong\n\nCaveat.",
            "markdown": "## What it means\n\nMeaning.\n\n## What to do next\n\n1. Do.\n2. Do more.\n\n"
            "## When it is wrong\n\nCaveat.",
        },
    }


def test_a_healthy_trace_has_no_results() -> None:
    run = run_of(render_sarif(results.healthy(), RULES))
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is True


def test_what_cannot_be_judged_is_no_success() -> None:
    (invocation,) = run_of(render_sarif(results.cannot_judge(), RULES))["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"] == [
        {
            "level": "error",
            "message": {
                "text": "No GPU work was recorded: CUDA was not traced. "
                "Record again: nsys profile --trace=cuda,nvtx,osrt -o job python train.py"
            },
            "descriptor": {"id": "cannot_judge"},
        }
    ]


def test_errors_of_checks_and_warnings_are_notifications() -> None:
    checks = [Check(rule="host-sync", status="error", note="ValueError in the rule.")]
    (invocation,) = run_of(render_sarif(replace(results.rich(), checks=checks), RULES))["invocations"]
    error, *warnings = invocation["toolExecutionNotifications"]
    assert error == {
        "level": "error",
        "message": {"text": "ValueError in the rule."},
        "associatedRule": {"id": "host-sync"},
    }
    assert [(w["level"], w["descriptor"]["id"]) for w in warnings] == [
        ("warning", "private-data"),
        ("warning", "events-lost"),
    ]
    assert invocation["executionSuccessful"] is True


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("my job ä#1.sqlite", "my%20job%20%C3%A4%231.sqlite"),
        ("/home/someone/job.sqlite", "job.sqlite"),
        ("C:job.sqlite", "C%3Ajob.sqlite"),
        ("", "trace"),
    ],
)
def test_files_are_relative_references_without_folders(file: str, uri: str) -> None:
    result = results.baseline(capture=blocks.capture(file=file))
    run = run_of(render_sarif(result, RULES))
    assert run["artifacts"][0]["location"]["uri"] == uri


def test_all_files_are_artifacts() -> None:
    run = run_of(render_sarif(results.rich(), RULES))
    assert [a["location"]["uri"] for a in run["artifacts"]] == ["rank0.nsys-rep", "rank1.nsys-rep"]


def test_text_is_neither_placeholder_nor_link() -> None:
    odd = blocks.finding(title="kernel f[abi:cxx11](int) {lambda(int)#1} [0] \\x takes {0}", actions=[])
    (found,) = run_of(render_sarif(results.baseline(findings=[odd]), RULES))["results"]
    assert found["message"]["text"].startswith(
        "kernel f\\[abi:cxx11\\](int) {{lambda(int)#1}} [0] \\x takes {{0}}. At stake"
    )
    assert found["message"]["text"].endswith(" 0.900 s.")
