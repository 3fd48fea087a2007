"""Switch ASICs by name: what is known of each, with its source.

What the sources do not give is None, never guessed. "SONiC" is the device folder of
sonic-net/sonic-buildimage (commit 086b03bd, 2026-08); its pools say what a switch really hands out,
which is a little less than the buffer on the data sheet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AsicName = Literal[
    "spectrum2", "spectrum3", "spectrum4", "tomahawk3", "tomahawk4", "tomahawk5", "trident3"
]


@dataclass(frozen=True)
class Asic:
    """A switch ASIC.

    Attributes:
        name: as people call it.
        capacity_gbps: switching capacity, one direction.
        ports: typical number and rate of ports, such as "64x800G"; None: not known.
        buffer_bytes: packet buffer.
        cell_bytes: unit in which the buffer is allocated.
        dynamic_th: default of lossless classes, alpha = 2^dynamic_th; None: not known.
        source: of buffer, cell and dynamic_th.
        has_tiles: whether SONiC's headroom rule adds its tile buffer; None: the rule does not hold.
    """

    name: str
    capacity_gbps: float
    ports: str | None
    buffer_bytes: int
    cell_bytes: int
    dynamic_th: int | None
    source: str
    has_tiles: bool | None = None

    @property
    def alpha(self) -> float | None:
        """Dynamic threshold factor of lossless classes; None: not known."""
        return None if self.dynamic_th is None else 2.0**self.dynamic_th


ASICS: dict[AsicName, Asic] = {
    "spectrum2": Asic(
        "NVIDIA Spectrum-2",
        6_400,
        None,
        42_000_000,
        144,
        0,
        "42 MB as commonly quoted, not confirmed; cell: SONiC asic_table; dynamic_th: SONiC SN3700",
        has_tiles=False,
    ),
    "spectrum3": Asic(
        "NVIDIA Spectrum-3",
        12_800,
        None,
        60_817_392,
        144,
        0,
        "SONiC SN4600C, egress lossless pool (64 MB as quoted); cell: SONiC asic_table",
        has_tiles=False,
    ),
    "spectrum4": Asic(
        "NVIDIA Spectrum-4",
        51_200,
        None,
        158_229_504,
        192,
        0,
        "SONiC SN5600, egress lossless pool (160 MB as quoted); cell: SONiC asic_table",
        has_tiles=True,
    ),
    "tomahawk3": Asic(
        "Broadcom Tomahawk 3",
        12_800,
        "32x400G",
        264_242 * 254,
        254,
        -2,
        "SONiC Z9332F: static_th of 264,242 cells, that is 64 MiB, dynamic_th -2",
    ),
    "tomahawk4": Asic(
        "Broadcom Tomahawk 4",
        25_600,
        "64x400G",
        113_620_296,
        254,
        0,
        "SONiC Z9664F, egress lossless pool with its headroom, dynamic_th 0",
    ),
    "tomahawk5": Asic(
        "Broadcom Tomahawk 5",
        51_200,
        "64x800G",
        165_660_324,
        254,
        0,
        "SONiC 7060X6-64PE, lossless pool with its headroom, dynamic_th 0",
    ),
    "trident3": Asic(
        "Broadcom Trident 3",
        3_200,
        "32x100G",
        32_000_000,
        256,
        -3,
        "32 MB and cell as commonly quoted, not confirmed (SONiC's DS3000 makes 12.8 MB of it "
        "lossless); dynamic_th: SONiC DS3000",
    ),
}
