"""Agreement between judges, metrics and people, and of a judge with itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.evaluation.samples import Sample
from comperdial.report.about import label
from comperdial.report.plots.style import (
    Output,
    drawing,
    figure_and_axes,
    ink_on,
    lines_behind,
    pairs,
    sequential,
    short,
    titled,
)
from comperdial.stats.agreement import alpha_interval
from comperdial.stats.correlation import correlate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
PEOPLE = "people"
# The cells of a larger matrix are too small for numbers; its CSV has them.
MOST_WRITTEN = 14
_GROUPS = {"people": "People", "judge": "Judges", "metric": "Metrics"}
_ALPHA_COLUMNS = ["metric", "output", "group", "value", "low", "high", "raters", "items"]


def judge_agreement_frame(
    samples: Sequence[Sample], *, judges: Sequence[Output], metrics: Sequence[Output] = ()
) -> pd.DataFrame:
    """Correlate judges, metrics and people with each other (Spearman, over responses).

    Parameters
    ----------
    samples
        Scores and ratings of turns, one sample a rated dimension, all of one data set. The dimensions need not be rated
        of the same turns.
    judges, metrics
        Which outputs; those without scores are left out.

    Returns
    -------
    DataFrame
        One row a pair: metric_a, output_a, group_a (people, judge, metric), metric_b, output_b, group_b, value, n
        (responses with both). Metric ``people`` has one output a dimension: the mean rating. Each pair once, in the
        order of the columns of the matrix: people, judges, metrics.

    Raises
    ------
    SchemaError
        When no judge has scores.
    """
    there = {name for sample in samples for name in sample.names}
    if not (known := [name for name in dict.fromkeys(judges) if name in there]):
        raise SchemaError("no judge has scores of rated turns", expected="scores of at least one judge")
    others = [name for name in dict.fromkeys(metrics) if name in there and name not in known]
    columns: list[tuple[Output, str, Floats]] = []
    at = {unit: n for n, unit in enumerate(dict.fromkeys(unit for sample in samples for unit in sample.units))}
    scores = {name: np.full(len(at), np.nan) for name in (*known, *others)}
    for sample in samples:
        places = [at[unit] for unit in sample.units]
        ratings = np.full(len(at), np.nan)
        ratings[places] = sample.ratings
        columns.append(((PEOPLE, sample.target), "people", ratings))
        for name, values in zip(sample.names, sample.scores, strict=True):
            if name in scores:
                scores[name][places] = values
    for names, group in ((known, "judge"), (others, "metric")):
        columns += [(name, group, scores[name]) for name in names]
    rows = []
    for n, (a, group_a, x) in enumerate(columns):
        for b, group_b, y in columns[n + 1 :]:
            found = correlate(x, y, "spearman")
            rows.append((*a, group_a, *b, group_b, found.value, found.n))
    fields = ["metric_a", "output_a", "group_a", "metric_b", "output_b", "group_b", "value", "n"]
    return pd.DataFrame(rows, columns=fields)


def alpha_frame(
    samples: Sequence[Sample], answers: pd.DataFrame, *, judges: Sequence[Output], resamples: int, seed: int
) -> pd.DataFrame:
    """Return Krippendorff's alpha (ordinal) among people, and among a judge's answers to one question.

    Parameters
    ----------
    samples
        As for :func:`judge_agreement_frame`: the single ratings are taken from them.
    answers
        One row an answer: metric, output, item_id, system_id, cluster (the dialogue), sample, value. Judges with one
        sample take no part.
    judges
        Which outputs.
    resamples, seed
        For the intervals: dialogues are drawn.

    Returns
    -------
    DataFrame
        metric, output, group (people, judge), value, low, high, raters, items.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for sample in samples:
        found = alpha_interval(
            sample.single.T, "ordinal", rng=rng, resamples=resamples, clusters=sample.design.dialogues
        )
        raters = int((~np.isnan(sample.single)).sum(axis=0).max())
        rows.append((PEOPLE, sample.target, "people", *found, raters, sample.single.shape[1]))
    for metric, output in dict.fromkeys(judges):
        chosen = answers[(answers["metric"] == metric) & (answers["output"] == output)]
        if chosen.empty or chosen["sample"].nunique() < 2:
            continue
        table = chosen.pivot(index=["item_id", "system_id", "cluster"], columns="sample", values="value")
        found = alpha_interval(
            table.to_numpy(dtype=np.float64), "ordinal", rng=rng, resamples=resamples,
            clusters=pd.factorize(table.index.get_level_values("cluster"))[0],
        )  # fmt: skip
        rows.append((metric, output, "judge", *found, table.shape[1], len(table)))
    return pd.DataFrame(rows, columns=_ALPHA_COLUMNS)


def _names(frame: pd.DataFrame) -> list[tuple[Output, str]]:
    both = [*zip(frame["metric_a"], frame["output_a"], frame["group_a"], strict=True)]
    both += [*zip(frame["metric_b"], frame["output_b"], frame["group_b"], strict=True)]
    return [((metric, output), group) for metric, output, group in dict.fromkeys(both)]


def _shown(name: Output, labels: Mapping[str, str]) -> str:
    return f"People: {name[1]}" if name[0] == PEOPLE else label(name, labels)


def judge_agreement_figure(
    frame: pd.DataFrame,
    alphas: pd.DataFrame,
    *,
    title: str,
    labels: Mapping[str, str] | None = None,
    simulated: bool = False,
) -> Figure:
    """Draw the frames of :func:`judge_agreement_frame` and :func:`alpha_frame`, the latter where it has a judge."""
    names = _names(frame)
    with_alpha = bool((alphas["group"] == "judge").any())
    written = len(names) <= MOST_WRITTEN
    side = max((0.255 if written else 0.2) * len(names), 1.6)
    heights = [side + 2.0, 0.17 * len(alphas) + 0.8] if with_alpha else [side + 2.0]
    with drawing():
        figure, axes = figure_and_axes(
            len(heights), 1, (max(side + 2.6, 5.4), sum(heights) + 0.4), height_ratios=heights
        )
        _draw_matrix(figure, axes[0][0], frame, names, labels or {}, written=written)
        notes = (
            "Matrix: Spearman's correlation over responses, of every pair; people: the mean rating of a dimension. "
            "White lines part people, judges and metrics. "
        )
        if with_alpha:
            _draw_alphas(axes[1][0], alphas, labels or {})
            notes += (
                "Dots: Krippendorff's alpha (ordinal), 1 for perfect agreement and 0 for chance, with 95 % interval; "
                "of the annotators (diamonds), and of a judge's answers to the same question (circles). "
            )
        else:
            notes += "Each judge was asked once, so there is no agreement with itself to show. "
        titled(figure, "Agreement of judges, metrics and people", title, notes.strip(), simulated=simulated)
    return figure


def _draw_matrix(
    figure: Figure,
    ax: Any,  # noqa: ANN401
    frame: pd.DataFrame,
    names: Sequence[tuple[Output, str]],
    labels: Mapping[str, str],
    *,
    written: bool,
) -> None:
    from matplotlib.colors import Normalize

    at = {name: n for n, (name, _) in enumerate(names)}
    values = np.full((len(names), len(names)), np.nan)
    for row in frame.to_dict("records"):
        values[at[row["metric_b"], row["output_b"]], at[row["metric_a"], row["output_a"]]] = row["value"]
    colours, scale = sequential(), Normalize(min(0.0, float(np.floor(np.nanmin(values) * 10) / 10)), 1.0)
    lower = values[1:, :-1]
    image = ax.imshow(np.ma.masked_invalid(lower), cmap=colours, norm=scale, interpolation="none", aspect="equal")
    for (row, column), value in np.ndenumerate(lower):
        if not np.isnan(value) and written:
            ink = ink_on(colours(scale(value)))
            ax.text(column, row, short(value), ha="center", va="center", fontsize=6.2, color=ink)
        elif np.isnan(value) and column <= row:
            ax.text(column, row, "–", ha="center", va="center", fontsize=6.2, color="#777777")
    shown = [_shown(name, labels) for name, _ in names]
    ax.set_yticks(range(len(names) - 1), shown[1:])
    ax.set_xticks(range(len(names) - 1), shown[:-1], rotation=90)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    groups = [group for _, group in names]
    for n in range(1, len(names) - 1):
        if groups[n] != groups[n - 1]:
            ax.plot([n - 0.5, n - 0.5], [n - 1.5, len(names) - 1.5], color="white", lw=2.5)
        if groups[n + 1] != groups[n]:
            ax.plot([-0.5, n + 0.5], [n - 0.5, n - 0.5], color="white", lw=2.5)
    # In the empty half.
    bar = figure.colorbar(image, cax=ax.inset_axes((0.55, 0.93, 0.42, 0.04)), orientation="horizontal")
    bar.set_label("Spearman's ρ")
    bar.outline.set_visible(False)


def _draw_alphas(ax: Any, alphas: pd.DataFrame, labels: Mapping[str, str]) -> None:  # noqa: ANN401
    y = np.arange(len(alphas), dtype=np.float64)[::-1]
    ax.hlines(y, alphas["low"], alphas["high"], color="#333333", lw=0.9)
    for group, mark, face in (("people", "D", "#000000"), ("judge", "o", "#0072b2")):
        of_group = (alphas["group"] == group).to_numpy()
        ax.plot(alphas["value"][of_group], y[of_group], mark, mfc=face, mec="black", mew=0.7, ms=4.5, ls="")
    texts = [f"{_shown(name, labels)} ({raters})" for name, raters in zip(pairs(alphas), alphas["raters"], strict=True)]
    ax.set_yticks(y, texts)
    ax.set_ylim(-0.7, len(alphas) - 0.3)
    ax.set_xlim(min(0.0, float(np.nanmin(alphas[["value", "low"]].to_numpy())) - 0.02), 1.0)
    ax.set_xlabel("Krippendorff's alpha")
    ax.set_title("Agreement among annotators, or among answers (how many)", loc="left", fontweight="bold")
    lines_behind(ax, "both")


def joined(frame: pd.DataFrame, alphas: pd.DataFrame) -> pd.DataFrame:
    """Return both frames as one: the alphas as pairs of an output with itself, with ``measure`` alpha or spearman."""
    itself = pd.DataFrame(
        {f"{field}_{side}": alphas[field] for side in "ab" for field in ("metric", "output", "group")}
        | {"value": alphas["value"], "n": alphas["items"], "low": alphas["low"], "high": alphas["high"]}
        | {"raters": alphas["raters"]}
    )
    whole = pd.concat([frame.assign(measure="spearman"), itself.assign(measure="alpha")], ignore_index=True)
    return whole[["measure", *(name for name in whole.columns if name != "measure")]]
