"""Style of all figures: colours that differ in lightness, markers that differ in shape, titles, and saving."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.core.files import form_path, replacing, write_text
from comperdial.report.render import SIMULATED

# matplotlib takes half a second to import, and studies import this module for tables too.
if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, each with its own marker and line style, which remain distinct in greyscale.
SERIES: Sequence[dict[str, Any]] = [
    {"color": "#0072b2", "marker": "o", "ls": "-"},
    {"color": "#d55e00", "marker": "s", "ls": "--"},
    {"color": "#009e73", "marker": "^", "ls": "-."},
    {"color": "#cc79a7", "marker": "D", "ls": ":"},
    {"color": "#e69f00", "marker": "v", "ls": (0, (5, 1, 1, 1, 1, 1))},
    {"color": "#56b4e9", "marker": "P", "ls": (0, (1, 2))},
    {"color": "#000000", "marker": "X", "ls": (0, (7, 3))},
]
INK, QUIET = "#1a1a1a", "#b4b4b4"
# A palette makes a PNG a third as large.
PALETTE = 64
# Omit date and program, for reproducible bytes.
_METADATA: dict[str, dict[str, Any]] = {
    ".pdf": dict.fromkeys(("CreationDate", "Producer", "Creator")),
    ".svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
}


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in the style of ``comperdial.mplstyle``, ignoring the user's settings."""
    import matplotlib as mpl

    with mpl.rc_context(fname=Path(__file__).with_name("comperdial.mplstyle")):
        yield


def figure_and_axes(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:  # noqa: ANN401
    """Return a figure of a size in inches with a two-dimensional grid of axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def panels(
    titles: Iterable[str],
    most: int,
    width: float,
    height: float,
    **options: Any,  # noqa: ANN401
) -> tuple[Figure, list[Axes]]:
    """Return a figure with axes for each title, at most ``most`` per row, each of a size in inches."""
    names = list(titles)
    columns = min(most, len(names))
    rows = -(-len(names) // columns)
    figure, axes = figure_and_axes(rows, columns, (width * columns, height * rows), **options)
    for ax, title in zip(axes.flat, names, strict=False):
        ax.set_title(title)
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    for ax in axes.flat[max(0, len(names) - columns) : len(names)]:
        # The lowest panel in its column, even if above an empty position.
        ax.tick_params(labelbottom=True)
    return figure, list(axes.flat[: len(names)])


# Numbers and colours


def short(value: float) -> str:
    """Format a coefficient with two digits and no leading zero; a dash if missing."""
    if np.isnan(value):
        return "–"
    text = f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−")
    return text.replace("0.", ".", 1) if text.lstrip("−").startswith("0.") else text


def interval(low: float, high: float) -> str:
    """Format an interval with :func:`short`; empty if missing."""
    return "" if np.isnan(low) or np.isnan(high) else f"{short(low)}, {short(high)}"


def colours_of(values: Any, *, most: float = 1.0) -> Any:  # noqa: ANN401
    """Return a colour scale from the lowest coefficient or 0 to ``most``: lighter means higher."""
    import matplotlib as mpl
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    lowest = float(np.floor(np.nanmin(values) * 10) / 10)
    # Perceptually uniform; its darkest part would make text unreadable.
    colours = ListedColormap(mpl.colormaps["cividis"](np.arange(30, 256)))
    return ScalarMappable(Normalize(min(0.0, lowest), max(most, float(np.nanmax(values)))), colours)


def ink_on(colour: Sequence[float]) -> str:
    """Return black or white, whichever contrasts more with a colour (WCAG 2.1, relative luminance)."""
    parts = np.asarray(colour[:3], dtype=np.float64)
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ np.array([0.2126, 0.7152, 0.0722]))
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"


def colour_bar(figure: Figure, scale: Any, label: str, **options: Any) -> None:  # noqa: ANN401
    """Draw the bar of a colour scale."""
    bar = figure.colorbar(scale, **options)
    bar.set_label(label)
    bar.outline.set_visible(False)


# Parts of figures: dots with intervals, rows of them, and heat maps


def handle(label: str, **style: Any) -> Any:  # noqa: ANN401
    """Return a line or marker for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **{"ms": 4.5, **style})


def columns_of_marks(ax: Axes, x: Any, rows: pd.DataFrame, **style: Any) -> None:  # noqa: ANN401
    """Draw ``value`` of each row at position ``x`` with its interval, ``low`` to ``high``."""
    ax.vlines(x, rows["low"], rows["high"], color=style["color"], lw=1.1, zorder=2)
    ax.plot(x, rows["value"], **{"ms": 4.0, "ls": "", "zorder": 3, **style})


def marks(ax: Axes, rows: pd.DataFrame, y: pd.Series, **style: Any) -> None:  # noqa: ANN401
    """Draw ``value`` of each row at a height with its interval, ``low`` to ``high``."""
    ax.hlines(y, rows["low"], rows["high"], color=style["color"], lw=1.1, zorder=2)
    ax.plot(rows["value"], y, **{"ms": 4.5, "zorder": 3, **style, "ls": ""})


def rows_of(ax: Axes, names: pd.Series, labels: Sequence[str]) -> pd.Series:
    """Label the rows of a figure, the first at the top, and return the height of each name."""
    ax.set_yticks(range(len(labels)), list(labels)[::-1])
    ax.set_ylim(-0.7, len(labels) - 0.3)
    return len(labels) - 1 - names.map(list(labels).index)


def forest(ax: Axes, rows: pd.DataFrame, order: Sequence[str], *, chance: float = 0.0) -> pd.Series:
    """Draw values with intervals, one line per ``label``; return the heights of the lines.

    ``style`` is the index of a row's marker in SERIES; an optional column ``shift`` moves a marker up from its line.
    """
    ax.axvline(chance, color=QUIET, lw=0.8, zorder=1)
    ax.grid()
    y = rows_of(ax, rows["label"], order)
    for style, own in rows.groupby("style"):
        marks(ax, own, (y + rows.get("shift", 0))[own.index], **SERIES[int(str(style))])
    return y


def logarithmic(ax: Axes, steps: Sequence[float]) -> None:
    """Make the x axis logarithmic, with plain numbers at some steps of each power of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=steps))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def tiles(
    ax: Axes,
    cells: Iterable[tuple[float, float, float, str, str]],
    scale: Any,  # noqa: ANN401
    *,
    size: float = 7.0,
) -> None:
    """Draw a frameless matrix: cells of x, y, value, text and a small second line of text, coloured by ``scale``.

    Cells without a value are white.
    """
    from matplotlib.patches import Rectangle

    xs, ys = [], []
    for x, y, value, text, below in cells:
        xs.append(x)
        ys.append(y)
        face: Any = "#ffffff" if np.isnan(value) else scale.to_rgba(value)
        style: dict[str, Any] = {"ha": "center", "va": "center"}
        style["color"] = "#777777" if np.isnan(value) else ink_on(face)
        ax.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, facecolor=face))
        ax.text(x, y - (0.16 if below else 0), text, fontsize=size, **style)
        ax.text(x, y + 0.24, below, fontsize=0.73 * size, **style)
    ax.set_xlim(min(xs) - 0.55, max(xs) + 0.55)
    ax.set_ylim(max(ys) + 0.55, min(ys) - 0.55)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def titled(
    figure: Figure,
    heading: str,
    title: str,
    notes: str,
    *,
    simulated: bool = False,
    handles: Sequence[Any] = (),
    columns: int = 4,
) -> None:
    """Put the content and the data set above a figure; the legend and notes below it.

    For SIMULATED data, both texts say so. They are also the figure's alternative text.
    """
    name = f"{title} (SIMULATED)" if simulated and "SIMULATED" not in title else title
    text = f"{notes} {SIMULATED}".strip() if simulated else notes
    width, height = figure.get_size_inches() * 72
    # Text wider than the figure would enlarge the picture and shrink its content. A character is slightly more than half as
    # wide as high.
    heading = f"{heading}: {name}"
    figure.suptitle(textwrap.fill(heading, max(30, int(width / 6.2))), x=0.0, ha="left", fontsize=10, fontweight="bold")
    below = 6.0
    if handles:
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, -3.6 / height)}
        figure.legend(handles=list(handles), ncols=columns, **place)
        below += 3.6 + 12.2 * -(-len(handles) // columns)
    wrapped = textwrap.fill(text, int(width / 4.24))
    figure.text(0.0, -below / height, wrapped, va="top", fontsize=8, color="#333333", linespacing=1.25)
    figure.set_label(f"{heading}. {text}")


# Files


def save(figure: Figure, frame: pd.DataFrame, stem: str | Path, *, simulated: bool = False) -> None:
    """Write a figure as PDF, PNG (200 dpi) and SVG, and its numbers as CSV (4 significant digits).

    The SVG has the figure's alternative text as its title.
    """
    from PIL import Image

    with drawing():
        # The layout solver differs in the last digits from run to run.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for ax in figure.axes:
            left, bottom, width, height = np.round(ax.get_position(original=True).bounds, 6).tolist()
            ax.set_position((left, bottom, width, height))
        for suffix, metadata in _METADATA.items():
            named = {"Title": figure.get_label()} if suffix == ".svg" else {}
            with replacing(form_path(stem, suffix)) as temporary:
                figure.savefig(temporary, metadata=metadata | named)
        with io.BytesIO() as file, replacing(form_path(stem, ".png")) as temporary:
            figure.savefig(file, format="png")
            with Image.open(file) as picture:
                # One round of k-means; without it, edges of letters get wrong colours.
                reduced = picture.convert("RGB").quantize(PALETTE, kmeans=1, dither=Image.Dither.NONE)
                reduced.save(temporary, "PNG", optimize=True, dpi=picture.info["dpi"])
    tidy = frame.assign(simulated=True) if simulated else frame.copy(deep=False)
    for name in tidy.select_dtypes("float").columns:
        # Counts are not rounded.
        tidy[name] = tidy[name].map(lambda value: float(f"{value:.4g}") if value % 1 else value, na_action="ignore")
    write_text(form_path(stem, ".csv"), tidy.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def svg_text(figure: Figure) -> str:
    """Convert a figure, of this module or pyplot, to an SVG element for a page, and close it."""
    import matplotlib.pyplot as plt

    with drawing(), io.StringIO() as file:
        figure.savefig(file, format="svg", metadata=_METADATA[".svg"])
        text = file.getvalue()
    # A notebook would show figures that pyplot holds open again.
    plt.close(figure)
    return text[text.index("<svg") :]
