"""What the figures share: names, colours that differ in lightness, marks that differ in shape, titles, and saving."""

from __future__ import annotations

import html
import logging
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.core.errors import NothingToShowError
from comperdial.core.files import form_path, read_text, write_text
from comperdial.core.names import Output, output_name
from comperdial.report.render import SIMULATED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure


log = logging.getLogger(__name__)

# Okabe and Ito's colours, each with a mark and a line of its own: what grey paper makes alike, the shape tells apart.
SERIES = (
    ("#0072b2", "o", "-"),
    ("#d55e00", "s", "--"),
    ("#009e73", "^", "-."),
    ("#cc79a7", "D", ":"),
    ("#e69f00", "v", (0, (5, 1, 1, 1, 1, 1))),
    ("#56b4e9", "P", (0, (1, 2))),
    ("#000000", "X", (0, (7, 3))),
)
INK = "#1a1a1a"
QUIET = "#b4b4b4"
COEFFICIENTS = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall"}
_RULES: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "lines.solid_capstyle": "butt",
}


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in this block without a display, with the figures' sizes of type."""
    import matplotlib as mpl

    mpl.use("agg")
    with mpl.rc_context(_RULES):
        yield


def parse_outputs(names: Sequence[str]) -> list[Output]:
    """Split ``METRIC:OUTPUT``, each once, in the order given.

    Raises
    ------
    ConfigError
        When a name has no colon, or nothing on a side of it.
    """
    return list(dict.fromkeys(map(output_name, names)))


def chosen(outputs: Sequence[Output] | None, known: Sequence[Output], where: str) -> list[Output]:
    """Return those of the outputs asked for that are known, in the order asked for.

    None asks for all; so do outputs of which none is known, as those of metrics that a data set gives nothing to.

    Raises
    ------
    NothingToShowError
        When nothing is known.
    """
    if not known:
        raise NothingToShowError("no output has numbers", where=where)
    if outputs and set(outputs).isdisjoint(known):
        log.warning(
            "none of the outputs asked for has numbers (%s): all are shown", ", ".join(map(":".join, outputs[:5]))
        )
    return [output for output in outputs or () if output in set(known)] or sorted(set(known))


def pairs(frame: pd.DataFrame) -> list[Output]:
    """Return the (metric, output) of each row."""
    return list(zip(frame["metric"].astype(str), frame["output"].astype(str), strict=True))


def sequential() -> Colormap:
    """Return the map from dark (low) to light (high): perceptually uniform, so that lightness alone keeps the order."""
    import matplotlib as mpl
    from matplotlib.colors import ListedColormap

    # The darkest part would leave no room between cells and their frames.
    whole = mpl.colormaps["cividis"]
    return ListedColormap(whole(np.arange(30, whole.N)), bad="#ffffff")


def ink_on(colour: Sequence[float]) -> str:
    """Return black or white, whichever stands out more against a colour (WCAG 2.1, relative luminance)."""
    parts = np.asarray(colour[:3], dtype=np.float64)
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ np.array([0.2126, 0.7152, 0.0722]))
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"


def short(value: float) -> str:
    """Write a coefficient with two digits and without the zero before the point; a dash when it is missing."""
    if np.isnan(value):
        return "–"
    text = f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−")
    return text.replace("0.", ".", 1) if text.lstrip("−").startswith("0.") else text


def interval(low: float, high: float) -> str:
    """Write an interval as :func:`short` writes its ends; nothing where there is none."""
    return "" if np.isnan(low) or np.isnan(high) else f"{short(low)}, {short(high)}"


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

    What is SIMULATED says so in both. The texts stay on the figure as its label, too, for those who cannot see it.
    """
    name = f"{title} (SIMULATED)" if simulated and "SIMULATED" not in title else title
    text = f"{notes} {SIMULATED}".strip() if simulated else notes
    # A heading wider than the figure would make the picture wider, and all that is in it smaller.
    shown = textwrap.fill(f"{heading}: {name}", max(30, int(figure.get_figwidth() * 72 / (10 * 0.62))))
    figure.suptitle(shown, x=0.0, ha="left", fontsize=10, fontweight="bold", parse_math=False, gid="figure-title")
    height = float(figure.get_figheight())
    below = 0.08
    if handles:
        figure.legend(
            handles=list(handles), loc="upper left", bbox_to_anchor=(0.0, -0.05 / height), ncols=columns, frameon=False,
            borderpad=0, borderaxespad=0, handlelength=2.6, columnspacing=1.6,
        )  # fmt: skip
        below += 0.17 * -(-len(handles) // columns) + 0.05
    # About as many characters as are as wide as the figure at this size of type.
    wrapped = textwrap.fill(text, int(figure.get_figwidth() * 72 / (8 * 0.53)))
    figure.text(
        0.0, -below / height, wrapped, ha="left", va="top", fontsize=8, color="#333333", linespacing=1.25,
        parse_math=False, gid="figure-notes",
    )  # fmt: skip
    figure.set_label(f"{heading}: {name}. {text}")


def figure_and_axes(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:  # noqa: ANN401
    """Return a figure of a size in inches with a grid of axes, always two-dimensional."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **options)


def lines_behind(ax: Axes, axis: str) -> None:
    """Draw quiet lines behind the marks."""
    ax.grid(axis=axis, color="0.9", lw=0.6)  # type: ignore[arg-type]
    ax.set_axisbelow(True)


def finish(figure: Figure, frame: pd.DataFrame, stem: str | Path, *, simulated: bool = False) -> None:
    """Save a figure in its three forms, and the numbers that it shows as ``stem.csv`` (4 significant digits).

    The SVG describes itself by the figure's label, for those who cannot see it.
    """
    from comperdial.report import figures

    figures.save(figure, stem)
    drawn = form_path(stem, ".svg")
    head, tag, rest = read_text(drawn).partition("<svg ")
    attributes, end, content = rest.partition(">")
    write_text(drawn, f"{head}{tag}{attributes}{end}<desc>{html.escape(str(figure.get_label()))}</desc>{content}")
    measured = [name for name in frame.columns if pd.api.types.is_float_dtype(frame[name])]
    tidy = frame.assign(**{name: _digits(frame[name]) for name in measured})
    tidy = tidy.assign(simulated=True) if simulated else tidy
    write_text(form_path(stem, ".csv"), tidy.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def _digits(values: pd.Series) -> pd.Series:
    """Round to the digits that a figure shows, counts left as they are."""
    return values.map(lambda value: float(f"{value:.4g}") if value % 1 else value, na_action="ignore")
