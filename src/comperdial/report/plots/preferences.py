"""Figures of preferences: win matrices, strengths of systems, and the probability that a study finds a difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from comperdial.report.plots import style
from comperdial.report.preferences import STARS, stars

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def matrix_figure(matrices: Mapping[str, pd.DataFrame], orders: Mapping[str, Sequence[str]]) -> Figure:
    """Draw win matrices (:func:`comperdial.evaluation.preferences.win_matrix`), one panel per title.

    ``orders`` gives the systems of each, strongest first.
    """
    size = max(len(order) for order in orders.values())
    with style.drawing():
        figure, axes = style.panels(matrices, 2, 3.7, 0.34 * min(size, 20) + 1.3)
        for ax, (title, matrix) in zip(axes, matrices.items(), strict=True):
            order, cells = list(orders[title]), []
            for row in matrix.to_dict("records"):
                i, j = order.index(row["a"]), order.index(row["b"])
                for x, y, value in ((j, i, row["win_rate"]), (i, j, 1 - row["win_rate"])):
                    mark = stars(row) if len(order) <= 20 else ""
                    cells.append((x, y, value, style.short(value) if len(order) <= 20 else "", mark))
            style.tiles(ax, cells, style.colours_of([0.0, 1.0]))
            ax.set_xticks(range(len(order)), order, rotation=40, ha="right", rotation_mode="anchor")
            ax.set_yticks(range(len(order)), order)
        style.titled(
            figure, "Preferences", "how often the row is preferred to the column", f"Ties are left out. {STARS}."
        )
    return figure


def strengths_figure(strengths: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw Bradley-Terry strengths with their intervals, one panel per title."""
    size = max(len(table) for table in strengths.values())
    with style.drawing():
        figure, axes = style.panels(strengths, 2, 3.7, 0.17 * size + 0.8)
        for ax, table in zip(axes, strengths.values(), strict=True):
            ranks = ["" if pd.isna(rank) else f"  #{rank}" for rank in table["rank"]]
            labels = list(table["system"] + ranks)
            style.forest(ax, table.assign(value=table["strength"], label=labels, style=0), labels)
        units = " or ".join(sorted({str(table["by"].iloc[0]) for table in strengths.values()}))
        style.titled(
            figure,
            "Preferences",
            "Bradley-Terry strengths",
            f"Logarithms with a mean of 0; a tie is half a win. Lines are 95 % intervals by {units}. Systems of "
            "different ranks (#) all differ significantly from each other, after Holm's correction.",
        )
    return figure


def significance_figure(curves: pd.DataFrame, heading: str, notes: str) -> Figure:
    """Draw the probability of significance against person-hours.

    ``curves`` has columns ``panel``, ``line``, ``hours`` and ``probability``; ``notes`` explain the figure.
    """
    names, lines = curves["panel"].unique(), dict(zip(curves["line"].unique(), style.SERIES, strict=False))
    columns = min(3, len(names))
    with style.drawing():
        height = 1.75 + 0.4 / -(-len(names) // columns)
        figure, axes = style.panels(names, 3, 7.4 / columns, height, sharey=True)
        for place, (ax, panel) in enumerate(zip(axes, names, strict=True)):
            ax.grid()
            for line, part in curves[curves["panel"] == panel].groupby("line", sort=False):
                ax.plot(part["hours"], part["probability"], ms=3, lw=1.2, **lines[line])
            style.logarithmic(ax, (1, 3))
            ax.set_ylim(-0.03, 1.03)
            ax.set_xlabel("Person-hours" if place + columns >= len(names) else "")
            ax.set_ylabel("" if place % columns else "P(significant)")
        handles = [style.handle(str(line), ms=4, **look) for line, look in lines.items()]
        style.titled(figure, "Preferences", heading, notes, handles=handles if len(handles) > 1 else ())
    return figure
