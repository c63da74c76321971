import io

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from rich.console import Console

from nsys_triage.render.terminal import WIDTH, print_summary
from nsys_triage.result.model import Result
from tests.render import blocks, results


def printed(result: Result, report: str | None = "job.triage.html", **console: object) -> str:
    file = io.StringIO()
    print_summary(result, Console(file=file, width=80, **console), report)  # type: ignore[arg-type]
    return file.getvalue()


def test_the_summary_of_a_trace_that_waits_for_input() -> None:
    assert printed(results.baseline()) == (
        "job.nsys-rep   A100-SXM4-80GB   whole capture, 10.1 s\n"
        "The GPU waits for input 94 % of the time (9.5 of 10.1 s).\n"
        "GPU 0  busy 4.0 %     |##..................................................|\n"
        "       input pipeline 94 %  launch 0.6 %  host compute 0.5 %  host sync 0.3 %\n"
        "       other 0.5 %\n"
        "Next   Raise num_workers of the DataLoader until the gaps close; then record\n"
        "       again and compare\n"
        "       1 lesser finding, 3 checks passed, 3 could not run: see the report\n"
        "Report job.triage.html\n"
    )


@pytest.mark.parametrize("name", results.ALL)
def test_lines_fit_80_columns_but_for_commands(name: str) -> None:
    for line in printed(results.ALL[name]()).splitlines():
        assert len(line) <= WIDTH or line.startswith(("Record ", "Run "))


def test_a_pipe_gets_no_colours_and_a_terminal_may() -> None:
    assert "\x1b[" not in printed(results.rich())
    assert "\x1b[" in printed(results.rich(), force_terminal=True, color_system="standard")


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    colours = printed(results.rich(), force_terminal=True)
    assert not any(f"\x1b[{code}" in colours for code in ("31", "32", "33", "36"))


def test_square_brackets_are_text() -> None:
    verdict = replace(results.baseline().verdict, sentence="The kernel [red]k[/red] takes 3 s.")
    assert "The kernel [red]k[/red] takes 3 s." in printed(
        results.baseline(verdict=verdict), force_terminal=True
    )


def test_what_cannot_be_judged_says_how_to_record_again() -> None:
    text = printed(results.cannot_judge(), report=None)
    assert text.splitlines()[1:] == [
        "No GPU work was recorded: CUDA was not traced.",
        "Record nsys profile --trace=cuda,nvtx,osrt -o job python train.py",
    ]


def test_a_healthy_trace_is_not_told_to_compare() -> None:
    text = printed(results.healthy())
    assert "Nothing worth chasing here" in text
    assert "compare" not in text
    # busy 99.7 percent is not a full bar
    assert "#.|" in text


def test_of_many_gpus_the_least_busy_are_shown() -> None:
    busier = blocks.causes(compute=90 * blocks.S, launch=10 * blocks.S)
    gpus = [blocks.gpu(n, busier) for n in range(10)] + [blocks.gpu(10)]
    text = printed(results.baseline(gpus=gpus))
    assert [line[:6] for line in text.splitlines() if "|" in line] == ["GPU 10", "GPU 0 ", "GPU 1 ", "GPU 2 "]
    assert "7 busier GPUs: busy 90 % to 90 %" in text


def test_without_a_ledger_there_is_a_bar_all_the_same() -> None:
    text = printed(results.baseline(gpus=[replace(blocks.gpu(), ledger=UNSET)]))
    assert "GPU 0  busy 4.0 %" in text
    assert "input pipeline" not in text
