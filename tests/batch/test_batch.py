import os
import signal
from pathlib import Path

import pytest

from tests.batch import folders
from tests.batch.checks import check, table
from tests.batch.commands import batch, results, start, wait_for
from tests.batch.folders import BAD, Made
from tests.tools.fake_nsys import FakeNsys
from tests.tools.processes import alive, assert_gone
from tests.tools.small_files import REPORT_2023, snapshot


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """45 files: 17 bad ones (each kind), 3 copies, 2 jobs of 2 ranks, 21 single traces."""
    return folders.make(tmp_path_factory.mktemp("batch") / "traces", 45, bad=len(BAD), copies=3, jobs=2)


@pytest.fixture(scope="module")
def kept(made: Made) -> dict[str, tuple[int, int, bytes]]:
    return snapshot_of(made)


def snapshot_of(made: Made) -> dict[str, tuple[int, int, bytes]]:
    return snapshot(made.folder / "run 0") | snapshot(made.folder / "job 0")


def test_killed_and_run_again(made: Made, kept: dict[str, tuple[int, int, bytes]], tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(made.folder, "-o", out, "--jobs", "2")
    wait_for(lambda: len(results(out)) >= 5, process)
    children = [
        int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    first = results(out)
    assert 5 <= len(first) < made.jobs
    assert children

    code, said, err = batch(made.folder, "-o", out, "--jobs", "2")
    assert code == 4, err
    assert f"{made.jobs - len(first)} new" in said  # what was done is not done again
    assert {name: when for name, when in results(out).items() if name in first} == first
    assert not any(map(alive, children))
    check(out, made)
    assert snapshot_of(made) == kept  # the user's folders are only read

    before = results(out), (out / "metrics.parquet").read_bytes(), (out / "index.html").read_bytes()
    code, said, err = batch(made.folder, "-o", out)
    assert (code, f"{made.jobs} jobs" in said, "0 new" in said) == (4, True, True)
    assert (results(out), (out / "metrics.parquet").read_bytes(), (out / "index.html").read_bytes()) == before


def test_no_folders_of_the_user_and_no_host_in_any_output(made: Made, tmp_path: Path) -> None:
    small = folders.make(tmp_path / "jane" / "traces", 8, bad=2, copies=1)
    out = tmp_path / "out"
    assert batch(small.folder, "-o", out)[0] == 4
    for path in out.rglob("*"):
        if path.is_file():
            assert b"jane" not in path.read_bytes(), path.name


def test_interrupted(made: Made, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(made.folder, "-o", out, "--jobs", "2")
    wait_for(lambda: len(results(out)) >= 1, process)
    children = [
        int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.startswith("nsys-triage: interrupted: ") and err.count("\n") == 1
    assert not any(map(alive, children))
    assert f"{len(results(out))} result" in err


def test_a_killed_batch_leaves_no_process_behind(tmp_path: Path, fake: FakeNsys) -> None:
    (tmp_path / "job.nsys-rep").write_bytes(REPORT_2023)
    fake.hangs()
    process = start(tmp_path / "job.nsys-rep", "-o", tmp_path / "out", "--nsys", fake.path)
    wait_for(lambda: len(fake.pids()) == 2, process)
    process.kill()
    process.communicate()
    assert_gone(fake.pids())


def test_dry_run_writes_nothing(made: Made, tmp_path: Path) -> None:
    out = tmp_path / "out"
    bad = made.folder / "bad/empty 0.sqlite"
    code, said, _ = batch(made.folder / "job 0", made.folder / "copies", bad, "-o", out, "--dry-run")
    assert code == 0
    assert not out.exists()
    assert "rank*.sqlite (2 ranks)" in said and "empty 0.sqlite is empty" in said
    assert "4 jobs (1 of several ranks), 0 of them done" in said
    code, said, _ = batch(made.folder / "job 0", "-o", out, "--dry-run", "--no-group")
    assert "2 jobs (0 of several ranks)" in said


def test_what_is_new_changed_or_asked_for_otherwise_is_done(tmp_path: Path) -> None:
    small = folders.make(tmp_path / "traces", 3)
    out = tmp_path / "out"

    def new(*more: str) -> str:
        code, said, err = batch(small.folder, "-o", out, "--jobs", "1", *more)
        assert code == 0, err
        left = [line.split()[0] for line in said.splitlines() if "files of earlier runs in jobs/" in line]
        made = said.partition(" new")[0].rpartition(", ")[2]
        return f"{made} of {len(table(out, 'metrics'))}, {' '.join(left) or 'none'} left over"

    assert new() == "3 of 3, none left over"
    folders.launching().write(small.folder / "new.sqlite")
    assert new() == "1 of 4, none left over"
    folders.variant(small.folder / "new.sqlite", tmp_path / "changed.sqlite", 5).replace(
        small.folder / "new.sqlite"
    )
    assert new() == "1 of 4, 2 left over"  # page and result of what was there before
    assert new("--threshold", "host-sync.share=0.5") == "4 of 4, 10 left over"
    assert new() == "0 of 4, 10 left over"
    assert new("--force") == "4 of 4, 10 left over"


def test_a_damaged_rank_costs_itself_alone(tmp_path: Path) -> None:
    folder, out = tmp_path / "traces", tmp_path / "out"
    folder.mkdir()
    for number in range(3):
        folders.rank(number, 3).write(folder / f"r{number}.sqlite")
    folders.spoil(folder / "r1.sqlite", "CUPTI_ACTIVITY_KIND_KERNEL")
    for _ in range(2):  # the second time it is tried again, and the rest is done
        code, _, _ = batch(folder, "-o", out, "--jobs", "1")
        assert code == 4
        (row,) = table(out, "metrics")
        assert row["inputs"] == ["r0.sqlite", "r2.sqlite"]
        (failure,) = table(out, "failures")
        assert (failure["input"], failure["kind"]) == ("r1.sqlite", "input")
        assert len(results(out)) == 1


def test_a_damaged_file_and_its_copy_are_both_listed(tmp_path: Path) -> None:
    folder, out = tmp_path / "traces", tmp_path / "out"
    folder.mkdir()
    for name in ("a.sqlite", "b.sqlite"):
        BAD["damaged"][1](folder / name)
    # the one line that is an error, with -q too
    assert batch(folder, "-o", out, "-q") == (
        4,
        "",
        "nsys-triage: 2 inputs failed: failures.parquet and index.html say which and why.\n",
    )
    assert [row["input"] for row in table(out, "failures")] == ["a.sqlite", "b.sqlite"]
    assert table(out, "metrics") == []


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    folder, out = tmp_path / "traces", tmp_path / os.fsdecode(b"out\xe9")
    folder.mkdir()
    folders.busy().write(folder / os.fsdecode(b"caf\xe9.sqlite"))
    (folder / os.fsdecode(b"caf\xe8.sqlite")).write_bytes(b"")
    for number in range(2):
        folders.rank(number, 2).write(folder / os.fsdecode(b"r\xe9%d.sqlite" % number))
    code, said, err = batch(folder / "*", folder, "-o", out, "--dry-run")
    assert code == 0, err
    assert "4 files: 2 jobs (1 of several ranks)" in said and "r\ufffd*.sqlite (2 ranks)" in said
    code, said, err = batch(folder, "-o", out)
    assert code == 4, err
    assert "2 jobs, 2 new; 1 failed" in said and "/out\ufffd/index.html" in said
    assert {row["label"]: row["inputs"] for row in table(out, "metrics")} == {
        "caf\ufffd.sqlite (2)": ["caf\ufffd.sqlite (2)"],
        "r\ufffd*.sqlite": ["r\ufffd0.sqlite", "r\ufffd1.sqlite"],
    }
    assert [row["input"] for row in table(out, "failures")] == ["caf\ufffd.sqlite (1)"]
    for path in (*out.glob("jobs/*"), out / "index.html"):
        assert "\ufffd" in path.read_text(encoding="utf-8")
        assert path.name.isascii()


def test_unfinished_files_are_skipped_and_said(tmp_path: Path) -> None:
    small, out = folders.make(tmp_path / "traces", 2), tmp_path / "out"
    growing = small.folder / "growing.nsys-rep"
    with growing.open("wb") as file:
        file.write(REPORT_2023[:30])
        file.flush()
        code, said, err = batch(small.folder, "-o", out)
    assert code == 0
    assert "1 skipped" in said and "growing.nsys-rep is still being written" in err
    assert [(row["input"], row["kind"]) for row in table(out, "failures")] == [
        ("growing.nsys-rep", "unfinished")
    ]


def test_parts_of_an_array_do_all_together(tmp_path: Path) -> None:
    small, out = folders.make(tmp_path / "traces", 8, bad=3), tmp_path / "out"
    named, counted = [], 0
    for part in range(2):
        code, said, err = batch(small.folder, "-o", out, "--jobs", "1", "--shard", f"{part}/2")
        lines = [line for line in err.splitlines() if line.startswith("nsys-triage: failed: ")]
        assert said.startswith(f"part {part} of 2: ")
        assert f"; {len(lines)} of its own inputs failed" in said
        assert code == (4 if lines else 0)
        assert ("a run without --shard" in err) == bool(lines)
        named += [bad for bad in small.bad for line in lines if bad in line]
        counted += len(lines)
        assert not (out / "index.html").exists()
    assert counted == 3 and sorted(named) == sorted(small.bad)  # each in one part alone
    code, said, _ = batch(small.folder, "-o", out)
    assert (code, "0 new" in said) == (4, True)
    check(out, small)


def test_gates(tmp_path: Path) -> None:
    folders.launching().write(tmp_path / "a.sqlite")
    code, _, err = batch(tmp_path / "a.sqlite", "-o", tmp_path / "out", "--fail-on", "high")
    assert code == 1
    assert "failed on launch-overhead (high)" in err


def test_wrong_usage(tmp_path: Path) -> None:
    folders.busy().write(tmp_path / "a.sqlite")
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thesis.tex").write_text("x")
    for arguments in (
        ["missing.sqlite", "-o", "out"],
        ["empty", "-o", "out"],
        ["a.sqlite", "-o", "full"],
        ["a.sqlite", "-o", "out", "--shard", "2/2"],
        ["a.sqlite", "-o", "out", "--memory", "lots"],
        ["a.sqlite", "-o", "out", "--dask", "tcp://x", "--scheduler-file", "y"],
        ["a.sqlite", "-o", "out", "--threshold", "nothing=1"],
    ):
        places = [
            str(tmp_path / a) if a in ("missing.sqlite", "empty", "a.sqlite", "full", "out") else a
            for a in arguments
        ]
        code, _, err = batch(*places)
        assert (code, err.count("\n")) == (2, 1), (arguments, err)
    assert not (tmp_path / "out").exists()
