import os
from pathlib import Path

import pytest

from nsys_triage.ingest import nsys as nsys_module
from tests.tools.fake_nsys import FakeNsys


@pytest.fixture(autouse=True)
def machine_without_nsys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No nsys, no cache and no settings of the machine that the tests run on."""
    monkeypatch.delenv(nsys_module.NSYS_VARIABLE, raising=False)
    monkeypatch.setenv("NSYS_TRIAGE_CACHE", str(tmp_path / "default cache"))
    monkeypatch.setattr(nsys_module, "INSTALL_PATTERNS", ())
    path = [part for part in os.environ["PATH"].split(":") if not os.access(Path(part) / "nsys", os.F_OK)]
    monkeypatch.setenv("PATH", ":".join(path))
    nsys_module.knows_include_json.cache_clear()


@pytest.fixture
def fake(tmp_path: Path) -> FakeNsys:
    return FakeNsys(tmp_path / "fake nsys")
