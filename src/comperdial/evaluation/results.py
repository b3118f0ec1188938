"""Compute the tables ``correlations``, ``pairs`` and ``ceilings`` from scores and ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from comperdial import schema
from comperdial.core.names import LEVELS, output_name
from comperdial.evaluation.ceilings import ceilings
from comperdial.evaluation.comparisons import evaluate
from comperdial.evaluation.correlations import SHOWN, Detail, correlations, rows_of
from comperdial.evaluation.expected import Expected
from comperdial.evaluation.options import Options, analysed
from comperdial.evaluation.samples import Sample, Tables
from comperdial.schema.dimensions import main_dimension
from comperdial.stats import PairMeasure
from comperdial.stats.pairs import within_items

# Names of another source's ratings used as scores: metric ``gpt-4_recorded``, output ``mean``.
RECORDED, MEAN = "{}_recorded", "mean"


class Results(NamedTuple):
    """The three tables, and notes on how they were made."""

    correlations: pd.DataFrame
    pairs: pd.DataFrame
    ceilings: pd.DataFrame
    notes: Sequence[str] = ()


def correlate(
    tables: Tables,
    *,
    outputs: Sequence[str] | None = None,
    compared: Sequence[str] = (),
    restricted: Sequence[str] = (),
    raters: Sequence[str] = (),
    targets: Sequence[str] | None = None,
    main_target: str | None = None,
    levels: Sequence[str] = LEVELS,
    expected: Expected | None = None,
    options: Options | None = None,
    allow_missing: bool = True,
    tests: Sequence[PairMeasure] = (),
    resamples: int = Detail.resamples,
    seed: int = Detail.seed,
) -> Results:
    """Correlate all scores with the ratings; corrections and ranks are left to the tables that show them.

    Parameters
    ----------
    outputs, targets, main_target
        What gets intervals, all statistics and all tests; see :func:`detail_of`.
    compared
        METRIC:OUTPUT with intervals and tests of Pearson and Spearman, at the rated level.
    restricted
        METRIC:OUTPUT also correlated within systems and without human systems (grouping ``agents``).
    raters
        Other sources of ratings, whose mean rating of a response is used as a score.
    expected
        The metrics that were run.
    levels, options, allow_missing, tests, resamples, seed
        As in :func:`comperdial.evaluation.options.analysed` and :class:`comperdial.evaluation.Detail`; with 0 resamples there
        are only values.
    """
    tables, options = with_raters(tables, raters), options or Options()
    samples, notes = analysed(tables, options, levels=levels, allow_missing=allow_missing)
    if not resamples:
        return Results(correlations(samples, expected=expected), schema.empty("pairs"), ceilings(samples), notes)
    detail = detail_of(samples, outputs, targets, main_target, resamples=resamples, seed=seed, tests=tests)
    detail = replace(detail, also=[output_name(name) for name in compared])
    detail.check(samples, allow_missing=allow_missing)
    result, pairs = evaluate(samples, detail=detail, expected=expected)
    more = [*_within_systems(samples, result, detail, restricted), *_agents(tables, detail, restricted, options)]
    if more:
        result = schema.validate(pd.concat([result, pd.DataFrame(more)], ignore_index=True), "correlations")
    return Results(result, pairs, ceilings(samples), notes)


def detail_of(
    samples: Sequence[Sample],
    outputs: Sequence[str] | None,
    targets: Sequence[str] | None,
    main_target: str | None,
    *,
    resamples: int = Detail.resamples,
    seed: int = Detail.seed,
    tests: Sequence[PairMeasure] = (),
) -> Detail:
    """Return what to compute in detail.

    ``outputs`` are the main ones, as METRIC:OUTPUT; all if none of them has a score. ``targets`` are the rated dimensions;
    default: the one closest to ``main_target``, or all without one.
    """
    scored = {":".join(name) for sample in samples for name in sample.names}
    chosen = outputs if outputs is not None and scored & {*outputs} else None
    if targets is None and main_target and samples:
        targets = [main_dimension(main_target, {sample.target for sample in samples})]
    return Detail.named(chosen, targets, resamples, seed, tests)


def with_raters(tables: Tables, sources: Sequence[str]) -> Tables:
    """Add other sources' mean ratings of responses as scores; sources without ratings are skipped."""
    frames = [tables.scores]
    for source in sources:
        ratings = tables.ratings[(tables.ratings["level"] == "turn") & (tables.ratings["source"] == source)]
        if ratings.empty or source == tables.source:
            continue
        means = ratings.groupby(["dataset", "level", "item_id", "system_id"])["rating"].mean().rename("value")
        dimensions = "+".join(sorted(ratings["dimension"].unique()))
        signature = f"recorded ratings|by:{source}|mean of:{dimensions}"
        made = means.reset_index().assign(metric=RECORDED.format(source), output=MEAN, cut=0, signature=signature)
        frames.append(schema.validate(made, "scores"))
    return replace(tables, scores=pd.concat(frames, ignore_index=True)) if len(frames) > 1 else tables


def _within_systems(
    samples: Sequence[Sample], result: pd.DataFrame, detail: Detail, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Average the coefficients within each system, of responses, for outputs without such rows."""
    has = result[result["grouping"] == "system"]
    wanted = [output_name(name) for name in names if name not in {*(has["metric"] + ":" + has["output"])}]
    rows: list[dict[str, Any]] = []
    for sample in samples:
        if sample.level == "turn" and detail.of(sample) and len(sample.systems) > 1:
            part = sample.only(wanted)
            for coefficient in SHOWN:
                values, counts = within_items(part.scores, part.ratings, part.design.systems, coefficient)
                rows += rows_of(part, "system", coefficient, values, counts)
    return rows


def _agents(tables: Tables, detail: Detail, names: Sequence[str], options: Options) -> list[Any]:
    """Correlate some outputs without the responses of human systems, if there are both kinds of systems."""
    if tables.systems is None:
        return []
    human = tables.systems.loc[tables.systems["kind"] == "human", "system_id"]
    scores, ratings = (
        frame[(frame["level"] == "turn") & ~frame["system_id"].isin(human)] for frame in (tables.scores, tables.ratings)
    )
    scores = scores[(scores["metric"] + ":" + scores["output"]).isin(list(names))]
    if not tables.ratings["system_id"].isin(human).any() or ratings.empty or scores.empty:
        return []
    some = replace(tables, scores=scores, ratings=ratings)
    samples, _ = analysed(some, options, levels=["turn"], allow_missing=True)
    alone = [sample for sample in samples if replace(detail, outputs=None).of(sample)]
    frame = correlations(alone, detail=replace(detail, outputs=None, only=SHOWN, also=(), tests=()))
    return frame.assign(grouping="agents").to_dict("records")
