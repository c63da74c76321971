import gzip
import os
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from nsys_triage.errors import InputError, UsageError
from nsys_triage.ingest import sqlite_file
from nsys_triage.ingest.identify import identify
from nsys_triage.ingest.version import Version
from tests.tools.small_files import (
    REPORT_2023,
    REPORT_OLD,
    SHARED,
    make_export,
    make_sqlite,
    snapshot,
)

STRINGS = {"StringIds": "id INTEGER, value TEXT"}


def written(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def tables(**columns: str) -> Callable[[Path], object]:
    return lambda path: make_sqlite(path, columns)


def gzipped(path: Path) -> None:
    path.write_bytes(gzip.compress(REPORT_2023))


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("job.nsys-rep", REPORT_2023)


def in_tar(path: Path) -> None:
    member = path.with_name("member")
    member.write_bytes(REPORT_2023)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        archive.add(member, "job.nsys-rep")


def with_empty_meta(path: Path) -> None:
    make_sqlite(path, STRINGS | {"ThreadNames": "a"}, ("META_DATA_EXPORT", {}))


def without_strings(path: Path) -> None:
    make_sqlite(path, {"NVTX_EVENTS": "start"}, ("META_DATA_EXPORT", {"EXPORT_PRODUCT_VERSION": "2024.1.1"}))


def cut_short(path: Path) -> None:
    whole = make_export(path.with_name("whole")).read_bytes()
    path.write_bytes(whole[: len(whole) - 100])


def killed_export(path: Path) -> None:
    path.write_bytes(bytes(4096) + make_export(path.with_name("whole")).read_bytes()[4096:])


def not_a_database(path: Path) -> None:
    whole = bytearray(make_export(path.with_name("whole")).read_bytes())
    whole[100:108] = b"\xff" * 8  # the root of sqlite_master
    path.write_bytes(whole)


BAD_INPUTS = {
    "empty": (written(b""), "empty (0 bytes)"),
    "text": (written(b"hello\n"), "neither an Nsight Systems report nor its SQLite export"),
    "random": (written(bytes(range(1, 256)) * 40), "neither an Nsight Systems report"),
    "one byte": (written(b"x"), "neither an Nsight Systems report"),
    "report without its end": (written(REPORT_2023[:-1]), "truncated"),
    "report with bytes after its end": (written(REPORT_2023 + b"\n"), "truncated or altered"),
    "first bytes of a report": (written(b"NVIDIA Tegra"), "truncated"),
    "raw stream": (
        written(b"U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1!" + bytes(99)),
        "`QdstrmImporter -i job.nsys-rep`",
    ),
    "LFS pointer": (
        written(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n"),
        "`git lfs pull`",
    ),
    "gzip": (gzipped, "packed (gzip): unpack it first with `gunzip -k job.nsys-rep`"),
    "zip": (zipped, "packed (zip): unpack it first with `unzip job.nsys-rep`"),
    "tar": (in_tar, "packed (tar): unpack it first with `tar xf job.nsys-rep`"),
    "zstd": (written(b"\x28\xb5\x2f\xfd" + bytes(50)), "packed (zstd)"),
    "zeros of a killed export": (killed_export, "begins with zeros"),
    "no tables": (lambda path: make_sqlite(path, {"x": "a"}), "not an Nsight Systems export"),
    "DLProf": (tables(kernels="a", dlprof_versions="b"), "not an Nsight Systems export"),
    "nvprof": (tables(StringTable="a", CUPTI_ACTIVITY_KIND_KERNEL="b"), "not an Nsight Systems export"),
    "partial export of 2022.4": (
        tables(StringIds="id INTEGER -- id", ProcessStreams="a"),
        "partial export (its metadata table is missing)",
    ),
    "partial export of 2021.5": (
        tables(StringIds="id", TARGET_INFO_SYSTEM_ENV="a", PROCESSES="b"),
        "partial export (its metadata table is missing)",
    ),
    "metadata without rows": (with_empty_meta, "partial export (its metadata table is empty)"),
    "chosen tables only": (without_strings, "partial export (it has no table StringIds)"),
    "cut SQLite": (cut_short, "truncated (shorter than its header says)"),
    "header of SQLite": (written(b"SQLite format 3\0" + bytes(40)), "truncated"),
    "damaged SQLite": (not_a_database, "damaged SQLite file"),
}


@pytest.mark.parametrize("kind", BAD_INPUTS)
def test_bad_input_is_named_in_one_sentence(kind: str, tmp_path: Path) -> None:
    make, expected = BAD_INPUTS[kind]
    folder = tmp_path / "user folder"
    folder.mkdir()
    path = folder / "job.nsys-rep"
    make(path)
    before = snapshot(folder)
    with pytest.raises(InputError) as caught:
        identify(path)
    sentence = str(caught.value)
    assert expected in sentence
    assert sentence.startswith("job.nsys-rep ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert str(folder) not in sentence
    assert snapshot(folder) == before
    assert caught.value.exit_code == 3


def test_partial_export_says_how_to_export_again(tmp_path: Path) -> None:
    path = make_sqlite(tmp_path / "my job.sqlite", {"StringIds": "id INTEGER -- id"})
    with pytest.raises(InputError) as caught:
        identify(path)
    command = "`nsys export --type=sqlite --force-overwrite=true --output='my job.sqlite' 'my job.nsys-rep'`"
    assert command in str(caught.value)


def test_folder_and_special_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder: name the reports or exports in it"):
        identify(tmp_path)
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with pytest.raises(InputError, match="not a regular file"):
        identify(fifo)  # and does not wait for somebody to write


def test_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.nsys-rep does not exist"):
        identify(tmp_path / "no.nsys-rep")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(UsageError, match="dangling does not exist"):
        identify(tmp_path / "dangling")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="not a folder"):
        identify(tmp_path / "file" / "job.nsys-rep")


def test_link_loop(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="loop cannot be read"):
        identify(tmp_path / "loop")


@pytest.mark.parametrize(
    ("content", "version"),
    [(REPORT_2023, Version((2023, 4, 4, 54))), (REPORT_OLD, None)],
)
def test_reports_by_content_whatever_they_are_called(
    content: bytes, version: Version | None, tmp_path: Path
) -> None:
    path = tmp_path / "noext.sqlite"
    path.write_bytes(content)
    identity = identify(path)
    assert (identity.kind, identity.file, identity.capture_version) == ("report", "noext.sqlite", version)


def test_export_by_content_whatever_it_is_called(tmp_path: Path) -> None:
    identity = identify(make_export(tmp_path / "job.nsys-rep"))
    assert (identity.kind, identity.capture_version, identity.filtered) == ("sqlite", None, False)


@pytest.mark.parametrize("key", ["EXPORT_PARAM_TABLES_TO_EXPORT", "EXPORT_PARAM_TIMES_TO_EXPORT"])
def test_filtered_export_is_accepted_and_marked(key: str, tmp_path: Path) -> None:
    assert identify(make_export(tmp_path / "job.sqlite", **{key: "CUPTI.*"})).filtered
    assert not identify(make_export(tmp_path / "all.sqlite", **{key: ""})).filtered


@pytest.mark.parametrize("table", ["ThreadNames", "TARGET_INFO_SESSION_START_TIME"])
def test_export_from_before_the_metadata_table(table: str, tmp_path: Path) -> None:
    assert identify(make_sqlite(tmp_path / "old.sqlite", STRINGS | {table: "a"})).kind == "sqlite"


def test_old_name_of_the_metadata_table(tmp_path: Path) -> None:
    meta = ("EXPORT_META_DATA", {"EXPORT_PRODUCT_VERSION": "2022.4.2.1"})
    path = make_sqlite(tmp_path / "job.sqlite", STRINGS, meta)
    assert identify(path).kind == "sqlite"
    assert sqlite_file.inspect(path).exporter_version == "2022.4.2.1"


STRANGE_NAMES = [
    "a b.sqlite",
    "what?.sqlite",
    "50%25.sqlite",
    "tag#1.sqlite",
    "größe 模型.sqlite",
    "-o.sqlite",
    "a&mode=rwc.sqlite",
    "quote'\".sqlite",
    "line\nbreak.sqlite",
]


@pytest.mark.parametrize("name", STRANGE_NAMES)
def test_strange_names(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_export(tmp_path / name)
    before = snapshot(tmp_path)
    identity = identify(Path(name))
    assert identity.kind == "sqlite"
    assert identity.file.isprintable()
    assert snapshot(tmp_path) == before


def test_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/job\xff.sqlite"))
    make_export(tmp_path / "x").rename(path)
    assert identify(path).file == "job\N{REPLACEMENT CHARACTER}.sqlite"


def test_path_with_two_slashes_is_no_host(tmp_path: Path) -> None:
    make_export(tmp_path / "job.sqlite")
    assert identify(Path(f"/{tmp_path}/job.sqlite")).kind == "sqlite"


def test_locked_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "_LOCK_WAIT_S", 0.01)
    path = make_export(tmp_path / "job.sqlite")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="locked by another program"):
            identify(path)


def test_file_left_in_wal_mode_gets_no_files_beside_it(tmp_path: Path) -> None:
    path = make_export(tmp_path / "job.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=wal")
        connection.execute("CREATE TABLE extra (a)")
        connection.commit()
        with pytest.raises(InputError, match=r"still in job\.sqlite-wal"):
            identify(path)
    before = snapshot(tmp_path)
    assert list(before) == ["job.sqlite", "."]
    assert identify(path).kind == "sqlite"
    assert snapshot(tmp_path) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = make_export(tmp_path / "job.sqlite")
    path.chmod(0)
    with pytest.raises(InputError, match="cannot be read: permission denied"):
        identify(path)


@pytest.mark.skipif(
    not (SHARED / "traces/sqlite").is_dir(), reason="the shared traces are not beside the project"
)
def test_real_exports_are_complete() -> None:
    files = sorted((SHARED / "traces/sqlite").glob("*.sqlite"))
    assert len(files) > 30
    for path in files:
        identity = identify(path)
        assert (identity.kind, identity.filtered) == ("sqlite", False), path.name
        assert sqlite_file.inspect(path).exporter_version, path.name
