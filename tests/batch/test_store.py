from pathlib import Path

import pytest

from nsys_triage.batch.messages import Done, Looked, Options
from nsys_triage.batch.store import Store, key_of, known, safe_name
from nsys_triage.errors import OutputError


def opened(folder: Path) -> Store:
    store = Store(folder)
    store.prepare(force=False)
    return store


@pytest.mark.parametrize(
    ("text", "stem"),
    [
        ("run 1/job é.v2", "run_1_job_e.v2"),
        ("../../etc/passwd", "etc_passwd"),
        ("日本", "trace"),
        ("-rf", "rf"),
        ("a" * 300, "a" * 80),
    ],
)
def test_names_are_safe(text: str, stem: str) -> None:
    assert safe_name(text, "0123456789abcdef") == f"{stem}-0123456789abcdef"


def test_a_job_is_done_when_both_its_files_are_there(tmp_path: Path) -> None:
    store = opened(tmp_path / "out")
    key = key_of(["1"], Options())
    store.keep(f"job-{key}", Done(b"{}", b"<p>"))
    assert store.done() == {key: f"job-{key}"}
    assert store.read(f"job-{key}") == b"{}"
    (store.jobs / f"job-{key}.html").unlink()
    assert store.done() == {}


def test_what_a_killed_run_left_is_no_result(tmp_path: Path) -> None:
    store = opened(tmp_path / "out")
    leftover = store.jobs / ".nsys-triage-0123.tmp"
    leftover.write_bytes(b"{")
    assert store.done() == {}
    with store.locked("0-2"):
        leftover.write_bytes(b"{")
        with store.locked("1-2"):
            assert leftover.exists()  # it may be the other part's
    with store.locked("all"):
        assert not leftover.exists()


def test_looks_are_remembered_and_torn_lines_passed_over(tmp_path: Path) -> None:
    store = opened(tmp_path / "out")
    looked = Looked("sqlite", "1", ranks_read=True, rank=3, world_size=4)
    store.remember("/secret/a", 5, "7", looked)
    (file,) = (tmp_path / "out/.nsys-triage").glob("looked*")
    file.write_bytes(file.read_bytes() + b'["torn')
    store.remember("/secret/b", 5, "7", looked)
    assert known(store.looked(), "/secret/a", 5, "7") == looked
    assert known(store.looked(), "/secret/b", 5, "7") == looked
    assert known(store.looked(), "/secret/a", 6, "7") is None
    assert b"secret" not in file.read_bytes()


def test_a_folder_with_other_things_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(OutputError, match="--force"):
        opened(tmp_path)
    Store(tmp_path).prepare(force=True)
    opened(tmp_path)


def test_one_run_at_a_time(tmp_path: Path) -> None:
    store = opened(tmp_path / "out")
    with (
        store.locked("all"),
        pytest.raises(OutputError, match="another batch"),
        Store(tmp_path / "out").locked("all"),
    ):
        pass
    with store.locked("all"), store.locked("0-2"):
        pass


def test_files_of_other_jobs_are_counted_and_left(tmp_path: Path) -> None:
    store = opened(tmp_path / "out")
    for name in ("a-0123456789abcdef", "b-0123456789abcde0"):
        store.keep(name, Done(b"{}", b"<p>"))
    (store.jobs / "notes.html").write_text("the user's own")
    assert store.left_over({"a-0123456789abcdef", "b-0123456789abcde0"}) == 0
    assert store.left_over({"a-0123456789abcdef"}) == 2
    assert len(list(store.jobs.iterdir())) == 5
