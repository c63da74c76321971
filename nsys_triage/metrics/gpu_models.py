"""What is known of GPU models beside what the trace records: limits of an SM, and the link to the host."""

import re
from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.trace.model import Schema

SM_LIMITS_SCHEMA: Final[Schema] = {
    "compute_major": pl.Int32,
    "compute_minor": pl.Int32,
    "max_warps_per_sm": pl.Int32,
    "max_blocks_per_sm": pl.Int32,
    "max_registers_per_sm": pl.Int32,
    "max_shared_per_sm_bytes": pl.Int64,
}
SM_LIMITS: Final = pl.DataFrame(
    [
        (5, 0, 64, 32, 65_536, 65_536),
        (5, 2, 64, 32, 65_536, 98_304),
        (6, 0, 64, 32, 65_536, 65_536),
        (6, 1, 64, 32, 65_536, 98_304),
        (7, 0, 64, 32, 65_536, 98_304),
        (7, 2, 64, 32, 65_536, 98_304),
        (7, 5, 32, 16, 65_536, 65_536),
        (8, 0, 64, 32, 65_536, 167_936),
        (8, 6, 48, 16, 65_536, 102_400),
        (8, 7, 48, 16, 65_536, 167_936),
        (8, 9, 48, 24, 65_536, 102_400),
        (9, 0, 64, 32, 65_536, 233_472),
        (10, 0, 64, 32, 65_536, 233_472),
        (10, 3, 64, 32, 65_536, 233_472),
        (11, 0, 48, 24, 65_536, 233_472),
        (12, 0, 48, 24, 65_536, 102_400),
        (12, 1, 48, 24, 65_536, 102_400),
    ],
    schema=SM_LIMITS_SCHEMA,
    orient="row",
)
"""Limits of one SM by compute capability, for traces that do not record them (CUDA programming guide)."""

OLD_MODELS: Final[tuple[tuple[str, int, int, int], ...]] = (
    (r"\bP100\b", 6, 0, 56),
    (r"\bV100\b", 7, 0, 80),
    (r"\bT4\b", 7, 5, 40),
    (r"\bA100\b", 8, 0, 108),
)
"""Name pattern, compute capability, number of SMs, for captures of about 2020, which kept only the name."""

SUB_PARTITIONS: Final = 4
"""Parts of an SM with register files of their own; compute capability 6.0 has two."""


@dataclass(frozen=True, slots=True)
class Link:
    """The link between a GPU and its host: bytes per second in one direction."""

    name: str
    bytes_per_s: float


def _pcie(generation: int, giga_transfers: float) -> Link:
    """Link of 16 lanes with 128b/130b encoding (PCIe 3.0 to 5.0)."""
    return Link(f"PCIe {generation}.0 x16", giga_transfers * 1e9 * 16 / 8 * 128 / 130)


PCIE_3: Final = _pcie(3, 8)
PCIE_4: Final = _pcie(4, 16)
PCIE_5: Final = _pcie(5, 32)
NVLINK_C2C: Final = Link("NVLink-C2C", 450e9)

PRACTICAL_SHARE: Final = 0.8
"""What large copies from and to pinned memory reach of a PCIe link.

A packet carries 128 to 256 bytes of payload with 20 to 28 bytes of header, sequence number and checksum:
82 to 93 % is the ceiling; acknowledgements and flow control take some of that. NVIDIA's bandwidthTest
shows 12 to 13 GB/s on PCIe 3.0 x16 (of 15.8), 25 to 26 on 4.0 (of 31.5), 52 to 55 on 5.0 (of 63.0).
"""

# Models as sold with 16 lanes to the host. Those with fewer are left out, and so are mobile ones, whose link
# is the maker's choice, and everything whose link depends on the board.
_UNKNOWN: Final = re.compile(
    r"laptop|mobile|max-q|\bMX\d|RTX (3050|4060|5050|5060)\b|RTX 2000 Ada|RTX A(1000|2000)\b", re.I
)
_LINKS: Final[tuple[tuple[Link, re.Pattern[str]], ...]] = tuple(
    (link, re.compile(pattern, re.I))
    for link, pattern in (
        (NVLINK_C2C, r"\bG[HB](200|300)\b"),
        (PCIE_5, r"\b(H100|H200|H800|H20|B100|B200)\b|RTX 50[789]0|RTX PRO [56]000 Blackwell"),
        (
            PCIE_4,
            r"\b(A100|A800|A30|A40|A10|L4|L20|L40S?|PG509|PG506)\b|RTX (30[6-9]0|40[789]0)|RTX A[456]\d00",
        ),
        (PCIE_4, r"RTX [456]\d00 Ada"),
        (PCIE_3, r"\b(V100|P100|P40|P4|T4|M40|M60)\b|RTX 20[678]0|GTX (9|10|16)\d0|TITAN|Quadro (RTX|GV|GP)"),
    )
)


def host_link(name: str | None) -> Link | None:
    """Link of a GPU of that name to its host, None where the name does not tell.

    The link as the model supports it: a slot with fewer lanes or of an older generation gives less, and a
    Power9 host reaches a V100 over NVLink. So it is an expectation to compare with, not a measurement.
    """
    if name is None or _UNKNOWN.search(name):
        return None
    return next((link for link, pattern in _LINKS if pattern.search(name)), None)
