"""Length bias: how far a metric's scores rise with the length of a response, and how they agree with ratings beyond that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import rankdata

from comperdial import schema
from comperdial.core.scripts import words
from comperdial.evaluation.samples import Sample
from comperdial.report.about import Inputs, Study
from comperdial.report.plots.shown import Shown
from comperdial.report.plots.style import drawing, figure_and_axes, lines_behind, titled
from comperdial.stats import Coefficient
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
PEOPLE, LENGTH = ("people", "ratings"), ("words", "count")
_LENGTH, _RATINGS, _PARTIAL = "length", "ratings", "ratings given length"


def length_bias(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw how scores depend on the words of a response, and how they agree with ratings with that held fixed."""
    shown = Shown(inputs, study)
    tables = shown.tables(shown.outputs)
    responses = schema.read(inputs["responses"][0], "responses")
    sample = shown.sample("turn", replace(tables, scores=with_lengths(tables.scores, responses)))
    outputs = shown.chosen(name for name in sample.names if name != LENGTH)
    frame = length_bias_frame(sample, outputs, resamples=shown.about["resamples"], seed=shown.about["seed"])
    return _draw(frame, shown, sample.target), frame


def with_lengths(scores: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """Add to table ``scores`` how many words each response has, as metric ``words``."""
    rows = responses[responses["system_id"].isin(scores["system_id"].unique())]
    rows = rows.rename(columns={"context_id": "item_id"}).assign(
        value=rows["response"].map(lambda text: len(words(text))).astype("float32"),
        level="turn", metric=LENGTH[0], output=LENGTH[1], cut=0, signature="words",
    )  # fmt: skip
    return pd.concat([scores, rows[scores.columns]], ignore_index=True)


def length_bias_frame(sample: Sample, outputs: list[tuple[str, str]], *, resamples: int, seed: int) -> pd.DataFrame:
    """Correlate scores with length, with ratings, and with ratings given length (Spearman, over responses).

    The first row is that of people: mean rating and length; then the output that depends most on length. The interval of the
    partial correlation takes the ranks' dependence on length as fixed.
    """
    length, scores = sample.scores[sample.names.index(LENGTH)], dict(zip(sample.names, sample.scores, strict=True))

    def correlated(
        rows: Floats, other: Floats, kept: npt.NDArray[np.bool_], coefficient: Coefficient = "spearman"
    ) -> list[dict[Any, Any]]:
        found = intervals(rows, other, _part(sample.design, kept), [coefficient], resamples=resamples, seed=seed)
        columns = {name: getattr(found, name)[:, 0] for name in ("value", "low", "high")}
        return pd.DataFrame(columns).assign(n=len(other)).to_dict("records")

    known = ~np.isnan(length)
    people = correlated(sample.ratings[None, known], length[known], known)[0]
    # Outputs with the same missing scores share one set of resamples.
    together: dict[bytes, list[tuple[str, str]]] = {}
    for name in outputs:
        together.setdefault((known & ~np.isnan(scores[name])).tobytes(), []).append(name)
    rows = []
    for mask, names in together.items():
        kept = np.frombuffer(mask, dtype=np.bool_)
        own, rated, long = np.stack([scores[name][kept] for name in names]), sample.ratings[kept], length[kept]
        ranks = rankdata(long)
        rest = np.stack([_residuals(rankdata(row), ranks) for row in own])
        measured = {
            _LENGTH: correlated(own, long, kept),
            _RATINGS: correlated(own, rated, kept),
            _PARTIAL: correlated(rest, _residuals(rankdata(rated), ranks), kept, "pearson"),
        }
        for n, (metric, output) in enumerate(names):
            order = -np.nan_to_num(measured[_LENGTH][n]["value"], nan=-2.0)
            rows += [
                {"order": order, "metric": metric, "output": output, "measure": measure, **values[n]}
                for measure, values in measured.items()
            ]
    rows.sort(key=lambda row: (row["order"], row["metric"]))
    first = {"metric": PEOPLE[0], "output": PEOPLE[1], "measure": _LENGTH, **people}
    return pd.DataFrame([first, *rows]).drop(columns="order")


def _residuals(values: Floats, given: Floats) -> Floats:
    """Return what a straight line through the other values leaves; exactly 0 if it leaves nothing."""
    centred, other = values - values.mean(), given - given.mean()
    spread = float(other @ other)
    rest = centred - other * (float(centred @ other) / spread) if spread else centred
    # Rounding must not pass for variation.
    return np.zeros_like(rest) if np.abs(rest).max() < 1e-9 * max(1.0, np.abs(centred).max()) else np.asarray(rest)


def _part(design: Design, kept: npt.NDArray[np.bool_]) -> Design:
    codes = [np.unique(c[kept], return_inverse=True)[1] for c in (design.systems, design.dialogues)]
    return design if kept.all() else Design(codes[0], codes[1], average=design.average, fixed=design.fixed)


def _draw(frame: pd.DataFrame, shown: Shown, target: str) -> Figure:
    pairs = list(zip(frame["metric"], frame["output"], strict=True))
    names = list(dict.fromkeys(pairs))
    rows = frame.assign(y=[len(names) - 1 - names.index(pair) for pair in pairs])
    metrics, people = rows[rows["metric"] != PEOPLE[0]], rows[rows["metric"] == PEOPLE[0]]
    with drawing():
        figure, axes = figure_and_axes(1, 2, (7.6, 0.24 * len(names) + 1.1), sharey=True)
        left, right = axes[0]
        of = dict(iter(metrics.groupby("measure")))
        handles = [
            _dots(left, of[_LENGTH], "o", "#0072b2", 0.0, "Score and length"),
            _dots(right, of[_RATINGS], "s", "#d55e00", 0.17, "Score and rating"),
            _dots(right, of[_PARTIAL], "^", "#ffffff", -0.17, "Score and rating, length held fixed"),
            _dots(left, people, "D", "#000000", 0.0, "Mean rating and length"),
        ]
        left.axvline(float(people["value"].iloc[0]), color="black", lw=0.8, ls=(0, (4, 2)), zorder=1)
        for ax, heading in ((left, "With the length of the response"), (right, f"With the rating ({target})")):
            ax.axvline(0, color="0.5", lw=0.8, zorder=0)
            ax.set_title(heading, loc="left", fontweight="bold")
            ax.set_xlabel("Spearman's ρ, over responses")
            lines_behind(ax, "both")
        labels = ["People (mean rating)" if name == PEOPLE else shown.label(name) for name in names]
        left.set_yticks(range(len(names)), labels[::-1])
        left.set_ylim(-0.6, len(names) - 0.4)
        titled(
            figure, "Length bias", shown.title,
            "Left: how far scores rise with the words of a response; the dashed line is where people's ratings are. "
            "Right: agreement with ratings, as it is and with the length of the response held fixed (partial "
            "correlation of ranks). Bars: 95 % intervals.",
            simulated=shown.simulated, handles=handles,
        )  # fmt: skip
    return figure


def _dots(ax: Any, rows: pd.DataFrame, mark: str, face: str, shift: float, text: str) -> Any:  # noqa: ANN401
    y = rows["y"] + shift
    ax.hlines(y, rows["low"], rows["high"], color="#333333", lw=0.9, zorder=2)
    (found,) = ax.plot(rows["value"], y, mark, mfc=face, mec="black", mew=0.7, ms=4.6, ls="", zorder=3, label=text)
    return found
