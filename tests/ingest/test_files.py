import os
import stat
from pathlib import Path

import pytest

from nsys_triage.errors import OutputError
from nsys_triage.ingest import files
from nsys_triage.ingest.files import base_name, check_target, shell_name, whole_file


def test_base_name_is_printable_text_without_folders(tmp_path: Path) -> None:
    assert base_name(tmp_path / "job.nsys-rep") == "job.nsys-rep"
    assert base_name(Path("a/\x1b[31mred\n\u202e.x")) == "\ufffd[31mred\ufffd\ufffd.x"
    assert base_name(Path(os.fsdecode(b"a\xff"))) == "a\ufffd"
    assert base_name(Path("/")) == "/"


def test_base_name_of_the_working_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert base_name(Path()) == tmp_path.name


@pytest.mark.parametrize(("name", "shown"), [("a", "a"), ("a b", "'a b'"), ("-a", "./-a"), ("a;b", "'a;b'")])
def test_name_in_a_command_line(name: str, shown: str) -> None:
    assert shell_name(name) == shown


def test_target_that_may_be_written(tmp_path: Path) -> None:
    (tmp_path / "old.html").touch()
    assert check_target(tmp_path / "new.html", (), force=False) == (tmp_path / "new.html").resolve()
    assert check_target(tmp_path / "old.html", (), force=True) == (tmp_path / "old.html").resolve()
    assert [path.name for path in tmp_path.iterdir()] == ["old.html"]


def test_target_that_exists(tmp_path: Path) -> None:
    (tmp_path / "old.html").touch()
    with pytest.raises(OutputError, match=r"old\.html exists already: .*--force"):
        check_target(tmp_path / "old.html", (), force=False)


@pytest.mark.parametrize("force", [False, True])
def test_target_that_is_an_input(force: bool, tmp_path: Path) -> None:
    trace = tmp_path / "job.sqlite"
    trace.touch()
    (tmp_path / "link").symlink_to(trace)
    os.link(trace, tmp_path / "other name")
    for name in ("job.sqlite", "link", "other name"):
        with pytest.raises(OutputError, match="is an input and cannot be the output too"):
            check_target(tmp_path / name, (trace,), force)


@pytest.mark.parametrize("path", ["/dev/null", "/", "/proc/self"])
def test_target_that_is_no_file(path: str) -> None:
    with pytest.raises(OutputError, match="not a regular file"):
        check_target(Path(path), (), force=True)


def test_target_in_no_folder(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="its folder does not exist"):
        check_target(tmp_path / "no" / "a.html", (), force=False)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OutputError, match="cannot be written"):
        check_target(tmp_path / "loop" / "a.html", (), force=False)


def test_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "a.html"
    with whole_file(target, force=False) as temporary:
        temporary.write_text("half")
        assert not target.exists()
        temporary.write_text("whole")
    assert target.read_text() == "whole"
    with pytest.raises(RuntimeError), whole_file(target, force=True) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [target]


def test_mode_follows_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        with whole_file(tmp_path / "a", force=False) as temporary:
            temporary.write_text("x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.parametrize("hard_links", [True, False])
def test_file_that_appeared_meanwhile_is_left_alone(
    hard_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hard_links:
        monkeypatch.setattr(Path, "hardlink_to", no_hard_links)
    target = tmp_path / "a.html"
    with pytest.raises(OutputError, match="exists already"), whole_file(target, force=False) as temporary:
        temporary.write_text("mine")
        target.write_text("theirs")
    assert target.read_text() == "theirs"
    with whole_file(target, force=True) as temporary:
        temporary.write_text("mine")
    assert target.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [target]


def no_hard_links(self: Path, other: Path) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "hardlink_to", no_hard_links)
    with whole_file(tmp_path / "a", force=False) as temporary:
        temporary.write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_full_disk_is_an_output_error(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="a cannot be written: no space left"),
        whole_file(tmp_path / "a", False),
    ):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_longest_name(tmp_path: Path) -> None:
    with whole_file(tmp_path / ("x" * 255), force=False) as temporary:
        temporary.write_text("x")
    with pytest.raises(OutputError, match="file name too long"):
        check_target(tmp_path / ("x" * 256), (), force=False)


def test_reason_without_a_path() -> None:
    assert files.why(OSError(13, "Permission denied", "/home/jo")) == "permission denied"
    assert files.why(OSError("odd")) == "oserror"
