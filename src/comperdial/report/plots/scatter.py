"""Scores of a metric against ratings: single responses as shading, and the systems' means over them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.evaluation.samples import Sample
from comperdial.report.about import Inputs, Study
from comperdial.report.plots.shown import Shown
from comperdial.report.plots.style import drawing, figure_and_axes, interval, lines_behind, short, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
MOST_PANELS = 12
_MARKS = {
    "agent": ("o", "#a83800", "#ffffff", "System, mean"),
    "human": ("D", "#ffffff", "#000000", "Human system, mean"),
}


def scatter(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw scores against ratings, a panel for each output.

    The frame has, for each output, a row of kind ``all`` with Spearman's correlation as the tables have it, then a row of
    means for each system.
    """
    shown = Shown(inputs, study)
    sample, found = shown.sample("turn"), shown.read("correlations")
    found = found[(found["level"] == "turn") & (found["against"] == "turn") & (found["target"] == sample.target)]
    found = found[(found["grouping"] == "pooled") & (found["coefficient"] == "spearman")]
    values = found.set_index(["metric", "output"])[["value", "low", "high"]].to_dict("index")
    parts = []
    for name in shown.chosen(sample.names)[:MOST_PANELS]:
        units = units_of(sample, name)
        columns = {"score": ("score", "mean"), "rating": ("rating", "mean"), "n": ("score", "size")}
        whole = units.assign(system_id="").groupby("system_id").agg(**columns).reset_index().assign(kind="all")
        for column, value in values.get(name, {}).items():
            whole[column] = value
        means = units.groupby("system_id").agg(**columns)
        means = means.reindex([system for system in sample.systems if system in means.index]).reset_index()
        means["kind"] = np.where(means["system_id"].isin(shown.human), "human", "agent")
        parts.append(pd.concat([whole, means]).assign(metric=name[0], output=name[1]))
    names = ["metric", "output", "system_id", "kind", "score", "rating", "n", "value", "low", "high"]
    frame = pd.concat(parts, ignore_index=True).reindex(columns=names)
    return _draw(frame, sample, shown), frame


def units_of(sample: Sample, name: tuple[Any, ...]) -> pd.DataFrame:
    """Return the units that an output has scores of: system_id, score, rating."""
    scores, systems = sample.scores[[*sample.names].index(name)], np.array(sample.systems, dtype=object)
    units = {"system_id": systems[sample.design.systems], "score": scores, "rating": sample.ratings}
    return pd.DataFrame(units).dropna(subset="score")


def density(scores: Floats, ratings: Floats) -> tuple[Floats, Floats, Floats]:
    """Count responses in cells of score and rating: edges of both, and counts of shape (rating cells, score cells).

    A cell of ratings holds one value if there are few, as of means of a few annotators.
    """
    values = np.unique(ratings.round(9))
    step = float(np.diff(values).min()) if len(values) > 1 else 1.0
    several = round((values[-1] - values[0]) / step) + 1
    vertical = (
        np.linspace(values[0] - step / 2, values[-1] + step / 2, several + 1)
        if several <= 30
        else np.linspace(values[0], values[-1], 21)
    )
    pad = 0.5 if scores.min() == scores.max() else 0.0
    horizontal = np.linspace(scores.min() - pad, scores.max() + pad, 29)
    counts, _, _ = np.histogram2d(ratings, scores, bins=(vertical, horizontal))
    return horizontal, vertical, np.asarray(counts)


def _draw(frame: pd.DataFrame, sample: Sample, shown: Shown) -> Figure:
    outputs = frame.groupby(["metric", "output"], sort=False)
    # As many rows as four columns need, and no more columns than fill them.
    columns = -(-len(outputs) // -(-len(outputs) // 4))
    rows = -(-len(outputs) // columns)
    with drawing():
        figure, axes = figure_and_axes(rows, columns, (max(2.25 * columns + 0.5, 5.2), 2.1 * rows + 0.9), sharey=True)
        for ax in axes.flat[len(outputs) :]:
            ax.set_axis_off()
        for ax, (name, of_output) in zip(axes.flat, outputs, strict=False):
            _draw_density(ax, units_of(sample, name))
            for kind, (mark, face, edge, _) in _MARKS.items():
                points = of_output[of_output["kind"] == kind]
                size = 3.2 if kind == "agent" and len(points) > 20 else 5
                style = {"mfc": face, "mec": edge, "mew": 0.4 if kind == "agent" else 1.0, "ms": size}
                ax.plot(points["score"], points["rating"], mark, ls="", zorder=3, **style)
            first = of_output.iloc[0]
            ends = interval(first["low"], first["high"])
            value = f"ρ = {short(first['value'])}" + (f" [{ends}]" if ends else "")
            heading = f"{textwrap.shorten(shown.label(name), 40)}\n{value}"
            ax.set_title(heading, loc="left", fontsize=7.5, parse_math=False)
            lines_behind(ax, "both")
            ax.locator_params(axis="x", nbins=4)
        for ax in axes[:, 0]:
            ax.set_ylabel(f"Mean rating\n({sample.target})")
        for column in range(columns):
            axes[(len(outputs) - 1 - column) // columns][column].set_xlabel("Score (the metric's own scale)")
        titled(
            figure, "Scores against ratings", shown.title,
            "Each panel: one metric. Shading: responses, darker where more lie (each panel's own scale, by the "
            f"logarithm of the count). Marks: a system's mean score and mean rating ({sample.target}). ρ: Spearman's "
            "correlation over single responses, with its 95 % interval.",
            simulated=shown.simulated, handles=_handles({*frame["kind"]}),
        )  # fmt: skip
    return figure


def _draw_density(ax: Any, units: pd.DataFrame) -> None:  # noqa: ANN401
    from matplotlib.colors import LogNorm

    x, y, counts = density(units["score"].to_numpy(), units["rating"].to_numpy())
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
