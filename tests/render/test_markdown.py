import re

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from nsys_triage.render.markdown import render_markdown
from tests.render import blocks, results

COMMAND = "nsys-triage report job.nsys-rep --format markdown"


def test_verdict_action_ledger_findings_and_command() -> None:
    assert render_markdown(results.baseline(), COMMAND) == (
        "**The GPU waits for input 94 % of the time (9.5 of 10.1 s).**\n\n"
        "Next: Raise num\\_workers of the DataLoader until the gaps close.\n\n"
        "_job.nsys-rep; A100-SXM4-80GB; 1 process; recorded with nsys 2024.6.2; "
        "whole capture: 0.000 to 10.100 s, 38 steps_\n\n"
        "| GPU time: 10.1 s | time | share |\n"
        "|---|--:|--:|\n"
        "| busy: compute | 380 ms | 3.8 % |\n"
        "| busy: exposed copies | 24 ms | 0.2 % |\n"
        "| idle: launch | 61 ms | 0.6 % |\n"
        "| idle: host sync | 30 ms | 0.3 % |\n"
        "| idle: input pipeline | 9.5 s | 94 % |\n"
        "| idle: host compute | 51 ms | 0.5 % |\n"
        "| idle: queued | 20 ms | 0.2 % |\n"
        "| idle: unknown | 10 ms | < 0.1 % |\n\n"
        "- The GPU waits for input 94 % of the time: at stake 7 to 9.5 s, confidence high; "
        "open 0.500 to 0.900 s\n"
        "- Input copies come from pageable memory: at stake up to 20 ms, confidence medium; "
        "open 0.800 to 1.200 s\n\n"
        f"Made by `{COMMAND}`\n"
    )


@pytest.mark.parametrize("name", results.ALL)
def test_it_is_below_two_kilobytes_whatever_it_is_about(name: str) -> None:
    assert len(render_markdown(results.ALL[name](), f"nsys-triage report {'x' * 5_000}").encode()) < 2_000


def test_the_table_has_at_most_eight_rows_and_says_what_the_last_one_sums() -> None:
    text = render_markdown(results.rich(), None)
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 8
    # memset 10, host blocked 240, host compute 360, allocation 80, unknown 110 ms
    assert rows[-1] == "| others | 800 ms | 3.9 % |"


def test_the_three_largest_findings_are_listed_and_the_rest_counted() -> None:
    lines = [line for line in render_markdown(results.rich(), None).splitlines() if line.startswith("- ")]
    assert len(lines) == 4
    assert lines[-1] == "- 5 lesser findings"


def test_names_are_neither_markdown_nor_html() -> None:
    text = render_markdown(results.hostile(), None)
    assert not re.search(r"(?<!\\)<", text.replace("< 0.1", ""))
    named = replace(results.baseline().verdict, sentence="a_b*c`d|e [x](y) <b> &amp; #1")
    assert render_markdown(results.baseline(verdict=named), None).startswith(
        "**a\\_b\\*c\\`d\\|e \\[x\\](y) \\<b\\> &amp;amp; \\#1**"
    )


def test_what_cannot_be_judged_has_the_command_to_record_again() -> None:
    text = render_markdown(results.cannot_judge(), None)
    assert text.startswith("**No GPU work was recorded: CUDA was not traced.**")
    assert "`nsys profile --trace=cuda,nvtx,osrt -o job python train.py`" in text
    assert "|" not in text


def test_without_a_ledger_there_is_no_table() -> None:
    assert "|" not in render_markdown(results.baseline(gpus=[replace(blocks.gpu(), ledger=UNSET)]), None)
