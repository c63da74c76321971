"""The page of a rule as text: its thresholds, what it needs, its prose at a given width."""

import re
import textwrap
from typing import Final

from nsys_triage import units
from nsys_triage.rules.base import Rule, Threshold
from nsys_triage.rules.context import NEEDS, record_line

NO_NEEDS: Final = "GPU work"
_ALWAYS_TRACED: Final = {"cuda", "nvtx", "osrt"}  # by `record_line` itself
_UNIT_NAMES: Final = {"bytes_per_s": "bytes per second", "mhz": "MHz"}
_ITEM: Final = re.compile(r"^(\d+\.|-) ")


def threshold_text(name: str, threshold: Threshold) -> str:
    """A threshold and its default as a table has it: `share 5.0 %`."""
    return f"{name} {units.quantity(threshold.default, threshold.unit)}"


def threshold_line(name: str, threshold: Threshold) -> str:
    """A threshold as `--threshold` takes it, with its unit: `share = 0.05 (share, 5.0 %)`."""
    number = plain_number(threshold.default)
    unit = _UNIT_NAMES.get(threshold.unit, threshold.unit)
    read = units.quantity(threshold.default, threshold.unit)
    return (
        f"{name} = {number} ({unit})" if threshold.unit == "count" else f"{name} = {number} ({unit}, {read})"
    )


def plain_number(value: float) -> str:
    """A number as a person types it: `0.05`, `10000`."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def need_text(need: str) -> str:
    """What a rule needs, in words; NEEDS says after a colon why a trace may lack it."""
    return NEEDS[need][0].partition(":")[0]


def need_line(need: str) -> str:
    """What a rule needs, and what records it: `OS runtime calls: nsys profile --trace=osrt`."""
    missing, option = NEEDS[need]
    what, _, advice = missing.partition(": ")
    how = f"nsys profile {option}" if option else advice
    return f"{what}: {how}" if how else what


def record_command(rule: Rule) -> str:
    """The `nsys profile` command that records what the rule needs."""
    options = [NEEDS[need][1] for need in rule.needs]
    traced = {option: set(option.removeprefix("--trace=").split(",")) for option in options}
    return record_line(*(option for option in options if not traced[option] <= _ALWAYS_TRACED))


def wrapped(prose: str, width: int, indent: int = 0) -> list[str]:
    """Prose in lines of at most `width`: paragraphs apart, items of lists hanging under their number."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", prose.strip()):
        if lines:
            lines.append("")
        for block in _blocks(paragraph):
            item = _ITEM.match(block)
            hanging = indent + (len(item.group(0)) if item else 0)
            lines += textwrap.wrap(
                block,
                width,
                initial_indent=" " * indent,
                subsequent_indent=" " * hanging,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return lines


def _blocks(paragraph: str) -> list[str]:
    """A paragraph as its items, or as a whole where it is no list; line ends within become spaces."""
    blocks: list[str] = []
    for line in paragraph.split("\n"):
        if blocks and not _ITEM.match(line.strip()):
            blocks[-1] += " " + line.strip()
        else:
            blocks.append(line.strip())
    return blocks
