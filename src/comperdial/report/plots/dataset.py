"""The figures of any data set: each is made of the files that ``dataset.yaml`` lists, and returned with its numbers."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from comperdial import schema
from comperdial.core.errors import NothingToShowError, SchemaError
from comperdial.core.names import LEVELS, Output, output_name
from comperdial.core.scripts import words
from comperdial.evaluation.samples import FEWEST_SYSTEMS, Sample, Tables
from comperdial.report.about import About, Inputs, Study, label
from comperdial.report.correlations import COEFFICIENTS, FEW, LEGEND, MARK, halved, is_halved, pooled
from comperdial.report.plots import style
from comperdial.stats import Coefficient
from comperdial.stats.agreement import alpha_interval
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

Drawn = tuple["Figure", pd.DataFrame]
Floats = npt.NDArray[np.float64]
_NAME = ["metric", "output"]


class Shown:
    """One data set, and the outputs that ``params.yaml`` names for a figure."""

    def __init__(self, inputs: Inputs, study: Study) -> None:
        self.inputs, self.entry, self._all = inputs, study["entry"], About.read(inputs["about"])
        self.about = self._all.only
        names = self.about["figure_outputs"].get(self.entry["name"], [])
        self.outputs: list[Output] = list(dict.fromkeys(map(output_name, names)))
        self.source = str(self.about["source"])

    def label(self, output: tuple[Any, ...]) -> str:
        """Return what an output, (metric, output), is called."""
        return label((output[0], output[1]), self.about["labels"])

    def dimension(self, rated: Iterable[str]) -> str:
        """Return the dimension that is drawn, of those that were rated."""
        return self._all.dimension(self.about["dataset"], rated)

    def read(self, name: str) -> pd.DataFrame:
        """Return a result table of the dimension that is drawn."""
        result = schema.read(self.inputs[name][0], name)
        if result.empty and name == "correlations":
            raise NothingToShowError("there are no ratings that scores could be correlated with")
        return result[result["target"] == self.dimension(result["target"])] if len(result) else result

    def chosen(self, known: Iterable[Output]) -> list[Output]:
        """Return those of the figure's outputs that are known; all that are known if none of them is."""
        there = sorted(set(known))
        if not there:
            raise NothingToShowError("no output has numbers")
        if self.outputs and set(self.outputs).isdisjoint(there):
            names = ", ".join(map(":".join, self.outputs[:5]))
            log.warning("none of the outputs that were asked for has numbers (%s): all are shown", names)
        return [name for name in self.outputs if name in there] or there

    @cached_property
    def human(self) -> set[str]:
        """The systems that are people."""
        systems = schema.read(self.inputs["systems"][0], "systems")
        return set(systems.loc[systems["kind"] == "human", "system_id"])

    def tables(self, outputs: Sequence[Output]) -> Tables:
        """Return ratings, contexts, systems and the scores of some outputs; all scores if no outputs are named."""
        metrics = {metric for metric, _ in outputs}
        paths = [path for path in self.inputs["scores"] if path.stem in metrics] or list(self.inputs["scores"])
        result = Tables.read(self.inputs["contexts"][0].parent, paths, self.source)
        kept = result.scores[pd.MultiIndex.from_frame(result.scores[_NAME]).isin(list(outputs))]
        if result.scores.empty:
            raise NothingToShowError("no response has a score")
        return replace(result, scores=kept) if len(kept) else result

    def sample(self, level: str, tables: Tables | None = None) -> Sample:
        """Return scores beside ratings at a level; systems by their dialogues if these were rated."""
        tables = tables or self.tables(self.outputs)
        rated = tables.ratings[tables.ratings["source"] == self.source]
        target = self.dimension(rated["dimension"])
        against = "dialogue" if level != "turn" and (rated["level"] == "dialogue").any() else "turn"
        for sample in tables.samples([level], [target], allow_missing=True):
            if sample.against == against and sample.names:
                return sample
        few = level == "system" and tables.scores["system_id"].nunique() < FEWEST_SYSTEMS
        raise NothingToShowError(
            f"there are fewer than {FEWEST_SYSTEMS} systems"
            if few
            else f"at {level} level no score belongs to a rating of {target} by {self.source}"
        )

    def titled(self, figure: Figure, handles: Sequence[Any] = (), *, more: str = "", **values: Any) -> None:  # noqa: ANN401
        """Put the heading and notes of the figure's entry around it."""
        notes = self.entry["notes"].format(**values) + more
        simulated = self.source == "simulated"
        style.titled(
            figure, self.entry["heading"], str(self.about["title"]), notes, simulated=simulated, handles=handles
        )


def units_of(sample: Sample, name: Output) -> pd.DataFrame:
    """Return the units that an output has scores of: system_id, score, rating."""
    scores, systems = sample.scores[sample.names.index(name)], np.array(sample.systems, dtype=object)
    units = {"system_id": systems[sample.design.systems], "score": scores, "rating": sample.ratings}
    return pd.DataFrame(units).dropna(subset="score")


def _names(frame: pd.DataFrame) -> list[Output]:
    return list(dict.fromkeys(zip(frame["metric"], frame["output"], strict=True)))


# Correlations of every metric at every level

CEILING = ("ceiling", "annotators")
_COLUMN = ["level", "against", "coefficient"]
# The column that orders the rows: the first of these that there is.
_MAIN = (("dialogue", "dialogue", "spearman"), ("turn", "turn", "spearman"))
# More columns cannot be read at the width of a page; then Spearman's stand for all three coefficients.
_MOST_COLUMNS = 9


def heatmap(inputs: Inputs, study: Study) -> Drawn:
    """Draw how well each metric agrees with the ratings, at each level, best first after the mean human ceiling."""
    shown = Shown(inputs, study)
    result = pooled(shown.read("correlations")).dropna(subset="value")
    names, target = shown.chosen(_names(result)), result["target"].iloc[0]
    columns = _columns(result)
    by = next((column for column in _MAIN if column in columns), columns[0])
    first = result[(result[_COLUMN] == list(by)).all(axis=1)].set_index(_NAME)["value"]
    names = [CEILING, *sorted(names, key=lambda name: (-first.get(name, -np.inf), name))]
    ceilings = pooled(schema.read(inputs["ceilings"][0], "ceilings")).dropna(subset="value")
    means = ceilings[ceilings["target"] == target].groupby(_COLUMN, observed=True)["value"].agg(value="mean", n="count")
    top = means.reset_index().assign(metric=CEILING[0], output=CEILING[1])
    frame = pd.concat([top, result], ignore_index=True)
    order = {(*name, *column): n for n, (name, column) in enumerate(product(names, columns))}
    frame = frame.assign(place=[order.get(key) for key in frame[[*_NAME, *_COLUMN]].itertuples(index=False, name=None)])
    frame = frame.dropna(subset="place").sort_values("place", ignore_index=True)
    values = ["value", "low", "high", "n", "loso_value", "loso_system"]
    frame = frame[[*_NAME, *_COLUMN, *values]].assign(loso_halved=halved(frame))
    figure = _draw_heatmap(frame, shown)
    level, against, coefficient = by
    more = f" {LEGEND}" if frame["loso_halved"].any() else ""
    order_of = f"{COEFFICIENTS[coefficient]}, {level}s against ratings of {against}s"
    shown.titled(figure, more=more, target=target, few=FEW, order=order_of)
    return figure, frame


def _columns(frame: pd.DataFrame) -> list[tuple[str, str, str]]:
    def place(column: tuple[str, str, str]) -> tuple[int, bool, int]:
        return LEVELS.index(column[0]), column[1] != "turn", [*COEFFICIENTS].index(column[2])

    return sorted({*frame[_COLUMN].itertuples(index=False, name=None)}, key=place)


def _draw_heatmap(frame: pd.DataFrame, shown: Shown) -> Figure:
    if len(frame[_COLUMN].drop_duplicates()) > _MOST_COLUMNS:
        frame = frame[frame["coefficient"] == "spearman"]
    names, columns = _names(frame), _columns(frame)
    groups = [column[:2] for column in columns]
    # The ceiling and the groups of columns are set apart.
    y = np.arange(len(names)) + (0.35 if names[0] == CEILING else 0) * (np.arange(len(names)) > 0)
    x = np.arange(len(columns)) + 0.25 * np.cumsum([n > 0 and groups[n] != groups[n - 1] for n in range(len(columns))])
    known = {(*map(one.get, _NAME), *map(one.get, _COLUMN)): one for one in frame.to_dict("records")}
    cells = []
    for row, name in enumerate(names):
        for place, column in enumerate(columns):
            one: dict[Any, Any] = known.get((*name, *column), dict.fromkeys(("value", "low", "high"), np.nan))
            text = style.short(one["value"]) + (MARK if is_halved(one) else "")
            cells.append((x[place], y[row], one["value"], text, style.interval(one["low"], one["high"])))
    with style.drawing():
        figure, ((ax,),) = style.figure_and_axes(1, 1, (0.6 * (x[-1] + 1) + 2.9, 0.34 * (y[-1] + 1) + 1.35))
        scale = style.colours_of(frame["value"])
        style.tiles(ax, cells, scale, size=8)
        ax.set_yticks(y, ["Human ceiling" if name == CEILING else shown.label(name) for name in names])
        ax.set_xticks(x, [COEFFICIENTS[coefficient] for *_, coefficient in columns])
        ax.tick_params(labeltop=True, labelbottom=False)
        for level, against in dict.fromkeys(groups):
            of_group = (frame["level"] == level) & (frame["against"] == against) & (frame["metric"] != CEILING[0])
            most, narrow = frame.loc[of_group, "n"].max(), groups.count((level, against)) == 1
            few = f" (n {most:.0f})" if most <= FEW else ""
            text = f"{level.capitalize()}s{few},\nratings{chr(10) if narrow else ' '}of {against}s"
            centre = np.mean([at for at, group in zip(x, groups, strict=True) if group == (level, against)])
            size = 7 if narrow else 8
            ax.text(centre, -1.22, text, ha="center", va="bottom", fontsize=size, fontweight="bold")
        if names[0] == CEILING:
            ax.get_yticklabels()[0].set_fontweight("bold")
        style.colour_bar(figure, scale, "Correlation", ax=ax, fraction=0.02, pad=0.01, aspect=30)
    return figure


# Scores against ratings

MOST_PANELS = 12
_MARKS = {
    "agent": ("o", "#a83800", "#ffffff", "System, mean"),
    "human": ("D", "#ffffff", "#000000", "Human system, mean"),
}


def scatter(inputs: Inputs, study: Study) -> Drawn:
    """Draw scores against ratings, a panel for each output.

    The frame has, for each output, a row of kind ``all`` with Spearman's correlation as the tables have it, then a row of
    means for each system.
    """
    shown = Shown(inputs, study)
    sample, result = shown.sample("turn"), pooled(shown.read("correlations"))
    key = {"level": "turn", "against": "turn", "target": sample.target, "coefficient": "spearman"}
    result = result[(result[[*key]] == pd.Series(key)).all(axis=1)]
    values: dict[Any, Any] = result.set_index(_NAME)[["value", "low", "high"]].to_dict("index")
    names, parts = shown.chosen(sample.names)[:MOST_PANELS], []
    for name in names:
        units = units_of(sample, name)
        columns = {"score": ("score", "mean"), "rating": ("rating", "mean"), "n": ("score", "size")}
        whole = units.assign(system_id="").groupby("system_id").agg(**columns).reset_index()
        means = units.groupby("system_id").agg(**columns)
        means = means.reindex([system for system in sample.systems if system in means.index]).reset_index()
        means["kind"] = np.where(means["system_id"].isin(shown.human), "human", "agent")
        whole = whole.assign(kind="all", **values.get(name, {}))
        parts.append(pd.concat([whole, means]).assign(metric=name[0], output=name[1]))
    heads = [*_NAME, "system_id", "kind", "score", "rating", "n", "value", "low", "high"]
    frame = pd.concat(parts, ignore_index=True).reindex(columns=heads)
    # As many rows as four columns need, and no more columns than fill them.
    across = -(-len(names) // -(-len(names) // 4))
    with style.drawing():
        figure, axes = style.panels(names_of(names, frame, shown), across, max(2.3, 5.2 / across), 2.3, sharey=True)
        for place, (ax, name) in enumerate(zip(axes, names, strict=True)):
            _draw_density(ax, units_of(sample, name))
            own = frame[(frame[_NAME] == list(name)).all(axis=1)]
            for kind, (mark, face, edge, _) in _MARKS.items():
                points = own[own["kind"] == kind]
                size = 3.2 if kind == "agent" and len(points) > 20 else 5
                how: dict[str, Any] = {"mfc": face, "mec": edge, "mew": 0.4 if kind == "agent" else 1.0, "ms": size}
                ax.plot(points["score"], points["rating"], mark, ls="", zorder=3, **how)
            style.lines_behind(ax, "both")
            ax.locator_params(axis="x", nbins=4)
            ax.set_ylabel("" if place % across else f"Mean rating\n({sample.target})")
            ax.set_xlabel("Score (the metric's own scale)" if place + across >= len(names) else "")
        handles = [
            style.handle(text, ls="", marker=mark, mfc=face, mec=edge, mew=0.8, ms=5)
            for kind, (mark, face, edge, text) in _MARKS.items()
            if kind in {*frame["kind"]}
        ]
        handles.append(style.handle("Responses", ls="", marker="s", color="#aaaaaa", ms=7))
        shown.titled(figure, handles, target=sample.target)
    return figure, frame


def names_of(names: Sequence[Output], frame: pd.DataFrame, shown: Shown) -> list[str]:
    """Return the titles of the panels: what an output is called, and its correlation with the interval."""
    titles = []
    for name in names:
        first = frame[(frame[_NAME] == list(name)).all(axis=1)].iloc[0]
        ends = style.interval(first["low"], first["high"])
        value = f"ρ = {style.short(first['value'])}" + (f" [{ends}]" if ends else "")
        titles.append(f"{textwrap.shorten(shown.label(name), 40)}\n{value}")
    return titles


def density(scores: Floats, ratings: Floats) -> tuple[Floats, Floats, Floats]:
    """Count responses in cells of score and rating: edges of both, and counts of shape (rating cells, score cells).

    A cell of ratings holds one value if there are few, as of means of a few annotators.
    """
    values = np.unique(ratings.round(9))
    step = float(np.diff(values).min()) if len(values) > 1 else 1.0
    several = round((values[-1] - values[0]) / step) + 1
    ends = (values[0] - step / 2, values[-1] + step / 2) if several <= 30 else (values[0], values[-1])
    vertical = np.linspace(*ends, several + 1 if several <= 30 else 21)
    pad = 0.5 if scores.min() == scores.max() else 0.0
    horizontal = np.linspace(scores.min() - pad, scores.max() + pad, 29)
    counts, _, _ = np.histogram2d(ratings, scores, bins=(vertical, horizontal))
    return horizontal, vertical, np.asarray(counts)


def _draw_density(ax: Any, units: pd.DataFrame) -> None:  # noqa: ANN401
    from matplotlib.colors import LogNorm

    x, y, counts = density(units["score"].to_numpy(), units["rating"].to_numpy())
    # An image of one pixel a cell, which the vector forms keep as small as it is.
    ax.imshow(
        np.ma.masked_equal(counts, 0), extent=(x[0], x[-1], y[0], y[-1]), origin="lower", aspect="auto", cmap="Greys",
        norm=LogNorm(0.3, max(4.0, float(counts.max()) * 8)), interpolation="none", zorder=1,
    )  # fmt: skip
    ax.set_xlim(x[0] - 0.03 * (x[-1] - x[0]), x[-1] + 0.03 * (x[-1] - x[0]))


# Systems ranked by people and by a metric

_MOST_SLOPES = 3
# How many of the systems that rating and metric put furthest apart are named.
MARKED = 6
_LINES = {
    "human": ("#000000", "-", "D", "Human system"),
    "higher": ("#d55e00", "--", "^", "Ranked higher by the metric"),
    "lower": ("#0072b2", "-.", "v", "Ranked lower by the metric"),
}


def slope(inputs: Inputs, study: Study) -> Drawn:
    """Draw each system's rank by mean rating and by mean score, a panel for each output.

    The frame's ranks are 1 for the best, ties share the mean rank; ``tau`` is Kendall's tau-b of both.
    """
    shown = Shown(inputs, study)
    sample = shown.sample("system")
    names, parts = shown.chosen(sample.names)[:_MOST_SLOPES], []
    for name in names:
        means = units_of(sample, name).groupby("system_id")[["rating", "score"]].mean()
        means = means.reindex([system for system in sample.systems if system in means.index])
        # Sums in another order differ in the last digits, and would part ties.
        rounded = means.round(12)
        ranks = {f"{column}_rank": stats.rankdata(-rounded[column]) for column in ("rating", "score")}
        tau = stats.kendalltau(rounded["rating"], rounded["score"]).statistic
        means = means.assign(**ranks, tau=tau, metric=name[0], output=name[1])
        parts.append(means.assign(marked=marked(means, shown.human)).reset_index())
    columns = [*_NAME, "system_id", "rating", "score", "rating_rank", "score_rank", "marked", "tau"]
    frame = pd.concat([part.sort_values(["rating_rank", "system_id"]) for part in parts], ignore_index=True)[columns]
    systems = max(map(len, parts))
    few, height = f" (n {systems})" if systems <= FEW else "", float(np.clip(0.16 * systems, 2.4, 4.8))
    titles = [
        f"{shown.label(name)}\nτ = {style.short(float(part['tau'].iloc[0]))}{few}"
        for name, part in zip(names, parts, strict=True)
    ]
    with style.drawing():
        figure, axes = style.panels(titles, _MOST_SLOPES, max(2.85, 5.6 / len(names)), height + 1.2, sharey=True)
        for ax, (_, of_output) in zip(axes, frame.groupby(_NAME, sort=False), strict=True):
            _draw_slopes(ax, of_output, systems, height)
        axes[0].set_ylabel(f"Rank of a system (1 is best of {systems})")
        axes[0].set_ylim(systems + 0.6, 0.4)
        step = 10 if systems > 20 else 1
        axes[0].set_yticks(sorted({1, *range(max(2, step), systems, step), systems}))
        kinds = {*frame["marked"]}
        lines = {kind: style for kind, style in _LINES.items() if kind in kinds}
        handles = [style.handle(text, color=c, ls=line, marker=m, ms=4, lw=1.3) for c, line, m, text in lines.values()]
        handles += [style.handle("Other system", color=style.QUIET, lw=0.8)] if "" in kinds else []
        shown.titled(figure, handles, rated=f"{sample.target}, ratings of {sample.against}s")
    return figure, frame


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


def _draw_slopes(ax: Any, rows: pd.DataFrame, systems: int, height: float) -> None:  # noqa: ANN401
    named = rows if systems <= 12 else rows[rows["marked"] != ""]
    places = spread(list(named["score_rank"]), gap=systems / (height / 0.125), low=1, high=systems)
    for one in rows[rows["marked"] == ""].to_dict("records"):
        ax.plot([0, 1], [one["rating_rank"], one["score_rank"]], color=style.QUIET, lw=0.5, zorder=1)
    for place, one in zip(places, named.to_dict("records"), strict=True):
        colour, line, mark, _ = _LINES.get(one["marked"], (style.INK, "-", "o", ""))
        if one["marked"]:
            how = {"color": colour, "ls": line, "marker": mark, "ms": 4, "lw": 1.3}
            ax.plot([0, 1], [one["rating_rank"], one["score_rank"]], clip_on=False, zorder=3, **how)
        ax.plot([1.04, 1.12], [one["score_rank"], place], color=colour, lw=0.5, clip_on=False)
        text = f"{one['system_id']}  {one['rating_rank']:g}→{one['score_rank']:g}"
        ax.text(1.14, place, text, color=style.INK, va="center", fontsize=6.5, parse_math=False)
    ax.set_xticks([0, 1], ["People", "Metric"])
    ax.set_xlim(-0.06, 1.06)
    ax.spines[["bottom", "left"]].set_visible(False)
    ax.tick_params(length=0)
    for x in (0, 1):
        ax.axvline(x, color="0.75", lw=0.8, zorder=0)


# Length bias

PEOPLE, LENGTH = ("people", "ratings"), ("words", "count")
_MEASURES = {
    "length": ("o", "#0072b2", 0.0, "Score and length"),
    "ratings": ("s", "#d55e00", 0.17, "Score and rating"),
    "ratings given length": ("^", "#ffffff", -0.17, "Score and rating, length held fixed"),
}


def length_bias(inputs: Inputs, study: Study) -> Drawn:
    """Draw how scores depend on the words of a response, and how they agree with ratings with that held fixed.

    The frame has Spearman's correlations over responses: first that of people's mean ratings and the length, then those of
    the output that depends most on length. The interval of the partial correlation takes the ranks' dependence on length as
    fixed.
    """
    shown = Shown(inputs, study)
    tables = shown.tables(shown.outputs)
    rows = schema.read(inputs["responses"][0], "responses").rename(columns={"context_id": "item_id"})
    rows = rows[rows["system_id"].isin(tables.scores["system_id"].unique())].assign(
        value=lambda frame: frame["response"].map(lambda text: len(words(text))).astype("float32"),
        level="turn", metric=LENGTH[0], output=LENGTH[1], cut=0, signature="words",
    )  # fmt: skip
    scores = pd.concat([tables.scores, rows[tables.scores.columns]], ignore_index=True)
    sample = shown.sample("turn", replace(tables, scores=scores))
    outputs = shown.chosen(name for name in sample.names if name != LENGTH)
    frame = _length_correlations(sample, outputs, resamples=shown.about["resamples"], seed=shown.about["seed"])
    names = _names(frame)
    drawn = frame.assign(y=style.heights(pd.Series(zip(frame["metric"], frame["output"], strict=True)), names))
    people = drawn[drawn["metric"] == PEOPLE[0]]
    with style.drawing():
        figure, (axes,) = style.figure_and_axes(1, 2, (7.6, 0.24 * len(names) + 1.1), sharey=True)
        edge = {"mec": "black", "mew": 0.7}
        for name, (mark, face, shift, _) in _MEASURES.items():
            own = drawn[(drawn["measure"] == name) & (drawn["metric"] != PEOPLE[0])]
            style.marks(axes[int(name != "length")], own.assign(y=own["y"] + shift), "#333333", mark, mfc=face, **edge)
        style.marks(axes[0], people, "#333333", "D", mfc="#000000", **edge)
        axes[0].axvline(float(people["value"].iloc[0]), color="black", lw=0.8, ls=(0, (4, 2)), zorder=1)
        style.row_labels(axes[0], ["People (mean rating)" if name == PEOPLE else shown.label(name) for name in names])
        headings = ("With the length of the response", f"With the rating ({sample.target})")
        for ax, heading in zip(axes, headings, strict=True):
            ax.axvline(0, color="0.5", lw=0.8, zorder=0)
            ax.set_title(heading, loc="left", fontweight="bold")
            ax.set_xlabel("Spearman's ρ, over responses")
            style.lines_behind(ax, "both")
        styles = [*_MEASURES.values(), ("D", "#000000", 0.0, "Mean rating and length")]
        shown.titled(
            figure, [style.handle(text, marker=mark, mfc=face, ls="", **edge) for mark, face, _, text in styles]
        )
    return figure, frame


def _length_correlations(sample: Sample, outputs: list[Output], *, resamples: int, seed: int) -> pd.DataFrame:
    length, rows = sample.scores[sample.names.index(LENGTH)], []

    def correlate(name: Output, measure: str, x: Floats, y: Floats, kept: npt.NDArray[np.bool_]) -> float:
        coefficient: Coefficient = "pearson" if "given" in measure else "spearman"
        result = intervals(x[None], y, _part(sample.design, kept), [coefficient], resamples=resamples, seed=seed)
        value, low, high = (float(getattr(result, end)[0, 0]) for end in ("value", "low", "high"))
        about = {"metric": name[0], "output": name[1], "measure": measure}
        rows.append(about | {"value": value, "low": low, "high": high, "n": len(y)})
        return value

    known = ~np.isnan(length)
    correlate(PEOPLE, "length", sample.ratings[known], length[known], known)
    order = {":".join(PEOPLE): (-np.inf, "")}
    for name in outputs:
        scores = sample.scores[sample.names.index(name)]
        kept = known & ~np.isnan(scores)
        own, rated, long = scores[kept], sample.ratings[kept], length[kept]
        first = correlate(name, "length", own, long, kept)
        order[":".join(name)] = -np.nan_to_num(first, nan=-2.0), name[0]
        correlate(name, "ratings", own, rated, kept)
        own, rated, long = map(stats.rankdata, (own, rated, long))
        correlate(name, "ratings given length", _residuals(own, long), _residuals(rated, long), kept)
    rows.sort(key=lambda row: order[f"{row['metric']}:{row['output']}"])
    return pd.DataFrame(rows)


def _residuals(values: Floats, given: Floats) -> Floats:
    """Return what a straight line through the other values leaves; exactly 0 if it leaves nothing."""
    centred, other = values - values.mean(), given - given.mean()
    squares = float(other @ other)
    rest = centred - other * (float(centred @ other) / squares) if squares else centred
    # Rounding must not pass for variation.
    return np.zeros_like(rest) if np.abs(rest).max() < 1e-9 * max(1.0, np.abs(centred).max()) else np.asarray(rest)


def _part(design: Design, kept: npt.NDArray[np.bool_]) -> Design:
    codes = [np.unique(c[kept], return_inverse=True)[1] for c in (design.systems, design.dialogues)]
    return design if kept.all() else Design(codes[0], codes[1], average=design.average, fixed=design.fixed)


# Agreement between judges, metrics and people, and of a judge with itself

# The cells of a larger matrix are too small for numbers; its CSV has them.
MOST_WRITTEN = 14
_GROUPED = [*_NAME, "group"]


def judge_agreement(inputs: Inputs, study: Study) -> Drawn:
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
    table = _columns_of(samples, judges, [name for name in metrics if name not in judges])
    keys: list[Any] = list(table)
    counts = table.notna().astype(int).to_numpy()
    values, n = table.set_axis(range(len(keys)), axis=1).corr("spearman").to_numpy(), counts.T @ counts
    pairs = zip(*np.triu_indices(len(keys), 1), strict=True)
    names = [f"{name}_{side}" for side in "ab" for name in _GROUPED]
    frame = pd.DataFrame(
        [(*keys[a], *keys[b], values[a, b], n[a, b]) for a, b in pairs], columns=[*names, "value", "n"]
    )
    paths = [path for path in inputs["judgements"] if path.stem in asked]
    answers = _answers(paths, schema.read(inputs["contexts"][0], "contexts"))
    alphas = _alphas(samples, answers, judges, resamples=shown.about["resamples"], seed=shown.about["seed"])
    itself = alphas.rename(columns={name: f"{name}_a" for name in _GROUPED} | {"items": "n"})
    itself = itself.assign(**{f"{name}_b": alphas[name] for name in _GROUPED}, measure="alpha")
    both = pd.concat([frame.assign(measure="spearman"), itself], ignore_index=True)
    columns = ["measure", *names, "value", "n", "low", "high", "raters"]
    return _draw_agreement(values, keys, alphas, shown), both[columns]


def _columns_of(samples: Sequence[Sample], judges: Sequence[Output], metrics: Sequence[Output]) -> pd.DataFrame:
    """Return a column for each rated dimension's mean rating, judge and metric that has scores, a row for each response.

    Judges and metrics have the turns of all dimensions, as those of one need not be those of another.
    """
    if {name for sample in samples for name in sample.names}.isdisjoint(judges):
        raise SchemaError("no judge has scores of rated turns", expected="scores of at least one judge")
    columns: dict[tuple[str, ...], pd.Series] = {}
    frames = [
        pd.DataFrame(
            np.transpose(sample.scores),
            pd.MultiIndex.from_tuples(sample.units),
            pd.Index(sample.names, tupleize_cols=False),
        )
        for sample in samples
    ]
    for sample, of in zip(samples, frames, strict=True):
        columns[PEOPLE[0], sample.target, "people"] = pd.Series(sample.ratings, index=of.index)
    for group, names in (("judge", judges), ("metric", metrics)):
        for name in names:
            if own := [
                of.iloc[:, sample.names.index(name)]
                for sample, of in zip(samples, frames, strict=True)
                if name in sample.names
            ]:
                joined = pd.concat(own)
                columns[*name, group] = joined[~joined.index.duplicated()]
    made = pd.DataFrame(dict(enumerate(columns.values())))
    return made.set_axis(pd.Index(columns, tupleize_cols=False), axis=1)


def _alphas(
    samples: Sequence[Sample], answers: pd.DataFrame, judges: Sequence[Output], *, resamples: int, seed: int
) -> pd.DataFrame:
    """Return Krippendorff's alpha (ordinal) among people, and among the answers of each judge that was asked several times.

    Intervals draw dialogues; ``raters`` is the most of an item.
    """
    how: dict[str, Any] = {"rng": np.random.default_rng(seed), "resamples": resamples}
    rows: list[tuple[Any, ...]] = []
    for sample in samples:
        result = alpha_interval(sample.single.T, "ordinal", clusters=sample.design.dialogues, **how)
        raters = int((~np.isnan(sample.single)).sum(axis=0).max())
        rows.append((PEOPLE[0], sample.target, "people", *result, raters, sample.single.shape[1]))
    for name in judges:
        own = answers[(answers[_NAME] == list(name)).all(axis=1)]
        if own["sample"].nunique() > 1:
            table = own.pivot(index=["item_id", "system_id", "cluster"], columns="sample", values="value")
            clusters = pd.factorize(table.index.get_level_values("cluster"))[0]
            result = alpha_interval(table.to_numpy(float), "ordinal", clusters=clusters, **how)
            rows.append((*name, "judge", *result, *table.shape[::-1]))
    return pd.DataFrame(rows, columns=[*_GROUPED, "value", "low", "high", "raters", "items"])


def _answers(paths: Sequence[Path], contexts: pd.DataFrame) -> pd.DataFrame:
    """Read single answers of judges about turns: one row an answer, ``cluster`` its dialogue."""
    result = pd.concat([schema.empty("judgements"), *(schema.read(path, "judgements") for path in paths)])
    result = result[(result["level"] == "turn") & result["value"].notna()]
    dialogues = contexts.set_index("context_id")["dialogue_id"]
    return result.assign(cluster=result["item_id"].map(dialogues).fillna(result["item_id"]))


def _draw_agreement(values: Floats, keys: Sequence[Any], alphas: pd.DataFrame, shown: Shown) -> Figure:
    def called(metric: str, output: str) -> str:
        return f"People: {output}" if metric == PEOPLE[0] else shown.label((metric, output))

    with_alpha, last = (alphas["group"] == "judge").any(), len(keys) - 1
    side = max((0.255 if len(keys) <= MOST_WRITTEN else 0.2) * len(keys), 1.6)
    sizes = [side + 2.0, *([0.17 * len(alphas) + 0.8] if with_alpha else [])]
    cells = []
    # Below the diagonal, and a gap between people, judges and metrics.
    gaps = 0.12 * np.cumsum([n > 0 and keys[n][2] != keys[n - 1][2] for n in range(len(keys))])
    for row in range(1, len(keys)):
        for column in range(row):
            value = values[row, column]
            text = style.short(value) if len(keys) <= MOST_WRITTEN or np.isnan(value) else ""
            cells.append((column + gaps[column], row + gaps[row], value, text, ""))
    with style.drawing():
        size = (max(side + 2.6, 5.4), sum(sizes) + 0.4)
        figure, axes = style.figure_and_axes(len(sizes), 1, size, height_ratios=sizes)
        ax, scale, names = axes[0][0], style.colours_of(values), [called(*key[:2]) for key in keys]
        style.tiles(ax, cells, scale, size=6.2)
        ax.set_aspect("equal")
        ax.set_yticks(np.arange(1, len(keys)) + gaps[1:], names[1:])
        ax.set_xticks(np.arange(last) + gaps[:-1], names[:-1], rotation=90)
        # In the empty half.
        bar = ax.inset_axes((0.55, 0.93, 0.42, 0.04))
        style.colour_bar(figure, scale, "Spearman's ρ", cax=bar, orientation="horizontal")
        if with_alpha:
            _draw_alphas(axes[1][0], alphas, [called(*name) for name in _names(alphas)])
        shown.titled(figure, more=" " + shown.entry["alphas" if with_alpha else "once"])
    return figure


def _draw_alphas(ax: Any, alphas: pd.DataFrame, names: Sequence[str]) -> None:  # noqa: ANN401
    rows = alphas.assign(y=np.arange(len(alphas))[::-1])
    for group, mark, face in (("people", "D", "#000000"), ("judge", "o", "#0072b2")):
        style.marks(ax, rows[rows["group"] == group], "#333333", mark, mfc=face, mec="black", mew=0.7)
    style.row_labels(ax, [f"{name} ({raters})" for name, raters in zip(names, rows["raters"], strict=True)])
    ax.set_xlim(min(0.0, float(np.nanmin(rows[["value", "low"]])) - 0.02), 1.0)
    ax.set_xlabel("Krippendorff's alpha")
    ax.set_title("Agreement among annotators, or among answers (how many)", loc="left", fontweight="bold")
    style.lines_behind(ax, "both")


# Learning curves

MOST_LINES = 5
VARIED = {
    "systems": "Systems",
    "dialogues": "Dialogues",
    "annotators": "Annotators of a unit",
    "samples": "Answers of a judge",
}
# Pairs of metrics by how far apart their correlations are.
_APART = (0.0, 0.025, 0.05, 0.1, 2.01)
_CURVES = ["part", "varied", "size", "series", "value", "low", "high", "n"]
_HEADINGS = {
    "value": "{}'s correlation\nwith the rating ({})",
    "agreement": "Agreement of the metrics'\nranking with the whole (τ)",
    "power": "Chance to tell\ntwo metrics apart",
}


def curves(inputs: Inputs, study: Study) -> Drawn:
    """Draw correlations and the agreement of rankings on part of the data, and the power of tests, by size.

    The frame has, by ``part``: ``value``, an output's correlation, the mean over n subsamples and the middle 95 % of them;
    ``agreement``, Kendall's tau of the metrics' ranking with that of the whole data; ``power``, the median and quartiles over
    n pairs of metrics of the share of tests at 5 % that find the difference, a series for each range of the difference.
    """
    shown = Shown(inputs, study)
    coefficient, kept, power = shown.about["coefficient"], shown.read("curves"), shown.read("power")
    kept = kept[kept["coefficient"] == coefficient]
    power = power[(power["grouping"] == "pooled") & (power["coefficient"] == coefficient) & power["power"].notna()]
    parts = []
    if len(kept):
        levels = list(dict.fromkeys(zip(kept["level"], kept["against"], strict=True)))
        level = ("turn", "turn") if ("turn", "turn") in levels else levels[0]
        parts = [_values(kept[(kept[["level", "against"]] == list(level)).all(axis=1)], shown), _agreement(kept)]
        here = (power[["level", "against"]] == list(level)).all(axis=1)
        power = power[here] if here.any() else power
    frame = pd.concat([*parts, _power(power)], ignore_index=True)[_CURVES]
    headings = _HEADINGS | {
        "value": _HEADINGS["value"].format(COEFFICIENTS[coefficient], shown.dimension(kept["target"]))
    }
    return _draw_curves(frame, shown, headings), frame


def _values(of_level: pd.DataFrame, shown: Shown) -> pd.DataFrame:
    """Return the curves of the outputs with the highest values on all data, the highest first."""
    whole = of_level[of_level.groupby("varied")["size"].transform("max") == of_level["size"]]
    mean = whole.groupby(_NAME)["value"].mean()
    names = shown.chosen(_names(of_level.dropna(subset="value")))
    best = sorted(names, key=lambda name: (-mean.get(name, -np.inf), name))[:MOST_LINES]
    order = {":".join(name): n for n, name in enumerate(best)}
    rows = of_level.assign(part="value", series=of_level["metric"] + ":" + of_level["output"], n=of_level["repeats"])
    rows = rows[rows["series"].isin(order)].assign(order=rows["series"].map(order))
    return rows.sort_values(["order", "varied", "size"], kind="stable")[_CURVES]


def _agreement(kept: pd.DataFrame) -> pd.DataFrame:
    """Return how the metrics' ranking agrees with that of the whole data, a series for each level and level of ratings."""
    key = ["level", "against", "varied", "size"]
    rows = kept.drop_duplicates(key).dropna(subset="agreement").sort_values(key)
    series = rows["level"] + "s against ratings of " + rows["against"] + "s"
    values: dict[str, Any] = {"value": rows["agreement"], "low": np.nan, "high": np.nan, "n": rows["repeats"]}
    return rows.assign(part="agreement", series=series, **values)[_CURVES]


def _power(power: pd.DataFrame) -> pd.DataFrame:
    """Return median and quartiles of the power over pairs, a series for each range of the difference."""
    names = [f"{low:g} to {high:g}" for low, high in pairwise(_APART[:-1])] + [f"above {_APART[-2]:g}"]
    series = pd.cut(power["difference"].abs(), list(_APART), labels=names, include_lowest=True).astype(str)
    result = power.assign(series=series).groupby(["series", "varied", "size"])["power"]
    columns = {name: result.quantile(share) for name, share in (("value", 0.5), ("low", 0.25), ("high", 0.75))}
    return pd.DataFrame({**columns, "n": result.size()}).reset_index().assign(part="power")[_CURVES]


def _draw_curves(frame: pd.DataFrame, shown: Shown, headings: Mapping[str, str]) -> Figure:
    columns = [name for name in VARIED if name in {*frame["varied"]}] or list(VARIED)
    parts = [part for part in _HEADINGS if part in {*frame["part"]}] or ["value"]
    width = 1.75 * max(len(columns), 3) + 0.7
    with style.drawing():
        import matplotlib.pyplot as plt

        legends = [_legend(frame[frame["part"] == part], part, shown, width) for part in parts]
        # Each row of panels below its legend.
        sizes = []
        for part, legend in zip(parts, legends, strict=True):
            lines = -(-len(legend["handles"]) // legend["ncols"]) + bool(legend["title"])
            sizes += [0.17 * lines + 0.02, 2.0 if part == "value" else 1.6]
        figure = plt.figure(figsize=(width, sum(sizes) + 0.9), layout="constrained")
        grid = figure.add_gridspec(len(sizes), len(columns), height_ratios=sizes)
        axes: dict[tuple[int, int], Any] = {}
        for row, part in enumerate(parts):
            of_part = frame[frame["part"] == part]
            for column, varied in enumerate(columns):
                shared = {"sharex": axes.get((0, column)), "sharey": axes.get((row, 0))}
                ax = axes[row, column] = figure.add_subplot(grid[2 * row + 1, column], **shared)
                ax.tick_params(labelbottom=row == len(parts) - 1, labelleft=column == 0)
                _draw_lines(ax, of_part[of_part["varied"] == varied], list(dict.fromkeys(of_part["series"])), part)
                if row == len(parts) - 1:
                    _scale(ax, sorted(frame.loc[frame["varied"] == varied, "size"].unique()))
                    ax.set_xlabel(VARIED[varied])
            axes[row, 0].set_ylabel(headings[part])
            if part == "power":
                axes[row, 0].set_ylim(-0.03, 1.03)
            above = figure.add_subplot(grid[2 * row, :])
            above.axis("off")
            above.legend(
                **legends[row], loc="upper left", frameon=False, handlelength=3, borderaxespad=0, borderpad=0,
                columnspacing=1.4, labelspacing=0.25, alignment="left",
            )  # fmt: skip
        shown.titled(figure)
    return figure


def _legend(of_part: pd.DataFrame, part: str, shown: Shown, width: float) -> dict[str, Any]:
    """Return what the series of a row of panels are called, in as many columns as fit."""
    names = list(dict.fromkeys(of_part["series"]))
    if part == "value":
        names = [shown.label(output_name(name)) for name in names]
    elif part == "agreement":
        names = [name[0].upper() + name[1:] for name in names]
    # About as many characters as are as wide as the figure; a line with its mark takes as much as nine.
    fitting = int(width * 72 / (8 * 0.55)) // (max(map(len, names), default=1) + 9)
    handles = [style.handle(text, **_style(n), ms=4) for n, text in enumerate(names)]
    title = "Difference of the correlations" if part == "power" else None
    return {"handles": handles, "ncols": max(1, min(fitting, len(names))), "title": title}


def _style(n: int) -> dict[str, Any]:
    colour, mark, line = style.SERIES[n % len(style.SERIES)]
    return {"color": colour, "marker": mark, "ls": line, "lw": 1.2, "mec": "black", "mew": 0.4}


def _draw_lines(ax: Any, result: pd.DataFrame, series: list[str], part: str) -> None:  # noqa: ANN401
    if result.empty:
        ax.text(0.5, 0.5, "not computed", ha="center", va="center", transform=ax.transAxes, color="#777777")
    for n, name in enumerate(series):
        rows = result[result["series"] == name]
        x = rows["size"] * (1.035 ** (n - (len(series) - 1) / 2) if part != "agreement" else 1.0)
        if rows["low"].notna().any():
            ax.vlines(x, rows["low"], rows["high"], color=_style(n)["color"], lw=0.9, alpha=0.9)
        ax.plot(x, rows["value"], **_style(n), ms=3.8)
    style.lines_behind(ax, "y")


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
