"""The sample traces are what the builder makes, and hold what their README says."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from tests.builders.samples import FOLDER, make

NAMES = (
    "data_loader_stall",
    "launch_bound",
    "healthy",
    "item_sync",
    "two_ranks_rank0",
    "two_ranks_rank1",
)
Interval = tuple[int, int]

KERNELS = """
    SELECT kernel.start, kernel.end, streamId, call.start, call.end, value
    FROM CUPTI_ACTIVITY_KIND_KERNEL AS kernel
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS call USING (correlationId)
    JOIN StringIds ON id = demangledName
"""


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    make(folder)
    return folder


@pytest.fixture(params=NAMES)
def trace(request: pytest.FixtureRequest) -> Iterator[sqlite3.Connection]:
    with closing(opened(FOLDER / f"{request.param}.sqlite")) as db:
        yield db


def opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)


def union(intervals: list[Interval], window: Interval) -> int:
    """Length of the union within the window."""
    total, reached = 0, window[0]
    for start, end in sorted(intervals):
        start, end = max(start, reached), min(end, window[1])
        if end > start:
            total, reached = total + end - start, end
    return total


def shares(name: str) -> dict[str, float]:
    """Shares of the time from the first third of the kernels on, when start-up is long over."""
    with closing(opened(FOLDER / f"{name}.sqlite")) as db:
        kernels = sorted(db.execute(KERNELS))
        copies = [
            (start, end) for start, end in db.execute("SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY")
        ]
    window = (kernels[len(kernels) // 3][0], max(kernel[1] for kernel in kernels))
    compute = [(k[0], k[1]) for k in kernels if not k[5].startswith("nccl")]
    communication = [(k[0], k[1]) for k in kernels if k[5].startswith("nccl")]
    span = window[1] - window[0]
    computing = union(compute, window)
    with_communication = union(compute + communication, window)
    return {
        "busy": union(compute + communication + copies, window) / span,
        "compute": computing / span,
        "exposed_communication": (with_communication - computing) / span,
    }


# The bytes of the file depend on the version of SQLite that wrote it, its contents do not.
@pytest.mark.parametrize("name", NAMES)
def test_builder_makes_the_same_contents(rebuilt: Path, name: str) -> None:
    with (
        closing(opened(FOLDER / f"{name}.sqlite")) as kept,
        closing(opened(rebuilt / f"{name}.sqlite")) as again,
    ):
        schema = "SELECT name, sql FROM sqlite_master ORDER BY name"
        tables = kept.execute(schema).fetchall()
        assert tables == again.execute(schema).fetchall()
        for table, _ in tables:
            rows = f'SELECT rowid, * FROM "{table}" ORDER BY rowid'  # noqa: S608
            assert kept.execute(rows).fetchall() == again.execute(rows).fetchall(), table


def test_folder_holds_exactly_these_traces() -> None:
    assert {path.stem for path in FOLDER.glob("*.sqlite")} == set(NAMES)
    readme = (FOLDER / "README.md").read_text()
    assert all(f"`{name}.sqlite`" in readme for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_traces_are_small(name: str) -> None:
    assert (FOLDER / f"{name}.sqlite").stat().st_size < 300_000


def test_no_work_before_its_launch(trace: sqlite3.Connection) -> None:
    kernels = trace.execute(KERNELS).fetchall()
    assert (
        len(kernels) == trace.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0] > 900
    )
    assert all(start > called for start, _, _, called, _, _ in kernels)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT streamId, start, end FROM CUPTI_ACTIVITY_KIND_KERNEL"
        " UNION ALL SELECT streamId, start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY",
        "SELECT globalTid, start, end FROM CUPTI_ACTIVITY_KIND_RUNTIME",
    ],
    ids=["streams", "threads"],
)
def test_one_thing_at_a_time(trace: sqlite3.Connection, sql: str) -> None:
    """Operations of a stream and calls of a thread do not overlap."""
    rows = sorted(trace.execute(sql))
    pairs = [(one, two) for one, two in pairwise(rows) if one[0] == two[0]]
    assert all(one[2] <= two[1] for one, two in pairs)


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("data_loader_stall", lambda s: 0.3 < s["busy"] < 0.4),
        ("launch_bound", lambda s: 0.15 < s["busy"] < 0.25),
        ("healthy", lambda s: s["busy"] > 0.99),
        ("item_sync", lambda s: 0.65 < s["busy"] < 0.72),
        ("two_ranks_rank0", lambda s: s["busy"] > 0.99 and 0.25 < s["exposed_communication"] < 0.33),
        ("two_ranks_rank1", lambda s: s["compute"] > 0.98 and s["exposed_communication"] < 0.02),
    ],
)
def test_planted_cause_shows(name: str, holds: Callable[[dict[str, float]], bool]) -> None:
    found = shares(name)
    assert holds(found), found


@pytest.mark.parametrize(
    ("name", "steps"), [("data_loader_stall", 30), ("healthy", 26), ("two_ranks_rank0", 24)]
)
def test_first_step_is_slow(name: str, steps: int) -> None:
    with closing(opened(FOLDER / f"{name}.sqlite")) as db:
        rows = db.execute("SELECT end - start FROM NVTX_EVENTS WHERE text LIKE '%step %' ORDER BY start")
        lengths = [length for (length,) in rows]
    assert len(lengths) == steps
    assert lengths[0] > 5 * max(lengths[2:])
    assert max(lengths[2:]) < 1.1 * min(lengths[2:])


def test_ranks_say_who_they_are() -> None:
    for rank in range(2):
        with closing(opened(FOLDER / f"two_ranks_rank{rank}.sqlite")) as db:
            query = "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'DeviceEnvironment'"
            environment = db.execute(query).fetchone()[0].split(";")
            devices = db.execute("SELECT DISTINCT deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchall()
        assert {f"RANK={rank}", "WORLD_SIZE=2"} <= set(environment)
        assert devices == [(rank,)]


def test_collectives_of_the_two_ranks_end_together() -> None:
    """Both captures have their own clock; the session's start in UTC brings them together."""
    ends = []
    for rank in range(2):
        with closing(opened(FOLDER / f"two_ranks_rank{rank}.sqlite")) as db:
            started = db.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()[0]
            ends.append([started + k[1] for k in sorted(db.execute(KERNELS)) if k[5].startswith("nccl")])
    assert len(ends[0]) == len(ends[1]) == 72
    assert all(abs(one - two) < 2_000 for one, two in zip(*ends, strict=True))
