import os
import zipfile
from pathlib import Path

import pytest

from nsys_triage.batch import remote
from nsys_triage.batch.inputs import find
from nsys_triage.batch.messages import Looked, LookTask
from nsys_triage.batch.task import look
from nsys_triage.errors import UsageError
from tests.tools.small_files import make_export

pytest.importorskip("fsspec")


def test_paths_are_no_urls() -> None:
    assert not remote.is_url("C:/x") and not remote.is_url("/a://b"[:2])
    assert remote.is_url("s3://bucket/x") and remote.is_url("zip://*.sqlite::file:///a.zip")


def test_files_of_a_url(tmp_path: Path) -> None:
    (tmp_path / "t/sub").mkdir(parents=True)
    make_export(tmp_path / "t/sub/job.sqlite")
    (tmp_path / "t/notes.txt").write_text("x")
    url = (tmp_path / "t").as_uri()
    (file,) = find([url])[0]
    assert (file.label, file.place) == ("sub/job.sqlite", f"{url}/sub/job.sqlite")
    assert [f.label for f in find([f"{url}/*/*.sqlite"])[0]] == ["sub/job.sqlite"]


def test_a_trace_in_an_archive_is_looked_at(tmp_path: Path) -> None:
    make_export(tmp_path / "job.sqlite")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / "job.sqlite", "runs/job.sqlite")
    (file,) = find([f"zip://runs/*.sqlite::file://{tmp_path}/all.zip"])[0]
    assert file.label == "job.sqlite"
    seen = look(LookTask(os.fsencode(file.place), file.size_bytes, file.version))
    local = look(LookTask(os.fsencode(tmp_path / "job.sqlite"), *_state(tmp_path / "job.sqlite")))
    assert isinstance(seen, Looked) and seen == local


def _state(path: Path) -> tuple[int, str]:
    return path.stat().st_size, str(path.stat().st_mtime_ns)


@pytest.mark.parametrize("url", ["nosuchkind://x/y", "file:///nowhere/at/all.sqlite"])
def test_what_cannot_be_read_is_wrong_usage_and_shows_no_folders(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        find([url])
    assert "nowhere" not in str(caught.value)
