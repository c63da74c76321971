"""Writes again what the project keeps but does not write by hand: the JSON Schemas and parts of the README.

    python -m tests.tools.generated

Tests hold all equal to what this would write.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from nsys_triage.batch.schemas import schema_markdown
from nsys_triage.cli.group import COMMANDS
from nsys_triage.compare import codec as compare_codec
from nsys_triage.result import codec as result_codec

README = Path(__file__).parents[2] / "README.md"
HELP_WIDTH = "100"


def schema_text(schema: dict[str, Any]) -> str:
    """A JSON Schema as it is shipped."""
    return msgspec.json.format(msgspec.json.encode(schema, order="deterministic"), indent=1).decode() + "\n"


def printed(*arguments: str) -> str:
    """What a command of nsys-triage prints on a terminal of the README's width, without the last newline."""
    done = subprocess.run(
        [sys.executable, "-m", "nsys_triage", *arguments],
        cwd=README.parent,
        env={"COLUMNS": HELP_WIDTH, "PATH": "/usr/bin:/bin", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout.rstrip("\n")


def help_part() -> str:
    """The help texts of all commands."""
    texts = [f"```\n$ nsys-triage {name} --help\n{printed(name, '--help')}\n```" for name in COMMANDS]
    return "\n\n".join(texts)


def rules_part() -> str:
    """The table of rules."""
    return printed("rules", "--markdown")


def tables_part() -> str:
    """The tables of a batch and their columns."""
    return schema_markdown().strip("\n")


PARTS = {"help": help_part, "rules": rules_part, "tables": tables_part}


def part(readme: str, name: str) -> str:
    """What stands between the two markers of a part. Raises ValueError where they are not there once."""
    found = re.findall(rf"<!-- {name}:begin -->\n(.*?)\n?<!-- {name}:end -->", readme, re.DOTALL)
    if len(found) != 1:
        raise ValueError(f"README.md has {len(found)} parts named {name}")
    return str(found[0]).strip("\n")


def with_part(readme: str, name: str, text: str) -> str:
    """The README with another text between the two markers."""
    part(readme, name)
    return re.sub(
        rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)",
        lambda found: f"{found[1]}{text}\n{found[2]}",
        readme,
        flags=re.DOTALL,
    )


def main() -> None:
    """Write all."""
    for codec in (result_codec, compare_codec):
        codec.shipped_schema_path().write_text(schema_text(codec.json_schema()), encoding="utf-8")
    readme = README.read_text(encoding="utf-8")
    for name, make in PARTS.items():
        readme = with_part(readme, name, make())
    README.write_text(readme, encoding="utf-8")


if __name__ == "__main__":
    main()
