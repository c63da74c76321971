"""Text of the trace and of findings, made fit for the page: cleaned, shortened, escaped."""

import re
import shlex

from markupsafe import Markup, escape

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]+"
)
_UNIT = re.compile(r"(?<=\d) (?=(?:%|ns|us|ms|s|B|kB|MB|GB|TB|MHz)\b|%)|(?<=\d) (?=\d{3}\b)")
_CODE = re.compile(r"`([^`\n]+)`|(?<=\()((?:nsys|ncu|nsys-triage) [^()`]+)(?=\))")
_COMMAND = re.compile(r"(?:^|(?<=[:;,]\s)|(?<=\n))((?:nsys|ncu|nsys-triage)\s+\S.*)$", re.DOTALL)
LONGEST_PROSE = 900
_HEAVIEST = 3


def clean(text: object) -> str:
    """Text without control and direction characters, which would reorder or hide what stands around it."""
    return _CONTROL.sub(" ", str(text))


def shorten(text: object, limit: int = 90) -> str:
    """Text of at most `limit` characters, cut in the middle: both ends of a kernel's name tell something."""
    whole = clean(text)
    if len(whole) <= limit and _weight(whole) <= _HEAVIEST * limit:
        return whole
    limit = min(limit, max(8, _HEAVIEST * limit * len(whole) // _weight(whole)))
    head = (limit - 3) * 3 // 5
    return f"{whole[:head].rstrip()} … {whole[len(whole) - (limit - 3 - head) :].lstrip()}"


def cut(text: object, limit: int = LONGEST_PROSE) -> str:
    """Text of at most `limit` characters, cut at its end."""
    whole = clean(text).strip()
    if len(whole) <= limit and _weight(whole) <= _HEAVIEST * limit:
        return whole
    limit = min(limit, max(8, _HEAVIEST * limit * len(whole) // _weight(whole)))
    return f"{whole[: limit - 1].rstrip()}…"


def _weight(text: str) -> int:
    """The length of a text in the page, where each character of markup takes five."""
    return (
        len(text)
        + sum(4 * text.count(character) for character in "<>&'\"")
        + 2 * (len(text.encode()) - len(text))
    )


def glued(text: str) -> str:
    """Text in which no line ends between a number and its unit, or between its thousands."""
    return _UNIT.sub("\u00a0", text)


def prose(text: object, limit: int = LONGEST_PROSE) -> Markup:
    """A sentence as HTML: escaped, `code` and (commands) as code, numbers kept with their units."""
    kept = glued(cut(text, limit))
    done, parts = 0, []
    for match in _CODE.finditer(kept):
        parts += [
            escape(kept[done : match.start()]),
            Markup("<code>{}</code>").format(match.group(1) or match.group(2)),
        ]
        done = match.end()
    return Markup("").join([*parts, escape(kept[done:])])


def split_command(text: str) -> tuple[str, str | None]:
    """A sentence that ends in a command line of nsys or ncu, cut in two: (sentence, command or None)."""
    text = text.strip()
    fenced = re.search(r"`((?:nsys|ncu|nsys-triage)\s[^`]+)`\.?$", text)
    if fenced:
        return text[: fenced.start()].rstrip(" :,"), fenced.group(1)
    found = _COMMAND.search(text)
    if not found:
        return text, None
    return text[: found.start()].rstrip(" :;,\n"), found.group(1).strip()


def quoted(text: str) -> str:
    """A file name as the shell needs it."""
    return shlex.quote(clean(text))
