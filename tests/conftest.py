"""What holds for all tests: how examples are generated, and that CI leaves out no test of nsys or the browser."""

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

IN_CI = os.environ.get("CI") == "true"
# what may be absent on a complete machine too: a test that names it may be skipped in CI
MAY_BE_ABSENT = ("beside the project", "a small file system")

# no deadline: other work on the machine makes no test wrong
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if IN_CI else "here")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Write tests/golden again.")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI (CI=true) a test that misses nsys or the browser has failed; elsewhere it is skipped."""
    report = yield
    marked = item.get_closest_marker("nsys") or item.get_closest_marker("browser")
    if IN_CI and report.skipped and marked and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if not any(words in reason for words in MAY_BE_ABSENT):
            report.outcome = "failed"
            report.longrepr = f"skipped, which CI does not allow: {reason}"
    return report
