"""The page: complete, well formed, bounded, private, and true to the result."""

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from nsys_triage import units
from nsys_triage.render.charts import MAX_MARKS
from nsys_triage.render.html import MOST_BYTES, render_html
from nsys_triage.result.model import CAUSES, Check, Result, Verdict
from tests.render import blocks, results
from tests.render.pages import Page, parse, words

HTML_CHECK = Path(__file__).parents[2].parent / "shared" / "accept" / "html_check.py"
PAGES = {name: render_html(make()) for name, make in results.ALL.items()}


def page_of(result: Result) -> Page:
    return parse(render_html(result))


@pytest.fixture(params=PAGES)
def html(request: pytest.FixtureRequest) -> str:
    return PAGES[request.param]


@pytest.mark.skipif(not HTML_CHECK.is_file(), reason="the folder shared/ is not beside the project")
@pytest.mark.parametrize("name", PAGES)
def test_the_shared_check_finds_no_problem(name: str, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("html_check", HTML_CHECK)
    assert spec is not None
    assert spec.loader is not None
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    target = tmp_path / "page.html"
    target.write_text(PAGES[name], encoding="utf-8")
    assert check.problems(str(target)) == []


def test_pages_are_well_formed_and_ids_are_unique(html: str) -> None:
    page = parse(html)
    ids = Counter(e.attributes["id"] for e in page.elements if "id" in e.attributes)
    assert [name for name, number in ids.items() if number > 1] == []
    assert len(page.all("h1")) == 1
    assert page.one("html").attributes["lang"] == "en"


def test_links_lead_to_a_place_on_the_page(html: str) -> None:
    page = parse(html)
    targets = {f"#{e.attributes['id']}" for e in page.elements if "id" in e.attributes}
    links = {e.attributes["href"] for e in page.all("a")}
    assert links
    assert links <= targets


def test_nothing_is_loaded_and_nothing_sends(html: str) -> None:
    page = parse(html)
    for tag in ("img", "iframe", "link", "object", "embed", "base", "form", "audio", "video", "use", "image"):
        assert page.all(tag) == []
    assert all("src" not in e.attributes for e in page.elements)
    assert not any(name.startswith("on") for e in page.elements for name in e.attributes)
    assert "@import" not in html
    assert "url(" not in html
    assert len(page.all("script")) <= 1
    assert not re.search(r"https?:", html)


def test_pictures_survive_where_styles_are_dropped(html: str) -> None:
    page = parse(html)
    assert not any("style" in e.attributes for e in page.elements)
    pictures = [e for e in page.all("svg") if e.attributes.get("role") == "img"]
    for picture in pictures:
        assert "<title>" in html[html.index("<svg") :]
        assert picture.text.strip()
        assert picture.attributes["width"]
        assert picture.attributes["height"]
    for mark in page.all("rect"):
        inherited = any(tag == "g" for tag in mark.inside)
        assert "fill" in mark.attributes or inherited


def test_every_picture_of_numbers_has_title_and_description(html: str) -> None:
    for start in (m.start() for m in re.finditer(r'<svg role="img" class="chart', html)):
        head = html[html.index(">", start) + 1 : start + 1_200]
        assert re.match(r"\s*<title>[^<]+</title><desc>[^<]+</desc>", head)


def test_no_picture_holds_more_than_2000_marks(html: str) -> None:
    for picture in re.split(r'(?=<svg role="img")', html)[1:]:
        own = picture[: picture.index("</figure>")] if "</figure>" in picture else picture
        titled = own.count("<rect")
        # tracks and lanes behind the marks come on top
        assert titled <= MAX_MARKS + 200


@pytest.mark.parametrize("gpus", [1, 8, 64, 512])
def test_pages_are_below_one_mebibyte_whatever_they_are_about(gpus: int) -> None:
    for name in ("<&>'\"" * 600, "void kernel<float, 4>(int) " * 110, "é" * 3_000):
        assert len(render_html(results.huge(gpus, name)).encode()) < MOST_BYTES


def test_the_same_result_gives_the_same_page() -> None:
    assert render_html(results.rich()) == render_html(results.rich())


def test_names_of_the_trace_are_text_and_never_markup() -> None:
    html = PAGES["hostile"]
    page = parse(html)
    assert "<img" not in html
    assert "<script>alert" not in html
    assert len(page.all("script")) == 1
    assert html.count("</script>") == 1
    assert results.HOSTILE in page.one("h1").text
    assert results.HOSTILE[:20] in page.all("title")[0].text


def test_long_names_are_cut_in_the_middle_and_folded_whole_up_to_a_bound() -> None:
    page = parse(PAGES["baseline"])
    (fold,) = [e for e in page.all("details", class_="name") if "elementwise_kernel<4, at" in e.text]
    summary, whole = [
        e.text for e in page.elements if e.tag in ("summary", "code") and "CUDAFunctor" in e.text
    ][:2]
    assert len(words(summary)) <= 90
    assert " … " in summary
    assert len(whole) <= 1_000
    assert whole in fold.text


@pytest.mark.parametrize("block", results.OPTIONAL)
@pytest.mark.parametrize("absent", [UNSET, None])
def test_any_block_may_be_absent(block: str, absent: object) -> None:
    page = page_of(replace(results.rich(), **{block: absent}))
    assert words(page.one("h1").text).startswith("Exposed communication takes 17 %")
    topic = {"collectives": "communication"}.get(block, block)
    assert page.all("details", id_=f"topic-{topic}") == []
    if block == "timeline":
        # what the window is within the capture is known all the same
        assert words(page.one("section", id_="timeline").text).startswith("The window")
    else:
        assert page.all("section", id_=block) == []


def test_all_optional_parts_of_a_gpu_may_be_absent() -> None:
    bare = replace(blocks.gpu(), ledger=UNSET, metrics=None, name=None)
    page = page_of(results.baseline(gpus=[bare]))
    text = words(page.one("section", id_="time").text)
    assert "Idle time was not split by cause" in text
    assert "Busy 404 ms 4.0 %" in text
    assert "Idle 9.7 s 96 %" in text


def test_the_verdict_leads_and_says_what_to_do() -> None:
    page = parse(PAGES["baseline"])
    verdict = page.one("section", id_="verdict")
    text = words(verdict.text)
    assert words(page.one("h1").text) == "The GPU waits for input 94 % of the time (9.5 of 10.1 s)."
    assert text.index("94 % of the time") < text.index("Do next Raise num_workers")
    assert "record again and compare" in text
    assert "nsys-triage compare job.nsys-rep after.nsys-rep" in text
    sections = [e.attributes["id"] for e in page.all("section") if "id" in e.attributes]
    assert sections == [
        "verdict", "time", "findings", "timeline", "steps", "evidence", "checks", "facts", "terms",
    ]  # fmt: skip


def test_a_capture_that_cannot_be_judged_leads_with_the_reason_and_the_command() -> None:
    html = PAGES["cannot_judge"]
    page = parse(html)
    assert words(page.one("h1").text) == "No GPU work was recorded: CUDA was not traced."
    verdict = words(page.one("section", id_="verdict").text)
    assert verdict.endswith("Record again nsys profile --trace=cuda,nvtx,osrt -o job python train.py")
    assert page.all("section", id_="time") == []
    assert not re.search("healthy|worth chasing|\b0 %", page.one("body").text)


def test_without_a_verdict_the_page_says_how_busy_the_gpu_was() -> None:
    page = parse(PAGES["minimal"])
    assert words(page.one("h1").text) == "The GPU is busy 4.0 % of the time."
    assert "No verdict" in page.one("section", id_="verdict").text


def test_a_healthy_trace_says_what_was_checked() -> None:
    text = words(parse(PAGES["healthy"]).one("section", id_="verdict").text)
    assert "Nothing worth chasing here" in text
    assert "4 checks passed" in text


def test_the_header_says_what_was_recorded_and_what_to_mind() -> None:
    text = words(parse(PAGES["rich"]).one("header", class_="top").text)
    assert "2 x H100 80GB HBM3" in text
    assert "2 ranks" in text
    assert "recorded with nsys 2024.6.2" in text
    assert "steady state: 4.020 to 14.310 s, 38 of 40 steps" in text
    assert "look secret. Do not attach the raw report" in text


def test_the_ledger_table_has_every_cause_with_time_and_share() -> None:
    page = parse(PAGES["rich"])
    rows = [words(r.text) for r in page.all("tr") if "tbody" in r.inside]
    for cause, time, share in (
        ("launch idle while the host issues the next launch", "1.1 s", "11 %"),
        ("exposed communication a collective runs and nothing computes", "1.7 s", "17 %"),
    ):
        (row,) = [r for r in rows if r.startswith(cause)]
        assert row.startswith(f"{cause} {time} {share} {time} {share}")
    (whole,) = [r for r in rows if r.startswith("module load")]
    # not in the steady state; 2 x 2.2 s of 2 x 14 s of the whole capture
    assert whole.endswith("0 ns 0 % 0 ns 0 % 4.4 s 16 %")


def test_marks_of_the_ledger_say_what_they_are() -> None:
    page = parse(PAGES["baseline"])
    titles = [words(e.text) for e in page.all("title") if "svg" in e.inside]
    assert "input pipeline: 9.5 s, 94 % of this GPU's time" in titles


def test_at_most_eight_findings_get_a_card_and_the_rest_one_line() -> None:
    page = parse(PAGES["huge"])
    assert len([e for e in page.all("article") if e.attributes["class"].startswith("card sev-")]) == 8
    assert "6 lesser findings are in the JSON result only" in words(page.one("section", id_="findings").text)


def test_a_card_says_size_evidence_place_actions_and_doubt() -> None:
    card = words(parse(PAGES["baseline"]).one("article", id_="finding-1").text)
    assert "The GPU waits for input 94 % of the time" in card
    assert "At stake 7 to 9.5 s, about 82 % of GPU time (all gaps under input pipeline removed)" in card
    assert "high severity high confidence" in card
    assert "open 0.500 to 0.900 s" in card
    assert "size of an input copy 3.1 MB" in card
    assert "input copies run at 11.2 GB/s" in card
    assert "Raise num_workers of the DataLoader until the gaps close, watching CPU cores." in card
    assert (
        "Look at the longest kernel: ncu --kernel-name regex:sgemm --launch-count 3 python train.py" in card
    )
    assert "When this is wrong. The same waits occur" in card


def test_findings_are_marked_on_the_timeline() -> None:
    page = parse(PAGES["rich"])
    pins = [e.attributes["href"] for e in page.all("a") if "svg" in e.inside]
    # the sixth has no place
    assert pins == [f"#finding-{n}" for n in (1, 2, 3, 4, 5, 7, 8)]


def test_the_timeline_says_what_was_left_out_of_the_window() -> None:
    text = words(parse(PAGES["rich"]).one("section", id_="timeline").text)
    assert "The steady state within the capture. Left out 0.300 to 4.020 s: 2 slow first steps." in text


def test_steps_are_counted_and_their_kinds_marked() -> None:
    text = words(parse(PAGES["baseline"]).one("section", id_="steps").text)
    assert "38 steps of train_step #, found by their NVTX ranges." in text
    assert "2 steps were recognised as start-up." in text
    assert "Every 17 steps one takes 170 ms longer" in text
    titles = [e.text for e in parse(PAGES["baseline"]).all("title") if e.text.startswith("step 11:")]
    assert len(titles) == 1
    assert ", slow, busy " in words(titles[0])


def test_steps_of_several_processes_have_charts_of_their_own() -> None:
    first, second = blocks.steps(8), blocks.steps(6, pid=77)
    page = page_of(results.baseline(steps=replace(first, items=[*first.items, *second.items])))
    headings = [words(h.text) for h in page.all("h4")]
    assert [h for h in headings if h.startswith("Process")] == ["Process 77", "Process 4200"]


def test_many_ranks_are_folded_into_percentiles_and_the_ten_that_others_wait_for() -> None:
    page = parse(PAGES["huge"])
    text = words(page.one("section", id_="ranks").text)
    assert "Over all ranks least p10 p50 p90 most" in text
    assert "Rank 1 is the straggler It arrives last at 91 % of the matched collectives." in text
    assert "Missing: 1 rank (512)" in text
    few = words(parse(PAGES["rich"]).one("section", id_="ranks").text)
    assert "Over all ranks" not in few
    assert "wait 1.4 s" in few


def test_checks_are_listed_by_how_they_ended() -> None:
    text = words(parse(PAGES["baseline"]).one("section", id_="checks").text)
    fine, rest = text.split("Could not be checked")
    assert fine.startswith("Checked and fine launch-overhead launch 0.6 % of GPU time")
    assert "input-pipeline" not in text
    assert (
        "memory-bandwidth-bound GPU metrics were not recorded: nsys profile --gpu-metrics-devices=all" in rest
    )
    assert "wave-tail This check failed, which is a fault of nsys-triage" in rest
    command = "nsys profile --trace=cuda,nvtx,osrt --cpuctxsw=process-tree --gpu-metrics-devices=all -o job"
    assert command in rest


def test_topics_of_the_limiter_are_open() -> None:
    def opened(page: Page) -> set[str]:
        return {e.attributes["id"] for e in page.all("details", class_="topic") if "open" in e.attributes}

    assert opened(parse(PAGES["baseline"])) == {"topic-gaps", "topic-copies"}
    assert opened(parse(PAGES["rich"])) == {"topic-communication"}


def test_evidence_has_the_numbers_of_each_topic() -> None:
    page = parse(PAGES["rich"])

    def topic(name: str) -> str:
        return words(page.one("details", id_=f"topic-{name}").text)

    assert "2 408 gaps, 6.3 s in all, the longest 1.6 s" in topic("gaps")
    assert (
        "400 ms 0.500 to 0.900 s step 0, 62 % in GPU 0 (rank 0) input pipeline 98 %, launch 2.5 %"
        in topic("gaps")
    )
    assert "43 % of the kernels last less than 10 us; they make up 2.0 % of the work volume" in topic(
        "kernels"
    )
    assert "grid 108 x 4 x 1, block 256 x 1 x 1 · 128 registers · 49.2 kB shared" in topic("kernels")
    assert "50 % by registers 1.7" in topic("kernels")
    assert "cudaStreamSynchronize 400 3 s 50 ms 30 ms" in topic("sync")
    assert "Read-backs: 80, 1.4 per step, cost 28 ms" in topic("sync")
    assert "host to device 80 248 MB 22 ms 11.2 GB/s 36 % of the link 100 %" in topic("copies")
    assert "waiting for other ranks 2.1 s, 40 % of communication time" in topic("communication")
    assert "all gather 60 200 ms 100 ms not known not known not known" in topic("communication")
    assert "train_step 58 9.8 s 390 ms 400 ms 168 ms" in topic("ranges")
    assert "61 % not known 42 % 1 410 MHz 1 200 MHz to 1 410 MHz" in topic("metrics")


def test_one_rank_says_that_it_cannot_tell_waiting_from_transfer() -> None:
    alone = replace(blocks.collectives(), wait_ns=None, transfer_ns=None, wait_share=None)
    text = words(page_of(results.baseline(collectives=alone)).one("details", id_="topic-communication").text)
    assert "One rank alone cannot tell waiting from transfer" in text


def test_every_number_of_the_capture_is_there_and_what_was_not_recorded_is_not_zero() -> None:
    text = words(parse(PAGES["baseline"]).one("section", id_="facts").text)
    assert "kernels 9 345" in text
    assert "CUDA graph executions not recorded" in text
    assert "NVTX points 0" in text
    assert "9 500 of 9 517" in text
    assert "rows left out 3: 1 not finished, 2 zero times" in text


def test_no_number_is_bare_or_too_long() -> None:
    for name in ("baseline", "rich", "healthy", "minimal"):
        body = re.sub(r"<(style|script)>.*?</\1>", "", PAGES[name], flags=re.DOTALL)
        text = words(parse(body).one("body").text)
        assert not re.search(r"\d{7,}", text)
        assert not re.search(r"\d\.\d{3,} %", text)


def test_every_cause_has_a_name_a_meaning_and_a_mark() -> None:
    page = page_of(
        results.baseline(gpus=[blocks.gpu(ledger=blocks.causes(**dict.fromkeys(CAUSES, blocks.S)))])
    )
    rows = [words(r.text) for r in page.all("tr") if "tbody" in r.inside]
    assert len([r for r in rows if units.time(blocks.S) in r and "5.9 %" in r]) == len(CAUSES)
    marks = Counter(e.attributes.get("class") for e in page.all("rect") if "svg" in e.inside)
    for cause in CAUSES:
        assert marks[f"m-{cause}"] >= 2


def test_a_result_without_window_or_gpus_still_makes_a_page() -> None:
    result = results.baseline(
        gpus=[], findings=[], verdict=Verdict(limiter="mixed", sentence="Two causes.", next_action="")
    )
    result = replace(result, capture=replace(result.capture, window=None))
    page = page_of(result)
    assert "This capture cannot be judged" in page.one("section", id_="verdict").text
    assert page.all("section", id_="timeline") == []


def test_a_check_note_that_is_a_command_is_shown_as_one() -> None:
    check = Check(rule="slow-link", status="not_run", note="nsys profile --trace=cuda,ucx")
    page = page_of(results.baseline(checks=[check]))
    commands = [words(p.text) for p in page.all("pre", class_="shell")]
    assert "nsys profile --trace=cuda,ucx" in commands
    assert "nsys profile --trace=cuda,nvtx,osrt,ucx -o job <your command>" in commands
