import os
from pathlib import Path

import pytest

from nsys_triage.ingest import nsys as nsys_module
from tests.tools.fake_nsys import FakeNsys


@pytest.fixture(autouse=True)
def machine_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No nsys and no cache of this machine, in the processes of a pool neither."""
    monkeypatch.delenv(nsys_module.NSYS_VARIABLE, raising=False)
    monkeypatch.setenv("NSYS_TRIAGE_CACHE", str(tmp_path / "cache"))
    path = [part for part in os.environ["PATH"].split(":") if not os.access(Path(part) / "nsys", os.F_OK)]
    monkeypatch.setenv("PATH", ":".join(path))


@pytest.fixture
def fake(tmp_path: Path) -> FakeNsys:
    return FakeNsys(tmp_path / "fake nsys")
