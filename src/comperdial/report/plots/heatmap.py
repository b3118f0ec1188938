"""Correlations of every metric at every level, as a heat map with each value and its interval printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.names import LEVELS
from comperdial.report.about import Inputs, Study
from comperdial.report.correlations import COEFFICIENTS, FEW, LEGEND, MARK, halved, is_halved, pooled
from comperdial.report.plots.shown import Shown
from comperdial.report.plots.style import drawing, figure_and_axes, ink_on, interval, sequential, short, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CEILING = ("ceiling", "annotators")
_COLUMN = ["level", "against", "coefficient"]
_CELL = [*_COLUMN, "metric", "output"]
_SCORES = {"turn": "Turns", "dialogue": "Dialogues", "system": "Systems"}
# The column that orders the rows: the first of these that there is.
_MAIN = (("dialogue", "dialogue", "spearman"), ("turn", "turn", "spearman"))
# More columns cannot be read at the width of a page; then Spearman's stand for all three coefficients.
_MOST_COLUMNS = 9


def heatmap(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw how well each metric agrees with the ratings, at each level; the human ceiling first."""
    shown = Shown(inputs, study)
    found = pooled(shown.read("correlations")).dropna(subset="value")
    names = shown.chosen(zip(found["metric"], found["output"], strict=True))
    ceilings = schema.read(inputs["ceilings"][0], "ceilings")
    target = shown.dimension(schema.read(inputs["correlations"][0], "correlations")["target"])
    frame = heatmap_frame(found, pooled(ceilings[ceilings["target"] == target]), names)
    return _draw(frame, shown, target), frame


def heatmap_frame(found: pd.DataFrame, ceilings: pd.DataFrame, names: list[tuple[str, str]]) -> pd.DataFrame:
    """Return one row a cell, from the top row on: the mean ceiling over annotators, then the best metric."""
    columns = sorted({*found[_COLUMN].itertuples(index=False, name=None)}, key=_place)
    by = next((column for column in _MAIN if column in columns), columns[0])
    first = found[(found[_COLUMN] == list(by)).all(axis=1)].set_index(["metric", "output"])["value"]
    names = sorted(names, key=lambda name: (-first.get(name, -np.inf), name))
    means = ceilings.dropna(subset="value").groupby(_COLUMN, observed=True)["value"].agg(value="mean", n="count")
    top = means.reset_index().assign(metric=CEILING[0], output=CEILING[1])
    made = pd.concat([top, found], ignore_index=True)
    rows, places = {name: n for n, name in enumerate([CEILING, *names])}, {c: n for n, c in enumerate(columns)}
    made["row"] = [rows.get(name, -1) for name in zip(made["metric"], made["output"], strict=True)]
    made["column"] = [places.get(cell, -1) for cell in made[_COLUMN].itertuples(index=False, name=None)]
    made = made[(made["row"] >= 0) & (made["column"] >= 0)].sort_values(["row", "column"], ignore_index=True)
    values = ["value", "low", "high", "n", "loso_value", "loso_system"]
    return made[["metric", "output", *_COLUMN, *values]].assign(loso_halved=halved(made))


def _place(column: tuple[str, ...]) -> tuple[int, bool, int]:
    level, against, coefficient = column
    return LEVELS.index(level), against != "turn", [*COEFFICIENTS].index(coefficient)


def _draw(frame: pd.DataFrame, shown: Shown, target: str) -> Figure:
    if len(frame[_COLUMN].drop_duplicates()) > _MOST_COLUMNS:
        frame = frame[frame["coefficient"] == "spearman"]
    names = list(dict.fromkeys(zip(frame["metric"], frame["output"], strict=True)))
    columns = sorted({*frame[_COLUMN].itertuples(index=False, name=None)}, key=_place)
    groups = [column[:2] for column in columns]
    # The ceiling and the groups of columns are set apart.
    y = np.arange(len(names)) + (0.35 if names[0] == CEILING else 0) * (np.arange(len(names)) > 0)
    x = np.arange(len(columns)) + 0.25 * np.cumsum([n > 0 and groups[n] != groups[n - 1] for n in range(len(columns))])
    with drawing():
        figure, axes = figure_and_axes(1, 1, (0.6 * (x[-1] + 1) + 2.9, 0.34 * (y[-1] + 1) + 1.35))
        ax = axes[0][0]
        _draw_cells(figure, ax, frame, names, columns, x, y)
        ax.set_yticks(y, ["Human ceiling" if name == CEILING else shown.label(name) for name in names])
        ax.set_xticks(x, [COEFFICIENTS[column[2]] for column in columns])
        ax.tick_params(length=0, labeltop=True, labelbottom=False)
        for level, against in dict.fromkeys(groups):
            of_group = (frame["level"] == level) & (frame["against"] == against) & (frame["metric"] != CEILING[0])
            most, narrow = frame.loc[of_group, "n"].max(), groups.count((level, against)) == 1
            few = f" (n {most:.0f})" if most <= FEW else ""
            text = f"{_SCORES[level]}{few},\nratings{chr(10) if narrow else ' '}of {against}s"
            centre = float(
                np.mean([place for place, group in zip(x, groups, strict=True) if group == (level, against)])
            )
            size = 7 if narrow else 8
            ax.text(centre, -0.5 - 0.72, text, ha="center", va="bottom", fontsize=size, fontweight="bold")
        if names[0] == CEILING:
            ax.get_yticklabels()[0].set_fontweight("bold")
        level, against, coefficient = next((column for column in _MAIN if column in columns), columns[0])
        titled(
            figure, "How well each metric agrees with the ratings", shown.title,
            f"Correlation of scores with mean ratings ({target}), and below it the ends of the 95 % interval. Human "
            "ceiling: mean correlation of one annotator with the mean of the others. A dash: no score at this level. "
            f"A column of {FEW} systems or fewer says so (n): its values are uncertain, whatever they are. Ordered by the column "
            f"{COEFFICIENTS[coefficient]}, {level}s against ratings of {against}s."
            + (f" {LEGEND}" if frame["loso_halved"].any() else ""),
            simulated=shown.simulated,
        )  # fmt: skip
    return figure


def _draw_cells(figure: Figure, ax: Any, frame: pd.DataFrame, names: Any, columns: Any, x: Any, y: Any) -> None:  # noqa: ANN401
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import Normalize
    from matplotlib.patches import Rectangle

    lowest, colours = float(np.floor(frame["value"].min() * 10) / 10), sequential()
    scale = Normalize(min(0.0, lowest), max(1.0, float(frame["value"].max())))
    empty = {(row, column) for row in range(len(names)) for column in range(len(columns))}
    cells, faces = [], []
    for one in frame.to_dict("records"):
        row = names.index((one["metric"], one["output"]))
        column = columns.index(tuple(one[name] for name in _COLUMN))
        empty.discard((row, column))
        cells.append(Rectangle((x[column] - 0.48, y[row] - 0.47), 0.96, 0.94))
        faces.append(colours(scale(one["value"])))
        ends, text = interval(one["low"], one["high"]), short(one["value"]) + (MARK if is_halved(one) else "")
        style = {"ha": "center", "va": "center", "color": ink_on(faces[-1])}
        ax.text(x[column], y[row] - (0.16 if ends else 0.0), text, fontsize=8, **style)
        ax.text(x[column], y[row] + 0.24, ends, fontsize=5.8, **style)
    for row, column in empty:
        ax.text(x[column], y[row], "–", ha="center", va="center", color="#777777", fontsize=7)
    ax.add_collection(PatchCollection(cells, facecolors=faces, edgecolors="none"))
    ax.set_xlim(x[0] - 0.55, x[-1] + 0.55)
    ax.set_ylim(y[-1] + 0.55, y[0] - 0.55)
    ax.spines[:].set_visible(False)
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=ax, fraction=0.02, pad=0.01, aspect=30)
    bar.set_label("Correlation")
    bar.outline.set_visible(False)
