from msgspec.structs import replace

from nsys_triage.render.views.lead import lead, limiter_name
from nsys_triage.result.model import Verdict
from tests.render import results


def test_a_limiter_leads_with_its_name() -> None:
    top = lead(results.baseline())
    assert (top.kind, top.label) == ("finding", "Limited by: input pipeline")
    assert top.record is None
    assert len(top.compare) == 2


def test_a_command_in_the_next_action_is_told_from_it() -> None:
    verdict = Verdict(limiter="compute", sentence="s", next_action="Look inside: ncu -k x python a.py")
    top = lead(results.baseline(verdict=verdict))
    assert (top.action, top.record) == ("Look inside", "ncu -k x python a.py")


def test_the_action_does_not_say_what_the_page_says_next() -> None:
    verdict = Verdict(limiter="copy", sentence="s", next_action="Copy less; then record again and compare.")
    assert lead(results.baseline(verdict=verdict)).action == "Copy less."


def test_compute_with_findings_is_not_called_healthy() -> None:
    verdict = Verdict(limiter="compute", sentence="The GPU is busy.", next_action="")
    assert lead(results.baseline(verdict=verdict)).label == "Limited by: the GPU itself"
    assert lead(results.baseline(verdict=verdict, findings=[])).label == "Nothing worth chasing here"
    # the sentence says so already
    assert lead(results.healthy()).label == "Healthy"


def test_a_capture_that_cannot_be_judged_always_has_a_command() -> None:
    assert lead(results.cannot_judge()).record == "nsys profile --trace=cuda,nvtx,osrt -o job python train.py"
    silent = replace(results.cannot_judge(), verdict=Verdict(limiter=None, sentence="", next_action=""))
    top = lead(silent)
    assert top.sentence == "No work of a GPU was recorded."
    assert top.record is not None
    assert top.record.startswith("nsys profile")
    assert top.compare == []


def test_every_limiter_has_a_name_in_words() -> None:
    for limiter in ("host_launch", "host_blocked", "imbalance", "mixed", "unknown"):
        assert "_" not in limiter_name(limiter)
