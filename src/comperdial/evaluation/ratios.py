"""Robustness ratios: how often a score falls for perturbed text (Zhang et al. 2024, Tables 7 and 8)."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.core.names import Output
from comperdial.evaluation.samples import NAME, check_scores
from comperdial.perturbations import Perturbation
from comperdial.schema.evaluated import ORIGINAL, PERTURBED
from comperdial.stats.means import TIED
from comperdial.stats.proportions import share

log = logging.getLogger(__name__)

# Scores are float32: a difference equal to the threshold may come out slightly above it.
_ROUNDING = 1e-6
_SIDES = [ORIGINAL, PERTURBED]


def read_pairs(folder: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a folder's contexts and its pairs (:func:`pairs_of`)."""
    contexts, responses = (schema.read(Path(folder) / f"{name}.parquet", name) for name in ("contexts", "responses"))
    return contexts, pairs_of(contexts, responses)


def pairs_of(contexts: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of an original and its perturbed version.

    There is one row per pair, indexed by its dialogue_id: ``dataset``, ``perturbation``, and ``original``, a number shared by
    pairs from the same text. Raises a SchemaError if a dialogue is not a pair: it must have responses of the systems
    ``original`` and ``perturbed``, and a name ``<perturbation>-<number>``.
    """
    rows = responses.merge(contexts[["context_id", "dialogue_id", "turn", "history"]], on="context_id")
    for dialogue, systems in rows.groupby("dialogue_id")["system_id"].unique().items():
        if {*systems} != {*_SIDES} or not str(dialogue).rpartition("-")[0]:
            raise SchemaError(
                f"dialogue {dialogue!r} has responses of {', '.join(sorted(systems))}",
                expected=f"a pair called <perturbation>-<number>: the systems {ORIGINAL} and {PERTURBED}",
            )
    # The last response and its history form the whole text.
    rows = rows[rows["system_id"] == ORIGINAL].sort_values("turn", kind="stable")
    last = rows.drop_duplicates("dialogue_id", keep="last").set_index("dialogue_id").sort_index()
    texts = [
        (*((one["speaker"], one["text"]) for one in history), response)
        for history, response in zip(last["history"], last["response"], strict=True)
    ]
    made = last[["dataset"]].assign(perturbation=last.index.str.rpartition("-").get_level_values(0))
    return made.assign(original=pd.factorize(pd.Series(texts, dtype=object))[0])


def ratios(
    contexts: pd.DataFrame,
    pairs: pd.DataFrame,
    scores: pd.DataFrame,
    perturbations: Mapping[str, Perturbation],
    *,
    bounds: Mapping[Output, tuple[float, float]] | None = None,
) -> pd.DataFrame:
    """Return how often each output scores the original higher than its perturbed version.

    ``ratio`` is the share of pairs whose score falls by more than the threshold, on a scale of 0 to 1: for any drop (threshold
    0) and for the perturbation's own threshold. The scale is that of ``bounds``, the lowest and highest possible score of
    (metric, output); an output without bounds has only the ratio for any drop. A pair's score is the mean over its scored
    responses, or the dialogue's score. Each dimension that a perturbation targets gets the output named after it or, if a
    metric has none, all outputs. ``ties`` is the share of pairs with equal scores; ``n`` counts pairs with both, ``coverage``
    is their share. The interval (:func:`comperdial.stats.proportions.share`) treats pairs from the same original as a cluster.
    Raises a SchemaError if no score belongs to a pair, or a score is outside its bounds.
    """
    dataset = str(pairs["dataset"].iloc[0])
    where = f"dataset {dataset!r}"
    check_scores(scores, dataset)
    for name in pairs["perturbation"].unique():
        if name not in perturbations:
            raise UnknownNameError("perturbation", name, perturbations, where=where)
    dialogue_of = contexts.set_index("context_id")["dialogue_id"]
    pair = scores["item_id"].map(dialogue_of).where(scores["level"] == "turn", scores["item_id"])
    here = scores.assign(pair=pair)[pair.isin(pairs.index) & scores["system_id"].isin(_SIDES)]
    for metric in sorted({*scores["metric"]} - {*here["metric"]}):
        expected = "the same dataset, item and system_id in scores and tables"
        raise SchemaError(f"no score of metric {metric!r} belongs to a pair", where=where, expected=expected)
    versions = here.groupby([*NAME, "pair", "system_id"], observed=True)["value"].mean().unstack("system_id")
    versions = versions.reindex(columns=_SIDES)
    signatures = scores.drop_duplicates("metric").set_index("metric")["signature"]
    names = sorted({(metric, output) for metric, output, _ in versions.index})
    rows: list[dict[str, Any]] = []
    for metric, output in names:
        both, scale = versions.loc[(metric, output)], (bounds or {}).get((metric, output))
        if scale is None:
            log.info("%s: no bounds of %s:%s, so the ratio for any drop alone", dataset, metric, output)
        low, high = scale or (np.nan, np.nan)
        values, slack = both.to_numpy(float), _ROUNDING * (high - low)
        if len(outside := values[(values < low - slack) | (values > high + slack)]):
            problem, of = f"a score of {outside[0]:g}, outside its bounds", f"{where}, {metric}:{output}"
            raise SchemaError(problem, where=of, expected=f"{low:g} to {high:g}")
        drops = both[ORIGINAL] - both[PERTURBED]
        # Means that differ only in the order of addition are ties.
        drops = drops.mask(drops.abs() <= TIED * both.abs().max(axis=1), 0.0)
        about = {"dataset": dataset, "metric": metric, "output": output, "signature": signatures[metric]}
        about |= {"lowest": low, "highest": high}
        for name, of_pairs in pairs.groupby("perturbation"):
            aim, mine = perturbations[str(name)], drops.reindex(of_pairs.index).dropna()
            # An output named after a dimension applies only to this dimension.
            aimed = [one for one in aim.dimensions if output == one or (metric, one) not in names]
            for threshold in dict.fromkeys([0.0, float(aim.threshold)] if scale else [0.0]):
                least = (threshold + _ROUNDING) * (high - low) if threshold else 0.0
                fell = share(mine > least, of_pairs.loc[mine.index, "original"])
                numbers: dict[str, Any] = {"ratio": fell.value, "low": fell.low, "high": fell.high, "n": fell.n}
                numbers |= {"ties": float((mine == 0).mean()), "coverage": fell.n / len(of_pairs)}
                numbers |= {"perturbation": name, "level": aim.level, "threshold": threshold}
                rows += [about | numbers | {"dimension": dimension} for dimension in aimed]
    table = pd.DataFrame(rows, columns=schema.table("ratios").columns)
    order = ["perturbation", "dimension", *NAME, "threshold"]
    return schema.validate(table.sort_values(order, ignore_index=True), "ratios")


def bounds_of(value: Mapping[str, Any]) -> dict[Output, tuple[float, float]]:
    """Return the lowest and highest score of each output in a JSON object.

    ``{metric: {output: [low, high]}}``; raises ConfigError for another format.
    """
    bounds = {}
    for metric, outputs in value.items():
        for output, pair in (outputs if isinstance(outputs, Mapping) else {"": outputs}).items():
            numbers = isinstance(pair, list | tuple) and all(type(one) in (int, float) for one in pair)
            if not numbers or len(pair) != 2 or not -math.inf < pair[0] < pair[1] < math.inf:
                where = f"bounds, {metric}, {output}".removesuffix(", ")
                raise ConfigError(f"{pair!r}", where=where, expected='{"output": [low, high]}, numbers, low below high')
            bounds[metric, output] = (float(pair[0]), float(pair[1]))
    return bounds


def drawn(contexts: pd.DataFrame, strategies: Sequence[str], sample: int, random: np.random.Generator) -> pd.DataFrame:
    """Return the contexts of at most ``sample`` random pairs per kind, in the table's order."""
    kinds, chosen = contexts["dialogue_id"].str.rpartition("-")[0], set[str]()
    for strategy in strategies:
        names = sorted(contexts.loc[kinds == strategy, "dialogue_id"].unique())
        chosen |= {names[place] for place in random.permutation(len(names))[:sample]}
    return contexts[contexts["dialogue_id"].isin(chosen)]
