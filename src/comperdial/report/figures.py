"""Writes figures as PDF, PNG and SVG, with the same bytes on every run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.core.files import form_path, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Fonts go into PDF as TrueType. SVG holds text as text, in the font that it was measured in or else the reader's own
# sans-serif, and its ids do not change from run to run.
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,
    "pdf.compression": 9,
    "font.sans-serif": ["DejaVu Sans"],
    "svg.fonttype": "none",
    "svg.hashsalt": "comperdial",
    "savefig.bbox": "tight",
}
# Neither the date nor the machine: the same bytes on every run.
_METADATA: dict[str, dict[str, Any]] = {
    ".pdf": dict.fromkeys(("CreationDate", "Producer", "Creator")),
    ".svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    ".png": {"Software": None},
}
# Dots an inch: what the store has room for; all figures with 200 would take 1.4 MB more. The PDF and the SVG have more.
DPI = 100
_COLOURS = 32


_saved: ContextVar[list[Path] | None] = ContextVar("saved", default=None)


@contextmanager
def saving() -> Iterator[list[Path]]:
    """Give a list that the stem of every figure is added to which is saved within the block."""
    stems: list[Path] = []
    token = _saved.set(stems)
    try:
        yield stems
    finally:
        _saved.reset(token)


def save(figure: Figure, stem: str | Path) -> None:
    """Write a figure as ``stem.pdf``, ``stem.png`` and ``stem.svg``, then close it.

    The PNG has :data:`DPI` and a palette. What a figure rasterises has that resolution in the PDF and the SVG too.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    with mpl.rc_context(STYLE):
        for suffix, metadata in _METADATA.items():
            with replacing(form_path(stem, suffix)) as temporary:
                figure.savefig(temporary, dpi=DPI, metadata=metadata)
                if suffix == ".png":
                    _reduce(temporary)
    plt.close(figure)
    if (stems := _saved.get()) is not None:
        stems.append(Path(stem))


def svg_text(figure: Figure) -> str:
    """Return a figure as an SVG element for a page, the same bytes on every run, and close it."""
    import io

    import matplotlib as mpl
    import matplotlib.pyplot as plt

    with mpl.rc_context(STYLE), io.StringIO() as file:
        figure.savefig(file, format="svg", metadata=_METADATA[".svg"])
        text = file.getvalue()
    plt.close(figure)
    return text[text.index("<svg") :]


def _reduce(path: Path) -> None:
    """Write a picture anew with a palette of few colours, on white: a third of the bytes."""
    from PIL import Image

    with Image.open(path) as opened:
        resolution = opened.info["dpi"]
        layered = opened.convert("RGBA")
    picture = Image.new("RGB", layered.size, "white")
    picture.paste(layered, mask=layered.getchannel("A"))
    # One round of k-means: without it, edges of letters get colours that are off.
    reduced = picture.quantize(_COLOURS, method=Image.Quantize.MEDIANCUT, kmeans=1, dither=Image.Dither.NONE)
    reduced.save(path, "PNG", optimize=True, dpi=resolution)
