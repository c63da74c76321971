"""The whole way: files in, and a page in a real browser out."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.render.pages import words
from tests.tools import chromium

Looker = Callable[[Path], Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; skips the test where it is absent."""
    if chromium.PROGRAM is None:
        pytest.skip(chromium.MISSING)
    pytest.importorskip("playwright.sync_api")
    with chromium.running() as program:
        yield program


@pytest.fixture
def look(browser: Any) -> Looker:
    """Opens a page with everything unfolded; fails on a console message or a request. Returns its headline."""

    def open_page(html: Path) -> str:
        with chromium.opened(browser, html, viewport={"width": 1280, "height": 900}) as page:
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            page.wait_for_timeout(50)
            assert page.log == []
            assert page.requests == [html.as_uri()]
            return words(page.locator("h1").inner_text())

    return open_page
