"""LLMs as dialogue evaluators (Zhang et al. 2024): twelve data sets, ensembles, perturbations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError, SchemaError
from comperdial.core.files import read_table
from comperdial.core.names import output_name, unperturbed
from comperdial.evaluation.ensembles import MEAN, OVER_DIMENSIONS, OVER_MODELS, OVERALL, Ensembles, is_ensemble
from comperdial.evaluation.rated import RatedSet
from comperdial.evaluation.ratios import read_pairs
from comperdial.judges.prompting import find_question
from comperdial.perturbations import PERTURBATIONS
from comperdial.report.about import About, Inputs, Study
from comperdial.report.correlations import MARK, halved
from comperdial.report.plots.style import drawing, figure_and_axes, ink_on, sequential, short, titled
from comperdial.report.render import SIMULATED, Section, Table, described, grouped_notes, interval, number
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.stats.agreement import krippendorff_alpha

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHORT = {
    "relevance": "Rel", "specificity": "Spe", "interestingness": "Int", "understandability": "Und",
    "coherence": "Coh", "engagingness": "Eng", "diversity": "Div", "informativeness": "Inf", "overall": "Ovr",
    "average": "Avg",
}  # fmt: skip
LEVELS = {"turn": "Turn level", "dialogue": "Dialogue level"}
RATERS = {"human": "people", "gpt-4": "GPT-4", "human or gpt-4": "people or GPT-4"}
AVERAGE = "average"
RULES = "service:rules"
DROPS = {"above_delta": "a drop above δ", "any_drop": "any drop"}


class _Known:
    """What is known of the study's metrics and judges."""

    def __init__(self, inputs: Inputs, study: Study, metrics: Iterable[str] = ()) -> None:
        self.study, self.about = study, About.read(inputs["about"])
        sets = self.about.sets.values()
        self.recorded = study.get("recorded_judges") or {}
        self.judges = {name: one for about in sets for name, one in about["judges"].items()}
        single = sorted(name for name in metrics if not is_ensemble(name))
        self.ensembles = Ensembles.of(study.get("ensembles") or {}, single, study.get("variants"))
        mains = {metric: of[0] for about in sets for metric, of in about["mains"].items() if of}
        self.mains = {metric: output for metric, output in mains.items() if metric in (study.get("metrics") or mains)}

    def label(self, metric: str) -> str:
        """Return what a metric is called. The variants of implicit scoring share a name: they are one row."""
        kind, _, name = metric.partition(":")
        if kind == OVER_DIMENSIONS:
            return f"mean of the dimensions of {self.label(name)}"
        if kind == OVER_MODELS:
            return f"mean of models: {name}"
        if metric in self.recorded:
            return f"{self.recorded[metric]['model'].upper()} (recorded)"
        judge = self.judges.get(metric, {})
        if judge.get("implicit") or metric.startswith("implicit_"):
            return f"Implicit by {judge.get('judge', metric.removeprefix('implicit_'))}"
        text = self.about.labels.get(f"{metric}:{self.mains.get(metric)}", self.about.labels.get(metric, metric))
        return f"{text}, a program" if judge.get("service") == "rules" else text

    def title(self, dataset: str) -> str:
        """Return a data set's title; pairs that were made of a set have the set's. Who rated is in the heading."""
        titles = self.about.titles
        return titles.get(dataset, titles.get(unperturbed(dataset), dataset)).partition(" (rated by ")[0]

    def shown(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Keep one output for each metric and dimension, called as the dimension or the main one, and add ``label``."""
        frame = frame.sort_values(["metric", "output"], kind="stable")
        outputs = frame.groupby("metric")["output"].agg(set)
        mains = {
            name: next(iter(of)) for name, of in outputs.items() if len(of) == 1 and not of & {*SHORT}
        } | self.mains
        mains |= {name: MEAN for name in outputs.index if is_ensemble(name)}
        own = frame["output"] == frame["dimension"]
        has_own = own.groupby([frame["metric"], frame["dimension"]]).transform("any")
        kept = frame[own | (~has_own & (frame["output"] == frame["metric"].map(mains)))]
        return kept.assign(label=kept["metric"].map(self.label))

    def single(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return :meth:`shown` without ensembles."""
        return self.shown(frame[~frame["metric"].map(is_ensemble).astype(bool)])

    def needs(self, metric: str) -> str:
        """Return what a metric needs of a text, in words."""
        needed: set[str] = set()
        for about in self.about.sets.values():
            outputs = about["needs"].get(metric, {})
            needed |= {*outputs.get(self.mains.get(metric, ""), ())}
        # Nearly all texts have something before them: what else is needed says more.
        return " and ".join(sorted(needed - {"history"})) or ("text before the response" if needed else "")

    def sample_notes(self, frame: pd.DataFrame) -> list[str]:
        """Name the judges that were asked about a part of the items."""
        items = frame["signature"].astype(str).str.extract(r"\|items:(\d+)")[0].rename("items")
        asked = {count: _once(map(self.label, sorted({*rows["metric"]}))) for count, rows in frame.groupby(items)}
        return [
            f"{', '.join(names)}: asked about {count} responses or dialogues of a set (all if there are fewer), drawn by the "
            "hash of their names"
            for count, names in asked.items()
        ]

    def lacking_notes(self, frame: pd.DataFrame, where: str = "") -> list[str]:
        """Name the metrics that have no row at a level, and what they need."""
        found: dict[str, list[str]] = {}
        for level, title in LEVELS.items():
            there = set(frame.loc[frame["level"] == level, "metric"])
            lost = [name for name in sorted(self.mains) if name not in there and name not in self.about.not_run]
            if there and lost:
                by_need = pd.Series(lost).groupby(pd.Series(map(self.needs, lost)), sort=False)
                parts = [", ".join(map(self.label, names)) + f" ({need})" * bool(need) for need, names in by_need]
                found.setdefault("; ".join(parts), []).append(title)
        return [
            f"{where}{' and '.join(levels).capitalize()}, no row, as the texts lack what is needed: {text}"
            for text, levels in found.items()
        ]

    def not_asked_notes(self) -> list[str]:
        """Say that no judge was asked the questions of implicit scoring, if so."""
        if any(one.get("implicit") and one["asked"] for one in self.judges.values()):
            return []
        return ["Not asked: implicit scoring: no judge of params.yaml gives probabilities (mode: probabilities)"]

    def not_run_notes(self) -> list[str]:
        """Name the study's metrics and judges that were not run, and why."""
        ours = {*(self.study.get("metrics") or {})}
        ours |= {name for name, one in self.judges.items() if one.get("variant") in (self.study.get("variants") or {})}
        return grouped_notes([(name, why) for name, why in sorted(self.about.not_run.items()) if name in ours])

    def notes(self, frame: pd.DataFrame) -> list[str]:
        """Return the notes on who is in a table of correlations, and who is not."""
        lacking = self.lacking_notes(frame[frame["value"].notna()])
        return [*self.sample_notes(frame), *lacking, *self.not_asked_notes(), *self.not_run_notes()]

    def partial_text(self, frame: pd.DataFrame, share: pd.Series, of: str) -> list[str]:
        """Return a text for each share of the items that some evaluators have scores of."""
        groups = frame.assign(share=share, lost=frame["metric"].map(self.needs)).groupby(["share", "lost"])
        return [
            f"{share} of {of}: {', '.join(sorted({*rows['label']}))}" + f" (the others have no {lost})" * bool(lost)
            for (share, lost), rows in groups
        ]


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _read(paths: Sequence[Path], table: str) -> pd.DataFrame:
    frame = pd.concat([schema.read(path, table) for path in paths], ignore_index=True)
    if frame.empty:
        raise NothingToShowError("there are no scores that could be compared")
    return frame


def _correlations(inputs: Inputs, study: Study) -> tuple[pd.DataFrame, _Known]:
    frame = _read(inputs["correlations"], "dimension_correlations")
    return frame, _Known(inputs, study, frame["metric"].unique())


def _reported(inputs: Inputs, study: Study) -> pd.DataFrame:
    """Return the values that the paper reports at the place that a table names."""
    frame = read_table(inputs["reported"][0]).rename(columns={"metric": "label"})
    frame = frame.assign(value=pd.to_numeric(frame["value"]), origin="reported")
    return frame[frame["place"] == study["entry"]["place"]]


def _table(
    known: _Known, frame: pd.DataFrame, sections: Mapping[str, pd.DataFrame], notes: Iterable[str] = ()
) -> Table:
    """Return a table with the title, the caption and the first notes of its entry, and the sections that have rows."""
    kept = [Section(title, cells) for title, cells in sections.items() if len(cells)]
    made = described(known.study, frame, kept, *notes)
    return replace(made, caption=made.caption + f" {SIMULATED}" * known.about.simulated)


def _by_source(names: Iterable[str]) -> list[str]:
    """Return sources of ratings, each once: people, GPT-4, and the others by name."""
    order = list(RATERS)
    return sorted({*names}, key=lambda name: (order.index(name) if name in order else len(order), name))


def _sheet(frame: pd.DataFrame, labels: Mapping[str, str], columns: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """Return a section's frame: a row for each combination of labels, a column for each ``group`` and ``name``."""
    rows = frame.drop_duplicates([*labels]).set_index([*labels]).index
    cells = frame.set_index([*labels, "group", "name"])["text"].unstack(["group", "name"])
    made = cells.reindex(index=rows, columns=pd.MultiIndex.from_tuples(columns))
    return made.rename_axis(index=list(labels.values()))


def _with_intervals(frame: pd.DataFrame, value: str, marked: str | None = None) -> list[str]:
    """Write values with their intervals; those for which the column ``marked`` is true are marked."""
    marks = [""] * len(frame) if marked is None else np.where(frame[marked].fillna(False), MARK, "")
    cells = zip(frame[value], marks, frame["low"], frame["high"], strict=True)
    return [number(one) + mark + interval(low, high) for one, mark, low, high in cells]


def _wide(frame: pd.DataFrame, index: list[str], by: list[str], values: list[str], plain: str = "") -> pd.DataFrame:
    """Return one row for ``index``, a column for each place in ``by`` and value; ``plain``'s is called as the place."""
    place = frame[by].agg("_".join, axis=1)
    made = frame.assign(place=place).pivot(index=index, columns="place", values=values)
    made.columns = made.columns.map(lambda one: one[1] if one[0] == plain else f"{one[1]}_{one[0]}")
    rows = frame.drop_duplicates(index).set_index(index).index
    return made.dropna(axis="columns", how="all").reindex(rows).reset_index()


# Tables 2, 3, 5 and 6: means over the data sets of a level.


def _means(frame: pd.DataFrame, rated: pd.DataFrame) -> pd.DataFrame:
    """Average Pearson correlations over the sets of a level, apart for each source of ratings.

    Returns one row a label, level, source and dimension: ``value``, ``sets`` (in the mean) and ``of`` (sets of ``rated``
    with such ratings).
    """
    found = frame[frame["coefficient"].eq("pearson") & frame["value"].notna()]
    key = ["label", "level", "source", "dimension"]
    if (twice := found.duplicated([*key, "dataset"])).any():
        row = found[twice].iloc[0]
        raise SchemaError(f"two evaluators are called {row['label']!r}", where=row["dataset"], expected="other labels")
    of = rated.groupby(key[1:])["dataset"].nunique().rename("of").reset_index()
    means = found.groupby(key, sort=False).agg(value=("value", "mean"), sets=("dataset", "nunique")).reset_index()
    return means.merge(of, on=key[1:]).assign(origin="ours")


def _texts(means: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Add to means those over a level's dimensions, if ``by`` is given and all five have a value, and the texts of all.

    A text is the mean, and in brackets of how many sets it is if some have no score.
    """
    frame = means
    if by:
        whole = (
            means.groupby([*by, "level", "source", "origin"], sort=False)["value"].agg(["mean", "count"]).reset_index()
        )
        whole = whole[whole["count"] == 5].rename(columns={"mean": "value"}).assign(dimension=AVERAGE)
        frame = pd.concat([means, whole.drop(columns="count")], ignore_index=True)
    frame = frame.reindex(columns=_once([*frame.columns, "sets", "of"]))
    fewer = [f" ({sets:.0f})" if sets < of else "" for sets, of in zip(frame["sets"], frame["of"], strict=True)]
    return frame.assign(
        group=frame["level"].map(LEVELS),
        name=frame["dimension"].map(SHORT),
        by=[RATERS.get(name, name) for name in frame["source"]],
        text=[number(value) + few for value, few in zip(frame["value"], fewer, strict=True)],
    )


def _columns(*levels: str) -> list[tuple[str, str]]:
    return [(LEVELS[level], SHORT[name]) for level in levels for name in (*DIMENSIONS[level], AVERAGE)]


def _by_origin(texts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each section: ours, apart for each source of ratings, and the reported ones."""
    ours = texts[texts["origin"] == "ours"]
    sources = {
        f"Ours, against ratings by {RATERS.get(n, n)}": ours[ours["source"] == n] for n in _by_source(ours["source"])
    }
    return {**sources, "Reported": texts[texts["origin"] == "reported"]}


def means(inputs: Inputs, study: Study) -> Table:
    """Show Tables 2 and 3: each evaluator's mean over the sets of a level, beside the paper's."""
    entry = study["entry"]
    frame, known = _correlations(inputs, study)
    kept = known.single(frame)
    kept = kept[kept["source"].isin(entry.get("sources", kept["source"]))]
    ours, printed = _means(kept, kept), _reported(inputs, study).assign(source=entry["reported_by"])
    counts = ours.drop_duplicates(["level", "source", "dimension"]).assign(label="Sets in the mean")
    counts = _texts(counts).assign(text=counts["of"].astype(str).to_numpy())
    rows = pd.concat([counts, _texts(ours, "label"), _texts(printed)], ignore_index=True)
    labels = {"label": "Evaluator", "by": "Rated by"}
    sections = {title: _sheet(of, labels, _columns(*LEVELS)) for title, of in _by_origin(rows).items()}
    both = pd.concat([ours, printed], ignore_index=True).round({"value": 4})
    both = both.rename(columns={"label": "evaluator", "source": "rated_by"})
    tidy = _wide(both, ["origin", "evaluator", "rated_by"], ["level", "dimension"], ["value", "sets", "of"], "value")
    return _table(known, tidy, sections, known.notes(kept))


def _tidy(*means: pd.DataFrame) -> pd.DataFrame:
    columns = ["origin", "ensemble", "label", "score", "source", "level", "dimension", "value", "sets", "of"]
    both = pd.concat(means, ignore_index=True)
    both = both[[name for name in columns if name in both]].astype({"sets": "Int32", "of": "Int32"})
    return both.round({"value": 4}).rename(columns={"label": "evaluator", "source": "rated_by"})


def dimension_means(inputs: Inputs, study: Study) -> Table:
    """Show Table 5: the mean of an evaluator's four dimensions and its overall score, as scores of overall quality."""
    frame, known = _correlations(inputs, study)
    overall = known.shown(frame[frame["dimension"] == OVERALL])
    is_mean = overall["metric"].str.startswith(OVER_DIMENSIONS)
    judge = overall["metric"].str.removeprefix(f"{OVER_DIMENSIONS}:").map(known.ensembles.judge_of)
    overall = overall.assign(label=judge.map(known.label), score=np.where(is_mean, "dimensions", "direct"))
    overall = overall[judge.isin(judge[is_mean])].sort_values("label", kind="stable")
    ours = pd.concat([_means(rows, rows).assign(score=name) for name, rows in overall.groupby("score", sort=False)])
    printed = _reported(inputs, study).rename(columns={"output": "score"}).assign(source="human or gpt-4")
    names = {"dimensions": "Ensemble", "direct": "Direct"}
    texts = _texts(pd.concat([ours, printed], ignore_index=True)).assign(name=lambda rows: rows["score"].map(names))
    columns = [(level, name) for level in LEVELS.values() for name in names.values()]
    labels = {"label": "Evaluator", "by": "Rated by"}
    sections = {title: _sheet(rows, labels, columns) for title, rows in _by_origin(texts).items()}
    return _table(known, _tidy(ours, printed), sections, known.sample_notes(overall[overall["score"] == "direct"]))


def model_means(inputs: Inputs, study: Study) -> Table:
    """Show Table 6: the mean of several evaluators beside each of them, over the sets on which the ensemble has a value."""
    frame, known = _correlations(inputs, study)
    members = pd.DataFrame(
        [
            (ensemble.removeprefix(f"{OVER_MODELS}:"), level, dimension, *one)
            for level in LEVELS
            for (ensemble, output), outputs in known.ensembles.members(level).items()
            if ensemble.startswith(OVER_MODELS)
            for dimension in (DIMENSIONS[level] if output == MEAN else [output])
            for one in outputs
        ],
        columns=["ensemble", "level", "dimension", "metric", "output"],
    )
    shown, valued = known.shown(frame), frame[frame["value"].notna()]
    whole = shown[shown["metric"].str.startswith(OVER_MODELS) & shown["value"].notna()]
    whole = whole.assign(
        ensemble=whole["metric"].str.removeprefix(f"{OVER_MODELS}:"), label="their mean", score="models"
    )
    single = valued.merge(members, on=["level", "dimension", "metric", "output"])
    places = ["ensemble", "dataset", "source", "level", "dimension", "coefficient"]
    single = single.assign(label=single["metric"].map(known.label), score="direct").merge(whole[places], on=places)
    both = pd.concat([single, whole], ignore_index=True)
    parts = [
        _means(rows, shown).assign(ensemble=str(name), score=str(score))
        for (name, score), rows in both.groupby(["ensemble", "score"])
    ]
    if not parts:
        raise NothingToShowError("no ensemble has a value on any data set")
    ours = pd.concat(parts, ignore_index=True)
    printed = _reported(inputs, study).rename(columns={"output": "score"})
    printed = printed.assign(source="human or gpt-4")
    texts = pd.concat([_texts(ours, "ensemble", "label"), _texts(printed.assign(ensemble="reported"))])
    texts = texts.sort_values("ensemble", kind="stable")
    labels = {"ensemble": "Ensemble", "label": "Evaluator", "by": "Rated by"}
    sections = {
        f"{level_title}, {title[0].lower()}{title[1:]}": _sheet(rows, labels, _columns(level))
        for level, level_title in LEVELS.items()
        for title, rows in _by_origin(texts[texts["level"] == level]).items()
    }
    notes = [
        f"{name}: the mean of {', '.join(known.label(output_name(one, MEAN)[0]) for one in outputs)}, each standardised over "
        "the items that all of them score"
        for name, outputs in sorted(known.ensembles.models.items())
    ]
    for name, of in members[~members["ensemble"].isin(ours["ensemble"])].groupby("ensemble"):
        lost = of.loc[~of["metric"].isin(valued["metric"]), "metric"].unique()
        why = f": there are no scores of {', '.join(map(known.label, lost))}" if len(lost) else ""
        notes.append(f"{name} has no value, and no row, on any set{why}")
    return _table(known, _tidy(ours, printed), sections, [*notes, *known.sample_notes(both)])


# Table 4, and every correlation.


def rankings(inputs: Inputs, study: Study) -> Table:
    """Show Table 4: Spearman between the rankings of evaluators by people's and by GPT-4's ratings.

    GPT-4's recorded ratings are not ranked: half of what they would be ranked by are themselves.
    """
    frame, known = _correlations(inputs, study)
    printed = _reported(inputs, study)
    kept = known.single(frame[~frame["metric"].isin(known.recorded) & frame["dataset"].isin(printed["dataset"])])
    pearson = kept[kept["coefficient"] == "pearson"]
    both = pearson.pivot(index=["dataset", "dimension", "metric"], columns="source", values="value")
    both = both.reindex(columns=["human", "gpt-4"]).dropna().reset_index()
    ours = pd.DataFrame(
        [
            (*place, rows["human"].corr(rows["gpt-4"], method="spearman"), len(rows))
            for place, rows in both.groupby(["dataset", "dimension"])
        ],
        columns=["dataset", "dimension", "ours", "evaluators"],
    )
    tidy = printed.rename(columns={"value": "reported"}).merge(ours, how="left", on=["dataset", "dimension"])
    tidy = tidy[["dataset", "dimension", "ours", "evaluators", "reported"]].fillna({"evaluators": 0}).round({"ours": 4})
    long = tidy.melt(["dataset", "dimension"], ["ours", "reported"], "by").dropna(subset="value")
    long = long.assign(group="Spearman", name=long["dimension"].map(SHORT), text=long["value"].map(number))
    long = long.sort_values("dataset", key=lambda names: names.map(_once(printed["dataset"]).index), kind="stable")
    sections = {
        known.title(str(name)): _sheet(rows, {"by": "From"}, [("Spearman", name) for name in _once(rows["name"])])
        for name, rows in long.groupby("dataset", sort=False)
    }
    ranked = kept[kept["dataset"].isin(ours["dataset"])]
    counts = [
        f"{known.title(one['dataset'])} {SHORT[one['dimension']]} {one['evaluators']}"
        for one in ours.to_dict("records")
    ]
    notes = [
        f"Ranked here: {', '.join(_once(ranked['label'])) or 'none'}",
        *([f"Evaluators ranked, ours: {', '.join(counts)}"] if counts else []),
    ]
    return _table(known, tidy, sections, [*notes, *known.sample_notes(ranked)])


def every_correlation(inputs: Inputs, study: Study) -> Table:
    """Show Pearson of each evaluator, set and dimension with its interval; the CSV has all three coefficients."""
    frame, known = _correlations(inputs, study)
    found = known.shown(frame).dropna(subset="value")
    found = found.assign(loso_halved=halved(found), place=found["dimension"].map([*SHORT].index))
    pearson = found[found["coefficient"] == "pearson"].sort_values("value", ascending=False)
    texts = pearson.assign(
        group="Pearson", name=pearson["dimension"].map(SHORT), text=_with_intervals(pearson, "value", "loso_halved")
    )
    sections = {}
    for dataset in study["datasets"]:
        of_set = texts[texts["dataset"] == dataset]
        for source in _by_source(of_set["source"]):
            # The highest in the last column first.
            rows = of_set[of_set["source"] == source].sort_values("place", ascending=False, kind="stable")
            columns = [("Pearson", name) for name in reversed(_once(rows["name"]))]
            title = f"{known.title(dataset)}, rated by {RATERS.get(source, source)}"
            sections[title] = _sheet(rows, {"label": "Evaluator"}, columns)
    sets: dict[str, list[str]] = {}
    for dataset, rows in found[found["coverage"] < 1].groupby("dataset"):
        shares = [f"{share:.1%}" for share in rows["coverage"]]
        text = "; of ".join(known.partial_text(rows, pd.Series(shares, rows.index), "the rated items"))
        sets.setdefault(text, []).append(known.title(str(dataset)))
    notes = [f"{', '.join(names)}, scores of {text}" for text, names in sets.items()]
    notes += [*known.sample_notes(found), *known.not_asked_notes(), *known.not_run_notes()]
    return _table(known, _every(found), sections, notes)


def _every(found: pd.DataFrame) -> pd.DataFrame:
    """Return one row a metric, set and source, its columns once for each dimension and coefficient."""
    key = ["dataset", "source", "metric"]
    values = found.assign(dimension=found["dimension"].map(SHORT).str.lower())
    beside = ["low", "high", "loso_value", "loso_system", "loso_halved"]
    joined = values.pivot(index=[*key, "dimension"], columns="coefficient", values="value").reset_index()
    pearson = values.loc[values["coefficient"] == "pearson", [*key, "dimension", *beside, "n"]]
    joined = joined.merge(pearson, on=[*key, "dimension"]).round({"low": 2, "high": 2}).round(3)
    wide = _wide(joined, key, ["dimension"], ["pearson", *beside, "spearman", "kendall"], "pearson")
    # Ratings may be missing in some dimensions: the fewest items.
    return joined.groupby(key, sort=False)["n"].min().reset_index().merge(wide, on=key)


# Table 1, and how raters agree.


def _agreement(folders: Iterable[Path]) -> pd.DataFrame:
    """Return how annotators agree, over pairs of them: one row a data set, source and dimension."""
    rows = []
    for rated in map(RatedSet.read, folders):
        singles = {source: one for source in rated.sources if (one := rated.single(source)) is not None}
        for source, dimension, table in (
            (source, dimension, table.dropna(axis="columns", how="all"))
            for source, single in singles.items()
            if single.shape[1] > 1
            for dimension, table in single.groupby(level="dimension")
        ):
            there, upper = table.notna().astype(int), np.triu_indices(table.shape[1], 1)
            n = (there.T @ there).to_numpy()[upper]
            pairs = pd.Series(table.corr().to_numpy()[upper])[n > 0]
            of_pairs = (pairs.mean(), pairs.min(), pairs.max(), pairs.count(), n[n > 0].min())
            rows.append((rated.dataset, source, dimension, *of_pairs, krippendorff_alpha(table.to_numpy(), "interval")))
    columns = ["dataset", "source", "dimension", "mean", "lowest", "highest", "pairs", "n", "alpha"]
    return pd.DataFrame(rows, columns=columns)


def rounds(inputs: Inputs, study: Study) -> Table:
    """Show how the rounds of GPT-4, and people, agree with each other."""
    known = _Known(inputs, study)
    found = _agreement(path.parent for path in inputs["contexts"])
    texts = found.assign(
        name=found["dimension"].map(SHORT),
        title=found["dataset"].map(known.title),
        by=found["source"].map(RATERS),
        place=found["dataset"].map([*study["datasets"]].index),
        Pearson=_with_intervals(found.rename(columns={"lowest": "low", "highest": "high"}), "mean"),
        Alpha=found["alpha"].map(number),
    ).sort_values(["place", "source"], ascending=[True, False])
    names = {name: SHORT[name] for of in DIMENSIONS.values() for name in of if name in set(texts["dimension"])}
    labels = {"title": "Data set", "by": "Rated by"}
    sections = {
        title: _sheet(texts.assign(group=group, text=texts[group]), labels, [(group, name) for name in names.values()])
        for group, title in (
            ("Pearson", "Mean Pearson of pairs, lowest and highest"),
            ("Alpha", "Krippendorff's alpha"),
        )
    }
    return _table(known, found.round(4), sections)


def data_sets(inputs: Inputs, study: Study) -> Table:
    """Show Table 1: the data sets, their sizes, who rated which dimension, and how the raters agree."""
    known, folders = _Known(inputs, study), [path.parent for path in inputs["contexts"]]
    printed = read_table(inputs["reported"][0])
    numbers, sources = ["items", "utterances", "words_before", "words"], ["human", "gpt-4"]
    printed[numbers] = printed[numbers].apply(pd.to_numeric, errors="coerce")
    found = pd.DataFrame(map(_count, folders))
    found = found.merge(printed[["dataset", *numbers, *sources]], on="dataset", how="left", suffixes=("", "_reported"))
    means = (
        _agreement(folders).groupby(["dataset", "source"])["mean"].agg(lowest="min", highest="max").unstack("source")
    )
    for source in sources:
        for end in ("lowest", "highest"):
            found[f"agreement_{source}_{end}"] = (
                found["dataset"].map(means[end, source]) if (end, source) in means else np.nan
            )
    sections = {}
    for level, title in LEVELS.items():
        rows, both = found[found["level"] == level], {"ours": "", "reported": "_reported"}
        heads = {
            "items": "Items",
            "utterances": "Utterances",
            "words_before": "Words before",
            "words": "Words of the response",
        }
        if level == "dialogue":
            heads = {"items": "Items", "utterances": "Utterances", "words": "Words"}
        made = {("", "Data set"): rows["dataset"].map(known.title)}
        for name, head in heads.items():
            made |= {(head, by): _numbers(rows[name + end], 0 if name == "items" else 1) for by, end in both.items()}
        for source in sources:
            head = f"Rated by {RATERS[source]}"
            made |= {(head, by): _short(rows[source + end], DIMENSIONS[level]) for by, end in both.items()}
        for source in sources:
            ends = zip(rows[f"agreement_{source}_lowest"], rows[f"agreement_{source}_highest"], strict=True)
            texts = ["–" if pd.isna(low) else f"{low:.2f} to {high:.2f}" for low, high in ends]
            made["Agreement, ours", RATERS[source]] = pd.Series(texts, rows.index)
        sections[title] = pd.DataFrame(made)
    return _table(known, found, sections)


def _numbers(values: pd.Series, digits: int) -> pd.Series:
    return values.map(f"{{:,.{digits}f}}".format, na_action="ignore")


def _short(names: pd.Series, order: Sequence[str]) -> pd.Series:
    """Write dimensions that a text names."""
    texts = [", ".join(SHORT[one] for one in order if one in str(text).split()) or "–" for text in names]
    return pd.Series(texts, names.index)


def _count(folder: Path) -> dict[str, object]:
    """Count a data set: its rated items, their mean length, and the dimensions that each source rated."""
    rated = RatedSet.read(folder)
    contexts, responses = (schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses"))
    texts = responses.merge(contexts[["context_id", "dialogue_id", "history"]], on="context_id")
    texts = texts.assign(
        utterances=texts["history"].map(len) + 1,
        words_before=[sum(len(one["text"].split()) for one in history) for history in texts["history"]],
        words=texts["response"].str.split().map(len),
        item=texts["context_id" if rated.level == "turn" else "dialogue_id"],
    )
    if rated.level == "dialogue":
        # The last response of a dialogue has all of it before it.
        texts = texts.sort_values("utterances", kind="stable").drop_duplicates(["item", "system_id"], keep="last")
        texts = texts.assign(words=texts["words_before"] + texts["words"], words_before=float("nan"))
    single = {source: one for source in rated.sources if (one := rated.single(source)) is not None}
    units = {(str(item), str(system)) for one in single.values() for item, system, _ in one.index}
    items = pd.DataFrame(sorted(units), columns=["item", "system_id"])
    counted = items.merge(texts, on=["item", "system_id"], how="left")
    by = {source: {*one.index.get_level_values("dimension")} for source, one in single.items()}
    order = DIMENSIONS[rated.level]
    return {
        "dataset": rated.dataset,
        "level": rated.level,
        "items": len(counted),
        **{name: float(counted[name].mean()) for name in ("utterances", "words_before", "words")},
        **{source: " ".join(one for one in order if one in by.get(source, ())) for source in ("human", "gpt-4")},
    }


# Tables 7, 8 and 9: perturbations and questions.


def perturbations(inputs: Inputs, study: Study) -> Table:
    """Show Table 7: the perturbations, how many pairs there are of each, what they aim at, and the drop that counts."""
    known = _Known(inputs, study)
    pairs = pd.concat([read_pairs(path.parent)[1] for path in inputs["contexts"]])
    counted = (
        pairs.groupby(["dataset", "perturbation"])["original"].agg(pairs="size", originals="nunique").reset_index()
    )
    counted["origin"] = np.where(counted["dataset"] == counted["dataset"].map(unperturbed), "recorded", "made here")
    ours = pd.DataFrame(PERTURBATIONS.values()).rename(columns={"name": "perturbation"})
    printed = read_table(inputs["reported"][0])[["perturbation", "texts", "pairs", "threshold"]]
    printed[["pairs", "threshold"]] = printed[["pairs", "threshold"]].apply(pd.to_numeric)
    printed = printed.rename(columns={"pairs": "pairs_reported", "threshold": "threshold_reported"})
    recorded = counted[counted["origin"] == "recorded"]
    of_paper = printed[["perturbation", "pairs_reported", "threshold_reported"]].assign(origin="recorded")
    tidy = counted.merge(of_paper, on=["perturbation", "origin"], how="left")
    tidy = tidy.merge(ours[["perturbation", "threshold"]], on="perturbation", how="left")
    every = ours.merge(recorded.groupby("perturbation")[["pairs", "originals"]].sum().reset_index(), how="left")
    every = every.merge(printed, on="perturbation", how="left")
    texts = pd.DataFrame(
        {
            ("", "Perturbation"): every["title"],
            ("", "In short"): every["short"],
            ("", "Level"): every["level"],
            ("", "Texts"): every["texts"],
            ("", "Aims at"): [", ".join(SHORT[one] for one in of) for of in every["dimensions"]],
            ("Pairs", "ours"): _numbers(every["pairs"], 0),
            ("Pairs", "reported"): _numbers(every["pairs_reported"], 0),
            ("Originals", "ours"): _numbers(every["originals"], 0),
            ("δ", "ours"): _numbers(every["threshold"], 1) + np.where(every["paper"], "", " [ours]"),
            ("δ", "reported"): _numbers(every["threshold_reported"], 1),
        }
    )
    in_paper = every["pairs_reported"].notna()
    sections = {
        "Recorded, in the paper": texts[in_paper],
        "Recorded, not in the paper's table": texts[~in_paper & every["pairs"].notna()],
    }
    made = counted[counted["origin"] == "made here"].merge(ours, on="perturbation")
    cells = made.assign(
        group="Pairs", name=made["short"], text=_numbers(made["pairs"], 0), set=made["dataset"].map(known.title)
    )
    for level, title in LEVELS.items():
        rows = cells[cells["level"] == level]
        columns = [("Pairs", name) for name in ours["short"] if name in set(rows["name"])]
        if columns:
            sections[f"Made here, pairs: {title.lower()}"] = _sheet(rows, {"set": "Data set"}, columns)
    here = ours[ours["perturbation"].isin(made["perturbation"])]
    return _table(known, tidy, sections, here["title"] + ", as made here: " + here["about"])


def robustness(inputs: Inputs, study: Study) -> Table:
    """Show how often scores fall when texts are made worse: Table 8 beside the paper's, or the pairs of any data sets."""
    found = _read(inputs["ratios"], "ratios")
    known = _Known(inputs, study, found["metric"].unique())
    found = known.shown(found)
    delta = found["perturbation"].map({name: of.threshold for name, of in PERTURBATIONS.items()})
    found = found.assign(any_drop=found["threshold"] == 0, above_delta=(found["threshold"] - delta).abs() < 1e-9)
    if (twice := found.duplicated(["dataset", "label", "perturbation", "dimension", "threshold"])).any():
        raise SchemaError(f"two evaluators are called {found.loc[twice, 'label'].iloc[0]!r}", expected="other labels")
    printed = _reported(inputs, study) if "reported" in inputs else None
    sections, notes = {}, []
    for dataset, rows in found.groupby("dataset", sort=False):
        title, aims = known.title(str(dataset)), _aims(rows)
        reported = pd.DataFrame()
        if printed is not None:
            reported = printed[printed["level"].isin(rows["level"])]
            reported = reported.assign(text=reported["value"].map(number))
            # The mean is of the paper's suites; those that it lacks come after it.
            of_paper = _aims(reported)
            aims = [*of_paper, (AVERAGE, AVERAGE), *(aim for aim in aims if aim not in of_paper)]
        for drop, text in DROPS.items():
            sections[f"{title}: {text}"] = _ratios_sheet(rows[rows[drop]], aims)
        if len(reported):
            sections[f"{title}, reported: {DROPS['above_delta']}"] = _aim_sheet(reported, aims)
        notes += known.lacking_notes(rows, f"{title}: ")
    aimed = {name: of for name, of in PERTURBATIONS.items() if name in set(found["perturbation"])}
    named = ", ".join(f"{of.short} {of.title} (δ {of.threshold:.1f})" for of in aimed.values())
    bounds = [
        f"{low:g} to {high:g}: {', '.join(_once(rows['label']))}"
        for (low, high), rows in found.groupby(["lowest", "highest"])
    ]
    partial = found[found["coverage"] < 1]
    # Rounded down: "or more" has to be true.
    least = partial.groupby("label")["coverage"].transform("min").map(lambda one: math.floor(one * 100 + 1e-9))
    shares = known.partial_text(partial, least.astype(str) + "% or more", "the pairs of each perturbation")
    notes += [
        f"Perturbations: {named}",
        *([f"Lowest and highest possible score. {'; '.join(bounds)}"] if bounds else []),
        *known.sample_notes(found),
        *(f"Scores of {text}" for text in shares),
        *known.not_run_notes(),
    ]
    return _table(known, _ratios_tidy(found, printed), sections, notes)


def _aims(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the perturbations of a frame with the dimensions that they aim at, in the order of the registry."""
    there = {*zip(frame["perturbation"], frame["dimension"], strict=True)}
    return [(name, one) for name, of in PERTURBATIONS.items() for one in of.dimensions if (name, one) in there]


def _aim_sheet(texts: pd.DataFrame, aims: Iterable[tuple[str, str]]) -> pd.DataFrame:
    def head(name: str, dimension: str) -> str:
        return SHORT[AVERAGE] if name == AVERAGE else f"{PERTURBATIONS[name].short} ({SHORT[dimension]})"

    names = [head(*aim) for aim in zip(texts["perturbation"], texts["dimension"], strict=True)]
    columns = [("Perturbation", head(*aim)) for aim in aims]
    return _sheet(texts.assign(group="Perturbation", name=names), {"label": "Evaluator"}, columns)


def _ratios_sheet(rows: pd.DataFrame, aims: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return a section of ratios; its first row has the number of pairs, the most that an evaluator has scores of."""
    key = ["perturbation", "dimension"]
    sizes = _numbers(rows.groupby(key)["n"].max(), 0).rename("text").reset_index().assign(label="Pairs")
    parts = [sizes, rows.assign(text=_with_intervals(rows, "ratio"))]
    if (AVERAGE, AVERAGE) in aims:
        wanted = pd.MultiIndex.from_tuples(aims[: aims.index((AVERAGE, AVERAGE))], names=key)
        # Missing if a suite of the paper has no ratio.
        means = (
            rows.pivot(index="label", columns=key, values="ratio").reindex(columns=wanted).mean(axis=1, skipna=False)
        )
        parts.append(means.map(number).rename("text").reset_index().assign(perturbation=AVERAGE, dimension=AVERAGE))
    return _aim_sheet(pd.concat(parts, ignore_index=True), aims)


def _ratios_tidy(found: pd.DataFrame, printed: pd.DataFrame | None) -> pd.DataFrame:
    """Return one row an evaluator and data set, its columns ``<perturbation>_<dimension>_above_delta`` and so on."""
    key = ["dataset", "label", "perturbation", "dimension"]
    ours = found[key].drop_duplicates()
    for drop, more in (("above_delta", []), ("any_drop", ["ties", "n"])):
        names = {"ratio": drop, "low": f"{drop}_low", "high": f"{drop}_high"}
        ours = ours.merge(found.loc[found[drop], [*key, *names, *more]].rename(columns=names), on=key, how="left")
    ours = ours.round(3).assign(origin="ours")
    if printed is not None:
        theirs = printed[printed["perturbation"] != AVERAGE].rename(columns={"value": "above_delta"})
        ours = pd.concat([ours, theirs.assign(dataset="")], ignore_index=True)
    values = [f"{drop}{end}" for drop in DROPS for end in ("", "_low", "_high")]
    ours = ours.rename(columns={"label": "evaluator"})
    return _wide(ours, ["origin", "dataset", "evaluator"], ["perturbation", "dimension"], [*values, "ties", "n"])


def questions(inputs: Inputs, study: Study) -> Table:
    """Show Table 9: what implicit scoring asks for each dimension, in our words."""
    asked = [
        ("dialogue" if "dialogue" in variant["fields"] else "turn", dimension, name, variant["question"])
        for name, variant in study["variants"].items()
        if variant.get("question")
        for dimension in variant["dimensions"]
    ]
    asked = [(level, dimension, name, find_question(text, level)) for level, dimension, name, text in asked]
    frame = pd.DataFrame(asked, columns=["level", "dimension", "variant", "question"])
    heads = {"dimension": "Dimension", "variant": "Variant", "question": "Question as asked here"}
    rows = {level: pd.DataFrame({"dimension": of, "level": level}) for level, of in DIMENSIONS.items()}
    every = {level: of.merge(frame, how="left", on=["level", "dimension"]) for level, of in rows.items()}
    sections = {title: every[level][[*heads]].rename(columns=heads) for level, title in LEVELS.items()}
    known = _Known(inputs, study)
    return _table(known, frame, sections, known.not_asked_notes())


# Figures 3 and 4.


def between_dimensions(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw how the dimensions of one rater go together, a panel each for people, GPT-4 and judges."""
    entry, frame = study["entry"], _read(inputs["between"], "between_dimensions")
    frame = frame.sort_values(["dimension_a", "dimension_b"], key=lambda names: names.map([*SHORT].index))
    known, panels = _Known(inputs, study), _by_source(frame["who"])
    names = {who: known.label(who) for who in panels} | {"human": "People", "gpt-4": "GPT-4 (recorded)"}
    programs = {*frame.loc[frame["signature"].astype(str).str.contains(RULES, regex=False), "who"]}
    over = [text for who, text in (("human", "people"), ("gpt-4", "GPT-4's recorded rounds")) if who in panels]
    notes = [
        "Pearson correlation between the mean ratings, or the scores, of two dimensions over the n rated items.",
        *([f"Ratings are means over {' or '.join(over)}."] if over else []),
        *entry.get("notes", ()),
        *(
            f"{names[who]}: fixed rules that count words, no language model; its overall score is the mean of its other "
            "four, so that its row Ovr is high by construction."
            for who in panels
            if who in programs
        ),
    ]
    with drawing():
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        colours = ScalarMappable(
            Normalize(min(0.0, float(np.floor(frame["value"].min() * 10) / 10)), 1.0), sequential()
        )
        figure, axes = figure_and_axes(1, len(panels), (2.15 * len(panels) + 0.6, 2.35))
        for ax, who in zip(axes[0], panels, strict=True):
            of_panel = frame[frame["who"] == who]
            _draw(ax, of_panel, colours)
            ax.set_title(f"{names[who]}\nn = {int(of_panel['n'].max())}", loc="left", parse_math=False)
        bar: Any = figure.colorbar(colours, ax=list(axes[0]), fraction=0.03, pad=0.01, aspect=20)
        bar.set_label("Pearson")
        bar.outline.set_visible(False)
        titled(figure, entry["title"], known.title(study["datasets"][0]), " ".join(notes))
    return figure, frame.drop(columns="signature")


def _draw(ax: Any, frame: pd.DataFrame, colours: Any) -> None:  # noqa: ANN401
    """Draw the lower triangle: the upper is the same, and the diagonal is 1."""
    from matplotlib.patches import Rectangle

    rows, columns = _once(frame["dimension_a"]), _once(frame["dimension_b"])
    for one in frame.to_dict("records"):
        x, y, value = columns.index(one["dimension_b"]), rows.index(one["dimension_a"]), one["value"]
        face = (1.0, 1.0, 1.0, 1.0) if np.isnan(value) else colours.to_rgba(value)
        ax.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, facecolor=face, edgecolor="none"))
        ink = "#777777" if np.isnan(value) else ink_on(face)
        ax.text(x, y, short(value), ha="center", va="center", color=ink, fontsize=7.5)
    ax.set_xticks(range(len(columns)), [SHORT[name] for name in columns])
    ax.set_yticks(range(len(rows)), [SHORT[name] for name in rows])
    ax.set_xlim(-0.55, len(columns) - 0.45)
    ax.set_ylim(len(rows) - 0.45, -0.55)
    ax.set_aspect("equal")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
