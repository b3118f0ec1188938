"""Figures of preferences: who is preferred to whom, how strong each system is, and how likely a study is to find a difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.report.plots.style import (
    QUIET,
    SERIES,
    drawing,
    figure_and_axes,
    ink_on,
    lines_behind,
    sequential,
    short,
    titled,
)
from comperdial.report.preferences import STARS, stars

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _panels(
    titles: Iterable[str],
    most: int,
    width: float,
    height: float,
    **options: Any,  # noqa: ANN401
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a titled panel for each title, at most so many in a row, and their axes."""
    names = list(titles)
    columns = min(most, len(names))
    rows = -(-len(names) // columns)
    figure, axes = figure_and_axes(rows, columns, (width * columns, height * rows), **options)
    for ax, title in zip(axes.flat, names, strict=False):
        ax.set_title(title, loc="left", fontweight="bold", parse_math=False)
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    return figure, list(axes.flat[: len(names)])


def matrix_figure(matrices: Mapping[str, pd.DataFrame], orders: Mapping[str, Sequence[str]]) -> Figure:
    """Draw win matrices, a panel each.

    Parameters
    ----------
    matrices
        As :func:`comperdial.evaluation.preferences.win_matrix` returns them, by title.
    orders
        The systems of each, the strongest first.
    """
    size, colours = max(len(order) for order in orders.values()), sequential()
    with drawing():
        figure, axes = _panels(matrices, 2, 3.7, 0.34 * min(size, 20) + 1.3)
        for ax, (title, matrix) in zip(axes, matrices.items(), strict=True):
            order = list(orders[title])
            values, marks = np.full((len(order), len(order)), np.nan), {}
            for row in matrix.to_dict("records"):
                i, j = order.index(row["a"]), order.index(row["b"])
                values[i, j], values[j, i] = row["win_rate"], 1 - row["win_rate"]
                marks[i, j] = marks[j, i] = stars(row)
            ax.imshow(values, cmap=colours, vmin=0, vmax=1, aspect="auto")
            for (i, j), mark in marks.items() if len(order) <= 20 else ():
                ax.text(
                    j, i, f"{short(values[i, j])}\n{mark}", ha="center", va="center", fontsize=7, linespacing=0.8,
                    color=ink_on(colours(values[i, j])),
                )  # fmt: skip
            ax.set_xticks(np.arange(len(order)), order, rotation=40, ha="right", rotation_mode="anchor")
            ax.set_yticks(np.arange(len(order)), order)
            ax.tick_params(length=0)
            ax.spines[:].set_visible(False)
        titled(figure, "Preferences", "how often the row is preferred to the column", f"Ties are left out. {STARS}.")
    return figure


def strengths_figure(strengths: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw Bradley-Terry strengths with their intervals, a panel for each title."""
    size = max(len(table) for table in strengths.values())
    with drawing():
        figure, axes = _panels(strengths, 2, 3.7, 0.17 * size + 0.8)
        for ax, table in zip(axes, strengths.values(), strict=True):
            heights = np.arange(len(table))[::-1]
            ax.axvline(0, color=QUIET, lw=0.8, zorder=1)
            lines_behind(ax, "x")
            ax.hlines(heights, table["low"], table["high"], color=SERIES[0][0], lw=1.2, zorder=2)
            ax.plot(table["strength"], heights, SERIES[0][1], color=SERIES[0][0], ms=4, zorder=3)
            ranks = ["" if pd.isna(rank) else f"  #{rank}" for rank in table["rank"]]
            ax.set_yticks(heights, list(table["system"] + ranks), parse_math=False)
            ax.set_ylim(-0.7, len(table) - 0.3)
        units = " or ".join(sorted({str(table["by"].iloc[0]) for table in strengths.values()}))
        titled(
            figure,
            "Preferences",
            "Bradley-Terry strengths",
            f"Logarithms with a mean of 0; a tie is half a win. Lines are 95 % likelihood intervals by {units}. Systems of "
            "different ranks (#) all differ significantly from each other, after Holm's correction.",
        )
    return figure


def significance_figure(curves: pd.DataFrame, heading: str, notes: str) -> Figure:
    """Draw the probability of significance against person-hours.

    Parameters
    ----------
    curves
        ``panel``, ``line``, ``hours`` and ``probability``.
    heading, notes
        What is shown, and how to read it.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator, NullFormatter

    panels, styles = curves["panel"].unique(), dict(zip(curves["line"].unique(), SERIES, strict=False))
    columns = min(3, len(panels))
    with drawing():
        figure, axes = _panels(panels, 3, 7.4 / columns, 1.75 + 0.4 / -(-len(panels) // columns), sharey=True)
        for place, (ax, panel) in enumerate(zip(axes, panels, strict=True)):
            lines_behind(ax, "both")
            for line, part in curves[curves["panel"] == panel].groupby("line", sort=False):
                colour, mark, dash = styles[line]
                ax.plot(part["hours"], part["probability"], color=colour, marker=mark, ms=3, ls=dash, lw=1.2)
            ax.set_xscale("log")
            ax.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
            ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.set_ylim(-0.03, 1.03)
            ax.set_xlabel("Person-hours" if place + columns >= len(panels) else "")
            ax.set_ylabel("" if place % columns else "P(significant)")
        handles = [Line2D([], [], color=c, marker=m, ls=d, ms=4, label=line) for line, (c, m, d) in styles.items()]
        titled(figure, "Preferences", heading, notes, handles=handles if len(handles) > 1 else ())
    return figure
