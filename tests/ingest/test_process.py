import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from nsys_triage.ingest.process import DeadlineError, run_group
from tests.tools.processes import assert_gone


def ignore(data: bytes) -> None:
    del data


def test_code_and_messages(tmp_path: Path) -> None:
    heard: list[bytes] = []
    command = ["sh", "-c", "pwd; printf 'a b' >&2; printf c >&2; exit 7"]
    finished = run_group(command, tmp_path, None, heard.append)
    assert (finished.return_code, finished.stderr, b"".join(heard)) == (7, "a bc", b"a bc")


def test_signal_is_a_negative_code(tmp_path: Path) -> None:
    assert run_group(["sh", "-c", "kill -SEGV $$"], tmp_path, None, ignore).return_code == -signal.SIGSEGV


def test_much_output_is_read_and_its_end_is_kept(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('x' * 1_000_000 + 'end')"
    finished = run_group([sys.executable, "-c", code], tmp_path, 30, ignore)
    assert len(finished.stderr) == 64 * 1024
    assert finished.stderr.endswith("end")


def test_missing_program(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_group([tmp_path / "no"], tmp_path, None, ignore)


def test_deadline_ends_the_whole_group(tmp_path: Path) -> None:
    pids: list[int] = []

    def hear(data: bytes) -> None:
        pids.extend(map(int, data.split()))

    started = time.monotonic()
    with pytest.raises(DeadlineError):
        run_group(["sh", "-c", "sleep 600 & echo $$ $! >&2; wait"], tmp_path, 0.5, hear)
    assert time.monotonic() - started < 5
    assert_gone(pids)


def test_deadline_holds_while_output_comes(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(DeadlineError):
        run_group(["sh", "-c", "yes >&2"], tmp_path, 0.3, ignore)
    assert time.monotonic() - started < 5


def test_child_left_behind_neither_delays_nor_survives(tmp_path: Path) -> None:
    pids: list[int] = []
    started = time.monotonic()
    # the child keeps the pipe open after its parent has ended
    finished = run_group(
        ["sh", "-c", "sleep 600 & echo $! >&2"], tmp_path, None, lambda d: pids.append(int(d))
    )
    assert time.monotonic() - started < 5
    assert finished.return_code == 0
    assert_gone(pids, 1)


def test_interrupt_ends_the_whole_group(tmp_path: Path) -> None:
    pids: list[int] = []

    def hear(data: bytes) -> None:
        pids.extend(map(int, data.split()))
        # as Ctrl-C on a terminal: only this process is told, the group is another one
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        run_group(["sh", "-c", "trap '' INT TERM; sleep 600 & echo $$ $! >&2; wait"], tmp_path, None, hear)
    assert_gone(pids)


def test_group_of_its_own(tmp_path: Path) -> None:
    heard: list[bytes] = []
    run_group(["sh", "-c", "cut -d' ' -f5 /proc/$$/stat >&2"], tmp_path, None, heard.append)
    assert int(b"".join(heard)) != os.getpgid(0)
