import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nsys_triage.errors import CacheError, ExportError
from nsys_triage.ingest import export as export_module
from nsys_triage.ingest.cache import Cache
from nsys_triage.ingest.export import export
from nsys_triage.ingest.nsys import Nsys
from nsys_triage.ingest.sqlite_file import inspect
from nsys_triage.ingest.version import Version
from tests.tools.fake_nsys import FakeNsys
from tests.tools.processes import assert_gone
from tests.tools.small_files import REPORT_OLD, snapshot

ROOT = Path(export_module.__file__).parents[2]

Heard = list[tuple[str, int | None]]


class Job:
    """A report in a user's folder, a fake nsys, and a cache."""

    def __init__(self, folder: Path, fake: FakeNsys) -> None:
        self.fake = fake
        self.folder = folder / "user folder"
        self.folder.mkdir()
        self.report = self.folder / "job.nsys-rep"
        self.report.write_bytes(REPORT_OLD)
        self.cache = Cache(folder / "cache dir")
        self.heard: Heard = []

    def export(self, timeout_s: float | None = None) -> Path:
        nsys = Nsys(self.fake.path, Version((2023, 4, 4, 54)))
        return export(
            self.report,
            "job.nsys-rep",
            nsys,
            self.cache,
            timeout_s,
            lambda what, share: self.heard.append((what, share)),
        )

    def fails(self, message: str, timeout_s: float | None = None) -> str:
        """The export fails with that message, and leaves nothing anywhere."""
        before = snapshot(self.folder)
        with pytest.raises(ExportError, match=message) as caught:
            self.export(timeout_s)
        assert snapshot(self.folder) == before
        assert list(self.cache.folder.iterdir()) == []
        return str(caught.value)


@pytest.fixture
def job(tmp_path: Path, fake: FakeNsys) -> Job:
    return Job(tmp_path, fake)


def test_export_is_made_once(job: Job) -> None:
    before = snapshot(job.folder)
    first = job.export()
    assert inspect(first).exporter_version == "2023.4.4.54"
    assert job.export() == first
    assert len(job.fake.calls()) == 1
    assert list(job.cache.folder.iterdir()) == [first]
    assert snapshot(job.folder) == before


def test_command_line(job: Job) -> None:
    job.export()
    (call,) = job.fake.calls()
    assert call[:2] == ["export", "--type=sqlite"]
    output = Path(call[2].removeprefix("--output="))
    assert output.is_absolute()
    assert output.is_relative_to(job.cache.folder)
    assert call[3:] == [str(job.report)]
    assert not any("force" in argument for argument in call)


def test_payloads_are_asked_for_where_nsys_leaves_them_out(tmp_path: Path) -> None:
    job = Job(tmp_path, FakeNsys(tmp_path / "new", include_json=True))
    job.export()
    assert "--include-json=true" in job.fake.calls()[0]


def test_relative_path_from_another_folder(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(job.folder)
    job.report = Path("job.nsys-rep")
    job.export()
    assert job.fake.calls()[0][3] == str(job.folder / "job.nsys-rep")


def test_progress(job: Job) -> None:
    job.export()
    assert job.heard[0] == ("reading job.nsys-rep", 100)
    assert ("exporting job.nsys-rep", None) in job.heard
    assert job.heard[-1] == ("exporting job.nsys-rep", 100)


def test_progress_in_pieces() -> None:
    heard: list[int | None] = []
    reader = export_module._ProgressReader("a", lambda what, percent: heard.append(percent))
    for (
        byte
    ) in b"\rExporting 9 events: [1%   ]\rExporting 9 events: [==12%   ]\rExporting 9 events: [====100%]\n":
        reader(bytes([byte]))
    assert heard == [1, 12, 100]


def test_changed_report_is_exported_again(job: Job) -> None:
    first = job.export()
    job.report.write_bytes(b"x" + REPORT_OLD)
    assert job.export() != first
    assert len(job.fake.calls()) == 2


def test_renamed_report_is_not(job: Job) -> None:
    first = job.export()
    job.report = job.report.rename(job.folder / "other.nsys-rep")
    assert job.export() == first


def test_damaged_export_in_the_cache_is_made_again(job: Job) -> None:
    first = job.export()
    first.write_bytes(b"")
    assert job.export() == first
    assert inspect(first).exporter_version
    assert len(job.fake.calls()) == 2


def test_disk_full_with_code_0(job: Job) -> None:
    job.fake.disk_full()
    job.fails("no space was left")


@pytest.mark.parametrize("code", [0, 1])
def test_partial_database(code: int, job: Job) -> None:
    job.fake.damaged(code)
    job.fails("it is damaged: copy or download it again")


def test_filtered_although_all_was_asked_for(job: Job) -> None:
    job.fake.export_ok(EXPORT_PARAM_TABLES_TO_EXPORT="CUPTI.*")
    job.fails("exported in part only")


def test_good_database_with_a_bad_code(job: Job) -> None:
    template = job.fake.path.with_name("template.sqlite")
    job.fake._behave(f'cp "{template}" "$output"\nexit 1')
    job.fails("ended with code 1")


def test_nothing_written(job: Job) -> None:
    job.fake.says("", code=0)
    job.fails("ended with code 0 and left no complete export")


def test_killed_nsys(job: Job) -> None:
    job.fake.killed()
    job.fails("was ended by SIGKILL")


def test_program_that_went_away(job: Job) -> None:
    job.export()
    job.report.write_bytes(b"other" + REPORT_OLD)
    job.fake.path.unlink()
    with pytest.raises(ExportError, match=r"nsys 2023\.4\.4\.54 cannot be run"):
        job.export()


def test_report_that_changes_meanwhile(job: Job) -> None:
    job.fake.changes_the_report()
    with pytest.raises(ExportError, match="changed while it was exported"):
        job.export()
    assert list(job.cache.folder.iterdir()) == []


def test_timeout_ends_nsys_and_its_children(job: Job) -> None:
    job.fake.hangs()
    sentence = job.fails("was not exported within 500 ms", timeout_s=0.5)
    assert "--export-timeout" in sentence
    assert_gone(job.fake.pids())


def test_interrupt_ends_nsys_and_its_children(job: Job) -> None:
    job.fake.hangs()

    def interrupt() -> None:
        while not job.fake.pids():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        job.export()
    assert_gone(job.fake.pids())
    assert list(job.cache.folder.iterdir()) == []


def test_no_space(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil._ntuple_diskusage(10**9, 10**9 - 10**6, 10**6)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(CacheError, match=r"job\.nsys-rep needs about 16 MB .* has 1 MB left: .*--cache-dir"):
        job.export()
    assert job.fake.calls() == []
    assert list(job.cache.folder.iterdir()) == []


_ONE_OF_TWO = """
import sys, time
from pathlib import Path
from nsys_triage.ingest import ExportSettings, open_source
report, nsys, cache, start = sys.argv[1:]
time.sleep(max(0.0, float(start) - time.time()))
print(open_source(Path(report), ExportSettings(nsys=Path(nsys), cache_dir=Path(cache))).path)
"""


def test_two_processes_at_once_both_succeed(job: Job) -> None:
    job.fake.export_ok(delay_s=0.5)
    arguments = [str(job.report), str(job.fake.path), str(job.cache.folder), str(time.time() + 0.5)]
    command = [sys.executable, "-c", _ONE_OF_TWO, *arguments]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)]
    answers = [process.communicate(timeout=30)[0].strip() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert len(job.fake.calls()) == 2, "they did not overlap"
    assert answers[0] == answers[1]
    assert [str(path) for path in job.cache.folder.iterdir()] == answers[:1]
    assert inspect(Path(answers[0])).exporter_version
