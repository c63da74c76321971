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


def _kept(form: Callable[..., str | None]) -> Callable[..., str]:
    """A text form whose numbers are never parted from their units; nothing is the empty text."""
    return lambda *values: text.glued(form(*values) or "")


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    **{
        form.__name__: _kept(form)
        for form in (
            units.time, units.times, units.moment, units.stretch, units.size, units.rate, units.share, units.count,
            units.frequency, units.per_second, units.ratio, units.quantity, units.plural,
        )
    },
    "given": known.given, "prose": text.prose, "cut": text.cut, "shorten": text.shorten, "clean": text.clean,
    "command": text.split_command, "cause": words.cause, "copy_kind": words.copy_kind,
    "kernel_class": words.kernel_class, "plain": words.plain, "mark": palette.mark, "fill": palette.light,
    "text_fill": lambda name: palette.text_on(palette.light(name)),
    "activity": activity, "tip": tip, "largest_idle": largest_idle, "host_was_in": topics.host_was_in,
    "gap_place": _kept(topics.gap_place), "causes_text": _kept(topics.causes_text),
    "ended_by": topics.ended_by, "durations": topics.duration_histogram,
    "sentence": words.sentence, "part": part_name,
}  # fmt: skip
