"""Everything that a data set's scores say about its ratings: tables ``correlations``, ``pairs`` and ``ceilings``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from comperdial import schema
from comperdial.core.errors import FileError
from comperdial.core.names import LEVELS, output_name
from comperdial.evaluation.ceilings import ceilings
from comperdial.evaluation.comparisons import evaluate
from comperdial.evaluation.correlations import SHOWN, Detail, correlations, rows_of
from comperdial.evaluation.expected import Expected
from comperdial.evaluation.options import Tables
from comperdial.evaluation.samples import Sample
from comperdial.schema.dimensions import chosen_dimension
from comperdial.stats import PairMeasure
from comperdial.stats.pairs import within_items

# What the ratings of another source are called as scores: metric ``gpt-4_recorded``, output ``mean``.
RECORDED, MEAN = "{}_recorded", "mean"


class Results(NamedTuple):
    """The three tables."""

    correlations: pd.DataFrame
    pairs: pd.DataFrame
    ceilings: pd.DataFrame


def correlate(
    folder: str | Path,
    score_files: Sequence[str | Path],
    *,
    outputs: Sequence[str] | None = None,
    compared: Sequence[str] = (),
    restricted: Sequence[str] = (),
    raters: Sequence[str] = (),
    source: str = "human",
    target: str | None = None,
    main_target: str | None = None,
    levels: Sequence[str] = LEVELS,
    expected: Mapping[str, Any] | None = None,
    fixed: bool = False,
    tests: Sequence[PairMeasure] = (),
    resamples: int = Detail.resamples,
    seed: int = Detail.seed,
) -> Results:
    """Correlate all scores of a data set with its ratings.

    Parameters
    ----------
    folder
        The data set's tables.
    score_files
        Tables ``scores``.
    outputs
        METRIC:OUTPUT of the main outputs: they have intervals, all statistics and all tests. If none of them has a score
        here, or without any, all outputs are main.
    compared
        METRIC:OUTPUT of what studies show: at the level that was rated, they have intervals of Pearson and Spearman, and
        tests of these.
    restricted
        METRIC:OUTPUT of what is also correlated within systems (grouping ``system``) and without the responses of human
        systems (grouping ``agents``).
    raters
        Other sources of ratings, whose mean rating of a response is taken as a score.
    source
        Whose ratings.
    target, main_target
        The dimension that has intervals and tests, as :func:`comperdial.schema.dimensions.chosen_dimension` takes it.
    levels
        Of ``turn``, ``dialogue`` and ``system``.
    expected
        The metrics that were run, as :func:`comperdial.metrics.scoring.expected_of` describes them.
    fixed
        Whether systems are given, so that contexts alone count as sampled.
    tests, resamples, seed
        As in :class:`comperdial.evaluation.Detail`.

    Returns
    -------
    Results
        Neither corrected nor ranked: that depends on what a table shows (:mod:`comperdial.report.ranking`).
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileError("no such folder", where=str(folder), expected="a folder of one data set's tables")
    tables = with_raters(Tables.read(folder, score_files, source), raters)
    samples = _sampled(tables, levels, fixed)
    rated = {sample.target for sample in samples}
    targets = [chosen_dimension(target, main_target, rated)] if samples else None
    scored = {":".join(name) for sample in samples for name in sample.names}
    chosen = outputs if outputs is not None and scored & {*outputs} else None
    detail = replace(
        Detail.named(chosen, targets, resamples, seed, tests), also=[output_name(name) for name in compared]
    )
    detail.check(samples, allow_missing=True)
    contexts = folder / "contexts.parquet"
    why = Expected.of(expected, schema.read(contexts, "contexts")) if expected else None
    result, pairs = evaluate(samples, detail=detail, expected=why)
    parts = [result, _within_systems(samples, result, detail, restricted), _agents(tables, detail, restricted, fixed)]
    parts = [part for part in parts if len(part)]
    return Results(
        schema.validate(pd.concat(parts, ignore_index=True), "correlations") if len(parts) > 1 else result,
        pairs,
        ceilings(samples),
    )


def _sampled(tables: Tables, levels: Sequence[str], fixed: bool) -> list[Sample]:
    result = tables.samples(levels, allow_missing=True)
    return [sample.with_systems_given() for sample in result] if fixed else result


def with_raters(tables: Tables, sources: Sequence[str]) -> Tables:
    """Add the mean ratings of responses by other sources as scores; sources that rated none add nothing."""
    frames = [tables.scores]
    for source in sources:
        ratings = tables.ratings[(tables.ratings["level"] == "turn") & (tables.ratings["source"] == source)]
        if ratings.empty or source == tables.source:
            continue
        unit = ["dataset", "level", "item_id", "system_id"]
        means = ratings.groupby(unit)["rating"].mean().rename("value").reset_index()
        dimensions = "+".join(sorted(ratings["dimension"].unique()))
        frame = means.assign(
            metric=RECORDED.format(source), output=MEAN, cut=0,
            signature=f"recorded ratings|by:{source}|mean of:{dimensions}",
        )  # fmt: skip
        frames.append(schema.validate(frame[schema.table("scores").columns], "scores"))
    return replace(tables, scores=pd.concat(frames, ignore_index=True)) if len(frames) > 1 else tables


def _within_systems(
    samples: Iterable[Sample], result: pd.DataFrame, detail: Detail, names: Sequence[str]
) -> pd.DataFrame:
    """Average the coefficients within each system, of responses, for outputs that have no such rows yet.

    ``n`` counts systems, as in all rows within systems.
    """
    has = result[result["grouping"] == "system"]
    known = set((has["metric"] + ":" + has["output"]).unique())
    wanted = [output_name(name) for name in names if name not in known]
    rows: list[dict[str, Any]] = []
    for sample in samples:
        if sample.level != "turn" or sample.target not in (detail.targets or ()) or len(sample.systems) < 2:
            continue
        part = sample.only(wanted)
        for coefficient in SHOWN:
            values, counts = within_items(part.scores, part.ratings, part.design.systems, coefficient)
            rows += rows_of(part, "system", coefficient, values, counts)
    return pd.DataFrame(rows)


def _agents(tables: Tables, detail: Detail, names: Sequence[str], fixed: bool) -> pd.DataFrame:
    """Correlate some outputs without the responses of human systems, if there are such systems and others."""
    ratings, systems = tables.ratings[tables.ratings["level"] == "turn"], tables.systems
    none = pd.DataFrame()
    if systems is None or not names:
        return none
    human = ratings["system_id"].isin(systems.loc[systems["kind"] == "human", "system_id"])
    scores = tables.scores
    scores = scores[(scores["metric"] + ":" + scores["output"]).isin(list(names)) & (scores["level"] == "turn")]
    left = ratings[~human]
    scores = scores[scores["system_id"].isin(left["system_id"])]
    if not human.any() or left.empty or scores.empty:
        return none
    some = replace(tables, scores=scores, ratings=left)
    alone = [sample for sample in _sampled(some, ["turn"], fixed) if sample.target in (detail.targets or ())]
    result = correlations(alone, detail=replace(detail, outputs=None, only=SHOWN, also=(), tests=()))
    return result.assign(grouping="agents")
