"""LLMs as dialogue evaluators (Zhang et al. 2024): twelve data sets, ensembles, perturbations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError, SchemaError
from comperdial.core.files import read_table
from comperdial.core.names import output_name, unperturbed
from comperdial.evaluation.ensembles import MEAN, OVER_DIMENSIONS, OVER_MODELS, OVERALL, Ensembles, is_ensemble
from comperdial.evaluation.ratios import read_pairs
from comperdial.evaluation.samples import Tables
from comperdial.judges.prompting import find_question
from comperdial.perturbations import PERTURBATIONS
from comperdial.report import render
from comperdial.report.about import About, Inputs, Study
from comperdial.report.correlations import MARK, halved
from comperdial.report.plots.style import colour_bar, colours_of, drawing, figure_and_axes, short, tiles, titled
from comperdial.report.render import Section, Table, arranged, number
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

    def title(self, dataset: Any) -> str:  # noqa: ANN401
        """Return a data set's title; pairs that were made of a set have the set's. Who rated is in the heading."""
        titles = self.about.titles
        return titles.get(dataset, titles.get(unperturbed(dataset), dataset)).partition(" (rated by ")[0]

    def shown(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Keep one output for each metric and dimension, called as the dimension or the main one, and add ``label``."""
        frame = frame.sort_values(["metric", "output"], kind="stable")
        of = frame.groupby("metric")["output"].agg(set)
        mains = {name: min(names) for name, names in of.items() if len(names) == 1 and not names & {*SHORT}}
        mains |= self.mains | {name: MEAN for name in of.index if is_ensemble(name)}
        own = frame["output"] == frame["dimension"]
        has_own = own.groupby([frame["metric"], frame["dimension"]]).transform("any")
        kept = frame[own | (~has_own & (frame["output"] == frame["metric"].map(mains)))]
        return kept.assign(label=kept["metric"].map(self.label))

    def single(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return :meth:`shown` without ensembles."""
        return self.shown(frame[~frame["metric"].map(is_ensemble).astype(bool)])

    def needs(self, metric: str) -> str:
        """Return what a metric needs of a text, in words."""
        outputs = (about["needs"].get(metric, {}) for about in self.about.sets.values())
        needed = {*chain.from_iterable(of.get(self.mains.get(metric, ""), ()) for of in outputs)}
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
        result: dict[str, list[str]] = {}
        for level, title in LEVELS.items():
            there = set(frame.loc[frame["level"] == level, "metric"])
            lost = [name for name in sorted(self.mains) if name not in there and name not in self.about.not_run]
            if there and lost:
                by_need = pd.Series(lost).groupby(pd.Series(map(self.needs, lost)), sort=False)
                parts = [", ".join(map(self.label, names)) + f" ({need})" * bool(need) for need, names in by_need]
                result.setdefault("; ".join(parts), []).append(title)
        return [
            f"{where}{' and '.join(levels).capitalize()}, no row, as the texts lack what is needed: {text}"
            for text, levels in result.items()
        ]

    def not_asked(self) -> list[str]:
        """Say that no judge was asked the questions of implicit scoring, if so."""
        if any(one.get("implicit") and one["asked"] for one in self.judges.values()):
            return []
        return ["Not asked: implicit scoring: no judge of params.yaml gives probabilities (mode: probabilities)"]

    def not_run(self) -> list[str]:
        """Name the study's metrics and judges that were not run, and why."""
        ours = {*(self.study.get("metrics") or {})}
        ours |= {name for name, one in self.judges.items() if one.get("variant") in (self.study.get("variants") or {})}
        return render.grouped_notes((name, why) for name, why in sorted(self.about.not_run.items()) if name in ours)

    def partial_text(self, frame: pd.DataFrame, share: pd.Series, of: str) -> list[str]:
        """Return a text for each share of the items that some evaluators have scores of."""
        groups = frame.assign(share=share, lost=frame["metric"].map(self.needs)).groupby(["share", "lost"])
        return [
            f"{share} of {of}: {', '.join(sorted({*rows['label']}))}" + f" (the others have no {lost})" * bool(lost)
            for (share, lost), rows in groups
        ]

    def table(self, frame: pd.DataFrame, sections: Mapping[str, pd.DataFrame], notes: Iterable[str] = ()) -> Table:
        """Return a table with the texts of its entry, and the sections that have rows."""
        kept = [Section(title, cells) for title, cells in sections.items() if len(cells)]
        made = render.described(self.study, frame, kept, *notes)
        return replace(made, caption=made.caption + f" {render.SIMULATED}" * self.about.simulated)


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
    frame = read_table(inputs["reported"][0]).rename(columns={"metric": "label", "output": "score"})
    source = study["entry"].get("reported_by", "human or gpt-4")
    frame = frame.assign(value=pd.to_numeric(frame["value"]), origin="reported", source=source)
    return frame[frame["place"] == study["entry"]["place"]]


def _by_source(names: Iterable[str]) -> list[str]:
    """Return sources of ratings, each once: people, GPT-4, and the others by name."""
    order = list(RATERS)
    return sorted({*names}, key=lambda name: (order.index(name) if name in order else len(order), name))


# Tables 2, 3, 5 and 6: means over the data sets of a level.


def _averaged(frame: pd.DataFrame, rated: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Average Pearson correlations over the sets of a level, apart for each source of ratings and each of ``by``.

    Returns one row a label, level, source and dimension: ``value``, ``sets`` (in the mean) and ``of`` (sets of ``rated``
    with such ratings).
    """
    result = frame[frame["coefficient"].eq("pearson") & frame["value"].notna()]
    place = ["level", "source", "dimension"]
    if (twice := result.duplicated([*by, "label", *place, "dataset"])).any():
        row = result[twice].iloc[0]
        raise SchemaError(f"two evaluators are called {row['label']!r}", where=row["dataset"], expected="other labels")
    of = rated.groupby(place)["dataset"].nunique().rename("of").reset_index()
    groups = result.groupby([*by, "label", *place], sort=False)
    means = groups.agg(value=("value", "mean"), sets=("dataset", "nunique")).reset_index()
    return means.merge(of, on=place).assign(origin="ours")


def _with_average(means: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Add the means over a level's dimensions, where all five have a value."""
    whole = means.groupby([*by, "level", "source", "origin"], sort=False)["value"].agg(["mean", "count"]).reset_index()
    whole = whole[whole["count"] == 5].rename(columns={"mean": "value"}).assign(dimension=AVERAGE)
    return pd.concat([means, whole.drop(columns="count")], ignore_index=True)


def _sheets(
    means: pd.DataFrame, labels: Mapping[str, str], columns: Sequence[tuple[str, str]]
) -> dict[str, pd.DataFrame]:
    """Return the sections of a table of means: ours, apart for each source of ratings, and the reported ones.

    A text is the mean, and in brackets of how many sets it is if some have no score; or what the column ``text`` has.
    """
    known = means.get("text", pd.Series(None, means.index)).notna()
    fewer = [f" ({sets:.0f})" if sets < of else "" for sets, of in zip(means["sets"], means["of"], strict=True)]
    made = means.assign(group=means["level"].map(LEVELS), rater=means["source"].replace(RATERS))
    made["name"] = means.get("score", pd.Series(None, means.index)).map({"dimensions": "Ensemble", "direct": "Direct"})
    made["name"] = made["name"].where(made["name"].isin([name for _, name in columns]), means["dimension"].map(SHORT))
    written = [number(value) + few for value, few in zip(means["value"], fewer, strict=True)]
    made["text"] = means["text"].where(known, written) if known.any() else written
    ours, sections = made[made["origin"] == "ours"], {}
    for name in _by_source(ours["source"]):
        sections[f"Ours, against ratings by {RATERS.get(name, name)}"] = ours[ours["source"] == name]
    sections["Reported"] = made[made["origin"] == "reported"]
    heads = {**labels, "rater": "Rated by"}
    return {title: arranged(of, heads, ["group", "name"], order=columns) for title, of in sections.items()}


def _columns(*levels: str) -> list[tuple[str, str]]:
    return [(LEVELS[level], SHORT[name]) for level in levels for name in (*DIMENSIONS[level], AVERAGE)]


def _tidy(means: pd.DataFrame) -> pd.DataFrame:
    columns = ["origin", "ensemble", "label", "score", "source", "level", "dimension", "value", "sets", "of"]
    made = means[[name for name in columns if name in means]].astype({"sets": "Int32", "of": "Int32"})
    return made.round({"value": 4}).rename(columns={"label": "evaluator", "source": "rated_by"})


def means(inputs: Inputs, study: Study) -> Table:
    """Show Tables 2 and 3: each evaluator's mean over the sets of a level, beside the paper's."""
    frame, known = _correlations(inputs, study)
    kept = known.single(frame)
    kept = kept[kept["source"].isin(study["entry"].get("sources", kept["source"]))]
    ours, printed = _averaged(kept, kept), _reported(inputs, study).drop(columns="score")
    counts = ours.drop_duplicates(["level", "source", "dimension"])
    counts = counts.assign(label="Sets in the mean", text=counts["of"].astype(str))
    shown = pd.concat([counts, _with_average(ours, "label"), printed], ignore_index=True)
    sections = _sheets(shown, {"label": "Evaluator"}, _columns(*LEVELS))
    notes = [
        *known.sample_notes(kept),
        *known.lacking_notes(kept[kept["value"].notna()]),
        *known.not_asked(),
        *known.not_run(),
    ]
    return known.table(_tidy(pd.concat([ours, printed], ignore_index=True)), sections, notes)


def dimension_means(inputs: Inputs, study: Study) -> Table:
    """Show Table 5: the mean of an evaluator's four dimensions and its overall score, as scores of overall quality."""
    frame, known = _correlations(inputs, study)
    overall = known.shown(frame[frame["dimension"] == OVERALL])
    is_mean = overall["metric"].str.startswith(OVER_DIMENSIONS)
    judge = overall["metric"].str.removeprefix(f"{OVER_DIMENSIONS}:").map(known.ensembles.judge_of)
    overall = overall.assign(label=judge.map(known.label), score=np.where(is_mean, "dimensions", "direct"))
    overall = overall[judge.isin(judge[is_mean])].sort_values("label", kind="stable")
    parts = [_averaged(rows, rows, "score") for _, rows in overall.groupby("score", sort=False)]
    both = pd.concat([*parts, _reported(inputs, study)], ignore_index=True)
    columns = [(level, name) for level in LEVELS.values() for name in ("Ensemble", "Direct")]
    sections = _sheets(both, {"label": "Evaluator"}, columns)
    return known.table(_tidy(both), sections, known.sample_notes(overall[overall["score"] == "direct"]))


def model_means(inputs: Inputs, study: Study) -> Table:
    """Show Table 6: the mean of several evaluators beside each of them, over the sets on which the ensemble has a value."""
    frame, known = _correlations(inputs, study)
    rows = [
        (ensemble.removeprefix(f"{OVER_MODELS}:"), level, dimension, *one)
        for level in LEVELS
        for (ensemble, output), outputs in known.ensembles.members(level).items()
        if ensemble.startswith(OVER_MODELS)
        for dimension in (DIMENSIONS[level] if output == MEAN else [output])
        for one in outputs
    ]
    members = pd.DataFrame(rows, columns=["ensemble", "level", "dimension", "metric", "output"])
    shown, valued = known.shown(frame), frame[frame["value"].notna()]
    whole = shown[shown["metric"].str.startswith(OVER_MODELS) & shown["value"].notna()]
    ensembles = whole["metric"].str.removeprefix(f"{OVER_MODELS}:")
    whole = whole.assign(ensemble=ensembles, label="their mean", score="models")
    if whole.empty:
        raise NothingToShowError("no ensemble has a value on any data set")
    single = valued.merge(members, on=["level", "dimension", "metric", "output"])
    places = ["ensemble", "dataset", "source", "level", "dimension", "coefficient"]
    single = single.assign(label=single["metric"].map(known.label), score="direct").merge(whole[places], on=places)
    both = pd.concat([single, whole], ignore_index=True)
    key = ["ensemble", "score"]
    ours = pd.concat([_averaged(rows, shown, *key) for _, rows in both.groupby(key)], ignore_index=True)
    printed = _reported(inputs, study)
    texts = pd.concat([_with_average(ours, "ensemble", "label"), printed.assign(ensemble="reported")])
    texts = texts.sort_values("ensemble", kind="stable", ignore_index=True)
    labels = {"ensemble": "Ensemble", "label": "Evaluator"}
    sections = {
        f"{level_title}, {title[0].lower()}{title[1:]}": of
        for level, level_title in LEVELS.items()
        for title, of in _sheets(texts[texts["level"] == level], labels, _columns(level)).items()
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
    tidy = _tidy(pd.concat([ours, printed], ignore_index=True))
    return known.table(tidy, sections, [*notes, *known.sample_notes(both)])


# Table 4, and every correlation.


def rankings(inputs: Inputs, study: Study) -> Table:
    """Show Table 4: Spearman between the rankings of evaluators by people's and by GPT-4's ratings.

    GPT-4's recorded ratings are not ranked: half of what they would be ranked by are themselves.
    """
    frame, known = _correlations(inputs, study)
    printed, key = _reported(inputs, study), ["dataset", "dimension"]
    kept = known.single(frame[~frame["metric"].isin(known.recorded) & frame["dataset"].isin(printed["dataset"])])
    pearson = kept[kept["coefficient"] == "pearson"]
    both = pearson.pivot(index=[*key, "metric"], columns="source", values="value")
    both = both.reindex(columns=["human", "gpt-4"]).dropna().reset_index()
    rows = [
        (*place, rows["human"].corr(rows["gpt-4"], method="spearman"), len(rows)) for place, rows in both.groupby(key)
    ]
    ours = pd.DataFrame(rows, columns=[*key, "ours", "evaluators"])
    tidy = printed.rename(columns={"value": "reported"}).merge(ours, how="left", on=key)
    tidy = tidy[[*key, "ours", "evaluators", "reported"]].fillna({"evaluators": 0}).round({"ours": 4})
    long = tidy.melt(key, ["ours", "reported"], "by").dropna(subset="value")
    long = long.assign(group="Spearman", name=long["dimension"].map(SHORT), text=long["value"].map(number))
    sections = {
        known.title(dataset): arranged(long[long["dataset"] == dataset], {"by": "From"}, ["group", "name"])
        for dataset in printed["dataset"].unique()
    }
    ranked = kept[kept["dataset"].isin(ours["dataset"])]
    counts = [f"{known.title(dataset)} {SHORT[str(dimension)]} {n}" for dataset, dimension, _, n in rows]
    notes = [f"Ranked here: {', '.join(_once(ranked['label'])) or 'none'}"]
    notes += [f"Evaluators ranked, ours: {', '.join(counts)}"] if counts else []
    return known.table(tidy, sections, [*notes, *known.sample_notes(ranked)])


def every_correlation(inputs: Inputs, study: Study) -> Table:
    """Show Pearson of each evaluator, set and dimension with its interval; the CSV has all three coefficients."""
    frame, known = _correlations(inputs, study)
    result = known.shown(frame).dropna(subset="value")
    result = result.assign(loso_halved=halved(result), place=result["dimension"].map([*SHORT].index))
    pearson = result[result["coefficient"] == "pearson"].sort_values("value", ascending=False)
    marks = np.where(pearson["loso_halved"].fillna(False), MARK, "")
    cells = zip(pearson["value"], marks, pearson["low"], pearson["high"], strict=True)
    texts = [number(value) + mark + render.interval(low, high) for value, mark, low, high in cells]
    pearson = pearson.assign(group="Pearson", name=pearson["dimension"].map(SHORT), text=texts)
    sections = {}
    for dataset in study["datasets"]:
        of_set = pearson[pearson["dataset"] == dataset]
        for source in _by_source(of_set["source"]):
            # The highest in the last column first.
            rows = of_set[of_set["source"] == source].sort_values("place", ascending=False, kind="stable")
            columns = [("Pearson", name) for name in reversed(_once(rows["name"]))]
            title = f"{known.title(dataset)}, rated by {RATERS.get(source, source)}"
            sections[title] = arranged(rows, {"label": "Evaluator"}, ["group", "name"], order=columns)
    sets: dict[str, list[str]] = {}
    for dataset, rows in result[result["coverage"] < 1].groupby("dataset"):
        text = "; of ".join(known.partial_text(rows, rows["coverage"].map("{:.1%}".format), "the rated items"))
        sets.setdefault(text, []).append(known.title(dataset))
    notes = [f"{', '.join(names)}, scores of {text}" for text, names in sets.items()]
    key = ["dataset", "source", "metric", "dimension", "coefficient"]
    tidy = (
        result[[*key, "value", "low", "high", "loso_value", "loso_system", "loso_halved", "n"]]
        .round({"low": 2, "high": 2})
        .round(3)
    )
    return known.table(tidy, sections, [*notes, *known.sample_notes(result), *known.not_asked(), *known.not_run()])


# Table 1, and how raters agree.


def _single(folder: Path) -> tuple[str, str, dict[str, pd.DataFrame]]:
    """Return a data set's name, the level that was rated, and each source's single ratings: a column an annotator."""
    tables = Tables.read(folder)
    ((dataset, level),) = tables.ratings[["dataset", "level"]].drop_duplicates().itertuples(index=False)
    single = {source: replace(tables, source=source).single(level) for source in tables.sources}
    return dataset, level, {source: one for source, one in single.items() if len(one)}


def _agreement(folders: Iterable[Path]) -> pd.DataFrame:
    """Return how annotators agree, over pairs of them: one row a data set, source and dimension."""
    rows = []
    for dataset, _, single in map(_single, folders):
        for source, of_source in single.items():
            if of_source.shape[1] < 2:
                continue
            for dimension, every in of_source.groupby(level="dimension"):
                table = every.dropna(axis="columns", how="all")
                there, upper = table.notna().astype(int), np.triu_indices(table.shape[1], 1)
                n = (there.T @ there).to_numpy()[upper]
                pairs = pd.Series(table.corr().to_numpy()[upper])[n > 0]
                of_pairs = (pairs.mean(), pairs.min(), pairs.max(), pairs.count(), n[n > 0].min())
                alpha = krippendorff_alpha(table.to_numpy(), "interval")
                rows.append((dataset, source, dimension, *of_pairs, alpha))
    columns = ["dataset", "source", "dimension", "mean", "lowest", "highest", "pairs", "n", "alpha"]
    return pd.DataFrame(rows, columns=columns)


def rounds(inputs: Inputs, study: Study) -> Table:
    """Show how the rounds of GPT-4, and people, agree with each other."""
    known = _Known(inputs, study)
    result = _agreement(path.parent for path in inputs["contexts"])
    ends = result.rename(columns={"lowest": "low", "highest": "high"}).to_dict("records")
    place = result["dataset"].map([*study["datasets"]].index)
    texts = result.assign(title=result["dataset"].map(known.title), by=result["source"].map(RATERS), place=place)
    texts = texts.assign(Pearson=[render.estimate(row, "mean") for row in ends], Alpha=result["alpha"].map(number))
    texts = texts.assign(name=result["dimension"].map(SHORT)).sort_values(["place", "source"], ascending=[True, False])
    names = _once(SHORT[name] for of in DIMENSIONS.values() for name in of if name in {*texts["dimension"]})
    titles = {"Pearson": "Mean Pearson of pairs, lowest and highest", "Alpha": "Krippendorff's alpha"}
    labels = {"title": "Data set", "by": "Rated by"}
    sections = {
        title: arranged(
            texts.assign(group=group, text=texts[group]),
            labels,
            ["group", "name"],
            order=[(group, name) for name in names],
        )
        for group, title in titles.items()
    }
    return known.table(result.round(4), sections)


def data_sets(inputs: Inputs, study: Study) -> Table:
    """Show Table 1: the data sets, their sizes, who rated which dimension, and how the raters agree."""
    known, folders = _Known(inputs, study), [path.parent for path in inputs["contexts"]]
    printed, sources = read_table(inputs["reported"][0]), ["human", "gpt-4"]
    numbers = ["items", "utterances", "words_before", "words"]
    printed[numbers] = printed[numbers].apply(pd.to_numeric, errors="coerce")
    result = pd.DataFrame(map(_count, folders))
    result = result.merge(
        printed[["dataset", *numbers, *sources]], on="dataset", how="left", suffixes=("", "_reported")
    )
    means = _agreement(folders).groupby(["source", "dataset"])["mean"].agg(lowest="min", highest="max")
    for source in sources:
        for end in ("lowest", "highest"):
            of = means[end].get(source, pd.Series(dtype=float))
            result[f"agreement_{source}_{end}"] = result["dataset"].map(of)
    heads = ["Items", "Utterances", "Words before", "Words of the response"]
    sections, both = {}, {"ours": "", "reported": "_reported"}
    for level, title in LEVELS.items():
        rows = result[result["level"] == level]
        made: dict[tuple[str, str], Any] = {("", "Data set"): rows["dataset"].map(known.title)}
        for name, text in zip(numbers, heads, strict=True):
            if (level, name) != ("dialogue", "words_before"):
                head = "Words" if (level, name) == ("dialogue", "words") else text
                digits = 0 if name == "items" else 1
                made |= {(head, by): _numbers(rows[name + end], digits) for by, end in both.items()}
        for source in sources:
            head = f"Rated by {RATERS[source]}"
            made |= {(head, by): _short(rows[source + end], DIMENSIONS[level]) for by, end in both.items()}
        for source in sources:
            ends = rows[[f"agreement_{source}_lowest", f"agreement_{source}_highest"]].itertuples(index=False)
            texts = ["–" if pd.isna(low) else f"{low:.2f} to {high:.2f}" for low, high in ends]
            made["Agreement, ours", RATERS[source]] = pd.Series(texts, rows.index)
        sections[title] = pd.DataFrame(made)
    return known.table(result, sections)


def _numbers(values: pd.Series, digits: int) -> pd.Series:
    return values.map(f"{{:,.{digits}f}}".format, na_action="ignore")


def _short(names: pd.Series, order: Sequence[str]) -> pd.Series:
    """Write dimensions that a text names."""
    return names.map(lambda text: ", ".join(SHORT[one] for one in order if one in str(text).split()) or "–")


def _count(folder: Path) -> dict[str, object]:
    """Count a data set: its rated items, their mean length, and the dimensions that each source rated."""
    dataset, level, single = _single(folder)
    contexts, responses = (schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses"))
    texts = responses.merge(contexts[["context_id", "dialogue_id", "history"]], on="context_id")
    texts = texts.assign(
        utterances=texts["history"].map(len) + 1,
        words_before=[sum(len(one["text"].split()) for one in history) for history in texts["history"]],
        words=texts["response"].str.split().map(len),
        item_id=texts["context_id" if level == "turn" else "dialogue_id"],
    )
    if level == "dialogue":
        # The last response of a dialogue has all of it before it.
        texts = texts.sort_values("utterances", kind="stable").drop_duplicates(["item_id", "system_id"], keep="last")
        texts = texts.assign(words=texts["words_before"] + texts["words"], words_before=float("nan"))
    units = {(str(item), str(system)) for one in single.values() for item, system, _ in one.index}
    counted = pd.DataFrame(sorted(units), columns=["item_id", "system_id"])
    counted = counted.merge(texts, on=["item_id", "system_id"], how="left")
    by = {source: {*one.index.get_level_values("dimension")} for source, one in single.items()}
    return {
        "dataset": dataset,
        "level": level,
        "items": len(counted),
        **{name: float(counted[name].mean()) for name in ("utterances", "words_before", "words")},
        **{
            source: " ".join(one for one in DIMENSIONS[level] if one in by.get(source, ()))
            for source in ("human", "gpt-4")
        },
    }


# Tables 7, 8 and 9: perturbations and questions.


def perturbations(inputs: Inputs, study: Study) -> Table:
    """Show Table 7: the perturbations, how many pairs there are of each, what they aim at, and the drop that counts."""
    known, ours = _Known(inputs, study), pd.DataFrame(PERTURBATIONS.values()).rename(columns={"name": "perturbation"})
    pairs = pd.concat([read_pairs(path.parent)[1] for path in inputs["contexts"]])
    groups = pairs.groupby(["dataset", "perturbation"])["original"]
    counted = groups.agg(pairs="size", originals="nunique").reset_index()
    counted["origin"] = np.where(counted["dataset"] == counted["dataset"].map(unperturbed), "recorded", "made here")
    printed = read_table(inputs["reported"][0])[["perturbation", "texts", "pairs", "threshold"]]
    printed = printed.rename(columns={"pairs": "pairs_reported", "threshold": "threshold_reported"})
    values = ["pairs_reported", "threshold_reported"]
    printed[values] = printed[values].apply(pd.to_numeric)
    of_paper = printed[["perturbation", *values]].assign(origin="recorded")
    tidy = counted.merge(of_paper, on=["perturbation", "origin"], how="left")
    tidy = tidy.merge(ours[["perturbation", "threshold"]], on="perturbation", how="left")
    recorded = counted[counted["origin"] == "recorded"].groupby("perturbation")[["pairs", "originals"]].sum()
    every = ours.merge(recorded.reset_index(), how="left").merge(printed, on="perturbation", how="left")
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
    made = made.assign(group="Pairs", text=_numbers(made["pairs"], 0), title=made["dataset"].map(known.title))
    for level, title in LEVELS.items():
        rows = made[made["level"] == level]
        columns = [("Pairs", name) for name in ours["short"] if name in {*rows["short"]}]
        if columns:
            sheet = arranged(rows, {"title": "Data set"}, ["group", "short"], order=columns)
            sections[f"Made here, pairs: {title.lower()}"] = sheet
    here = ours[ours["perturbation"].isin(made["perturbation"])]
    return known.table(tidy, sections, here["title"] + ", as made here: " + here["about"])


def robustness(inputs: Inputs, study: Study) -> Table:
    """Show how often scores fall when texts are made worse: Table 8 beside the paper's, or the pairs of any data sets.

    The CSV has a row for each ratio: a drop of any size, or above the threshold δ of the perturbation.
    """
    result = _read(inputs["ratios"], "ratios")
    known = _Known(inputs, study, result["metric"].unique())
    result = known.shown(result)
    delta = result["perturbation"].map({name: of.threshold for name, of in PERTURBATIONS.items()})
    above = (result["threshold"] - delta).abs() < 1e-9
    result = result.assign(drop=np.where(result["threshold"] == 0, "any_drop", np.where(above, "above_delta", "")))
    key = ["dataset", "label", "perturbation", "dimension"]
    if (twice := result.duplicated([*key, "threshold"])).any():
        raise SchemaError(f"two evaluators are called {result.loc[twice, 'label'].iloc[0]!r}", expected="other labels")
    printed = _reported(inputs, study) if "reported" in inputs else pd.DataFrame(columns=["level"])
    sections, notes = {}, []
    for dataset, rows in result.groupby("dataset", sort=False):
        title, aims, of_paper = known.title(dataset), _aims(rows), []
        reported = printed[printed["level"].isin(rows["level"])]
        if "reported" in inputs:
            # The mean is of the paper's suites; those that it lacks come after it.
            of_paper = _aims(reported)
            aims = [*of_paper, (AVERAGE, AVERAGE), *(aim for aim in aims if aim not in of_paper)]
        for drop, text in DROPS.items():
            sections[f"{title}: {text}"] = _ratios_sheet(rows[rows["drop"] == drop], aims, of_paper)
        if len(reported):
            texts = reported.assign(text=reported["value"].map(number))
            sections[f"{title}, reported: {DROPS['above_delta']}"] = _aim_sheet(texts, aims)
        notes += known.lacking_notes(rows, f"{title}: ")
    aimed = {name: of for name, of in PERTURBATIONS.items() if name in set(result["perturbation"])}
    named = ", ".join(f"{of.short} {of.title} (δ {of.threshold:.1f})" for of in aimed.values())
    notes.append(f"Perturbations: {named}")
    bounds = [
        f"{low:g} to {high:g}: {', '.join(_once(rows['label']))}"
        for (low, high), rows in result.groupby(["lowest", "highest"])
    ]
    notes += [f"Lowest and highest possible score. {'; '.join(bounds)}"] if bounds else []
    partial = result[result["coverage"] < 1]
    # Rounded down: "or more" has to be true.
    least = partial.groupby("label")["coverage"].transform("min").map(lambda one: math.floor(one * 100 + 1e-9))
    shares = known.partial_text(partial, least.astype(str) + "% or more", "the pairs of each perturbation")
    notes += [*known.sample_notes(result), *(f"Scores of {text}" for text in shares), *known.not_run()]
    ours = result[result["drop"] != ""].assign(origin="ours")
    theirs = printed.rename(columns={"value": "ratio"}).assign(drop="above_delta")
    tidy = pd.concat([ours, theirs], ignore_index=True) if len(theirs) else ours
    tidy = tidy[["origin", *key, "drop", "ratio", "low", "high", "ties", "n"]].round(3)
    return known.table(tidy.rename(columns={"label": "evaluator"}), sections, notes)


def _aims(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the perturbations of a frame with the dimensions that they aim at, in the order of the registry."""
    there = {*zip(frame["perturbation"], frame["dimension"], strict=True)}
    return [(name, one) for name, of in PERTURBATIONS.items() for one in of.dimensions if (name, one) in there]


def _aim_sheet(texts: pd.DataFrame, aims: Iterable[tuple[str, str]]) -> pd.DataFrame:
    def head(aim: tuple[str, str]) -> str:
        return SHORT[AVERAGE] if aim[0] == AVERAGE else f"{PERTURBATIONS[aim[0]].short} ({SHORT[aim[1]]})"

    names = [head(aim) for aim in zip(texts["perturbation"], texts["dimension"], strict=True)]
    made, order = texts.assign(group="Perturbation", name=names), [("Perturbation", head(aim)) for aim in aims]
    return arranged(made, {"label": "Evaluator"}, ["group", "name"], order=order)


def _ratios_sheet(
    rows: pd.DataFrame, aims: Sequence[tuple[str, str]], averaged: Sequence[tuple[str, str]]
) -> pd.DataFrame:
    """Return a section of ratios; its first row has the number of pairs, the most that an evaluator has scores of."""
    key = ["perturbation", "dimension"]
    sizes = _numbers(rows.groupby(key)["n"].max(), 0).rename("text").reset_index().assign(label="Pairs")
    parts = [sizes, rows.assign(text=[render.estimate(row, "ratio") for row in rows.to_dict("records")])]
    if averaged:
        wanted = pd.MultiIndex.from_tuples(averaged, names=key)
        ratios = rows.pivot(index="label", columns=key, values="ratio").reindex(columns=wanted)
        # Missing if a suite of the paper has no ratio.
        means = ratios.mean(axis=1, skipna=False).map(number).rename("text").reset_index()
        parts.append(means.assign(perturbation=AVERAGE, dimension=AVERAGE))
    return _aim_sheet(pd.concat(parts, ignore_index=True), aims)


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
    heads, sections = {"dimension": "Dimension", "variant": "Variant", "question": "Question as asked here"}, {}
    for level, title in LEVELS.items():
        rows = pd.DataFrame({"dimension": DIMENSIONS[level], "level": level}).merge(frame, how="left")
        sections[title] = rows[[*heads]].rename(columns=heads)
    evaluators = _Known(inputs, study)
    return evaluators.table(frame, sections, evaluators.not_asked())


# Figures 3 and 4.


def between_dimensions(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw how the dimensions of one rater go together, a panel each for people, GPT-4 and judges."""
    entry, frame = study["entry"], _read(inputs["between"], "between_dimensions")
    frame = frame.sort_values(["dimension_a", "dimension_b"], key=lambda names: names.map([*SHORT].index))
    known, who = _Known(inputs, study), _by_source(frame["who"])
    names = {name: known.label(name) for name in who} | {"human": "People", "gpt-4": "GPT-4 (recorded)"}
    programs = {*frame.loc[frame["signature"].astype(str).str.contains("service:rules", regex=False), "who"]}
    over = [text for name, text in (("human", "people"), ("gpt-4", "GPT-4's recorded rounds")) if name in who]
    notes = ["Pearson correlation between the mean ratings, or the scores, of two dimensions over the n rated items."]
    notes += [f"Ratings are means over {' or '.join(over)}."] if over else []
    notes += [
        *entry.get("notes", ()),
        *(
            f"{names[name]}: fixed rules that count words, no language model; its overall score is the mean of its other "
            "four, so that its row Ovr is high by construction."
            for name in who
            if name in programs
        ),
    ]
    with drawing():
        scale = colours_of(frame["value"])
        figure, (axes,) = figure_and_axes(1, len(who), (2.15 * len(who) + 0.6, 2.35))
        for ax, name in zip(axes, who, strict=True):
            own = frame[frame["who"] == name]
            rows, columns = _once(own["dimension_a"]), _once(own["dimension_b"])
            # The lower triangle: the upper is the same, and the diagonal is 1.
            places = zip(own["dimension_b"].map(columns.index), own["dimension_a"].map(rows.index), strict=True)
            tiles(ax, [(*at, value, short(value), "") for at, value in zip(places, own["value"], strict=True)], scale)
            ax.set_xticks(range(len(columns)), [SHORT[one] for one in columns])
            ax.set_yticks(range(len(rows)), [SHORT[one] for one in rows])
            ax.set_aspect("equal")
            ax.set_title(f"{names[name]}\nn = {int(own['n'].max())}", loc="left", parse_math=False)
        colour_bar(figure, scale, "Pearson", ax=list(axes), fraction=0.03, pad=0.01, aspect=20)
        titled(figure, entry["title"], known.title(study["datasets"][0]), " ".join(notes))
    return figure, frame.drop(columns="signature")
