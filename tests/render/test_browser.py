"""The page in a real browser: no error, no request, no overflow, without scripts, light, dark, printed."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nsys_triage.render import palette
from nsys_triage.render.html import render_html
from tests.render import results

CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
]
# a CSP without inline styles or scripts, as ticket systems set it
STRICT = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; img-src 'self'; style-src 'self'\">"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    pages = {name: render_html(make()) for name, make in results.ALL.items()}
    pages["strict"] = pages["rich"].replace('<meta charset="utf-8">', f'<meta charset="utf-8">{STRICT}')
    for name, html in pages.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


Opener = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, files: dict[str, Path]) -> Iterator[Opener]:
    """Opens a page; what it logs and asks for is in its `log` and `requests`."""
    contexts = []

    def open_page(name: str, width: int = 1280, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.log, page.requests = [], []
        page.on("console", lambda message: page.log.append(message.text))
        page.on("pageerror", lambda error: page.log.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(files[name].as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", results.ALL)
def test_no_error_and_no_request(opened: Opener, name: str) -> None:
    page = opened(name)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.wait_for_timeout(50)
    assert page.log == []
    assert [url for url in page.requests if not url.startswith("file:")] == []
    assert len(page.requests) == 1


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", results.ALL)
def test_nothing_is_wider_than_the_page(opened: Opener, name: str, width: int) -> None:
    page = opened(name, width)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = """[...document.querySelectorAll("body *")]
        .filter(e => !e.closest(".scroll") && !e.closest("svg")
        && e.getBoundingClientRect().right > innerWidth + 1)
        .map(e => e.outerHTML.slice(0, 80))"""
    assert page.evaluate(outside) == []


def test_labels_of_pictures_do_not_lie_on_each_other(opened: Opener) -> None:
    for width in (390, 1280):
        page = opened("rich", width)
        boxes = page.evaluate(
            """[...document.querySelectorAll('#time svg.chart text')]
            .filter(t => getComputedStyle(t).display !== 'none')
            .map(t => { const b = t.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom,
            t.textContent]; })"""
        )
        assert len(boxes) > 5
        for n, (left, right, top, bottom, text) in enumerate(boxes):
            for other in boxes[n + 1 :]:
                apart = right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top
                assert apart, (width, text, other[4])


def test_without_scripts_the_page_says_everything(opened: Opener) -> None:
    with_scripts, without = opened("rich"), opened("rich", java_script_enabled=False)
    tools = with_scripts.locator(".tools").inner_text()
    assert "Whole window" in tools
    assert without.locator(".tools").count() == 0
    assert without.locator("h1").inner_text() == with_scripts.locator("h1").inner_text()
    assert without.locator(".plot rect").count() == with_scripts.locator(".plot rect").count() > 300
    assert without.locator(".timeline text").first.is_visible()


def test_dark_scheme_has_the_dark_colours(opened: Opener) -> None:
    for scheme in ("light", "dark"):
        page = opened("rich", color_scheme=scheme)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        mark = page.evaluate("getComputedStyle(document.querySelector('.m-launch')).fill")
        assert ground == rgb(getattr(palette.PAGE, scheme))
        assert mark == rgb(getattr(palette.MARKS["launch"], scheme))


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[place : place + 2], 16)) for place in (1, 3, 5))})"


def test_under_a_strict_policy_every_mark_keeps_its_colour(opened: Opener) -> None:
    page = opened("strict", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgba(0, 0, 0, 0)"
    fills = page.evaluate(
        "[...document.querySelectorAll('#time .chart rect')].map(r => getComputedStyle(r).fill)"
    )
    assert rgb(palette.MARKS["launch"].light) in fills
    assert "rgb(0, 0, 0)" not in fills
    visible = (
        "[...document.querySelectorAll('.plot rect')].filter(r => r.getBoundingClientRect().width > 0).length"
    )
    assert page.evaluate(visible) > 300


def test_printed_pages_are_light_and_show_the_folded_topics(opened: Opener, tmp_path: Path) -> None:
    page = opened("rich", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == rgb(palette.PAGE.light)
    assert page.locator("nav").is_hidden()
    assert page.locator(".tools").is_hidden()
    kernels = page.locator("#topic-kernels table.top")
    assert kernels.evaluate("e => e.getBoundingClientRect().height") > 50
    target = tmp_path / "page.pdf"
    page.pdf(path=target, format="A4")
    assert target.read_bytes().startswith(b"%PDF")


def test_the_timeline_zooms_moves_and_names_what_the_pointer_is_on(opened: Opener) -> None:
    page = opened("rich")
    plot = page.locator(".plot")

    def labels() -> list[str]:
        ticks = page.locator(".tick").all()
        return [tick.locator("text").text_content() for tick in ticks if tick.is_visible()]

    before = labels()
    assert plot.get_attribute("viewBox").split()[2] == "100"
    page.get_by_role("button", name="Zoom in").click()
    start, _, width, _ = map(float, plot.get_attribute("viewBox").split())
    assert (start, width) == (25, 50)
    assert labels() != before
    page.get_by_role("button", name="Later").click()
    assert float(plot.get_attribute("viewBox").split()[0]) == 37.5
    page.get_by_role("button", name="Show the whole window").click()
    assert plot.get_attribute("viewBox").split()[:3] == ["0", "0", "100"]
    assert labels() == before

    mark = page.locator(".plot rect:has(title)").nth(150)
    mark.scroll_into_view_if_needed()
    mark.hover()
    assert mark.locator("title").text_content() in page.locator(".readout").inner_text()

    box = plot.bounding_box()
    page.get_by_role("button", name="Zoom in").click()
    page.mouse.move(box["x"] + 500, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 100)
    page.mouse.up()
    moved = float(plot.get_attribute("viewBox").split()[0])
    assert moved == pytest.approx(25 + 50 * 200 / box["width"], abs=0.2)
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    assert float(plot.get_attribute("viewBox").split()[0]) == moved


def test_the_wheel_scrolls_the_page_and_zooms_with_control(opened: Opener) -> None:
    page = opened("rich")
    plot = page.locator(".plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    page.mouse.wheel(0, 100)
    assert plot.get_attribute("viewBox").split()[2] == "100"
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.wait_for_function("document.querySelector('.plot').viewBox.baseVal.width < 100")
    page.keyboard.up("Control")


def test_hostile_names_run_nothing(opened: Opener) -> None:
    page = opened("hostile")
    assert page.locator("img").count() == 0
    assert page.log == []
    assert results.HOSTILE in page.locator("h1").inner_text()
