"""A drawing surface for diagrams: boxes, speech bubbles and arrows, all measured in inches.

So a size of type means what it says. Every box fits its text: the type gets smaller until it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.text import Text

# Okabe and Ito's colours, which differ for colour-blind readers too: (edge, fill). Letters say the same again.
GOLD = ("#0072b2", "#d6e8f4")
PERSON = ("#8a4f7d", "#f3dfec")
SYSTEM = ("#b56a00", "#fce8c3")
SCORE = ("#00694d", "#cdebe0")
PLAIN = ("#666666", "#ffffff")
_INK = "#1a1a1a"
_PANEL = "#f4f5f6"
_PAD = 0.06
_SMALLEST = 5.0


class Canvas:
    """A figure measured in inches, with boxes, speech bubbles and arrows.

    A box or bubble and its texts carry related ids (``box-1``; ``box-1-text-1``), which SVG keeps and tests go by.
    """

    def __init__(self, width: float, height: float) -> None:
        import matplotlib as mpl

        mpl.use("agg")
        import matplotlib.pyplot as plt

        self.figure = plt.figure(figsize=(width, height))
        self.ax = self.figure.add_axes((0, 0, 1, 1))
        self.ax.set_xlim(0, width)
        self.ax.set_ylim(0, height)
        self.ax.axis("off")
        self._boxes = 0

    def path(self, vertices: Sequence[tuple[float, float]], codes: Sequence[int], **style: Any) -> None:  # noqa: ANN401
        """Draw a closed path."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        self.ax.add_patch(PathPatch(Path(np.array([*vertices, vertices[0]]), [*codes, int(Path.CLOSEPOLY)]), **style))

    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        *texts: str,
        colour: tuple[str, str] = PLAIN,
        size: float = 8,
        big: float | None = None,
        tail: str = "",
        ink: str = _INK,
    ) -> None:
        """Draw a rounded box with its lower left corner at (x, y); the first of several texts is its heading.

        ``big`` is the heading's size of type if it is not the text's; ``tail`` (left or right) makes a speech bubble.
        """
        self._boxes += 1
        name = f"box-{self._boxes}"
        self._outline(x, y, w, h, tail, gid=name, facecolor=colour[1], edgecolor=colour[0], lw=1, joinstyle="round")
        sizes = [big or size, *(size for _ in texts[1:])][: len(texts)]
        weights = ["bold" if n == 0 and len(texts) > 1 else "normal" for n in range(len(texts))]
        drawn = [
            self.ax.text(
                x + w / 2, y, text, fontsize=s, fontweight=weight, color=ink, ha="center", va="bottom",
                linespacing=1.15, gid=f"{name}-text-{n}", parse_math=False,
            )
            for n, (text, s, weight) in enumerate(zip(texts, sizes, weights, strict=True), start=1)
        ]  # fmt: skip
        self._place(drawn, y, w - 2 * _PAD, h - 2 * _PAD)

    def _place(self, texts: list[Text], y: float, w: float, h: float) -> None:
        """Make the texts small enough for a width and height, and stack them in its middle."""
        gap = 0.04
        while True:
            sizes = [self._measure(text) for text in texts]
            total = sum(height for _, height in sizes) + gap * (len(texts) - 1)
            largest = max((float(text.get_fontsize()) for text in texts), default=0.0)
            # What is too wide gets smaller; what is only too high together, from the largest down.
            wide = [text for text, (width, _) in zip(texts, sizes, strict=True) if width > w]
            high = [text for text in texts if total > h and float(text.get_fontsize()) == largest]
            shrink = [text for text in wide or high if float(text.get_fontsize()) > _SMALLEST]
            if not shrink:
                break
            for text in shrink:
                text.set_fontsize(float(text.get_fontsize()) - 0.25)
        top = y + _PAD + (h + total) / 2
        for text, (_, height) in zip(texts, sizes, strict=True):
            top -= height
            text.set_y(top)
            top -= gap

    def _measure(self, text: Text) -> tuple[float, float]:
        extent = text.get_window_extent(self.figure.canvas.get_renderer())  # type: ignore[attr-defined]
        return extent.width / self.figure.dpi, extent.height / self.figure.dpi

    def _outline(self, x: float, y: float, w: float, h: float, tail: str, **style: Any) -> None:  # noqa: ANN401
        from matplotlib.path import Path

        r = min(0.09, h / 2, w / 2)
        right, top = x + w, y + h
        bottom: list[tuple[float, float]] = [(x + r, y)]
        if tail == "left":
            bottom += [(x + r + 0.02, y), (x + r - 0.02, y - 0.09), (x + r + 0.14, y)]
        if tail == "right":
            bottom += [(right - r - 0.14, y), (right - r + 0.02, y - 0.09), (right - r - 0.02, y)]
        bottom.append((right - r, y))
        corners = [
            *((right, y), (right, y + r)), (right, top - r), *((right, top), (right - r, top)), (x + r, top),
            *((x, top), (x, top - r)), (x, y + r), *((x, y), (x + r, y)),
        ]  # fmt: skip
        curve = [Path.CURVE3, Path.CURVE3, Path.LINETO]
        codes = [Path.MOVETO, *(Path.LINETO for _ in bottom[1:]), *curve, *curve, *curve, *curve[:2]]
        self.path([*bottom, *corners], [int(code) for code in codes], **style)

    def bubble(self, x: float, y: float, w: float, speaker: str, colour: tuple[str, str], text: str = "") -> None:
        """Draw an utterance: a speech bubble that says who speaks and, where it is given, what it is."""
        tail = "left" if speaker == "A" else "right"
        self.box(x, y, w, 0.27, f"{speaker}: {text}" if text else speaker, colour=colour, size=7.5, tail=tail)

    def bar(self, x: float, y: float, w: float, h: float, colour: tuple[str, str]) -> None:
        """Draw an utterance too small for text."""
        self._outline(x, y, w, h, "", facecolor=colour[1], edgecolor=colour[0], lw=0.7)

    def label(self, x: float, y: float, text: str, **style: Any) -> None:  # noqa: ANN401
        """Write a text at a place, in its middle unless said otherwise."""
        given = {"fontsize": 8, "ha": "center", "va": "center", "color": _INK, "parse_math": False, "linespacing": 1.15}
        self.ax.text(x, y, text, **{**given, **style})

    def arrow(self, start: tuple[float, float], end: tuple[float, float], colour: str = "#444444") -> None:
        """Draw an arrow."""
        from matplotlib.patches import FancyArrowPatch

        self.ax.add_patch(
            FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, lw=1.1, color=colour, shrinkA=0, shrinkB=0)
        )

    def bracket(self, x: float, low: float, high: float, colour: str) -> None:
        """Draw a bracket that opens to the left, from ``low`` to ``high``."""
        self.ax.plot([x - 0.07, x, x, x - 0.07], [low, low, high, high], color=colour, lw=1.2, solid_joinstyle="miter")

    def chevron(self, x: float, y: float, w: float, h: float, text: str, colour: str) -> None:
        """Draw a step of a process: a dark arrow-like band with white type on it."""
        self._boxes += 1
        name, point = f"box-{self._boxes}", 0.11
        vertices = [(x, y), (x + w - point, y), (x + w, y + h / 2), (x + w - point, y + h), (x, y + h)]
        self.path([*vertices, (x + point, y + h / 2)], [1, 2, 2, 2, 2, 2], gid=name, facecolor=colour, edgecolor="none")
        drawn = self.ax.text(
            x + w / 2, y, text, fontsize=8.5, fontweight="bold", color="white", ha="center", va="bottom",
            gid=f"{name}-text-1", parse_math=False,
        )  # fmt: skip
        self._place([drawn], y, w - 2 * point - _PAD, h - 2 * _PAD)

    def panel(self, x: float, y: float, w: float, h: float) -> None:
        """Draw the quiet ground that a step or a technique stands on."""
        self._outline(x, y, w, h, "", facecolor=_PANEL, edgecolor="none", zorder=0)
