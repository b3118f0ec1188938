"""Learning curves: what a smaller benchmark would have said; and how large one must be to tell two metrics apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.names import output_name
from comperdial.report.about import label
from comperdial.report.plots.style import (
    COEFFICIENTS,
    SERIES,
    Output,
    chosen,
    drawing,
    lines_behind,
    pairs,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LINES = 5
VARIED = {
    "systems": "Systems",
    "dialogues": "Dialogues",
    "annotators": "Annotators of a unit",
    "samples": "Answers of a judge",
}
# Pairs of metrics by how far apart their correlations are.
_APART = (0.0, 0.025, 0.05, 0.1, 2.01)
_NOTES = (
    "Top: mean over random subsamples, bars: the middle 95 % of them (set apart sideways so that they do not overlap); "
    "the best metrics only. Middle: Kendall's τ between the metrics' ranking in a subsample and that in all data. "
    "Bottom: share of tests at 5 % that find the difference, median over pairs of metrics, bars: quartiles. Sizes on a "
    "logarithmic axis."
)
_PARTS = ("value", "agreement", "power")
_COLUMNS = ["part", "varied", "size", "series", "value", "low", "high", "n"]


def curves_frame(
    curves: pd.DataFrame,
    power: pd.DataFrame | None = None,
    *,
    target: str,
    outputs: Sequence[Output] | None = None,
    level: str | None = None,
    against: str | None = None,
    coefficient: str = "spearman",
) -> pd.DataFrame:
    """Return the points of the curves.

    Parameters
    ----------
    curves, power
        Tables ``curves`` and ``power`` of one data set.
    target, coefficient
        A rated dimension, and which coefficient.
    outputs
        Whose values to show, at most five: of those that have any, the ones with the highest value in the whole data.
        Default: all.
    level, against
        Of the values. Default: turns against ratings of turns or, without these, what comes first.

    Returns
    -------
    DataFrame
        part (value, agreement, power), varied, size, series, value, low, high, n. ``value``: an output's correlation,
        mean over subsamples and the middle 95 % of them, n of these. ``agreement``: Kendall's tau of the metrics'
        ranking with that of the whole data, a series for each level and level of ratings. ``power``: share of tests at
        5 % that tell two metrics apart, a series for each range of the difference: median, lower and upper quartile
        over n pairs. Of an empty table there are no points but those of the power.

    Raises
    ------
    UnknownNameError
        When nothing has the target.
    SchemaError
        When there are no curves of the level or the coefficient, or of the outputs.
    """
    if curves.empty:
        # Of two systems, or of a data set of which nothing is detailed: no subsample could be drawn.
        return _power(power, curves, target, coefficient).reindex(columns=_COLUMNS)
    if target not in set(curves["target"]):
        raise UnknownNameError("dimension", target, curves["target"].unique())
    kept = curves[(curves["target"] == target) & (curves["coefficient"] == coefficient)]
    of_level = _of_level(kept, level, against)
    names = _best(of_level, outputs)
    return pd.concat(
        [_values(of_level, names), _agreement(kept), _power(power, of_level, target, coefficient)], ignore_index=True
    )


def _of_level(frame: pd.DataFrame, level: str | None, against: str | None) -> pd.DataFrame:
    there = list(dict.fromkeys(zip(frame["level"], frame["against"], strict=True)))
    fitting = [
        both for both in there if level in (None, both[0]) and against in (None, both[1])
    ]  # fmt: skip
    if not fitting:
        raise SchemaError(
            f"no curves of {level or 'any level'} against {against or 'any ratings'}",
            expected="one of " + (", ".join(":".join(both) for both in there) or "(none)"),
        )
    first = ("turn", "turn") if ("turn", "turn") in fitting else fitting[0]
    return frame[(frame["level"] == first[0]) & (frame["against"] == first[1])]


def _best(frame: pd.DataFrame, outputs: Sequence[Output] | None) -> list[Output]:
    names = chosen(outputs, pairs(frame[frame["value"].notna()]), "curves")
    whole = frame[frame.groupby("varied")["size"].transform("max") == frame["size"]]
    value = whole.groupby(["metric", "output"])["value"].mean()
    return sorted(names, key=lambda name: (-value.get(name, -np.inf), name))[:MOST_LINES]


def _values(frame: pd.DataFrame, names: Sequence[Output]) -> pd.DataFrame:
    rows = frame[pd.MultiIndex.from_frame(frame[["metric", "output"]]).isin(list(names))]
    order = {":".join(name): n for n, name in enumerate(names)}
    rows = rows.assign(part="value", series=rows["metric"] + ":" + rows["output"], n=rows["repeats"])
    rows = rows.sort_values(["varied", "size"], kind="stable").sort_values(
        "series", key=lambda series: series.map(order), kind="stable"
    )
    return rows[_COLUMNS]


def _agreement(frame: pd.DataFrame) -> pd.DataFrame:
    rows = frame.drop_duplicates(["level", "against", "varied", "size"])
    rows = rows[rows["agreement"].notna()].sort_values(["level", "against", "varied", "size"])
    return pd.DataFrame(
        {
            "part": "agreement", "varied": rows["varied"], "size": rows["size"],
            "series": rows["level"] + "s against ratings of " + rows["against"] + "s", "value": rows["agreement"],
            "low": np.nan, "high": np.nan, "n": rows["repeats"],
        }
    )  # fmt: skip


def _power(power: pd.DataFrame | None, of_level: pd.DataFrame, target: str, coefficient: str) -> pd.DataFrame:
    if power is None:
        return pd.DataFrame(columns=["part"])
    pooled = (power["grouping"] == "pooled") & (power["coefficient"] == coefficient)
    rows = power[(power["target"] == target) & pooled & power["power"].notna()]
    both = ["level", "against"]
    same = pd.MultiIndex.from_frame(rows[both]).isin(pd.MultiIndex.from_frame(of_level[both]))
    if same.any():
        rows = rows[same]
    if rows.empty:
        # Of a few systems alone, no size tells any pair apart.
        return pd.DataFrame(columns=["part"])
    names = [f"{low:g} to {high:g}" for low, high in pairwise(_APART[:-1])]
    names.append(f"above {_APART[-2]:g}")
    apart = pd.cut(rows["difference"].abs(), list(_APART), labels=names, include_lowest=True)
    found = rows.groupby(["varied", apart.astype(str), "size"])["power"]
    frame = found.quantile(np.array([0.25, 0.5, 0.75])).unstack().reset_index()
    frame.columns = pd.Index(["varied", "series", "size", "low", "value", "high"])
    frame["n"] = found.size().to_numpy()
    return frame.assign(part="power").sort_values(["series", "varied", "size"])


def curves_figure(
    frame: pd.DataFrame,
    *,
    title: str,
    target: str,
    coefficient: str = "spearman",
    labels: Mapping[str, str] | None = None,
    simulated: bool = False,
) -> Figure:
    """Draw the frame of :func:`curves_frame`: one column for what was made less of, one row a part.

    A frame without points makes a figure that says that nothing was computed.
    """
    import matplotlib.pyplot as plt

    columns = [name for name in VARIED if name in set(frame["varied"])] or list(VARIED)
    rows = [part for part in _PARTS if part in set(frame["part"])] or ["value"]
    headings = {
        "value": f"{COEFFICIENTS[coefficient]}'s correlation\nwith the rating ({target})",
        "agreement": "Agreement of the metrics'\nranking with the whole (τ)",
        "power": "Chance to tell\ntwo metrics apart",
    }
    shapes = [2.0 if part == "value" else 1.6 for part in rows]
    width = 1.75 * max(len(columns), 3) + 0.7
    with drawing():
        legends = [_legend(frame[frame["part"] == part], part, labels or {}, width) for part in rows]
        # Each row of panels below its legend.
        heights = [part for legend, shape in zip(legends, shapes, strict=True) for part in (legend.height, shape)]
        figure = plt.figure(figsize=(width, sum(heights) + 0.9), layout="constrained")
        grid = figure.add_gridspec(len(heights), len(columns), height_ratios=heights)
        axes: list[list[Any]] = []
        for row, part in enumerate(rows):
            of_part = frame[frame["part"] == part]
            series = list(dict.fromkeys(of_part["series"]))
            axes.append([])
            for column in range(len(columns)):
                ax = figure.add_subplot(
                    grid[2 * row + 1, column],
                    sharex=axes[0][column] if row else None,
                    sharey=axes[row][0] if column else None,
                )
                ax.tick_params(labelbottom=row == len(rows) - 1, labelleft=column == 0)
                axes[row].append(ax)
            for ax, varied in zip(axes[row], columns, strict=True):
                found = of_part[of_part["varied"] == varied]
                if found.empty:
                    ax.text(0.5, 0.5, "not computed", ha="center", va="center", transform=ax.transAxes, color="#777777")
                for n, name in enumerate(series):
                    _draw(ax, found[found["series"] == name], n, len(series), banded=part)
                lines_behind(ax, "y")
            axes[row][0].set_ylabel(headings[part])
            legends[row].draw(figure.add_subplot(grid[2 * row, :]))
            if part == "power":
                axes[row][0].set_ylim(-0.03, 1.03)
        for ax, varied in zip(axes[-1], columns, strict=True):
            if sizes := sorted(frame.loc[frame["varied"] == varied, "size"].unique()):
                _scale(ax, sizes)
            ax.set_xlabel(VARIED[varied])
        titled(
            figure,
            "What a smaller or larger benchmark would say",
            title,
            _NOTES,
            simulated=simulated,
        )
    return figure


def _called(part: str, series: str, labels: Mapping[str, str]) -> str:
    if part == "value":
        return label(output_name(series), labels)
    return series[0].upper() + series[1:] if part == "agreement" else series


class _Legend(NamedTuple):
    """What the series of a row of panels are called, in so many columns."""

    handles: list[Any]
    columns: int
    title: str | None

    @property
    def height(self) -> float:
        """Inches."""
        return 0.17 * (-(-len(self.handles) // self.columns) + bool(self.title)) + 0.02

    def draw(self, ax: Any) -> None:  # noqa: ANN401
        ax.axis("off")
        ax.legend(
            handles=self.handles, loc="upper left", ncols=self.columns, frameon=False, handlelength=3, borderaxespad=0,
            borderpad=0, columnspacing=1.4, labelspacing=0.25, title=self.title, alignment="left",
        )  # fmt: skip


def _legend(of_part: pd.DataFrame, part: str, labels: Mapping[str, str], width: float) -> _Legend:
    names = [_called(part, name, labels) for name in dict.fromkeys(of_part["series"])]
    # About as many characters as are as wide as the figure; a line with its mark takes as much as nine.
    fitting = int(width * 72 / (8 * 0.55)) // (max(map(len, names), default=1) + 9)
    return _Legend(
        [_handle(n, name) for n, name in enumerate(names)],
        max(1, min(fitting, len(names))),
        "Difference of the correlations" if part == "power" else None,
    )


def _handle(n: int, text: str) -> Any:  # noqa: ANN401
    from matplotlib.lines import Line2D

    colour, mark, line = SERIES[n % len(SERIES)]
    return Line2D([], [], color=colour, marker=mark, ls=line, ms=4, lw=1.2, mec="black", mew=0.4, label=text)


def _draw(ax: Any, rows: pd.DataFrame, n: int, count: int, *, banded: str) -> None:  # noqa: ANN401
    if rows.empty:
        return
    colour, mark, line = SERIES[n % len(SERIES)]
    aside = 1.035 ** (n - (count - 1) / 2) if banded != "agreement" else 1.0
    x = rows["size"].to_numpy(dtype=np.float64) * aside
    if rows["low"].notna().any():
        ax.vlines(x, rows["low"], rows["high"], color=colour, lw=0.9, alpha=0.9)
    ax.plot(x, rows["value"], color=colour, marker=mark, ls=line, ms=3.8, lw=1.1, mec="black", mew=0.4)


def _scale(ax: Any, sizes: Sequence[int]) -> None:  # noqa: ANN401
    ax.set_xscale("log")
    # A label takes about a sixth of the axis; the largest size always has one.
    room = (sizes[-1] / sizes[0]) ** 0.16
    shown = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if shown[-1] / size >= room:
            shown.append(size)
    shown.reverse()
    ax.set_xticks(shown, [str(size) for size in shown])
    ax.minorticks_off()
    ax.set_xlim(sizes[0] / 1.25, sizes[-1] * 1.25)
