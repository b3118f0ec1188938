"""What the figures share: colours that differ in lightness, marks that differ in shape, titles, and saving."""

from __future__ import annotations

import html
import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.core.files import form_path, read_text, replacing, write_text
from comperdial.report.render import SIMULATED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# Okabe and Ito's colours, each with a mark and a line of its own: shapes differ where grey paper makes colours alike.
SERIES = (
    ("#0072b2", "o", "-"),
    ("#d55e00", "s", "--"),
    ("#009e73", "^", "-."),
    ("#cc79a7", "D", ":"),
    ("#e69f00", "v", (0, (5, 1, 1, 1, 1, 1))),
    ("#56b4e9", "P", (0, (1, 2))),
    ("#000000", "X", (0, (7, 3))),
)
INK, QUIET = "#1a1a1a", "#b4b4b4"
# Dots an inch of PNGs, and of what PDF and SVG rasterise: all figures with 200 would take 1.4 MB more of the store.
DPI = 100
_COLOURS = 32
# Neither the date nor the machine: the same bytes on every run.
_METADATA: dict[str, dict[str, Any]] = {
    ".pdf": dict.fromkeys(("CreationDate", "Producer", "Creator")),
    ".svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    ".png": {"Software": None},
}


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in this block without a display, in the style of ``comperdial.mplstyle``."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("agg")
    with plt.style.context(Path(__file__).with_name("comperdial.mplstyle")):
        yield


def sequential() -> Colormap:
    """Return the map from dark (low) to light (high): perceptually uniform, so that lightness alone keeps the order."""
    import matplotlib as mpl
    from matplotlib.colors import ListedColormap

    # The darkest part would leave no room between cells and their frames.
    whole = mpl.colormaps["cividis"]
    return ListedColormap(whole(np.arange(30, whole.N)), bad="#ffffff")


def ink_on(colour: Sequence[float]) -> str:
    """Return black or white, whichever contrasts more with a colour (WCAG 2.1, relative luminance)."""
    parts = np.asarray(colour[:3], dtype=np.float64)
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ np.array([0.2126, 0.7152, 0.0722]))
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"


def short(value: float) -> str:
    """Write a coefficient with two digits and without the zero before the point; a dash if it is missing."""
    if np.isnan(value):
        return "–"
    text = f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−")
    return text.replace("0.", ".", 1) if text.lstrip("−").startswith("0.") else text


def interval(low: float, high: float) -> str:
    """Write an interval as :func:`short` writes its ends; nothing if it is missing."""
    return "" if np.isnan(low) or np.isnan(high) else f"{short(low)}, {short(high)}"


def figure_and_axes(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:  # noqa: ANN401
    """Return a figure of a size in inches with a grid of axes, always two-dimensional."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **options)


def panels(
    titles: Iterable[str],
    most: int,
    width: float,
    height: float,
    **options: Any,  # noqa: ANN401
) -> tuple[Figure, list[Axes]]:
    """Return a figure with an axes for each title, at most so many in a row, each of a size in inches."""
    names = list(titles)
    columns = min(most, len(names))
    rows = -(-len(names) // columns)
    figure, axes = figure_and_axes(rows, columns, (width * columns, height * rows), **options)
    for ax, title in zip(axes.flat, names, strict=False):
        ax.set_title(title, loc="left", parse_math=False)
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    for ax in axes.flat[max(0, len(names) - columns) : len(names)]:
        # The lowest of its column, though there may be an empty place below.
        ax.tick_params(labelbottom=True)
    return figure, list(axes.flat[: len(names)])


def lines_behind(ax: Axes, axis: str) -> None:
    """Draw light lines behind the marks."""
    ax.grid(axis=axis, color="0.9", lw=0.6)  # type: ignore[arg-type]
    ax.set_axisbelow(True)


def handle(label: str, **style: Any) -> Any:  # noqa: ANN401 - matplotlib is imported late
    """Return a line or mark for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **{"ms": 4.5, **style})


def marks(ax: Axes, rows: pd.DataFrame, colour: str, mark: str, **style: Any) -> None:  # noqa: ANN401
    """Draw ``value`` of each row at the height ``y`` with its interval, ``low`` to ``high``."""
    ax.hlines(rows["y"], rows["low"], rows["high"], color=colour, lw=1.1, zorder=2)
    how: dict[str, Any] = {"color": colour, "ms": 4.5, "ls": "", "zorder": 3} | style
    ax.plot(rows["value"], rows["y"], mark, **how)


def row_labels(ax: Axes, labels: Sequence[str]) -> None:
    """Label the rows of :func:`marks`, the first at the top."""
    ax.set_yticks(range(len(labels)), list(labels)[::-1], parse_math=False)
    ax.set_ylim(-0.7, len(labels) - 0.3)


def heights(names: pd.Series, order: Sequence[Any]) -> pd.Series:
    """Return the height of each row, given what it is called and the names from the top down."""
    return len(order) - 1 - names.map(list(order).index)


def forest(ax: Axes, rows: pd.DataFrame, order: Sequence[str], *, chance: float = 0.0) -> None:
    """Draw values with their intervals, a line for each ``label``; ``style`` is the place of a row's mark in SERIES."""
    ax.axvline(chance, color=QUIET, lw=0.8, zorder=1)
    lines_behind(ax, "both")
    for style, own in rows.assign(y=heights(rows["label"], order)).groupby("style"):
        marks(ax, own, *SERIES[int(str(style))][:2])
    row_labels(ax, order)


def tiles(
    ax: Axes,
    cells: Iterable[tuple[float, float, float, str, str]],
    scale: Any,  # noqa: ANN401
    *,
    size: float = 7.0,
) -> None:
    """Draw a matrix without frame: cells of x, y, value, text and a small second line of text, coloured by ``scale``.

    A cell without a value is white.
    """
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    result = list(cells)
    faces: list[Any] = ["#ffffff" if np.isnan(value) else scale.to_rgba(value) for _, _, value, _, _ in result]
    for (x, y, value, text, below), face in zip(result, faces, strict=True):
        style: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "color": "#777777" if np.isnan(value) else ink_on(face),
        }
        ax.text(x, y - (0.16 if below else 0), text, fontsize=size, **style)
        if below:
            ax.text(x, y + 0.24, below, fontsize=0.73 * size, **style)
    patches = [Rectangle((x - 0.48, y - 0.48), 0.96, 0.96) for x, y, *_ in result]
    ax.add_collection(PatchCollection(patches, facecolors=faces, edgecolors="none"))
    ax.set_xlim(min(x for x, *_ in result) - 0.55, max(x for x, *_ in result) + 0.55)
    ax.set_ylim(max(y for _, y, *_ in result) + 0.55, min(y for _, y, *_ in result) - 0.55)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def colours_of(values: Any, *, most: float = 1.0) -> Any:  # noqa: ANN401
    """Return the scale of colours of some coefficients, from the lowest or 0 to ``most``."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    lowest = float(np.floor(np.nanmin(values) * 10) / 10)
    return ScalarMappable(Normalize(min(0.0, lowest), max(most, float(np.nanmax(values)))), sequential())


def colour_bar(figure: Figure, scale: Any, label: str, **options: Any) -> None:  # noqa: ANN401
    """Draw the bar of a scale of colours."""
    bar = figure.colorbar(scale, **options)
    bar.set_label(label)
    bar.outline.set_visible(False)


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
    """Put what is shown and of which data set above a figure; the legend and how to read it below.

    If the data are SIMULATED, both texts say so. They are the figure's label too, for those who cannot see it.
    """
    name = f"{title} (SIMULATED)" if simulated and "SIMULATED" not in title else title
    text = f"{notes} {SIMULATED}".strip() if simulated else notes
    # A heading wider than the figure would make the picture wider, and all that is in it smaller.
    shown = textwrap.fill(f"{heading}: {name}", max(30, int(figure.get_figwidth() * 72 / (10 * 0.62))))
    figure.suptitle(shown, x=0.0, ha="left", fontsize=10, fontweight="bold", parse_math=False)
    height, below = float(figure.get_figheight()), 0.08
    if handles:
        figure.legend(
            handles=list(handles), loc="upper left", bbox_to_anchor=(0.0, -0.05 / height), ncols=columns, frameon=False,
            borderpad=0, borderaxespad=0, handlelength=2.6, columnspacing=1.6,
        )  # fmt: skip
        below += 0.17 * -(-len(handles) // columns) + 0.05
    # About as many characters as are as wide as the figure at this size of type.
    wrapped = textwrap.fill(text, int(figure.get_figwidth() * 72 / (8 * 0.53)))
    style: dict[str, Any] = {"fontsize": 8, "color": "#333333", "linespacing": 1.25, "parse_math": False}
    figure.text(0.0, -below / height, wrapped, ha="left", va="top", **style)
    figure.set_label(f"{heading}: {name}. {text}")


def save(figure: Figure, frame: pd.DataFrame, stem: str | Path, *, simulated: bool = False) -> None:
    """Write a figure as PDF, PNG and SVG, and the numbers that it shows as CSV (4 significant digits); close it.

    The SVG describes itself by the figure's label.
    """
    import matplotlib.pyplot as plt

    with drawing():
        for suffix, metadata in _METADATA.items():
            with replacing(form_path(stem, suffix)) as temporary:
                figure.savefig(temporary, dpi=DPI, metadata=metadata)
                if suffix == ".png":
                    _reduce(temporary)
    plt.close(figure)
    drawn = form_path(stem, ".svg")
    head, tag, rest = read_text(drawn).partition("<svg ")
    attributes, end, content = rest.partition(">")
    write_text(drawn, f"{head}{tag}{attributes}{end}<desc>{html.escape(str(figure.get_label()))}</desc>{content}")
    tidy = frame.assign(simulated=True) if simulated else frame.copy(deep=False)
    for name in tidy.select_dtypes("float").columns:
        # Counts stay as they are.
        tidy[name] = tidy[name].map(lambda value: float(f"{value:.4g}") if value % 1 else value, na_action="ignore")
    write_text(form_path(stem, ".csv"), tidy.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def svg_text(figure: Figure) -> str:
    """Return a figure as an SVG element for a page, and close it."""
    import matplotlib.pyplot as plt

    with drawing(), io.StringIO() as file:
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
