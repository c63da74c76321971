"""Ranks side by side: a strip of cells filled by share."""

from collections.abc import Sequence
from dataclasses import dataclass

from nsys_triage.render.charts.scale import percent

CELL_HEIGHT = 34
LABEL = 16
SPACE = 24  # a cell's share stands below it
WIDEST = 9.0  # percent of the width that one of few ranks takes


@dataclass(frozen=True, slots=True)
class Cell:
    """One rank in one row: filled from below up to its share; `y` and `height` of the fill in pixels."""

    rank: int
    x: float
    width: float
    y: float
    height: float
    share: float

    @property
    def middle(self) -> float:
        """Where the label stands."""
        return round(self.x + self.width / 2, 3)


@dataclass(frozen=True, slots=True)
class CellRow:
    """One quantity over all ranks."""

    label: str
    key: str
    top: float
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class HeatStrip:
    """Rows of cells, one cell per rank, all on the scale 0..1."""

    rows: list[CellRow]
    height: float
    ranks: list[int]
    label_every: int
    pitch: float
    cell_height: int = CELL_HEIGHT


def heat_strip(
    ranks: Sequence[int], rows: Sequence[tuple[str, str, Sequence[float | None]]]
) -> HeatStrip | None:
    """The strip; a row is (label, key, a share per rank or None). None without ranks or rows."""
    if not ranks or not rows:
        return None
    pitch = min(WIDEST, 100 / len(ranks))
    gap = min(0.4, pitch * 0.12)
    placed = []
    for number, (label, key, shares) in enumerate(rows):
        top = number * (LABEL + CELL_HEIGHT + SPACE) + LABEL
        cells = [
            _cell(rank, place * pitch + gap / 2, pitch - gap, top, share)
            for place, (rank, share) in enumerate(zip(ranks, shares, strict=True))
            if share is not None
        ]
        placed.append(CellRow(label, key, float(top), cells))
    height = len(rows) * (LABEL + CELL_HEIGHT + SPACE)
    return HeatStrip(placed, float(height), list(ranks), max(1, -(-len(ranks) // 16)), pitch)


def _cell(rank: int, x: float, width: float, top: int, share: float) -> Cell:
    size = round(CELL_HEIGHT * percent(share, 0, 1) / 100, 1)
    return Cell(rank, round(x, 3), round(width, 3), round(top + CELL_HEIGHT - size, 1), size, share)
