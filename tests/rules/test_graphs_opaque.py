"""CUDA graphs that hide what ran."""

from pathlib import Path

import pytest

from nsys_triage.rules.base import Found, NotRun, Passed
from tests.builders.trace import TraceBuilder
from tests.rules.support import outcome

RULE = "graphs-opaque"
GRAPH_LAUNCH = "cudaGraphLaunch_v10000"


def trace(gap_us: float = 100.0) -> TraceBuilder:
    """1 ms with one gap, and a graph launch of which the export holds no GPU time."""
    builder = TraceBuilder("2023.4.4").kernel(0, 400).api(GRAPH_LAUNCH, 390, 395)
    begin = 400 + gap_us
    return builder.kernel(begin, 1000, call=(begin - 5, begin - 2))


def test_fires_where_graphs_left_no_trace(tmp_path: Path) -> None:
    found = outcome(RULE, trace(), tmp_path)
    assert isinstance(found, Found)
    assert found.title == "CUDA graphs hide what the GPU did in 10 % of the time"
    assert (found.stake.low_ns, found.stake.high_ns) == (0, 100_000)
    values = {e.label: e.value for e in found.evidence}
    assert values["graph launches"] == 1
    assert values["graph executions with recorded GPU time"] == 0
    assert "--cuda-graph-trace=node" in found.actions[0]


@pytest.mark.parametrize(("gap_us", "fires"), [(49.999, False), (50, True)])
def test_threshold_is_five_percent_of_the_span(tmp_path: Path, gap_us: float, fires: bool) -> None:
    assert isinstance(outcome(RULE, trace(gap_us), tmp_path), Found if fires else Passed)


def test_not_run_where_graphs_were_recorded_as_a_whole(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400).graph(400, 1000)
    assert outcome(RULE, builder, tmp_path) == NotRun(
        "what runs inside 1 CUDA graph execution recorded as a whole (60 % of the time),"
        " and idle time between their nodes",
        "--cuda-graph-trace=node",
    )


def test_look_alike_recorded_node_by_node(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 400).graph_nodes([(500, 700), (700, 1000)], call=(490, 495))
    assert outcome(RULE, builder, tmp_path) == Passed(
        "1 graph launch; graphs without recorded GPU time leave 0 % of the time unexplained."
    )


def test_look_alike_idle_without_graphs(tmp_path: Path) -> None:
    builder = (
        TraceBuilder().kernel(0, 400, launch=None).kernel(600, 1000, launch=None).api("cudaFree_v3020", 0, 1)
    )
    assert isinstance(outcome(RULE, builder, tmp_path), Passed)


def test_not_run_without_calls(tmp_path: Path) -> None:
    builder = trace().without("CUPTI_ACTIVITY_KIND_RUNTIME")
    assert outcome(RULE, builder, tmp_path) == NotRun("CUDA API calls", "--trace=cuda")
