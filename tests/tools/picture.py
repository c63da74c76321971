"""Makes the picture of a report that the README shows: the top of the page of a sample trace.

python -m tests.tools.picture
"""

import tempfile
from pathlib import Path

from nsys_triage.cli import run
from tests.tools import chromium

SAMPLES = Path(__file__).parents[2] / "sample_traces"
TRACE = SAMPLES / "data_loader_stall.sqlite"
PICTURE = SAMPLES / "report.png"
WIDTH, HEIGHT = 1080, 1180


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        html = Path(folder) / "report.html"
        if run(["report", str(TRACE), "-o", str(html), "-q"]):
            raise SystemExit("picture: no report was made")
        view = {"viewport": {"width": WIDTH, "height": HEIGHT}, "color_scheme": "light"}
        with chromium.running() as browser, chromium.opened(browser, html, **view) as page:
            page.screenshot(path=PICTURE)


if __name__ == "__main__":
    main()
