"""Tables 5 and 6: the mean of an evaluator's dimensions, and the mean of several evaluators, beside each alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from comperdial.core.names import Output, output_name
from comperdial.evaluation.ensembles import OVERALL, Ensembles
from comperdial.report.document import Column, Document, pivot, records_by
from comperdial.studies.llm_evaluators.common import (
    BOTH,
    LEVELS,
    NOT_OURS,
    OF_DIMENSIONS,
    OF_MODELS,
    PAPER,
    UNMIXED,
    by_dimension,
    by_source,
    in_order,
    level_means,
    mean_of_sets,
    rated_by,
    standing,
    with_averages,
    without_itself,
)
from comperdial.studies.llm_evaluators.notes import evaluator_notes, has_part, labels_of

_MEAN = "their mean"
_COLUMNS = ["ensemble", "label", "level", "source", "dimension", "value", "sets", "of"]
_FEWER = (
    "In brackets: of how many sets a mean is, where there is no score of some; the ensemble's and the single "
    "evaluator's mean are over the same sets where neither has brackets"
)
_SAME_SETS = (
    "Every mean, of an ensemble and of its members, is over the sets on which the ensemble has a value, so that the "
    "rows of an ensemble are of the same sets; in brackets: how many, where others were rated too"
)


def table_5(
    frame: pd.DataFrame,
    reported: pd.DataFrame,
    *,
    ensembles: Ensembles,
    outputs: Sequence[Output],
    recorded: Sequence[str] = (),
    labels: Mapping[str, str],
) -> Document:
    """Render Table 5: the mean of four dimensions against the overall score, as judgements of overall quality.

    Parameters
    ----------
    frame
        Table ``dimension_correlations`` of all sets, ensembles among them.
    reported
        ``src/comperdial/studies/llm_evaluators/correlations.csv``.
    ensembles
        Whose dimensions were averaged.
    outputs, labels
        Which output stands for a metric; what a metric is called.
    recorded
        The metrics that are GPT-4's recorded ratings.
    """
    overall = standing(frame, outputs)
    overall = overall[overall["dimension"] == OVERALL]
    metrics = overall["metric"].astype(str)
    is_mean = metrics.str.startswith(OF_DIMENSIONS)
    overall = overall.assign(
        metric=metrics.str.removeprefix(OF_DIMENSIONS).where(is_mean, metrics.map(ensembles.direct))
    )
    averaged = set(overall.loc[is_mean, "metric"])
    kept = {"dimensions": overall[is_mean], "direct": overall[~is_mean & overall["metric"].isin(averaged)]}
    parts = [level_means(without_itself(rows, recorded), labels).assign(score=score) for score, rows in kept.items()]
    means = pd.concat(parts, ignore_index=True)
    heads = ["Evaluator", "Rated by"]
    columns = [
        Column(title, name, mean_of_sets, (level, score))
        for level, title in LEVELS.items()
        for score, name in (("dimensions", "Ensemble"), ("direct", "Direct"))
    ]
    sections = []
    for source in by_source(list(means["source"])):
        cells = records_by(means[means["source"] == source], ["label", "level", "score"])
        rows = {(label,): [label, rated_by(source)] for label in in_order(list(means["label"]), labels)}
        title = f"Ours, against ratings by {rated_by(source)}"
        sections.append(pivot(title, cells, rows, heads, columns, empty="–"))
    printed = reported[reported["place"] == "Table 5"]
    rows = {(metric,): [metric, BOTH] for metric in dict.fromkeys(printed["metric"])}
    sections.append(pivot("Reported", records_by(printed, ["metric", "level", "score"]), rows, heads, columns))
    ours = means[["label", "score", "level", "source", "dimension", "value", "sets", "of"]].assign(origin="ours")
    return Document(
        title="Table 5. The mean of an evaluator's dimensions",
        caption="Pearson correlation with mean ratings of overall quality, averaged over the sets of a level: of the "
        "mean of an evaluator's four other dimensions (Ensemble) and of its overall score (Direct), beside what "
        f"{PAPER} report.",
        sections=sections,
        tidy=_joined(ours, printed),
        notes=[
            _FEWER,
            UNMIXED,
            NOT_OURS,
            "People rated the overall quality of all six sets of turns, GPT-4 of none",
            *evaluator_notes(overall[overall["metric"].isin(averaged) & ~is_mean], labels),
            *_programs(overall, averaged, labels),
        ],
    )


def _programs(overall: pd.DataFrame, averaged: set[str], labels: Mapping[str, str]) -> list[str]:
    chosen = (
        metric in averaged and has_part(signature, "service:rules")
        for metric, signature in zip(overall["metric"], overall["signature"], strict=True)
    )
    return [
        f"{name}: the program makes its overall score as the mean of its other four ratings, so that Ensemble and "
        "Direct are the same thing but for rounding, and say nothing on ensembles"
        for name in labels_of(overall, chosen, labels)
    ]


def _joined(ours: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    names = {"label": "evaluator", "source": "rated_by"}
    theirs = printed[["metric", "score", "level", "dimension", "value"]].rename(columns={"metric": "evaluator"})
    joined = pd.concat(
        [ours.rename(columns=names), theirs.assign(origin="reported", rated_by="human or gpt-4")], ignore_index=True
    )
    order = ["origin", *(name for name in ("ensemble", "evaluator") if name in joined), "score", "rated_by", "level"]
    return joined[[*order, "dimension", "value", "sets", "of"]].astype({"sets": "Int32", "of": "Int32"}).round(4)


def table_6(
    frame: pd.DataFrame,
    reported: pd.DataFrame,
    *,
    outputs: Sequence[Output],
    recorded: Sequence[str] = (),
    labels: Mapping[str, str],
    ensembles: Ensembles,
) -> Document:
    """Render Table 6: the mean of several evaluators beside each of them, dimension by dimension.

    Parameters are those of :func:`table_5`; ``ensembles`` says what each ensemble is made of.
    """
    kept = standing(frame, outputs)
    heads = ["Ensemble", "Evaluator", "Rated by"]
    sections, parts = [], []
    of_members = {
        name: without_itself(_with_members(frame, kept, name, ensembles), recorded) for name in ensembles.models
    }
    means = {
        name: level_means(found, {**labels, OF_MODELS + name: _MEAN}, kept).assign(ensemble=name)
        for name, found in of_members.items()
    }
    for level, title in LEVELS.items():
        for source in by_source(list(frame["source"])):
            rows, here = {}, []
            for name, found in means.items():
                of_level = found[(found["level"] == level) & (found["source"] == source)]
                if _MEAN not in set(of_level["label"]):
                    continue
                called, alone = labels.get(OF_MODELS + name, name), set(of_level["label"]) - {_MEAN}
                for label in [*in_order(list(alone), labels), _MEAN]:
                    rows[name, label] = [called, label, rated_by(source)]
                parts.append(of_level)
                here.append(with_averages(of_level).assign(ensemble=name))
            if here:
                named = f"{title}, ours, against ratings by {rated_by(source)}"
                key = ["ensemble", "label"]
                sections.append(by_dimension(named, pd.concat(here), rows, heads, key=key, levels=[level]))
        printed = reported[(reported["place"] == "Table 6") & (reported["level"] == level)]
        theirs = {(metric,): ["reported", metric, BOTH] for metric in dict.fromkeys(printed["metric"])}
        sections.append(by_dimension(f"{title}, reported", printed, theirs, heads, key=["metric"], levels=[level]))
    ours = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_COLUMNS)
    ours = ours.assign(origin="ours", score=["models" if one == _MEAN else "direct" for one in ours["label"]])
    made = [
        f"{labels.get(OF_MODELS + name, name)}: the mean of {', '.join(_named(one, labels) for one in members.names)}"
        + (", each standardised over the items that all of them score" if members.scale == "z" else "")
        for name, members in ensembles.models.items()
    ]
    return Document(
        title="Table 6. The mean of several evaluators",
        caption="Pearson correlation with mean ratings, averaged over the sets of a level: of the mean of several "
        f"evaluators' scores and of each of them, beside what {PAPER} report. Their ensemble is of the three "
        "open-source models that are best in a dimension.",
        sections=sections,
        tidy=_joined(ours.drop(columns=["low", "high"], errors="ignore"), reported[reported["place"] == "Table 6"]),
        notes=[
            *made,
            *_without_value(frame, kept, ensembles, labels),
            _SAME_SETS,
            UNMIXED,
            NOT_OURS,
            *evaluator_notes(pd.concat(of_members.values()) if of_members else frame.iloc[:0], labels),
        ],
    )


def _with_members(frame: pd.DataFrame, kept: pd.DataFrame, name: str, ensembles: Ensembles) -> pd.DataFrame:
    """Return the correlations of an ensemble and of its members, where the ensemble has a value."""
    members = ensembles.models[name]
    wanted = {(dimension, *one) for dimension in frame["dimension"].unique() for one in members.of(str(dimension))}
    is_member = [key in wanted for key in zip(frame["dimension"], frame["metric"], frame["output"], strict=True)]
    whole = kept[(kept["metric"] == OF_MODELS + name) & kept["value"].notna()]
    there = set(zip(whole["dataset"], whole["source"], whole["dimension"], strict=True))
    found = frame[is_member]
    places = zip(found["dataset"], found["source"], found["dimension"], strict=True)
    return pd.concat([whole, found[[place in there for place in places]]])


def _without_value(
    frame: pd.DataFrame, kept: pd.DataFrame, ensembles: Ensembles, labels: Mapping[str, str]
) -> list[str]:
    """Say which ensemble has no value on any set, and which scores it lacks where it lacks fewest."""
    notes = []
    valued = frame[frame["value"].notna()]
    for name, members in ensembles.models.items():
        if (kept["metric"].eq(OF_MODELS + name) & kept["value"].notna()).any():
            continue
        lost: list[tuple[int, str, list[str]]] = []
        for (_, level, dimension), rows in valued.groupby(["dataset", "level", "dimension"], observed=True):
            there = set(zip(rows["metric"], rows["output"], strict=True))
            missing = [m for m, one in zip(members.names, members.of(str(dimension)), strict=True) if one not in there]
            lost.append((len(missing), str(level), [_named(one, labels) for one in missing]))
        _, level, missing = min(lost, default=(0, "any", []))
        why = f": at {level} level there are no scores of {', '.join(missing)}" if missing else ""
        notes.append(f"{labels.get(OF_MODELS + name, name)} has no value, and no row, on any set{why}")
    return notes


def _named(member: str, labels: Mapping[str, str]) -> str:
    return labels.get(member, labels.get(output_name(member, "")[0], member))
