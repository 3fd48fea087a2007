"""Drawing with Pillow at twice the size, which is then halved: smooth lines, and fast."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

WIDTH, HEIGHT = 1280, 720
SCALE = 2

Color = tuple[int, int, int]

INK: Color = (28, 32, 40)
SOFT: Color = (110, 116, 128)
FAINT: Color = (222, 226, 232)
PAPER: Color = (255, 255, 255)
PAUSED: Color = (214, 20, 40)
MIXED: Color = (150, 150, 150)

TENANTS: tuple[Color, ...] = (
    (0, 114, 178),
    (230, 159, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (128, 80, 30),
    (240, 228, 66),
    (90, 60, 160),
)
"""The first are of Okabe and Ito, told apart by most colour-blind people; red is for pauses."""

_IDLE, _BUSY = np.array((224, 228, 234)), np.array((20, 20, 60))


def tenant_color(index: int) -> Color:
    """Repeats after eight."""
    return TENANTS[index % len(TENANTS)]


def use_color(share: float) -> Color:
    """Of a link that is used for this share of its rate."""
    share = min(max(share, 0.0), 1.0)
    mixed = (_IDLE + (_BUSY - _IDLE) * share).astype(int)
    return int(mixed[0]), int(mixed[1]), int(mixed[2])


def pillow() -> Any:
    """The package's modules Image, ImageDraw and ImageFont.

    Raises:
        DependencyNotInstalled: names what to install.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise DependencyNotInstalled(
            'rgb_array needs Pillow: pip install "roce-gym[report]"'
        ) from error
    return Image, ImageDraw, ImageFont


@cache
def _font(size: float) -> Any:
    _, _, fonts = pillow()
    return fonts.load_default(size * SCALE)


@lru_cache(maxsize=4096)
def _stamp(text: str, size: float, anchor: str) -> tuple[Any, int, int]:
    """A text's mask and where its upper left corner is, from the anchor: drawn once, used often."""
    images, drawing, _ = pillow()
    left, top, right, bottom = (round(v) for v in _font(size).getbbox(text, anchor=anchor))
    mask = images.new("L", (max(1, right - left + 2), max(1, bottom - top + 2)))
    drawing.Draw(mask).text((-left, -top), text, 255, _font(size), anchor)
    return mask, left, top


class Canvas:
    """A white picture; coordinates are pixels of the result, from the upper left corner."""

    def __init__(self) -> None:
        images, drawing, _ = pillow()
        self._image = images.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), PAPER)
        self._draw = drawing.Draw(self._image)

    def line(self, points: list[tuple[float, float]], color: Color, width: float = 1.0) -> None:
        """Through all points."""
        flat = [(x * SCALE, y * SCALE) for x, y in points]
        self._draw.line(flat, color, max(1, round(width * SCALE)), joint="curve")

    def box(
        self,
        corners: tuple[float, float, float, float],
        fill: Color | None = None,
        outline: Color | None = None,
        width: float = 1.0,
    ) -> None:
        """Left, top, right, bottom."""
        left, top, right, bottom = (value * SCALE for value in corners)
        if right > left and bottom > top:
            self._draw.rectangle(
                (left, top, right, bottom), fill, outline, max(1, round(width * SCALE))
            )

    def dot(self, x: float, y: float, radius: float, color: Color) -> None:
        """A filled circle."""
        x, y, radius = x * SCALE, y * SCALE, radius * SCALE
        self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), color)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 12,
        color: Color = INK,
        anchor: str = "lm",
        room: float | None = None,
    ) -> None:
        """With Pillow's anchors (l, m, r; m is the middle); cut off where there is no room."""
        font = _font(size)
        if room is not None and font.getlength(text) > room * SCALE:
            while text and font.getlength(text + "...") > room * SCALE:
                text = text[:-1]
            text += "..."
        mask, left, top = _stamp(text, size, anchor)
        self._image.paste(color, (round(x * SCALE) + left, round(y * SCALE) + top), mask)

    def pixels(self) -> NDArray[np.uint8]:
        """Shape (HEIGHT, WIDTH, 3), uint8."""
        return np.array(self._image.reduce(SCALE), np.uint8)
