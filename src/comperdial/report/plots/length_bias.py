"""Length bias: how far a metric goes by how long a response is, and what it says beyond that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from comperdial.core.scripts import words
from comperdial.evaluation.samples import Sample
from comperdial.report.about import label
from comperdial.report.plots.style import (
    Output,
    chosen,
    drawing,
    figure_and_axes,
    lines_behind,
    pairs,
    titled,
)
from comperdial.stats import Coefficient
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
PEOPLE = ("people", "ratings")
LENGTH = ("words", "count")
_WITH_LENGTH, _WITH_RATINGS, _PARTIAL = "length", "ratings", "ratings given length"


def with_lengths(scores: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """Add to table ``scores`` how many words each response has: as metric ``words``."""
    counts = responses["response"].astype(str).map(lambda text: len(words(text)))
    rows = responses[["dataset", "context_id", "system_id"]].rename(columns={"context_id": "item_id"})
    rows = rows[rows["system_id"].isin(scores["system_id"].unique())].assign(
        level="turn", metric=LENGTH[0], output=LENGTH[1], value=counts.astype("float32"), cut=0, signature="words"
    )
    return pd.concat([scores, rows[scores.columns]], ignore_index=True)


def length_bias_frame(
    sample: Sample, *, outputs: Sequence[Output] | None = None, resamples: int, seed: int
) -> pd.DataFrame:
    """Correlate scores with length, with ratings, and with ratings given length (Spearman, over responses).

    Parameters
    ----------
    sample
        Scores and ratings of turns, with the lengths of :func:`with_lengths`.
    outputs
        Which outputs; those without scores are left out. Default: all.
    resamples, seed
        For the intervals (:func:`comperdial.stats.intervals.intervals`).

    Returns
    -------
    DataFrame
        One row an output and measure: metric, output, measure (``length``: score and length; ``ratings``: score and
        rating; ``ratings given length``: partial correlation), value, low, high, n. The first row is that of people:
        mean rating and length. The interval of a partial correlation takes the ranks' dependence on length as fixed.
        Then the outputs, the strongest dependence on length first.
    """
    names = chosen(outputs, [name for name in sample.names if name != LENGTH], "scores")
    length = sample.scores[sample.names.index(LENGTH)]
    known = ~np.isnan(length)
    options: dict[str, Any] = {"resamples": resamples, "seed": seed}
    people = _correlate(sample.ratings[np.newaxis, known], length[known], _part(sample.design, known), options)
    # Outputs with the same missing scores go together: one set of resamples serves them all.
    together: dict[bytes, list[Output]] = {}
    there = {name: known & ~np.isnan(sample.scores[sample.names.index(name)]) for name in names}
    for name in names:
        together.setdefault(there[name].tobytes(), []).append(name)
    by_output = []
    for group in together.values():
        units = there[group[0]]
        scores = np.stack([sample.scores[sample.names.index(name), units] for name in group])
        measured = _measures(scores, sample.ratings[units], length[units], _part(sample.design, units), options)
        by_output += [
            [_row(name, measure, numbers[n]) for measure, numbers in measured.items()] for n, name in enumerate(group)
        ]
    by_output.sort(key=lambda found: (-np.nan_to_num(found[0]["value"], nan=-2.0), found[0]["metric"]))
    return pd.DataFrame([_row(PEOPLE, _WITH_LENGTH, people[0]), *(row for found in by_output for row in found)])


def _measures(
    scores: Floats, ratings: Floats, length: Floats, design: Design, options: Mapping[str, Any]
) -> dict[str, list[dict[str, float]]]:
    ranks = stats.rankdata(length)
    rest = np.stack([_residuals(stats.rankdata(row), ranks) for row in scores])
    rated = _residuals(stats.rankdata(ratings), ranks)
    return {
        _WITH_LENGTH: _correlate(scores, length, design, options),
        _WITH_RATINGS: _correlate(scores, ratings, design, options),
        _PARTIAL: _correlate(rest, rated, design, options, "pearson"),
    }


def _row(name: Output, measure: str, numbers: dict[str, float]) -> dict[str, Any]:
    return {"metric": name[0], "output": name[1], "measure": measure, **numbers}


def _correlate(
    scores: Floats, other: Floats, design: Design, options: Mapping[str, Any], coefficient: Coefficient = "spearman"
) -> list[dict[str, float]]:
    found = intervals(scores, other, design, [coefficient], **options)
    columns = (found.value[:, 0], found.low[:, 0], found.high[:, 0])
    return [
        {"value": float(value), "low": float(low), "high": float(high), "n": len(other)}
        for value, low, high in zip(*columns, strict=True)
    ]


def _residuals(values: Floats, given: Floats) -> Floats:
    """Return what a straight line through the other values does not say; exactly 0 where it says everything."""
    centred, other = values - values.mean(), given - given.mean()
    spread = float(other @ other)
    rest = centred - other * (float(centred @ other) / spread) if spread else centred
    # Rounding must not pass for variation.
    return np.zeros_like(rest) if np.abs(rest).max() < 1e-9 * max(1.0, np.abs(centred).max()) else np.asarray(rest)


def _part(design: Design, there: npt.NDArray[np.bool_]) -> Design:
    if there.all():
        return design
    codes = [np.unique(c[there], return_inverse=True)[1] for c in (design.systems, design.dialogues)]
    return Design(codes[0], codes[1], average=design.average, fixed=design.fixed)


def length_bias_figure(
    frame: pd.DataFrame, *, title: str, target: str, labels: Mapping[str, str] | None = None, simulated: bool = False
) -> Figure:
    """Draw the frame of :func:`length_bias_frame`: dependence on length at the left, agreement at the right."""
    names = list(dict.fromkeys(pairs(frame)))
    place = {name: len(names) - 1 - n for n, name in enumerate(names)}
    rows = frame.assign(y=[place[name] for name in pairs(frame)])
    panels = (
        ("With the length of the response", ((_WITH_LENGTH, "Score and length", "o", "#0072b2", 0.0),)),
        (
            f"With the rating ({target})",
            (
                (_WITH_RATINGS, "Score and rating", "s", "#d55e00", 0.17),
                (_PARTIAL, "Score and rating, length held fixed", "^", "#ffffff", -0.17),
            ),
        ),
    )
    handles: list[Any] = []
    with drawing():
        figure, axes = figure_and_axes(1, 2, (7.6, 0.24 * len(names) + 1.1), sharey=True)
        for ax, (heading, measures) in zip(axes[0], panels, strict=True):
            for measure, text, mark, face, shift in measures:
                found = rows[(rows["measure"] == measure) & (rows["metric"] != PEOPLE[0])]
                handles.append(_dots(ax, found, mark, face, shift, text))
            ax.axvline(0, color="0.5", lw=0.8, zorder=0)
            ax.set_title(heading, loc="left", fontweight="bold")
            ax.set_xlabel("Spearman's ρ, over responses")
            lines_behind(ax, "both")
        people = rows[rows["metric"] == PEOPLE[0]]
        handles.append(_dots(axes[0][0], people, "D", "#000000", 0.0, "Mean rating and length"))
        axes[0][0].axvline(float(people["value"].iloc[0]), color="black", lw=0.8, ls=(0, (4, 2)), zorder=1)
        shown = ["People (mean rating)" if name == PEOPLE else label(name, labels or {}) for name in names]
        axes[0][0].set_yticks([place[name] for name in names], shown)
        axes[0][0].set_ylim(-0.6, len(names) - 0.4)
        titled(
            figure,
            "Length bias",
            title,
            "Left: how far scores rise with the words of a response; the dashed line is where people's ratings are. "
            "Right: agreement with ratings, as it is and with the length of the response held fixed (partial "
            "correlation of ranks). Bars: 95 % intervals.",
            simulated=simulated,
            handles=handles,
        )
    return figure


def _dots(ax: Any, rows: pd.DataFrame, mark: str, face: str, shift: float, text: str) -> Any:  # noqa: ANN401
    y = rows["y"].to_numpy(dtype=np.float64) + shift
    ends = rows[["low", "high"]].to_numpy(dtype=np.float64)
    ax.hlines(y, ends[:, 0], ends[:, 1], color="#333333", lw=0.9, zorder=2)
    (found,) = ax.plot(rows["value"], y, mark, mfc=face, mec="black", mew=0.7, ms=4.6, ls="", zorder=3, label=text)
    return found
