"""Lost events: what nsys says of them, and rows without an end."""

from pathlib import Path

import pytest

from nsys_triage.metrics.lost_events import LostEvents, lost_events
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import Raw, TraceBuilder


def lost(builder: TraceBuilder, folder: Path) -> LostEvents:
    path = builder.write(folder / "t.sqlite")
    return lost_events(load_trace(path, file=path.name, kind="sqlite", capture_version=None))


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("Not all CUDA events might have been collected.", True),
        ("CUDA profiling might have not been started correctly.", True),
        ("Reached the size limit on recording trace events for this process", True),
        ("Not all NVTX events might have been collected.", False),
        ("Not all OS runtime libraries events might have been collected.", False),
    ],
)
def test_messages_and_whether_they_are_about_device_work(tmp_path: Path, text: str, device: bool) -> None:
    found = lost(TraceBuilder().kernel(0, 1).diagnostic(text).diagnostic(text), tmp_path)
    assert [message.count for message in found.messages] == [2]
    assert bool(found.device) is device
    assert found.says


@pytest.mark.parametrize("severity", [1, 4])
def test_information_is_no_loss(tmp_path: Path, severity: int) -> None:
    builder = (
        TraceBuilder()
        .kernel(0, 1)
        .diagnostic("Not all CUDA events might have been collected.", severity=severity)
    )
    assert lost(builder, tmp_path).messages == ()


def test_the_gravest_comes_first(tmp_path: Path) -> None:
    builder = (
        TraceBuilder().kernel(0, 1).diagnostic("Not all CUDA events might have been collected.", severity=2)
    )
    builder.diagnostic("CUDA profiling might have not been started correctly.", severity=3)
    assert [message.severity for message in lost(builder, tmp_path).messages] == [3, 2]


def test_rows_without_an_end(tmp_path: Path) -> None:
    assert lost(TraceBuilder().kernel(0, 1).kernel(100, Raw(None)), tmp_path).not_finished == 1
    assert lost(TraceBuilder().kernel(0, 1), tmp_path).not_finished == 0


@pytest.mark.parametrize(("version", "says"), [("2023.4.4", False), ("2025.5.2", True)])
def test_whether_the_export_would_say_so(tmp_path: Path, version: str, says: bool) -> None:
    assert lost(TraceBuilder(version).kernel(0, 1), tmp_path).says is says
