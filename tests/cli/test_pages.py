from nsys_triage.cli import pages
from nsys_triage.rules.base import Rule, Threshold, page_of
from nsys_triage.rules.context import NEEDS

PAGE = page_of("First.\n\nWhat it means\n\nA\n\nWhat to do next\n\nB\n\nWhen it is wrong\n\nC")


def rule(*needs: str) -> Rule:
    return Rule(id="a", title="A", check=lambda context: None, page=PAGE, needs=needs)  # type: ignore[arg-type, return-value]


def test_paragraphs_and_lists() -> None:
    prose = "one two\nthree\n\n1. first item\n   goes on\n2. second\n10. tenth item goes on"
    assert pages.wrapped(prose, 14, 2) == [
        "  one two",
        "  three",
        "",
        "  1. first",
        "     item goes",
        "     on",
        "  2. second",
        "  10. tenth",
        "      item",
        "      goes on",
    ]
    assert pages.wrapped("", 10) == []
    assert pages.wrapped("a--very-long-option-of-nsys=value", 10) == ["a--very-long-option-of-nsys=value"]


def test_thresholds() -> None:
    assert pages.threshold_text("share", Threshold(0.05, "share", "")) == "share 5.0 %"
    assert pages.threshold_line("share", Threshold(0.05, "share", "")) == "share = 0.05 (share, 5.0 %)"
    assert pages.threshold_line("count", Threshold(1_000, "count", "")) == "count = 1000 (count)"
    assert pages.threshold_line("length", Threshold(10_000, "ns", "")) == "length = 10000 (ns, 10 us)"
    assert pages.threshold_line("rate", Threshold(2.5e9, "bytes_per_s", "")) == (
        "rate = 2500000000 (bytes per second, 2.5 GB/s)"
    )


def test_needs() -> None:
    assert pages.need_text("communication") == "communication kernels"
    assert pages.need_line("osrt") == "OS runtime calls: nsys profile --trace=osrt"
    assert pages.need_line("several_ranks") == "other ranks of the job: give their traces together"
    assert pages.need_line("gpu_limits") == "the properties of the GPU"
    assert all(pages.need_text(need) and ":" not in pages.need_text(need) for need in NEEDS)


def test_command_to_record() -> None:
    base = "nsys profile --trace=cuda,nvtx,osrt --output=job"
    assert pages.record_command(rule()) == f"{base} <your command>"
    assert pages.record_command(rule("api", "steps", "gpu_limits")) == f"{base} <your command>"
    assert pages.record_command(rule("api", "gpu_metrics", "scheduling")) == (
        f"{base} --gpu-metrics-devices=all --cpuctxsw=process-tree <your command>"
    )
