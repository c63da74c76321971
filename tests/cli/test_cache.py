from pathlib import Path

from nsys_triage import units
from nsys_triage.ingest import ExportSettings, open_source
from tests.cli.conftest import Command
from tests.tools.fake_nsys import FakeNsys
from tests.tools.small_files import REPORT_OLD


def test_show_and_clear(tmp_path: Path, fake: FakeNsys, command: Command) -> None:
    assert command("cache") == (0, f"{tmp_path}/cache\n0 exports, 0 B\n", "")
    report = tmp_path / "job.nsys-rep"
    report.write_bytes(REPORT_OLD)
    source = open_source(report, ExportSettings(nsys=fake.path))
    size = units.size(source.path.stat().st_size)
    assert command("cache") == (0, f"{tmp_path}/cache\n1 export, {size}\n", "")
    assert command("cache", "--clear", "--cache-dir", tmp_path / "other") == (
        0,
        "removed 0 exports, 0 B\n",
        "",
    )
    assert source.path.exists()
    assert command("cache", "--clear") == (0, f"removed 1 export, {size}\n", "")
    assert list((tmp_path / "cache").iterdir()) == []
    assert report.exists()


def test_folder_that_is_a_file(tmp_path: Path, command: Command) -> None:
    (tmp_path / "file").touch()
    assert command("cache", "--cache-dir", tmp_path / "file")[0] == 0
