import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from nsys_triage.errors import InputError, UsageError
from nsys_triage.trace import read, versions
from nsys_triage.trace.read import Database, Piece, Task
from tests.trace.tables import GPID, GTID, KERNEL, RUNTIME, device, kernel, load, strings, write

WANTED = versions.Source(("T",), {"a": ("a",), "b": ("b",)}, texts={"s": ("s",)})


def everything(path: Path, source: versions.Source = WANTED) -> pl.DataFrame:
    database = Database(path)
    resolved = database.resolve(source)
    assert resolved is not None
    [piece] = database.read([Task(resolved, lambda batch: Piece(batch, batch.height))])
    assert piece.rows == piece.frame.height
    return piece.frame


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "BATCH_ROWS", 16)
    monkeypatch.setattr(read, "RANGE_ROWS", 100)


@pytest.mark.parametrize(
    "name", ["plain", "two words", "what?", "a#b", "100%", "50%25", "Größe-測試", "a&b=c;d'e"]
)
def test_any_file_name(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / f"{name}.sqlite", {"T": [{"a": 1, "b": 2, "s": "x"}]})
    assert everything(path).rows() == [(1, 2, b"x")]


def test_a_folder_whose_name_is_no_utf8(tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    Path(folder).mkdir()
    assert everything(write(Path(folder) / "t.sqlite", {"T": [{"a": 1, "b": 2, "s": "x"}]})).height == 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([None] * 40 + [7], [None] * 40 + [7]),
        ([5] * 40 + [2.0], [5] * 40 + [2]),
        ([2.5] + [2**62 + 1] * 40, [2] + [2**62 + 1] * 40),
        ([2**62 + 1] * 40 + [2.5], [2**62 + 1] * 40 + [2]),
        (["12"] + [3] * 40, [12] + [3] * 40),
        ([3] * 40 + ["-12", "junk", "", b"\x01"], [3] * 40 + [-12, None, None, None]),
        ([None] * 40 + ["junk"], [None] * 41),
    ],
)
def test_columns_whose_values_have_several_types(
    tmp_path: Path, small_ranges: None, values: list[object], expected: list[int | None]
) -> None:
    path = write(
        tmp_path / "t.sqlite", {"T": [{"a": value, "b": i, "s": "x"} for i, value in enumerate(values)]}
    )
    frame = everything(path)
    assert frame.schema == {"a": pl.Int64, "b": pl.Int64, "s": pl.Binary}
    assert frame["a"].to_list() == expected
    assert frame["b"].to_list() == list(range(len(values)))


def test_texts_are_bytes_whatever_they_hold(tmp_path: Path, small_ranges: None) -> None:
    texts = [None] * 20 + ["ü", b"\xff\xfe", "nul\0inside", 5, None]
    path = write(tmp_path / "t.sqlite", {"T": [{"a": 1, "b": 1, "s": text} for text in texts]})
    got = everything(path)["s"].to_list()
    assert got == [b""] * 20 + ["ü".encode(), b"\xff\xfe", b"nul\0inside", b"5", b""]


def test_row_id_ranges_keep_every_row_once_and_in_order(tmp_path: Path, small_ranges: None) -> None:
    path = write(tmp_path / "t.sqlite", {"T": [{"a": i, "b": -i, "s": str(i)} for i in range(1_234)]})
    frame = everything(path)
    assert frame["a"].to_list() == list(range(1_234))
    assert frame.n_chunks() == 1


def test_sparse_and_negative_row_ids(tmp_path: Path, small_ranges: None) -> None:
    path = tmp_path / "t.sqlite"
    ids = [-(2**40), -5, 0, 17, 10**12, 2**62]
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE T (a INTEGER PRIMARY KEY, b, s)")
        db.executemany("INSERT INTO T VALUES (?, 0, '')", [(i,) for i in ids])
        db.commit()
    assert everything(path)["a"].to_list() == ids


def test_a_table_without_row_ids(tmp_path: Path, small_ranges: None) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE T (a INTEGER PRIMARY KEY, b, s) WITHOUT ROWID")
        db.executemany("INSERT INTO T VALUES (?, 0, '')", [(i,) for i in range(300)])
        db.commit()
    assert everything(path)["a"].to_list() == list(range(300))


def test_an_empty_table_has_its_types(tmp_path: Path) -> None:
    path = write(tmp_path / "t.sqlite", {}, sql=["CREATE TABLE T (a INTEGER, b INTEGER, s TEXT)"])
    frame = everything(path)
    assert frame.height == 0
    assert frame.schema == {"a": pl.Int64, "b": pl.Int64, "s": pl.Binary}


def test_the_first_candidate_that_is_there_and_null_for_none(tmp_path: Path) -> None:
    source = versions.Source(("New", "T"), {"a": ("newer", "a"), "b": ("gone",)}, texts={"s": ("missing",)})
    path = write(tmp_path / "t.sqlite", {"T": [{"a": 4, "newer": 9, "unknown": 1}]})
    assert everything(path, source).rows() == [(9, None, b"")]


def test_what_a_source_needs(tmp_path: Path) -> None:
    database = Database(write(tmp_path / "t.sqlite", {"T": [{"a": 4}]}))
    source = versions.Source(("T",), {"a": ("a",), "b": ("b",)}, needs=("b",))
    assert database.resolve(source) is None
    with pytest.raises(InputError, match=r"t\.sqlite has a table T without its column `b`"):
        database.resolve(source, strict=True)
    assert database.resolve(versions.Source(("U",), {}, needs=()), strict=True) is None


def test_a_table_of_events_without_their_times(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"a table {KERNEL} without its column `end`"):
        load(tmp_path / "t.sqlite", {KERNEL: [{"start": 5}]})


def test_users_own_tables_and_columns_do_not_matter(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.sqlite",
        {
            KERNEL: [kernel(10, 20, notes="mine", x=b"\xff")],
            "StringIds": strings("k"),
            "CUPTI_ACTIVITY_KIND_MEMCPY2": [device(1, 2)],
            'odd "name"': [{'a "b"': 1}],
        },
        sql=[
            "CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET AS SELECT 1 AS start",
            f"CREATE INDEX mine ON {KERNEL} (start)",
        ],
    )
    with closing(sqlite3.connect(path)) as db:  # a virtual table of a module that no one has
        db.execute("PRAGMA writable_schema = ON")
        virtual = "CREATE VIRTUAL TABLE v USING unheard_of(a)"
        db.execute("INSERT INTO sqlite_master VALUES ('table', 'v', 'v', 0, ?)", (virtual,))
        db.commit()
    trace = load(path)
    assert (trace.counts.kernels, trace.counts.memcpys, trace.counts.memsets) == (1, None, None)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.sqlite does not exist"):
        Database(tmp_path / "nowhere.sqlite")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        Database(tmp_path)
    for content, words in (
        (b"", "is empty"),
        (b"\0" * 8192, "not an SQLite database"),
        (b"text", "not an SQLite"),
    ):
        (tmp_path / "x.sqlite").write_bytes(content)
        with pytest.raises(InputError, match=rf"x\.sqlite .*{words}"):
            Database(tmp_path / "x.sqlite")


def test_a_database_that_is_no_export(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no export of Nsight Systems"):
        load(tmp_path / "t.sqlite", {"T": [{"a": 1}]})


def test_a_locked_file(tmp_path: Path) -> None:
    path = write(tmp_path / "t.sqlite", {KERNEL: [kernel(1, 2)]})
    # by another process: locks do not hold within one
    code = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "db.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(InputError, match=r"t\.sqlite is locked by another program"):
            load(path)
        other.communicate("")
    assert load(path).counts.kernels == 1


@pytest.mark.parametrize("pages", [slice(2, 3), slice(30, 60), slice(-20, -1)])
def test_a_file_that_is_damaged_midway(tmp_path: Path, pages: slice) -> None:
    rows = [kernel(i * 10, i * 10 + 5) for i in range(20_000)]
    path = write(tmp_path / "t.sqlite", {KERNEL: rows, RUNTIME: []})
    content = bytearray(path.read_bytes())
    every = range(len(content) // 4096)[pages]
    content[every.start * 4096 : every.stop * 4096] = b"\xee" * (4096 * len(every))
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"t\.sqlite is damaged and cannot be read") as raised:
        load(path)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    path = write(tmp_path / "t.sqlite", {KERNEL: [kernel(i * 10, i * 10 + 5) for i in range(20_000)]})
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match="damaged"):
        load(path)


def test_nothing_is_changed_or_written_beside_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "t.sqlite", {KERNEL: [kernel(1, 2)]})
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    load(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [file.name for file in tmp_path.iterdir()] == ["t.sqlite"]


def test_a_file_in_wal_mode_gets_no_files_beside_it(tmp_path: Path) -> None:
    path = write(tmp_path / "t.sqlite", {KERNEL: [kernel(1, 2)]}, sql=())
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    assert load(path).counts.kernels == 1
    assert [file.name for file in tmp_path.iterdir()] == ["t.sqlite"]


def test_changes_in_a_write_ahead_log_are_not_missed(tmp_path: Path) -> None:
    path = write(tmp_path / "t.sqlite", {KERNEL: [kernel(1, 2)]})
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE notes (text)")
        db.commit()
        with pytest.raises(InputError, match=r"changes that are still in t\.sqlite-wal"):
            load(path)


def test_a_change_that_was_never_finished(tmp_path: Path) -> None:
    rows = [kernel(i * 10, i * 10 + 5) for i in range(5_000)]
    path = write(tmp_path / "whole.sqlite", {KERNEL: rows})
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA cache_size = 5")
        db.execute(
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = end + 1"
        )  # pages go to the file before the commit
        for name in ("whole.sqlite", "whole.sqlite-journal"):
            shutil.copy(tmp_path / name, tmp_path / name.replace("whole", "torn"))
    with pytest.raises(InputError, match=r"torn\.sqlite was left in the middle of a change"):
        load(tmp_path / "torn.sqlite")
    assert load(path).kernels["end_ns"].sum() == sum(row["end"] for row in rows)


def test_no_warning_at_exit(tmp_path: Path) -> None:
    """The driver warns of connections and cursors that are left open."""
    path = write(tmp_path / "t.sqlite", {KERNEL: [kernel(1, 2)], "StringIds": strings("k")})
    code = (
        "import sys; from pathlib import Path; from nsys_triage.trace.sqlite import load_trace\n"
        "print(load_trace(Path(sys.argv[1]), file='t', kind='sqlite', capture_version=None).counts.kernels)"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code, path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 0)


def test_ids_of_other_machines(tmp_path: Path) -> None:
    """The hardware's number is in the upper byte: from 128 on the column is negative."""
    ids = [GPID, GPID | 200 << 56, (1 << 56) | (77 << 24)]
    signed = [value - 2**64 if value >= 2**63 else value for value in ids]
    trace = load(
        tmp_path / "t.sqlite", {KERNEL: [kernel(1, 2, globalPid=value) for value in (*signed, None)]}
    )
    assert trace.kernels["pid"].to_list() == [4_000, 4_000, 77, 0]


def test_a_time_three_years_away_is_no_time(tmp_path: Path) -> None:
    """One such row of the host would make every sum over groups overflow."""
    rows = [kernel(1, 2), kernel(5, 9 * 10**18)]
    calls = [{"start": 1, "end": 9 * 10**18, "nameId": 1, "globalTid": GTID, "correlationId": 1}]
    trace = load(tmp_path / "t.sqlite", {KERNEL: rows, "CUPTI_ACTIVITY_KIND_RUNTIME": calls})
    assert (trace.kernels.height, trace.api.height) == (1, 0)
    assert trace.dropped["too_long"] == 2
