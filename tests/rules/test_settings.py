import pytest

from nsys_triage.errors import UsageError
from nsys_triage.rules.registry import all_rules
from nsys_triage.rules.settings import (
    UserSettings,
    in_range,
    known_rule,
    nearest,
    parse_gate,
    parse_threshold,
    settings_of_file,
)


@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ("host-sync.share=0.1", ("host-sync", "share"), 0.1),
        (" host_sync.share = 1 ", ("host-sync", "share"), 1.0),
        ("many-small-copies.count=2e3", ("many-small-copies", "count"), 2_000.0),
        ("wave-tail.length=0", ("wave-tail", "length"), 0.0),
    ],
)
def test_thresholds(text: str, place: tuple[str, str], value: float) -> None:
    assert parse_threshold(text) == (place, value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "--threshold '' is not RULE.NAME=VALUE, as host-sync.share=0.1 is."),
        ("host-sync=0.1", "is not RULE.NAME=VALUE"),
        ("host-sync.share", "is not RULE.NAME=VALUE"),
        (".share=0.1", "is not RULE.NAME=VALUE"),
        ("host-sync.=0.1", "is not RULE.NAME=VALUE"),
        ("host-snyc.share=0.1", "there is no rule 'host-snyc': did you mean host-sync or "),
        ("host-sync.shares=0.1", "host-sync has no threshold 'shares': it has share."),
        ("cuda-errors.share=0.1", "cuda-errors has no threshold 'share': it has none."),
        ("wave-tail.count=0.1", "it has share, waves, fill, length."),
        ("host-sync.share=", "'' is not a number: give a share above 0 and up to 1 (0.05 is 5 %)."),
        ("host-sync.share=5%", "'5%' is not a number: give a share above 0"),
        ("host-sync.share=0", "0.0 is out of range: host-sync.share is a share above 0 and up to 1"),
        ("host-sync.share=-0.1", "-0.1 is out of range"),
        ("host-sync.share=1.01", "1.01 is out of range"),
        ("host-sync.share=nan", "nan is out of range"),
        ("host-sync.share=0.1=2", "'0.1=2' is not a number"),
        (
            "wave-tail.length=-1",
            "-1.0 is out of range: wave-tail.length is a time in nanoseconds, 0 or more.",
        ),
        (
            "many-small-copies.count=inf",
            "inf is out of range: many-small-copies.count is a number, 0 or more.",
        ),
    ],
)
def test_wrong_thresholds(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_threshold(text)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("--threshold ")


def test_every_default_is_in_the_range_of_its_unit() -> None:
    assert [
        (rule.id, name)
        for rule in all_rules()
        for name, threshold in rule.thresholds.items()
        if not in_range(threshold.unit, threshold.default) or threshold.unit == "text"
    ] == []


def test_gates() -> None:
    assert [parse_gate(text) for text in ("high", "medium", "low", "host-sync", "host_sync")] == [
        "high",
        "medium",
        "low",
        "host-sync",
        "host-sync",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hgih", "there is no level 'hgih': did you mean high?"),
        ("HIGH", "there is no level 'HIGH': did you mean high?"),
        (
            "host-snyc",
            "neither high, medium, low nor a rule: there is no rule 'host-snyc': did you mean host-sync",
        ),
        ("", "neither high, medium, low nor a rule"),
        ("high,low", "a gate is one level or one rule: give each by itself."),
    ],
)
def test_wrong_gates(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_gate(text)
    assert sentence in str(caught.value)


def test_nearest_names() -> None:
    names = [rule.id for rule in all_rules()]
    assert nearest("host-snyc", names)[0] == "host-sync"
    assert nearest("page-able-copies", names)[0] == "pageable-copies"
    assert nearest("pageable_copy", names)[0] == "pageable-copies"
    assert set(nearest("sync", names)) == {"host-sync"}
    assert nearest("zzz", names) == []
    assert len(nearest("host-copies-kernels", names)) == 4


def test_rules_by_what_they_are_about() -> None:
    with pytest.raises(UsageError, match=r"did you mean .*host-sync.*\?"):
        known_rule("synchronising")


FILE = """\
# how this job is judged
window = "4.02:14.3"
fail_on = ["high",
           "host-sync"]

[thresholds."host-sync"]
share = 0.1
[thresholds]
many-small-copies.count = 10
wave_tail = { share = 1, length = 5_000 }
"""


def test_file() -> None:
    assert settings_of_file(FILE, "a.toml") == UserSettings(
        thresholds={
            ("host-sync", "share"): 0.1,
            ("many-small-copies", "count"): 10.0,
            ("wave-tail", "share"): 1.0,
            ("wave-tail", "length"): 5_000.0,
        },
        window="4.02:14.3",
        fail_on=("high", "host-sync"),
    )
    assert settings_of_file(FILE.replace("\n", "\r\n"), "a.toml") == settings_of_file(FILE, "a.toml")


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "[thresholds]\n", "[thresholds.host-sync]\n"])
def test_file_that_sets_nothing(text: str) -> None:
    assert settings_of_file(text, "a.toml") == UserSettings()


def test_file_with_an_empty_list_is_not_one_that_says_nothing() -> None:
    assert settings_of_file("fail_on = []", "a.toml").fail_on == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("window = ", "a.toml is not TOML: Invalid value (at end of document)."),
        ("a = 1\na = 2", "a.toml is not TOML: Cannot overwrite a value (at end of document)."),
        ('x = 1\nwindow = "all"', "line 1: x: there is no such key: there are fail_on, thresholds, window."),
        ('\n\nwindows = "all"', "line 3: windows: there is no such key: did you mean window? there are "),
        (
            "[host-sync]\nshare = 0.1",
            "line 1: host-sync: thresholds of a rule stand under [thresholds.host-sync].",
        ),
        ('"host-sync.share" = 0.1', "thresholds of a rule stand under [thresholds.host-sync]."),
        ("window = 4", 'line 1: window: text is needed, as window = "all" or "4.02:14.3".'),
        ('window = "some"', "line 1: window: 'some' is neither auto, all, START:END"),
        ('#\nfail_on = "high"', 'line 2: fail_on: a list of texts is needed, as fail_on = ["high"].'),
        ("fail_on = [1]", "fail_on: a list of texts is needed"),
        ('fail_on = [\n"high",\n"hhh"\n]', "line 1: fail_on: neither high, medium, low nor a rule"),
        ("thresholds = 1", "line 1: thresholds: a table is needed"),
        ("[[thresholds]]", "line 1: thresholds: a table is needed"),
        (
            "[thresholds]\nhost-sync = 0.1",
            "line 2: thresholds.host-sync: a table is needed, as [thresholds.host-sync] with share = 0.05.",
        ),
        (
            '[thresholds]\n"host-sync.share" = 0.1',
            "line 2: thresholds.host-sync.share: a table is needed, as [thresholds.host-sync] with share = 0.05.",
        ),
        (
            "[thresholds.host-sync]\nshare = 0.1\n[thresholds.nothing-such]\nshare = 0.1",
            "line 3: thresholds.nothing-such: there is no rule 'nothing-such'",
        ),
        (
            "[thresholds.host-sync]\n\n# a\nshar = 0.1",
            "line 4: thresholds.host-sync.shar: host-sync has no threshold 'shar': it has share.",
        ),
        ("[thresholds.host-sync]\nshare = 5", "line 2: thresholds.host-sync.share: 5 is out of range: "),
        ("[thresholds.host-sync]\nshare = inf", "line 2: thresholds.host-sync.share: inf is out of range"),
        ("[thresholds.host-sync]\nshare = '0.1'", "share: a number is needed, as share = 0.05."),
        ("[thresholds.host-sync]\nshare = true", "share: a number is needed, as share = 0.05."),
        ("[thresholds.host-sync]\nshare = 2020-01-01", "share: a number is needed"),
        (
            f"[thresholds.many-small-copies]\ncount = 1{'0' * 400}",
            "line 2: thresholds.many-small-copies.count: 1000",
        ),
        ("thresholds.host-sync.share = 0.1\nthresholds.wave-tail = {\n", "a.toml is not TOML: "),
        (
            'window = """\nx = 1\n"""\nx = 2',
            "line 4: x: there is no such key",
        ),
        ("a = " + "[" * 3_000 + "]" * 3_000, "a.toml is not TOML: "),
    ],
)
def test_wrong_files(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        settings_of_file(text, "a.toml")
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("a.toml")
