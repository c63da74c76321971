"""Hardware samples, from the long table and from the JSON rows of older exporters."""

import json
from pathlib import Path

import polars as pl
import pytest

from nsys_triage.trace.gpu_metrics import metric
from nsys_triage.trace.model import GPU_METRICS, Trace
from tests.trace.tables import KERNEL, Row, Tables, kernel, load

TYPE = 281_479_271_677_952  # GPU 0
Samples = list[tuple[int, dict[str, int]]]


def long_tables(names: list[str], samples: Samples, types: tuple[int, ...] = (TYPE,)) -> Tables:
    info = [
        {"typeId": kind, "sourceId": kind, "typeName": "", "metricId": i, "metricName": name}
        for kind in types
        for i, name in enumerate(names)
    ]
    rows = [
        {"timestamp": time, "typeId": kind, "metricId": names.index(name), "value": value}
        for time, values in samples
        for kind in types
        for name, value in values.items()
    ]
    return {"TARGET_INFO_GPU_METRICS": info, "GPU_METRICS": rows}


def json_tables(samples: Samples) -> Tables:
    rows: list[Row] = [
        {
            "rawTimestamp": time,
            "timestamp": None,
            "typeId": TYPE,
            "data": json.dumps({name: str(value) for name, value in values.items()}),
        }
        for time, values in samples
    ]
    other = {"rawTimestamp": 4, "timestamp": 4, "typeId": 77, "data": '{"Temperature": "40"}'}
    return {"GENERIC_EVENTS": [other, *rows]}


def values(trace: Trace, name: str) -> list[tuple[int, float]]:
    return trace.gpu_metrics.filter(pl.col("metric") == name).select("time_ns", "value").rows()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SM Active", "sm_active"),
        ("SM Active [Throughput %]", "sm_active"),
        ("SMs Active [Throughput %]", "sm_active"),
        ("sms  active", "sm_active"),
        ("SM Issue [Throughput %]", "sm_issue"),
        ("Tensor Active", "tensor_active"),
        ("Tensor Active / FP16 Active", "tensor_active"),
        ("GR Active [Throughput %]", "gr_active"),
        ("DRAM Read Throughput", "dram_read"),
        ("DRAM Read Bandwidth [Throughput %]", "dram_read"),
        ("DRAM Write Bandwidth [Throughput %]", "dram_write"),
        ("GPC Clock Frequency [MHz]", "sm_clock_mhz"),
        ("GPC Clock Frequency", "sm_clock_mhz"),
        ("PCIe RX Throughput [Throughput %]", "pcie_rx"),
        ("NVLink TX Requests User Data", "nvlink_tx"),
        ("DRAM Read Bandwidth [Bytes]", None),
        ("SMs Active [Avg]", None),
        ("GPC Clock Frequency [Avg]", None),
        ("SYS Clock Frequency", None),
        ("Compute Warps In Flight", None),
        ("PCIe Read Requests to BAR1", None),
        ("", None),
    ],
)
def test_names_of_all_sets(name: str, expected: str | None) -> None:
    assert metric(name) == expected


NAMES = [
    "SM Active",
    "GPC Clock Frequency",
    "Compute Warps In Flight",
    "NVLink RX Requests User Data",
    "NVLink RX Responses User Data",
    "DRAM Read Throughput",
]
SAMPLES: Samples = [
    (-376_735, dict(zip(NAMES, (99, 1_154_728_113, 5, 1, 1, 3), strict=True))),
    (-147_110, dict(zip(NAMES, (0, 1_155_043_868, 5, 10, 20, 0), strict=True))),
    (100_000, dict(zip(NAMES, (100, 2_500_000_000 - 2**32, 5, 60, 55, 50), strict=True))),
    (200_000, dict(zip(NAMES, (101, 0, 5, 0, 0, -1), strict=True))),
]


@pytest.mark.parametrize("tables", [long_tables(NAMES, SAMPLES), json_tables(SAMPLES)], ids=["long", "json"])
def test_both_forms_give_the_same(tmp_path: Path, tables: Tables) -> None:
    trace = load(tmp_path / "t.sqlite", {KERNEL: [kernel(1, 2)], **tables})
    assert trace.gpu_metrics.schema == pl.Schema(GPU_METRICS)
    # the first sample lies before the capture and is left out; what is no percentage is, too
    assert values(trace, "sm_active") == [(-147_110, 0.0), (100_000, 1.0)]
    assert values(trace, "dram_read") == [(-147_110, 0.0), (100_000, 0.5)]
    # Hz that wrapped at 32 bits
    assert values(trace, "sm_clock_mhz") == [(-147_110, 1155.043868), (100_000, 2500.0), (200_000, 0.0)]
    # parts of one direction are added
    assert values(trace, "nvlink_rx") == [(-147_110, 0.3), (100_000, 1.0), (200_000, 0.0)]
    assert set(trace.gpu_metrics["gpu_id"]) == {0}
    assert "gpu_metrics" in trace.recorded


def test_a_first_sample_within_the_capture_stays(tmp_path: Path) -> None:
    trace = load(tmp_path / "t.sqlite", {KERNEL: [], **long_tables(["SM Active"], [(0, {"SM Active": 7})])})
    assert values(trace, "sm_active") == [(0, 0.07)]


def test_two_gpus_with_ids_of_their_own(tmp_path: Path) -> None:
    first = long_tables(["SM Active", "SM Issue"], [(5, {"SM Active": 7, "SM Issue": 8})], (TYPE,))
    second = long_tables(["SM Issue", "SM Active"], [(6, {"SM Active": 9, "SM Issue": 10})], (TYPE + 1,))
    tables = {name: [*first[name], *second[name]] for name in first}
    trace = load(tmp_path / "t.sqlite", {KERNEL: [], **tables})
    assert sorted(trace.gpu_metrics.rows()) == [
        (5, 0, "sm_active", 0.07),
        (5, 0, "sm_issue", 0.08),
        (6, 1, "sm_active", 0.09),
        (6, 1, "sm_issue", 0.1),
    ]


def test_real_numbers(tmp_path: Path) -> None:
    tables = long_tables(["SMs Active [Throughput %]"], [(5, {"SMs Active [Throughput %]": 7})])
    tables["GPU_METRICS"][0]["value"] = 12.5
    assert values(load(tmp_path / "t.sqlite", {KERNEL: [], **tables}), "sm_active") == [(5, 0.125)]


def test_rows_without_a_time_or_a_value(tmp_path: Path) -> None:
    tables = long_tables(["SM Active"], [(5, {"SM Active": 7}), (6, {"SM Active": 8}), (7, {"SM Active": 9})])
    tables["GPU_METRICS"][0]["timestamp"] = None
    tables["GPU_METRICS"][1]["value"] = None
    assert values(load(tmp_path / "t.sqlite", {KERNEL: [], **tables}), "sm_active") == [(7, 0.09)]


def test_the_raw_time_of_newer_exporters(tmp_path: Path) -> None:
    tables = long_tables(["SM Active"], [(5, {"SM Active": 7}), (6, {"SM Active": 8})])
    tables["GPU_METRICS"][0]["rawTimestamp"] = 99
    tables["GPU_METRICS"][1] |= {"timestamp": None, "rawTimestamp": 100}
    trace = load(tmp_path / "t.sqlite", {KERNEL: [], **tables})
    assert sorted(values(trace, "sm_active")) == [(5, 0.07), (100, 0.08)]


def test_recorded_without_a_metric_that_is_read(tmp_path: Path) -> None:
    trace = load(
        tmp_path / "t.sqlite", {KERNEL: [], **long_tables(["Pixel Warps"], [(5, {"Pixel Warps": 7})])}
    )
    assert trace.gpu_metrics.height == 0
    assert "gpu_metrics" in trace.recorded


@pytest.mark.parametrize("data", ['{"Power": "70"}', "not json", "[1, 2]", None, b"\xff"])
def test_generic_events_of_other_kinds_are_no_metrics(tmp_path: Path, data: object) -> None:
    row = {"rawTimestamp": 5, "timestamp": None, "typeId": 9, "data": data}
    trace = load(tmp_path / "t.sqlite", {KERNEL: [], "GENERIC_EVENTS": [row]})
    assert trace.gpu_metrics.height == 0
    assert "gpu_metrics" not in trace.recorded


def test_json_rows_that_are_damaged_or_lack_a_key(tmp_path: Path) -> None:
    texts = [
        '{"SM Active": "5", "SM Issue": "6"}',
        "{",
        '{"SM Active": "7"}',
        '{"SM Active": null, "SM Issue": 8}',
    ]
    rows = [
        {"rawTimestamp": i, "timestamp": 10 + i if i == 3 else None, "typeId": TYPE, "data": text}
        for i, text in enumerate(texts)
    ]
    trace = load(tmp_path / "t.sqlite", {KERNEL: [], "GENERIC_EVENTS": rows})
    assert values(trace, "sm_active") == [(0, 0.05), (2, 0.07)]
    assert values(trace, "sm_issue") == [(0, 0.06), (13, 0.08)]
