"""The numbers of the tables of local metrics: correlations of chosen scores, what they cost, and the ablation of `local`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError
from comperdial.core.names import Output, output_name
from comperdial.evaluation import Detail, correlations, differences
from comperdial.evaluation.fitting import FittedSet, held_out
from comperdial.evaluation.rated import RatedSet
from comperdial.evaluation.samples import Sample
from comperdial.metrics.local import Coefficients, Features
from comperdial.report.ranking import with_ranks
from comperdial.report.tables import pooled
from comperdial.schema.dimensions import chosen_dimension
from comperdial.stats import Coefficient
from comperdial.stats.comparison import holm
from comperdial.stats.correlation import correlate

COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman")
# What people did not rate and GPT-4 did, where Zhang et al. 2024 recorded it; the mean of its dimensions.
RATER, RECORDED = "gpt-4", ("gpt-4_recorded", "mean")
# What of a data set a row's values are of.
ALL, WITHIN, AGENTS = "all responses", "within systems", "without human responses"
WHOLE, WITHOUT, ALONE = "all parts", "without {}", "{} alone"


def evaluate(
    folder: str | Path,
    scores: pd.DataFrame,
    outputs: Sequence[Output],
    *,
    target: str | None,
    main_target: str | None,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Correlate some outputs with people's ratings of a data set's responses, in one dimension.

    What an interval resamples is what :meth:`comperdial.evaluation.rated.RatedSet.samples` says: systems and dialogues, or
    dialogues alone where there are fewer than four systems.

    Returns
    -------
    DataFrame
        Table ``correlations`` of turns, pooled; ranks are clusters of outputs that differ significantly from no other in
        it.
    """
    samples = _samples(folder, scores, outputs, target, main_target)
    if not any(sample.names for sample in samples):
        raise NothingToShowError("no score of any row", where=str(folder))
    detail = Detail(resamples=resamples, seed=seed)
    found = correlations(samples, detail=detail)
    found = pooled(found[found["coefficient"].isin(COEFFICIENTS)])
    return with_ranks(found, differences(samples, detail=detail, coefficients=COEFFICIENTS))


def contrasts(
    folder: str | Path,
    scores: pd.DataFrame,
    pairs: Sequence[tuple[Output, Output]],
    *,
    target: str | None,
    main_target: str | None,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Test planned pairs of outputs for a difference of their correlation with people's ratings, as :func:`evaluate` does.

    Returns
    -------
    DataFrame
        Table ``contrasts``: p is not corrected. A pair of which one output has no scores is left out.
    """
    samples = _samples(folder, scores, [name for pair in pairs for name in pair], target, main_target)
    detail = Detail(resamples=resamples, seed=seed)
    rows = []
    for one, other in pairs:
        found = differences([sample.only([one, other]) for sample in samples], detail=detail, coefficients=COEFFICIENTS)
        for row in found.to_dict("records"):
            # The better one comes first there.
            sign = 1 if (row["metric_a"], row["output_a"]) == one else -1
            low, high = sorted((sign * row["low"], sign * row["high"]))
            rows.append(
                row
                | {"metric_a": one[0], "output_a": one[1], "metric_b": other[0], "output_b": other[1]}
                | {"difference": sign * row["difference"], "low": low, "high": high}
            )
    return schema.validate(pd.DataFrame(rows, columns=schema.table("contrasts").columns), "contrasts")


def _samples(
    folder: str | Path, scores: pd.DataFrame, outputs: Sequence[Output], target: str | None, main_target: str | None
) -> list[Sample]:
    """Pair some outputs' scores of responses with people's ratings in one dimension."""
    one = RatedSet.read(folder)
    people = one.ratings[one.ratings["source"] == "human"]
    wanted = chosen_dimension(target, main_target, people["dimension"])
    both = pd.concat([scores, _as_scores(one)], ignore_index=True)
    shown = pd.MultiIndex.from_frame(both[["metric", "output"]]).isin(outputs)
    return [
        sample for sample in one.samples(both[shown], "human") if sample.target == wanted and sample.level == "turn"
    ]


def contrast_frame(
    found: pd.DataFrame, planned: Sequence[Mapping[str, Any]], labels: Mapping[Output, str]
) -> pd.DataFrame:
    """Return planned contrasts in order, corrected by Holm over all of them, by each coefficient.

    Parameters
    ----------
    found
        Table ``contrasts`` of all data sets.
    planned
        As ``study.yaml`` has them.
    labels
        What the rows of the table are called.

    Returns
    -------
    DataFrame
        label, minus, dataset, coefficient, difference (label's correlation minus that of ``minus``), low, high, p,
        p_adjusted, tests, n. A contrast that could not be tested has no p, and counts as no test.
    """
    key = ["dataset", "coefficient", "metric_a", "output_a", "metric_b", "output_b"]
    known = {tuple(row[name] for name in key): row for row in found.to_dict("records")}
    rows = [
        {"label": labels[a], "minus": labels[b], "dataset": dataset, "coefficient": coefficient}
        | {
            name: known.get((dataset, coefficient, *a, *b), {}).get(name)
            for name in ("difference", "low", "high", "p", "n", "test")
        }
        for entry in planned
        for a, b in [(output_name(entry["metric"]), output_name(entry["against"]))]
        for dataset in entry["datasets"]
        for coefficient in COEFFICIENTS
    ]
    frame = pd.DataFrame(rows).astype(dict.fromkeys(("difference", "low", "high", "p"), "float64") | {"n": "Int32"})
    p = frame.groupby("coefficient", sort=False)["p"]
    adjusted = p.transform(lambda one: holm(one.to_numpy(np.float64)))
    frame.insert([*frame].index("n"), "p_adjusted", adjusted)
    frame.insert([*frame].index("n"), "tests", p.transform("count"))
    return frame


def restricted(
    folder: str | Path,
    scores: pd.DataFrame,
    outputs: Sequence[Output],
    *,
    target: str | None,
    main_target: str | None,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Correlate some outputs with people's ratings within systems, and without the responses of human systems.

    Returns
    -------
    DataFrame
        Table ``correlations``. Grouping ``system``: the mean of the coefficients within each system, where there are
        several; ``n`` counts their responses. Grouping ``pooled``: all responses but those of systems whose kind is ``human``,
        where there are such systems and others.
    """
    one = RatedSet.read(folder)
    wanted = chosen_dimension(target, main_target, one.ratings.loc[one.ratings["source"] == "human", "dimension"])
    shown = scores[pd.MultiIndex.from_frame(scores[["metric", "output"]]).isin(outputs)]

    def sampled(some: RatedSet) -> list[Sample]:
        of = shown[shown["system_id"].isin(some.ratings["system_id"])]
        found = some.samples(of, "human") if len(of) else []
        return [sample for sample in found if sample.target == wanted and sample.level == "turn"]

    rows = [row for sample in sampled(one) for row in _within(sample)]
    frames = [pd.DataFrame(rows, columns=schema.table("correlations").columns)] if rows else []
    agents = without_human(one)
    if agents is not None:
        detail = Detail(targets=[wanted], resamples=resamples, seed=seed)
        found = pooled(correlations(sampled(agents), detail=detail))
        frames.append(found[found["coefficient"].isin(COEFFICIENTS)])
    if not frames:
        return schema.empty("correlations")
    return schema.validate(pd.concat(frames, ignore_index=True), "correlations")


def without_human(one: RatedSet) -> RatedSet | None:
    """Return a data set without the ratings of human systems; None where there is no such system, or no other."""
    if one.systems is None:
        return None
    human = set(one.systems.loc[one.systems["kind"] == "human", "system_id"])
    left = one.ratings[~one.ratings["system_id"].isin(human)]
    return None if len(left) in (0, len(one.ratings)) else replace(one, ratings=left)


def _within(sample: Sample) -> list[dict[str, Any]]:
    systems = np.array([system for _, system in sample.units])
    names = np.unique(systems)
    rows = []
    for place, (metric, output) in enumerate(sample.names if len(names) > 1 else ()):
        there = ~np.isnan(sample.scores[place])
        for coefficient in COEFFICIENTS:
            values = [
                correlate(sample.scores[place, own], sample.ratings[own], coefficient).value
                for own in (there & (systems == name) for name in names)
            ]
            known = [value for value in values if not np.isnan(value)]
            rows.append(
                sample.key
                | {"metric": metric, "output": output, "grouping": "system", "coefficient": coefficient}
                | {
                    "value": np.mean(known) if known else np.nan,
                    "n": int(there.sum()),
                    "coverage": sample.coverage[place],
                }
                | {"cut": sample.cut[place], "signature": sample.signatures[place]}
            )
    return rows


def _as_scores(one: RatedSet) -> pd.DataFrame:
    """Return the recorded ratings of GPT-4 as table ``scores``: the mean over the dimensions that people did not rate."""
    ratings = one.ratings[one.ratings["source"] == RATER]
    means = ratings.groupby(["dataset", "level", "item_id", "system_id"])["rating"].mean().rename("value").reset_index()
    metric, output = RECORDED
    dimensions = "+".join(sorted(ratings["dimension"].unique()))
    frame = means.assign(
        metric=metric, output=output, cut=0, signature=f"recorded ratings|by:{RATER}|mean of:{dimensions}"
    )
    return schema.validate(frame[schema.table("scores").columns], "scores") if len(frame) else schema.empty("scores")


def local_frame(
    correlated: pd.DataFrame,
    rows: Sequence[Mapping[str, Any]],
    costs: pd.DataFrame,
    datasets: Sequence[str],
    restrictions: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Put the rows' correlations beside what the metrics cost.

    ``restrictions`` are what :func:`restricted` gives: rows of their own, each below the row that it belongs to.

    Returns
    -------
    DataFrame
        One row a row, data set and coefficient that has a value: label, metric, output, figure, value, p, low, high, rank, tests,
        n, coverage, cut, lacking, the lowest value without a system, and ``seconds`` and ``usd`` for 1,000 responses,
        missing where neither was measured nor estimated; ``responses``: all of them, within systems, or without those of
        human systems.
    """
    named = pd.DataFrame(
        [{"place": place, "figure": False, **row} for place, row in enumerate(rows)]
    )  # fmt: skip
    correlated = correlated.assign(responses=ALL)
    if restrictions is not None and len(restrictions):
        of = restrictions["grouping"].map({"system": WITHIN, "pooled": AGENTS})
        correlated = pd.concat([correlated, restrictions.assign(responses=of)], ignore_index=True)
    paid = costs[["metric", "seconds", "usd"]]
    order = {name: number for number, name in enumerate(datasets)}
    found = named.merge(correlated, on=["metric", "output"]).merge(paid, on="metric", how="left")
    part = found["responses"].map([ALL, WITHIN, AGENTS].index)
    found = found.assign(set=found["dataset"].map(order), part=part, label=_labels(found))
    found = found.sort_values(["place", "part", "set", "coefficient"], kind="stable")
    columns = [
        "label", "metric", "output", "figure", "responses", "dataset", "target", "level", "against", "coefficient", "value", "p",
        "low", "high", "rank", "tests", "n", "coverage", "cut", "lacking", "loso_value", "loso_system", "seconds", "usd",
        "signature",
    ]  # fmt: skip
    return found[columns].reset_index(drop=True)


def _labels(frame: pd.DataFrame) -> pd.Series:
    return frame["label"].where(frame["responses"] == ALL, frame["label"] + ", " + frame["responses"])


def variants(features: Features) -> dict[str, list[str]]:
    """Return the parts that each variant of the model uses: all, without each, each alone."""
    parts = list(features.parts)
    return {
        WHOLE: parts,
        **{WITHOUT.format(part): [one for one in parts if one != part] for part in parts},
        **{ALONE.format(part): [part] for part in parts},
    }


def ablation_scores(
    sets: Sequence[FittedSet], features: Features, penalties: Sequence[float]
) -> dict[str, pd.DataFrame]:
    """Return table ``scores`` of each data set by all variants, fitted without the data set's group."""
    frames: dict[str, list[pd.DataFrame]] = {one.dataset: [] for one in sets}
    for name, parts in variants(features).items():
        for dataset, values in held_out(sets, features, penalties, parts=parts).items():
            units = next(one.units for one in sets if one.dataset == dataset)
            frame = units.rename(columns={"context_id": "item_id"}).assign(
                dataset=dataset,
                level="turn",
                metric="local",
                output=name,
                value=values,
                cut=0,
                signature=f"local|{name}",
            )
            frames[dataset].append(frame.dropna(subset=["value"]))
    columns = schema.table("scores").columns
    return {
        dataset: schema.validate(pd.concat(parts, ignore_index=True)[columns], "scores")
        for dataset, parts in frames.items()
    }


def weights_frame(known: Coefficients) -> pd.DataFrame:
    """Return the weight of each feature: of the final fit, and the least and greatest of the fits without a group."""
    weights = pd.DataFrame({left: fit.weights for left, fit in known.fits.items()}, index=known.features.names)
    others = weights.drop(columns="")
    part = {name: part for part, names in known.features.parts.items() for name in names}
    return pd.DataFrame(
        {
            "part": [part[name] for name in weights.index],
            "feature": weights.index,
            "weight": weights[""].to_numpy(),
            "lowest": others.min(axis=1).to_numpy(),
            "highest": others.max(axis=1).to_numpy(),
        }
    )
