"""Runs `nsys-triage batch` as users do, in a process of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """The command, running."""
    return subprocess.Popen(
        [sys.executable, "-m", "nsys_triage", "batch", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def batch(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    process = start(*arguments)
    out, err = process.communicate(timeout=3_600)
    return process.returncode, out, err


def wait_for(reached: Callable[[], bool], process: subprocess.Popen[str], limit_s: float = 300) -> None:
    """Until something is so; fails where the process ends first."""
    end = time.monotonic() + limit_s
    while not reached():
        assert process.poll() is None, "it was done before it could be interrupted"
        assert time.monotonic() < end
        time.sleep(0.01)


def results(out: Path) -> dict[str, int]:
    """Finished results by name, with the time at which they were written."""
    return {path.name: path.stat().st_mtime_ns for path in (out / "jobs").glob("*.json")}
