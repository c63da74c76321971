"""Real exports and planted cases: what is read agrees with what is known of them."""

import importlib.util
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

from nsys_triage.trace import model
from nsys_triage.trace.model import Trace
from tests.trace.tables import load, names

SHARED = Path(__file__).parents[2].parent / "shared"
TRACES = SHARED / "traces"
NO_TRACES = "the folder shared/traces is not beside the project"
REAL = sorted((TRACES / "sqlite").glob("*.sqlite"))
needs_traces = pytest.mark.skipif(not REAL, reason=NO_TRACES)
real = pytest.mark.parametrize(
    "path", REAL or [pytest.param(None, marks=needs_traces)], ids=lambda path: path and path.stem
)

COUNTED = {
    "kernels": "CUPTI_ACTIVITY_KIND_KERNEL",
    "memcpys": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "memsets": "CUPTI_ACTIVITY_KIND_MEMSET",
    "graphs": "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "syncs": "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "osrt": "OSRT_API",
    "scheduling": "SCHED_EVENTS",
}


COUNT, LENGTH = "SELECT count(*) FROM {}", "SELECT sum(end - start) FROM {}"
FIRST, MEAN = (
    "SELECT min(start) FROM {}",
    "SELECT avg(value) FROM GPU_METRICS WHERE timestamp > -376735 AND metricId = {}",
)


def one(path: Path, sql: str) -> Any:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute(sql).fetchone()[0]


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@real
def test_a_real_export(path: Path) -> None:
    trace = load(path)
    there = tables(path)
    for name, schema in model.FRAMES.items():
        assert getattr(trace, name).schema == pl.Schema(schema), name
    for name, table in COUNTED.items():
        frame = getattr(trace, name)
        assert (name in trace.recorded) == (table in there), name
        if table in there:
            assert frame.height == one(path, COUNT.format(table)), name
        if table in there and "end_ns" in frame.columns and frame.height:
            assert (frame["end_ns"] - frame["start_ns"]).sum() == one(path, LENGTH.format(table)), name
            assert frame["start_ns"].min() == one(path, FIRST.format(table)), name
    assert sum(trace.dropped.values()) == 0
    assert trace.info.exporter_version is not None
    assert trace.info.started_utc is not None
    assert trace.info.duration_ns is not None
    for name in ("kernels", "api", "osrt", "nvtx", "host_communication"):
        assert None not in names(trace, name), name
        assert "[unknown]" not in names(trace, name), name
    assert trace.strings["code"].is_sorted()
    assert trace.strings["code"].n_unique() == trace.strings.height


@real
def test_launches_are_found_in_their_process(path: Path) -> None:
    trace = load(path)
    if trace.kernels.is_empty() or trace.info.file.startswith("inference_2gpu"):
        return  # the latter was cut out of a longer capture: half of the launches are gone
    keys = ["pid", "correlation"]
    matched = trace.kernels.join(trace.api.select(keys).unique(), on=keys, how="semi").height
    assert matched >= 0.9 * trace.kernels.height


@needs_traces
def test_counts_that_are_known() -> None:
    checked = 0
    for entry in json.loads((TRACES / "known.json").read_text())["entries"]:
        facts = [fact for fact in entry["facts"] if fact["path"].startswith("capture.counts.")]
        trace = load(TRACES / "sqlite" / entry["file"])
        for fact in facts:
            assert getattr(trace.counts, fact["path"].rpartition(".")[2]) == fact["value"], (
                entry["id"],
                fact,
            )
            checked += 1
    assert checked > 50


def comparable(trace: Trace, name: str) -> pl.DataFrame:
    """A frame with texts in place of codes, since each exporter numbers them anew."""
    frame: pl.DataFrame = getattr(trace, name)
    for column in ("name", "domain", "payload"):
        if frame.schema.get(column) == pl.UInt32:
            frame = frame.with_columns(pl.Series(column, names(trace, name, column)))
    return frame.sort(pl.all())


@needs_traces
def test_two_exporters_of_one_report_agree() -> None:
    new = load(TRACES / "sqlite" / "mnist_ladder_3_amp.sqlite")
    old = load(TRACES / "sqlite" / "mnist_ladder_3_amp_exported_2022.sqlite")
    assert (new.info.exporter_version, old.info.exporter_version) == ("2023.4.4.54", "2022.4.2.1")
    for name in model.FRAMES:
        if name not in ("strings", "gpu_metrics"):
            assert comparable(new, name).equals(comparable(old, name)), name
    assert new.counts == old.counts
    assert new.recorded - {"gpu_metrics"} == old.recorded
    assert sorted(new.strings["text"]) == sorted(old.strings["text"])


@needs_traces
def test_real_gpu_metrics() -> None:
    path = TRACES / "sqlite" / "mnist_ladder_3_amp.sqlite"
    metrics = load(path).gpu_metrics
    assert set(metrics["metric"]) == {
        "sm_active", "sm_issue", "tensor_active", "dram_read", "dram_write", "gr_active", "sm_clock_mhz",
        "pcie_rx", "pcie_tx", "nvlink_rx", "nvlink_tx",
    }  # fmt: skip
    assert metrics["time_ns"].min() == -147_110
    mean = metrics.group_by("metric").agg(pl.col("value").mean(), pl.len())
    found = {metric: value for metric, value, _ in mean.iter_rows()}
    assert found["sm_active"] == pytest.approx(one(path, MEAN.format(12)) / 100)
    assert found["sm_clock_mhz"] == pytest.approx(one(path, MEAN.format(14)) / 1e6)
    assert mean["len"].n_unique() == 1


@needs_traces
def test_an_altered_export_with_mpi_ranges() -> None:
    trace = load(TRACES / "sqlite" / "mpi_saxpy_extra_columns.sqlite")
    assert (trace.counts.api_calls, trace.counts.memsets, trace.counts.nvtx_ranges) == (57, 0, 22)
    assert trace.host_communication.height == 17
    assert all(name is not None and name.startswith("MPI_") for name in names(trace, "host_communication"))
    assert trace.nvtx.height == 5


@needs_traces
def test_nccl_payloads_of_two_ranks() -> None:
    trace = load(TRACES / "sqlite" / "torch_ddp_2gpu_nccl.sqlite")
    nccl = trace.nvtx.with_columns(domain=pl.Series(names(trace, "nvtx", "domain"))).filter(
        pl.col("domain") == "NCCL"
    )
    assert nccl["pid"].n_unique() == 2
    assert trace.cuda_devices.height == 4
    assert set(trace.gpu_info["sm_count"]) == {82}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The planted cases, written anew."""
    folder = SHARED / "accept"
    if not folder.exists():
        pytest.skip("the folder shared/accept is not beside the project")
    out = tmp_path_factory.mktemp("cases")
    sys.path.insert(0, str(folder))
    try:
        module = make_cases(folder)
        for name, function in module.CASES.items():
            trace = module.Trace(name)
            function(trace)
            trace.write(str(out))
        yield out
    finally:
        sys.path.remove(str(folder))


def make_cases(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_cases", folder / "make_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_planted_bad_rows(cases: Path) -> None:
    trace = load(cases / "10_zero_and_inverted_times.sqlite")
    assert trace.dropped == {"not_finished": 1, "zero_times": 5, "inverted": 0, "too_long": 1}
    assert (trace.kernels.height, trace.counts.kernels) == (50, 57)


def test_planted_nvtx_shapes(cases: Path) -> None:
    trace = load(cases / "22_nvtx_shapes.sqlite")
    assert sorted(map(str, names(trace, "nvtx"))) == ["", "never ended", "registered", "startend"]
    assert (trace.counts.nvtx_ranges, trace.counts.nvtx_points, trace.counts.nvtx_open_ranges) == (4, 1, 1)
    open_ranges = trace.nvtx.filter("open")
    assert open_ranges["end_ns"].to_list() == [trace.info.duration_ns]


def test_planted_old_export(cases: Path) -> None:
    trace = load(cases / "24_old_export.sqlite")
    assert (trace.info.exporter_version, trace.info.schema_version) == ("2022.4.2.1", "3.0.0")
    assert (trace.counts.kernels, trace.counts.memcpys, trace.counts.nvtx_ranges) == (2, None, 1)


def test_planted_secrets(cases: Path) -> None:
    trace = load(cases / "25_leak_and_html.sqlite")
    assert trace.info.environment == {"RANK": "0"}
    assert (trace.info.private_variables, trace.info.secret_variables) == (4, 2)
    assert "<script>" in "".join(trace.strings["text"])  # names stay as they are; escaping is the report's


def test_planted_mpi(cases: Path) -> None:
    trace = load(cases / "46_host_side_communication.sqlite")
    assert trace.host_communication.height == 9
    assert trace.nvtx.height == 0
