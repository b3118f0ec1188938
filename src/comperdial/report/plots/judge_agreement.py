"""Agreement between judges, metrics and people, and of a judge with itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError, SchemaError
from comperdial.core.names import Output, output_name
from comperdial.evaluation.samples import Sample
from comperdial.report.about import Inputs, Study
from comperdial.report.plots.shown import Shown
from comperdial.report.plots.style import drawing, figure_and_axes, ink_on, lines_behind, sequential, short, titled
from comperdial.stats.agreement import alpha_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PEOPLE = "people"
# The cells of a larger matrix are too small for numbers; its CSV has them.
MOST_WRITTEN = 14
_NAME = ["metric", "output", "group"]


def judge_agreement(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw Spearman's correlation between people, judges and metrics, and Krippendorff's alpha of people and of judges.

    In the frame, the alphas follow the pairs (``measure``), as pairs of an output with itself.
    """
    shown = Shown(inputs, study)
    judges = list(dict.fromkeys(map(output_name, shown.about["judge_outputs"])))
    asked = {metric for metric, _ in judges}
    metrics = [name for name in shown.outputs if name[0] not in asked | {*shown.about["judged"]}]
    tables = shown.tables([*judges, *metrics])
    if not (tables.ratings["level"] == "turn").any():
        raise NothingToShowError("no turn was rated")
    samples = [sample for sample in tables.samples(["turn"], allow_missing=True) if sample.names]
    if not samples:
        raise NothingToShowError("no score belongs to a rated turn")
    frame = judge_agreement_frame(samples, judges, metrics)
    answers = read_answers(
        [path for path in inputs["judgements"] if path.stem in asked], schema.read(inputs["contexts"][0], "contexts")
    )
    alphas = alpha_frame(samples, answers, judges, resamples=shown.about["resamples"], seed=shown.about["seed"])
    sides = [alphas[_NAME].add_suffix(f"_{side}") for side in "ab"]
    rest = alphas.drop(columns=_NAME).rename(columns={"items": "n"})
    itself = pd.concat([*sides, rest], axis=1).assign(measure="alpha")
    both = pd.concat([frame.assign(measure="spearman"), itself], ignore_index=True)
    return _draw(frame, alphas, shown), both[["measure", *both.columns.drop("measure")]]


def judge_agreement_frame(
    samples: Sequence[Sample], judges: Sequence[Output], metrics: Sequence[Output]
) -> pd.DataFrame:
    """Correlate people, judges and metrics with each other (Spearman, over responses): each pair once.

    One sample a rated dimension, whose turns need not be those of another; people are one output a dimension, the mean
    rating. Judges and metrics without scores are left out; ``n`` counts responses with both.
    """
    there = {name for sample in samples for name in sample.names}
    if there.isdisjoint(judges):
        raise SchemaError("no judge has scores of rated turns", expected="scores of at least one judge")
    columns: dict[tuple[str, str, str], pd.Series] = {}
    units = [pd.MultiIndex.from_tuples(sample.units) for sample in samples]
    for sample, index in zip(samples, units, strict=True):
        columns[PEOPLE, sample.target, "people"] = pd.Series(sample.ratings, index=index)
    for group, names in (("judge", judges), ("metric", [name for name in metrics if name not in judges])):
        for name in (name for name in names if name in there):
            joined = pd.concat(
                [
                    pd.Series(sample.scores[sample.names.index(name)], index=index)
                    for sample, index in zip(samples, units, strict=True)
                    if name in sample.names
                ]
            )
            columns[(*name, group)] = joined[~joined.index.duplicated()]
    table = pd.DataFrame(dict(enumerate(columns.values())))
    values, counts = table.corr("spearman").to_numpy(), table.notna().astype(int)
    n, keys = (counts.T @ counts).to_numpy(), list(columns)
    rows = [(*keys[a], *keys[b], values[a, b], n[a, b]) for a, b in zip(*np.triu_indices(len(keys), 1), strict=True)]
    return pd.DataFrame(rows, columns=[*(f"{name}_{side}" for side in "ab" for name in _NAME), "value", "n"])


def alpha_frame(
    samples: Sequence[Sample], answers: pd.DataFrame, judges: Sequence[Output], *, resamples: int, seed: int
) -> pd.DataFrame:
    """Return Krippendorff's alpha (ordinal) among people, and among the answers of each judge that was asked several times.

    Intervals draw dialogues; ``raters`` is the most of an item.
    """
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for sample in samples:
        found = alpha_interval(
            sample.single.T, "ordinal", rng=rng, resamples=resamples, clusters=sample.design.dialogues
        )
        raters = int((~np.isnan(sample.single)).sum(axis=0).max())
        rows.append((PEOPLE, sample.target, "people", *found, raters, sample.single.shape[1]))
    for metric, output in judges:
        own = answers[(answers["metric"] == metric) & (answers["output"] == output)]
        if own["sample"].nunique() > 1:
            table = own.pivot(index=["item_id", "system_id", "cluster"], columns="sample", values="value")
            clusters = pd.factorize(table.index.get_level_values("cluster"))[0]
            found = alpha_interval(table.to_numpy(float), "ordinal", rng=rng, resamples=resamples, clusters=clusters)
            rows.append((metric, output, "judge", *found, *table.shape[::-1]))
    return pd.DataFrame(rows, columns=[*_NAME, "value", "low", "high", "raters", "items"])


def read_answers(paths: Sequence[Path], contexts: pd.DataFrame) -> pd.DataFrame:
    """Read single answers of judges about turns: one row an answer, ``cluster`` its dialogue."""
    found = pd.concat([schema.empty("judgements"), *(schema.read(path, "judgements") for path in paths)])
    found = found[(found["level"] == "turn") & found["value"].notna()]
    dialogues = contexts.set_index("context_id")["dialogue_id"]
    found = found.assign(cluster=found["item_id"].map(dialogues).fillna(found["item_id"]))
    return found[["metric", "output", "item_id", "system_id", "cluster", "sample", "value"]]


def _draw(frame: pd.DataFrame, alphas: pd.DataFrame, shown: Shown) -> Figure:
    sides = [frame[[f"{name}_{side}" for name in _NAME]].set_axis(_NAME, axis=1) for side in "ab"]
    names = pd.concat(sides).drop_duplicates(ignore_index=True)
    names["text"] = [_called(one, shown) for one in names.to_dict("records")]
    with_alpha, written = (alphas["group"] == "judge").any(), len(names) <= MOST_WRITTEN
    side = max((0.255 if written else 0.2) * len(names), 1.6)
    heights = [side + 2.0, 0.17 * len(alphas) + 0.8] if with_alpha else [side + 2.0]
    with drawing():
        size = (max(side + 2.6, 5.4), sum(heights) + 0.4)
        figure, axes = figure_and_axes(len(heights), 1, size, height_ratios=heights)
        _draw_matrix(figure, axes[0][0], frame, names, written=written)
        notes = (
            "Matrix: Spearman's correlation over responses, of every pair; people: the mean rating of a dimension. "
            "White lines part people, judges and metrics. "
        )
        if with_alpha:
            _draw_alphas(axes[1][0], alphas, shown)
            notes += (
                "Dots: Krippendorff's alpha (ordinal), 1 for perfect agreement and 0 for chance, with 95 % interval; "
                "of the annotators (diamonds), and of a judge's answers to the same question (circles)."
            )
        else:
            notes += "Each judge was asked once, so there is no agreement with itself to show."
        title = "Agreement of judges, metrics and people"
        titled(figure, title, shown.title, notes, simulated=shown.simulated)
    return figure


def _called(one: Any, shown: Shown) -> str:  # noqa: ANN401
    return f"People: {one['output']}" if one["metric"] == PEOPLE else shown.label((one["metric"], one["output"]))


def _draw_matrix(figure: Figure, ax: Any, frame: pd.DataFrame, names: pd.DataFrame, *, written: bool) -> None:  # noqa: ANN401
    from matplotlib.colors import Normalize

    values, last = np.full((len(names), len(names)), np.nan), len(names) - 1
    values[*np.triu_indices(len(names), 1)[::-1]] = frame["value"]
    lower = values[1:, :-1]
    colours, scale = sequential(), Normalize(min(0.0, float(np.floor(np.nanmin(lower) * 10) / 10)), 1.0)
    image = ax.imshow(np.ma.masked_invalid(lower), cmap=colours, norm=scale, interpolation="none", aspect="equal")
    for (row, column), value in np.ndenumerate(lower):
        if column <= row and (written or np.isnan(value)):
            ink = "#777777" if np.isnan(value) else ink_on(colours(scale(value)))
            ax.text(column, row, short(value), ha="center", va="center", fontsize=6.2, color=ink)
    ax.set_yticks(range(last), names["text"][1:])
    ax.set_xticks(range(last), names["text"][:-1], rotation=90)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    groups = list(names["group"])
    for n in range(1, last):
        if groups[n] != groups[n - 1]:
            ax.plot([n - 0.5, n - 0.5], [n - 1.5, last - 0.5], color="white", lw=2.5)
        if groups[n + 1] != groups[n]:
            ax.plot([-0.5, n + 0.5], [n - 0.5, n - 0.5], color="white", lw=2.5)
    # In the empty half.
    bar = figure.colorbar(image, cax=ax.inset_axes((0.55, 0.93, 0.42, 0.04)), orientation="horizontal")
    bar.set_label("Spearman's ρ")
    bar.outline.set_visible(False)


def _draw_alphas(ax: Any, alphas: pd.DataFrame, shown: Shown) -> None:  # noqa: ANN401
    rows = alphas.assign(y=np.arange(len(alphas))[::-1])
    ax.hlines(rows["y"], rows["low"], rows["high"], color="#333333", lw=0.9)
    for group, mark, face in (("people", "D", "#000000"), ("judge", "o", "#0072b2")):
        own = rows[rows["group"] == group]
        ax.plot(own["value"], own["y"], mark, mfc=face, mec="black", mew=0.7, ms=4.5, ls="")
    ax.set_yticks(rows["y"], [f"{_called(one, shown)} ({one['raters']})" for one in rows.to_dict("records")])
    ax.set_ylim(-0.7, len(rows) - 0.3)
    ax.set_xlim(min(0.0, float(np.nanmin(rows[["value", "low"]])) - 0.02), 1.0)
    ax.set_xlabel("Krippendorff's alpha")
    ax.set_title("Agreement among annotators, or among answers (how many)", loc="left", fontweight="bold")
    lines_behind(ax, "both")
