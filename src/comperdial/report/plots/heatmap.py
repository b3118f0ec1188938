"""Correlations of every metric at every level, as a heat map with each value and its interval printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.names import LEVELS
from comperdial.report.about import label
from comperdial.report.correlations import FEW, LEGEND, MARK, halved, is_halved
from comperdial.report.plots.style import (
    COEFFICIENTS,
    Output,
    chosen,
    drawing,
    figure_and_axes,
    ink_on,
    interval,
    pairs,
    sequential,
    short,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CEILING = ("ceiling", "annotators")
_SCORES = {"turn": "Turns", "dialogue": "Dialogues", "system": "Systems"}
_USUAL = (("dialogue", "dialogue", "spearman"), ("turn", "turn", "spearman"))
_CELL = (0.6, 0.34)
# More columns cannot be read at the width of a page; then Spearman's stand for all three coefficients.
_MOST_COLUMNS = 9
_COLUMN = ["level", "against", "coefficient"]


def heatmap_frame(
    correlations: pd.DataFrame,
    ceilings: pd.DataFrame | None = None,
    *,
    target: str,
    outputs: Sequence[Output] | None = None,
    order: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return the cells of the heat map.

    Parameters
    ----------
    correlations, ceilings
        Tables ``correlations`` and ``ceilings`` of one data set; pooled Pearson, Spearman and Kendall are taken.
    target
        A rated dimension.
    outputs
        Which outputs, as (metric, output); those without numbers are left out. Default: all.
    order
        Level, level of ratings and coefficient of the column that orders the rows, the best first. Default: Spearman of
        dialogues against ratings of dialogues or, without these, of turns.

    Returns
    -------
    DataFrame
        One row a cell, from the top row on: metric, output, level, against, coefficient, value, low, high, n, and
        loso_value, loso_system, loso_halved: the lowest value without a system. The rows of metric ``ceiling``, first,
        have the mean over annotators of their correlation with the others' mean, and in ``n`` how many annotators.

    Raises
    ------
    UnknownNameError
        When nothing has the target.
    SchemaError
        When no output is left, or there is no column ``order``.
    """
    if target not in set(correlations["target"]):
        raise UnknownNameError("dimension", target, correlations["target"].unique())
    kept = _pooled(correlations, target)
    kept = kept[kept["value"].notna()]
    names = chosen(outputs, pairs(kept), f"correlations with {target}")
    cells = kept.set_index(["metric", "output", *_COLUMN])
    columns = sorted(set(kept[_COLUMN].itertuples(index=False, name=None)), key=_place)
    by = _main_column(columns, order)
    value = cells["value"]
    names.sort(key=lambda name: (-value.get((*name, *by), -np.inf), name))
    rows = [*_ceiling_rows(ceilings, target, columns)]
    for name in names:
        for column in columns:
            if (key := (*name, *column)) in cells.index:
                found = cells.loc[key]
                numbers = {field: found[field] for field in ("value", "low", "high", "n", "loso_value", "loso_system")}
                rows.append({**_named(name, column), **numbers})
    found = pd.DataFrame(rows)
    return found.assign(loso_halved=halved(found))


def _place(column: tuple[str, ...]) -> tuple[int, bool, int]:
    level, against, coefficient = column
    return LEVELS.index(level), against != "turn", list(COEFFICIENTS).index(coefficient)


def _named(name: Output, column: tuple[str, ...]) -> dict[str, Any]:
    return dict(zip(["metric", "output", *_COLUMN], [*name, *column], strict=True))


def _pooled(frame: pd.DataFrame, target: str) -> pd.DataFrame:
    return frame[
        (frame["target"] == target) & (frame["grouping"] == "pooled") & frame["coefficient"].isin(list(COEFFICIENTS))
    ]


def _main_column(columns: Sequence[tuple[str, ...]], order: Sequence[str] | None) -> tuple[str, ...]:
    if order is not None:
        if tuple(order) not in columns:
            raise SchemaError(
                f"no correlations {':'.join(order)} to order by",
                expected="one of " + ", ".join(":".join(column) for column in columns),
            )
        return tuple(order)
    return next((column for column in _USUAL if column in columns), columns[0])


def _ceiling_rows(
    ceilings: pd.DataFrame | None, target: str, columns: Sequence[tuple[str, ...]]
) -> list[dict[str, Any]]:
    if ceilings is None:
        return []
    kept = _pooled(ceilings, target)
    found = {key: group["value"].dropna() for key, group in kept.groupby(_COLUMN, observed=True)}
    missing = {"low": float("nan"), "high": float("nan")}
    return [
        {**_named(CEILING, column), "value": float(found[column].mean()), **missing, "n": len(found[column])}
        for column in columns
        if column in found and len(found[column])
    ]


def heatmap_figure(
    frame: pd.DataFrame, *, title: str, target: str, labels: Mapping[str, str] | None = None, simulated: bool = False
) -> Figure:
    """Draw the frame of :func:`heatmap_frame`; of many columns those of Spearman, the frame has all."""
    if len(frame[_COLUMN].drop_duplicates()) > _MOST_COLUMNS:
        frame = frame[frame["coefficient"] == "spearman"]
    names = list(dict.fromkeys(pairs(frame)))
    columns = list(dict.fromkeys(frame[_COLUMN].itertuples(index=False, name=None)))
    columns.sort(key=_place)
    values = np.full((len(names), len(columns)), np.nan)
    texts: dict[tuple[int, int], tuple[str, str]] = {}
    for row in frame.to_dict("records"):
        at = names.index((row["metric"], row["output"])), columns.index(tuple(row[name] for name in _COLUMN))
        values[at] = row["value"]
        texts[at] = short(row["value"]) + (MARK if is_halved(row) else ""), interval(row["low"], row["high"])
    # The ceiling and the groups of columns stand apart.
    y = np.arange(len(names)) + (0.35 if names[0] == CEILING else 0) * (np.arange(len(names)) > 0)
    groups = [column[:2] for column in columns]
    x = np.arange(len(columns)) + 0.25 * np.cumsum([n > 0 and groups[n] != groups[n - 1] for n in range(len(columns))])
    with drawing():
        figure, axes = figure_and_axes(1, 1, (_CELL[0] * (x[-1] + 1) + 2.9, _CELL[1] * (y[-1] + 1) + 1.35))
        ax = axes[0][0]
        _draw_cells(figure, ax, values, texts, x, y)
        shown = ["Human ceiling" if name == CEILING else label(name, labels or {}) for name in names]
        ax.set_yticks(y, shown)
        ax.set_xticks(x, [COEFFICIENTS[column[2]] for column in columns])
        ax.tick_params(length=0, labeltop=True, labelbottom=False)
        for group in dict.fromkeys(groups):
            centre = float(np.mean([place for place, other in zip(x, groups, strict=True) if other == group]))
            sizes = frame.loc[
                (frame[["level", "against"]] == list(group)).all(axis=1) & (frame["metric"] != CEILING[0]), "n"
            ]
            few = f" (n {sizes.max():.0f})" if len(sizes) and sizes.max() <= FEW else ""
            narrow = groups.count(group) == 1
            text = f"{_SCORES[group[0]]}{few},\nratings{chr(10) if narrow else ' '}of {group[1]}s"
            size = 7 if narrow else 8
            ax.text(centre, -0.5 - 0.72, text, ha="center", va="bottom", fontsize=size, fontweight="bold")
        if names[0] == CEILING:
            ax.get_yticklabels()[0].set_fontweight("bold")
        titled(
            figure,
            "How well each metric agrees with the ratings",
            title,
            f"Correlation of scores with mean ratings ({target}), and below it the ends of the 95 % interval. Human "
            "ceiling: mean correlation of one annotator with the mean of the others. A dash: no score at this level. "
            f"A column of {FEW} systems or fewer says so (n): its values are uncertain, whatever they are. "
            f"Ordered by the column {_order_text(frame, columns)}."
            + (f" {LEGEND}" if frame["loso_halved"].any() else ""),
            simulated=simulated,
        )
    return figure


def _order_text(frame: pd.DataFrame, columns: Sequence[tuple[str, ...]]) -> str:
    """Say which column orders the rows: the first, of the usual ones, whose values fall."""
    metrics = frame[frame["metric"] != CEILING[0]]
    for column in sorted(columns, key=lambda column: (*(column != usual for usual in _USUAL),)):
        of_column = metrics[(metrics[_COLUMN] == list(column)).all(axis=1)]
        if of_column["value"].is_monotonic_decreasing:
            level, against, coefficient = column
            return f"{COEFFICIENTS[coefficient]}, {level}s against ratings of {against}s"
    return "that was chosen"


def _draw_cells(
    figure: Figure,
    ax: Any,  # noqa: ANN401
    values: np.ndarray,
    texts: Mapping[tuple[int, int], tuple[str, str]],
    x: np.ndarray,
    y: np.ndarray,
) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import Normalize
    from matplotlib.patches import Rectangle

    colours = sequential()
    scale = Normalize(min(0.0, float(np.floor(np.nanmin(values) * 10) / 10)), max(1.0, float(np.nanmax(values))))
    cells = [Rectangle((x[c] - 0.48, y[r] - 0.47), 0.96, 0.94) for r, c in texts]
    faces = [colours(scale(values[at])) for at in texts]
    ax.add_collection(PatchCollection(cells, facecolors=faces, edgecolors="none"))
    for row, column in np.argwhere(np.isnan(values)):
        ax.text(x[column], y[row], "–", ha="center", va="center", color="#777777", fontsize=7)
    for at, (value, ends) in texts.items():
        ink = ink_on(colours(scale(values[at])))
        shift = 0.16 if ends else 0.0
        ax.text(x[at[1]], y[at[0]] - shift, value, ha="center", va="center", color=ink, fontsize=8)
        if ends:
            ax.text(x[at[1]], y[at[0]] + 0.24, ends, ha="center", va="center", color=ink, fontsize=5.8)
    ax.set_xlim(x[0] - 0.55, x[-1] + 0.55)
    ax.set_ylim(y[-1] + 0.55, y[0] - 0.55)
    ax.spines[:].set_visible(False)
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=ax, fraction=0.02, pad=0.01, aspect=30)
    bar.set_label("Correlation")
    bar.outline.set_visible(False)
