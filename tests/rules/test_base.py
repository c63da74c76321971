import pytest

from nsys_triage.rules.base import SECTIONS, Page, number, page_of, severity_of

PAGE = """A first line.

What it means

The meaning,
on two lines.

What to do next

1. One thing.
2. Another thing.

When it is wrong

Never.
"""


def test_a_page_has_four_parts() -> None:
    assert page_of(PAGE) == Page(
        "A first line.", "The meaning,\non two lines.", "1. One thing.\n2. Another thing.", "Never."
    )


def test_words_of_a_heading_within_a_line_are_no_heading() -> None:
    page = page_of(PAGE.replace("Never.", "What it means is never wrong,\nbut What to do next may be."))
    assert page.meaning == "The meaning,\non two lines."
    assert page.caveat == "What it means is never wrong,\nbut What to do next may be."


@pytest.mark.parametrize("text", [None, "", "  \n "])
def test_without_a_docstring_there_is_no_page(text: str | None) -> None:
    with pytest.raises(ValueError, match="needs a first line and the parts What it means, "):
        page_of(text)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_part_is_needed(section: str) -> None:
    with pytest.raises(ValueError, match="needs a first line and the parts"):
        page_of(PAGE.replace(section, "Something else"))


@pytest.mark.parametrize(
    "prose", ["The meaning,\non two lines.", "1. One thing.\n2. Another thing.", "Never."]
)
def test_no_part_may_be_empty(prose: str) -> None:
    assert prose in PAGE
    with pytest.raises(ValueError, match="out of order, or one is empty"):
        page_of(PAGE.replace(prose, " "))


@pytest.mark.parametrize(("one", "other"), [SECTIONS[:2], SECTIONS[1:], SECTIONS[::2]])
def test_the_parts_have_an_order(one: str, other: str) -> None:
    exchanged = PAGE.replace(one, "-").replace(other, one).replace("-", other)
    with pytest.raises(ValueError, match="out of order, or one is empty"):
        page_of(exchanged)


@pytest.mark.parametrize(
    "before", ["", "A first line\nthat goes on.", "A first line.\n\nAnd a paragraph that no page shows."]
)
def test_exactly_one_line_stands_before_the_parts(before: str) -> None:
    with pytest.raises(ValueError, match="one line stands before 'What it means'"):
        page_of(PAGE.replace("A first line.", before))


@pytest.mark.parametrize(
    ("share", "level"),
    [
        (0.0, "low"),
        (0.049999, "low"),
        (0.05, "medium"),
        (0.149999, "medium"),
        (0.15, "high"),
        (1.0, "high"),
    ],
)
def test_severity(share: float, level: str) -> None:
    assert severity_of(share) == level


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (1.6, "ns", 2),
        (-1.6, "ns", -2),
        (1_048_576.4, "bytes", 1_048_576),
        (3.0, "count", 3),
        (7, "ns", 7),
        (0.1234564, "share", 0.123456),
        (1.25, "share", 1.0),
        (-0.25, "share", 0.0),
        (1, "share", 1.0),
        (2, "share", 1.0),
        (11.25e9, "bytes_per_s", 11.25e9),
        (1410.5, "mhz", 1410.5),
        ("poll", "text", "poll"),
        ("nan", "text", "nan"),
    ],
)
def test_numbers(value: float | str, unit: str, expected: float | str) -> None:
    evidence = number("a label", value, unit)  # type: ignore[arg-type]
    assert (evidence.label, evidence.value, evidence.unit) == ("a label", expected, unit)
    # times, sizes and counts are integers in the contract, shares are not
    assert type(evidence.value) is type(expected)


@pytest.mark.parametrize("unit", ["ns", "bytes", "count", "share", "bytes_per_s", "mhz"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_no_evidence(value: float, unit: str) -> None:
    with pytest.raises(ValueError, match=f"a label is {value}"):
        number("a label", value, unit)  # type: ignore[arg-type]
