from dataclasses import replace
from typing import Any

from nsys_triage.batch.inputs import Found
from nsys_triage.batch.messages import Failed, Looked, Options
from nsys_triage.batch.plan import Failure, Plan, blamed, failures_of, make_plan, merged, named, without
from nsys_triage.batch.run import plan_lines


def found(label: str, version: str = "5", size: int = 10) -> Found:
    place = f"/data/{label}"
    return Found(place, label, place.rpartition("/")[0], size, version)


def seen(content: str, kind: str = "sqlite", **more: Any) -> Looked:
    return Looked(kind, content, **more)  # type: ignore[arg-type]


def plan(*files: tuple[Found, Looked | Failed], done: dict[str, str] | None = None, **more: Any) -> Plan:
    return make_plan(
        [f for f, _ in files], [s for _, s in files], [], more.pop("options", Options()), done or {}, **more
    )


def test_copies_are_analysed_once_and_named() -> None:
    made = plan(
        (found("a.sqlite"), seen("1")), (found("b/a.sqlite"), seen("1")), (found("c.sqlite"), seen("2"))
    )
    assert [(job.label, job.also) for job in made.jobs] == [("a.sqlite", ("b/a.sqlite",)), ("c.sqlite", ())]


def test_an_export_beside_its_report_is_read_in_its_place() -> None:
    made = plan((found("job.nsys-rep"), seen("1", "report")), (found("job.sqlite", "6"), seen("2")))
    assert [(job.inputs, job.same_run) for job in made.jobs] == [(("job.sqlite",), ("job.nsys-rep",))]


def test_an_export_that_is_not_of_its_report() -> None:
    report = found("job.nsys-rep"), seen("1", "report", capture_version="2023.4.4.54")
    for other in (
        (found("job.sqlite", "4"), seen("2")),  # older
        (found("job.sqlite", "6"), seen("2", filtered=True)),
        (found("job.sqlite", "6"), seen("2", capture_version="2024.1.1.1")),
        (found("x/job.sqlite", "6"), seen("2")),
    ):
        assert len(plan(report, other).jobs) == 2
    bad = plan(report, (found("job.sqlite", "6"), Failed("input", "partial")))
    assert ([job.label for job in bad.jobs], len(bad.failures)) == (["job.nsys-rep"], 1)


def ranks(folder: str, *contents: str) -> list[tuple[Found, Looked]]:
    return [
        (
            found(f"{folder}/rank{rank}.sqlite"),
            seen(content, ranks_read=True, rank=rank, world_size=len(contents)),
        )
        for rank, content in enumerate(contents)
    ]


def test_ranks_are_one_job_unless_they_are_not_wanted_so() -> None:
    files = ranks("x", "1", "2")
    (job,) = plan(*files).jobs
    assert (job.label, job.contents) == ("x/rank*.sqlite", ("1", "2"))
    assert job.name.startswith("x_rank-2-ranks-")
    assert len(plan(*files, group=False).jobs) == 2


def test_the_label_of_ranks_is_safe_to_print() -> None:
    files = [
        (replace(file, place=f"/data/x/r\udce9\x1b{number}.sqlite"), looked)
        for number, (file, looked) in enumerate(ranks("x", "1", "2"))
    ]
    (job,) = plan(*files).jobs
    assert job.label == "x/r\ufffd\ufffd*.sqlite"


def test_a_copy_of_a_rank_and_a_copy_of_a_job() -> None:
    lone = found("a/rank1.sqlite"), seen("2", ranks_read=True, rank=1, world_size=2)
    (job,) = plan(lone, *ranks("x", "1", "2"), *ranks("y", "1", "2")).jobs
    assert job.label == "x/rank*.sqlite"
    assert job.also == ("a/rank1.sqlite", "y/rank0.sqlite", "y/rank1.sqlite")


def test_a_job_that_shares_one_rank_with_another_keeps_all_its_ranks() -> None:
    made = plan(*ranks("x", "1", "2"), *ranks("y", "1", "3"))
    assert [job.contents for job in made.jobs] == [("1", "2"), ("1", "3")]


def test_done_is_by_content_and_options() -> None:
    (job,) = plan((found("a.sqlite"), seen("1"))).jobs
    again = plan((found("renamed.sqlite"), seen("1")), done={job.key: job.name})
    assert (again.to_do, again.jobs[0].name) == ([], job.name)
    assert plan((found("a.sqlite"), seen("2")), done={job.key: job.name}).to_do
    other = Options(thresholds={"host-sync.share": 0.2})
    assert plan((found("a.sqlite"), seen("1")), done={job.key: job.name}, options=other).to_do


def test_the_largest_first() -> None:
    made = plan((found("a.sqlite", size=1), seen("1")), (found("b.sqlite", size=9), seen("2")))
    assert [job.label for job in made.to_do] == ["b.sqlite", "a.sqlite"]


def test_without_members() -> None:
    (job,) = plan(*ranks("x", "1", "2", "3")).jobs
    rest = without(job, {1: "bad"}, Options(), {})
    assert rest is not None and rest.contents == ("1", "3") and rest.key != job.key
    assert without(job, dict.fromkeys(range(3), "bad"), Options(), {}) is None


def test_named() -> None:
    assert named(Failure("x/a.sqlite", "input", "a.sqlite is empty.")) == "x/a.sqlite is empty."
    assert named(Failure("x/a.sqlite", "timeout", "it took long.")) == "x/a.sqlite: it took long."


def test_copies_of_what_is_bad_are_bad_too() -> None:
    (job,) = plan(*ranks("x", "1", "2"), (found("copy.sqlite"), seen("2"))).jobs
    rows = blamed(job, "input", {1: "rank1.sqlite is damaged."})
    assert [(row.input, row.reason) for row in rows] == [
        ("x/rank1.sqlite", "rank1.sqlite is damaged."),
        ("copy.sqlite", "its content is that of x/rank1.sqlite: rank1.sqlite is damaged."),
    ]
    rest = without(job, {1: "bad"}, Options(), {})
    assert rest is not None and rest.also == ()
    assert [row.input for row in failures_of(job, "crashed", "it crashed.")] == [*job.inputs, "copy.sqlite"]


def test_two_jobs_that_come_down_to_one() -> None:
    one, two = plan(*ranks("x", "1", "2"), *ranks("y", "1", "3")).jobs
    rests = [rest for job in (two, one) if (rest := without(job, {1: "bad"}, Options(), {}))]
    (job,) = merged(rests)
    assert (job.label, job.inputs, job.also) == ("x/rank*.sqlite", ("x/rank0.sqlite",), ("y/rank0.sqlite",))


def test_the_plan_in_words() -> None:
    made = plan((found("a.sqlite"), seen("1")), (found("b.sqlite"), seen("1")))
    first, second, *rest = plan_lines(made)
    assert first == "2 files: 1 job (0 of several ranks), 0 of them done already"
    assert second == "1 copy of the same content, 0 reports beside their exports, 0 unfinished, 0 bad"
    assert rest == ["to do      a.sqlite (also as b.sqlite)"]
