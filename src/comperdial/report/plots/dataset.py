"""The figures of every data set, made from the files listed in ``dataset.yaml`` and returned with their numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from comperdial import schema
from comperdial.core.errors import NothingToShowError, SchemaError
from comperdial.core.names import LEVELS, Output, output_name
from comperdial.core.scripts import words
from comperdial.evaluation.samples import FEWEST_SYSTEMS, UNIT, Sample, Tables
from comperdial.report.about import About, Inputs, Study, label
from comperdial.report.correlations import COEFFICIENTS, FEW, LEGEND, MARK, halved, pooled
from comperdial.report.plots import style
from comperdial.schema.dimensions import OVERALL
from comperdial.stats import Coefficient
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawn = tuple["Figure", pd.DataFrame]
Floats = npt.NDArray[np.float64]
PEOPLE, CEILING = "people", ("ceiling", "annotators")
_NAME = ["metric", "output"]


class Shown:
    """A data set, and the outputs that ``params.yaml`` names for a figure."""

    def __init__(self, inputs: Inputs, study: Study) -> None:
        self.inputs, self.entry, self._all = inputs, study["entry"], About.read(inputs["about"])
        self.about = self._all.only
        self.source = str(self.about["source"])
        self.outputs = [*map(output_name, self.about["figure_outputs"].get(self.entry["name"], []))]

    def label(self, output: Output) -> str:
        """Return the label of an output."""
        return label(output, self.about["labels"])

    def dimension(self, rated: Iterable[str]) -> str:
        """Return the rated dimension to draw."""
        return self._all.dimension(self.about["dataset"], rated)

    def read(self, name: str) -> pd.DataFrame:
        """Return a result table in the dimension to draw."""
        result = schema.read(self.inputs[name][0], name)
        return result[result["target"] == self.dimension(result["target"])] if len(result) else result

    def chosen(self, known: Iterable[Output]) -> list[Output]:
        """Return the figure's outputs that are known; if there are none, all known ones."""
        there = sorted(set(known))
        if not there:
            raise NothingToShowError("no output has numbers")
        return [name for name in self.outputs if name in there] or there

    def tables(self, outputs: Iterable[Output]) -> Tables:
        """Return the tables, with scores of the given outputs' metrics; all scores if none has a file."""
        metrics = {metric for metric, _ in outputs}
        paths = [path for path in self.inputs["scores"] if path.stem in metrics] or self.inputs["scores"]
        return Tables.read(self.inputs["ratings"][0].parent, paths, self.source)

    def sample(self, level: str, coefficient: str) -> tuple[Sample, dict[Output, pd.DataFrame], pd.DataFrame]:
        """Return scores and ratings at a level (for systems: from dialogues if these were rated).

        Also return the figure's outputs, each with its scored units (system_id, score, rating), and value, low, high and n in
        table ``correlations``, by metric and output.
        """
        tables = self.tables(self.outputs)
        rated = tables.ratings[tables.ratings["source"] == self.source]
        target = self.dimension(rated["dimension"])
        known = [sample for sample in tables.samples([level], [target], allow_missing=True) if sample.names]
        if not known:
            few = f", or there are fewer than {FEWEST_SYSTEMS} systems" if level == "system" else ""
            raise NothingToShowError(f"at {level} level no score belongs to a rating of {target} by {self.source}{few}")
        sample = min(known, key=lambda one: one.against)
        systems = np.array(sample.systems, dtype=object)[sample.design.systems]
        every = pd.DataFrame(sample.scores.T, columns=pd.MultiIndex.from_tuples(sample.names))
        units = {
            name: pd.DataFrame({"system_id": systems, "score": every[name], "rating": sample.ratings}).dropna(
                subset="score"
            )
            for name in self.chosen(sample.names)
        }
        result = pooled(self.read("correlations"))
        key = {"level": level, "against": sample.against, "target": target, "coefficient": coefficient}
        values = result[(result[[*key]] == pd.Series(key)).all(axis=1)].set_index(_NAME)[["value", "low", "high", "n"]]
        return sample, units, values

    def human(self) -> list[str]:
        """Return the human systems."""
        systems = schema.read(self.inputs["systems"][0], "systems")
        return list(systems.loc[systems["kind"] == "human", "system_id"])

    def titled(self, figure: Figure, handles: Sequence[Any] = (), **values: Any) -> None:  # noqa: ANN401
        """Add the heading and notes of the figure's entry."""
        notes, simulated = self.entry["notes"].format(**values).strip(), self.source == "simulated"
        style.titled(figure, self.entry["heading"], self.about["title"], notes, simulated=simulated, handles=handles)


def _names(frame: pd.DataFrame) -> list[Output]:
    return list(dict.fromkeys(zip(frame["metric"], frame["output"], strict=True)))


# Correlations of every metric at every level

_COLUMN = ["level", "against", "coefficient"]
# The first available of these columns sorts the rows.
_MAIN = (("dialogue", "dialogue", "spearman"), ("turn", "turn", "spearman"))
# Maximum columns at the width of a page; beyond it, only Spearman's are shown.
_MOST_COLUMNS = 9


def heatmap(inputs: Inputs, study: Study) -> Drawn:
    """Draw the agreement of each metric with the ratings, at each level, best first after the mean human ceiling."""
    shown = Shown(inputs, study)
    result = pooled(shown.read("correlations")).dropna(subset="value")
    if result.empty:
        raise NothingToShowError("there are no ratings that scores could be correlated with")
    target, columns = result["target"].iloc[0], _columns(result)
    by = next((column for column in _MAIN if column in columns), columns[0])
    first = result.set_index(_COLUMN).loc[[by]].set_index(_NAME)["value"]
    names = sorted(shown.chosen(_names(result)), key=lambda name: (-first.get(name, -np.inf), name))
    ceilings = pooled(schema.read(inputs["ceilings"][0], "ceilings")).dropna(subset="value")
    means = ceilings[ceilings["target"] == target].groupby(_COLUMN, observed=True)["value"].agg(value="mean", n="count")
    top = means.reset_index().assign(metric=CEILING[0], output=CEILING[1])
    order = pd.MultiIndex.from_tuples([(*name, *column) for name in (CEILING, *names) for column in columns])
    frame = pd.concat([top, result], ignore_index=True)
    place = order.get_indexer(pd.MultiIndex.from_frame(frame[[*_NAME, *_COLUMN]]))
    frame = frame.assign(place=place)[place >= 0].sort_values("place", ignore_index=True)
    frame = frame[[*_NAME, *_COLUMN, "value", "low", "high", "n", "loso_value", "loso_system"]]
    frame = frame.assign(loso_halved=halved(frame))
    figure, legend = _draw_heatmap(frame, shown), LEGEND if frame["loso_halved"].any() else ""
    level, against, coefficient = by
    order_by = f"{COEFFICIENTS[coefficient]}, {level}s against ratings of {against}s"
    shown.titled(figure, target=target, few=FEW, order=order_by, legend=legend)
    return figure, frame


def _columns(frame: pd.DataFrame) -> list[tuple[str, str, str]]:
    places = {name: n for n, name in enumerate((*LEVELS, *COEFFICIENTS))}
    columns = {*frame[_COLUMN].itertuples(index=False, name=None)}
    return sorted(columns, key=lambda column: [places[name] for name in column])


def _draw_heatmap(frame: pd.DataFrame, shown: Shown) -> Figure:
    if len(_columns(frame)) > _MOST_COLUMNS:
        frame = frame[frame["coefficient"] == "spearman"]
    columns, names = _columns(frame), _names(frame)
    # Separate the ceiling and the groups of columns.
    starts = [False, *(one[:2] != other[:2] for one, other in pairwise(columns))]
    x = dict(zip(columns, np.arange(len(columns)) + 0.25 * np.cumsum(starts), strict=True))
    y = {name: row + 0.35 * (row > 0 and CEILING in names) for row, name in enumerate(names)}
    cells = {(at, down): (at, down, np.nan, "–", "") for down in y.values() for at in x.values()}
    for one in frame.to_dict("records"):
        at, down = x[one["level"], one["against"], one["coefficient"]], y[one["metric"], one["output"]]
        text = style.short(one["value"]) + (MARK if one["loso_halved"] is True else "")
        cells[at, down] = (at, down, one["value"], text, style.interval(one["low"], one["high"]))
    with style.drawing():
        size = (0.6 * (max(x.values()) + 1) + 2.9, 0.34 * (max(y.values()) + 1) + 1.35)
        figure, ((ax,),) = style.figure_and_axes(1, 1, size)
        scale = style.colours_of(frame["value"])
        style.tiles(ax, cells.values(), scale, size=8)
        ax.set_yticks([*y.values()], ["Human ceiling" if name == CEILING else shown.label(name) for name in y])
        ax.set_xticks([*x.values()], [COEFFICIENTS[coefficient] for *_, coefficient in columns])
        ax.tick_params(labeltop=True, labelbottom=False)
        if CEILING in y:
            ax.get_yticklabels()[0].set_fontweight("bold")
        for (level, against), own in frame[frame["metric"] != CEILING[0]].groupby(["level", "against"], observed=True):
            places = [place for column, place in x.items() if column[:2] == (level, against)]
            few = f" (n {own['n'].max():.0f})" if own["n"].max() <= FEW else ""
            of, size_of = ("\n", 7) if len(places) == 1 else (" ", 8)
            text = f"{str(level).capitalize()}s{few},\nratings{of}of {against}s"
            ax.text(np.mean(places), -1.22, text, ha="center", va="bottom", fontsize=size_of, fontweight="bold")
        style.colour_bar(figure, scale, "Correlation", ax=ax, fraction=0.02, pad=0.01, aspect=30)
    return figure


# Scores against ratings

MOST_PANELS = 12
_MARKS: dict[str, tuple[str, dict[str, Any], str]] = {
    "agent": ("o", {"mfc": "#a83800", "mec": "#ffffff", "mew": 0.4}, "System, mean"),
    "human": ("D", {"mfc": "#ffffff", "mec": "#000000", "mew": 1.0}, "Human system, mean"),
}


def scatter(inputs: Inputs, study: Study) -> Drawn:
    """Draw scores against ratings, one panel per output.

    The frame has, for each output, a row of kind ``all`` with Spearman's correlation from the tables, then a row of means per
    system.
    """
    shown = Shown(inputs, study)
    sample, units, values = shown.sample("turn", "spearman")
    units, human, parts = dict([*units.items()][:MOST_PANELS]), shown.human(), {}
    for name, of in units.items():
        whole, means = (
            of.groupby(by).agg(score=("score", "mean"), rating=("rating", "mean"), n=("score", "size"))
            for by in (lambda _: "", "system_id")
        )
        whole[["kind", "value", "low", "high"]] = ["all", *values.reindex([name]).iloc[0, :3]]
        means["kind"] = np.where(means.index.isin(human), "human", "agent")
        parts[name] = pd.concat([whole, means]).rename_axis("system_id").reset_index()
    frame = pd.concat(parts, names=_NAME).reset_index(_NAME).reset_index(drop=True)
    frame = frame[[*_NAME, "system_id", "kind", "score", "rating", "n", "value", "low", "high"]]
    # As many rows as four columns require, then the fewest columns.
    across = -(-len(units) // -(-len(units) // 4))
    titles = []
    for name, part in parts.items():
        value, low, high = map(float, part.loc[0, ["value", "low", "high"]])
        ends = style.interval(low, high)
        titles.append(
            f"{textwrap.shorten(shown.label(name), 40)}\nρ = {style.short(value)}" + (f" [{ends}]" if ends else "")
        )
    with style.drawing():
        figure, axes = style.panels(titles, across, max(2.3, 5.2 / across), 2.3, sharey=True)
        for place, (ax, name) in enumerate(zip(axes, units, strict=True)):
            _draw_responses(ax, units[name])
            for kind, (mark, look, _) in _MARKS.items():
                points = parts[name][parts[name]["kind"] == kind]
                size = 3.2 if kind == "agent" and len(points) > 20 else 5
                ax.plot(points["score"], points["rating"], mark, zorder=3, ms=size, **look)
            ax.grid()
            ax.locator_params(axis="x", nbins=4)
            ax.set_ylabel("" if place % across else f"Mean rating\n({sample.target})")
            ax.set_xlabel("Score (the metric's own scale)" if place + across >= len(units) else "")
        there = {kind: of for kind, of in _MARKS.items() if kind in {*frame["kind"]}}
        handles = [
            style.handle(text, ls="", marker=mark, **look | {"mew": 0.8}, ms=5) for mark, look, text in there.values()
        ]
        handles.append(style.handle("Responses", ls="", marker="s", color="#aaaaaa", ms=7))
        shown.titled(figure, handles, target=sample.target)
    return figure, frame


def _draw_responses(ax: Any, units: pd.DataFrame) -> None:  # noqa: ANN401
    from matplotlib.colors import LogNorm

    # One row of cells per rating if there are few, as for means of a few annotators.
    several = units["rating"].round(9).nunique()
    counts, y, x = np.histogram2d(units["rating"], units["score"], bins=(several if several <= 30 else 20, 28))
    # An image with one pixel per cell keeps vector files small.
    ax.imshow(
        np.ma.masked_equal(counts, 0), extent=(x[0], x[-1], y[0], y[-1]), origin="lower", aspect="auto", cmap="Greys",
        norm=LogNorm(0.3, max(4.0, counts.max() * 8)), interpolation="none", zorder=1,
    )  # fmt: skip
    ax.set_xlim(x[0] - 0.03 * (x[-1] - x[0]), x[-1] + 0.03 * (x[-1] - x[0]))


# Systems ranked by people and by a metric

_MOST_SLOPES = 3
# Number of labelled systems among those that rating and metric rank most differently.
MARKED = 6
_LINES: dict[str, tuple[dict[str, Any], str]] = {
    "human": ({"color": "#000000", "ls": "-", "marker": "D"}, "Human system"),
    "higher": ({"color": "#d55e00", "ls": "--", "marker": "^"}, "Ranked higher by the metric"),
    "lower": ({"color": "#0072b2", "ls": "-.", "marker": "v"}, "Ranked lower by the metric"),
    "": ({"color": style.QUIET, "lw": 0.8, "ms": 0}, "Other system"),
}


def slope(inputs: Inputs, study: Study) -> Drawn:
    """Draw each system's rank by mean rating and by mean score, one panel per output.

    In the frame, rank 1 is best and ties share the mean rank; ``tau`` is Kendall's tau-b of both, from table ``correlations``.
    """
    shown = Shown(inputs, study)
    sample, units, values = shown.sample("system", "kendall")
    human, parts = shown.human(), {}
    for name in [*units][:_MOST_SLOPES]:
        means = units[name].groupby("system_id")[["rating", "score"]].mean()
        # Sums in another order differ in the last digits, which would break ties.
        ranks = means.round(12).rank(ascending=False).add_suffix("_rank")
        part = means.join(ranks).assign(marked=marked(ranks, human), tau=values["value"].get(name, np.nan))
        parts[name] = part.reset_index().sort_values(["rating_rank", "system_id"])
    frame = pd.concat(parts, names=_NAME).reset_index(_NAME).reset_index(drop=True)
    systems = max(map(len, parts.values()))
    few, height = f" (n {systems})" if systems <= FEW else "", float(np.clip(0.16 * systems, 2.4, 4.8))
    titles = [f"{shown.label(name)}\nτ = {style.short(part['tau'].iloc[0])}{few}" for name, part in parts.items()]
    with style.drawing():
        figure, axes = style.panels(titles, _MOST_SLOPES, max(2.85, 5.6 / len(parts)), height + 1.2, sharey=True)
        for ax, part in zip(axes, parts.values(), strict=True):
            _draw_slopes(ax, part, systems, height)
        axes[0].set_ylabel(f"Rank of a system (1 is best of {systems})")
        axes[0].set_ylim(systems + 0.6, 0.4)
        step = 10 if systems > 20 else 1
        axes[0].set_yticks(sorted({1, *range(max(2, step), systems, step), systems}))
        there = [_LINES[kind] for kind in _LINES if kind in {*frame["marked"]}]
        handles = [style.handle(text, **{"ms": 4, "lw": 1.3, **look}) for look, text in there]
        shown.titled(figure, handles, rated=f"{sample.target}, ratings of {sample.against}s")
    return figure, frame


def marked(ranks: pd.DataFrame, human: Iterable[str], count: int = MARKED) -> list[str]:
    """Return the mark of each system: ``human``, or ``higher`` or ``lower`` if its rank changes most, otherwise empty."""
    moved = (ranks["rating_rank"] - ranks["score_rank"]).where(~ranks.index.isin([*human]), 0.0)
    far = moved[moved != 0].abs().sort_values(ascending=False, kind="stable").index[:count]
    kinds = {name: "higher" if moved[name] > 0 else "lower" for name in far} | dict.fromkeys(human, "human")
    return [kinds.get(name, "") for name in ranks.index]


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move labels apart by at least ``gap``, within low and high, keeping their order."""
    order = np.argsort(np.asarray(places), kind="stable")
    steps = min(gap, (high - low) / max(1, len(order) - 1)) * np.arange(len(order))
    # Move up from the bottom, then down from the top as far as needed.
    moved = np.maximum.accumulate(np.asarray(places, dtype=np.float64)[order] - steps) + steps
    moved = np.minimum(moved, high - steps[::-1])
    return [float(place) for place in moved[np.argsort(order)]]


def _draw_slopes(ax: Any, rows: pd.DataFrame, systems: int, height: float) -> None:  # noqa: ANN401
    named = rows if systems <= 12 else rows[rows["marked"] != ""]
    apart = spread(list(named["score_rank"]), systems / (height / 0.125), 1, systems)
    places = dict(zip(named["system_id"], apart, strict=True))
    for name, mark, *ends in rows[["system_id", "marked", "rating_rank", "score_rank"]].itertuples(index=False):
        look = _LINES[mark][0]
        shape = {"clip_on": False, "zorder": 3, "ms": 4, "lw": 1.3} if mark else {"lw": 0.5, "zorder": 1}
        ax.plot([0, 1], ends, **look | shape | ({} if mark else {"ms": 0}))
        if name in places:
            ax.plot([1.04, 1.12], [ends[1], places[name]], color=look["color"], lw=0.5, clip_on=False)
            text = f"{name}  {ends[0]:g}→{ends[1]:g}"
            ax.text(1.14, places[name], text, color=style.INK, va="center", fontsize=6.5)
    ax.set_xticks([0, 1], ["People", "Metric"])
    ax.set_xlim(-0.06, 1.06)
    ax.spines[["bottom", "left"]].set_visible(False)
    ax.tick_params(length=0)
    ax.grid(axis="x", color="0.75", lw=0.8)


# Length bias

# For each measure the panel, the mark in SERIES, its offset from the middle of the line, and its text.
_MEASURES = {
    "length": (0, 0, 0.0, "Score and length"),
    "ratings": (1, 1, 0.17, "Score and rating"),
    "ratings given length": (1, 2, -0.17, "Score and rating, length held fixed"),
    PEOPLE: (0, 6, 0.0, "Mean rating and length"),
}


def length_bias(inputs: Inputs, study: Study) -> Drawn:
    """Draw how scores depend on the words of a response, and their agreement with ratings for fixed length.

    The frame has Spearman's correlations over responses: first of mean human ratings and length, then of the outputs, most
    length-dependent first. Those with ratings are from table ``correlations``.
    """
    shown = Shown(inputs, study)
    sample, units, values = shown.sample("turn", "spearman")
    responses = schema.read(inputs["responses"][0], "responses").set_index(["context_id", "system_id"])["response"]
    lengths = (
        responses.reindex(list(sample.units))
        .map(lambda text: len(words(text)), na_action="ignore")
        .to_numpy(np.float64)
    )
    of_length = _length_correlations(sample, lengths, [*units], shown.about["resamples"], shown.about["seed"])
    with_ratings = values.reindex([*units]).reset_index().assign(measure="ratings")
    frame = pd.concat([of_length, with_ratings], ignore_index=True)[[*_NAME, "measure", "value", "low", "high", "n"]]
    first = of_length[of_length["measure"] == "length"].set_index(_NAME)["value"].fillna(-2.0)
    order = [(PEOPLE, "ratings"), *sorted(units, key=lambda name: (-first[name], name))]
    at = pd.MultiIndex.from_tuples(order).get_indexer(pd.MultiIndex.from_frame(frame[_NAME]))
    # The measures are in alphabetical order.
    frame = frame.assign(at=at).sort_values(["at", "measure"], ignore_index=True)
    labels = ["People (mean rating)", *map(shown.label, order[1:])]
    kinds = frame["measure"].where(frame["metric"] != PEOPLE, PEOPLE).map(_MEASURES)
    looks = pd.DataFrame(kinds.tolist(), columns=["panel", "style", "shift", "text"])
    drawn = frame.join(looks).assign(label=[labels[place] for place in frame["at"]])
    with style.drawing():
        figure, (axes,) = style.figure_and_axes(1, 2, (7.6, 0.24 * len(order) + 1.1), sharey=True)
        headings = ("With the length of the response", f"With the rating ({sample.target})")
        for panel, (ax, heading) in enumerate(zip(axes, headings, strict=True)):
            style.forest(ax, drawn[drawn["panel"] == panel], labels)
            ax.set_title(heading, fontweight="bold")
            ax.set_xlabel("Spearman's ρ, over responses")
        axes[0].axvline(frame["value"].iloc[0], color="black", lw=0.8, ls=(0, (4, 2)), zorder=1)
        shown.titled(
            figure, [style.handle(text, **style.SERIES[n] | {"ls": ""}) for _, n, _, text in _MEASURES.values()]
        )
    return figure, frame.drop(columns="at")


def _length_correlations(
    sample: Sample, length: Floats, names: Sequence[Output], resamples: int, seed: int
) -> pd.DataFrame:
    """Correlate ratings and scores with length, and scores with ratings given length; not in any results table.

    The partial correlation is that of the residuals of ranks of scores and ratings after a linear regression on ranks of
    length; its interval treats the regression as fixed.
    """
    rows = []
    values = {(PEOPLE, "ratings"): sample.ratings} | {name: sample.scores[sample.names.index(name)] for name in names}
    for name, every in values.items():
        kept = ~np.isnan(every + length)
        systems, dialogues = (
            np.unique(codes[kept], return_inverse=True)[1] for codes in (sample.design.systems, sample.design.dialogues)
        )
        own, rated, long = every[kept], sample.ratings[kept], length[kept]
        compared: dict[str, tuple[Coefficient, Floats, Floats]] = {"length": ("spearman", own, long)}
        if name[0] != PEOPLE:
            compared["ratings given length"] = ("pearson", _given(own, long), _given(rated, long))
        for measure, (coefficient, one, other) in compared.items():
            design = Design(systems, dialogues)
            result = intervals(one[None], other, design, [coefficient], resamples=resamples, seed=seed)
            ends = (float(end[0, 0]) for end in (result.value, result.low, result.high))
            rows.append((*name, measure, *ends, len(own)))
    return pd.DataFrame(rows, columns=[*_NAME, "measure", "value", "low", "high", "n"])


def _given(values: Floats, other: Floats) -> Floats:
    """Return the residuals of ranks after a linear regression on the ranks of other values."""
    ranks, given = (rank - rank.mean() for rank in map(stats.rankdata, (values, other)))
    rest = ranks - given * (float(given @ ranks) / float(given @ given) if given.any() else 0.0)
    # Rounding must not count as variation.
    return np.asarray(rest if np.abs(rest).max() > 1e-9 * len(rest) else np.zeros(len(rest)))


# Agreement between judges, metrics and people

# Maximum size of a matrix with numbers in its cells; the CSV has all.
MOST_WRITTEN = 14
_GROUPED = [*_NAME, "group"]


def judge_agreement(inputs: Inputs, study: Study) -> Drawn:
    """Draw Spearman's correlation over responses for each pair of people, judges and metrics."""
    shown = Shown(inputs, study)
    judges = list(dict.fromkeys(map(output_name, shown.about["judge_outputs"])))
    asked = {metric for metric, _ in judges} | {*shown.about["judged"]}
    values = _rated_columns(shown, judges, [name for name in shown.outputs if name[0] not in asked])
    keys, counts = [*values], values.notna().to_numpy().astype(int)
    first, second = np.triu_indices(len(keys), 1)
    pairs = [(*keys[a], *keys[b]) for a, b in zip(first, second, strict=True)]
    frame = pd.DataFrame(pairs, columns=[f"{name}_{side}" for side in "ab" for name in _GROUPED])
    frame["value"] = values.corr("spearman").to_numpy()[first, second]
    frame["n"] = (counts.T @ counts)[first, second]
    # Separate people, judges and metrics.
    gaps = 0.12 * np.cumsum([n > 0 and key[2] != keys[n - 1][2] for n, key in enumerate(keys)])
    at, written = np.arange(len(keys)) + gaps, len(keys) <= MOST_WRITTEN
    texts = [style.short(value) if written or np.isnan(value) else "" for value in frame["value"]]
    cells = zip(at[first], at[second], frame["value"], texts, [""] * len(frame), strict=True)
    names = [f"People: {key[1]}" if key[0] == PEOPLE else shown.label(key[:2]) for key in keys]
    side = max((0.255 if written else 0.2) * len(keys), 1.6)
    with style.drawing():
        figure, ((ax,),) = style.figure_and_axes(1, 1, (max(side + 2.6, 5.4), side + 2.4))
        scale = style.colours_of(frame["value"])
        style.tiles(ax, cells, scale, size=6.2)
        ax.set_aspect("equal")
        ax.set_yticks(at[1:], names[1:])
        ax.set_xticks(at[:-1], names[:-1], rotation=90)
        # In the empty half.
        bar = ax.inset_axes((0.55, 0.93, 0.42, 0.04))
        style.colour_bar(figure, scale, "Spearman's ρ", cax=bar, orientation="horizontal")
        shown.titled(figure)
    return figure, frame


def _rated_columns(shown: Shown, judges: Sequence[Output], metrics: Sequence[Output]) -> pd.DataFrame:
    """Return a column for each rated dimension's mean rating, judge and metric, one row per rated response."""
    named = dict.fromkeys(judges, "judge") | dict.fromkeys(metrics, "metric")
    tables = shown.tables(named)
    single, scores = tables.single("turn"), tables.scores
    if single.empty:
        raise NothingToShowError("no turn was rated")
    rated = single.mean(axis=1).round(12).unstack("dimension")
    scored = scores[scores["level"] == "turn"].pivot(index=UNIT, columns=_NAME, values="value").reindex(rated.index)
    columns = {(PEOPLE, name, PEOPLE): rated[name] for name in sorted(rated, key=lambda name: (name != OVERALL, name))}
    columns |= {(*name, group): scored[name] for name, group in named.items() if name in scored}
    made = pd.concat(columns, axis=1, names=_GROUPED).dropna(axis=1, how="all")
    if "judge" not in made.columns.get_level_values("group"):
        raise SchemaError("no judge has scores of rated turns", expected="scores of at least one judge")
    return made


# Learning curves

MOST_LINES = 5
# Ranges of the difference of two correlations.
_APART = (0.0, 0.025, 0.05, 0.1, 2.01)
_CURVES = ["part", "varied", "size", "series", "value", "low", "high", "n"]


def curves(inputs: Inputs, study: Study) -> Drawn:
    """Draw correlations and agreement of rankings on part of the data, and the power of tests, by size.

    The frame has, by ``part``: ``value``, an output's correlation, the mean over n subsamples and their central 95 %;
    ``agreement``, Kendall's tau of the metrics' ranking with that on all data; ``power``, the median and quartiles over n pairs
    of metrics of the share of significant tests at 5 %, one series per range of the difference.
    """
    shown = Shown(inputs, study)
    coefficient, kept, power = shown.about["coefficient"], shown.read("curves"), shown.read("power")
    kept = kept[kept["coefficient"] == coefficient]
    kept = kept.assign(of=kept["level"] + "s against ratings of " + kept["against"] + "s", n=kept["repeats"])
    power = power[(power["grouping"] == "pooled") & (power["coefficient"] == coefficient) & power["power"].notna()]
    parts = []
    if len(kept):
        turns = (kept["level"] == "turn") & (kept["against"] == "turn")
        level = ["turn", "turn"] if turns.any() else kept[["level", "against"]].iloc[0].tolist()
        here = (power[["level", "against"]] == level).all(axis=1)
        power = power[here] if here.any() else power
        agreement = kept.drop_duplicates(["of", "varied", "size"]).dropna(subset="agreement")
        agreement = agreement.sort_values(["level", "against", "varied", "size"]).assign(low=np.nan, high=np.nan)
        agreement = agreement.assign(part="agreement", series=agreement["of"], value=agreement["agreement"])
        parts = [_best(kept[(kept[["level", "against"]] == level).all(axis=1)], shown), agreement]
    frame = pd.concat([*parts, _power(power)], ignore_index=True)[_CURVES]
    of = {"coefficient": COEFFICIENTS[coefficient], "target": shown.dimension(kept["target"])}
    return _draw_curves(frame, shown, of), frame


def _best(of_level: pd.DataFrame, shown: Shown) -> pd.DataFrame:
    """Return the curves of the outputs with the highest values on all data, highest first."""
    whole = of_level[of_level.groupby("varied")["size"].transform("max") == of_level["size"]]
    mean = whole.groupby(_NAME)["value"].mean()
    names = shown.chosen(_names(of_level.dropna(subset="value")))
    best = sorted(names, key=lambda name: (-mean.get(name, -np.inf), name))[:MOST_LINES]
    order = [":".join(name) for name in best]
    rows = of_level.assign(part="value", series=of_level["metric"] + ":" + of_level["output"])
    rows = rows[rows["series"].isin(order)].assign(order=lambda of: of["series"].map(order.index))
    return rows.sort_values(["order", "varied", "size"], kind="stable")


def _power(power: pd.DataFrame) -> pd.DataFrame:
    """Return median and quartiles of the power over pairs, one series per range of the difference."""
    names = [f"{low:g} to {high:g}" for low, high in pairwise(_APART[:-1])] + [f"above {_APART[-2]:g}"]
    series = pd.cut(power["difference"].abs(), list(_APART), labels=names, include_lowest=True).astype(str)
    result = power.assign(series=series).groupby(["series", "varied", "size"])["power"]
    columns = {name: result.quantile(share) for name, share in (("value", 0.5), ("low", 0.25), ("high", 0.75))}
    return pd.DataFrame({**columns, "n": result.size()}).reset_index().assign(part="power")


def _draw_curves(frame: pd.DataFrame, shown: Shown, of: dict[str, str]) -> Figure:
    headings, titles = shown.entry["headings"], shown.entry["varied"]
    columns = [name for name in titles if name in {*frame["varied"]}] or list(titles)
    parts = [part for part in headings if part in {*frame["part"]}] or ["value"]
    names = {part: list(dict.fromkeys(frame.loc[frame["part"] == part, "series"])) for part in parts}
    texts = {"value": lambda name: shown.label(output_name(name)), "power": "Differences {}".format}
    looks = [{**one, "lw": 1.2, "mec": "black", "mew": 0.4, "ms": 3.8} for one in style.SERIES]
    # Each row of panels is below its legend of two columns.
    sizes = [size for part in parts for size in (0.17 * -(-len(names[part]) // 2) + 0.02, 1.8)]
    size = (1.75 * max(len(columns), 3) + 0.7, sum(sizes) + 0.9)
    with style.drawing():
        options = {"height_ratios": sizes, "sharex": "col", "sharey": "row"}
        figure, axes = style.figure_and_axes(len(sizes), len(columns), size, **options)
        for part, legend, panels in zip(parts, axes[::2], axes[1::2], strict=True):
            for above, ax, varied in zip(legend, panels, columns, strict=True):
                above.axis("off")
                own = frame[(frame["part"] == part) & (frame["varied"] == varied)]
                _draw_lines(ax, own, dict(zip(names[part], looks, strict=False)), apart=part != "agreement")
            handles = [
                style.handle(texts.get(part, str.capitalize)(name), **look)
                for name, look in zip(names[part], looks, strict=False)
            ]
            # It may be wider than its axes.
            legend[0].legend(handles=handles, loc="upper left", ncols=2, labelspacing=0.25).set_in_layout(False)
            panels[0].set_ylabel(headings[part].format(**of))
            panels[0].set_ylim(*((0.0, 1.04) if part == "power" else ()))
        for ax, varied in zip(axes[-1], columns, strict=True):
            if varied in {*frame["varied"]}:
                sizes_of = frame.loc[frame["varied"] == varied, "size"]
                style.logarithmic(ax, (1, 3) if sizes_of.max() > 30 * sizes_of.min() else (1, 2, 3, 5))
            ax.set_xlabel(titles[varied])
        shown.titled(figure)
    return figure


def _draw_lines(ax: Any, result: pd.DataFrame, looks: dict[str, dict[str, Any]], *, apart: bool) -> None:  # noqa: ANN401
    if result.empty:
        ax.text(0.5, 0.5, "not computed", ha="center", va="center", transform=ax.transAxes, color="#777777")
    for n, (name, look) in enumerate(looks.items()):
        rows = result[result["series"] == name]
        # Keep intervals from overlapping.
        x = rows["size"] * (1.035 ** (n - (len(looks) - 1) / 2) if apart else 1.0)
        if rows["low"].notna().any():
            ax.vlines(x, rows["low"], rows["high"], color=look["color"], lw=0.9, alpha=0.9)
        ax.plot(x, rows["value"], **look)
    ax.grid(axis="y")
