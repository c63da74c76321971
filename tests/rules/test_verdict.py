"""The limiter's arithmetic on ledgers made by hand; every span is 1 000 ns unless said otherwise."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nsys_triage.analyze import analyze, cannot_judge
from nsys_triage.ingest import Source
from nsys_triage.metrics.window import WindowRequest
from nsys_triage.result.model import (
    CAUSES,
    IDLE_CAUSES,
    ClassTime,
    Collectives,
    Finding,
    Gpu,
    Kernels,
    RankRow,
    Ranks,
    Stake,
    Verdict,
)
from nsys_triage.rules.registry import all_rules
from nsys_triage.rules.verdict import Candidate, balance, judge, limiter_of, waits_dominate
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import GEMM, TraceBuilder
from tests.render import blocks

NO_KERNELS = blocks.kernels(count=0, sum_ns=0, classes=[], top=[])


def gpu(input_copies: int = 0, span: int = 1_000, **ns: int) -> Gpu:
    """A GPU whose ledger has those causes, the rest of the span being compute."""
    ledger = blocks.causes(compute=span - sum(ns.values()), **ns)
    assert sum(entry.ns for entry in ledger) == span
    return blocks.gpu(ledger=ledger, exposed_input_copy_ns=input_copies)


def limiter(*gpus: Gpu, imbalance: bool = False) -> str:
    return limiter_of(balance(gpus, imbalance))


def candidates(*gpus: Gpu, imbalance: bool = False) -> dict[str, int]:
    return {candidate.limiter: candidate.ns for candidate in balance(gpus, imbalance).candidates}


def finding(rule: str, *causes: str, actions: Sequence[str] = ("do this",)) -> Finding:
    stake = Stake(low_ns=0, high_ns=1, share=0.1, basis="b")
    return blocks.finding(rule, causes=list(causes), actions=list(actions), stake=stake)


def ranks(straggler: int | None = 3) -> Ranks:
    row = RankRow(rank=3, gpu=None, communication_ns=9, transfer_ns=1, wait_ns=8, busy_ns=9, step_p50_ns=None)
    return Ranks(
        count=2, missing=[], matched_collectives=9, straggler=straggler, straggler_votes_share=1.0, per_rank=[row]
    )  # fmt: skip


def collectives(wait_share: float | None) -> Collectives:
    return replace(blocks.collectives(), wait_share=wait_share)


def verdict(*gpus: Gpu, findings: Sequence[Finding] = (), **more: Any) -> Verdict:
    given: dict[str, Any] = {"kernels": NO_KERNELS, "collectives": None, "ranks": None} | more
    return judge(gpus, findings=findings, **given)


# --- the lost time ----------------------------------------------------------------------------------------------


def test_lost_is_idle_and_what_nothing_hides() -> None:
    one = gpu(copy=30, memset=4, communication=50, graph=200, launch=7, queued=2, unknown=1)
    assert (balance([one], False).span_ns, balance([one], False).lost_ns) == (1_000, 94)
    assert candidates(one) == {
        "communication": 50,
        "copy": 34,
        "host_launch": 7,
        "dependency": 2,
        "unknown": 1,
    }


@pytest.mark.parametrize("cause", ["launch", "communication", "copy", "memset", "unknown"])
def test_a_tenth_of_the_span_is_lost_time_that_counts(cause: str) -> None:
    assert limiter(gpu(**{cause: 99})) == "compute"
    assert limiter(gpu(**{cause: 100})) != "compute"


@pytest.mark.parametrize("span", [10, 30, 70, 1_000_000_010, 3_600_000_000_070])
def test_exactly_a_tenth_of_any_span(span: int) -> None:
    assert limiter(gpu(span=span, launch=span // 10)) == "host_launch"
    assert limiter(gpu(span=span, launch=span // 10 - 1)) == "compute"


def test_graphs_are_work_and_not_lost() -> None:
    assert limiter(gpu(graph=950, launch=50)) == "compute"
    assert limiter(gpu()) == "compute"


# --- the candidates ---------------------------------------------------------------------------------------------


def test_every_idle_cause_is_a_candidate() -> None:
    named = {"launch": "host_launch", "queued": "dependency", "host_communication": "communication"}
    assert {cause: limiter(gpu(**{cause: 200})) for cause in IDLE_CAUSES} == {
        cause: named.get(cause, cause) for cause in IDLE_CAUSES
    }


def test_all_lost_time_is_somebody_s() -> None:
    everything = gpu(input_copies=5, **dict.fromkeys(CAUSES[1:], 11))
    found = balance([everything], False)
    assert found.lost_ns == 15 * 11  # all but compute and graph
    assert sum(candidate.ns for candidate in found.candidates) == found.lost_ns


def test_the_largest_has_to_reach_half_of_what_is_lost() -> None:
    exactly = gpu(host_sync=100, launch=60, unknown=40)
    assert limiter(exactly) == "host_sync"
    less = gpu(host_sync=99, launch=60, unknown=41)
    assert limiter(less) == "mixed"
    # what is lost decides, not the span
    assert limiter(gpu(host_sync=400, launch=401)) == "host_launch"


def test_candidates_of_one_size_are_ordered_by_name() -> None:
    equal = gpu(queued=70, launch=70, allocation=60)
    assert balance([equal], False).candidates == (
        Candidate("dependency", 70),
        Candidate("host_launch", 70),
        Candidate("allocation", 60),
    )
    assert limiter(gpu(queued=100, launch=100)) == "dependency"


def test_waits_for_input_take_the_input_copies_where_they_are_larger() -> None:
    waits = gpu(input_copies=60, input_pipeline=61, copy=100, memset=10)
    assert candidates(waits) == {"input_pipeline": 121, "copy": 50}
    assert limiter(waits) == "input_pipeline"


@pytest.mark.parametrize("waits", [60, 59])
def test_input_copies_take_the_waits_and_all_other_copies_where_they_are_as_large(waits: int) -> None:
    one = gpu(input_copies=60, input_pipeline=waits, copy=100, memset=10)
    assert candidates(one) == {"copy": 110 + waits}
    assert limiter(one) == "copy"


def test_copies_without_input_are_apart_from_waits_for_input() -> None:
    assert candidates(gpu(input_pipeline=1, copy=200)) == {"input_pipeline": 1, "copy": 200}
    assert candidates(gpu(input_pipeline=200, copy=60, input_copies=60)) == {"input_pipeline": 260}


def test_communication_is_exposed_collectives_and_the_host_s() -> None:
    one = gpu(communication=70, host_communication=60, host_sync=120)
    assert candidates(one) == {"communication": 130, "host_sync": 120}
    assert limiter(one) == "communication"
    assert candidates(one, imbalance=True) == {"imbalance": 130, "host_sync": 120}
    assert limiter(one, imbalance=True) == "imbalance"


def test_copies_and_memsets_are_one() -> None:
    one = gpu(copy=60, memset=60, launch=110)
    assert candidates(one) == {"copy": 120, "host_launch": 110}
    assert limiter(one) == "copy"


def test_several_gpus_are_summed() -> None:
    # by itself the first one is limited by launches, the second by nothing, the third by copies
    three = gpu(launch=150), gpu(), gpu(copy=200)
    assert [limiter(one) for one in three] == ["host_launch", "compute", "copy"]
    found = balance(three, False)
    assert (found.span_ns, found.lost_ns) == (3_000, 350)
    assert found.candidates == (Candidate("copy", 200), Candidate("host_launch", 150))
    assert limiter(*three) == "copy"
    # 8.8 % of four spans
    assert limiter(*three, gpu()) == "compute"
    # waits on one and input copies on another are one problem
    two = gpu(input_pipeline=150), gpu(copy=150, input_copies=149)
    assert candidates(*two) == {"input_pipeline": 299, "copy": 1}


def test_spans_weigh_by_their_length() -> None:
    assert limiter(gpu(launch=1_000), gpu(span=9_001)) == "compute"
    assert limiter(gpu(launch=1_000), gpu(span=9_000)) == "host_launch"


@pytest.mark.parametrize(
    ("wait_share", "dominate"), [(None, False), (0.0, False), (0.5, False), (0.500001, True), (1.0, True)]
)
def test_imbalance_is_more_than_half_of_the_communication_waiting(
    wait_share: float | None, dominate: bool
) -> None:
    assert waits_dominate(collectives(wait_share)) is dominate
    one = gpu(communication=200)
    matched = verdict(one, collectives=collectives(wait_share), ranks=ranks())
    # without collectives of the GPUs the ranks themselves say it, as for MPI: 8 of 9 ns are waiting
    assert matched.limiter == ("imbalance" if dominate or wait_share is None else "communication")
    assert verdict(one, collectives=collectives(wait_share)).limiter == "communication"
    assert not waits_dominate(None)


# --- what is said -----------------------------------------------------------------------------------------------


def test_one_sentence_with_its_number() -> None:
    said = verdict(gpu(host_sync=250, launch=20)).sentence
    assert said == "The GPU runs dry while the host waits for it: synchronising calls cost 25 % of the time."
    assert verdict(gpu(input_pipeline=500, copy=240, input_copies=240)).sentence == (
        "The GPU waits for input, or for the copies of it, 74 % of the time."
    )


@pytest.mark.parametrize("cause", [*IDLE_CAUSES, "communication", "copy", "memset"])
def test_every_limiter_has_its_sentence_and_an_action_without_findings(cause: str) -> None:
    one = verdict(gpu(**{cause: 333}))
    assert one.sentence.endswith(" 33 % of the time.")
    assert one.next_action.endswith((".", "<your command>"))
    two = verdict(gpu(**{cause: 333}), collectives=collectives(0.9), ranks=ranks(None))
    assert two.sentence.endswith(" 33 % of the time.")


def test_mixed_names_the_first_two() -> None:
    one = verdict(gpu(host_sync=90, launch=80, unknown=70, copy=10), findings=[finding("a", "launch")])
    assert one.limiter == "mixed"
    assert one.sentence == (
        "25 % of the GPU time is lost and no single cause has half of it:"
        " 9.0 % goes to synchronising calls, 8.0 % to launch overhead."
    )
    # the action is for the first of them
    assert one.next_action == "Remove or postpone the calls that wait for the GPU in every step."
    other = verdict(
        gpu(host_sync=90, launch=80, unknown=70),
        findings=[finding("a", "launch", actions=["a"]), finding("b", "host_sync", actions=["b"])],
    )
    assert other.next_action == "b"


def test_the_late_rank_is_named() -> None:
    one = gpu(communication=300)
    late = verdict(one, collectives=collectives(0.8), ranks=ranks(3))
    assert late.sentence == "The GPUs wait for rank 3: communication, mostly waiting, takes 30 % of the time."
    nobody = verdict(one, collectives=collectives(0.8), ranks=ranks(None))
    assert nobody.sentence == (
        "The ranks wait for each other, with no single one late: communication, mostly waiting, takes 30 % of the time."
    )


def test_an_unknown_cause_asks_for_another_recording() -> None:
    one = verdict(gpu(unknown=500))
    assert one.limiter == "unknown"
    assert one.sentence == "The GPU is idle for a reason that this recording does not show 50 % of the time."
    assert "nsys profile --trace=cuda,nvtx,osrt <your command>" in one.next_action


@pytest.mark.parametrize("idle", [0, 500])
def test_failed_launches_are_said(idle: int) -> None:
    one = verdict(gpu(launch=idle))
    assert "failed" not in one.sentence
    three = verdict(gpu(launch=idle), failed_launches=3)
    assert three == replace(
        one,
        sentence="3 kernel launches failed and left no kernel: fix those first. " + one.sentence,
        next_action="Check the result of every CUDA call (cuda-errors), then record again.",
    )
    errors = finding("cuda-errors", actions=["Look up error 222."])
    single = verdict(gpu(launch=idle), failed_launches=1, findings=[errors])
    assert single.sentence.startswith("1 kernel launch failed and left no kernel: fix that first. ")
    assert single.next_action == "Look up error 222."


# --- a healthy trace --------------------------------------------------------------------------------------------


def kernels(**ns: int) -> Kernels:
    classes = [ClassTime(kernel_class=name, count=1, total_ns=total) for name, total in ns.items()]
    return blocks.kernels(sum_ns=sum(ns.values()), classes=classes)


def test_a_healthy_trace_says_that_nothing_is_worth_chasing() -> None:
    one = verdict(gpu(launch=40), kernels=kernels(elementwise=200, matmul=600))
    assert one == Verdict(
        limiter="compute",
        sentence="Nothing worth chasing here outside the kernels: the GPU is busy 96 % of the time, and the rest is"
        " not worth the effort. Most kernel time is in matmul kernels (75 %).",
        next_action="Leave it as it is; to go faster, make the longest kernels faster (Nsight Compute) or use a"
        " faster GPU.",
    )
    two = verdict(gpu(launch=40), gpu(), kernels=kernels(other=1_500, matmul=500))
    assert "the GPUs are busy 98 % of the time" in two.sentence
    assert two.sentence.endswith("Most kernel time is in kernels of the program's own (75 %).")


def test_a_healthy_trace_of_graphs() -> None:
    graphs = replace(gpu(graph=900), graph_ns=900)
    one = verdict(graphs)
    assert "Nothing worth chasing" in one.sentence
    assert one.sentence.endswith(" Most of it runs in CUDA graphs that were recorded as a whole.")
    assert "--cuda-graph-trace=node" in one.next_action
    # a few kernels beside them are not what the GPU does
    assert verdict(graphs, kernels=kernels(optimizer=90)).sentence == one.sentence
    assert verdict(gpu()).sentence.endswith("the rest is not worth the effort.")


def test_a_healthy_trace_with_a_finding_acts_on_it() -> None:
    silent, first, second = (finding(name, "compute", actions=[name] * n) for n, name in enumerate("abc"))
    assert verdict(gpu(), findings=[first, second]).next_action == "b"
    assert verdict(gpu(), findings=[silent, second]).next_action == "c"
    assert verdict(gpu(), findings=[silent]) == verdict(gpu())
    # what is left idle is not worth chasing
    assert verdict(gpu(), findings=[finding("d", "launch", actions=["d"])]) == verdict(gpu())


# --- the next action --------------------------------------------------------------------------------------------


def test_the_action_is_the_first_one_of_the_largest_finding_about_the_limiter() -> None:
    findings = [
        finding("larger", "launch", actions=["for launches"]),
        finding("silent", "host_sync", actions=[]),
        finding("fitting", "launch", "host_sync", actions=["first", "second"]),
        finding("smaller", "host_sync", actions=["smaller"]),
    ]
    assert verdict(gpu(host_sync=300), findings=findings).next_action == "first"
    assert verdict(gpu(queued=300), findings=findings).next_action == (
        "Look at what the streams wait for at the place named below."
    )


@pytest.mark.parametrize("cause", [*IDLE_CAUSES, "communication", "copy", "memset"])
def test_a_finding_about_the_limiter_s_cause_is_about_the_limiter(cause: str) -> None:
    others = [finding(other, other, actions=[other]) for other in CAUSES if other != cause]
    related = {"communication", "host_communication"}, {"copy", "memset"}
    same = next((pair for pair in related if cause in pair), {cause})
    findings = [other for other in others if other.rule not in same]
    one = verdict(gpu(**{cause: 300}), findings=[*findings, finding("own", cause, actions=["own"])])
    assert one.next_action == "own"


def test_the_late_rank_comes_before_exposed_communication() -> None:
    findings = [
        finding("exposed-communication", "communication", actions=["overlap"]),
        finding("rank-imbalance", "communication", actions=["look at the rank"]),
    ]
    one = gpu(communication=300)
    late = verdict(one, findings=findings, collectives=collectives(0.8), ranks=ranks())
    assert late.next_action == "look at the rank"
    even = verdict(one, findings=findings, collectives=collectives(0.2), ranks=ranks())
    assert even.next_action == "overlap"
    unlisted = verdict(one, findings=findings[:1], collectives=collectives(0.8), ranks=ranks())
    assert unlisted.next_action == "overlap"


# --- what cannot be judged --------------------------------------------------------------------------------------


def unjudged(builder: TraceBuilder, folder: Path, *, filtered: bool = False) -> Verdict:
    path = builder.write(folder / "trace.sqlite")
    trace = load_trace(path, file=path.name, kind="sqlite", capture_version=None, filtered=filtered)
    result = cannot_judge(trace)
    assert (result.status, result.gpus, result.findings) == ("cannot_judge", [], [])
    assert [check.rule for check in result.checks] == [rule.id for rule in all_rules()]
    assert {check.status for check in result.checks} == {"not_run"}
    assert result.verdict.limiter is None
    assert result.capture.window is None
    return result.verdict


def test_cuda_was_not_traced(tmp_path: Path) -> None:
    one = unjudged(TraceBuilder().range("step", 10, 20).os_call("poll", 10, 20), tmp_path)
    assert one.sentence == (
        "No GPU work is in this trace: CUDA was not traced, or the process that uses the GPU was not recorded."
    )
    assert one.next_action.startswith("Record again with CUDA traced: nsys profile --trace=cuda,nvtx,osrt ")


def test_calls_without_work(tmp_path: Path) -> None:
    trace = TraceBuilder().api("cudaMalloc_v3020", 10, 20).api("cudaStreamQuery_v3020", 20, 30, result=600)
    one = unjudged(trace, tmp_path)
    assert "although it holds 2 CUDA calls" in one.sentence
    assert "returned an error" not in one.sentence  # 600 says not ready
    assert "nsys profile --trace=cuda,nvtx,osrt" in one.next_action


def test_calls_that_failed(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for number in range(3):
        trace.api("cudaLaunchKernel_v7000", 10 + number, 10.5 + number, result=209 if number else 0)
    assert "its launches failed (2 calls returned an error)" in unjudged(trace, tmp_path).sentence


def test_an_export_of_chosen_tables(tmp_path: Path) -> None:
    one = unjudged(TraceBuilder().api("cudaMalloc_v3020", 10, 20), tmp_path, filtered=True)
    assert "--tables or --times" in one.sentence
    assert one.next_action.startswith("Export the whole report: nsys export --type=sqlite ")


def source(builder: TraceBuilder, path: Path) -> Source:
    return Source(builder.write(path), path.name, "sqlite", None, filtered=False)


def test_work_without_length_is_none(tmp_path: Path) -> None:
    result = analyze([source(TraceBuilder().kernel(10, 10, GEMM), tmp_path / "a.sqlite")], WindowRequest())
    assert result.status == "cannot_judge"


def test_ranks_without_any_work_are_all_named(tmp_path: Path) -> None:
    idle = [
        source(TraceBuilder().range("step", 10, 20), tmp_path / f"rank{number}.sqlite") for number in range(2)
    ]
    result = analyze(idle, WindowRequest())
    assert result.status == "cannot_judge"
    assert (result.capture.file, result.capture.files) == ("rank0.sqlite", ["rank0.sqlite", "rank1.sqlite"])


def test_a_late_rank_is_named_only_where_it_is_clearly_the_one() -> None:
    one = gpu(communication=400)
    late = replace(ranks(), straggler_reason="Rank 3 is late because it computes more: 2 ms more.")
    clear = verdict(one, collectives=collectives(0.9), ranks=late)
    assert clear.sentence == (
        "The GPUs wait for rank 3: communication, mostly waiting, takes 40 % of the time."
        " Rank 3 is late because it computes more: 2 ms more."
    )
    at_random = verdict(one, collectives=collectives(0.9), ranks=replace(late, straggler_votes_share=0.49))
    assert at_random.sentence == (
        "The ranks wait for each other, with no single one late: communication, mostly waiting, takes 40 % of the time."
    )
