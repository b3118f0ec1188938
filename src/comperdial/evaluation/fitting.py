"""Fit the learned metric ``local`` to human ratings, leaving groups of data sets out (docs/local-metric.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.core.errors import SchemaError
from comperdial.evaluation.comparisons import evaluate
from comperdial.evaluation.correlations import SHOWN, Detail
from comperdial.evaluation.samples import Tables
from comperdial.metrics import scoring
from comperdial.metrics.local import Coefficients, Features, Fit, context_key, read_scores
from comperdial.stats.correlation import correlate

Floats = npt.NDArray[np.float64]

WHOLE, WITHOUT, ALONE = "all parts", "without {}", "{} alone"
"""The variants of the model: with all parts, without each, with each alone."""


@dataclass(frozen=True)
class FittedSet:
    """A data set: features of its rated responses, their mean ratings, and the hash of each one's context.

    ``group`` is the unit that is held out, ``target`` the rated dimension.
    """

    dataset: str
    group: str
    target: str
    values: Floats
    ratings: Floats
    contexts: npt.NDArray[np.str_]
    units: pd.DataFrame
    signatures: Mapping[str, str]

    @classmethod
    def read(
        cls, folder: Path, tables: Mapping[str, Path], features: Features, *, target: str, group: str
    ) -> FittedSet:
        """Read a data set's tables and the scores behind the features.

        ``tables`` are files of table ``scores``, by metric. Raises a MissingResourceError if one is missing, a SchemaError if
        people did not rate the dimension.
        """
        known = {name: read_scores(tables[name]) for name in features.metrics}
        metrics = features.made()
        parts, units, keys = [], [], []
        for responses, batch in scoring.batches(folder):
            parts.append(features.values(batch, {name: known[name].of(responses, metrics[name]) for name in known}))
            units.append(responses[["context_id", "system_id"]])
            keys += [context_key(history) for history in batch.histories]
        ratings = schema.read(folder / "ratings.parquet", "ratings")
        ratings = ratings.query("level == 'turn' and dimension == @target and source == 'human'")
        if ratings.empty:
            raise SchemaError(f"no person's ratings of {target!r}", where=str(folder), expected="some to fit to")
        rated = pd.concat(units, ignore_index=True)
        means = ratings.groupby(["item_id", "system_id"])["rating"].mean().reindex(pd.MultiIndex.from_frame(rated))
        signatures = {name: one.signature for name, one in known.items()}
        made = np.concatenate(parts), means.to_numpy(np.float64), np.array(keys)
        return cls(folder.name, group, target, *made, rated, signatures)


def read_sets(settings: Path, features: Features, tables: Path, results: Path) -> list[FittedSet]:
    """Read the training data sets of ``local_features.yaml``, from ``TABLES/DATASET`` and ``RESULTS/DATASET/scores``."""
    sets = []
    for name, entry in load_yaml(settings)["fitted_on"].items():
        scores = {metric: results / name / "scores" / f"{metric}.parquet" for metric in features.metrics}
        sets.append(FittedSet.read(tables / name, scores, features, **entry))
    return sets


class _Moments(NamedTuple):
    """What a fit needs of a data set: means and variances of its features, and products of the residuals."""

    group: str
    values: Floats
    ratings: Floats
    means: Floats
    variances: Floats
    products: Floats
    with_rating: Floats

    @classmethod
    def of(cls, one: FittedSet, columns: npt.NDArray[np.intp], of_facts: npt.NDArray[np.bool_]) -> _Moments:
        """Compute the moments from rated responses that lack at most facts."""
        values = one.values[:, columns]
        whole = ~np.isnan(values[:, ~of_facts]).any(axis=1) & ~np.isnan(one.ratings)
        values, ratings = values[whole], one.ratings[whole]
        counts = (~np.isnan(values)).sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.nan_to_num(values).sum(axis=0) / counts
            centred = np.nan_to_num(values - means)
            variances = (centred**2).sum(axis=0) / counts
        standard = (ratings - ratings.mean()) / (ratings.std() or 1)
        products, with_rating = centred.T @ centred / len(values), centred.T @ standard / len(values)
        return cls(one.group, values, ratings, means, variances, products, with_rating)


class Model(NamedTuple):
    """A fit, its penalty, and the mean correlation of each penalty that the choice is based on."""

    fit: Fit
    penalty: float
    chosen_by: Mapping[float, float]


def fit_model(
    sets: Iterable[FittedSet], features: Features, penalties: Sequence[float], *, parts: Collection[str] | None = None
) -> Model:
    """Fit a model, choosing the penalty on the given sets.

    The penalty has the highest mean over sets of Spearman's coefficient, each predicted by a fit without its group; the larger
    one if equal. ``parts`` restricts the model to some parts (default: all); the others get no weight.
    """
    used = np.array([parts is None or part in parts for part, names in features.parts.items() for _ in names])
    columns, of_facts = np.flatnonzero(used), features.of_facts[used]
    moments = [_Moments.of(one, columns, of_facts) for one in sets]
    groups = sorted({one.group for one in moments})
    chosen_by = {}
    for penalty in penalties if len(groups) > 1 else ():
        fits = {group: _fit([one for one in moments if one.group != group], penalty) for group in groups}
        predicted = [fits[one.group].score(one.values, of_facts) for one in moments]
        agreed = [correlate(p, one.ratings, "spearman").value for p, one in zip(predicted, moments, strict=True)]
        # Constant predictions have no correlation.
        chosen_by[penalty] = float(np.mean(np.nan_to_num(agreed)))
    best = max(chosen_by, key=lambda penalty: (round(chosen_by[penalty], 9), penalty), default=max(penalties))
    fit = _fit(moments, best)
    whole = Fit(np.zeros(len(used)), np.zeros(len(used)), np.ones(len(used)))
    for name, values in vars(fit).items():
        getattr(whole, name)[columns] = values
    return Model(whole, best, chosen_by)


def _fit(moments: Sequence[_Moments], penalty: float) -> Fit:
    """Solve for the weights: each set counts equally, and not for features that it lacks."""
    means, variances = (np.stack([getattr(one, name) for one in moments]) for name in ("means", "variances"))
    there = ~np.isnan(means)
    counts = np.maximum(there.sum(axis=0), 1)
    scales = np.sqrt(np.where(there, variances, 0).sum(axis=0) / counts)
    # A feature that is constant within every set cannot separate responses.
    flat = scales < 1e-12
    scales[flat] = 1.0
    products = np.mean([one.products for one in moments], axis=0) / np.outer(scales, scales)
    with_rating = np.mean([one.with_rating for one in moments], axis=0) / scales
    weights = np.linalg.solve(products + penalty * np.eye(len(scales)), with_rating)
    weights[flat] = 0.0
    return Fit(weights, np.where(there, means, 0).sum(axis=0) / counts, scales)


def held_out(
    sets: Sequence[FittedSet], features: Features, penalties: Sequence[float], *, parts: Collection[str] | None = None
) -> dict[str, Floats]:
    """Return the scores of each data set by a model trained without its group."""
    scores: dict[str, Floats] = {}
    for group in dict.fromkeys(one.group for one in sets):
        model = fit_model([one for one in sets if one.group != group], features, penalties, parts=parts)
        scores |= {one.dataset: model.fit.score(one.values, features.of_facts) for one in sets if one.group == group}
    return scores


def train(sets: Sequence[FittedSet], features: Features, penalties: Sequence[float], *, date: str) -> dict[str, Any]:
    """Return the content of the coefficients file: fits without each group, and the final one.

    A context in several groups' data gets a fit without all of these. Raises a SchemaError if a metric's scores have different
    signatures.
    """
    signatures: dict[str, str] = {}
    for one in sets:
        for name, signature in one.signatures.items():
            if signature and signatures.setdefault(name, signature) != signature:
                raise SchemaError(
                    f"the scores of {name} on {one.dataset} were made by {signature}",
                    expected=f"{signatures[name]}, as on other data sets",
                )
    known = pd.DataFrame([(str(key), one.group) for one in sets for key in one.contexts], columns=["key", "group"])
    groups = known.drop_duplicates().sort_values("group").groupby("key")["group"].agg("+".join)
    contexts = {str(left): " ".join(own.index) for left, own in groups.groupby(groups)}
    fits = {}
    for left in ["", *sorted({one.group for one in sets} | contexts.keys())]:
        seen = [one for one in sets if one.group not in left.split("+")]
        model = fit_model(seen, features, penalties)
        # Digits that are reproducible across machines, and more than scores need.
        digits = {name: [float(f"{value:.10g}") for value in values] for name, values in vars(model.fit).items()}
        rows = zip(features.names, digits["weights"], digits["means"], digits["scales"], strict=True)
        fits[left] = {
            "penalty": model.penalty,
            "spearman_by_penalty": {str(penalty): round(value, 6) for penalty, value in model.chosen_by.items()},
            "features": {name: {"weight": weight, "mean": mean, "scale": scale} for name, weight, mean, scale in rows},
        }
    return {
        "about": "Coefficients of the metric `local`; written by `comperdial fit`, described in docs/local-metric.md",
        "date": date,
        "fitted_on": {
            one.dataset: {"group": one.group, "responses": int((~np.isnan(one.ratings)).sum())} for one in sets
        },
        "metrics": dict(features.metrics),
        "signatures": signatures,
        "parts": {part: list(names) for part, names in features.parts.items()},
        "fits": fits,
        "contexts": contexts,
    }


# Contribution of each part


def variants(features: Features) -> dict[str, list[str]]:
    """Return the parts of each variant of the model: all, all but one, each alone."""
    parts = list(features.parts)
    without = {WITHOUT.format(part): [one for one in parts if one != part] for part in parts}
    return {WHOLE: parts, **without, **{ALONE.format(part): [part] for part in parts}}


def ablation(
    sets: Sequence[FittedSet],
    tables: Path,
    features: Features,
    penalties: Sequence[float],
    *,
    resamples: int,
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Correlate the held-out scores of all variants with human ratings; ``tables`` has a folder per data set.

    Returns tables ``correlations`` and ``pairs`` of single responses, by Pearson and Spearman; the output is the variant.
    """
    of_variants = {name: held_out(sets, features, penalties, parts=parts) for name, parts in variants(features).items()}
    also = [("local", name) for name in of_variants]
    results = []
    for one in sets:
        units = one.units.rename(columns={"context_id": "item_id"})
        units = units.assign(dataset=one.dataset, level="turn", metric="local", cut=0)
        parts = [
            units.assign(output=name, value=scores[one.dataset], signature=f"local|{name}")
            for name, scores in of_variants.items()
        ]
        scored = schema.validate(pd.concat(parts)[schema.table("scores").columns].dropna(subset="value"), "scores")
        samples = replace(Tables.read(tables / one.dataset, []), scores=scored).samples(["turn"], [one.target])
        # No main outputs: tests and intervals of Pearson and Spearman suffice.
        results.append(evaluate(samples, detail=Detail((), [one.target], resamples, seed, only=SHOWN, also=also)))
    correlations, pairs = (pd.concat(frames, ignore_index=True) for frames in zip(*results, strict=True))
    return correlations, pairs


def weights_frame(known: Coefficients) -> pd.DataFrame:
    """Return the weight of each feature in the final fit, and its minimum and maximum over the fits without a group."""
    weights = pd.DataFrame({left: fit.weights for left, fit in known.fits.items()})
    others = weights.drop(columns="")
    names = [(part, name) for part, names in known.features.parts.items() for name in names]
    columns = {"weight": weights[""], "lowest": others.min(axis=1), "highest": others.max(axis=1)}
    return pd.concat([pd.DataFrame(names, columns=["part", "feature"]), pd.DataFrame(columns)], axis=1)
