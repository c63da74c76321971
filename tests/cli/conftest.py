import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nsys_triage.cli import run
from nsys_triage.ingest import nsys as nsys_module
from tests.tools.fake_nsys import FakeNsys

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def machine_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No nsys, cache or settings of this machine, and an empty folder to work in, which is returned."""
    monkeypatch.delenv(nsys_module.NSYS_VARIABLE, raising=False)
    monkeypatch.setenv("NSYS_TRIAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(nsys_module, "INSTALL_PATTERNS", ())
    path = [part for part in os.environ["PATH"].split(":") if not os.access(Path(part) / "nsys", os.F_OK)]
    monkeypatch.setenv("PATH", ":".join(path))
    folder = tmp_path / "working folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def fake(tmp_path: Path) -> FakeNsys:
    return FakeNsys(tmp_path / "fake nsys")


@pytest.fixture
def command(capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """Runs one command line in this process: exit code, stdout, stderr."""

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        capfdbinary.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return call
