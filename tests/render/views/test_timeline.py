from msgspec import UNSET
from msgspec.structs import replace

from nsys_triage.render.charts.timeline import Span
from nsys_triage.render.views.timeline import activity, overview, timeline_chart, tip
from nsys_triage.result.model import Excluded, Interval, Window
from tests.render import blocks, results
from tests.render.blocks import MS, S, finding


def test_a_tooltip_says_what_when_and_how_much() -> None:
    assert tip("gpu", Span(S, 2 * S, "communication", 1.0, "")) == "communication, 1.000 to 2.000 s"
    assert tip("host", Span(S, 2 * S, "os", 0.25, "poll")) == (
        "operating-system call, poll, 1.000 to 2.000 s, 25 % of it"
    )


def test_what_rows_show_is_in_words() -> None:
    assert activity("idle", "input_pipeline") == "input pipeline"
    assert activity("host", "sync") == "synchronising call"
    assert activity("steps", "startup") == "start-up"
    assert activity("host", "some_thing") == "some thing"


def test_findings_outside_the_window_are_not_pinned() -> None:
    inside, outside = (
        finding(where=Interval(start_ns=0, end_ns=S)),
        finding(where=Interval(start_ns=60 * S, end_ns=61 * S)),
    )
    picture = timeline_chart(results.baseline(), [outside, inside, finding(where=None)])
    assert picture is not None
    assert [pin.number for pin in picture.pins] == [2]


def test_work_on_a_gpu_has_a_lane_per_kind_in_the_fixed_order() -> None:
    picture = timeline_chart(results.rich(), [])
    assert picture is not None
    assert [lane.what for lane in picture.rows[0].lanes] == ["compute", "communication", "copy"]
    assert len({lane.top for lane in picture.rows[0].lanes}) == 3
    assert len({lane.top for lane in picture.rows[1].lanes}) == 1


def test_no_timeline_or_no_window_no_picture() -> None:
    assert timeline_chart(results.baseline(timeline=UNSET), []) is None
    assert timeline_chart(results.baseline(capture=blocks.capture(window=None)), []) is None


def test_the_window_within_the_capture() -> None:
    cut = [Excluded(start_ns=1 * S, end_ns=5 * S, reason="module loading.")]
    window = Window(start_ns=5 * S, end_ns=10 * S, mode="auto", excluded=cut)
    view = overview(results.baseline(capture=blocks.capture(window=window, duration_ns=20 * S)))
    assert view is not None
    assert (view.window.x, view.window.width) == (25, 25)
    assert [(part.x, part.width) for part in view.excluded] == [(5, 20)]
    assert view.reasons == ["1.000 to 5.000 s: module loading"]
    assert (view.start, view.end) == ("0.000 s", "20.000 s")


def test_a_window_that_is_the_capture_has_no_overview() -> None:
    assert overview(results.baseline()) is None
    auto = Window(start_ns=0, end_ns=5 * MS, mode="auto", excluded=[])
    assert overview(results.baseline(capture=blocks.capture(window=auto))) is None
    user = replace(auto, mode="user")
    assert overview(results.baseline(capture=blocks.capture(window=user))) is not None
    assert overview(results.baseline(capture=blocks.capture(window=user, duration_ns=None))) is None
