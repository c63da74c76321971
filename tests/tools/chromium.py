"""The system's Chromium, and pages in it that remember what they logged and asked for."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
MISSING = "no Chromium on this machine: apt-get install chromium"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@contextmanager
def running() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, file: Path, **options: Any) -> Iterator[Any]:
    """The page of a file; `log` holds its console messages and errors, `requests` the addresses it asked for."""
    context = browser.new_context(**options)
    try:
        page = context.new_page()
        page.log, page.requests = [], []
        page.on("console", lambda message: page.log.append(message.text))
        page.on("pageerror", lambda error: page.log.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(file.as_uri())
        yield page
    finally:
        context.close()
