"""Our own figures, for every rated data set that has what they show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial import schema
from comperdial.core.artifact import figure
from comperdial.report.captions import captioned
from comperdial.schema.dimensions import chosen_dimension

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from comperdial.jobs.plan import Plan
    from comperdial.report.plots import data


def plots_of(plan: Plan, dataset: str) -> list[str]:
    """Return the figures that a rated data set has what it needs for."""
    by_turn = dataset in plan.by_turn
    kinds = ["heatmap", *(["scatter", "length_bias"] if by_turn else []), "slope", "curves"]
    return [*kinds, *(["judge_agreement"] if plan.judge_outputs(dataset) and by_turn else [])]


def _of(kind: str) -> Any:  # noqa: ANN401 - a function of the plan
    return lambda plan: [dataset for dataset in plan.rated if kind in plots_of(plan, dataset)]


def _tables(plan: Plan, dataset: str) -> dict[str, Any]:
    return plan.tables(dataset, "contexts", "responses", "systems", "ratings")


def _scores(plan: Plan, kind: str, dataset: str) -> list[str]:
    return plan.scores(dataset, plan.figure_outputs(kind, dataset)) or plan.scores(dataset)


def _shown(plan: Plan, kind: str, dataset: str) -> dict[str, Any]:
    return plan.figure_settings(dataset, plan.figure_outputs(kind, dataset))


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is drawn of a data set: which outputs, of the ratings by whom in which dimension."""

    title: str
    labels: Mapping[str, str]
    outputs: Sequence[str]
    source: str
    target: str | None = None
    main_target: str | None = None

    @property
    def names(self) -> list[tuple[str, str]] | None:
        """Return the outputs by metric and output; None for all."""
        from comperdial.report.plots.style import parse_outputs

        return parse_outputs(self.outputs) or None

    @property
    def about(self) -> dict[str, Any]:
        """Return what each drawing is told."""
        return {"title": self.title, "labels": self.labels, "simulated": self.source == "simulated"}

    def dimension(self, rated: Iterable[str]) -> str:
        """Return the dimension that is drawn, of those that were rated."""
        return chosen_dimension(self.target, self.main_target, rated)


@dataclass(frozen=True, kw_only=True)
class Rated(Shown):
    """What is drawn of a data set's responses, and the tables that hold them and their ratings."""

    contexts: Path
    responses: Path
    systems: Path
    ratings: Path

    def tables(self) -> data.Tables:
        """Return the data set's tables, read."""
        from comperdial.report.plots import data

        return data.read_tables(self.contexts.parent, self.source)


@figure(
    "{dataset}/figures/heatmap",
    of=_of("heatmap"),
    told=Shown,
    inputs=lambda plan, dataset: {
        "correlations": f"results/{dataset}/correlations.parquet",
        "ceilings": f"results/{dataset}/ceilings.parquet",
    },
    settings=lambda plan, dataset: _shown(plan, "heatmap", dataset),
    caption=captioned(
        "Correlation of each metric's scores with the mean ratings on {dataset}, at each level, with 95 % intervals; the human "
        "ceiling is how well one annotator agrees with the mean of the others."
    ),
    category="Figures",
)
def heatmap(shown: Shown, *, correlations: Path, ceilings: Path) -> tuple[Figure, pd.DataFrame]:
    """Draw a data set's correlations as a heat map."""
    from comperdial.report.inputs import read_correlations
    from comperdial.report.plots import heatmap as drawn

    found = read_correlations([correlations])
    wanted = shown.dimension(found["target"])
    frame = drawn.heatmap_frame(
        found, schema.read(ceilings, "ceilings"), target=wanted, outputs=shown.names, order=None
    )
    return drawn.heatmap_figure(frame, target=wanted, **shown.about), frame


@figure(
    "{dataset}/figures/scatter",
    of=_of("scatter"),
    told=Rated,
    inputs=lambda plan, dataset: {
        "scores": _scores(plan, "scatter", dataset),
        "correlations": f"results/{dataset}/correlations.parquet",
        **_tables(plan, dataset),
    },
    settings=lambda plan, dataset: _shown(plan, "scatter", dataset),
    caption=captioned(
        "Scores against mean ratings on {dataset}: single responses as shading, systems' means as marks, and Spearman's "
        "correlation over responses with its 95 % interval."
    ),
    category="Figures",
)
def scatter(shown: Rated, *, scores: Sequence[Path], correlations: Path) -> tuple[Figure, pd.DataFrame]:
    """Draw scores against ratings."""
    from comperdial.report.inputs import read_correlations
    from comperdial.report.plots import data
    from comperdial.report.plots import scatter as drawn

    tables = shown.tables()
    wanted = shown.dimension(tables.dimensions(shown.source))
    sample = data.one_sample(
        data.read_scores_of(scores, shown.names), tables, level="turn", target=wanted, source=shown.source
    )
    found = read_correlations([correlations])
    frame = drawn.scatter_frame(sample, found, outputs=shown.names, human=data.human_systems(tables.systems))
    return drawn.scatter_figure(frame, sample, **shown.about), frame


@figure(
    "{dataset}/figures/slope",
    of=_of("slope"),
    told=Rated,
    inputs=lambda plan, dataset: {"scores": _scores(plan, "slope", dataset), **_tables(plan, dataset)},
    settings=lambda plan, dataset: _shown(plan, "slope", dataset),
    caption=captioned(
        "The systems of {dataset} ranked by their mean rating and by a metric; named are the human systems and those that the "
        "two put furthest apart."
    ),
    category="Figures",
)
def slope(shown: Rated, *, scores: Sequence[Path]) -> tuple[Figure, pd.DataFrame]:
    """Draw the systems as ranked by people and by metrics."""
    from comperdial.report.plots import data
    from comperdial.report.plots import slope as drawn

    tables = shown.tables()
    wanted = shown.dimension(tables.dimensions(shown.source))
    sample = data.one_sample(
        data.read_scores_of(scores, shown.names), tables, level="system", target=wanted, source=shown.source
    )
    frame = drawn.slope_frame(sample, outputs=shown.names, human=data.human_systems(tables.systems), count=6)
    return drawn.slope_figure(frame, target=wanted, against=sample.against, **shown.about), frame


@figure(
    "{dataset}/figures/length_bias",
    of=_of("length_bias"),
    told=Rated,
    inputs=lambda plan, dataset: {"scores": _scores(plan, "length_bias", dataset), **_tables(plan, dataset)},
    settings=lambda plan, dataset: {**_shown(plan, "length_bias", dataset), **plan.drawn()},
    caption=captioned(
        "How far scores and ratings on {dataset} rise with the words of a response, and how scores agree with ratings when the "
        "length is held fixed; with 95 % intervals."
    ),
    category="Figures",
)
def length_bias(shown: Rated, *, scores: Sequence[Path], resamples: int, seed: int) -> tuple[Figure, pd.DataFrame]:
    """Draw how scores depend on the length of responses."""
    from comperdial.report.plots import data
    from comperdial.report.plots import length_bias as drawn

    tables = shown.tables()
    found = drawn.with_lengths(data.read_scores_of(scores, shown.names), tables.responses)
    wanted = shown.dimension(tables.dimensions(shown.source))
    sample = data.one_sample(found, tables, level="turn", target=wanted, source=shown.source)
    frame = drawn.length_bias_frame(sample, outputs=shown.names, resamples=resamples, seed=seed)
    return drawn.length_bias_figure(frame, target=wanted, **shown.about), frame


def _agreement(plan: Plan, dataset: str) -> dict[str, list[str]]:
    """Return the outputs of judges and, beside these, of metrics."""
    judges = plan.judge_outputs(dataset)
    names = {name.partition(":")[0] for name in judges} | {*plan.judged_by(dataset)}
    shown = plan.figure_outputs("judge_agreement", dataset)
    return {"judges": judges, "outputs": [name for name in shown if name.partition(":")[0] not in names]}


def _answers(plan: Plan, dataset: str) -> list[str]:
    """Return the single answers of a data set's judges of turns."""
    judges = {name.partition(":")[0] for name in plan.judge_outputs(dataset)}
    names = [*plan.judged_by(dataset), *plan.recorded_judges_of(dataset)]
    return plan.judgements(dataset, [name for name in names if name in judges])


@figure(
    "{dataset}/figures/judge_agreement",
    of=_of("judge_agreement"),
    told=Rated,
    inputs=lambda plan, dataset: {
        "scores": plan.scores(dataset, [name for names in _agreement(plan, dataset).values() for name in names]),
        "judgements": _answers(plan, dataset),
        **_tables(plan, dataset),
    },
    settings=lambda plan, dataset: {
        "title": plan.title(dataset),
        "labels": plan.labels_of(dataset, [name for names in _agreement(plan, dataset).values() for name in names]),
        **plan.rated_by(dataset),
        **_agreement(plan, dataset),
        **plan.drawn(),
    },
    caption=captioned(
        "Spearman's correlation over responses between judges, metrics and people on {dataset}, and Krippendorff's alpha among "
        "annotators and among the answers of a judge that was asked several times."
    ),
    category="Figures",
)
def judge_agreement(
    shown: Rated,
    *,
    scores: Sequence[Path],
    judgements: Sequence[Path] = (),
    judges: Sequence[str],
    resamples: int,
    seed: int,
) -> tuple[Figure, pd.DataFrame]:
    """Draw how judges, metrics and people agree."""
    from comperdial.report.plots import data
    from comperdial.report.plots import judge_agreement as drawn
    from comperdial.report.plots.style import parse_outputs

    asked, metrics = parse_outputs(judges), parse_outputs(shown.outputs)
    tables = shown.tables()
    samples = data.turn_samples(data.read_scores_of(scores, [*asked, *metrics]), tables, source=shown.source)
    frame = drawn.judge_agreement_frame(samples, judges=asked, metrics=metrics)
    answers = data.read_answers(judgements, asked, tables.contexts)
    alphas = drawn.alpha_frame(samples, answers, judges=asked, resamples=resamples, seed=seed)
    return drawn.judge_agreement_figure(frame, alphas, **shown.about), drawn.joined(frame, alphas)


@figure(
    "{dataset}/figures/curves",
    of=_of("curves"),
    told=Shown,
    inputs=lambda plan, dataset: {
        "curves": f"results/{dataset}/curves.parquet",
        "power": f"results/{dataset}/power.parquet",
    },
    settings=lambda plan, dataset: {
        **_shown(plan, "curves", dataset),
        "coefficient": plan.config["evaluation"]["curves"]["coefficient"],
    },
    caption=captioned(
        "What fewer systems, dialogues, annotators or answers of a judge would have said of the metrics on {dataset}, and how "
        "often a test at 5 % tells two metrics apart."
    ),
    category="Figures",
)
def curves(shown: Shown, *, curves: Path, power: Path, coefficient: str) -> tuple[Figure, pd.DataFrame]:
    """Draw learning curves, and the power of comparisons."""
    from comperdial.report.plots import curves as drawn

    found = schema.read(curves, "curves")
    wanted = shown.dimension(found["target"])
    frame = drawn.curves_frame(
        found,
        schema.read(power, "power"),
        target=wanted,
        outputs=shown.names,
        level=None,
        against=None,
        coefficient=coefficient,
    )
    return drawn.curves_figure(frame, target=wanted, coefficient=coefficient, **shown.about), frame
