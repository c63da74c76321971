import os
from pathlib import Path

import pytest

from nsys_triage.batch import unfinished
from nsys_triage.batch.messages import Failed, LookTask
from nsys_triage.batch.task import run
from tests.tools.small_files import REPORT_2023, make_export


def look(path: Path, size: int | None = None) -> Failed:
    status = path.stat()
    seen = run(LookTask(os.fsencode(path), status.st_size if size is None else size, str(status.st_mtime_ns)))
    assert isinstance(seen, Failed)
    return seen


def can_tell(tmp_path: Path) -> bool:
    (tmp_path / "probe").write_bytes(b"x")
    return unfinished.open_for_writing(tmp_path / "probe") is not None


def test_a_report_that_somebody_writes_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "job.nsys-rep"
    path.write_bytes(REPORT_2023[:-3])
    if not can_tell(tmp_path):
        pytest.skip("this file system has no leases")
    with path.open("ab"):
        seen = look(path)
    assert seen.kind == "unfinished"
    assert "open for writing" in seen.reason
    # nobody writes any more: it is a bad file
    assert look(path).kind == "input"


def test_without_leases_a_file_written_just_now_is_given_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "open_for_writing", lambda path: None)
    monkeypatch.setattr(unfinished, "_SETTLE_S", 0)
    path = tmp_path / "job.nsys-rep"
    path.write_bytes(REPORT_2023[:-3])
    assert look(path).kind == "unfinished"
    monkeypatch.setattr(unfinished.time, "time", lambda: path.stat().st_mtime + 61)
    assert look(path).kind == "input"


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_a_journal_beside_it(tmp_path: Path, suffix: str) -> None:
    path = make_export(tmp_path / "job.sqlite")
    (tmp_path / f"job.sqlite{suffix}").write_bytes(b"pages")
    assert look(path).kind == "unfinished"


def test_a_file_that_has_changed_since_it_was_listed(tmp_path: Path) -> None:
    path = make_export(tmp_path / "job.sqlite")
    assert look(path, size=17).kind == "unfinished"
