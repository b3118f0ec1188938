"""Figures of preferences: who is preferred to whom, how strong each system is, and what a study of a size would find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

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
    from matplotlib.figure import Figure


def matrix_figure(matrices: Mapping[str, pd.DataFrame], orders: Mapping[str, Sequence[str]]) -> Figure:
    """Draw win matrices, a panel each.

    Parameters
    ----------
    matrices
        As :func:`comperdial.evaluation.preferences.win_matrix` returns them, by title.
    orders
        The systems of each, the strongest first.
    """
    titles = list(matrices)
    columns = min(2, len(titles))
    lines = -(-len(titles) // columns)
    size = max(len(order) for order in orders.values())
    with drawing():
        figure, axes = figure_and_axes(lines, columns, (3.7 * columns, lines * (0.34 * min(size, 20) + 1.3)))
        for place, title in enumerate(titles):
            ax, order = axes[place // columns][place % columns], list(orders[title])
            values = np.full((len(order), len(order)), np.nan)
            marks: dict[tuple[int, int], str] = {}
            for row in matrices[title].to_dict("records"):
                i, j = order.index(row["a"]), order.index(row["b"])
                values[i, j], values[j, i] = row["win_rate"], 1 - row["win_rate"]
                marks[i, j] = marks[j, i] = stars(row)
            colours = sequential()
            ax.imshow(values, cmap=colours, vmin=0, vmax=1, aspect="auto")
            if len(order) <= 20:
                for (i, j), mark in marks.items():
                    ax.text(
                        j, i, f"{short(values[i, j])}\n{mark}", ha="center", va="center", fontsize=7, linespacing=0.8,
                        color=ink_on(colours(values[i, j])),
                    )  # fmt: skip
            ax.set_xticks(np.arange(len(order)), order, rotation=40, ha="right", rotation_mode="anchor")
            ax.set_yticks(np.arange(len(order)), order)
            ax.tick_params(length=0)
            ax.spines[:].set_visible(False)
            ax.set_title(title, loc="left", fontweight="bold", parse_math=False)
        for ax in axes.flat[len(titles) :]:
            ax.set_axis_off()
        titled(figure, "Preferences", "how often the row is preferred to the column", f"Ties are left out. {STARS}.")
    return figure


def strengths_figure(strengths: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw Bradley-Terry strengths with their intervals, a panel for each title."""
    titles = list(strengths)
    columns = min(2, len(titles))
    lines = -(-len(titles) // columns)
    size = max(len(table) for table in strengths.values())
    with drawing():
        figure, axes = figure_and_axes(lines, columns, (3.7 * columns, lines * (0.17 * size + 0.8)))
        for place, title in enumerate(titles):
            ax, table = axes[place // columns][place % columns], strengths[title]
            heights = np.arange(len(table))[::-1]
            ax.axvline(0, color=QUIET, lw=0.8, zorder=1)
            lines_behind(ax, "x")
            ax.hlines(heights, table["low"], table["high"], color=SERIES[0][0], lw=1.2, zorder=2)
            ax.plot(table["strength"], heights, SERIES[0][1], color=SERIES[0][0], ms=4, zorder=3)
            names = [
                name if pd.isna(rank) else f"{name}  #{rank}"
                for name, rank in zip(table["system"], table["rank"], strict=True)
            ]
            ax.set_yticks(heights, names, parse_math=False)
            ax.set_ylim(-0.7, len(table) - 0.3)
            ax.set_title(title, loc="left", fontweight="bold", parse_math=False)
        for ax in axes.flat[len(titles) :]:
            ax.set_axis_off()
        titled(
            figure,
            "Preferences",
            "Bradley-Terry strengths",
            "Logarithms with a mean of 0; a tie is half a win. Lines are 95 % likelihood intervals by "
            f"{' or '.join(sorted({str(table['by'].iloc[0]) for table in strengths.values()}))}. "
            "Systems of different ranks (#) all differ significantly from each other, after Holm's correction.",
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

    panels, lines = list(dict.fromkeys(curves["panel"])), list(dict.fromkeys(curves["line"]))
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    with drawing():
        figure, axes = figure_and_axes(rows, columns, (7.4, 1.75 * rows + 0.4), sharey=True)
        for place, panel in enumerate(panels):
            ax = axes[place // columns][place % columns]
            lines_behind(ax, "both")
            for at, line in enumerate(lines):
                part = curves[(curves["panel"] == panel) & (curves["line"] == line)]
                colour, mark, dash = SERIES[at]
                ax.plot(part["hours"], part["probability"], color=colour, marker=mark, ms=3, ls=dash, lw=1.2)
            ax.set_xscale("log")
            ax.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
            ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.set_ylim(-0.03, 1.03)
            ax.set_title(panel, loc="left", fontweight="bold", parse_math=False)
            if place + columns >= len(panels):
                ax.set_xlabel("Person-hours")
            if place % columns == 0:
                ax.set_ylabel("P(significant)")
        for ax in axes.flat[len(panels) :]:
            ax.set_axis_off()
        handles = [
            Line2D([], [], color=SERIES[at][0], marker=SERIES[at][1], ls=SERIES[at][2], ms=4, label=line)
            for at, line in enumerate(lines)
        ]
        titled(figure, "Preferences", heading, notes, handles=handles if len(lines) > 1 else ())
    return figure
