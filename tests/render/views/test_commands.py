from nsys_triage.render.views.commands import compare_after, record_missing
from nsys_triage.result.model import Check
from tests.render import blocks, results


def missing(*notes: str, status: str = "not_run") -> str | None:
    checks = [Check(rule=f"r{n}", status=status, note=note) for n, note in enumerate(notes)]  # type: ignore[arg-type]
    return record_missing(results.baseline(checks=checks))


def test_options_of_all_notes_make_one_command() -> None:
    command = missing(
        "not recorded; add --gpu-metrics-devices=all",
        "nsys profile --trace=cuda,nvtx,osrt,ucx --sample=process-tree -o job python train.py",
        "record with -t mpi or --trace cuda,nvtx and --cpuctxsw=process-tree.",
    )
    assert command == (
        "nsys profile --trace=cuda,nvtx,osrt,mpi,ucx --cpuctxsw=process-tree --gpu-metrics-devices=all "
        "--sample=process-tree -o job <your command>"
    )


def test_what_nsys_profile_does_not_know_is_left_alone() -> None:
    assert missing("see --evil=$(rm) and --window=all") is None
    assert missing("--gpu-metrics-devices=all;rm -rf x") == (
        "nsys profile --trace=cuda,nvtx,osrt --gpu-metrics-devices=all -o job <your command>"
    )


def test_only_checks_that_could_not_run_count() -> None:
    assert missing("--sample=none", status="passed") is None
    assert missing("nothing to say") is None


def test_the_file_is_quoted_in_the_line_that_compares() -> None:
    result = results.baseline(capture=blocks.capture(file="my job.sqlite"))
    assert compare_after(result)[1] == "nsys-triage compare 'my job.sqlite' after.nsys-rep"


def test_of_several_ranks_all_are_compared() -> None:
    capture = blocks.capture(files=["a.sqlite", "b.sqlite"])
    profile, compare = compare_after(results.baseline(capture=capture))
    assert "-o after/rank%q{RANK} " in profile
    assert compare.startswith("nsys-triage compare before after ")
