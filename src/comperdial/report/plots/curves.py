"""Learning curves: the results of a smaller benchmark, and the size needed to detect a difference between metrics."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.core.names import output_name
from comperdial.report.about import Inputs, Study
from comperdial.report.correlations import COEFFICIENTS
from comperdial.report.plots.shown import Shown
from comperdial.report.plots.style import SERIES, drawing, lines_behind, titled

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
_PARTS = ("value", "agreement", "power")
_COLUMNS = ["part", "varied", "size", "series", "value", "low", "high", "n"]
_NOTES = (
    "Top: mean over random subsamples, bars: the middle 95 % of them (set apart sideways so that they do not overlap); "
    "the best metrics only. Middle: Kendall's τ between the metrics' ranking in a subsample and that in all data. "
    "Bottom: share of tests at 5 % that find the difference, median over pairs of metrics, bars: quartiles. Sizes on a "
    "logarithmic axis."
)


def curves(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw correlations and the agreement of rankings on part of the data, and the power of tests, by size.

    The frame has, by ``part``: ``value``, an output's correlation, the mean over n subsamples and the middle 95 % of them;
    ``agreement``, Kendall's tau of the metrics' ranking with that of the whole data; ``power``, the median and quartiles over
    n pairs of metrics of the share of tests at 5 % that find the difference, a series for each range of the difference.
    """
    shown = Shown(inputs, study)
    coefficient = shown.about["coefficient"]
    kept = shown.read("curves")
    kept, of_level = kept[kept["coefficient"] == coefficient], None
    parts = []
    if len(kept):
        levels = list(dict.fromkeys(zip(kept["level"], kept["against"], strict=True)))
        level = ("turn", "turn") if ("turn", "turn") in levels else levels[0]
        of_level = kept[(kept["level"] == level[0]) & (kept["against"] == level[1])]
        parts = [values_of(of_level, shown), agreement_of(kept)]
    power = shown.read("power")
    power = power[(power["grouping"] == "pooled") & (power["coefficient"] == coefficient) & power["power"].notna()]
    if of_level is not None:
        here = (power["level"] == level[0]) & (power["against"] == level[1])
        power = power[here] if here.any() else power
    frame = pd.concat([*parts, power_of(power)], ignore_index=True)[_COLUMNS]
    return _draw(
        frame, shown, f"{COEFFICIENTS[coefficient]}'s correlation\nwith the rating ({shown.dimension(kept['target'])})"
    ), frame


def values_of(of_level: pd.DataFrame, shown: Shown) -> pd.DataFrame:
    """Return the curves of the outputs with the highest values on all data, the highest first."""
    known = of_level.dropna(subset="value")
    whole = of_level[of_level.groupby("varied")["size"].transform("max") == of_level["size"]]
    mean = whole.groupby(["metric", "output"])["value"].mean()
    names = shown.chosen(zip(known["metric"], known["output"], strict=True))
    best = sorted(names, key=lambda name: (-mean.get(name, -np.inf), name))[:MOST_LINES]
    order = {":".join(name): n for n, name in enumerate(best)}
    rows = of_level.assign(part="value", series=of_level["metric"] + ":" + of_level["output"], n=of_level["repeats"])
    rows = rows[rows["series"].isin(order)].assign(order=rows["series"].map(order))
    return rows.sort_values(["order", "varied", "size"], kind="stable")[_COLUMNS]


def agreement_of(kept: pd.DataFrame) -> pd.DataFrame:
    """Return how the metrics' ranking agrees with that of the whole data, a series for each level and level of ratings."""
    rows = kept.drop_duplicates(["level", "against", "varied", "size"]).dropna(subset="agreement")
    rows = rows.sort_values(["level", "against", "varied", "size"])
    series = rows["level"] + "s against ratings of " + rows["against"] + "s"
    rows = rows.assign(
        part="agreement", series=series, value=rows["agreement"], low=np.nan, high=np.nan, n=rows["repeats"]
    )
    return rows[_COLUMNS]


def power_of(power: pd.DataFrame) -> pd.DataFrame:
    """Return median and quartiles of the power over pairs, a series for each range of the difference."""
    names = [f"{low:g} to {high:g}" for low, high in pairwise(_APART[:-1])] + [f"above {_APART[-2]:g}"]
    series = pd.cut(power["difference"].abs(), list(_APART), labels=names, include_lowest=True).astype(str)
    found = power.assign(series=series).groupby(["series", "varied", "size"])["power"]
    columns = {
        "value": found.quantile(0.5),
        "low": found.quantile(0.25),
        "high": found.quantile(0.75),
        "n": found.size(),
    }
    return pd.DataFrame(columns).reset_index().assign(part="power")[_COLUMNS]


def _draw(frame: pd.DataFrame, shown: Shown, heading: str) -> Figure:
    import matplotlib.pyplot as plt

    columns = [name for name in VARIED if name in {*frame["varied"]}] or list(VARIED)
    parts = [part for part in _PARTS if part in {*frame["part"]}] or ["value"]
    headings = {
        "value": heading,
        "agreement": "Agreement of the metrics'\nranking with the whole (τ)",
        "power": "Chance to tell\ntwo metrics apart",
    }
    width = 1.75 * max(len(columns), 3) + 0.7
    with drawing():
        legends = [_legend(frame[frame["part"] == part], part, shown, width) for part in parts]
        # Each row of panels below its legend.
        heights = []
        for part, legend in zip(parts, legends, strict=True):
            lines = -(-len(legend["handles"]) // legend["ncols"]) + bool(legend["title"])
            heights += [0.17 * lines + 0.02, 2.0 if part == "value" else 1.6]
        figure = plt.figure(figsize=(width, sum(heights) + 0.9), layout="constrained")
        grid = figure.add_gridspec(len(heights), len(columns), height_ratios=heights)
        first: dict[Any, Any] = {}
        for row, part in enumerate(parts):
            of_part = frame[frame["part"] == part]
            for column, varied in enumerate(columns):
                shared = {"sharex": first.get(("x", column)), "sharey": first.get(("y", row))}
                ax = figure.add_subplot(grid[2 * row + 1, column], **shared)
                first.setdefault(("x", column), ax)
                first.setdefault(("y", row), ax)
                ax.tick_params(labelbottom=row == len(parts) - 1, labelleft=column == 0)
                _draw_panel(ax, of_part[of_part["varied"] == varied], list(dict.fromkeys(of_part["series"])), part)
                if row == len(parts) - 1:
                    _scale(ax, sorted(frame.loc[frame["varied"] == varied, "size"].unique()))
                    ax.set_xlabel(VARIED[varied])
            first["y", row].set_ylabel(headings[part])
            if part == "power":
                first["y", row].set_ylim(-0.03, 1.03)
            above = figure.add_subplot(grid[2 * row, :])
            above.axis("off")
            above.legend(
                **legends[row], loc="upper left", frameon=False, handlelength=3, borderaxespad=0, borderpad=0,
                columnspacing=1.4, labelspacing=0.25, alignment="left",
            )  # fmt: skip
        title = "What a smaller or larger benchmark would say"
        titled(figure, title, shown.title, _NOTES, simulated=shown.simulated)
    return figure


def _legend(of_part: pd.DataFrame, part: str, shown: Shown, width: float) -> dict[str, Any]:
    """Return what the series of a row of panels are called, in as many columns as fit."""
    from matplotlib.lines import Line2D

    names = list(dict.fromkeys(of_part["series"]))
    if part == "value":
        names = [shown.label(output_name(name)) for name in names]
    elif part == "agreement":
        names = [name[0].upper() + name[1:] for name in names]
    # About as many characters as are as wide as the figure; a line with its mark takes as much as nine.
    fitting = int(width * 72 / (8 * 0.55)) // (max(map(len, names), default=1) + 9)
    handles = [Line2D([], [], **_style(n), ms=4, label=text) for n, text in enumerate(names)]
    title = "Difference of the correlations" if part == "power" else None
    return {"handles": handles, "ncols": max(1, min(fitting, len(names))), "title": title}


def _style(n: int) -> dict[str, Any]:
    colour, mark, line = SERIES[n % len(SERIES)]
    return {"color": colour, "marker": mark, "ls": line, "lw": 1.2, "mec": "black", "mew": 0.4}


def _draw_panel(ax: Any, found: pd.DataFrame, series: list[str], part: str) -> None:  # noqa: ANN401
    if found.empty:
        ax.text(0.5, 0.5, "not computed", ha="center", va="center", transform=ax.transAxes, color="#777777")
    for n, name in enumerate(series):
        rows = found[found["series"] == name]
        aside = 1.035 ** (n - (len(series) - 1) / 2) if part != "agreement" else 1.0
        if rows["low"].notna().any():
            ax.vlines(
                rows["size"] * aside, rows["low"], rows["high"], color=SERIES[n % len(SERIES)][0], lw=0.9, alpha=0.9
            )
        ax.plot(rows["size"] * aside, rows["value"], **_style(n), ms=3.8)
    lines_behind(ax, "y")


def _scale(ax: Any, sizes: list[int]) -> None:  # noqa: ANN401
    if not sizes:
        return
    ax.set_xscale("log")
    # A label takes about a sixth of the axis; the largest size always has one.
    shown = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if shown[-1] / size >= (sizes[-1] / sizes[0]) ** 0.16:
            shown.append(size)
    ax.set_xticks(shown[::-1], [str(size) for size in shown[::-1]])
    ax.minorticks_off()
    ax.set_xlim(sizes[0] / 1.25, sizes[-1] * 1.25)
