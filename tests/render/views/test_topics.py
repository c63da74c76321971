from msgspec import UNSET
from msgspec.structs import replace

from nsys_triage.render.views import topics
from nsys_triage.result.model import Gap
from tests.render import blocks, results
from tests.render.blocks import MS, causes, gpu


def gap(**changes: object) -> Gap:
    plain = Gap(start_ns=0, end_ns=100 * MS, causes=causes(input_pipeline=90 * MS, launch=10 * MS))
    return replace(plain, **changes)


def test_gaps_of_all_gpus_are_in_one_histogram() -> None:
    one = topics.gap_histogram(results.baseline())
    two = topics.gap_histogram(results.baseline(gpus=[gpu(0), gpu(1)]))
    assert one is not None
    assert two is not None
    assert (two.count, two.weight) == (2 * one.count, 2 * one.weight)
    assert [row.label for row in one.rows][:2] == ["1 to 3 us", "3 to 10 us"]
    assert len(one.bins) == len(blocks.EDGES)
    assert one.bins[-1].label == "100 s and more"


def test_the_ten_longest_gaps_of_all_gpus() -> None:
    short = replace(gpu(1), gaps=replace(gpu(1).gaps, longest=[gap(end_ns=5 * MS), gap(end_ns=395 * MS)]))
    found = topics.longest_gaps(results.baseline(gpus=[gpu(0), short]))
    assert len(found) == 10
    lengths = [entry.gap.end_ns - entry.gap.start_ns for entry in found]
    assert lengths == sorted(lengths, reverse=True)
    assert [entry.gpu for entry in found[:3]] == ["GPU 0", "GPU 1", "GPU 0"]


def test_where_a_gap_lies_and_what_the_host_was_in() -> None:
    assert topics.gap_place(gap()) is None
    assert topics.gap_place(gap(step=None)) == "between steps"
    assert topics.gap_place(gap(step=3, place_share=0.62)) == "step 3, 62 % in"
    assert topics.gap_place(gap(step=3, place_share=None)) == "step 3"
    assert topics.host_was_in(gap()) == []
    full = gap(api="cudaMemcpyAsync", os_call="poll", nvtx="step", cpu="off the CPU 3 times")
    assert topics.host_was_in(full) == ["cudaMemcpyAsync, poll", "range step", "CPU: off the CPU 3 times"]


def test_causes_of_a_gap_are_told_largest_first_without_crumbs() -> None:
    assert topics.causes_text(gap()) == "input pipeline 90 %, launch 10 %"
    crumbs = gap(causes=causes(launch=1, queued=100 * MS - 1))
    assert topics.causes_text(crumbs) == "queued 99.9 %"


def test_what_ended_a_gap() -> None:
    assert topics.ended_by(gap(ended_by="host_to_device copy")) == "host to device copy"
    assert topics.ended_by(gap(ended_by="sgemm")) == "sgemm"
    assert topics.ended_by(gap(ended_by=None)) is None


def test_topics_without_anything_measured_are_left_out() -> None:
    assert [t.id for t in topics.topics(results.minimal())] == ["gaps"]
    assert [t.id for t in topics.topics(results.rich())] == [
        "gaps", "kernels", "launches", "sync", "copies", "communication", "ranges", "metrics",
    ]  # fmt: skip
    assert topics.topics(results.cannot_judge()) == []


def test_what_is_empty_is_not_opened() -> None:
    verdict = replace(results.baseline().verdict, limiter="communication")
    shown = {t.id: t.open for t in topics.topics(results.baseline(verdict=verdict))}
    assert not shown["communication"]
    busy = results.baseline(verdict=verdict, collectives=blocks.collectives())
    assert {t.id: t.open for t in topics.topics(busy)}["communication"]


def test_what_was_measured_and_is_nothing_says_so() -> None:
    empty = results.baseline(kernels=replace(blocks.kernels(), count=0), ranges=[])
    summaries = {t.id: t.summary for t in topics.topics(empty)}
    assert summaries["kernels"] == "none"
    assert summaries["ranges"] == "none recorded"
    assert summaries["communication"] == "no communication kernels"


def test_the_cost_of_waits_is_told_apart_from_idle_time_beside_them() -> None:
    split = {t.id: t.summary for t in topics.topics(results.baseline())}
    assert split["sync"] == "420 calls, 3.2 s in them, cost 30 ms of idle time"
    unsplit = results.baseline(sync=replace(blocks.sync(), cost_ns=UNSET))
    assert {t.id: t.summary for t in topics.topics(unsplit)}["sync"].endswith("GPUs idle meanwhile 60 ms")
