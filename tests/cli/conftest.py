import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nsys_triage.cli import run
from nsys_triage.ingest import nsys as nsys_module
from tests.cli.stages import Stages
from tests.tools.fake_nsys import FakeNsys
from tests.tools.small_files import make_export

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


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> Stages:
    """What comes after ingest, replaced."""
    stages = Stages()
    monkeypatch.setattr("nsys_triage.analyze.analyze", stages.analyze)
    monkeypatch.setattr("nsys_triage.render.html.render_html", stages.render_html)
    monkeypatch.setattr("nsys_triage.render.markdown.render_markdown", stages.render_markdown)
    monkeypatch.setattr("nsys_triage.render.terminal.print_summary", stages.print_summary)
    return stages


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A small export in a folder of its own."""
    folder = tmp_path / "user folder"
    folder.mkdir()
    return make_export(folder / "my job.v2.sqlite")
