"""What makes the numbers of tables and figures: correlations, their robustness, and the study's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from comperdial.core.artifact import files

if TYPE_CHECKING:
    from comperdial.jobs.plan import Plan

_STUDY = "results/llm_evaluators"

_RESULTS = "results/correlations/{dataset}"


def _rated(plan: Plan, dataset: str) -> dict[str, Any]:
    return {**plan.ratings(dataset), **plan.tables(dataset, "contexts", "systems")}


def _samples(
    scores: Sequence[Path],
    turn_ratings: Path | None,
    dialogue_ratings: Path | None,
    contexts: Path,
    systems: Path,
    source: str,
    levels: Sequence[str],
) -> Any:  # noqa: ANN401 - a list of samples
    from comperdial import evaluation, schema
    from comperdial.evaluation import aggregate

    found = aggregate.read_scores(scores)
    names = found["dataset"].unique()
    dataset = names[0] if len(names) == 1 else None
    return list(
        evaluation.samples(
            found,
            aggregate.read_ratings(turn_ratings, dataset=dataset) if turn_ratings else None,
            contexts=aggregate.read_contexts(contexts, dataset=dataset),
            dialogue_ratings=schema.read(dialogue_ratings, "dialogue_ratings") if dialogue_ratings else None,
            systems=schema.read(systems, "systems"),
            source=source,
            levels=levels,
            allow_missing=True,
        )
    )


def _detail(
    samples: Sequence[Any],
    outputs: Sequence[str],
    target: str | None,
    main_target: str | None,
    resamples: int,
    seed: int,
) -> Any:  # noqa: ANN401 - a Detail
    from comperdial.evaluation import Detail
    from comperdial.schema.dimensions import chosen_dimension

    targets = [chosen_dimension(target, main_target, {sample.target for sample in samples})] if samples else None
    # A data set may give nothing to the metrics that are looked at in most: then to all that have scores.
    there = {":".join(name) for sample in samples for name in sample.names}
    detail = Detail.named(outputs if there & set(outputs) else None, targets, resamples, seed)
    detail.check(samples, allow_missing=True)
    return detail


@files(
    {
        "correlations": f"{_RESULTS}.parquet",
        "ceilings": f"{_RESULTS}_ceilings.parquet",
        "comparisons": f"{_RESULTS}_comparisons.parquet",
    },
    of=lambda plan: plan.rated,
    inputs=lambda plan, dataset: {**_rated(plan, dataset), "scores": plan.scores(dataset)},
    settings=lambda plan, dataset: {
        **plan.evaluation_settings(dataset),
        "resamples": plan.config["evaluation"]["resamples"],
        "expected": plan.expected(dataset),
    },
    libraries=("scipy",),
)
def correlate(
    *,
    outputs: Mapping[str, Path],
    scores: Sequence[Path],
    contexts: Path,
    systems: Path,
    source: str,
    levels: Sequence[str],
    detailed: Sequence[str],
    resamples: int,
    seed: int,
    expected: Mapping[str, Any],
    target: str | None = None,
    main_target: str | None = None,
    turn_ratings: Path | None = None,
    dialogue_ratings: Path | None = None,
) -> None:
    """Correlate all scores of a data set with its ratings: values, intervals, ceilings and tests."""
    from comperdial import evaluation, schema

    found = _samples(scores, turn_ratings, dialogue_ratings, contexts, systems, source, levels)
    detail = _detail(found, detailed, target, main_target, resamples, seed)
    why = evaluation.Expected.of(expected, schema.read(contexts, "contexts"))
    correlations = evaluation.correlations(found, detail=detail, expected=why)
    comparisons = evaluation.comparisons(found, detail=detail)
    schema.write(outputs["comparisons"], comparisons, "comparisons")
    schema.write(outputs["ceilings"], evaluation.ceilings(found), "ceilings")
    schema.write(outputs["correlations"], evaluation.ranked(correlations, comparisons), "correlations")


@files(
    {"curves": f"{_RESULTS}_curves.parquet", "power": f"{_RESULTS}_power.parquet"},
    of=lambda plan: plan.rated,
    inputs=lambda plan, dataset: {
        **_rated(plan, dataset),
        "scores": plan.scores(dataset, plan.detailed_outputs(dataset)) or plan.scores(dataset),
        "judgements": plan.sampled_judgements(dataset),
    },
    settings=lambda plan, dataset: {**plan.evaluation_settings(dataset), **plan.config["evaluation"]["curves"]},
    libraries=("scipy",),
)
def robustness(
    *,
    outputs: Mapping[str, Path],
    scores: Sequence[Path],
    contexts: Path,
    systems: Path,
    judgements: Sequence[Path],
    source: str,
    levels: Sequence[str],
    detailed: Sequence[str],
    coefficient: Literal["pearson", "spearman", "kendall"],
    repeats: int,
    seed: int,
    target: str | None = None,
    main_target: str | None = None,
    turn_ratings: Path | None = None,
    dialogue_ratings: Path | None = None,
) -> None:
    """Say how a data set's ranking of metrics holds with less data, and how often tests find a difference."""
    import pandas as pd

    from comperdial import evaluation, schema

    found = _samples(scores, turn_ratings, dialogue_ratings, contexts, systems, source, levels)
    detail = _detail(found, detailed, target, main_target, evaluation.Detail.resamples, seed)
    subsampling = evaluation.Subsampling(coefficient, repeats, seed)
    answers = [schema.read(path, "judgements") for path in judgements]
    curves = evaluation.curves(
        found,
        detail=detail,
        subsampling=subsampling,
        judgements=pd.concat(answers, ignore_index=True) if answers else None,
    )
    schema.write(outputs["curves"], curves, "curves")
    schema.write(outputs["power"], evaluation.power(found, detail=detail, subsampling=subsampling), "power")


@files(
    {"correlations": f"{_STUDY}/correlations.parquet", "rounds": f"{_STUDY}/rounds.parquet"},
    of=lambda plan: [{}] if plan.study else [],
    inputs=lambda plan: {
        "tables": plan.study_tables(*plan.studied),
        "scores": [path for name in plan.studied for path in plan.study_scores(name)],
    },
    settings=lambda plan: {
        "folders": [f"data/tables/{name}" for name in plan.studied],
        "detailed": plan.study_outputs(),
        "ensembles": plan.study_ensembles(),
        "own": dict.fromkeys(plan.recorded_rounds(), "gpt-4"),
        "resamples": plan.study["resamples"],
        "seed": plan.study["seed"],
    },
    libraries=("scipy",),
)
def study_correlations(
    *,
    outputs: Mapping[str, Path],
    tables: Sequence[Path],
    scores: Sequence[Path],
    folders: Sequence[str],
    detailed: Sequence[str],
    ensembles: Mapping[str, Any],
    own: Mapping[str, str],
    resamples: int,
    seed: int,
) -> None:
    """Correlate the study's scores with the ratings of each dimension, by who rated."""
    from comperdial import schema
    from comperdial.evaluation import dimensions
    from comperdial.evaluation.ensembles import Ensembles
    from comperdial.evaluation.rounds import rounds

    sets = [dimensions.RatedSet.read(folder) for folder in folders]
    found = dimensions.dimension_correlations(
        sets,
        dimensions.read_scores_by_dataset(scores),
        ensembles=Ensembles.of(ensembles),
        outputs={dimensions.output_name(name) for name in detailed},
        own=dict(own),
        resamples=resamples,
        seed=seed,
    )
    schema.write(outputs["rounds"], rounds(sets), "rounds")
    schema.write(outputs["correlations"], found, "dimension_correlations")


@files(
    {"ratios": f"{_STUDY}/{{dataset}}_ratios.parquet"},
    of=lambda plan: plan.paired,
    inputs=lambda plan, dataset: {
        **plan.tables(dataset, "systems", "contexts", "responses"),
        "scores": plan.study_scores(dataset),
    },
    settings=lambda plan, dataset: {"bounds": plan.study_bounds(dataset)},
    libraries=("scipy",),
)
def study_ratios(
    *,
    outputs: Mapping[str, Path],
    systems: Path,
    contexts: Path,
    responses: Path,
    scores: Sequence[Path],
    bounds: Mapping[str, Any],
) -> None:
    """Say how often scores fall when responses and dialogues are made worse."""
    from comperdial import schema
    from comperdial.evaluation.dimensions import read_scores_by_dataset
    from comperdial.evaluation.ratios import PairSet, bounds_of, ratios
    from comperdial.perturbations.registry import PERTURBATIONS

    sets = [PairSet.read(responses.parent)]
    found = ratios(sets, read_scores_by_dataset(scores), PERTURBATIONS, bounds=bounds_of(bounds))
    schema.write(outputs["ratios"], found, "ratios")
