"""What makes the numbers of tables and figures: correlations, their robustness, and the study's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from comperdial.core.artifact import files

if TYPE_CHECKING:
    from comperdial.jobs.plan import Plan
    from comperdial.stats import PairMeasure

_STUDY = "results/studies/llm_evaluators"

_RESULTS = "results/{dataset}"


def _rated(plan: Plan, dataset: str) -> dict[str, Any]:
    return {**plan.ratings(dataset), **plan.tables(dataset, "contexts", "systems")}


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """What is evaluated of a data set: its scores, the ratings they are compared with, and what is looked at in detail."""

    scores: Sequence[Path]
    contexts: Path
    systems: Path
    source: str
    levels: Sequence[str]
    detailed: Sequence[str]
    seed: int
    target: str | None = None
    main_target: str | None = None
    fixed: bool = False
    turn_ratings: Path | None = None
    dialogue_ratings: Path | None = None

    def samples(self) -> list[Any]:
        """Return the scores next to the ratings."""
        from comperdial import evaluation, schema
        from comperdial.evaluation import aggregate

        found = aggregate.read_scores(self.scores)
        names = found["dataset"].unique()
        dataset = names[0] if len(names) == 1 else None
        made = list(
            evaluation.samples(
                found,
                aggregate.read_ratings(self.turn_ratings, dataset=dataset) if self.turn_ratings else None,
                contexts=aggregate.read_contexts(self.contexts, dataset=dataset),
                dialogue_ratings=(
                    schema.read(self.dialogue_ratings, "dialogue_ratings") if self.dialogue_ratings else None
                ),
                systems=schema.read(self.systems, "systems"),
                source=self.source,
                levels=self.levels,
                allow_missing=True,
            )
        )
        return [sample.with_systems_given() for sample in made] if self.fixed else made

    def detail(self, samples: Sequence[Any], resamples: int | None = None, tests: Sequence[PairMeasure] = ()) -> Any:  # noqa: ANN401 - a Detail
        """Return which of these are looked at in detail, and how."""
        from comperdial.evaluation import Detail
        from comperdial.schema.dimensions import chosen_dimension

        rated = {sample.target for sample in samples}
        targets = [chosen_dimension(self.target, self.main_target, rated)] if samples else None
        # A data set may give nothing to the metrics that are looked at in most: then to all that have scores.
        there = {":".join(name) for sample in samples for name in sample.names}
        outputs = self.detailed if there & {*self.detailed} else None
        detail = Detail.named(outputs, targets, resamples or Detail.resamples, self.seed, tests)
        detail.check(samples, allow_missing=True)
        return detail


@files(
    {
        "correlations": f"{_RESULTS}/correlations.parquet",
        "ceilings": f"{_RESULTS}/ceilings.parquet",
        "comparisons": f"{_RESULTS}/comparisons.parquet",
    },
    of=lambda plan: plan.rated,
    told=Evaluated,
    inputs=lambda plan, dataset: {**_rated(plan, dataset), "scores": plan.scores(dataset)},
    settings=lambda plan, dataset: {
        **plan.evaluation_settings(dataset),
        "resamples": plan.config["evaluation"]["resamples"],
        "tests": plan.config["evaluation"].get("tests", []),
        "expected": plan.expected(dataset),
    },
    libraries=("scipy",),
)
def correlate(
    evaluated: Evaluated,
    *,
    outputs: Mapping[str, Path],
    resamples: int,
    expected: Mapping[str, Any],
    tests: Sequence[Literal["tau_c", "tau_23", "accuracy", "acc_eq", "spa"]] = (),
) -> None:
    """Correlate all scores of a data set with its ratings: values, intervals, ceilings and tests."""
    from comperdial import schema
    from comperdial.evaluation import results
    from comperdial.report.ranking import corrected, with_ranks

    found = results.correlate(
        evaluated.contexts.parent,
        evaluated.scores,
        outputs=evaluated.detailed,
        source=evaluated.source,
        target=evaluated.target,
        main_target=evaluated.main_target,
        levels=evaluated.levels,
        expected=expected,
        fixed=evaluated.fixed,
        tests=tests,
        resamples=resamples,
        seed=evaluated.seed,
    )
    columns = schema.table("comparisons").columns
    schema.write(outputs["comparisons"], corrected(found.pairs)[columns], "comparisons")
    schema.write(outputs["ceilings"], found.ceilings, "ceilings")
    schema.write(outputs["correlations"], with_ranks(found.correlations, found.pairs), "correlations")


@files(
    {"curves": f"{_RESULTS}/curves.parquet", "power": f"{_RESULTS}/power.parquet"},
    of=lambda plan: plan.rated,
    told=Evaluated,
    inputs=lambda plan, dataset: {
        **_rated(plan, dataset),
        "scores": plan.scores(dataset, plan.detailed_outputs(dataset)) or plan.scores(dataset),
        "judgements": plan.sampled_judgements(dataset),
    },
    settings=lambda plan, dataset: {**plan.evaluation_settings(dataset), **plan.config["evaluation"]["curves"]},
    libraries=("scipy",),
)
def robustness(
    evaluated: Evaluated,
    *,
    outputs: Mapping[str, Path],
    judgements: Sequence[Path],
    coefficient: Literal["pearson", "spearman", "kendall"],
    repeats: int,
) -> None:
    """Say how a data set's ranking of metrics holds with less data, and how often tests find a difference."""
    import pandas as pd

    from comperdial import evaluation, schema

    found = evaluated.samples()
    detail = evaluated.detail(found)
    subsampling = evaluation.Subsampling(coefficient, repeats, evaluated.seed)
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
    from comperdial.perturbations import PERTURBATIONS

    sets = [PairSet.read(responses.parent)]
    found = ratios(sets, read_scores_by_dataset(scores), PERTURBATIONS, bounds=bounds_of(bounds))
    schema.write(outputs["ratios"], found, "ratios")
