"""A comparison to JSON and back, and the JSON Schema of the contract."""

from pathlib import Path
from typing import Any

import msgspec

from nsys_triage.result.compare_model import SCHEMA, Comparison

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Comparison)


def encode(comparison: Comparison) -> bytes:
    """The comparison as indented UTF-8 JSON with a final newline; the same comparison gives the same bytes."""
    return msgspec.json.format(_ENCODER.encode(comparison), indent=1) + b"\n"


def decode(data: bytes) -> Comparison:
    """The comparison in JSON bytes. Raises `msgspec.ValidationError` where they do not follow the contract."""
    return _DECODER.decode(data)


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the contract, made from the structs."""
    schema = msgspec.json.schema(Comparison)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}


def schema_text() -> str:
    """The JSON Schema as it is shipped: keys in a fixed order."""
    return (
        msgspec.json.format(msgspec.json.encode(json_schema(), order="deterministic"), indent=1).decode()
        + "\n"
    )


def shipped_schema_path() -> Path:
    """Where the package keeps the JSON Schema; a test holds it equal to `json_schema()`."""
    return Path(__file__).with_name("compare-1.schema.json")
