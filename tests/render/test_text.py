import pytest

from nsys_triage.render import text


def test_names_keep_both_ends() -> None:
    name = "void " + "a" * 200 + "kernel<float>(int)"
    short = text.shorten(name, 60)
    assert len(short) <= 60
    assert short.startswith("void aaa")
    assert short.endswith("kernel<float>(int)")
    assert text.shorten("short", 60) == "short"


def test_text_of_markup_alone_is_cut_earlier_so_that_pages_stay_bounded() -> None:
    assert len(text.shorten("<" * 60, 60)) < 60
    assert len(text.cut("&" * 900, 900)) < 600
    template = "void k<A<float>, B<int>>(T<4>, U<8>)"
    assert text.shorten(template, len(template)) == template


def test_control_and_direction_characters_are_taken_out() -> None:
    assert text.clean("a\x00b\x1b[31m\u202ec\u200bd\ud800e") == "a b [31m c d e"
    assert text.clean("a\tb\nc") == "a\tb\nc"
    assert text.shorten("a\u202eb") == text.cut("a\u202eb") == "a b"


def test_sentences_are_escaped_and_code_is_code() -> None:
    assert text.prose("use `x < 1` & go") == "use <code>x &lt; 1</code> &amp; go"
    assert (
        text.prose("record (nsys profile -t cuda) again")
        == "record (<code>nsys profile -t cuda</code>) again"
    )
    assert text.prose("<b>`</b>") == "&lt;b&gt;`&lt;/b&gt;"


def test_numbers_stay_with_their_units() -> None:
    assert text.prose("94 % of 9 345 kernels, 6.8 us each in 3 steps") == (
        "94\u00a0% of 9\u00a0345 kernels, 6.8\u00a0us each in 3 steps"
    )


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("Record again: nsys profile -t cuda", ("Record again", "nsys profile -t cuda")),
        ("nsys profile -t cuda", ("", "nsys profile -t cuda")),
        ("no GPU metrics; nsys profile --x=all", ("no GPU metrics", "nsys profile --x=all")),
        ("Look: `ncu -k x python a.py`.", ("Look", "ncu -k x python a.py")),
        ("Use nsys profile again.", ("Use nsys profile again.", None)),
        ("Raise num_workers.", ("Raise num_workers.", None)),
        ("", ("", None)),
    ],
)
def test_a_command_at_the_end_is_told_from_the_sentence(sentence: str, parts: tuple[str, str | None]) -> None:
    assert text.split_command(sentence) == parts


def test_file_names_are_quoted_for_the_shell() -> None:
    assert text.quoted("job.nsys-rep") == "job.nsys-rep"
    assert text.quoted("my job;rm.sqlite") == "'my job;rm.sqlite'"
