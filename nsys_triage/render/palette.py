"""The colours of the page, light and dark: a family for busy causes, one for idle ones, grey for unknown.

Every colour stands out from the page and from its panels by a contrast of at least 3:1 (WCAG 2.2,
1.4.11), and neighbours of the fixed order, like busy and idle, stay apart for readers with deuteranopia
and protanopia; tests compute both. Marks never rely on colour alone: they carry a label, a place of their
own or a tooltip as well.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Paint:
    """One colour as `#rrggbb` in the light and in the dark scheme."""

    light: str
    dark: str


PAGE: Final = Paint("#ffffff", "#12161c")
PANEL: Final = Paint("#f5f6f8", "#1a1f27")
INK: Final = Paint("#16191d", "#e8eaed")
MUTED: Final = Paint("#59616b", "#a3abb6")
MARKS: Final[dict[str, Paint]] = {
    # busy: cool
    "compute": Paint("#2b5fc1", "#5a90f2"),
    "graph": Paint("#4188fa", "#7ec9ff"),
    "communication": Paint("#34178a", "#7b66d0"),
    "copy": Paint("#0f97bc", "#74e8fd"),
    "memset": Paint("#4874cb", "#7ba8ff"),
    # idle: warm
    "launch": Paint("#d9620b", "#f28b3b"),
    "host_sync": Paint("#b01e2e", "#f2605f"),
    "input_pipeline": Paint("#946c00", "#f5c64f"),
    "host_blocked": Paint("#50003e", "#ae4b6b"),
    "host_compute": Paint("#a83984", "#f8b9b4"),
    "host_communication": Paint("#4a4300", "#edad00"),
    "allocation": Paint("#976558", "#ffd8ad"),
    "module_load": Paint("#602400", "#b84b03"),
    "unified_memory": Paint("#933161", "#e29bb3"),
    "queued": Paint("#72955d", "#e9ec6c"),
    "profiler": Paint("#450d04", "#d6ab82"),
    "unknown": Paint("#7c828a", "#8b929c"),
    # everything that is not a cause
    "plain": Paint("#5c6b7f", "#93a3b8"),
    "step": Paint("#7a8494", "#8894a6"),
    "accent": Paint("#b01e2e", "#f2605f"),
}
ALIASES: Final[dict[str, str]] = {
    "sync": "host_sync",
    "api": "plain",
    "os": "host_blocked",
    "mpi": "host_communication",
    "nvtx": "step",
    "overhead": "profiler",
    "cpu": "host_compute",
    "busy": "compute",
    "wait": "host_sync",
    "transfer": "communication",
    "exposed": "communication",
    "idle": "unknown",
    "steady": "plain",
    "slow": "accent",
    "startup": "step",
    "rest": "unknown",
}


def mark(name: str) -> str:
    """The name in `MARKS` of what a mark shows; what is not known is plain."""
    name = ALIASES.get(name, name)
    return name if name in MARKS else "plain"


def light(name: str) -> str:
    """The light colour of what a mark shows, for its `fill` attribute where no style sheet applies."""
    return MARKS[mark(name)].light


def luminance(colour: str) -> float:
    """Relative luminance (0..1) of `#rrggbb` (WCAG 2.2)."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Contrast ratio (1..21) of two colours (WCAG 2.2)."""
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def text_on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour: at least 4.5:1 on any."""
    return max("#ffffff", "#000000", key=lambda text: contrast(text, colour))


def style() -> str:
    """The colours as CSS: variables for both schemes, classes `m-NAME` (marks), `t-NAME` (text on them)."""
    themes = {scheme: _variables(scheme) for scheme in ("light", "dark")}
    classes = "".join(f".m-{name}{{fill:var(--m-{name})}}.t-{name}{{fill:var(--t-{name})}}" for name in MARKS)
    swatches = "".join(f".s-{name}{{background:var(--m-{name})}}" for name in MARKS)
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{themes['dark']}}}}}"
    return f":root{{{themes['light']}}}{dark}{classes}{swatches}"


def _variables(scheme: str) -> str:
    base = {"page": PAGE, "panel": PANEL, "ink": INK, "muted": MUTED}
    fixed = [f"--{name}:{getattr(paint, scheme)}" for name, paint in base.items()]
    marks = {name: getattr(paint, scheme) for name, paint in MARKS.items()}
    fills = [f"--m-{name}:{colour}" for name, colour in marks.items()]
    texts = [f"--t-{name}:{text_on(colour)}" for name, colour in marks.items()]
    return ";".join([*fixed, *fills, *texts])
