"""What holds for every rule, whoever adds one."""

import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from nsys_triage.cli import run
from nsys_triage.result.model import Unit
from nsys_triage.rules import checks
from nsys_triage.rules.base import SECTIONS, Page, Rule, page_of
from nsys_triage.rules.context import NEEDS
from nsys_triage.rules.registry import all_rules, rule_named

CHECKS = Path(checks.__file__).parent
FILES = sorted(path.stem for path in CHECKS.glob("*.py") if path.stem != "__init__")
EACH = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)


def module_of(rule: Rule) -> ModuleType:
    return sys.modules[f"{checks.__name__}.{rule.id.replace('-', '_')}"]


def test_every_file_holds_a_rule_of_its_own_name() -> None:
    assert len(FILES) > 40
    assert [rule.id.replace("-", "_") for rule in all_rules()] == FILES
    assert [rule.id for rule in all_rules()] == sorted(rule.id for rule in all_rules())
    assert all(module_of(rule).RULE is rule for rule in all_rules())
    # what a file holds is its own, not another file's
    assert all(inspect.getmodule(rule.check) is module_of(rule) for rule in all_rules())


def test_every_rule_has_a_test_file_and_no_test_file_is_without_a_rule() -> None:
    here = Path(__file__).parent
    tested = {path.stem.removeprefix("test_") for path in here.glob("test_*.py")}
    assert set(FILES) - tested == set()
    package = {path.stem for path in (CHECKS.parent).glob("*.py")} | {"cause_stake"}
    assert tested - set(FILES) - package == set()


def test_titles_tell_rules_apart() -> None:
    assert (
        len({rule.title for rule in all_rules()})
        == len({rule.page.summary for rule in all_rules()})
        == len(FILES)
    )


@EACH
def test_the_page_is_the_docstring_and_is_whole(rule: Rule) -> None:
    document = module_of(rule).__doc__
    assert rule.page == page_of(document)
    assert document is not None
    words = document.split()
    page = rule.page
    told = f"{page.summary} {SECTIONS[0]} {page.meaning} {SECTIONS[1]} {page.actions} {SECTIONS[2]} {page.caveat}"
    assert told.split() == words  # nothing of the docstring is lost
    assert page.summary.endswith(".")
    assert page.actions.startswith("1. ")
    assert rule.title
    assert not rule.title.endswith(".")


@EACH
def test_explain_has_every_word_of_the_page(rule: Rule, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["explain", rule.id]) == 0
    said = capfdbinary.readouterr().out.decode().split()
    head = f"{rule.id}: {rule.title}".split()
    words = (module_of(rule).__doc__ or "").split()
    assert said[: len(head) + len(words)] == head + words


@EACH
def test_thresholds_have_a_unit_and_a_reason(rule: Rule) -> None:
    for name, threshold in rule.thresholds.items():
        assert name.isidentifier()
        assert threshold.unit in get_args(Unit)
        assert len(threshold.why.split()) >= 3, name
        assert isinstance(threshold.default, int | float)


@EACH
def test_needs_are_known(rule: Rule) -> None:
    assert set(rule.needs) <= set(NEEDS)
    assert len(set(rule.needs)) == len(rule.needs)
    assert not rule.job or {"several_ranks", "several_gpus"} & set(rule.needs)


@EACH
def test_every_threshold_is_used(rule: Rule) -> None:
    source = (CHECKS / f"{rule.id.replace('-', '_')}.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in source.partition("RULE = ")[0] for name in rule.thresholds)


def test_a_rule_by_name() -> None:
    assert all(rule_named(rule.id) is rule for rule in all_rules())
    assert rule_named("host_sync") is None
    assert rule_named("") is None


def planted(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, text: str) -> None:
    """One more file beside the rules, in a folder that the package is told to look into as well."""
    (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(checks, "__path__", [*checks.__path__, str(folder)])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


RULE = f'''"""A planted rule.

{SECTIONS[0]}

a

{SECTIONS[1]}

b

{SECTIONS[2]}

c
"""
from nsys_triage.rules.base import Passed, Rule, page_of

RULE = Rule(id="zz-planted", title="Planted", check=lambda context: Passed("fine"), page=page_of(__doc__))
'''


def test_adding_a_rule_is_adding_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    planted(monkeypatch, tmp_path, "zz_planted", RULE)
    try:
        found = all_rules.__wrapped__()
    finally:
        sys.modules.pop(f"{checks.__name__}.zz_planted", None)
    assert [rule.id for rule in found] == [*(rule.id for rule in all_rules()), "zz-planted"]
    assert found[-1].page == Page("A planted rule.", "a", "b", "c")


@pytest.mark.parametrize(
    "text",
    ["", "RULE = 1", RULE.replace("zz-planted", "another-name"), RULE.replace("RULE = Rule", "OTHER = Rule")],
    ids=["empty", "no rule", "another name", "not RULE"],
)
def test_a_file_without_a_rule_of_its_name_is_an_error(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    planted(monkeypatch, tmp_path, "zz_planted", text)
    try:
        with pytest.raises(ValueError, match="zz_planted holds no RULE of its own name"):
            all_rules.__wrapped__()
    finally:
        sys.modules.pop(f"{checks.__name__}.zz_planted", None)
