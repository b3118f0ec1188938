"""Systems ranked by people and by a metric, side by side: who the metric puts elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from comperdial.evaluation.samples import Sample
from comperdial.report.about import label
from comperdial.report.correlations import FEW
from comperdial.report.plots.style import (
    INK,
    QUIET,
    Output,
    chosen,
    drawing,
    figure_and_axes,
    pairs,
    short,
    titled,
)
from comperdial.stats.correlation import correlate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 3
_HUMAN, _HIGHER, _LOWER = "human", "higher", "lower"
_LINES = {
    _HUMAN: ("#000000", "-", "D", "Human system"),
    _HIGHER: ("#d55e00", "--", "^", "Ranked higher by the metric"),
    _LOWER: ("#0072b2", "-.", "v", "Ranked lower by the metric"),
}


def slope_frame(
    sample: Sample, *, outputs: Sequence[Output] | None = None, human: Collection[str] = (), count: int = 6
) -> pd.DataFrame:
    """Rank systems by their mean rating and by their mean score.

    Parameters
    ----------
    sample
        Scores and ratings of the units that systems are averaged over.
    outputs
        Which outputs, at most three; those without scores are left out. Default: all.
    human
        Names of the systems that are people.
    count
        How many of the systems on which rating and metric differ most to mark.

    Returns
    -------
    DataFrame
        One row an output and system: metric, output, system_id, rating, score (means over units that have both),
        rating_rank, score_rank (1 = best, ties share the mean rank), marked (human, higher, lower or empty), tau
        (Kendall's tau-b of the two, the same in each row of an output).
    """
    found = []
    for name in chosen(outputs, sample.names, "scores")[:MOST_PANELS]:
        scores = sample.scores[sample.names.index(name)]
        there = ~np.isnan(scores)
        units = pd.DataFrame(
            {"code": sample.design.systems[there], "rating": sample.ratings[there], "score": scores[there]}
        )
        means = units.groupby("code").mean()
        means.insert(0, "system_id", [sample.systems[code] for code in means.index])
        for column in ("rating", "score"):
            # Sums in another order differ in the last digits, and would part ties.
            means[f"{column}_rank"] = stats.rankdata(-means[column].round(12))
        means["marked"] = _marked(means, human, count)
        means["tau"] = correlate(means["rating"].round(12), means["score"].round(12), "kendall").value
        means.insert(0, "output", name[1])
        means.insert(0, "metric", name[0])
        found.append(means.sort_values(["rating_rank", "system_id"]))
    return pd.concat(found, ignore_index=True)


def _marked(means: pd.DataFrame, human: Collection[str], count: int) -> list[str]:
    moved = means["rating_rank"] - means["score_rank"]
    is_human = means["system_id"].isin(list(human))
    order = sorted(means.index[~is_human & (moved != 0)], key=lambda code: (-abs(moved[code]), code))
    far = set(order[:count])
    return [
        _HUMAN if is_human[code] else (_HIGHER if moved[code] > 0 else _LOWER) if code in far else ""
        for code in means.index
    ]


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move labels apart so that neighbours are ``gap`` or more from each other, within low and high, order kept."""
    order = np.argsort(np.asarray(places), kind="stable")
    moved = np.asarray(places, dtype=np.float64)[order]
    gap = min(gap, (high - low) / max(1, len(moved) - 1))
    for n in range(1, len(moved)):
        moved[n] = max(moved[n], moved[n - 1] + gap)
    if len(moved) and moved[-1] > high:
        moved[-1] = high
        for n in range(len(moved) - 2, -1, -1):
            moved[n] = min(moved[n], moved[n + 1] - gap)
    back = np.empty_like(moved)
    back[order] = moved
    return [float(place) for place in back]


def slope_figure(
    frame: pd.DataFrame,
    *,
    title: str,
    target: str,
    against: str,
    labels: Mapping[str, str] | None = None,
    simulated: bool = False,
) -> Figure:
    """Draw the frame of :func:`slope_frame`, one panel an output; ``against`` is the level of the ratings."""
    names = list(dict.fromkeys(pairs(frame)))
    systems = int(frame.groupby(["metric", "output"])["system_id"].size().max())
    height = float(np.clip(0.16 * systems, 2.4, 4.8))
    with drawing():
        figure, axes = figure_and_axes(1, len(names), (max(2.75 * len(names) + 0.3, 5.6), height + 1.2), sharey=True)
        for ax, name in zip(axes[0], names, strict=True):
            of_output = frame[(frame["metric"] == name[0]) & (frame["output"] == name[1])]
            _draw_panel(ax, of_output, systems, height, mark_all=systems <= 12)
            tau = short(float(of_output["tau"].iloc[0]))
            ax.set_xticks([0, 1], ["People", "Metric"])
            few = f" (n {systems})" if systems <= FEW else ""
            ax.set_title(f"{label(name, labels or {})}\nτ = {tau}{few}", loc="left", parse_math=False)
        axes[0][0].set_ylabel(f"Rank of a system (1 is best of {systems})")
        axes[0][0].set_ylim(systems + 0.6, 0.4)
        step = 10 if systems > 20 else 1
        axes[0][0].set_yticks(sorted({1, *range(max(2, step), systems, step), systems}))
        titled(
            figure,
            "Systems ranked by people and by a metric",
            title,
            f"Each line is a system, from its rank by mean rating ({target}, ratings of {against}s) to its "
            "rank by mean score. Named: the human systems and those that rating and metric put furthest apart, with "
            "both ranks. τ: Kendall's tau-b of the two.",
            simulated=simulated,
            handles=_handles(set(frame["marked"])),
        )
    return figure


def _draw_panel(ax: Any, rows: pd.DataFrame, systems: int, height: float, *, mark_all: bool) -> None:  # noqa: ANN401
    from matplotlib.collections import LineCollection

    quiet = rows[rows["marked"] == ""]
    segments = [[(0, a), (1, b)] for a, b in zip(quiet["rating_rank"], quiet["score_rank"], strict=True)]
    ax.add_collection(LineCollection(segments, colors=QUIET, linewidths=0.5, zorder=1))
    marked = rows if mark_all else rows[rows["marked"] != ""]
    places = spread(list(marked["score_rank"]), gap=systems / (height / 0.125), low=1, high=systems)
    for place, row in zip(places, marked.to_dict("records"), strict=True):
        colour, line, mark, _ = _LINES.get(row["marked"], (INK, "-", "o", ""))
        if row["marked"]:
            ax.plot(
                [0, 1], [row["rating_rank"], row["score_rank"]], color=colour, ls=line, marker=mark, ms=4, lw=1.3,
                clip_on=False, zorder=3,
            )  # fmt: skip
        ax.plot([1.04, 1.12], [row["score_rank"], place], color=colour, lw=0.5, clip_on=False)
        text = f"{row['system_id']}  {row['rating_rank']:g}→{row['score_rank']:g}"
        ax.text(1.14, place, text, color=INK, va="center", fontsize=6.5, parse_math=False)
    ax.set_xlim(-0.06, 1.06)
    ax.spines[["bottom", "left"]].set_visible(False)
    ax.tick_params(length=0)
    for x in (0, 1):
        ax.axvline(x, color="0.75", lw=0.8, zorder=0)


def _handles(marked: set[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, ls=line, marker=mark, ms=4, lw=1.3, label=text)
        for kind, (colour, line, mark, text) in _LINES.items()
        if kind in marked
    ]
    return [*handles, Line2D([], [], color=QUIET, lw=0.8, label="Other system")] if "" in marked else handles
