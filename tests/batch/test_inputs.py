from pathlib import Path

import pytest

from nsys_triage.batch.inputs import find
from nsys_triage.errors import UsageError


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return folder


def labels(*arguments: str | Path, out: Path | None = None) -> list[str]:
    return [file.label for file in find([str(a) for a in arguments], out)[0]]


def test_folders_are_searched_for_traces_alone(tmp_path: Path) -> None:
    names = ["a.sqlite", "b/c.nsys-rep", "b/d/e.QDREP", "f.qdstrm", "g.nsys-rep.gz"]
    touch(tmp_path, *names, "readme.txt", "a.sqlite-journal", "b/train.log")
    assert labels(tmp_path) == sorted(names)


def test_a_file_that_is_named_is_looked_at_whatever_its_name(tmp_path: Path) -> None:
    touch(tmp_path, "job.db", "x/other")
    assert labels(tmp_path / "job.db", tmp_path / "x/other") == ["job.db", "other"]


def test_globs(tmp_path: Path) -> None:
    touch(tmp_path, "t/1/a.sqlite", "t/2/a.sqlite", "t/2/b.nsys-rep", "t/2/a.sqlite-wal")
    assert labels(f"{tmp_path}/t/*/a.sqlite*") == ["1/a.sqlite", "2/a.sqlite"]
    assert labels(f"{tmp_path}/t/**/*.nsys-rep") == ["2/b.nsys-rep"]
    assert labels(f"{tmp_path}/t/[2]") == ["a.sqlite", "b.nsys-rep"]


def test_each_place_once_and_each_label_once(tmp_path: Path) -> None:
    touch(tmp_path, "secret/one/job.sqlite", "secret/two/job.sqlite", "secret/three/other.sqlite")
    one, two = tmp_path / "secret/one", tmp_path / "secret/two/job.sqlite"
    # only as much of the folders as tells them apart
    assert labels(one, one / "job.sqlite", two, tmp_path / "secret/three") == [
        "one/job.sqlite",
        "other.sqlite",
        "two/job.sqlite",
    ]


def test_the_output_folder_is_no_input(tmp_path: Path) -> None:
    touch(tmp_path, "a.sqlite", "out/b.sqlite", "link.sqlite")
    assert labels(tmp_path, out=tmp_path / "out") == ["a.sqlite", "link.sqlite"]


def test_a_link_to_nothing_is_a_bad_input(tmp_path: Path) -> None:
    (tmp_path / "job.sqlite").symlink_to("nowhere")
    files, bad = find([str(tmp_path)])
    assert files == []
    assert [(row.label, "no such file" in row.reason) for row in bad] == [("job.sqlite", True)]


@pytest.mark.parametrize("argument", ["missing.sqlite", "missing/*.sqlite"])
def test_what_is_not_there_is_wrong_usage(tmp_path: Path, argument: str) -> None:
    with pytest.raises(UsageError):
        find([f"{tmp_path}/{argument}"])


def test_names_that_cannot_be_printed(tmp_path: Path) -> None:
    touch(tmp_path, "a\x1b[31m.sqlite", "a\x1c[31m.sqlite")
    assert labels(tmp_path) == ["a\ufffd[31m.sqlite (1)", "a\ufffd[31m.sqlite (2)"]
