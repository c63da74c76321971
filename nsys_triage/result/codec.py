"""Result to JSON and back, and the JSON Schema of the contract."""

from pathlib import Path
from typing import Any

import msgspec

from nsys_triage.result.model import SCHEMA, Result

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Result)


def encode(result: Result) -> bytes:
    """The result as indented UTF-8 JSON with a final newline; the same result gives the same bytes."""
    return msgspec.json.format(_ENCODER.encode(result), indent=1) + b"\n"


def decode(data: bytes) -> Result:
    """The result in JSON bytes. Raises `msgspec.ValidationError` where they do not follow the contract."""
    return _DECODER.decode(data)


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the contract, made from the structs."""
    schema = msgspec.json.schema(Result)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}


def shipped_schema_path() -> Path:
    """Where the package keeps the JSON Schema; a test holds it equal to `json_schema()`."""
    return Path(__file__).with_name("result-1.schema.json")
