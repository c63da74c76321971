"""The README is true: its commands are those that CI runs, and its tables are those of the code."""

import re
import shlex
import signal
import subprocess
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from nsys_triage import cli, errors
from nsys_triage.cli import batch, compare, report
from nsys_triage.ingest.cache import CACHE_VARIABLE
from nsys_triage.ingest.nsys import NSYS_VARIABLE
from nsys_triage.result.model import CAUSES, SCHEMA, Result, Window
from nsys_triage.rules.registry import all_rules
from tests.tools import generated, quick_start
from tests.tools.real_nsys import program_of

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# what nsys 2023.4.4 does not know yet
NEWER_NSYS_OPTIONS = {"--gpu-metrics-devices"}


def section(head: str) -> str:
    """The text under a headline, without that of the next headline of any level."""
    found = re.search(rf"^#+ {re.escape(head)}\n(.*?)(?=^#+ |\Z)", README, re.MULTILINE | re.DOTALL)
    assert found, f"no section {head}"
    return found[1]


def first_cells(text: str) -> list[str]:
    """The first cell of each row of the tables in a text, without their heads."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [
        row.split("|")[1].strip()
        for row, after in pairwise([*rows, ""])
        if not row.startswith("|--") and not after.startswith("|--")
    ]


def code_words(text: str) -> list[str]:
    """Everything between backquotes."""
    return re.findall(r"`([^`\n]+)`", text)


def test_quick_start_is_two_commands_that_set_up_all() -> None:
    found = quick_start.commands(README)
    assert list(found) == ["report", "test"]
    for command in found.values():
        words = shlex.split(command)
        assert words[:5] == ["python3", "-m", "venv", ".venv", "||"]
        assert subprocess.run(["bash", "-n", "-c", command], check=False).returncode == 0
    assert (ROOT / shlex.split(found["report"])[-1]).is_file()
    (extra,) = re.findall(r"\.\[(\w+)\]", found["test"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert extra in project["optional-dependencies"]


def test_ci_runs_the_commands_of_the_readme_and_no_copies() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^ *readme (\w+)", script, re.MULTILINE) == list(quick_start.NAMES)
    assert 'command=$(python3 tests/tools/quick_start.py "$1")' in script
    assert 'bash -eo pipefail -c "$command"' in script
    assert "pip install" not in script
    assert "pytest" not in re.sub(r"^ *#.*", "", script, flags=re.MULTILINE)


@pytest.mark.parametrize("readme", ["", "## Quick start\n```bash\none\n```\n## Next\n```bash\ntwo\n```\n"])
def test_quick_start_of_another_shape_is_refused(readme: str) -> None:
    with pytest.raises(ValueError, match="zip"):
        quick_start.commands(readme)


@pytest.mark.parametrize("name", generated.PARTS)
def test_generated_parts(name: str) -> None:
    assert generated.part(README, name) == generated.PARTS[name](), "python -m tests.tools.generated"


def test_every_rule_is_in_the_table() -> None:
    assert first_cells(section("Rules")) == [f"`{rule.id}`" for rule in all_rules()]


def test_every_file_that_is_linked_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    local = [link for link in links if not link.startswith("https://")]
    assert len(local) >= 4
    assert [link for link in local if not (ROOT / link).exists()] == []


def test_picture_is_a_small_png() -> None:
    (name,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)
    data = (ROOT / name).read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(data) < 300_000


def hand_written() -> str:
    """The README without its generated parts."""
    return re.sub(r"<!-- (\w+):begin -->.*?<!-- \1:end -->", "", README, flags=re.DOTALL)


def test_options_are_those_of_the_help_texts() -> None:
    text = hand_written()
    for head in ("Getting nsys", "Recording a good trace", "Developing"):  # other programs' options
        text = text.replace(section(head), "")
    text = re.sub(r"^sbatch .*? --wrap ", "", text, flags=re.MULTILINE)
    used = re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)
    assert len(used) >= 8
    known = set(re.findall(r"--[a-z][a-z-]*", generated.help_part()))
    assert [option for option in used if option not in known] == []


def nsys_options() -> set[str]:
    """The options of `nsys profile` and `nsys export` that the README uses."""
    lines = re.findall(r"\bnsys (?:profile|export) .*", hand_written())
    table = [cell for cell in first_cells(section("Recording a good trace")) if "`--" in cell]
    assert len(lines) >= 5
    assert len(table) >= 5
    return {
        option
        for text in [*(line.split(" python ")[0] for line in lines), *table]
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)
    }


@pytest.mark.nsys
def test_nsys_knows_the_options() -> None:
    program = program_of("2023.4.4")
    texts = [
        subprocess.run([program, command, "--help"], capture_output=True, text=True, check=False).stdout
        for command in ("profile", "export")
    ]
    known = set(re.findall(r"--[a-z][a-z-]*", "\n".join(texts)))
    assert nsys_options() - NEWER_NSYS_OPTIONS <= known


def test_causes() -> None:
    assert first_cells(section("Reading the report")) == [f"`{cause}`" for cause in CAUSES]


def test_window_modes() -> None:
    cells = first_cells(section("Window"))
    assert cells == ["`auto`", "`all`", "`START:END`", "`nvtx:NAME`"]
    (annotation,) = (field.type for field in msgspec.structs.fields(Window) if field.name == "mode")
    assert len(get_args(annotation)) == len(cells)


def test_exit_codes() -> None:
    listed = {int(code) for cell in first_cells(section("Exit codes")) for code in cell.split(", ")}
    of_errors = {kind.exit_code for kind in vars(errors).values() if isinstance(kind, type)}
    of_modules = {
        value
        for module in (cli, report, batch, compare)
        for name, value in vars(module).items()
        if name.startswith("EXIT_") and isinstance(value, int)
    }
    of_signals = {128 + number for number in (signal.SIGHUP, signal.SIGTERM)}
    assert listed == {0} | of_errors | of_modules | of_signals


def test_json_keys() -> None:
    text = section("JSON")
    assert f"`{SCHEMA}`" in text
    listed = [word for cell in first_cells(text) for word in code_words(cell)]
    assert sorted(listed) == sorted(field.encode_name for field in msgspec.structs.fields(Result))


def test_variables() -> None:
    assert set(re.findall(r"NSYS_TRIAGE_\w+", README)) == {NSYS_VARIABLE, CACHE_VARIABLE}
