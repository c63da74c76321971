"""Prints a command of the README's quick start, so that CI runs what a stranger runs and not a copy of it.

    python3 tests/tools/quick_start.py report|test

Standard library only: it works before anything is installed.
"""

import argparse
import re
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
NAMES = ("report", "test")


def commands(readme: str) -> dict[str, str]:
    """The two commands by name, in the order of the README. Raises ValueError where it does not hold two."""
    section = re.search(r"^## Quick start$(.*?)^## ", readme, re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"^```bash\n(.*?)^```$", section[1] if section else "", re.MULTILINE | re.DOTALL)
    return dict(zip(NAMES, blocks, strict=True))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=NAMES)
    name: str = parser.parse_args().name
    sys.stdout.write(commands(README.read_text(encoding="utf-8"))[name])


if __name__ == "__main__":
    main()
