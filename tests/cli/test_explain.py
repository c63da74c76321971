import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import nsys_triage
from nsys_triage.rules.base import SECTIONS
from nsys_triage.rules.registry import all_rules
from tests.cli.conftest import Command

ROOT = Path(nsys_triage.__file__).parents[1]


def words(text: str) -> str:
    return " ".join(text.split())


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What a command prints on a terminal of 70 columns."""
    master, slave = pty.openpty()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "70", **environment}
    process = subprocess.Popen(
        [sys.executable, "-m", "nsys_triage", *arguments], stdout=slave, stdin=slave, env=env
    )
    os.close(slave)
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    assert process.wait(timeout=30) == 0
    return b"".join(parts).decode()


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_the_page_of_every_rule_is_whole(rule: object, command: Command) -> None:
    (known,) = [other for other in all_rules() if other is rule]
    code, out, err = command("explain", known.id)
    assert (code, err) == (0, "")
    text = words(out)
    assert text.startswith(words(f"{known.id}: {known.title} {known.page.summary} {SECTIONS[0]} "))
    for part in (known.page.meaning, known.page.actions, known.page.caveat):
        assert words(part) in text
    for name, threshold in known.thresholds.items():
        assert f"\n  {name} = " in out
        assert words(threshold.why) in text
    # a command stays whole, as does a word that is longer than a line
    prose = [line for line in out.split("\n") if not line.startswith("  To ") and " " in line.strip()]
    assert max(map(len, prose)) <= 80
    assert "\x1b" not in out


def test_thresholds_needs_and_how_to_record_them(command: Command) -> None:
    out = command("explain", "cpu-saturated")[1]
    assert "\n  - CPU scheduling: nsys profile --cpuctxsw=process-tree\n" in out
    assert out.endswith(
        "\n  To record: nsys profile --trace=cuda,nvtx,osrt --output=job --cpuctxsw=process-tree <your command>\n"
    )
    out = command("explain", "host-sync")[1]
    assert "\n  share = 0.05 (share, 5.0 %)\n      of the span, that this cause must reach" in out
    assert "\n  To change it: nsys-triage report TRACE --threshold host-sync.share=VALUE\n" in out
    assert out.endswith("\n  To record: nsys profile --trace=cuda,nvtx,osrt --output=job <your command>\n")


@pytest.mark.parametrize("name", ["host_sync", "HOST-SYNC", " host-sync "])
def test_other_spellings(name: str, command: Command) -> None:
    assert command("explain", name) == command("explain", "host-sync")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("host-snyc", "did you mean host-sync or "),
        ("sync", "did you mean host-sync?"),
        ("pageable", "did you mean pageable-copies?"),
        ("../../etc/passwd", ": `nsys-triage rules` lists all rules."),
        ("", ": `nsys-triage rules` lists all rules."),
    ],
)
def test_unknown_names(name: str, near: str, command: Command) -> None:
    code, out, err = command("explain", name)
    assert (code, out) == (2, "")
    assert err.startswith(f"nsys-triage: there is no rule {name!r}: ")
    assert near in err
    assert err.count("\n") == 1


def test_on_a_terminal_it_is_fitted_and_emphasised() -> None:
    out = on_a_terminal("explain", "host-sync")
    assert "\x1b[1mWhat it means\x1b[0m" in out
    prose = [line for line in out.split("\r\n") if not line.startswith("\x1b")]
    assert 60 < max(map(len, prose)) <= 70
    assert "\x1b" not in on_a_terminal("explain", "host-sync", NO_COLOR="1", TERM="dumb")
