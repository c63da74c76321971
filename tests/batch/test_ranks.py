from nsys_triage.batch.ranks import Member, grouped, template

S = 10**9


def member(
    index: int, rank: int, world: int = 2, folder: str = "/f", name: str | None = None, start: int | None = 0
) -> Member:
    return Member(index, folder, name or f"job.{rank}.sqlite", rank, world, start)


def jobs(*members: Member) -> list[list[int]]:
    return [[m.index for m in job] for job in grouped(members)]


def test_ranks_of_one_folder_in_their_order() -> None:
    assert jobs(member(0, 1), member(1, 0)) == [[1, 0]]


def test_names_say_nothing_where_the_environment_does() -> None:
    assert jobs(member(0, 0, name="x.sqlite"), member(1, 1, name="y.sqlite")) == [[0, 1]]


def test_other_folders_and_world_sizes_are_other_jobs() -> None:
    assert jobs(member(0, 0), member(1, 1, folder="/g"), member(2, 1, world=4)) == []


def test_a_rank_alone_and_ranks_beyond_the_world_are_no_job() -> None:
    assert jobs(member(0, 0), member(1, 5)) == []
    assert jobs(member(0, 0, world=1), member(1, 0, world=1)) == []


def test_two_jobs_in_one_folder_by_their_start() -> None:
    later = 3_600 * S
    found = jobs(
        member(0, 0), member(1, 1, start=2 * S), member(2, 0, start=later), member(3, 1, start=later + S)
    )
    assert found == [[0, 1], [2, 3]]


def test_two_jobs_that_began_together_by_their_names() -> None:
    found = jobs(*(member(i, i % 2, name=f"{'ab'[i // 2]}_rank{i % 2}.sqlite") for i in range(4)))
    assert found == [[0, 1], [2, 3]]


def test_ranks_that_nothing_tells_apart_are_left_alone() -> None:
    assert jobs(member(0, 0, name="x"), member(1, 0, name="x 2"), member(2, 1, name="y")) == []


def test_template() -> None:
    assert template("run7_rank10.2.sqlite", 10) == "run7_rank*.2.sqlite"
    assert template("node1_rank1.sqlite", 1) == "node1_rank*.sqlite"
    assert template("job.sqlite", 3) == "job.sqlite"
