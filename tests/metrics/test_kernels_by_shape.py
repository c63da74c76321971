from typing import Any

import polars as pl
import pytest

from nsys_triage.metrics import kernels_by_shape as module
from nsys_triage.metrics.kernel_names import describe
from nsys_triage.metrics.kernels_by_shape import join_by_shape, kernels_by_shape
from nsys_triage.result.model import KernelsByShape
from nsys_triage.trace.model import KERNELS, STRINGS
from tests.metrics.test_kernels import TEXTS, kernel

SCHEMA = {**KERNELS, "gpu": pl.UInt16}


def block(rows: list[dict[str, Any]]) -> KernelsByShape:
    strings = pl.DataFrame({"text": TEXTS}).with_row_index("code").select(*STRINGS)
    names = describe(strings).join(strings, on="code")
    return kernels_by_shape(pl.DataFrame(rows, schema=SCHEMA), names)


def flat(found: KernelsByShape) -> list[tuple[str, list[int], int, int]]:
    return [(k.name, s.grid, s.count, s.total_ns) for k in found.kernels for s in k.shapes]


def test_names_and_shapes_with_their_quantiles() -> None:
    rows = [kernel(0, length, grid_x=8) for length in (10, 20, 30, 40)] + [
        kernel(0, 5),
        kernel(1, 7),
        kernel(3, 9),
    ]
    found = block(rows)
    # codes 1 and 3 are one text
    assert flat(found) == [
        (TEXTS[0], [8, 1, 1], 4, 100),
        (TEXTS[0], [1, 1, 1], 1, 5),
        (TEXTS[1], [1, 1, 1], 2, 16),
    ]
    shape = found.kernels[0].shapes[0]
    assert (shape.p25_ns, shape.p50_ns, shape.p75_ns, shape.stddev_ns) == (10, 20, 30, 11)
    assert found.others is None


def test_without_kernels() -> None:
    assert block([]) == KernelsByShape(kernels=[], others=None)


def test_what_is_beyond_the_bound_is_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 2)
    found = block([kernel(0, 10 * x, grid_x=x) for x in range(1, 6)])
    assert [row[1][0] for row in flat(found)] == [5, 4]
    assert found.others is not None
    assert (found.others.shapes, found.others.count, found.others.total_ns) == (3, 3, 60)
    joined = join_by_shape([found, found])
    assert joined.others is not None
    assert (joined.others.count, sum(row[2] for row in flat(joined))) == (6, 4)


def test_joined_traces_are_as_if_they_were_one() -> None:
    parts = [[kernel(0, length) for length in lengths] for lengths in ((10, 20, 60), (30, 50))]
    joined, whole = (
        join_by_shape([block(part) for part in parts]),
        block([row for part in parts for row in part]),
    )
    assert flat(joined) == flat(whole)
    deviations = [found.kernels[0].shapes[0].stddev_ns for found in (joined, whole)]
    assert deviations[0] == pytest.approx(deviations[1], abs=1)
    assert 10 <= joined.kernels[0].shapes[0].p50_ns <= 60
