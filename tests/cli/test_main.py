import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import nsys_triage
from nsys_triage.cli import group
from tests.builders.samples import FOLDER
from tests.cli.conftest import Command
from tests.tools.fake_nsys import FakeNsys
from tests.tools.processes import assert_gone
from tests.tools.small_files import REPORT_OLD, make_export

ROOT = Path(nsys_triage.__file__).parents[1]
PROGRAM = [sys.executable, "-m", "nsys_triage"]


def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "NSYS_TRIAGE_CACHE": str(tmp_path / "cache")}


def test_help_names_every_command(command: Command) -> None:
    code, out, err = command("--help")
    assert (code, err) == (0, "")
    assert [name for name in group.COMMANDS if f"\n  {name} " in out] == list(group.COMMANDS)


def test_version(command: Command) -> None:
    assert command("--version") == (0, f"nsys-triage {nsys_triage.__version__}\n", "")


@pytest.mark.parametrize("name", group.COMMANDS)
def test_help_of_every_command(name: str, command: Command) -> None:
    code, out, err = command(name, "-h")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: nsys-triage {name}")


HELP = [["--help"], *([name, "--help"] for name in group.COMMANDS)]


@pytest.mark.parametrize("arguments", [*HELP, ["no-such-command"], ["report", "no-such-file"]])
def test_nothing_heavy_is_imported_before_it_is_needed(arguments: list[str]) -> None:
    code = (
        "import sys, json\n"
        "from nsys_triage.cli import run\n"
        f"run({arguments!r})\n"
        "json.dump(sorted(sys.modules), sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=ROOT)
    modules = set(json.loads(done.stderr.splitlines()[-1]))
    assert "click" in modules
    heavy = {"polars", "pyarrow", "adbc_driver_manager", "jinja2", "msgspec", "numpy"}
    if arguments[0] != "report" or "--help" in arguments:
        heavy |= {"rich", "platformdirs", "sqlite3", "tomllib"}
    assert not modules & heavy


def test_no_arguments_show_the_help(command: Command) -> None:
    code, out, err = command()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: nsys-triage")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["foo"], "No such command 'foo'. See `nsys-triage --help`."),
        (["report"], "Missing argument 'TRACE...'. See `nsys-triage report --help`."),
        (
            ["report", "--windw"],
            "No such option '--windw'. Did you mean '--window'? See `nsys-triage report --help`.",
        ),
        (["report", "a", "--export-timeout", "0"], None),
    ],
)
def test_usage_errors_are_one_line(arguments: list[str], sentence: str | None, command: Command) -> None:
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("nsys-triage: ")
    assert err.count("\n") == 1
    if sentence:
        assert err == f"nsys-triage: {sentence}\n"


def test_control_characters_of_a_name_are_not_printed(command: Command) -> None:
    code, _, err = command("report", "a\x1b[2Jb\nc")
    assert code == 2
    assert err == "nsys-triage: a\ufffd[2Jb\ufffdc does not exist: check the path.\n"


def test_internal_error_is_one_line_and_a_traceback_only_when_asked_for(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise ValueError("odd\nthing")

    monkeypatch.setattr("nsys_triage.cli.report.plan_outputs", broken)
    code, out, err = command("report", "a")
    assert (code, out) == (70, "")
    assert err == (
        "nsys-triage: internal error (ValueError: odd thing): run it again with -vv and report what it "
        "prints.\n"
    )
    code, out, err = command("report", "a", "-vv")
    assert code == 70
    assert "Traceback (most recent call last)" in err


def test_no_traceback_for_a_mistake(command: Command) -> None:
    assert "Traceback" not in command("report", "no-such-file")[2]
    assert "Traceback" in command("report", "no-such-file", "-vv")[2]


def test_memory_error(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def hungry(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("nsys_triage.cli.report.plan_outputs", hungry)
    code, _, err = command("report", "a")
    assert code == 3
    assert err.startswith("nsys-triage: memory ran out")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signals_end_everything_and_leave_nothing(
    number: signal.Signals, code: int, tmp_path: Path, fake: FakeNsys
) -> None:
    fake.hangs()
    report = tmp_path / "job.nsys-rep"
    report.write_bytes(REPORT_OLD)
    process = subprocess.Popen(
        [*PROGRAM, "report", report, "--nsys", fake.path, "-o", tmp_path / "out.html"],
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 20
    while not fake.pids():
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == code
    assert "Traceback" not in err
    if number == signal.SIGINT:
        assert err.strip() == "nsys-triage: interrupted."
    assert_gone(fake.pids())
    assert list((tmp_path / "cache").iterdir()) == []
    assert not (tmp_path / "out.html").exists()


def test_a_hang_up_is_ignored_under_nohup(tmp_path: Path, fake: FakeNsys) -> None:
    fake.hangs()
    report = tmp_path / "job.nsys-rep"
    report.write_bytes(REPORT_OLD)
    process = subprocess.Popen(
        ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *PROGRAM, "report", report, "--nsys", fake.path],
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    end = time.monotonic() + 20
    while not fake.pids():
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 143
    assert_gone(fake.pids())


@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor"],
        ["rules"],
        ["explain", "host-sync"],
        ["report", FOLDER / "healthy.sqlite"],
        ["report", FOLDER / "healthy.sqlite", "--json", "-"],
    ],
    ids=lambda arguments: " ".join(map(str, arguments[::2])),
)
def test_closed_pipe_is_silent(arguments: list[str | Path], tmp_path: Path) -> None:
    # the reader is gone before anything is written
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            env=environment(tmp_path),
            cwd=tmp_path,
            stdout=write_end,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(write_end)
    assert done.returncode == 141
    assert done.stderr == b""


@pytest.mark.parametrize(
    "arguments", [["rules"], ["report", FOLDER / "healthy.sqlite", "--format", "markdown"]]
)
def test_no_room_on_stdout(arguments: list[str | Path], tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            env=environment(tmp_path),
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == b"nsys-triage: the output cannot be written: no space left on device.\n"


def test_stdout_that_cannot_show_a_name(tmp_path: Path) -> None:
    env = environment(tmp_path) | {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [*PROGRAM, "report", "模型.sqlite"], env=env, capture_output=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr == b"nsys-triage: ??.sqlite does not exist: check the path.\n"


def test_bad_inputs_end_in_one_line_without_output(tmp_path: Path, command: Command) -> None:
    make_export(tmp_path / "good.sqlite")
    (tmp_path / "empty.sqlite").touch()
    code, out, err = command("report", tmp_path / "good.sqlite", tmp_path / "empty.sqlite")
    assert (code, out) == (3, "")
    assert err.startswith("nsys-triage: empty.sqlite is empty (0 bytes)")
    assert err.count("\n") == 1
    assert list(Path.cwd().iterdir()) == []
