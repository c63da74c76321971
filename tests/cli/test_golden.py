"""Results of sample traces, whole but for the timeline: a change in any key or number shows here.

    pytest tests/cli/test_golden.py --update-golden

writes them again; the difference in `tests/golden` is then what has changed for a user.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.samples import FOLDER
from tests.cli.conftest import Command

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = ("data_loader_stall", "launch_bound")


def normalised(text: str, known: set[str] | None) -> dict[str, Any]:
    """A result without its timeline, which is long, and its version.

    Checks of rules that are not `known` and did not fire are left out too, so that a new rule changes no file here.
    """
    result: dict[str, Any] = json.loads(text)
    del result["timeline"], result["tool_version"]
    if known is not None:
        result["checks"] = [
            check
            for check in result["checks"]
            if check["rule"] in known or check["status"] in ("finding", "error")
        ]
    return result


@pytest.mark.parametrize("name", NAMES)
def test_results_of_the_samples(name: str, command: Command, request: pytest.FixtureRequest) -> None:
    code, out, _ = command("report", FOLDER / f"{name}.sqlite", "--json", "-")
    assert code == 0
    golden = GOLDEN / f"{name}.json"
    if request.config.getoption("update_golden"):
        golden.write_text(json.dumps(normalised(out, None), indent=1) + "\n", encoding="utf-8")
    kept = json.loads(golden.read_text(encoding="utf-8"))
    found = normalised(out, {check["rule"] for check in kept["checks"]})
    # as text, so that the order of keys counts and 1 is not 1.0
    assert json.dumps(found, indent=1).splitlines() == json.dumps(kept, indent=1).splitlines()


def test_golden_files_are_those_of_the_samples() -> None:
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(NAMES)
    assert all(path.stat().st_size < 60_000 for path in GOLDEN.iterdir())
