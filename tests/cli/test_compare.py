"""`nsys-triage compare`: outputs, exit codes, what is refused."""

import json
import shutil
from pathlib import Path

import pytest

from tests.builders import torch_kernels as torch
from tests.builders.trace import TraceBuilder
from tests.cli.conftest import Command
from tests.compare.jobs import Plan, write


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    write(Plan(steps=12), 1, folder / "before.sqlite")
    write(Plan(steps=12).longer(torch.GEMM_AMPERE, 1.6), 2, folder / "after.sqlite")
    TraceBuilder().api("cudaDeviceSynchronize_v3020", 10, 20).write(folder / "empty.sqlite")
    return folder


def test_json_on_stdout_is_one_object(traces: Path, command: Command, machine_of_its_own: Path) -> None:
    code, out, _ = command("compare", traces / "before.sqlite", traces / "after.sqlite", "--json", "-")
    found = json.loads(out)
    assert code == 0
    assert found["schema"] == "nsys-triage/compare/1"
    assert found["verdict"]["outcome"] == "slower"
    assert str(traces) not in out
    assert list(machine_of_its_own.iterdir()) == []


def test_page_and_summary(traces: Path, command: Command, machine_of_its_own: Path) -> None:
    code, out, err = command("compare", traces / "before.sqlite", traces / "after.sqlite")
    assert (code, err) == (0, "")
    assert [path.name for path in machine_of_its_own.iterdir()] == ["after.compare.html"]
    assert out.startswith("A step takes ")
    assert "after.compare.html" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    code, _, err = command("compare", traces / "before.sqlite", traces / "after.sqlite")
    assert code == 2
    assert "--force" in err
    assert command("compare", traces / "before.sqlite", traces / "after.sqlite", "--force", "-q")[:2] == (
        0,
        "",
    )


@pytest.mark.parametrize(
    ("after", "percent", "wanted"),
    [("after", "5%", 1), ("after", "400 %", 0), ("before", "5", 0), ("empty", "5%", 3)],
)
def test_gate(after: str, percent: str, wanted: int, traces: Path, command: Command) -> None:
    line = ("compare", traces / "before.sqlite", traces / f"{after}.sqlite", "--fail-on-regression", percent)
    code, out, err = command(*line, "--json", "-")
    assert code == wanted
    assert json.loads(out)["gate"]["threshold_share"] == pytest.approx(float(percent.rstrip(" %")) / 100)
    assert ("regressed by" in err) == (wanted == 1)


def test_a_gate_sees_slower_kernels_in_idle_time(command: Command, tmp_path: Path) -> None:
    """Kernels take 15 % longer in a job that waits for its input anyway: its step takes no longer."""
    plan = Plan(steps=30, period=8_000.0)
    before = write(plan, 1, tmp_path / "before.sqlite")
    after = write(plan.all_longer(1.15), 2, tmp_path / "after.sqlite")
    line = ("compare", before, after, "--json", "-", "--fail-on-regression")
    code, out, err = command(*line, "5%")
    assert code == 1
    assert json.loads(out)["verdict"]["outcome"] == "no_change"
    assert "The busy time of a step regressed by 1" in err
    assert command(*line, "30%")[0] == 0


def test_copies_of_one_file_are_no_repeats(traces: Path, command: Command, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        shutil.copy(traces / "before.sqlite", tmp_path / f"{number}.sqlite")
    code, out, _ = command("compare", tmp_path, traces / "after.sqlite", "--format", "markdown", "-o", "-")
    assert code == 0
    assert "are copies of one capture" in out
    assert "tell nothing about noise" in out


def test_a_gate_that_noise_leaves_open(traces: Path, command: Command, tmp_path: Path) -> None:
    for number in (1, 2):
        write(Plan(steps=3), number, tmp_path / f"{number}.sqlite")
    code, _, err = command(
        "compare", tmp_path / "1.sqlite", tmp_path / "2.sqlite", "--fail-on-regression", "0.1%", "--json", "-"
    )
    assert code == 3
    assert "--fail-on-regression" in err


def test_a_side_without_gpu_work(traces: Path, command: Command) -> None:
    for sides in (("empty", "before"), ("before", "empty"), ("empty", "empty")):
        code, out, _ = command("compare", *(traces / f"{name}.sqlite" for name in sides), "--json", "-")
        assert code == 3
        assert json.loads(out)["status"] == "cannot_judge"


def test_results_and_folders_of_repeats(traces: Path, command: Command, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    for number in (1, 2, 3):
        shutil.copy(write(Plan(steps=12), 10 + number, tmp_path / "x.sqlite"), runs / f"{number}.sqlite")
    result = tmp_path / "before.json"
    assert command("report", traces / "before.sqlite", "--json", result)[0] == 0
    code, out, _ = command("compare", result, runs, "--fail-on-regression", "5%", "--json", "-")
    found = json.loads(out)
    assert code == 0
    assert (found["before"]["runs"][0]["source"], found["after"]["taken_as"]) == ("result", "repeats")
    assert found["verdict"]["outcome"] == "no_change"
    assert any(note["id"] == "taken-as" for note in found["comparability"]["notes"])
    code, _, err = command("compare", result, runs, "--window", "all", "--json", "-")
    assert code == 2
    assert "--window" in err


def test_markdown(traces: Path, command: Command) -> None:
    code, out, _ = command(
        "compare", traces / "before.sqlite", traces / "after.sqlite", "--format", "markdown"
    )
    assert code == 0
    assert len(out.encode()) < 2_000
    assert out.startswith("**A step takes ")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--fail-on-regression", "much"], "5%"),
        (["--fail-on-regression", "-5%"], "5%"),
        (["-o", "x.sarif"], "Markdown"),
        (["--keep-sqlite", "x.sqlite"], "--keep-sqlite"),
        (["--format", "markdown", "--json", "-"], "stdout"),
    ],
)
def test_wrong_usage(more: list[str], said: str, traces: Path, command: Command) -> None:
    code, out, err = command("compare", traces / "before.sqlite", traces / "after.sqlite", *more)
    assert (code, out) == (2, "")
    assert said in err


def test_a_missing_file(traces: Path, command: Command) -> None:
    code, _, err = command("compare", traces / "before.sqlite", traces / "nowhere.sqlite")
    assert code == 2
    assert "nowhere.sqlite does not exist" in err


def test_an_input_is_never_overwritten(traces: Path, command: Command) -> None:
    before = traces / "before.sqlite"
    code, _, err = command("compare", before, traces / "after.sqlite", "--json", before, "--force")
    assert code == 2
    assert "input" in err
