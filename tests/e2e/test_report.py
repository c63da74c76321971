"""From a real report or a real export to a page that opens without an error, and the same figures from both."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tools.real_nsys import VERSIONS, program_of

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_traces"
SHARED = ROOT.parent / "shared" / "traces"
REPORTS = SHARED / "reports"
EXPORTS = sorted((SHARED / "sqlite").glob("*.sqlite"))
MAX_HTML_BYTES = 1 << 20
needs_shared = pytest.mark.skipif(not EXPORTS, reason="the folder shared/ is not beside the project")
Looker = Callable[[Path], str]


def command(folder: Path, *arguments: str | Path) -> int:
    """Runs a command as a user does; gives its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "nsys_triage", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NSYS_TRIAGE_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 3), done.stderr
    assert done.stderr == ""
    return done.returncode


def report(trace: Path, folder: Path, nsys: Path | None = None) -> tuple[int, Path, dict[str, Any]]:
    """The exit code, the page, and the result of one trace."""
    html, result = folder / "page.html", folder / "result.json"
    given = [] if nsys is None else ["--nsys", nsys]
    code = command(folder, "report", trace, "-o", html, "--json", result, *given)
    return code, html, json.loads(result.read_bytes())


@pytest.mark.nsys
@pytest.mark.browser
@pytest.mark.parametrize("version", VERSIONS)
def test_report_of_a_job_without_gpu(version: str, tmp_path: Path, look: Looker) -> None:
    trace = SAMPLES / "nvtx_osrt_only.nsys-rep"
    code, html, result = report(trace, tmp_path, nsys=program_of(version))
    assert code == 3
    assert result["status"] == "cannot_judge"
    assert result["capture"]["kind"] == "nsys-rep"
    assert result["capture"]["exporter_version"].startswith(version)
    assert result["verdict"]["limiter"] is None
    assert "No GPU work" in look(html)


def figures(result: dict[str, Any]) -> dict[str, Any]:
    """What must not depend on who exported the report, and when."""
    names = ("gpus", "kernels", "launches", "sync", "copies", "collectives", "steps", "verdict")
    kept = {name: result[name] for name in names}
    # an older exporter has fewer columns of it
    kept["gpus"] = [
        {key: gpu[key] for key in ("span_ns", "busy_ns", "idle_ns", "ledger")} for gpu in kept["gpus"]
    ]
    return kept


@pytest.mark.nsys
@pytest.mark.browser
@needs_shared
def test_real_report_gives_the_figures_of_its_export(tmp_path: Path, look: Looker) -> None:
    (tmp_path / "rep").mkdir()
    (tmp_path / "sqlite").mkdir()
    trace = REPORTS / "jacobi_gh200.nsys-rep"
    code, html, result = report(trace, tmp_path / "rep", nsys=program_of("2023.4.4"))
    _, _, of_export = report(SHARED / "sqlite" / "jacobi_gh200.sqlite", tmp_path / "sqlite")
    assert code == 0
    assert figures(result) == figures(of_export)
    assert html.stat().st_size < MAX_HTML_BYTES
    assert look(html) == result["verdict"]["sentence"]


@pytest.mark.nsys
@pytest.mark.browser
@needs_shared
def test_real_report_gives_the_same_figures_with_both_versions(tmp_path: Path, look: Looker) -> None:
    found = []
    for version in VERSIONS:
        folder = tmp_path / version
        folder.mkdir()
        code, html, result = report(REPORTS / "selinv_a100.nsys-rep", folder, nsys=program_of(version))
        assert code == 0
        assert result["capture"]["exporter_version"].startswith(version)
        assert html.stat().st_size < MAX_HTML_BYTES
        assert look(html) == result["verdict"]["sentence"]
        found.append(figures(result))
    assert found[0] == found[1]


@pytest.mark.browser
@pytest.mark.parametrize("trace", sorted(SAMPLES.glob("*.sqlite")), ids=lambda path: path.stem)
def test_sample_opens(trace: Path, tmp_path: Path, look: Looker) -> None:
    code, html, result = report(trace, tmp_path)
    assert code == 0
    assert look(html) == result["verdict"]["sentence"]


@pytest.mark.browser
@needs_shared
@pytest.mark.parametrize("trace", EXPORTS, ids=lambda path: path.stem)
def test_real_export_opens(trace: Path, tmp_path: Path, look: Looker) -> None:
    code, html, result = report(trace, tmp_path)
    assert (code, result["status"]) in ((0, "ok"), (3, "cannot_judge"))
    assert html.stat().st_size < MAX_HTML_BYTES
    assert look(html) == result["verdict"]["sentence"]


@pytest.mark.browser
def test_comparison_opens(tmp_path: Path, look: Looker) -> None:
    html, result = tmp_path / "page.html", tmp_path / "result.json"
    sides = [SAMPLES / "item_sync.sqlite", SAMPLES / "item_sync.sqlite"]
    assert command(tmp_path, "compare", *sides, "-o", html, "--json", result) == 0
    assert look(html) == json.loads(result.read_bytes())["verdict"]["sentence"]


@pytest.mark.browser
def test_page_on_all_jobs_opens(tmp_path: Path, look: Looker) -> None:
    # the report needs nsys, which may be absent
    traces = sorted(SAMPLES.glob("*.sqlite"))
    assert command(tmp_path, "batch", *traces, "-o", tmp_path / "out", "-q") == 0
    assert look(tmp_path / "out" / "index.html")
    pages = sorted((tmp_path / "out" / "jobs").glob("*.html"))
    assert len(pages) == len(traces) - 1  # two ranks are one job
    assert all(look(page) for page in pages)
