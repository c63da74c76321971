"""Ranges: their names, domains, payloads, and those that never end."""

from pathlib import Path

import pytest

from nsys_triage.trace import read
from tests.trace.tables import (
    GTID,
    KERNEL,
    NVTX,
    PID,
    RUNTIME,
    TID,
    call,
    duration,
    kernel,
    load,
    names,
    nvtx,
    strings,
)

PAYLOAD = '{"NCCL communicator ID":13429301450432826988,"Message size [bytes]":4,"Reduction operation":"Sum"}'


def test_all_shapes(tmp_path: Path) -> None:
    rows = [
        nvtx(-9, None, "NCCL", kind=75, domainId=3),
        nvtx(-9, None, None, kind=76, domainId=3),
        nvtx(-9, None, "worker", kind=39),
        nvtx(-9, None, "category", kind=33),
        nvtx(2, None, "mark", kind=34),
        nvtx(1, 10, None, textId=1),
        nvtx(1, 20, "start/end", kind=60, endGlobalTid=GTID + 9),
        nvtx(5, None, "never ended", kind=60),
        nvtx(6, 1_000, "closed by nsys"),
        nvtx(1, 3, None),
        nvtx(7, 7, "empty"),
    ]
    tables = {NVTX: rows, "StringIds": strings("registered", "not used"), **duration(1_000)}
    trace = load(tmp_path / "t.sqlite", tables)
    assert list(
        zip(names(trace, "nvtx"), trace.nvtx["kind"], trace.nvtx["end_ns"], trace.nvtx["open"], strict=True)
    ) == [
        ("registered", 59, 10, False),
        ("start/end", 60, 20, False),
        ("never ended", 60, 1_000, True),
        ("closed by nsys", 59, 1_000, True),
        ("", 59, 3, False),
        ("empty", 59, 7, False),
    ]
    assert trace.nvtx["domain"].to_list() == trace.nvtx["payload"].to_list() == [None] * 6
    assert set(trace.nvtx.select("pid", "tid").rows()) == {(PID, TID)}
    assert (trace.counts.nvtx_ranges, trace.counts.nvtx_points, trace.counts.nvtx_open_ranges) == (6, 1, 2)
    assert "not used" not in trace.strings["text"]


def test_an_open_range_ends_with_the_last_event_where_the_length_is_not_known(tmp_path: Path) -> None:
    tables = {NVTX: [nvtx(5, None, "a"), nvtx(1, 70, "b"), nvtx(900, None, "c")], KERNEL: [kernel(10, 99)]}
    trace = load(tmp_path / "t.sqlite", tables)
    assert trace.nvtx.select("start_ns", "end_ns", "open").rows() == [
        (5, 99, True),
        (1, 70, False),
        (900, 900, True),
    ]


def test_an_open_range_may_begin_after_the_capture_ended(tmp_path: Path) -> None:
    trace = load(
        tmp_path / "t.sqlite", {NVTX: [nvtx(1_200, None, "late"), nvtx(3, 0, "zero")], **duration(1_000)}
    )
    assert trace.nvtx.select("start_ns", "end_ns", "open").rows() == [(1_200, 1_200, True), (3, 1_000, True)]


def test_bad_ranges_are_dropped_and_counted_as_ranges(tmp_path: Path) -> None:
    rows = [nvtx(9, 8, "a"), nvtx(0, 0, "b"), nvtx(-9, -5, "c"), nvtx(0, 5, "d"), nvtx(1, 2**62, "long")]
    trace = load(tmp_path / "t.sqlite", {NVTX: rows, **duration(1_000)})
    assert names(trace, "nvtx") == ["c", "d"]
    assert trace.counts.nvtx_ranges == 5
    assert trace.dropped == {"not_finished": 0, "zero_times": 1, "inverted": 1, "too_long": 1}


def test_domains_are_numbered_per_process(tmp_path: Path) -> None:
    other = GTID + (1 << 24)
    rows = [
        nvtx(5, 6, "x", domainId=1),
        nvtx(5, 6, "x", domainId=1, globalTid=other),
        nvtx(5, 6, "x", domainId=2),
        nvtx(5, 6, "x", domainId=None),
        nvtx(5, 6, "x", domainId=9),
        nvtx(-9, None, "cuBLAS", kind=75, domainId=1),
        nvtx(-9, None, None, kind=75, domainId=1, globalTid=other, textId=1),
        nvtx(-9, None, "CCCL", kind=75, domainId=2),
        nvtx(-9, None, "without ranges", kind=75, domainId=4),
    ]
    trace = load(tmp_path / "t.sqlite", {NVTX: rows, "StringIds": strings("TensorRT")})
    assert names(trace, "nvtx", "domain") == ["cuBLAS", "TensorRT", "CCCL", None, "[unknown]"]
    assert "without ranges" not in trace.strings["text"]


def test_payloads_are_kept_for_nccl_alone(tmp_path: Path) -> None:
    rows = [
        nvtx(-9, None, "NCCL", kind=75, domainId=1),
        nvtx(-9, None, "TensorRT", kind=75, domainId=2),
        nvtx(1, 2, "ncclAllReduce", domainId=1, jsonText=PAYLOAD),
        nvtx(3, 4, "ncclGroupEnd", domainId=1),
        nvtx(5, 6, "ncclAllReduce", domainId=1, jsonTextId=1),
        nvtx(7, 8, "layer", domainId=2, jsonText='{"private": 1}'),
        nvtx(7, 8, "layer", domainId=2, jsonTextId=2),
        nvtx(7, 8, "mine", jsonText='{"private": 2}'),
        nvtx(9, 10, "ncclBig", domainId=1, jsonText="x" * 100_000),
    ]
    trace = load(tmp_path / "t.sqlite", {NVTX: rows, "StringIds": strings("{}", "private 3")})
    assert names(trace, "nvtx", "payload") == [PAYLOAD, None, "{}", None, None, None, None]
    assert not trace.strings["text"].str.contains("private").any()


def test_texts_that_are_no_utf8(tmp_path: Path) -> None:
    rows = [nvtx(1, 2, b"caf\xe9"), nvtx(3, 4, "café"), nvtx(5, 6, None, textId=1), nvtx(7, 8, b"caf\xe9")]
    tables = {NVTX: rows, KERNEL: [kernel(1, 2, 2)], "StringIds": strings(b"\xff\xfe", b"k\xc3")}
    sql = [
        "UPDATE NVTX_EVENTS SET text = CAST(text AS TEXT)",
        "UPDATE StringIds SET value = CAST(value AS TEXT)",
    ]
    trace = load(tmp_path / "t.sqlite", tables, sql=sql)
    assert names(trace, "nvtx") == ["caf\ufffd", "café", "\ufffd\ufffd", "caf\ufffd"]
    assert names(trace, "kernels") == ["k\ufffd"]
    assert trace.nvtx["name"].n_unique() == 3


def test_codes_of_inline_texts_lie_above_those_of_the_export(tmp_path: Path) -> None:
    texts = strings("kernel", "api", "registered", "used by none")
    tables = {
        NVTX: [
            nvtx(1, 2, "b"),
            nvtx(3, 4, "a"),
            nvtx(5, 6, None, textId=3),
            nvtx(7, 8, "b"),
            nvtx(9, 10, "api"),
        ],
        KERNEL: [kernel(1, 2, 1)],
        RUNTIME: [call(1, 2, 2)],
        "StringIds": texts,
    }
    trace = load(tmp_path / "t.sqlite", tables)
    assert trace.strings.rows() == [
        (1, "kernel"),
        (2, "api"),
        (3, "registered"),
        (4, "b"),
        (5, "a"),
        (6, "api"),
    ]
    assert trace.nvtx["name"].to_list() == [4, 5, 3, 4, 6]


def test_a_code_whose_text_is_not_there(tmp_path: Path) -> None:
    trace = load(
        tmp_path / "t.sqlite", {KERNEL: [kernel(1, 2, 77), kernel(3, 4, 1)], "StringIds": strings("k")}
    )
    assert names(trace, "kernels") == ["[unknown]", "k"]
    assert load(tmp_path / "u.sqlite", {KERNEL: [kernel(1, 2, 77)]}).strings.rows() == [(77, "[unknown]")]


def test_rows_without_a_name(tmp_path: Path) -> None:
    tables = {
        KERNEL: [kernel(1, 2, None), kernel(3, 4, 1)],
        RUNTIME: [call(1, 2, None)],
        NVTX: [nvtx(1, 2, None, textId=9), nvtx(1, 2, "inline")],
        "StringIds": strings("k"),
    }
    trace = load(tmp_path / "t.sqlite", tables)
    assert names(trace, "kernels") == ["[unknown]", "k"]
    assert names(trace, "api") == ["[unknown]"]
    assert names(trace, "nvtx") == ["[unknown]", "inline"]
    assert trace.strings["code"].n_unique() == trace.strings.height == 4


@pytest.mark.parametrize("batch", [7, 1_000])
def test_batches_and_threads_make_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    rows = [
        nvtx(i, i + 3, f"range {i % 97}" if i % 3 else None, textId=None if i % 3 else i % 5 + 1)
        for i in range(600)
    ]
    rows += [
        nvtx(0, None, "NCCL", kind=75, domainId=1),
        nvtx(4, 5, "ncclAllReduce", domainId=1, jsonText=PAYLOAD),
    ]
    path = tmp_path / "t.sqlite"
    expected = load(path, {NVTX: rows, "StringIds": strings(*"abcde")})
    monkeypatch.setattr(read, "BATCH_ROWS", batch)
    monkeypatch.setattr(read, "RANGE_ROWS", 50)
    for _ in range(3):
        trace = load(path)
        assert trace.nvtx.equals(expected.nvtx)
        assert trace.strings.equals(expected.strings)
