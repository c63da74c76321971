import json

from nsys_triage.cli.rules import markdown_table
from nsys_triage.rules.registry import all_rules
from tests.cli.conftest import Command
from tests.cli.test_explain import on_a_terminal


def test_one_line_for_each_rule(command: Command) -> None:
    code, out, err = command("rules")
    assert (code, err) == (0, "")
    head, *lines = out.splitlines()
    assert head.split() == ["rule", "what", "it", "says", "thresholds", "needs"]
    assert [line.split()[0] for line in lines] == [rule.id for rule in all_rules()]
    columns = [head.index(word) for word in ("what", "thresholds", "needs")]
    for rule, line in zip(all_rules(), lines, strict=True):
        summary, thresholds, needs = (
            line[start:end].strip() for start, end in zip(columns, [*columns[1:], None], strict=True)
        )
        assert summary == rule.page.summary
        assert all(name in thresholds for name in rule.thresholds)
        assert needs
    assert any("share 5.0 %" in line for line in lines)


def test_markdown_is_a_table_of_all_rules(command: Command) -> None:
    code, out, err = command("rules", "--markdown")
    assert (code, err) == (0, "")
    assert out == markdown_table(all_rules())
    head, rule, *rows = out.splitlines()
    assert head == "| rule | what it says | thresholds | needs |"
    assert rule == "|---|---|---|---|"
    assert [row.split("`")[1] for row in rows] == [rule.id for rule in all_rules()]
    assert all(row.replace("\\|", "").count("|") == 5 for row in rows)
    assert "| `host-blocked` | " in out
    assert "| CUDA API calls; OS runtime calls |" in out


def test_json_has_the_whole_pages(command: Command) -> None:
    code, out, err = command("rules", "--json")
    assert (code, err) == (0, "")
    rules = {row["rule"]: row for row in json.loads(out)}
    assert list(rules) == [rule.id for rule in all_rules()]
    assert rules["host-sync"]["thresholds"][0]["default"] == 0.05
    assert rules["host-sync"]["thresholds"][0]["unit"] == "share"
    assert rules["host-blocked"]["needs"][1] == {
        "what": "OS runtime calls",
        "nsys_option": "--trace=osrt",
    }
    assert all(row["meaning"] and row["actions"] and row["caveat"] for row in rules.values())


def test_one_form_at_a_time(command: Command) -> None:
    code, out, err = command("rules", "--json", "--markdown")
    assert (code, out) == (2, "")
    assert "leave one of them out" in err


def test_on_a_terminal_it_fits() -> None:
    out = on_a_terminal("rules", NO_COLOR="1")
    lines = [line.rstrip() for line in out.replace("\x1b[1m", "").replace("\x1b[0m", "").split("\r\n")]
    assert max(map(len, lines)) <= 70
    assert {rule.id for rule in all_rules()} <= {line.split()[0] for line in lines if line.split()}
