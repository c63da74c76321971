import platform
import re
import socket
from pathlib import Path

import pytest

from nsys_triage.ingest import ExportSettings, open_source
from nsys_triage.ingest.sqlite_file import read_only
from tests.tools import record
from tests.tools.real_nsys import program_of

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "nvtx_osrt_only.nsys-rep"


def test_sample_is_small() -> None:
    assert SAMPLE.stat().st_size < 1 << 20


@pytest.mark.nsys
def test_sample_holds_nothing_private(tmp_path: Path) -> None:
    # parts of the report are compressed: the export shows them too
    source = open_source(SAMPLE, ExportSettings(nsys=program_of("2023.4.4"), cache_dir=tmp_path))
    with read_only(source.path) as connection:
        texts = [text for (text,) in connection.execute("SELECT value FROM StringIds")]
        settings = dict(connection.execute("SELECT name, value FROM TARGET_INFO_SYSTEM_ENV"))
        processes = {name for (name,) in connection.execute("SELECT name FROM PROCESSES")}
    assert settings["Hostname"] == record.HOST_NAME
    variables = set(re.findall(r"(\w+)=", settings["DeviceEnvironment"]))
    assert variables <= {"HOME", "LD_PRELOAD", "OLDPWD", "PWD", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}
    assert processes == {"nsys", "nsys-launcher", "nsys-tee", "/python/bin/python3.11"}
    raw = SAMPLE.read_bytes() + "\n".join([*texts, *map(str, settings.values())]).encode()
    for word in (b"/root", b"/home", str(SAMPLE.parents[1]).encode(), socket.gethostname().encode()):
        assert len(word) < 5 or word not in raw


def test_release_keeps_its_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "release", lambda: "6.1.0-custom-of-somebody")
    stream = tmp_path / "a.qdstrm"
    stream.write_bytes(b"x6.1.0-custom-of-somebodyy")
    record.neutral_release(stream)
    assert stream.read_bytes() == b"x6.1.0-genericxxxxxxxxxxxy"
