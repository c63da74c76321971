"""What about the capture changes how its figures read."""

from pathlib import Path

import pytest

from nsys_triage.metrics.capture_warnings import capture_warnings
from nsys_triage.metrics.work import build_workload
from nsys_triage.result.model import Warning as CaptureWarning
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import Raw, TraceBuilder


def warnings(
    builder: TraceBuilder, folder: Path, *, work: bool = True, filtered: bool = False
) -> dict[str, CaptureWarning]:
    path = builder.write(folder / "t.sqlite")
    trace = load_trace(path, file=path.name, kind="sqlite", capture_version=None, filtered=filtered)
    found = capture_warnings(trace, build_workload(trace) if work else None)
    ids = [warning.id for warning in found]
    assert ids == sorted(set(ids))
    return {warning.id: warning for warning in found}


def trace(version: str = "2025.5.2") -> TraceBuilder:
    return TraceBuilder(version).kernel(0, 400).kernel(500, 1000)


def test_nothing_to_say(tmp_path: Path) -> None:
    assert warnings(trace(), tmp_path) == {}


@pytest.mark.parametrize(
    ("names", "says"), [(1, "1 environment variable whose"), (2, "2 environment variables whose")]
)
def test_secrets_are_counted_and_neither_named_nor_shown(tmp_path: Path, names: int, says: str) -> None:
    secrets = {"HF_TOKEN": "hush", "DB_PASSWORD": "hush"}
    builder = trace().environment(dict(list(secrets.items())[:names]), PATH="/bin")
    warning = warnings(builder, tmp_path)["private-data-in-file"]
    assert says in warning.text
    assert "hush" not in warning.text + warning.advice
    assert "TOKEN" not in warning.text + warning.advice


def test_a_filtered_export(tmp_path: Path) -> None:
    assert "--tables" in warnings(trace(), tmp_path, filtered=True)["filtered-export"].text
    said = trace().export_setting("EXPORT_PARAM_TABLES_TO_EXPORT", "CUPTI_ACTIVITY_KIND_KERNEL")
    assert "filtered-export" in warnings(said, tmp_path)


def test_lost_events_in_nsys_own_words(tmp_path: Path) -> None:
    text = "Not all CUDA events might have been collected."
    assert warnings(trace().diagnostic(text), tmp_path)["events-lost"].text.endswith(text)
    harmless = trace().diagnostic("No NVTX events collected. Does the process use NVTX?")
    assert warnings(harmless, tmp_path) == {}


@pytest.mark.parametrize(("rows", "says"), [(1, "1 row has times"), (2, "2 rows have times")])
def test_bad_rows(tmp_path: Path, rows: int, says: str) -> None:
    builder = trace()
    for _ in range(rows):
        builder.kernel(Raw(0), Raw(0), launch=None)
    assert warnings(builder, tmp_path)["bad-rows"].text.startswith(says)


@pytest.mark.parametrize(
    ("graphs", "says"), [(1, "1 CUDA graph execution was"), (2, "2 CUDA graph executions were")]
)
def test_graphs_recorded_as_a_whole(tmp_path: Path, graphs: int, says: str) -> None:
    builder = trace()
    for index in range(graphs):
        builder.graph(1000 + index, 1001 + index)
    found = warnings(builder, tmp_path)
    assert found["graphs-recorded-whole"].text.startswith(says)
    assert "graphs-not-in-export" not in found


def test_graphs_of_which_the_export_holds_nothing(tmp_path: Path) -> None:
    builder = trace("2023.4.4").api("cudaGraphLaunch_v10000", 10, 20)
    assert list(warnings(builder, tmp_path)) == ["graphs-not-in-export"]
    nodes = trace().graph_nodes([(1000, 1100)], call=(990, 995))
    assert warnings(nodes, tmp_path) == {}


@pytest.mark.parametrize(("early", "warned"), [(1, False), (2, True)])
def test_a_clock_fault_is_more_than_five_percent_of_the_matched_work(
    tmp_path: Path, early: int, warned: bool
) -> None:
    builder = TraceBuilder()
    for index in range(20):
        begin = 10.0 * index
        builder.kernel(begin, begin + 9, call=(begin + 1, begin + 2) if index < early else None)
    found = warnings(builder, tmp_path)
    assert ("clock-fault" in found) is warned
    if warned:
        assert found["clock-fault"].text.startswith("10 % of the device work")


@pytest.mark.parametrize(("unmatched", "warned"), [(1, False), (2, True)])
def test_launches_are_missing_above_five_percent(tmp_path: Path, unmatched: int, warned: bool) -> None:
    builder = TraceBuilder()
    for index in range(20):
        begin = 10.0 * index
        if index < unmatched:
            builder.kernel(begin, begin + 9, launch=None)
        else:
            builder.kernel(begin, begin + 9)
    found = warnings(builder, tmp_path)
    assert ("launches-unmatched" in found) is warned
    if warned:
        assert found["launches-unmatched"].text.startswith("10 % of the device work")


def test_migrations_have_no_launch_to_miss(tmp_path: Path) -> None:
    builder = trace()
    for index in range(50):
        builder.migration(1000 + index, 1001 + index)
    assert warnings(builder, tmp_path) == {}


def test_assumed_gpus_are_said_where_there_are_several(tmp_path: Path) -> None:
    builder = TraceBuilder("2023.4.4", gpus=()).kernel(0, 100, pid=10).kernel(0, 100, pid=11)
    assert list(warnings(builder, tmp_path)) == ["gpus-assumed"]
    assert warnings(TraceBuilder("2023.4.4", gpus=()).kernel(0, 100), tmp_path) == {}


def test_without_device_work_only_the_file_is_judged(tmp_path: Path) -> None:
    builder = TraceBuilder("2023.4.4").api("cudaGraphLaunch_v10000", 10, 20).environment({"HF_TOKEN": "hush"})
    assert list(warnings(builder, tmp_path, work=False)) == ["private-data-in-file"]


@pytest.mark.parametrize(("lost", "warned"), [(19, False), (20, True)])
def test_launches_that_succeeded_have_kernels(tmp_path: Path, lost: int, warned: bool) -> None:
    builder = TraceBuilder("2025.5.2").kernels(0, 100, every=100, length=50)
    for n in range(lost):
        builder.api("cudaLaunchKernel_v7000", 20_000 + n, 20_000.5 + n)
        builder.api("cudaLaunchKernel_v7000", 30_000 + n, 30_000.5 + n, result=700)
    assert ("kernels-missing" in warnings(builder, tmp_path)) is warned
    # captured into a graph, they run with it
    builder.graph(40_000, 41_000)
    assert "kernels-missing" not in warnings(builder, tmp_path)
