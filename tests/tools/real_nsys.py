"""The real nsys of both versions, where `fetch_nsys.py` has put them."""

import os
from pathlib import Path

import pytest

VERSIONS = ("2022.4.2", "2023.4.4")
VARIABLE = "NSYS_TRIAGE_TEST_NSYS"


def root_of(version: str) -> Path:
    """The unpacked folder of one version; skips the test where it is absent."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(f"{VARIABLE} does not name a folder made by tests/tools/fetch_nsys.py")
    root = Path(folder) / version
    if not root.is_dir():
        pytest.skip(f"no nsys {version} in {VARIABLE}")
    return root


def program_of(version: str) -> Path:
    """The program nsys of one version; skips the test where it is absent."""
    return next((root_of(version) / "usr/lib/nsight-systems").glob("target-linux-*/nsys"))
