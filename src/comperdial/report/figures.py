"""The study's figures, drawn from tidy frames; PDF, PNG and SVG with the same bytes on every run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.core.files import form_path, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Fonts go into PDF as TrueType. SVG holds text as text, in the font that it was measured in or else the reader's own
# sans-serif, and its ids do not change from run to run.
_STYLE: dict[Any, Any] = {
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
# Dots an inch: 950 in the width of a page. The PDF and the SVG have what is finer.
DPI = 100
_COLOURS = 64
_MARKERS = {"pearson": ("o", "#0072b2"), "spearman": ("s", "#d55e00")}
_LEVELS = {"turn": "Turn level", "system": "System level"}


def usr_figure(frame: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
    """Draw the USR table: ours as filled marks, reported values as open rings around them.

    Parameters
    ----------
    frame
        As :func:`comperdial.studies.usr.frame.usr_frame` gives it; rows that were not run are left out.
        A data set has the rows that have a value on it.
    titles
        A title for each dataset.
    """
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    run = frame[frame["ours"].notna()]
    datasets = list(dict.fromkeys(run["dataset"]))
    rows = {dataset: list(dict.fromkeys(run.loc[run["dataset"] == dataset, "label"])) for dataset in datasets}
    counts = [len(labels) for labels in rows.values()]
    with mpl.rc_context(_STYLE):
        figure, axes = plt.subplots(
            len(datasets), 2, figsize=(8.6, 0.27 * sum(counts) + 1.4), sharex="col", sharey="row",
            squeeze=False, layout="constrained", height_ratios=counts,
        )  # fmt: skip
        for line, (dataset, labels) in enumerate(rows.items()):
            height = {label: len(labels) - 1 - row for row, label in enumerate(labels)}
            for column, level in enumerate(_LEVELS):
                ax = axes[line][column]
                cells = run[(run["dataset"] == dataset) & (run["level"] == level)]
                for shift, (coefficient, (marker, colour)) in zip((0.18, -0.18), _MARKERS.items(), strict=True):
                    points = cells[cells["coefficient"] == coefficient]
                    y = points["label"].map(height).to_numpy(dtype=float) + shift
                    reported = points["reported"].notna().to_numpy()
                    ax.plot(
                        points["ours"], y, marker, color=colour, ms=4.5, ls="", label=f"{coefficient.title()}, ours"
                    )
                    ax.plot(
                        points["reported"][reported], y[reported], marker, mfc="none", mec="black", ms=8.5, mew=1,
                        ls="", label=f"{coefficient.title()}, reported",
                    )  # fmt: skip
                ax.axvline(0, color="0.6", lw=0.8, zorder=0)
                ax.set_ylim(-0.7, len(labels) - 0.3)
                ax.set_yticks(np.arange(len(labels)), labels[::-1])
                ax.grid(axis="y", color="0.92", lw=0.8)
                ax.set_axisbelow(True)
                ax.set_title(f"{titles.get(dataset, dataset)}: {_LEVELS[level].lower()}", loc="left", fontweight="bold")
                if line == len(datasets) - 1:
                    ax.set_xlabel(f"Correlation with rating ({run['target'].iloc[0]})")
        handles, names = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    return figure


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

    with mpl.rc_context(_STYLE):
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

    with mpl.rc_context(_STYLE), io.StringIO() as file:
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
