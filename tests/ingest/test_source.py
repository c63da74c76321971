import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nsys_triage.errors import ExportError, InputError, NsysMissingError, OutputError, UsageError
from nsys_triage.ingest import ExportSettings, Source, open_source
from nsys_triage.ingest.sqlite_file import inspect, read_only
from tests.tools import record
from tests.tools.fake_nsys import FakeNsys
from tests.tools.real_nsys import VERSIONS, program_of, root_of
from tests.tools.small_files import REPORT_2023, REPORT_FUTURE, REPORT_OLD, SHARED, make_export, snapshot

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "nvtx_osrt_only.nsys-rep"
REPORTS = SHARED / "traces/reports"


def user_file(tmp_path: Path, name: str, content: bytes = REPORT_2023) -> Path:
    folder = tmp_path / "user folder"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


def settings(tmp_path: Path, nsys: Path | None = None, **more: object) -> ExportSettings:
    return ExportSettings(nsys=nsys, cache_dir=tmp_path / "cache", **more)  # type: ignore[arg-type]


def test_export_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_export(tmp_path / "job.sqlite", EXPORT_PARAM_TIMES_TO_EXPORT="1/2")
    monkeypatch.chdir(tmp_path)
    before = snapshot(tmp_path)
    source = open_source(Path("job.sqlite"), ExportSettings())
    assert source == Source(tmp_path / "job.sqlite", "job.sqlite", "sqlite", None, True)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "content", "kind", "version"),
    [
        ("job.nsys-rep", REPORT_2023, "nsys-rep", "2023.4.4.54"),
        ("job.qdrep", REPORT_OLD, "qdrep", None),
        ("noext", REPORT_OLD, "nsys-rep", None),
    ],
)
def test_report_is_exported(
    name: str, content: bytes, kind: str, version: str | None, tmp_path: Path, fake: FakeNsys
) -> None:
    path = user_file(tmp_path, name, content)
    before = snapshot(path.parent)
    source = open_source(path, settings(tmp_path, fake.path))
    assert (source.file, source.kind, source.capture_version, source.filtered) == (name, kind, version, False)
    assert source.path.parent == tmp_path / "cache"
    assert inspect(source.path).exporter_version
    assert snapshot(path.parent) == before


def test_cache_folder_from_the_environment(tmp_path: Path, fake: FakeNsys) -> None:
    source = open_source(user_file(tmp_path, "job.nsys-rep"), ExportSettings(nsys=fake.path))
    assert source.path.parent == tmp_path / "default cache"


def test_what_is_wrong_with_the_file_is_said_before_nsys_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="truncated"):
        open_source(user_file(tmp_path, "a", REPORT_2023[:-3]), settings(tmp_path))
    with pytest.raises(NsysMissingError):
        open_source(user_file(tmp_path, "b"), settings(tmp_path))
    assert not (tmp_path / "cache").exists()


def test_report_from_the_future(tmp_path: Path, fake: FakeNsys) -> None:
    with pytest.raises(
        ExportError, match=r"recorded with nsys 2031\.2\.1\.7, which nsys 2023\.4\.4\.54 cannot"
    ):
        open_source(user_file(tmp_path, "a", REPORT_FUTURE), settings(tmp_path, fake.path))
    assert fake.calls() == []
    assert not (tmp_path / "cache").exists()


def test_copy_of_the_export(tmp_path: Path, fake: FakeNsys) -> None:
    path = user_file(tmp_path, "job.nsys-rep")
    kept = tmp_path / "kept.sqlite"
    source = open_source(path, settings(tmp_path, fake.path, keep_sqlite=kept))
    assert kept.read_bytes() == source.path.read_bytes()
    assert source.path != kept
    again = open_source(kept, settings(tmp_path))
    assert again.kind == "sqlite"


def test_copy_does_not_overwrite_and_no_work_is_done(tmp_path: Path, fake: FakeNsys) -> None:
    path = user_file(tmp_path, "job.nsys-rep")
    kept = tmp_path / "kept.sqlite"
    kept.write_text("mine")
    with pytest.raises(OutputError, match=r"kept\.sqlite exists already"):
        open_source(path, settings(tmp_path, fake.path, keep_sqlite=kept))
    assert kept.read_text() == "mine"
    assert fake.calls() == []
    open_source(path, settings(tmp_path, fake.path, keep_sqlite=kept, force=True))
    assert inspect(kept).exporter_version


def test_report_is_never_overwritten_by_its_export(tmp_path: Path, fake: FakeNsys) -> None:
    path = user_file(tmp_path, "job.nsys-rep")
    with pytest.raises(OutputError, match="is an input"):
        open_source(path, settings(tmp_path, fake.path, keep_sqlite=path, force=True))
    assert path.read_bytes() == REPORT_2023


def test_copy_of_what_is_an_export_already(tmp_path: Path) -> None:
    path = make_export(tmp_path / "job.sqlite")
    with pytest.raises(UsageError, match="is an export already"):
        open_source(path, settings(tmp_path, keep_sqlite=tmp_path / "kept.sqlite"))


@pytest.mark.parametrize(
    "name", ["a b.nsys-rep", "what?#1%25.nsys-rep", "größe.nsys-rep", "-o.nsys-rep", "a'b\".nsys-rep"]
)
def test_strange_names(name: str, tmp_path: Path, fake: FakeNsys, monkeypatch: pytest.MonkeyPatch) -> None:
    path = user_file(tmp_path, name)
    monkeypatch.chdir(path.parent)
    source = open_source(Path(name), settings(tmp_path, fake.path))
    assert source.file == name
    assert fake.calls()[0][-1] == str(path)


# --- the real nsys ------------------------------------------------------------------------------------------


def count(source: Source, table: str) -> int:
    with read_only(source.path) as connection:
        return int(connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0])  # noqa: S608


@pytest.mark.nsys
@pytest.mark.parametrize("version", VERSIONS)
def test_sample_report_with_the_real_nsys(version: str, tmp_path: Path) -> None:
    path = user_file(tmp_path, "job.nsys-rep", SAMPLE.read_bytes())
    before = snapshot(path.parent)
    heard: list[tuple[str, int | None]] = []
    source = open_source(path, settings(tmp_path, program_of(version)), lambda *what: heard.append(what))
    assert count(source, "NVTX_EVENTS") == 39
    assert count(source, "OSRT_API") > 100
    assert heard[-1] == ("exporting job.nsys-rep", 100)
    assert snapshot(path.parent) == before
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [source.path.name]


@pytest.mark.nsys
@pytest.mark.parametrize(
    "name", ["a b.nsys-rep", "what?#1%25.nsys-rep", "größe.nsys-rep", "-o.nsys-rep", os.fsdecode(b"a\xff")]
)
@pytest.mark.parametrize("version", VERSIONS)
def test_strange_names_with_the_real_nsys(version: str, name: str, tmp_path: Path) -> None:
    path = user_file(tmp_path, name, SAMPLE.read_bytes())
    cache_dir = tmp_path / "ca che ?#%"
    source = open_source(path, ExportSettings(nsys=program_of(version), cache_dir=cache_dir))
    assert count(source, "NVTX_EVENTS") == 39


def damaged(data: bytes, where: float) -> bytes:
    # what comes earlier in this report is text that no export needs
    middle = int(len(data) * where)
    return data[:middle] + bytes(2000) + data[middle + 2000 :]


@pytest.mark.nsys
@pytest.mark.parametrize("where", [0.9, 0.95, 0.98])
@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_report_with_the_real_nsys(version: str, where: float, tmp_path: Path) -> None:
    path = user_file(tmp_path, "job.nsys-rep", damaged(SAMPLE.read_bytes(), where))
    before = snapshot(path.parent)
    with pytest.raises(ExportError) as caught:
        open_source(path, settings(tmp_path, program_of(version)))
    assert "it is damaged: copy or download it again" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert snapshot(path.parent) == before
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.nsys
def test_full_disk_with_the_real_nsys(tmp_path: Path) -> None:
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("a small file system can be mounted by root only")
    cache_dir = tmp_path / "small"
    cache_dir.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", cache_dir], check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        from nsys_triage.ingest import export

        path = user_file(tmp_path, "job.nsys-rep", SAMPLE.read_bytes())
        with pytest.MonkeyPatch.context() as patch, pytest.raises(ExportError, match="no space was left"):
            patch.setattr(export, "_check_space", lambda *what: None)
            open_source(path, ExportSettings(nsys=program_of("2023.4.4"), cache_dir=cache_dir))
        assert list(cache_dir.iterdir()) == []
    finally:
        subprocess.run(["umount", cache_dir], check=True)


@pytest.mark.nsys
@pytest.mark.skipif(not REPORTS.is_dir(), reason="the shared reports are not beside the project")
@pytest.mark.parametrize("version", VERSIONS)
def test_real_reports(version: str, tmp_path: Path) -> None:
    nsys = settings(tmp_path, program_of(version))
    old = open_source(REPORTS / "selinv_a100.nsys-rep", nsys)
    assert (old.capture_version, count(old, "CUPTI_ACTIVITY_KIND_KERNEL") > 0) == (None, True)
    if version == "2022.4.2":
        with pytest.raises(
            ExportError, match=r"recorded with nsys 2023\.4\.1\.97, which nsys 2022\.4\.2\.1 cannot"
        ):
            open_source(REPORTS / "jacobi_gh200.nsys-rep", nsys)
        return
    new = open_source(REPORTS / "jacobi_gh200.nsys-rep", nsys)
    assert new.capture_version == "2023.4.1.97"
    assert count(new, "CUPTI_ACTIVITY_KIND_KERNEL") > 0


@pytest.mark.nsys
@pytest.mark.skipif(not REPORTS.is_dir(), reason="the shared reports are not beside the project")
def test_newer_report_that_nsys_itself_refuses(tmp_path: Path) -> None:
    # nsys' own words, should the header not have told: both messages in one sentence
    hidden = (
        (REPORTS / "jacobi_gh200.nsys-rep").read_bytes().replace(b"2023@4@1@97-234133557503v0", b"1.\n", 1)
    )
    path = user_file(tmp_path, "job.nsys-rep", hidden)
    with pytest.raises(ExportError) as caught:
        open_source(path, settings(tmp_path, program_of("2022.4.2")))
    assert str(caught.value).startswith("job.nsys-rep was ")
    assert "\n" not in str(caught.value)


@pytest.mark.nsys
@pytest.mark.parametrize("version", VERSIONS)
def test_fresh_recording(version: str, tmp_path: Path) -> None:
    root = root_of(version)
    pytest.importorskip("nvtx")
    (tmp_path / "rec").mkdir()
    stream = record.record_here(root, tmp_path / "rec/trace", [sys.executable, str(record.JOB)])
    with pytest.raises(InputError, match=r"`QdstrmImporter -i trace\.qdstrm`"):
        open_source(stream, settings(tmp_path))
    report = record.import_here(root, stream)
    source = open_source(report, settings(tmp_path, program_of(version)))
    assert count(source, "NVTX_EVENTS") >= 39
    assert source.capture_version == (None if version == "2022.4.2" else "2023.4.4.54")
