"""Scores of a metric against ratings: how the responses lie, and the systems' means over them."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.evaluation.samples import Sample
from comperdial.report.about import label
from comperdial.report.plots.style import (
    Output,
    chosen,
    drawing,
    figure_and_axes,
    interval,
    lines_behind,
    pairs,
    short,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
MOST_PANELS = 12
_SCORE_BINS = 28
_COEFFICIENT = "spearman"
_EVERYTHING = "all"
_MARKS = {
    "agent": ("o", "#a83800", "#ffffff", "System, mean"),
    "human": ("D", "#ffffff", "#000000", "Human system, mean"),
}


def scatter_frame(
    sample: Sample,
    correlations: pd.DataFrame,
    *,
    outputs: Sequence[Output] | None = None,
    human: Collection[str] = (),
) -> pd.DataFrame:
    """Return each system's means, and the correlation over single responses.

    Parameters
    ----------
    sample
        Scores and ratings of turns.
    correlations
        Table ``correlations`` of the data set: Spearman over turns is taken from it, so that a figure says what the
        tables say.
    outputs
        Which outputs, at most twelve; those without scores are left out. Default: all.
    human
        Names of the systems that are people.

    Returns
    -------
    DataFrame
        metric, output, system_id, kind, score, rating (means over the responses that have both), n, value, low, high.
        For each output one row of kind ``all`` without a system, whose value, low and high are the correlation with the
        ratings, then one a system, of kind ``agent`` or ``human``.
    """
    names = chosen(outputs, sample.names, "scores")[:MOST_PANELS]
    found = correlations[
        (correlations["level"] == "turn") & (correlations["against"] == "turn")
        & (correlations["target"] == sample.target) & (correlations["grouping"] == "pooled")
        & (correlations["coefficient"] == _COEFFICIENT)
    ]  # fmt: skip
    numbers = {
        (row["metric"], row["output"]): {field: row[field] for field in ("value", "low", "high")}
        for row in found.to_dict("records")
    }
    rows: list[dict[str, Any]] = []
    for name in names:
        scores = sample.scores[sample.names.index(name)]
        there = ~np.isnan(scores)
        codes, scores, ratings = sample.design.systems[there], scores[there], sample.ratings[there]
        key = {"metric": name[0], "output": name[1]}
        rows.append(
            {**key, "system_id": "", "kind": _EVERYTHING, "score": scores.mean(), "rating": ratings.mean()}
            | {"n": len(scores)}
            | numbers.get(name, {})
        )
        for code in np.unique(codes):
            own = codes == code
            system = sample.systems[code]
            rows.append(
                {**key, "system_id": system, "kind": "human" if system in human else "agent"}
                | {"score": scores[own].mean(), "rating": ratings[own].mean(), "n": int(own.sum())}
            )
    columns = ["metric", "output", "system_id", "kind", "score", "rating", "n", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def density(scores: Floats, ratings: Floats) -> tuple[Floats, Floats, Floats]:
    """Count responses in cells of score and rating: edges of both, and counts of shape (rating cells, score cells).

    A cell of ratings holds one value where there are few, as of means of a few annotators.
    """
    values = np.unique(ratings.round(9))
    step = float(np.diff(values).min()) if len(values) > 1 else 1.0
    several = round((values[-1] - values[0]) / step) + 1
    vertical = (
        np.linspace(values[0] - step / 2, values[-1] + step / 2, several + 1)
        if several <= 30
        else np.linspace(values[0], values[-1], 21)
    )
    low, high = float(scores.min()), float(scores.max())
    pad = 0.5 if low == high else 0.0
    horizontal = np.linspace(low - pad, high + pad, _SCORE_BINS + 1)
    counts, _, _ = np.histogram2d(ratings, scores, bins=(vertical, horizontal))
    return horizontal, vertical, np.asarray(counts)


def scatter_figure(
    frame: pd.DataFrame,
    sample: Sample,
    *,
    title: str,
    labels: Mapping[str, str] | None = None,
    simulated: bool = False,
) -> Figure:
    """Draw the frame of :func:`scatter_frame` over the responses of its sample, one panel an output."""
    names = list(dict.fromkeys(pairs(frame)))
    # As many rows as four columns need, and no more columns than fill them.
    columns = -(-len(names) // -(-len(names) // 4))
    rows = -(-len(names) // columns)
    with drawing():
        figure, axes = figure_and_axes(rows, columns, (max(2.25 * columns + 0.5, 5.2), 2.1 * rows + 0.9), sharey=True)
        for ax in axes.flat[len(names) :]:
            ax.set_axis_off()
        for ax, name in zip(axes.flat, names, strict=False):
            of_output = frame[(frame["metric"] == name[0]) & (frame["output"] == name[1])]
            _draw_density(ax, sample, name)
            for kind, (mark, face, edge, _) in _MARKS.items():
                points = of_output[of_output["kind"] == kind]
                ax.plot(
                    points["score"], points["rating"], mark, mfc=face, mec=edge, mew=0.4 if kind == "agent" else 1.0,
                    ms=3.2 if kind == "agent" and len(points) > 20 else 5, ls="", zorder=3,
                )  # fmt: skip
            first = of_output[of_output["kind"] == _EVERYTHING].iloc[0]
            ends = interval(first["low"], first["high"])
            found = f"ρ = {short(first['value'])}" + (f" [{ends}]" if ends else "")
            shown = textwrap.shorten(label(name, labels or {}), 40)
            ax.set_title(f"{shown}\n{found}", loc="left", fontsize=7.5, parse_math=False)
            lines_behind(ax, "both")
            ax.locator_params(axis="x", nbins=4)
        for ax in axes[:, 0]:
            ax.set_ylabel(f"Mean rating\n({sample.target})")
        for column in range(columns):
            last = (len(names) - 1 - column) // columns
            axes[last][column].set_xlabel("Score (the metric's own scale)")
        titled(
            figure,
            "Scores against ratings",
            title,
            "Each panel: one metric. Shading: responses, darker where more lie (each panel's own scale, by the "
            f"logarithm of the count). Marks: a system's mean score and mean rating ({sample.target}). ρ: Spearman's "
            "correlation over single responses, with its 95 % interval.",
            simulated=simulated,
            handles=_handles(set(frame["kind"])),
        )
    return figure


def _draw_density(ax: Any, sample: Sample, name: Output) -> None:  # noqa: ANN401
    from matplotlib.colors import LogNorm

    scores = sample.scores[sample.names.index(name)]
    there = ~np.isnan(scores)
    x, y, counts = density(scores[there], sample.ratings[there])
    # An image of one pixel a cell, which the vector forms keep as small as it is.
    ax.imshow(
        np.ma.masked_equal(counts, 0), extent=(x[0], x[-1], y[0], y[-1]), origin="lower", aspect="auto", cmap="Greys",
        norm=LogNorm(0.3, max(4.0, float(counts.max()) * 8)), interpolation="none", zorder=1,
    )  # fmt: skip
    ax.set_xlim(x[0] - 0.03 * (x[-1] - x[0]), x[-1] + 0.03 * (x[-1] - x[0]))


def _handles(kinds: set[str]) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks = [
        Line2D([], [], ls="", marker=mark, mfc=face, mec=edge, mew=0.8, ms=5, label=text)
        for kind, (mark, face, edge, text) in _MARKS.items()
        if kind in kinds
    ]
    return [*marks, Patch(color="#aaaaaa", label="Responses")]
