"""The page on all jobs: what it says, what it escapes, that it works without its script, and with it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nsys_triage.render.fleet import (
    CauseSum,
    FailureGroup,
    FleetView,
    JobLine,
    LimiterSum,
    Outlier,
    RuleSum,
    render_fleet,
)
from tests.render.pages import parse, words
from tests.tools import chromium

HOUR = 3_600 * 10**9


def line(name: str, limiter: str | None, at_stake_ns: int, busy: float | None = 0.5, *rules: str) -> JobLine:
    return JobLine(
        name,
        f"run/{name}.sqlite",
        limiter,
        f"{name} says so.",
        "Do it.",
        2,
        None,
        "H100",
        HOUR,
        busy,
        at_stake_ns,
        0,
        rules,
    )


VIEW = FleetView(
    tool_version="1",
    jobs_folder="jobs",
    jobs=4,
    files=5,
    copies=1,
    gpus=8,
    cannot_judge=1,
    span_ns=10 * HOUR,
    unsplit_ns=0,
    causes=[
        CauseSum("compute", 5 * HOUR),
        CauseSum("communication", HOUR),
        CauseSum("launch", HOUR),
        CauseSum("host_sync", 3 * HOUR),
    ],
    limiters=[LimiterSum("host_sync", 2, 3 * HOUR, 5 * HOUR), LimiterSum("compute", 1, 0, 5 * HOUR)],
    rules=[RuleSum("host-sync", 2, 1), RuleSum("tiny-copies", 1, 0)],
    worst=[
        line("b", "host_sync", 2 * HOUR, 0.5, "host-sync", "launch-overhead"),
        line("a", "host_launch", HOUR, 0.9, "launch-overhead"),
        line("c", "compute", 0, 0.99),
    ],
    outliers=[Outlier("b", "run/b.sqlite", "busy share of GPU time", 0.5, 0.95, 9.0)],
    cannot=[line("d", None, 0, None)],
    failures=[
        FailureGroup(
            "input", 2, [("x.sqlite", "x.sqlite is empty."), ("<b>.sqlite", "<script>alert(1)</script>")]
        ),
        FailureGroup("unfinished", 1, [("y.nsys-rep", "y.nsys-rep is still being written.")]),
    ],
)
EMPTY = FleetView("1", "jobs", 0, 0, 0, 0, 0, 0, 0, [], [], [], [], [], [], [])


def test_it_says_what_matters() -> None:
    page = parse(render_fleet(VIEW))
    # what is at stake is a part of what is lost: exposed communication is, though no GPU idles in it
    assert words(page.one("h1").text) == (
        "50 % of the GPU time looked at (10 GPU-h) was lost: idle, or in communication and copies that nothing hides."
        " The limiter with most at stake is host sync: 30 % of the GPU time, in 2 jobs."
    )
    text = words(page.one("main").text)
    assert "1 job is limited by the GPU itself" in text
    assert "Cannot be read. 2 inputs:" in text
    assert "Skipped: still being written. 1 input:" in text
    warnings = words(page.one("ul", class_="warnings").text)
    assert "2 inputs have no result." in warnings and "1 file was skipped" in warnings
    links = [a.attributes["href"] for a in page.all("a")]
    assert {"jobs/b.html", "jobs/d.html", "metrics.parquet", "failures.parquet"} <= set(links)


def test_idle_causes_come_first_by_time() -> None:
    page = parse(render_fleet(VIEW))
    table = page.one("table", class_="ledger")
    assert (
        words(table.text).index("host sync")
        < words(table.text).index("launch")
        < words(table.text).index("compute")
    )


def test_short_times_are_read_without_leading_zeros() -> None:
    """A recording of a test is milliseconds long."""
    short = replace(
        VIEW,
        span_ns=1_900_000,
        causes=[CauseSum("compute", 1_240_000), CauseSum("host_sync", 660_000)],
        limiters=[LimiterSum("host_sync", 1, 660_000, 1_900_000)],
        worst=[replace(line("b", "host_sync", 660_000), span_ns=1_900_000)],
    )
    page = parse(render_fleet(short))
    text = words(page.one("main").text)
    assert "35 % of the GPU time looked at (1.9 ms) was lost" in text
    assert "660 us" in text and "GPU-s" not in text


def test_every_job_says_what_to_do_next() -> None:
    page = parse(render_fleet(VIEW))
    assert [words(span.text) for span in page.all("span", class_="todo")] == ["Do it."] * len(VIEW.worst)


def test_nothing_in_it_is_markup() -> None:
    html = render_fleet(VIEW)
    assert "<script>alert" not in html and "&lt;script&gt;alert" in html


def test_without_jobs() -> None:
    page = parse(render_fleet(EMPTY))
    assert page.one("h1").text.strip() == "No job has a result yet."
    assert not page.all("table")


def test_shown_failures_are_bounded_and_the_number_is_said() -> None:
    rows = [(f"{n}.sqlite", "it is empty.") for n in range(5_000)]
    page = parse(render_fleet(replace(VIEW, failures=[FailureGroup("input", 5_000, rows)])))
    assert "5 000 inputs, the first 400 of them:" in words(page.one("main").text)


# --- in a browser -----------------------------------------------------------------------------------------------

in_browser = pytest.mark.skipif(chromium.PROGRAM is None, reason=chromium.MISSING)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium.running() as running:
        yield running


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet") / "index.html"
    path.write_text(render_fleet(VIEW), encoding="utf-8")
    return path


def first_column(page: Any) -> list[str]:
    names: list[str] = page.eval_on_selector_all(
        "#worst tbody tr:not([hidden]) td:first-child a", "e => e.map(a => a.textContent)"
    )
    return names


@pytest.mark.browser
@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_error_no_request_no_overflow(browser: Any, file: Path, scheme: str, width: int) -> None:
    with chromium.opened(
        browser, file, viewport={"width": width, "height": 900}, color_scheme=scheme
    ) as page:
        assert page.log == [] and len(page.requests) == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
@in_browser
def test_sorting_and_filtering(browser: Any, file: Path) -> None:
    with chromium.opened(browser, file) as page:
        assert first_column(page) == ["run/b.sqlite", "run/a.sqlite", "run/c.sqlite"]
        busy = page.locator("#worst th", has_text="Busy").locator("button")
        busy.click()
        assert first_column(page) == ["run/c.sqlite", "run/a.sqlite", "run/b.sqlite"]
        busy.click()
        assert first_column(page) == ["run/b.sqlite", "run/a.sqlite", "run/c.sqlite"]
        page.locator("#worst th", has_text="Job").locator("button").click()
        assert first_column(page) == ["run/a.sqlite", "run/b.sqlite", "run/c.sqlite"]
        page.locator("#worst .filters input").fill("RUN/A says")
        assert first_column(page) == ["run/a.sqlite"]
        assert page.locator("#worst .filters output").text_content() == "1 of 3 shown"
        page.locator("#worst .filters input").fill("")
        page.locator("#worst .filters select").first.select_option(index=3)
        assert len(first_column(page)) == 1
        # a rule shows its jobs, whatever was filtered by before
        page.locator("#rules a", has_text="host-sync").click()
        assert first_column(page) == ["run/b.sqlite"]
        page.locator("#worst .filters select").last.select_option("launch-overhead")
        assert sorted(first_column(page)) == ["run/a.sqlite", "run/b.sqlite"]
        assert page.locator("#rules a").count() == 1  # none of the jobs listed has the other one


@pytest.mark.browser
@in_browser
def test_without_scripts_all_rows_are_there(browser: Any, file: Path) -> None:
    with chromium.opened(browser, file, java_script_enabled=False) as page:
        assert page.locator("#worst tbody tr").count() == 3
        assert page.locator(".filters").count() == 0
