"""Colours: contrast against page and panels, and apart for readers who see fewer of them.

Formulas: WCAG 2.2 for contrast; Machado, Oliveira and Fernandes 2009 (severity 1) for colour blindness;
OKLab (Ottosson 2020) for distance.
"""

import math
from itertools import pairwise

import pytest

from nsys_triage.render import palette
from nsys_triage.result.model import BUSY_CAUSES, CAUSES

SCHEMES = ("light", "dark")
Rgb = tuple[float, float, float]
SIGHT = {
    "full": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294,
    0.968881)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116,
    1.051998)),
}  # fmt: skip


def linear(colour: str) -> Rgb:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return red, green, blue


def seen(colour: str, sight: str) -> Rgb:
    rgb = linear(colour)
    red, green, blue = [
        min(1.0, max(0.0, sum(m * c for m, c in zip(row, rgb, strict=True)))) for row in SIGHT[sight]
    ]
    return red, green, blue


def oklab(rgb: Rgb) -> Rgb:
    r, g, b = rgb
    long, medium, short = (
        (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3),
        (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3),
        (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3),
    )
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def distance(first: str, second: str, scheme: str, sight: str) -> float:
    colours = [getattr(palette.MARKS[name], scheme) for name in (first, second)]
    return math.dist(*(oklab(seen(colour, sight)) for colour in colours))


def test_contrast_of_black_and_white() -> None:
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", palette.MARKS)
def test_every_mark_stands_out_from_page_and_panel(name: str, scheme: str) -> None:
    colour = getattr(palette.MARKS[name], scheme)
    for ground in (palette.PAGE, palette.PANEL):
        assert palette.contrast(colour, getattr(ground, scheme)) >= 3.0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_is_readable_on_page_panel_and_marks(scheme: str) -> None:
    for ground in (palette.PAGE, palette.PANEL):
        for ink in (palette.INK, palette.MUTED):
            assert palette.contrast(getattr(ink, scheme), getattr(ground, scheme)) >= 4.5
    for paint in palette.MARKS.values():
        colour = getattr(paint, scheme)
        assert palette.contrast(palette.text_on(colour), colour) >= 4.5


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_neighbours_of_the_fixed_order_differ(scheme: str, sight: str) -> None:
    for first, second in pairwise(CAUSES):
        assert distance(first, second, scheme, sight) >= 0.06, (first, second)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_busy_and_idle_are_never_mistaken(scheme: str, sight: str) -> None:
    for busy in BUSY_CAUSES:
        for idle in CAUSES[len(BUSY_CAUSES) :]:
            assert distance(busy, idle, scheme, sight) >= 0.06, (busy, idle)


def test_every_cause_has_a_colour_and_what_is_unknown_is_plain() -> None:
    assert set(CAUSES) <= set(palette.MARKS)
    assert palette.mark("sync") == "host_sync"
    assert palette.mark("<x>") == "plain"
    assert palette.light("compute") == palette.MARKS["compute"].light


def test_the_style_sheet_has_both_schemes() -> None:
    css = palette.style()
    assert f"--m-launch:{palette.MARKS['launch'].light}" in css
    dark = css[css.index("prefers-color-scheme:dark") :]
    assert f"--m-launch:{palette.MARKS['launch'].dark}" in dark
    assert ".m-launch{fill:var(--m-launch)}" in css
