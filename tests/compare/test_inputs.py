import shutil
from pathlib import Path

import pytest

from nsys_triage.compare.inputs import open_side
from nsys_triage.errors import InputError, UsageError
from nsys_triage.ingest import ExportSettings
from nsys_triage.result.codec import encode
from tests.compare.jobs import Plan, result_of, write

SAMPLES = Path(__file__).parents[2] / "sample_traces"
SETTINGS = ExportSettings()


def folder_of(tmp_path: Path, *names: str) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in names:
        shutil.copy(SAMPLES / name, folder / name)
    return folder


def test_a_trace_and_its_result_told_by_content(tmp_path: Path) -> None:
    trace = write(Plan(steps=3), 1, tmp_path / "job.sqlite")
    odd = tmp_path / "result.txt"
    odd.write_bytes(encode(result_of(trace)))
    assert open_side(trace, SETTINGS).runs[0].result is None
    side = open_side(odd, SETTINGS)
    assert side.taken_as == "one run"
    assert side.runs[0].result is not None


def test_files_of_a_folder_are_repeats(tmp_path: Path) -> None:
    side = open_side(folder_of(tmp_path, "healthy.sqlite", "launch_bound.sqlite"), SETTINGS)
    assert side.taken_as == "repeats"
    assert [run.files for run in side.runs] == [("healthy.sqlite",), ("launch_bound.sqlite",)]
    assert "repeats of one run" in side.notes[0].text


def test_ranks_of_one_job_are_one_run(tmp_path: Path) -> None:
    side = open_side(folder_of(tmp_path, "two_ranks_rank0.sqlite", "two_ranks_rank1.sqlite"), SETTINGS)
    assert side.taken_as == "ranks of one job"
    assert [len(run.sources) for run in side.runs] == [2]
    assert "ranks of one job" in side.notes[0].text


def test_several_runs_of_several_ranks_are_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "two_ranks_rank0.sqlite", "two_ranks_rank1.sqlite")
    shutil.copy(folder / "two_ranks_rank0.sqlite", folder / "again.sqlite")
    with pytest.raises(UsageError, match="folder of its own"):
        open_side(folder, SETTINGS)


def test_folders_in_a_folder_are_runs(tmp_path: Path) -> None:
    runs = folder_of(tmp_path)
    for number in (1, 2):
        (runs / f"run{number}").mkdir()
        for rank in (0, 1):
            shutil.copy(SAMPLES / f"two_ranks_rank{rank}.sqlite", runs / f"run{number}")
    side = open_side(runs, SETTINGS)
    assert side.taken_as == "repeats of a job"
    assert [len(run.sources) for run in side.runs] == [2, 2]


def test_other_files_are_left_out_and_said(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "healthy.sqlite")
    (folder / "notes.txt").write_text("x", encoding="utf-8")
    (folder / "settings.json").write_text("{}", encoding="utf-8")
    side = open_side(folder, SETTINGS)
    assert side.taken_as == "one run"
    assert [note.id for note in side.notes] == ["ignored-files"]
    assert "2 other files" in side.notes[0].text


def test_an_export_beside_its_report_is_one_run(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "healthy.sqlite")
    shutil.copy(SAMPLES / "nvtx_osrt_only.nsys-rep", folder / "healthy.nsys-rep")
    assert [run.files for run in open_side(folder, SETTINGS).runs] == [("healthy.sqlite",)]


def test_nothing_to_compare(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no trace and no result"):
        open_side(folder_of(tmp_path), SETTINGS)


@pytest.mark.parametrize("text", ["{}", '{"schema": "nsys-triage/result/9"}', "{broken"])
def test_other_json_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="no result of this version"):
        open_side(path, SETTINGS)
