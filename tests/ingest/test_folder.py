"""Which traces of a folder are the ranks of a job."""

import os
from pathlib import Path

import pytest

from nsys_triage.errors import UsageError
from nsys_triage.ingest.folder import traces_in


def names(folder: Path) -> list[str]:
    return [path.name for path in traces_in(folder)]


def test_traces_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("rank10.sqlite", "rank2.nsys-rep", "rank1.QDREP", "log.txt", ".hidden.sqlite", "rank2.json"):
        (tmp_path / name).touch()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "rank3.sqlite").touch()
    (tmp_path / "folder.sqlite").mkdir()
    assert names(tmp_path) == ["rank1.QDREP", "rank2.nsys-rep", "rank10.sqlite"]


@pytest.mark.parametrize(
    ("report_s", "export_s", "chosen"), [(1, 2, "a.sqlite"), (1, 1, "a.sqlite"), (2, 1, "a.nsys-rep")]
)
def test_of_a_report_and_its_export_the_newer_one(
    tmp_path: Path, report_s: int, export_s: int, chosen: str
) -> None:
    for name, seconds in (("a.nsys-rep", report_s), ("a.sqlite", export_s)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (seconds, seconds))
    assert names(tmp_path) == [chosen]


def test_folder_without_traces(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no report and no export: name a folder of \.nsys-rep"):
        traces_in(tmp_path)
