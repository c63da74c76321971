import pytest

from nsys_triage.ingest.version import Version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NVIDIA Nsight Systems version 2023.4.4.54-234433681190v0\n", (2023, 4, 4, 54)),
        ("NVIDIA Nsight Systems version 2022.4.2.1-df9881f", (2022, 4, 2, 1)),
        ("2026@2@1@210", (2026, 2, 1, 210)),
        ("2023.4", (2023, 4)),
    ],
)
def test_versions_as_nsys_writes_them(text: str, expected: tuple[int, ...]) -> None:
    version = Version.find(text)
    assert version is not None
    assert version.parts == expected
    assert str(version) == ".".join(map(str, expected))


@pytest.mark.parametrize("text", ["", "1", "1.", "nsys version unknown", "12.1.0"])
def test_text_without_a_version(text: str) -> None:
    assert Version.find(text) is None


def test_versions_compare_by_number() -> None:
    assert Version((2023, 10, 1)) > Version((2023, 9, 5))
    assert Version((2023, 4, 4, 54)).release == (2023, 4, 4)
