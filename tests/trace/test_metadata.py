"""Facts of the capture, and what must never be among them."""

import dataclasses
from pathlib import Path

import pytest

from nsys_triage.trace.model import Diagnostic, Trace
from nsys_triage.trace.sqlite import load_trace
from tests.trace.tables import KERNEL, Row, Tables, duration, kernel, load, write

START = "TARGET_INFO_SESSION_START_TIME"


def pairs(**values: str | None) -> list[Row]:
    return [{"name": name, "value": value} for name, value in values.items()]


def settings(*values: tuple[str, str | None]) -> list[Row]:
    return [{"name": name, "value": value} for name, value in values]


def loaded(tmp_path: Path, tables: Tables) -> Trace:
    return load(tmp_path / "t.sqlite", {KERNEL: [kernel(1, 2)], **tables})


@pytest.mark.parametrize("table", ["META_DATA_EXPORT", "EXPORT_META_DATA"])
def test_versions_of_the_export(tmp_path: Path, table: str) -> None:
    rows = pairs(EXPORT_PRODUCT_VERSION="2023.4.4.54", EXPORT_SCHEMA_VERSION="3.7.2", EXPORT_USER="somebody")
    info = loaded(tmp_path, {table: rows}).info
    assert (info.exporter_version, info.schema_version, info.filtered) == ("2023.4.4.54", "3.7.2", False)
    assert "somebody" not in repr(info)


def test_a_bare_export(tmp_path: Path) -> None:
    info = loaded(tmp_path, {}).info
    given = {"file": "t.sqlite", "kind": "sqlite"}
    assert {f.name: getattr(info, f.name) for f in dataclasses.fields(info)} == {
        **dict.fromkeys((f.name for f in dataclasses.fields(info)), None),
        **given,
        "filtered": False,
        "captured": frozenset(),
        "environment": {},
        "secret_variables": 0,
        "private_variables": 0,
        "diagnostics": (),
    }


@pytest.mark.parametrize("key", ["EXPORT_PARAM_TABLES_TO_EXPORT", "EXPORT_PARAM_TIMES_TO_EXPORT"])
def test_an_export_of_a_part(tmp_path: Path, key: str) -> None:
    assert loaded(tmp_path, {"META_DATA_EXPORT": pairs(**{key: "1,2"})}).info.filtered
    assert not load(tmp_path / "u.sqlite", {KERNEL: [], "META_DATA_EXPORT": pairs(**{key: ""})}).info.filtered


def test_what_the_caller_knows(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.sqlite",
        {KERNEL: [], "TARGET_INFO_SYSTEM_ENV": settings(("TargetInstallDir", "/opt/2022.1.1"))},
    )
    info = load_trace(
        path, file="job.nsys-rep", kind="nsys-rep", capture_version="2023.4.1", filtered=True
    ).info
    assert (info.file, info.kind, info.capture_version, info.filtered) == (
        "job.nsys-rep",
        "nsys-rep",
        "2023.4.1",
        True,
    )


@pytest.mark.parametrize(
    ("folder", "version"),
    [
        ("/opt/nvidia/nsight-systems/2023.4.4/target-linux-x64", "2023.4.4"),
        ("C:\\Program Files\\NVIDIA Corporation\\Nsight Systems 2026.2.1\\target-windows-x64", "2026.2.1"),
        ("/opt/nsys/2024.6.2.225/bin", "2024.6.2.225"),
        ("/home/somebody/nsys/bin", None),
        ("/opt/nvidia/1.2.3", None),
        ("", None),
    ],
)
def test_the_capture_version_from_the_installation(tmp_path: Path, folder: str, version: str | None) -> None:
    rows = settings(("TargetInstallDir", folder))
    assert loaded(tmp_path, {"TARGET_INFO_SYSTEM_ENV": rows}).info.capture_version == version


def test_times(tmp_path: Path) -> None:
    row = {"utcEpochNs": 1_782_443_088_187_783_637, "utcTime": "2026-06-26T03:04:48", "systemClockNs": 4_195}
    info = loaded(tmp_path, {START: [row], **duration(8_556_544_017)}).info
    assert info.started_utc == "2026-06-26T03:04:48.187Z"
    assert info.started_epoch_ns == 1_782_443_088_187_783_637
    assert (info.system_clock_ns, info.duration_ns) == (4_195, 8_556_544_017)


@pytest.mark.parametrize(
    ("row", "started"),
    [
        ({"utcEpochNs": None, "utcTime": "2026-06-26T03:04:48"}, "2026-06-26T03:04:48Z"),
        ({"utcEpochNs": None, "utcTime": "yesterday"}, None),
        ({"utcEpochNs": 2**63 - 1, "utcTime": None}, "2262-04-11T23:47:16.854Z"),
        ({"utcTime": None}, None),
    ],
)
def test_a_session_start_that_is_not_a_number(tmp_path: Path, row: Row, started: str | None) -> None:
    assert loaded(tmp_path, {START: [row]}).info.started_utc == started


def test_what_was_captured(tmp_path: Path) -> None:
    rows = settings(
        ("CAPTURE_EVENT_TYPE", "Cuda"),
        ("CAPTURE_EVENT_TYPE", "NvtxEvents"),
        ("CAPTURE_EVENT_TYPE", "/home/somebody"),
        ("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph"),
    )
    info = loaded(tmp_path, {"META_DATA_CAPTURE": rows}).info
    assert info.captured == {"Cuda", "NvtxEvents"}
    assert info.graph_trace_mode == "graph"


@pytest.mark.parametrize(
    ("value", "mode"), [("Node", "node"), ("graph", "graph"), ("somebody", None), (None, None)]
)
def test_graph_trace_modes(tmp_path: Path, value: str | None, mode: str | None) -> None:
    rows = settings(("CUDA_GRAPH_TRACE_OPTIONS:MODE", value))
    assert loaded(tmp_path, {"META_DATA_CAPTURE": rows}).info.graph_trace_mode == mode


SECRETS = ("hf_secret_value", "somebody", "example.org", "train.py", "leaked")
PRIVATE: Tables = {
    "META_DATA_CAPTURE": settings(
        ("PROCESS_0:COMMAND", "/home/somebody/train.py"),
        ("PROCESS_0:ARGUMENT_0", "--token=hf_secret_value"),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'RANK="3"'),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'HF_TOKEN="hf_secret_value"'),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'HOME="/home/somebody"'),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'NCCL_DEBUG="/home/somebody/log"'),
        ("CAPTURE_HOST", "node1.example.org"),
    ),
    "TARGET_INFO_SYSTEM_ENV": settings(
        ("Hostname", "node1.example.org"),
        ("DeviceEnvironment", "HF_TOKEN=hf_secret_value;RANK=9;USER=somebody"),
        ("TargetInstallDir", "/home/somebody/nsight-systems-2024.2.1/bin"),
    ),
    "META_DATA_EXPORT": pairs(
        EXPORT_HOST="node1.example.org", EXPORT_USER="somebody", EXPORT_PRODUCT_VERSION="2026.2.1"
    ),
    "ProcessStreams": [{"globalPid": 1, "filenameId": 1, "contentId": 2}],
    "PROCESSES": [
        {"globalPid": kernel(1, 2)["globalPid"], "pid": 4_000, "name": "/home/somebody/bin/python3"},
        {"globalPid": 5 << 24, "pid": 5, "name": "/home/somebody/editor"},
    ],
    "StringIds": [{"id": 1, "value": "k"}, {"id": 2, "value": "leaked output of the program"}],
    "DIAGNOSTIC_EVENT": [{"severity": 3, "text": "Could not open /home/somebody/x", "source": 1}],
}


def test_nothing_private_reaches_the_trace(tmp_path: Path) -> None:
    trace = loaded(tmp_path, PRIVATE)
    assert trace.info.environment == {"RANK": "3"}
    assert (trace.info.private_variables, trace.info.secret_variables) == (4, 1)
    assert trace.info.capture_version == "2024.2.1"
    assert trace.processes.rows() == [(4_000, "python3")]
    everything = repr(trace.info) + "".join(
        getattr(trace, field.name).write_json()
        for field in dataclasses.fields(trace)
        if hasattr(getattr(trace, field.name), "write_json")
    )
    assert [secret for secret in SECRETS if secret in everything] == []


@pytest.mark.parametrize("mark", [";", "\0"])
def test_the_environment_of_older_exports(tmp_path: Path, mark: str) -> None:
    block = mark.join(["SLURM_PROCID=5", "API_KEY=hf_secret_value", "CUDA_VISIBLE_DEVICES=0,1"])
    info = loaded(tmp_path, {"TARGET_INFO_SYSTEM_ENV": settings(("DeviceEnvironment", block))}).info
    assert info.environment == {"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_PROCID": "5"}
    assert (info.private_variables, info.secret_variables) == (3, 1)


def test_hosts_are_told_apart_and_not_named(tmp_path: Path) -> None:
    keys = []
    for number, host in enumerate(("node1", "node2", "node1")):
        rows = settings(("Hostname", host))
        keys.append(
            load(tmp_path / f"{number}.sqlite", {KERNEL: [], "TARGET_INFO_SYSTEM_ENV": rows}).info.host_key
        )
    assert keys[0] == keys[2] != keys[1]
    assert all(key is not None and len(key) == 16 and "node" not in key for key in keys)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "Not all CUDA events might have been collected. See /home/somebody/x",
            "Not all CUDA events might have been collected.",
        ),
        (
            "Not all OS runtime libraries events might have been collected.",
            "Not all OS runtime libraries events might have been collected.",
        ),
        (
            "No CUDA events collected. Does the process use CUDA?",
            "No CUDA events collected. Does the process use CUDA?",
        ),
        ("No NVTX events collected. Does somebody's process use it?", "No NVTX events collected."),
        (
            "Installed CUDA driver version (535.104) is not supported by this build of somebody",
            "Installed CUDA driver version (535.104) is not supported by this build",
        ),
        ("Installed CUDA driver version (/home/somebody) is not supported", "other message"),
        ("Process somebody: Not all CUDA events might have been collected.", "other message"),
        ("Not all /home/somebody events might have been collected.", "other message"),
        ("", "other message"),
    ],
)
def test_of_diagnostics_the_known_wording_alone(tmp_path: Path, text: str, kept: str) -> None:
    trace = loaded(tmp_path, {"DIAGNOSTIC_EVENT": [{"severity": 2, "text": text}]})
    assert trace.info.diagnostics == (Diagnostic(2, kept),)


def test_diagnostics_are_counted_the_gravest_first(tmp_path: Path) -> None:
    lost = "Not all CUDA events might have been collected."
    rows = [
        (4, "x"),
        (1, "a"),
        (2, lost),
        (3, "/home"),
        (2, lost),
        (3, "b"),
        (2, "No NVTX events collected."),
    ]
    trace = loaded(
        tmp_path, {"DIAGNOSTIC_EVENT": [{"severity": severity, "text": text} for severity, text in rows]}
    )
    assert trace.info.diagnostics == (
        Diagnostic(3, "other message", 2),
        Diagnostic(2, "No NVTX events collected."),
        Diagnostic(2, lost, 2),
        Diagnostic(1, "other message"),
        Diagnostic(4, "other message"),
    )
