"""What a user may set, as text and checked: thresholds of rules, the window, gates; nothing is read here.

The text of a file is TOML:

    window = "all"
    fail_on = ["high", "input-pipeline"]

    [thresholds.host-sync]
    share = 0.1
"""

import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nsys_triage.errors import UsageError
from nsys_triage.metrics.window import parse_window
from nsys_triage.rules.base import Rule, Threshold
from nsys_triage.rules.gates import LEVELS
from nsys_triage.rules.registry import all_rules, rule_named

KEYS: Final = ("fail_on", "thresholds", "window")
_MOST_NEAREST: Final = 4
_RANGES: Final = {
    # unit: what a value of it is, in words; 0 % would be reached by nothing at all
    "share": "a share above 0 and up to 1 (0.05 is 5 %)",
    "ns": "a time in nanoseconds, 0 or more",
    "bytes": "a size in bytes, 0 or more",
    "bytes_per_s": "a rate in bytes per second, 0 or more",
    "count": "a number, 0 or more",
    "mhz": "a clock in MHz, 0 or more",
}


@dataclass(frozen=True, slots=True)
class UserSettings:
    """What a configuration file sets; None where it says nothing."""

    thresholds: Mapping[tuple[str, str], float] = field(default_factory=dict)  # by (rule, name)
    window: str | None = None
    fail_on: tuple[str, ...] | None = None


def known_rule(name: str) -> Rule:
    """The rule of that name (`_` counts as `-`). Raises UsageError with the nearest names where there is none."""
    rule = rule_named(name.strip().lower().replace("_", "-"))
    if rule is None:
        near = nearest(name, [known.id for known in all_rules()]) or _about(name)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise UsageError(f"there is no rule {name!r}: {hint}`nsys-triage rules` lists all rules.")
    return rule


def nearest(name: str, names: list[str]) -> list[str]:
    """Up to four of the names that are spelt like `name` or share a word with it, the likeliest first."""
    wanted = name.strip().lower().replace("_", "-")
    words = {word.rstrip("s") for word in wanted.split("-") if len(word) > 2}
    likeness = {}
    for other in names:
        shared = len(words & {word.rstrip("s") for word in other.split("-")})
        likeness[other] = shared + difflib.SequenceMatcher(None, wanted, other).ratio()
    near = [other for other in names if likeness[other] >= 0.6]
    return sorted(near, key=lambda other: (-likeness[other], other))[:_MOST_NEAREST]


def _about(subject: str) -> list[str]:
    """Up to four rules whose title or first line has a word of the subject."""
    words = [word for word in re.split(r"[^a-z]+", subject.lower()) if len(word) > 3]
    texts = {rule.id: f"{rule.title} {rule.page.summary}".lower() for rule in all_rules()}
    return [rule for rule, text in texts.items() if any(word in text for word in words)][:_MOST_NEAREST]


def parse_threshold(text: str) -> tuple[tuple[str, str], float]:
    """`RULE.NAME=VALUE` as ((rule, name), value). Raises UsageError that says what there is."""
    place, equals, value = text.partition("=")
    rule_name, dot, name = place.strip().partition(".")
    if not (equals and dot and rule_name and name):
        raise UsageError(f"--threshold {text!r} is not RULE.NAME=VALUE, as host-sync.share=0.1 is.")
    try:
        rule = known_rule(rule_name)
        threshold = _known_threshold(rule, name)
        return (rule.id, name), _checked(rule, name, threshold, _number(value, threshold))
    except UsageError as error:
        raise UsageError(f"--threshold {text}: {error}") from error


def parse_gate(text: str) -> str:
    """What `--fail-on` takes: `high`, `medium`, `low` or the name of a rule. Raises UsageError."""
    if text in LEVELS:
        return text
    if "," in text:
        raise UsageError("a gate is one level or one rule: give each by itself.")
    level = difflib.get_close_matches(text.lower(), LEVELS, n=1)
    if level:
        raise UsageError(f"there is no level {text!r}: did you mean {level[0]}?")
    try:
        return known_rule(text).id
    except UsageError as error:
        raise UsageError(f"neither high, medium, low nor a rule: {error}") from error


def settings_of_file(text: str, file: str) -> UserSettings:
    """The settings in the text of a TOML file; `file` is the name that errors give.

    Raises UsageError, with the line and the key, for what is unknown, out of range or of a wrong type.
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{file} is not TOML: {error}.") from error
    for key in data:
        if key not in KEYS:
            raise _wrong(text, file, (key,), _no_such_key(key))
    fail_on = data.get("fail_on")
    return UserSettings(
        thresholds=_thresholds(text, file, data.get("thresholds", {})),
        window=_window(text, file, data["window"]) if "window" in data else None,
        fail_on=None if fail_on is None else _gates(text, file, fail_on),
    )


def _no_such_key(key: str) -> str:
    near = nearest(key, list(KEYS))
    if rule_named(key.partition(".")[0]) is not None:
        return f"thresholds of a rule stand under [thresholds.{key.partition('.')[0]}]."
    return f"there is no such key: {f'did you mean {near[0]}? ' if near else ''}there are {', '.join(KEYS)}."


def _thresholds(text: str, file: str, table: Any) -> dict[tuple[str, str], float]:
    if not isinstance(table, dict):
        raise _wrong(
            text, file, ("thresholds",), "a table is needed, as [thresholds.host-sync] with share = 0.1."
        )
    found = {}
    for rule_name, values in table.items():
        try:
            rule = known_rule(rule_name.partition(".")[0])
        except UsageError as error:
            raise _wrong(text, file, ("thresholds", rule_name), str(error)) from error
        if not isinstance(values, dict):
            sentence = f"a table is needed, as [thresholds.{rule.id}] with {_example(rule)}."
            raise _wrong(text, file, ("thresholds", rule_name), sentence)
        for name, value in values.items():
            try:
                number = _checked(rule, name, _known_threshold(rule, name), value)
            except UsageError as error:
                raise _wrong(text, file, ("thresholds", rule_name, name), str(error)) from error
            found[(rule.id, name)] = number
    return found


def _window(text: str, file: str, window: Any) -> str:
    if not isinstance(window, str):
        raise _wrong(text, file, ("window",), 'text is needed, as window = "all" or "4.02:14.3".')
    try:
        parse_window(window)
    except UsageError as error:
        raise _wrong(text, file, ("window",), str(error).removeprefix("--window ")) from error
    return window


def _gates(text: str, file: str, gates: Any) -> tuple[str, ...]:
    if not isinstance(gates, list) or not all(isinstance(gate, str) for gate in gates):
        raise _wrong(text, file, ("fail_on",), 'a list of texts is needed, as fail_on = ["high"].')
    try:
        return tuple(parse_gate(gate) for gate in gates)
    except UsageError as error:
        raise _wrong(text, file, ("fail_on",), str(error)) from error


# --- thresholds -------------------------------------------------------------------------------------------------


def _known_threshold(rule: Rule, name: str) -> Threshold:
    if name not in rule.thresholds:
        there = f"it has {', '.join(rule.thresholds)}" if rule.thresholds else "it has none"
        raise UsageError(f"{rule.id} has no threshold {name!r}: {there}.")
    return rule.thresholds[name]


def _number(text: str, threshold: Threshold) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"{text.strip()!r} is not a number: give {_RANGES[threshold.unit]}.") from error


def _checked(rule: Rule, name: str, threshold: Threshold, value: Any) -> float:
    """The value of a threshold, where it lies in the range of its unit. Raises UsageError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"a number is needed, as {_example(rule, name)}.")
    if not in_range(threshold.unit, value):
        raise UsageError(f"{value} is out of range: {rule.id}.{name} is {_RANGES[threshold.unit]}.")
    return float(value)


def in_range(unit: str, value: float) -> bool:
    """Whether a threshold of that unit may have the value."""
    try:
        number = float(value)
    except OverflowError:
        return False
    if not math.isfinite(number):
        return False
    return 0 < number <= 1 if unit == "share" else number >= 0


def _example(rule: Rule, name: str | None = None) -> str:
    for known, threshold in rule.thresholds.items():
        if name in (None, known):
            return f"{known} = {threshold.default:g}"
    return "share = 0.1"


# --- where a key stands -----------------------------------------------------------------------------------------


def _wrong(text: str, file: str, path: tuple[str, ...], sentence: str) -> UsageError:
    """The error about a key: `triage.toml, line 3: thresholds.host-sync.share: ...`."""
    return UsageError(f"{file}, line {_line(text, path)}: {'.'.join(path)}: {sentence}")


def _line(text: str, path: tuple[str, ...]) -> int:
    """The line on which a key's statement begins: the one after the last whole text that lacks the key.

    TOML's parser says where no key stands, but a statement ends with its line, so that the first lines of a file are
    themselves TOML, unless they end within a value of several lines.
    """
    lines, begin = text.split("\n"), 1
    for count in range(1, len(lines) + 1):
        try:
            part: Any = tomllib.loads("\n".join(lines[:count]) + "\n")
        except tomllib.TOMLDecodeError:
            continue
        for key in path:
            part = part.get(key) if isinstance(part, dict) else None
        if part is not None:
            return begin
        begin = count + 1
    return begin
