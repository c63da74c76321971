import fcntl
import hashlib
import os
import stat
from pathlib import Path

import pytest

from nsys_triage.errors import CacheError
from nsys_triage.ingest.cache import Cache, content_identity
from nsys_triage.ingest.version import Version
from tests.tools.small_files import make_export, make_sqlite, snapshot

NSYS = Version((2023, 4, 4, 54))
CONTENT = "0123456789" * 4


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def keep(cache: Cache, content: str = CONTENT, **meta: str) -> Path:
    with cache.workspace() as work:
        return cache.publish(make_export(work / "export.sqlite", **meta), content, NSYS)


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NSYS_TRIAGE_CACHE", str(tmp_path / "variable"))
    assert Cache.locate(tmp_path / "given").folder == tmp_path / "given"
    assert Cache.locate().folder == tmp_path / "variable"
    monkeypatch.delenv("NSYS_TRIAGE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Cache.locate().folder == tmp_path / "xdg" / "nsys-triage"
    assert list(tmp_path.iterdir()) == []


def test_keeps_exports_for_their_owner_alone(cache: Cache) -> None:
    path = keep(cache)
    assert cache.find(CONTENT, NSYS) == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert list(cache.folder.iterdir()) == [path]


def test_other_content_or_other_nsys_is_another_export(cache: Cache) -> None:
    keep(cache)
    assert cache.find("f" * 40, NSYS) is None
    assert cache.find(CONTENT, Version((2023, 4, 4, 55))) is None


def test_nothing_is_found_or_made_in_an_empty_cache(cache: Cache) -> None:
    assert cache.find(CONTENT, NSYS) is None
    assert (cache.usage().exports, cache.usage().size_bytes) == (0, 0)
    assert cache.clear().exports == 0
    assert not cache.folder.exists()


@pytest.mark.parametrize("kind", ["empty", "partial", "filtered", "garbage", "folder"])
def test_what_is_not_a_whole_export_is_not_used_but_replaced(kind: str, cache: Cache) -> None:
    cache.folder.mkdir()
    path = cache.path_of(CONTENT, NSYS)
    if kind == "empty":
        path.touch()
    elif kind == "partial":
        make_sqlite(path, {"StringIds": "id -- id", "PROCESSES": "a"})
    elif kind == "filtered":
        make_export(path, EXPORT_PARAM_TIMES_TO_EXPORT="1/2")
    elif kind == "garbage":
        path.write_bytes(b"x" * 10_000)
    else:
        path.mkdir()
    assert cache.find(CONTENT, NSYS) is None
    if kind == "folder":
        with pytest.raises(CacheError):
            keep(cache)
    else:
        assert cache.find(CONTENT, NSYS) is None
        assert keep(cache) == cache.find(CONTENT, NSYS)
    assert [p.name for p in cache.folder.iterdir()] == [path.name]


def test_the_first_of_two_exports_stays(cache: Cache) -> None:
    first = keep(cache)
    inode = first.stat().st_ino
    assert keep(cache) == first
    assert first.stat().st_ino == inode
    assert list(cache.folder.iterdir()) == [first]


def test_workspace_goes_whatever_happens(cache: Cache) -> None:
    with pytest.raises(KeyboardInterrupt), cache.workspace() as work:
        (work / "export.sqlite").write_bytes(b"half")
        raise KeyboardInterrupt
    assert list(cache.folder.iterdir()) == []


def test_leftovers_of_killed_processes_go_those_of_living_ones_stay(cache: Cache) -> None:
    with cache.workspace() as living:
        dead = living.with_name("nsys-triage-export-dead")
        dead.mkdir()
        (dead / "lock").touch()
        (dead / "export.sqlite").write_bytes(b"x" * 1000)
        assert cache.usage().size_bytes == 1000
        with cache.workspace():
            assert not dead.exists()
            assert living.exists()
        cache.clear()
        assert living.exists()
    assert list(cache.folder.iterdir()) == []


def test_lock_is_held_while_a_workspace_is_used(cache: Cache) -> None:
    with cache.workspace() as work:
        lock = os.open(work / "lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(lock)


def test_clear_removes_exports_and_nothing_else(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    for name in (
        "job.sqlite",
        "notes.txt",
        "sub/a.sqlite",
        f"{CONTENT}.sqlite",
        f"{CONTENT}-2023.4.4.54.sqlite.bak",
    ):
        (home / name).write_text("mine")
    before = snapshot(home)
    cache = Cache(home)
    exported = keep(cache)
    size_bytes = exported.stat().st_size
    assert (cache.usage().exports, cache.usage().size_bytes) == (1, size_bytes)
    removed = cache.clear()
    assert (removed.exports, removed.size_bytes) == (1, size_bytes)
    after = snapshot(home)
    assert {k: v for k, v in after.items() if k != "."} == {k: v for k, v in before.items() if k != "."}


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / "file" / "cache")
    with (
        pytest.raises(CacheError, match="cannot be used: not a directory: name another one with --cache-dir"),
        cache.workspace(),
    ):
        pass


def test_content_identity(tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "a").write_bytes(data)
    heard: list[int] = []
    assert content_identity(tmp_path / "a", heard.append) == hashlib.blake2b(data, digest_size=20).hexdigest()
    assert heard == sorted(heard)
    assert heard[-1] == 100
    (tmp_path / "empty").touch()
    assert len(content_identity(tmp_path / "empty")) == 40


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_that_may_not_be_written(cache: Cache) -> None:
    cache.folder.mkdir(mode=0o500)
    with pytest.raises(CacheError, match="cannot be used: permission denied"), cache.workspace():
        pass
