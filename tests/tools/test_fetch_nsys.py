from pathlib import Path

import pytest

from tests.tools import fetch_nsys

DEB822 = """Types: deb-src
URIs: http://first.example/debian
Suites: bookworm

Types: deb
# a comment
URIs: http://mirror.example/debian http://other.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/own.gpg

Types: deb
URIs: http://security.example/debian
Suites: bookworm-security
"""


def test_source_in_stanzas() -> None:
    found = fetch_nsys._from_deb822(DEB822, "bookworm")
    assert found == ("http://mirror.example/debian", "/usr/share/keyrings/own.gpg")
    assert fetch_nsys._from_deb822(DEB822, "trixie") is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("deb http://mirror.example/debian bookworm main\n", ("http://mirror.example/debian", "")),
        (
            "deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main\n",
            ("http://mirror.example/debian", "/k.gpg"),
        ),
        ("# deb http://mirror.example/debian bookworm main\n", None),
        ("deb-src http://mirror.example/debian bookworm main\n", None),
        ("deb http://mirror.example/debian bookworm-updates main\n", None),
    ],
)
def test_source_in_a_line(line: str, expected: tuple[str, str] | None) -> None:
    assert fetch_nsys._from_one_line(line, "bookworm") == expected


def test_program_in_an_unpacked_package(tmp_path: Path) -> None:
    assert fetch_nsys.nsys_of(tmp_path) is None
    program = tmp_path / "usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64/nsys"
    program.parent.mkdir(parents=True)
    program.touch()
    assert fetch_nsys.nsys_of(tmp_path) == program
