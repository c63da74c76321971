"""What must hold of the output of a batch on a folder that `folders.make` made."""

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from nsys_triage.result.codec import decode
from tests.batch.commands import results
from tests.batch.folders import Made


def table(out: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a table."""
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO((out / f"{name}.parquet").read_bytes())).to_pylist()
    return rows


def check(out: Path, made: Made) -> None:
    """Every good trace has its result and one row, every bad one its reason, and nothing is there twice."""
    rows = table(out, "metrics")
    assert len(rows) == len({row["job"] for row in rows}) == made.jobs == len(results(out))
    read = [label for row in rows for label in (*row["inputs"], *row["also"])]
    good = [*made.single, *made.copies, *(label for ranks in made.ranks for label in ranks)]
    assert sorted(read) == sorted(good)
    for row in rows:
        assert decode((out / f"jobs/{row['job']}.json").read_bytes()).status == row["status"]
        assert b"</html>" in (out / f"jobs/{row['job']}.html").read_bytes()[-20:]
    assert [row["ranks"] for row in rows if row["ranks"]] == [len(ranks) for ranks in made.ranks]
    assert sum(len(row["also"]) for row in rows) == len(made.copies)
    failures = table(out, "failures")
    assert sorted(row["input"] for row in failures) == sorted(made.bad)
    assert all(len(row["reason"]) > 20 and row["kind"] in ("input", "export") for row in failures)
    html = (out / "index.html").read_text()
    assert all(Path(bad).name.split()[0] in html for bad in made.bad)
    assert len(html.encode()) < 3_000_000
    assert not list(out.rglob("*.tmp"))
