import os
from pathlib import Path

import pytest

from nsys_triage.errors import ExportError, NsysMissingError, UsageError
from nsys_triage.ingest import nsys
from nsys_triage.ingest.nsys import choose_nsys, find_nsys
from nsys_triage.ingest.version import Version
from tests.tools.fake_nsys import FakeNsys
from tests.tools.real_nsys import VERSIONS, program_of, root_of


def versions(found: list[nsys.Nsys]) -> list[str]:
    return [str(each.version) for each in found]


def put_on_path(monkeypatch: pytest.MonkeyPatch, fake: FakeNsys) -> None:
    monkeypatch.setenv("PATH", str(fake.path.parent), prepend=":")


def installed(monkeypatch: pytest.MonkeyPatch, *patterns: Path) -> None:
    monkeypatch.setattr(nsys, "INSTALL_PATTERNS", tuple(map(str, patterns)))


def test_none_is_no_error() -> None:
    assert find_nsys() == []


def test_path_first_then_install_folders_newest_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for version in ("2022.1.3.3", "2024.2.1.5", "2023.4.4.54"):
        FakeNsys(tmp_path / "opt" / version / "bin", version)
    installed(monkeypatch, tmp_path / "opt/*/bin/nsys")
    put_on_path(monkeypatch, FakeNsys(tmp_path / "bin", "2021.5.2.53"))
    assert versions(find_nsys()) == ["2021.5.2.53", "2024.2.1.5", "2023.4.4.54", "2022.1.3.3"]


def test_the_same_program_counts_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = FakeNsys(tmp_path / "opt")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nsys").symlink_to(fake.path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    installed(monkeypatch, fake.path)
    assert [found.path for found in find_nsys()] == [tmp_path / "bin/nsys"]


def test_what_does_not_answer_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good = FakeNsys(tmp_path / "a")
    other = tmp_path / "b/nsys"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho nsys 1.0 of something else\n")
    other.chmod(0o755)
    broken = tmp_path / "c/nsys"
    broken.parent.mkdir()
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    installed(monkeypatch, tmp_path / "*/nsys")
    assert [found.path for found in find_nsys()] == [good.path]


def test_named_by_variable_or_option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_on_path(monkeypatch, FakeNsys(tmp_path / "bin", "2021.5.2.53"))
    by_variable = FakeNsys(tmp_path / "a", "2022.4.2.1")
    by_option = FakeNsys(tmp_path / "b", "2023.4.4.54")
    monkeypatch.setenv("NSYS_TRIAGE_NSYS", str(by_variable.path))
    assert versions(find_nsys()) == ["2022.4.2.1"]
    assert versions(find_nsys(by_option.path)) == ["2023.4.4.54"]


@pytest.mark.parametrize("inside", ["nsys", "bin/nsys", "target-linux-x64/nsys"])
def test_named_by_its_install_folder(inside: str, tmp_path: Path) -> None:
    FakeNsys((tmp_path / "2023.4.4" / inside).parent)
    assert [found.path for found in find_nsys(tmp_path / "2023.4.4")] == [tmp_path / "2023.4.4" / inside]


def test_named_relative_to_the_working_folder(monkeypatch: pytest.MonkeyPatch, fake: FakeNsys) -> None:
    monkeypatch.chdir(fake.path.parent)
    assert find_nsys(Path("nsys"))[0].path == fake.path


def test_named_but_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--nsys names gone, where no nsys is"):
        find_nsys(tmp_path / "gone")
    monkeypatch.setenv("NSYS_TRIAGE_NSYS", str(tmp_path / "gone"))
    with pytest.raises(UsageError, match="NSYS_TRIAGE_NSYS names gone"):
        find_nsys()


def test_named_but_something_else() -> None:
    with pytest.raises(NsysMissingError, match="--nsys names true, which does not answer"):
        find_nsys(Path("true"))


def test_choice_prefers_path_unless_it_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_on_path(monkeypatch, FakeNsys(tmp_path / "bin", "2023.1.2.43"))
    FakeNsys(tmp_path / "opt/a", "2023.4.4.54")
    FakeNsys(tmp_path / "opt/b", "2025.1.1.1")
    installed(monkeypatch, tmp_path / "opt/*/nsys")

    def chosen(capture: str | None) -> str:
        return str(choose_nsys(None, "job.nsys-rep", Version.find(capture) if capture else None).version)

    assert chosen("2022.1.3") == "2023.1.2.43"
    assert chosen("2024.6.1.90") == "2025.1.1.1"
    assert chosen(None) == "2025.1.1.1"  # up to 2023.3.1: the one on PATH might not do


def test_hidden_version_is_tried_with_what_there_is(tmp_path: Path) -> None:
    old = FakeNsys(tmp_path, "2022.4.2.1")
    assert choose_nsys(old.path, "job.nsys-rep", None).version == Version((2022, 4, 2, 1))


def test_report_from_a_newer_nsys_names_both_versions(fake: FakeNsys) -> None:
    with pytest.raises(ExportError) as caught:
        choose_nsys(fake.path, "job.nsys-rep", Version((2025, 5, 1, 121)))
    sentence = str(caught.value)
    assert "job.nsys-rep was recorded with nsys 2025.5.1.121, which nsys 2023.4.4.54 cannot read" in sentence
    assert "install Nsight Systems 2025.5.1 or newer" in sentence


def test_another_build_of_the_same_release_is_tried(fake: FakeNsys) -> None:
    assert choose_nsys(fake.path, "job.nsys-rep", Version((2023, 4, 4, 99))).path == fake.path


def test_missing_nsys_says_where_it_looked_and_what_to_run() -> None:
    with pytest.raises(NsysMissingError) as caught:
        choose_nsys(None, "my job.nsys-rep", None)
    sentence = str(caught.value)
    assert "`nsys export --type=sqlite --output='my job.sqlite' 'my job.nsys-rep'`" in sentence
    for place in ("--nsys", "NSYS_TRIAGE_NSYS", "PATH", "/opt/nvidia/nsight-systems", "/usr/local/cuda"):
        assert place in sentence


def test_command_for_a_name_that_begins_with_a_dash() -> None:
    assert nsys.export_command("-x.qdrep") == "nsys export --type=sqlite --output=./-x.sqlite ./-x.qdrep"


def test_include_json_is_looked_up(tmp_path: Path) -> None:
    assert nsys.knows_include_json(FakeNsys(tmp_path / "a", include_json=True).path)
    assert not nsys.knows_include_json(FakeNsys(tmp_path / "b").path)


@pytest.mark.nsys
@pytest.mark.parametrize("version", VERSIONS)
def test_real_nsys(version: str) -> None:
    (found,) = find_nsys(program_of(version))
    assert str(found.version).startswith(version + ".")
    assert not nsys.knows_include_json(found.path)
    assert find_nsys(root_of(version))[0].version == found.version


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_named_in_a_folder_that_may_not_be_entered(tmp_path: Path) -> None:
    fake = FakeNsys(tmp_path / "private")
    fake.path.parent.chmod(0)
    try:
        with pytest.raises(UsageError, match="--nsys names nsys, where no nsys is"):
            find_nsys(fake.path)
    finally:
        fake.path.parent.chmod(0o755)
