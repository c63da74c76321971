from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.tools.fake_nsys import FakeNsys
from tests.tools.real_nsys import VERSIONS, root_of


def test_without_nsys_and_without_a_cache(tmp_path: Path, command: Command) -> None:
    code, out, err = command("doctor")
    assert (code, err) == (0, "")
    assert "nsys         none found (looked at --nsys, " in out
    assert f"cache        {tmp_path}/cache\n             0 exports, 0 B\n" in out
    assert "polars 2" in out
    assert " missing" not in out
    assert " free on its disk" in out
    assert not (tmp_path / "cache").exists()


def test_with_nsys(fake: FakeNsys, command: Command) -> None:
    assert f"\nnsys         2023.4.4.54  {fake.path}\n" in command("doctor", "--nsys", fake.path)[1]


@pytest.mark.parametrize(
    ("nsys", "sentence"), [("/no/nsys", "where no nsys is"), ("true", "does not answer `--version`")]
)
def test_named_nsys_that_is_none(nsys: str, sentence: str, command: Command) -> None:
    code, out, _ = command("doctor", "--nsys", nsys)
    assert code == 0
    assert sentence in out
    assert "\ncpus " in out


@pytest.mark.nsys
@pytest.mark.parametrize("version", VERSIONS)
def test_with_the_real_nsys(version: str, command: Command) -> None:
    assert f"\nnsys         {version}." in command("doctor", "--nsys", root_of(version))[1]
