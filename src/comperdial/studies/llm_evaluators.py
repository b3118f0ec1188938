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
from comperdial.core.names import unperturbed
from comperdial.evaluation.ensembles import MEAN, OVER_DIMENSIONS, OVER_MODELS, OVERALL, Ensembles, is_ensemble
from comperdial.evaluation.ratios import read_pairs
from comperdial.judges.prompting import find_question
from comperdial.perturbations import PERTURBATIONS
from comperdial.report import render
from comperdial.report.about import About, Inputs, Study
from comperdial.report.correlations import MARK, halved
from comperdial.report.plots.style import colour_bar, colours_of, drawing, figure_and_axes, short, tiles, titled
from comperdial.report.render import Section, Table, arranged, number
from comperdial.schema.evaluated import DIMENSIONS

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
HEADS = {"ensemble": "Ensemble", "label": "Evaluator", "score": "Score"}
SCORES = {"dimensions": "mean of the dimensions", "models": "mean of the evaluators"}
DROPS = {"above_delta": "a drop above δ", "any_drop": "any drop"}
# Columns of ratios: each perturbation with a dimension that it targets.
AIMS = {(name, one): f"{of.short} ({SHORT[one]})" for name, of in PERTURBATIONS.items() for one in of.dimensions}


class Evaluators:
    """Labels of the study's metrics and judges, and the outputs that its tables show."""

    def __init__(self, inputs: Inputs, study: Study) -> None:
        self.study, self.about = study, About.read(inputs["about"])
        sets = self.about.sets.values()
        self.recorded = study.get("recorded_judges") or {}
        self.judges = {name: one for about in sets for name, one in about["judges"].items()}
        mains = {metric: of[0] for about in sets for metric, of in about["mains"].items() if of}
        self.mains = {metric: output for metric, output in mains.items() if metric in (study.get("metrics") or mains)}

    def label(self, metric: str) -> str:
        """Return the label of a metric. The variants of implicit scoring share one, since they form one row."""
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
        """Return a data set's title; generated pairs have their source's. The rater is in the heading."""
        titles = self.about.titles
        return titles.get(dataset, titles.get(unperturbed(dataset), dataset)).partition(" (rated by ")[0]

    def shown(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Keep one output per metric and dimension, named after the dimension or the main one, and add ``label``."""
        frame = frame.sort_values(["metric", "output"], kind="stable")
        of = frame.groupby("metric")["output"].agg(set)
        mains = {name: min(names) for name, names in of.items() if len(names) == 1 and not names & {*SHORT}}
        mains |= self.mains | {name: MEAN for name in of.index if is_ensemble(name)}
        own = frame["output"] == frame["dimension"]
        has_own = own.groupby([frame["metric"], frame["dimension"]]).transform("any")
        kept = frame[own | (~has_own & (frame["output"] == frame["metric"].map(mains)))]
        kept = kept.assign(label=kept["metric"].map(self.label))
        names = ("label", "dataset", "source", "dimension", "coefficient", "perturbation", "threshold")
        if (twice := kept.duplicated([name for name in names if name in kept])).any():
            label = kept.loc[twice, "label"].iloc[0]
            raise SchemaError(f"two evaluators are called {label!r}", expected="other labels")
        return kept

    def notes(self, frame: pd.DataFrame) -> list[str]:
        """Return which evaluators have partial scores, and which of the study's were not run, and why."""
        least = frame[frame["coverage"] < 1].groupby(["label", "dataset"], as_index=False)["coverage"].min()
        # Rounded down, so that "at least" is true.
        shares = [f"{math.floor(share * 100 + 1e-9)}% of " for share in least["coverage"]]
        texts = pd.Series(map(str.__add__, shares, least["dataset"].map(self.title)), least["label"], dtype=object)
        partial = texts.groupby(level=0).agg(", ".join)
        ours = {*(self.study.get("metrics") or {})}
        ours |= {n for n, one in self.judges.items() if one.get("variant") in (self.study.get("variants") or {})}
        absent = [(name, why) for name, why in sorted(self.about.not_run.items()) if name in ours]
        start = "Share of the items with scores, at least: "
        return [*render.grouped_notes(partial.items(), start), *render.grouped_notes(absent)]

    def table(self, frame: pd.DataFrame, sections: dict[str, pd.DataFrame], notes: Iterable[str] = ()) -> Table:
        """Return a table with the texts of its entry, and the non-empty sections."""
        shown = [Section(title, of) for title, of in sections.items() if len(of)]
        made = render.described(self.study, frame, shown, *notes)
        return replace(made, caption=made.caption + f" {render.SIMULATED}" * self.about.simulated)


def _read(paths: Sequence[Path], table: str) -> pd.DataFrame:
    frame = pd.concat([schema.read(path, table) for path in paths], ignore_index=True)
    if frame.empty:
        raise NothingToShowError("there are no scores that could be compared")
    return frame


def _reported(inputs: Inputs, study: Study) -> pd.DataFrame:
    """Return the paper's values for a table."""
    frame = read_table(inputs["reported"][0]).rename(columns={"metric": "label", "output": "score"})
    source = study["entry"].get("reported_by", "human or gpt-4")
    frame = frame.assign(value=pd.to_numeric(frame["value"]), origin="reported", source=source)
    return frame[frame["place"] == study["entry"]["place"]]


def _by_source(names: Iterable[str]) -> list[str]:
    """Return distinct sources of ratings: people, GPT-4, and the others by name."""
    order = list(RATERS)
    return sorted({*names}, key=lambda name: (order.index(name) if name in order else len(order), name))


def _columns(rows: pd.DataFrame, columns: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """Return the columns that an entry lists: group, name, column and, for numbers, digits."""
    made = {}
    for group, name, column, *digits in columns:
        values = rows[column].replace("", "–")
        made[group, name] = values.map(f"{{:,.{digits[0]}f}}".format, na_action="ignore") if digits else values
    return pd.DataFrame(made)


def _by_dimension(rows: pd.DataFrame, heads: Mapping[str, str], group: str) -> pd.DataFrame:
    """Return a section of texts with a column per dimension, in order."""
    order = [(group, name) for dimension, name in SHORT.items() if dimension in {*rows["dimension"]}]
    rows = rows.assign(group=group, name=rows["dimension"].map(SHORT))
    return arranged(rows, heads, ["group", "name"], order=order)


# Tables 2, 3, 5 and 6: means over the data sets of a level.


def means(inputs: Inputs, study: Study) -> Table:
    """Return Tables 2, 3, 5 and 6: mean Pearson over the sets of a level, by source of ratings, next to the paper's.

    The entry's ``of`` selects what is averaged: ``evaluators``; ``dimensions``, the mean of an evaluator's four dimensions and
    its overall score; or ``models``, the mean of several evaluators and each of them, over the sets where that mean has a
    value.
    """
    entry, frame = study["entry"], _read(inputs["correlations"], "dimension_correlations")
    frame = frame[(frame["coefficient"] == "pearson") & frame["source"].isin(entry.get("sources", frame["source"]))]
    known, printed = Evaluators(inputs, study), _reported(inputs, study)
    rows = {"evaluators": _single, "dimensions": _of_dimensions, "models": _of_models}[entry["of"]](frame, known)
    rows = rows.dropna(subset="value")
    if rows.empty:
        raise NothingToShowError("no evaluator has a value on any data set")
    place, key = ["level", "source", "dimension"], [name for name in HEADS if name in rows]
    ours = rows.groupby([*key, *place], sort=False).agg(value=("value", "mean"), sets=("dataset", "nunique"))
    rated = frame.groupby(place)["dataset"].nunique().rename("of")
    ours = ours.reset_index().merge(rated.reset_index(), on=place).assign(origin="ours")
    both = pd.concat([ours, printed], ignore_index=True)
    tidy = both[["origin", *key, "source", "level", "dimension", "value", "sets", "of"]]
    tidy = tidy.astype({"sets": "Int32", "of": "Int32"}).round({"value": 4})
    tidy = tidy.rename(columns={"label": "evaluator", "source": "rated_by"})
    # The brackets name metrics that lack scores of some sets.
    return known.table(tidy, _mean_sections(both, key), known.notes(rows.assign(coverage=1.0)))


def _mean_sections(means: pd.DataFrame, key: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return a section for each level and source of ratings, ours and reported."""
    few = means["sets"] < means["of"]
    means = means.assign(text=means["value"].map(number) + means["sets"].map(" ({:.0f})".format).where(few, ""))
    ours, heads = means[means["origin"] == "ours"], {name: HEADS[name] for name in key}
    # The mean over a level's dimensions, if all five have a value.
    whole = ours.groupby([*key, "level", "source", "origin"], sort=False)["value"].agg(["mean", "count"]).reset_index()
    whole = whole[whole["count"] == 5].assign(dimension=AVERAGE, text=whole["mean"].map(number))
    counts = ours.drop_duplicates(["level", "source", "dimension"]).assign(**dict.fromkeys(key, "–"))
    counts = counts.assign(label="Sets in the mean", text=counts["of"].map("{:.0f}".format))
    frame = pd.concat([counts, means, whole], ignore_index=True)
    frame = frame.fillna(dict.fromkeys(key, "–")).replace({"score": SCORES})
    sections = {}
    for level, title in LEVELS.items():
        for origin, start in {"ours": "ours, against ratings by", "reported": "reported, against ratings by"}.items():
            of = frame[(frame["level"] == level) & (frame["origin"] == origin)]
            for source in _by_source(of["source"]):
                part = _by_dimension(of[of["source"] == source], heads, title)
                sections[f"{title}, {start} {RATERS.get(source, source)}"] = part
    return sections


def _ensembles(frame: pd.DataFrame, study: Study) -> Ensembles:
    single = sorted(name for name in frame["metric"].unique() if not is_ensemble(name))
    return Ensembles.of(study.get("ensembles") or {}, single, study.get("variants"))


def _single(frame: pd.DataFrame, known: Evaluators) -> pd.DataFrame:
    """Return the rows of evaluators, without ensembles."""
    return known.shown(frame[~frame["metric"].map(is_ensemble).astype(bool)])


def _of_dimensions(frame: pd.DataFrame, known: Evaluators) -> pd.DataFrame:
    """Return evaluators with an ensemble over dimensions: ``score`` is ``dimensions``, or ``direct`` for the overall one."""
    rows, ensembles = known.shown(frame[frame["dimension"] == OVERALL]), _ensembles(frame, known.study)
    of_mean = rows["metric"].str.startswith(OVER_DIMENSIONS)
    judge = rows["metric"].str.removeprefix(f"{OVER_DIMENSIONS}:").map(ensembles.judge_of)
    rows = rows.assign(label=judge.map(known.label), score=np.where(of_mean, "dimensions", "direct"))
    return rows[judge.isin(judge[of_mean])].sort_values(["label", "score"], kind="stable")


def _of_models(frame: pd.DataFrame, known: Evaluators) -> pd.DataFrame:
    """Return each ensemble of evaluators (``score`` is ``models``) and its members (``direct``) on the same sets."""
    place = ["ensemble", "level", "dimension", "metric", "output"]
    members = [
        (ensemble, level, dimension, *one)
        for level in LEVELS
        for (ensemble, output), outputs in _ensembles(frame, known.study).members(level).items()
        for dimension in (DIMENSIONS[level] if output == MEAN else [output])
        for one in outputs
    ]
    whole = known.shown(frame[frame["metric"].str.startswith(OVER_MODELS)].dropna(subset="value"))
    whole = whole.assign(ensemble=whole["metric"], label="their mean", score="models")
    direct = frame.merge(pd.DataFrame(members, columns=place), on=place[1:])
    direct = direct.merge(whole[["ensemble", "dataset", "source", "dimension"]])
    direct = direct.assign(label=direct["metric"].map(known.label), score="direct")
    both = pd.concat([direct, whole], ignore_index=True)
    both["ensemble"] = both["ensemble"].str.removeprefix(f"{OVER_MODELS}:")
    return both.sort_values(["ensemble", "score"], kind="stable")


# Table 4, and every correlation.


def rankings(inputs: Inputs, study: Study) -> Table:
    """Return Table 4: Spearman between the rankings of evaluators by human and GPT-4 ratings.

    GPT-4's recorded ratings are not ranked, since they are one of the two standards.
    """
    frame, known = _read(inputs["correlations"], "dimension_correlations"), Evaluators(inputs, study)
    printed, key = _reported(inputs, study), ["dataset", "dimension"]
    ranked = frame[(frame["coefficient"] == "pearson") & frame["dataset"].isin(printed["dataset"])]
    ranked = _single(ranked[~ranked["metric"].isin(known.recorded)], known)
    both = ranked.pivot(index=[*key, "metric"], columns="source", values="value")
    both = both.reindex(columns=["human", "gpt-4"]).dropna()
    rows = [
        (*place, of["human"].corr(of["gpt-4"], method="spearman"), len(of)) for place, of in both.groupby(level=key)
    ]
    ours = pd.DataFrame(rows, columns=[*key, "ours", "evaluators"])
    tidy = printed.rename(columns={"value": "reported"}).merge(ours, how="left", on=key)
    tidy = tidy[[*key, "ours", "evaluators", "reported"]].fillna({"evaluators": 0}).round({"ours": 4})
    long = tidy.melt(key, ["ours", "reported"], "by").dropna(subset="value")
    long["text"] = long["value"].map(number)
    sections = {
        known.title(dataset): _by_dimension(long[long["dataset"] == dataset], {"by": "From"}, "Spearman")
        for dataset in printed["dataset"].unique()
    }
    labels = dict.fromkeys(ranked.loc[ranked["dataset"].isin(ours["dataset"]), "label"])
    return known.table(tidy, sections, [f"Ranked here: {', '.join(labels) or 'none'}"])


def every_correlation(inputs: Inputs, study: Study) -> Table:
    """Return Pearson of each evaluator, set and dimension with its interval; the CSV has all three coefficients."""
    known = Evaluators(inputs, study)
    result = known.shown(_read(inputs["correlations"], "dimension_correlations")).dropna(subset="value")
    result["loso_halved"] = halved(result)
    pearson = result[result["coefficient"] == "pearson"]
    # Sort by the last column, highest first.
    pearson = pearson.assign(place=pearson["dimension"].map([*SHORT].index))
    pearson = pearson.sort_values(["place", "value"], ascending=False)
    marks = pearson["loso_halved"].map({True: MARK}).fillna("")
    ends = [*map(render.interval, pearson["low"], pearson["high"])]
    pearson["text"] = pearson["value"].map(number) + marks + ends
    sections = {}
    for dataset in study["datasets"]:
        of_set = pearson[pearson["dataset"] == dataset]
        for source in _by_source(of_set["source"]):
            part = _by_dimension(of_set[of_set["source"] == source], {"label": "Evaluator"}, "Pearson")
            sections[f"{known.title(dataset)}, rated by {RATERS.get(source, source)}"] = part
    columns = ["dataset", "source", "metric", "dimension", "coefficient", "value", "low", "high"]
    tidy = result[[*columns, "loso_value", "loso_system", "loso_halved", "n"]].round({"low": 2, "high": 2}).round(3)
    return known.table(tidy, sections, known.notes(result))


# Table 1


def data_sets(inputs: Inputs, study: Study) -> Table:
    """Return Table 1: the data sets, their sizes, the raters of each dimension, and their agreement."""
    known, sources = Evaluators(inputs, study), ["human", "gpt-4"]
    printed = read_table(inputs["reported"][0]).drop(columns=["source", "place", "level"])
    numbers = ["items", "utterances", "words_before", "words"]
    printed[numbers] = printed[numbers].apply(pd.to_numeric, errors="coerce")
    result = pd.DataFrame([_count(path.parent) for path in inputs["contexts"]])
    result = result.merge(printed, on="dataset", how="left", suffixes=("", "_reported"))
    texts = result.assign(title=result["dataset"].map(known.title))
    for source in sources:
        for name in (source, f"{source}_reported"):
            texts[name] = [
                ", ".join(SHORT[one] for one in DIMENSIONS[level] if one in str(of).split())
                for level, of in zip(result["level"], result[name], strict=True)
            ]
        ends = zip(*(result[f"agreement_{source}_{end}"] for end in ("lowest", "highest")), strict=True)
        texts[f"agreement_{source}"] = ["" if pd.isna(low) else f"{low:.2f} to {high:.2f}" for low, high in ends]
    columns = study["entry"]["columns"]
    sections = {title: _columns(texts[texts["level"] == level], columns[level]) for level, title in LEVELS.items()}
    columns = sorted(map(str, result.columns), key=lambda name: name.startswith("agreement"))
    return known.table(result[columns], sections)


def _count(folder: Path) -> dict[str, object]:
    """Summarize a data set: rated items, their mean length, dimensions by source, and agreement of raters."""
    names = ("contexts", "responses", "ratings")
    contexts, responses, ratings = (schema.read(folder / f"{name}.parquet", name) for name in names)
    level = ratings["level"].iloc[0]
    texts = responses.merge(contexts[["context_id", "dialogue_id", "history"]], on="context_id")
    texts = texts.assign(
        utterances=texts["history"].map(len) + 1,
        words_before=[sum(len(one["text"].split()) for one in history) for history in texts["history"]],
        words=texts["response"].str.split().map(len),
        item_id=texts["context_id" if level == "turn" else "dialogue_id"],
    )
    if level == "dialogue":
        # The last response of a dialogue has the full dialogue before it.
        texts = texts.sort_values("utterances", kind="stable").drop_duplicates(["item_id", "system_id"], keep="last")
        texts = texts.assign(words=texts["words_before"] + texts["words"], words_before=float("nan"))
    rated = ratings[["item_id", "system_id"]].drop_duplicates()
    means = rated.merge(texts, how="left")[["utterances", "words_before", "words"]].mean()
    made = {"dataset": ratings["dataset"].iloc[0], "level": level, "items": len(rated), **means}
    agreement: dict[str, object] = {}
    for source in ("human", "gpt-4"):
        of = ratings[ratings["source"] == source]
        made[source] = " ".join(one for one in DIMENSIONS[level] if one in {*of["dimension"]})
        # The mean Pearson correlation over the pairs of annotators, by dimension; missing with fewer than two.
        tables = (
            rows.pivot(index=["item_id", "system_id"], columns="annotator_id", values="rating").corr().to_numpy()
            for _, rows in of.groupby("dimension")
        )
        pairs = pd.Series([pd.Series(one[np.triu_indices(len(one), 1)]).mean() for one in tables], dtype="float64")
        agreement |= {f"agreement_{source}_lowest": pairs.min(), f"agreement_{source}_highest": pairs.max()}
    return made | agreement


# Tables 7, 8 and 9: perturbations and questions.


def perturbations(inputs: Inputs, study: Study) -> Table:
    """Return Table 7: the perturbations, their numbers of pairs, target dimensions, and the drop that counts.

    The CSV includes the pairs generated here.
    """
    ours = pd.DataFrame(PERTURBATIONS.values()).rename(columns={"name": "perturbation"})
    pairs = pd.concat([read_pairs(path.parent)[1] for path in inputs["contexts"]])
    counted = pairs.groupby(["dataset", "perturbation"])["original"].agg(["size", "nunique"]).reset_index()
    counted = counted.rename(columns={"size": "pairs", "nunique": "originals"})
    counted["origin"] = np.where(counted["dataset"] == counted["dataset"].map(unperturbed), "recorded", "made here")
    printed = read_table(inputs["reported"][0])[["perturbation", "texts", "pairs", "threshold"]]
    printed = printed.astype({"pairs": "float64", "threshold": "float64"}).assign(origin="recorded")
    printed = printed.rename(columns={"pairs": "pairs_reported", "threshold": "threshold_reported"})
    tidy = counted.merge(printed, how="left").merge(ours[["perturbation", "threshold"]], how="left")
    recorded = counted[counted["origin"] == "recorded"].groupby("perturbation")[["pairs", "originals"]].sum()
    texts = ours.merge(recorded.reset_index(), how="left").merge(printed, how="left")
    texts = texts.assign(
        texts=texts["texts"].fillna(""),
        aims=[", ".join(SHORT[one] for one in of) for of in texts["dimensions"]],
        delta=texts["threshold"].map("{:.1f}".format) + np.where(texts["paper"], "", " [ours]"),
    )
    in_paper, columns = texts["pairs_reported"].notna(), study["entry"]["columns"]
    sections = {
        "Recorded, in the paper": _columns(texts[in_paper], columns),
        "Recorded, not in the paper's table": _columns(texts[~in_paper & texts["pairs"].notna()], columns),
    }
    return Evaluators(inputs, study).table(tidy.drop(columns="texts"), sections)


def robustness(inputs: Inputs, study: Study) -> Table:
    """Return how often scores fall for perturbed texts: Table 8 next to the paper's, or the pairs of any data sets.

    The CSV has a row per ratio: a drop of any size, or above the threshold δ of the perturbation.
    """
    known = Evaluators(inputs, study)
    result = known.shown(_read(inputs["ratios"], "ratios"))
    delta = result["perturbation"].map({name: of.threshold for name, of in PERTURBATIONS.items()})
    is_delta = (result["threshold"] - delta).abs() < 1e-9
    result = result.assign(origin="ours", drop=np.where(is_delta, "above_delta", "any_drop"))
    result = result[is_delta | (result["threshold"] == 0)]
    printed = _reported(inputs, study) if "reported" in inputs else result.iloc[:0].rename(columns={"ratio": "value"})
    printed = printed.rename(columns={"value": "ratio"}).assign(drop="above_delta")
    sections = {}
    for dataset, rows in result.groupby("dataset", sort=False):
        title, reported = known.title(str(dataset)), printed[printed["level"].isin(rows["level"])]
        # The mean is over the paper's suites; others come after it.
        of_paper = [*_heads(reported), SHORT[AVERAGE]] if "reported" in inputs else []
        order = list(dict.fromkeys([*of_paper, *_heads(rows)]))
        for drop, text in DROPS.items():
            sections[f"{title}: {text}"] = _ratios(rows[rows["drop"] == drop], order, of_paper[:-1])
        sections[f"{title}, reported: {DROPS['above_delta']}"] = _ratios(reported, order, [])
    aimed = [of for name, of in PERTURBATIONS.items() if name in {*result["perturbation"]}]
    notes = [f"Perturbations: {', '.join(f'{of.short} {of.title} (δ {of.threshold:.1f})' for of in aimed)}"]
    tidy = pd.concat([result, printed], ignore_index=True) if len(printed) else result
    columns = ["origin", "dataset", "label", "perturbation", "dimension", "drop", "ratio", "low", "high", "ties", "n"]
    tidy = tidy[columns].round(3).rename(columns={"label": "evaluator"})
    return known.table(tidy, sections, [*notes, *known.notes(result)])


def _heads(frame: pd.DataFrame) -> list[str]:
    """Return the headings of the columns of ratios, in the order of the perturbations."""
    there = {*zip(frame["perturbation"], frame["dimension"], strict=True)}
    return [head for aim, head in AIMS.items() if aim in there]


def _ratios(rows: pd.DataFrame, order: list[str], averaged: list[str]) -> pd.DataFrame:
    """Return a section of ratios; ours start with the number of pairs, and the mean of some columns is added."""
    aims = zip(rows["perturbation"], rows["dimension"], strict=True)
    rows = rows.assign(name=[AIMS.get(aim, SHORT[AVERAGE]) for aim in aims], text=rows["ratio"].map(number))
    parts = [rows]
    if "n" in rows:
        rows["text"] += [*map(render.interval, rows["low"], rows["high"])]
        sizes = rows.groupby("name")["n"].max().map("{:,}".format).rename("text").reset_index()
        parts = [sizes.assign(label="Pairs"), rows]
    if averaged:
        wide = rows.pivot(index="label", columns="name", values="ratio").reindex(columns=averaged)
        # Missing if a suite of the paper has no ratio.
        means = wide.mean(axis=1, skipna=False).map(number).rename("text").reset_index()
        parts.append(means.assign(name=SHORT[AVERAGE]))
    texts = pd.concat(parts, ignore_index=True).assign(group="Perturbation")
    return arranged(texts, {"label": "Evaluator"}, ["group", "name"], order=[("Perturbation", head) for head in order])


def questions(inputs: Inputs, study: Study) -> Table:
    """Return Table 9: the questions of implicit scoring by dimension, in our words."""
    asked = []
    for name, variant in study["variants"].items():
        level = "dialogue" if "dialogue" in variant["fields"] else "turn"
        if text := variant.get("question"):
            asked += [(level, dimension, name, find_question(text, level)) for dimension in variant["dimensions"]]
    frame = pd.DataFrame(asked, columns=["level", "dimension", "variant", "question"])
    rows = frame.sort_values("dimension", key=lambda names: names.map([*SHORT].index), kind="stable")
    texts = _columns(rows, study["entry"]["columns"]).droplevel(0, axis=1)
    sections = {title: texts[rows["level"] == level] for level, title in LEVELS.items()}
    return Evaluators(inputs, study).table(frame, sections)


# Figures 3 and 4.


def between_dimensions(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the correlations between a rater's dimensions, one panel each for people, GPT-4 and judges."""
    entry, frame = study["entry"], _read(inputs["between"], "between_dimensions")
    frame = frame.sort_values(["dimension_a", "dimension_b"], key=lambda names: names.map([*SHORT].index))
    known, who = Evaluators(inputs, study), _by_source(frame["who"])
    names = {name: known.label(name) for name in who} | {"human": "People", "gpt-4": "GPT-4 (recorded)"}
    with drawing():
        scale = colours_of(frame["value"])
        figure, (axes,) = figure_and_axes(1, len(who), (2.15 * len(who) + 0.6, 2.35))
        for ax, name in zip(axes, who, strict=True):
            own = frame[frame["who"] == name]
            rows, columns = [*own["dimension_a"].unique()], [*own["dimension_b"].unique()]
            # Only the lower triangle: the upper is the same, and the diagonal is 1.
            places = zip(own["dimension_b"].map(columns.index), own["dimension_a"].map(rows.index), strict=True)
            tiles(ax, [(*at, value, short(value), "") for at, value in zip(places, own["value"], strict=True)], scale)
            ax.set_xticks(range(len(columns)), [SHORT[one] for one in columns])
            ax.set_yticks(range(len(rows)), [SHORT[one] for one in rows])
            ax.set_aspect("equal")
            ax.set_title(f"{names[name]}\nn = {int(own['n'].max())}", loc="left", parse_math=False)
        colour_bar(figure, scale, "Pearson", ax=list(axes), fraction=0.03, pad=0.01, aspect=20)
        titled(figure, entry["title"], known.title(study["datasets"][0]), entry["notes"])
    return figure, frame.drop(columns="signature")
