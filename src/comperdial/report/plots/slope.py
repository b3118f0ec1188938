"""Systems ranked by people and by a metric, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from comperdial.report.about import Inputs, Study
from comperdial.report.correlations import FEW
from comperdial.report.plots.scatter import units_of
from comperdial.report.plots.shown import Shown
from comperdial.report.plots.style import INK, QUIET, drawing, figure_and_axes, short, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 3
# How many of the systems that rating and metric put furthest apart are named.
MARKED = 6
_LINES = {
    "human": ("#000000", "-", "D", "Human system"),
    "higher": ("#d55e00", "--", "^", "Ranked higher by the metric"),
    "lower": ("#0072b2", "-.", "v", "Ranked lower by the metric"),
}


def slope(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw each system's rank by mean rating and by mean score, a panel for each output.

    The frame's ranks are 1 for the best, ties share the mean rank; ``tau`` is Kendall's tau-b of both.
    """
    shown = Shown(inputs, study)
    sample = shown.sample("system")
    parts = []
    for name in shown.chosen(sample.names)[:MOST_PANELS]:
        means = units_of(sample, name).groupby("system_id")[["rating", "score"]].mean()
        means = means.reindex([system for system in sample.systems if system in means.index])
        # Sums in another order differ in the last digits, and would part ties.
        rounded = means.round(12)
        for column in ("rating", "score"):
            means[f"{column}_rank"] = stats.rankdata(-rounded[column])
        tau = stats.kendalltau(rounded["rating"], rounded["score"]).statistic
        means = means.assign(marked=marked(means, shown.human), tau=tau, metric=name[0], output=name[1])
        parts.append(means.reset_index().sort_values(["rating_rank", "system_id"]))
    columns = ["metric", "output", "system_id", "rating", "score", "rating_rank", "score_rank", "marked", "tau"]
    frame = pd.concat(parts, ignore_index=True)[columns]
    return _draw(frame, shown, f"{sample.target}, ratings of {sample.against}s"), frame


def marked(means: pd.DataFrame, human: set[str], count: int = MARKED) -> list[str]:
    """Return how each system is marked: ``human``, or ``higher`` or ``lower`` if it moves furthest, else nothing."""
    moved = (means["rating_rank"] - means["score_rank"]).where(~means.index.isin([*human]), 0.0)
    far = {*moved[moved != 0].abs().sort_values(ascending=False, kind="stable").index[:count]}
    kinds = {name: "higher" if moved[name] > 0 else "lower" for name in far} | dict.fromkeys(human, "human")
    return [kinds.get(name, "") for name in means.index]


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move labels apart so that neighbours are ``gap`` or more from each other, within low and high, order kept."""
    order = np.argsort(np.asarray(places), kind="stable")
    moved = np.asarray(places, dtype=np.float64)[order]
    steps = min(gap, (high - low) / max(1, len(moved) - 1)) * np.arange(len(moved))
    # Up from below, then down from the top as far as needed.
    moved = np.maximum.accumulate(moved - steps) + steps
    moved = np.minimum(moved, high - steps[::-1])
    back = np.empty_like(moved)
    back[order] = moved
    return [float(place) for place in back]


def _draw(frame: pd.DataFrame, shown: Shown, rated: str) -> Figure:
    outputs = frame.groupby(["metric", "output"], sort=False)
    systems = int(outputs.size().max())
    height = float(np.clip(0.16 * systems, 2.4, 4.8))
    with drawing():
        size = (max(2.75 * len(outputs) + 0.3, 5.6), height + 1.2)
        figure, axes = figure_and_axes(1, len(outputs), size, sharey=True)
        for ax, (name, of_output) in zip(axes[0], outputs, strict=True):
            _draw_panel(ax, of_output, systems, height)
            few = f" (n {systems})" if systems <= FEW else ""
            tau = short(float(of_output["tau"].iloc[0]))
            ax.set_title(f"{shown.label(name)}\nτ = {tau}{few}", loc="left", parse_math=False)
        axes[0][0].set_ylabel(f"Rank of a system (1 is best of {systems})")
        axes[0][0].set_ylim(systems + 0.6, 0.4)
        step = 10 if systems > 20 else 1
        axes[0][0].set_yticks(sorted({1, *range(max(2, step), systems, step), systems}))
        titled(
            figure, "Systems ranked by people and by a metric", shown.title,
            f"Each line is a system, from its rank by mean rating ({rated}) to its rank by mean score. Named: the human systems "
            "and those that rating and metric put furthest apart, with both ranks. τ: Kendall's tau-b of the two.",
            simulated=shown.simulated, handles=_handles({*frame["marked"]}),
        )  # fmt: skip
    return figure


def _draw_panel(ax: Any, rows: pd.DataFrame, systems: int, height: float) -> None:  # noqa: ANN401
    named = rows if systems <= 12 else rows[rows["marked"] != ""]
    places = spread(list(named["score_rank"]), gap=systems / (height / 0.125), low=1, high=systems)
    for one in rows[rows["marked"] == ""].to_dict("records"):
        ax.plot([0, 1], [one["rating_rank"], one["score_rank"]], color=QUIET, lw=0.5, zorder=1)
    for place, one in zip(places, named.to_dict("records"), strict=True):
        colour, line, mark, _ = _LINES.get(one["marked"], (INK, "-", "o", ""))
        if one["marked"]:
            style = {"color": colour, "ls": line, "marker": mark, "ms": 4, "lw": 1.3}
            ax.plot([0, 1], [one["rating_rank"], one["score_rank"]], clip_on=False, zorder=3, **style)
        ax.plot([1.04, 1.12], [one["score_rank"], place], color=colour, lw=0.5, clip_on=False)
        text = f"{one['system_id']}  {one['rating_rank']:g}→{one['score_rank']:g}"
        ax.text(1.14, place, text, color=INK, va="center", fontsize=6.5, parse_math=False)
    ax.set_xticks([0, 1], ["People", "Metric"])
    ax.set_xlim(-0.06, 1.06)
    ax.spines[["bottom", "left"]].set_visible(False)
    ax.tick_params(length=0)
    for x in (0, 1):
        ax.axvline(x, color="0.75", lw=0.8, zorder=0)


def _handles(kinds: set[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, ls=line, marker=mark, ms=4, lw=1.3, label=text)
        for kind, (colour, line, mark, text) in _LINES.items()
        if kind in kinds
    ]
    return [*handles, Line2D([], [], color=QUIET, lw=0.8, label="Other system")] if "" in kinds else handles
