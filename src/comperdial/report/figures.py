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
from comperdial.report.few import FEW
from comperdial.report.plots.style import titled

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
# Dots an inch: what the store has room for; all figures with 200 would take 1.4 MB more. The PDF and the SVG have more.
DPI = 100
_COLOURS = 32
_MARKERS = {"pearson": ("o", "#0072b2"), "spearman": ("s", "#d55e00")}
_LEVELS = {"turn": "responses", "system": "systems"}
# More rows a panel cannot be read on a phone; the table has them.
MOST_ROWS = 25


def usr_figure(frame: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
    """Draw the USR table: ours as marks with their 95 % intervals, reported values as black ticks.

    A mark of :data:`comperdial.report.few.FEW` systems or fewer is hollow: it says little, whatever its value.

    Parameters
    ----------
    frame
        As :func:`comperdial.studies.usr.frame.usr_frame` gives it. A data set has the rows with an interval or a
        reported value, at most :data:`MOST_ROWS`, the highest Spearman over responses first.
    titles
        A title for each dataset.
    """
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    run = frame[frame["ours"].notna()]
    datasets = list(dict.fromkeys(run["dataset"]))
    rows = {dataset: _rows(run[run["dataset"] == dataset]) for dataset in datasets}
    counts = [len(labels) for labels in rows.values()]
    with mpl.rc_context(_STYLE):
        figure, axes = plt.subplots(
            len(datasets), 2, figsize=(6.6, 0.235 * sum(counts) + 0.6 * len(datasets) + 0.7), sharex="col",
            sharey="row", squeeze=False, layout="constrained", height_ratios=counts,
        )  # fmt: skip
        for line, (dataset, labels) in enumerate(rows.items()):
            height = {label: len(labels) - 1 - row for row, label in enumerate(labels)}
            for column, level in enumerate(_LEVELS):
                ax = axes[line][column]
                cells = run[(run["dataset"] == dataset) & (run["level"] == level) & run["label"].isin(labels)]
                n = cells["n"].max()
                hollow = pd.notna(n) and n <= FEW
                for shift, (coefficient, (marker, colour)) in zip((0.18, -0.18), _MARKERS.items(), strict=True):
                    points = cells[cells["coefficient"] == coefficient]
                    y = points["label"].map(height).to_numpy(dtype=float) + shift
                    known = points["low"].notna().to_numpy()
                    ax.hlines(y[known], points["low"][known], points["high"][known], color=colour, lw=1, alpha=0.75)
                    ax.plot(
                        points["ours"], y, marker, mfc="white" if hollow else colour, mec=colour, mew=1.1, ms=4.2, ls=""
                    )
                    ax.plot(points["reported"], y, "|", color="black", ms=7, mew=1.6, ls="")
                ax.axvline(0, color="0.6", lw=0.8, zorder=0)
                ax.set_ylim(-0.7, len(labels) - 0.3)
                ax.set_yticks(np.arange(len(labels)), labels[::-1])
                ax.grid(axis="y", color="0.92", lw=0.8)
                ax.set_axisbelow(True)
                many = "" if pd.isna(n) else f"{n} {_LEVELS[level]}"
                ax.set_title(f"{titles.get(dataset, dataset)}\n{many}", loc="left", fontweight="bold", fontsize=9)
                if line == len(datasets) - 1:
                    ax.set_xlabel("Correlation")
        handles = [
            Line2D([], [], marker=mark, color=colour, ms=4.2, lw=1, label=f"{name.title()}, ours")
            for name, (mark, colour) in _MARKERS.items()
        ]
        handles += [
            Line2D([], [], marker="|", color="black", ms=7, mew=1.6, ls="", label="Reported"),
            Line2D([], [], marker="o", mfc="white", mec="0.3", ms=4.2, ls="", label=f"Hollow: {FEW} systems or fewer"),
        ]
        titled(
            figure, "Metrics against human ratings", "USR",
            "The further right, the better a metric agrees with people; sorted by Spearman over responses. Bars are 95 % "
            "intervals: over the few systems they say that nearly any value is possible.",
            handles=handles,
        )  # fmt: skip
    return figure


def _rows(run: pd.DataFrame) -> list[str]:
    """Return the labels that a data set's panels show, the highest Spearman over responses first."""
    shown = run[run["low"].notna() | run["reported"].notna()]
    shown = shown if len(shown) else run
    turns = run[(run["level"] == "turn") & (run["coefficient"] == "spearman") & run["label"].isin(shown["label"])]
    order = [str(name) for name in turns.sort_values("ours", ascending=False, kind="stable")["label"]]
    # Those that are compared with a paper stay, wherever they stand.
    theirs = set(shown.loc[shown["reported"].notna(), "label"])
    rest = [name for name in order if name not in theirs][: max(0, MOST_ROWS - len(theirs & set(order)))]
    return [name for name in order if name in theirs or name in rest]


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
