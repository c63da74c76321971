"""How templates turn numbers, names and parts of a result into text."""

from collections.abc import Callable
from typing import Any, Final

from nsys_triage import units
from nsys_triage.render import palette, text, words
from nsys_triage.render.views import known, topics
from nsys_triage.render.views.steps import largest_idle
from nsys_triage.render.views.timeline import activity, tip


def part_name(key: str) -> str:
    """What a part of a step's bar is called."""
    names = {"busy": "busy", "other": "other idle time", "rest": "outside the GPU's span"}
    return names.get(key) or words.cause(key)


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "time": units.time, "times": units.times, "moment": units.moment, "stretch": units.stretch,
    "size": units.size,
    "rate": units.rate, "share": units.share, "count": units.count, "frequency": units.frequency,
    "per_second": units.per_second, "ratio": units.ratio, "quantity": units.quantity, "plural": units.plural,
    "given": known.given, "prose": text.prose, "cut": text.cut, "shorten": text.shorten, "clean": text.clean,
    "command": text.split_command, "cause": words.cause, "copy_kind": words.copy_kind,
    "kernel_class": words.kernel_class, "plain": words.plain, "mark": palette.mark, "fill": palette.light,
    "text_fill": lambda name: palette.text_on(palette.light(name)),
    "activity": activity, "tip": tip, "largest_idle": largest_idle, "host_was_in": topics.host_was_in,
    "gap_place": topics.gap_place, "causes_text": topics.causes_text,
    "ended_by": topics.ended_by, "durations": topics.duration_histogram,
    "sentence": words.sentence, "part": part_name,
}  # fmt: skip
