"""Robustness ratios: how often a score falls when what is scored was made worse (Zhang et al. 2024, Tables 7 and 8)."""

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, FileError, SchemaError, UnknownNameError
from comperdial.core.names import RATED_LEVELS, Output
from comperdial.evaluation.rated import dataset_of, matched
from comperdial.evaluation.samples import NAME, check_scores
from comperdial.metrics import Metric, scoring
from comperdial.perturbations import Perturbation
from comperdial.schema.evaluated import ORIGINAL, PERTURBED
from comperdial.stats.means import TIED, group_means
from comperdial.stats.proportions import share

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]
Bounds = Mapping[Output, tuple[float, float]]

# Scores are kept as float32: of two that differ by just the threshold, the difference may come out a little above it.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class PairSet:
    """Pairs of an original and its perturbed version, of one data set.

    Attributes
    ----------
    dataset
        Its name, as in the tables.
    pairs
        One row a pair (index: dialogue_id): ``perturbation``, and ``original``, which is the same for pairs that were
        made of the same text.
    pair_of
        The pair (dialogue_id) of each context.
    """

    dataset: str
    pairs: pd.DataFrame
    pair_of: pd.Series

    @classmethod
    def read(cls, folder: str | Path) -> PairSet:
        """Read a folder of tables: ``contexts`` and ``responses``.

        Raises
        ------
        FileError
            When there is no such folder.
        SchemaError
            When it holds several data sets, or a pair is not one: a dialogue with responses of the systems ``original``
            and ``perturbed``, called ``<perturbation>-<number>``.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise FileError("no such folder", where=str(folder), expected="a folder of one data set's tables")
        contexts = schema.read(folder / "contexts.parquet", "contexts")
        responses = schema.read(folder / "responses.parquet", "responses")
        return cls.of(dataset_of(folder, contexts, responses), contexts, responses)

    @classmethod
    def of(cls, dataset: str, contexts: pd.DataFrame, responses: pd.DataFrame) -> PairSet:
        """Return the pairs of one data set's tables; errors as :meth:`read`."""
        where = f"dataset {dataset!r}"
        rows = responses.merge(contexts[["context_id", "dialogue_id", "turn", "history"]], on="context_id")
        if len(rows) < len(responses):
            lost = responses.loc[~responses["context_id"].isin(contexts["context_id"]), "context_id"].iloc[0]
            raise SchemaError(f"context {lost!r} is not in the table", where=where, expected="a context each response")
        systems: dict[str, set[str]] = {}
        for dialogue, system in rows[["dialogue_id", "system_id"]].drop_duplicates().itertuples(index=False, name=None):
            systems.setdefault(dialogue, set()).add(system)
        for dialogue, found in sorted(systems.items()):
            if found != {ORIGINAL, PERTURBED}:
                raise SchemaError(
                    f"dialogue {dialogue!r} has responses of {', '.join(sorted(found))}",
                    where=where,
                    expected=f"a pair: the systems {ORIGINAL} and {PERTURBED}",
                )
            if not dialogue.rpartition("-")[0]:
                raise SchemaError(f"dialogue {dialogue!r}", where=where, expected="<perturbation>-<number>")
        # The last response and what went before it are the whole text.
        last = rows[rows["system_id"] == ORIGINAL].sort_values("turn", kind="stable").drop_duplicates(
            "dialogue_id", keep="last"
        )  # fmt: skip
        parts = zip(last["dialogue_id"], last["history"], last["response"], strict=True)
        text = {
            dialogue: (*((one["speaker"], one["text"]) for one in history), response)
            for dialogue, history, response in parts
        }
        index = pd.Index(sorted(systems), name="dialogue_id")
        pairs = pd.DataFrame(
            {
                "perturbation": [name.rpartition("-")[0] for name in index],
                "original": pd.factorize(pd.Series([text[name] for name in index], dtype=object))[0],
            },
            index=index,
        )
        return cls(dataset, pairs, contexts.set_index("context_id")["dialogue_id"])

    def scored(self, scores: pd.DataFrame) -> tuple[list[Output], Floats, Floats]:
        """Return outputs and the scores of originals and perturbed versions: shapes (outputs, pairs), NaN where none.

        A pair's score is the mean over its responses that have a score, or the score of the dialogue.
        """
        check_scores(scores, self.dataset)
        turns, wholes = (scores[scores["level"] == level] for level in RATED_LEVELS)
        pair = np.concatenate([self.pair_of.reindex(turns["item_id"]).to_numpy(), wholes["item_id"].to_numpy()])
        frame = pd.concat([turns, wholes], ignore_index=True).assign(pair=pair)
        here = frame["pair"].isin(self.pairs.index) & frame["system_id"].isin([ORIGINAL, PERTURBED])
        for metric in sorted(frame["metric"].unique()):
            mine = here[frame["metric"] == metric]
            if not mine.any():
                raise SchemaError(
                    f"no score of metric {metric!r} belongs to a pair",
                    where=f"dataset {self.dataset!r}",
                    expected="the same dataset, item and system_id in scores and tables",
                )
            if lost := int((~mine).sum()):
                log.warning("%s: %d of %d scores belong to no pair", metric, lost, len(mine))
        frame = frame[here]
        columns = self.pairs.index.get_indexer(pd.Index(frame["pair"]))
        outputs = pd.MultiIndex.from_frame(frame[NAME])
        names = sorted({(str(name[0]), str(name[1])) for name in outputs.unique()})
        cells = pd.MultiIndex.from_tuples(names).get_indexer(outputs) * len(self.pairs) + columns
        sides = []
        for system in (ORIGINAL, PERTURBED):
            mine = (frame["system_id"] == system).to_numpy()
            values = frame["value"].to_numpy(dtype=np.float64)[mine]
            shape = (len(names), len(self.pairs))
            sides.append(group_means(values, cells[mine], shape[0] * shape[1]).reshape(shape))
        return names, sides[0], sides[1]


def bounds_of(value: Mapping[str, Any]) -> dict[Output, tuple[float, float]]:
    """Return the lowest and the highest score of each output that a JSON object names.

    ``{metric: {output: [low, high]}}``; raises ConfigError when it has another form.
    """
    found = {}
    for metric, outputs in sorted(value.items()):
        if not isinstance(outputs, Mapping):
            raise ConfigError("no object", where=f"bounds, {metric}", expected='{"output": [low, high]}')
        for output, pair in sorted(outputs.items()):
            numbers = isinstance(pair, list | tuple) and len(pair) == 2 and all(_is_number(end) for end in pair)
            if not numbers or not pair[0] < pair[1]:
                raise ConfigError(
                    f"{pair!r}", where=f"bounds, {metric}, {output}", expected="[low, high], numbers, low below high"
                )
            found[metric, output] = (float(pair[0]), float(pair[1]))
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def ratios(
    sets: Sequence[PairSet],
    scores: Mapping[str, pd.DataFrame],
    perturbations: Mapping[str, Perturbation],
    *,
    bounds: Bounds | None = None,
) -> pd.DataFrame:
    """Return how often each output scores the original higher than its perturbed version.

    Parameters
    ----------
    sets
        Sets of pairs.
    scores
        Table ``scores`` of each data set.
    perturbations
        By name, as in the pairs: level, dimensions aimed at, threshold.
    bounds
        The lowest and the highest possible score of (metric, output). An output without them has no scale, and only
        the ratio of threshold 0, which needs none.

    Returns
    -------
    DataFrame
        Table ``ratios``. ``ratio`` is the share of pairs whose score falls by more than the threshold, on a scale of 0
        to 1; there is one for any drop (threshold 0) and one for the perturbation's own. Each dimension that a
        perturbation aims at has the output called like it, or, of a metric without such a one, all outputs. ``ties``
        is the share of pairs with equal scores; ``n`` counts pairs with both, ``coverage`` is their share. The
        interval (:func:`comperdial.stats.proportions.share`) knows which pairs were made of the same original.

    Raises
    ------
    SchemaError
        When scores belong to no pair, lie outside their bounds, or a data set lacks scores.
    UnknownNameError
        When a pair's perturbation is not known.
    """
    matched(scores, [one.dataset for one in sets])
    rows: list[dict[str, Any]] = []
    for one in sorted(sets, key=lambda pairs: pairs.dataset):
        rows += _of_set(one, scores[one.dataset], perturbations, bounds or {})
    return schema.validate(pd.DataFrame(rows, columns=schema.table("ratios").columns), "ratios")


def _of_set(
    one: PairSet, scores: pd.DataFrame, perturbations: Mapping[str, Perturbation], bounds: Bounds
) -> Iterator[dict[str, Any]]:
    names, original, perturbed = one.scored(scores)
    signatures = dict(scores[["metric", "signature"]].drop_duplicates().itertuples(index=False, name=None))
    if unscaled := sorted({":".join(name) for name in names if name not in bounds}):
        log.info("%s: no bounds, so threshold 0 only: %s", one.dataset, ", ".join(unscaled))
    originals = one.pairs["original"].to_numpy()
    for name in sorted(one.pairs["perturbation"].unique()):
        if name not in perturbations:
            raise UnknownNameError("perturbation", name, perturbations, where=f"dataset {one.dataset!r}")
        of = perturbations[name]
        mine = (one.pairs["perturbation"] == name).to_numpy()
        for dimension in of.dimensions:
            for at in _standing(names, dimension):
                drops = _Drops(original[at, mine], perturbed[at, mine], originals[mine], bounds.get(names[at]))
                drops.check(f"dataset {one.dataset!r}, {name}, {':'.join(names[at])}")
                for threshold in dict.fromkeys([0.0, float(of.threshold)] if names[at] in bounds else [0.0]):
                    yield {
                        "dataset": one.dataset,
                        "perturbation": name,
                        "level": of.level,
                        "dimension": dimension,
                        "metric": names[at][0],
                        "output": names[at][1],
                        "threshold": threshold,
                        **drops.record(threshold),
                        "coverage": drops.n / int(mine.sum()),
                        "signature": signatures[names[at][0]],
                    }


def _standing(names: Sequence[Output], dimension: str) -> Iterator[int]:
    """Go through the outputs that stand for a dimension."""
    own = {metric for metric, output in names if output == dimension}
    for at, (metric, output) in enumerate(names):
        if output == dimension or metric not in own:
            yield at


class _Drops:
    """How far one output's scores fall, pair by pair."""

    def __init__(
        self, original: Floats, perturbed: Floats, clusters: npt.NDArray[Any], bounds: tuple[float, float] | None
    ) -> None:
        both = ~(np.isnan(original) | np.isnan(perturbed))
        self.original, self.perturbed, self.clusters = original[both], perturbed[both], clusters[both]
        self.bounds, self.n = bounds, int(both.sum())
        # Means that differ only in the order of adding are ties.
        self.drops = self.original - self.perturbed
        self.drops[np.abs(self.drops) <= TIED * np.maximum(np.abs(self.original), np.abs(self.perturbed))] = 0.0

    def check(self, where: str) -> None:
        """Refuse a score outside its bounds."""
        if self.bounds is None:
            return
        low, high = self.bounds
        slack = _ROUNDING * (high - low)
        for side in (self.original, self.perturbed):
            if (wrong := side[(side < low - slack) | (side > high + slack)]).size:
                raise SchemaError(
                    f"a score of {wrong[0]:g}, outside its bounds", where=where, expected=f"{low:g} to {high:g}"
                )

    def record(self, threshold: float) -> dict[str, Any]:
        """Return the ratio for a threshold, its interval, ties and the number of pairs."""
        least = 0.0
        if threshold and self.bounds:
            least = (threshold + _ROUNDING) * (self.bounds[1] - self.bounds[0])
        found = share(self.drops > least, self.clusters)
        ties = float((self.drops == 0).mean()) if self.n else float("nan")
        return {"ratio": found.value, "low": found.low, "high": found.high, "ties": ties, "n": found.n}


# Scoring a sample of the pairs


def drawn(contexts: pd.DataFrame, strategies: Sequence[str], sample: int, random: np.random.Generator) -> pd.DataFrame:
    """Return the contexts of pairs of some kinds, of each kind no more pairs than ``sample``, in the table's order."""
    kinds = contexts["dialogue_id"].str.rpartition("-")[0]
    chosen: set[str] = set()
    for strategy in strategies:
        names = sorted(contexts.loc[kinds == strategy, "dialogue_id"].unique())
        order = random.permutation(len(names))[:sample]
        chosen |= {names[place] for place in order}
    return contexts[contexts["dialogue_id"].isin(chosen)]


def score_pairs(
    folder: str | Path,
    metrics: Mapping[str, Metric],
    output: str | Path,
    *,
    strategies: Sequence[str],
    sample: int,
    seed: int,
    perturbations: Mapping[str, Perturbation],
) -> pd.DataFrame:
    """Score pairs of some kinds, drawn at random, and say how often the original's score is higher.

    Parameters
    ----------
    folder
        The tables of a set of pairs.
    metrics
        By the name to call each in the table.
    output
        The file of table ``scores`` to write.
    strategies, sample
        The kinds of pairs, and the most pairs of each.
    seed
        Of the draw.
    perturbations
        As in :func:`ratios`.

    Returns
    -------
    DataFrame
        Table ``ratios``.
    """
    tables = {
        name: schema.read(Path(folder) / f"{name}.parquet", name) for name in ("systems", "contexts", "responses")
    }
    tables["contexts"] = drawn(tables["contexts"], strategies, sample, np.random.default_rng(seed))
    kept = tables["responses"]["context_id"].isin(tables["contexts"]["context_id"])
    tables["responses"] = tables["responses"][kept]
    with tempfile.TemporaryDirectory() as part:
        for name, frame in tables.items():
            schema.write(Path(part) / f"{name}.parquet", frame, name)
        scoring.score_all(metrics, part, output)
        pairs = PairSet.read(part)
    scored = schema.read(output, "scores")
    return ratios([pairs], {pairs.dataset: scored}, perturbations) if len(scored) else schema.empty("ratios")
