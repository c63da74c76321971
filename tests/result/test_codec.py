"""The JSON contract: the schema that is shipped is that of the structs, and results follow it."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from nsys_triage.cli import run
from nsys_triage.result.codec import decode, encode, json_schema, shipped_schema_path
from nsys_triage.result.model import SCHEMA
from tests.tools.generated import schema_text

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shipped_schema_path().read_text(encoding="utf-8"))
    return found


def test_shipped_schema_is_that_of_the_structs(shipped: dict[str, Any]) -> None:
    assert shipped == json_schema(), "write it again: python -m tests.tools.generated"
    assert shipped_schema_path().read_text(encoding="utf-8") == schema_text(json_schema())


def test_shipped_schema_is_a_schema(shipped: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(shipped)
    assert shipped["$id"] == SCHEMA


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.sqlite")), ids=lambda path: path.stem)
def test_results_of_the_samples_follow_the_shipped_schema(
    path: Path, shipped: dict[str, Any], tmp_path: Path
) -> None:
    target = tmp_path / "result.json"
    assert run(["report", str(path), "--json", str(target), "-q"]) == 0
    data = target.read_bytes()
    jsonschema.Draft202012Validator(shipped).validate(json.loads(data))
    assert encode(decode(data)) == data


def test_unknown_keys_are_an_error(shipped: dict[str, Any], tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    assert run(["report", str(SAMPLES / "healthy.sqlite"), "--json", str(target), "-q"]) == 0
    document = json.loads(target.read_bytes())
    document["capture"]["host_name"] = "somewhere"
    with pytest.raises(jsonschema.ValidationError, match="host_name"):
        jsonschema.Draft202012Validator(shipped).validate(document)
    with pytest.raises(msgspec.ValidationError, match="host_name"):
        decode(json.dumps(document).encode())
