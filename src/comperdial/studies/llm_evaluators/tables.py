"""The study's tables by the paper's numbers, its lists of all numbers, and its figures 3 and 4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from comperdial import schema
from comperdial.core.artifact import figure, table
from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.names import perturbed
from comperdial.report.captions import rated_by
from comperdial.report.document import Document
from comperdial.studies import ALONE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from comperdial.jobs.plan import Plan

_CATEGORY = "LLM evaluators"
_RESULTS = f"results/studies/{ALONE}"
_REPORTED = "src/comperdial/studies/llm_evaluators/{}.csv"
_PAIRS = ("systems", "contexts", "responses")


def _once(plan: Plan) -> list[dict[str, str]]:
    return [{}] if plan.study else []


def _folders(datasets: Iterable[str]) -> list[str]:
    return [f"data/tables/{name}" for name in datasets]


def _studied(plan: Plan) -> dict[str, Any]:
    """Return what says which data sets there are, in order, and what they are called."""
    return {"folders": _folders(plan.studied), "titles": plan.study_titles(plan.studied)}


def _told(plan: Plan) -> dict[str, Any]:
    """Return what the tables of correlations are told."""
    return {
        **plan.study_shared(),
        "recorded": plan.recorded_rounds(),
        "not_run": plan.study_not_run(plan.studied),
        "not_asked": plan.study_not_asked(),
        "needs": plan.study_needs(),
        "titles": plan.study_titles(plan.studied),
    }


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the tables of metrics and judges are told: which outputs, what these are called, why some are missing."""

    outputs: Sequence[str]
    labels: Mapping[str, str]
    needs: Mapping[str, Any]
    titles: Mapping[str, str] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=dict)
    not_asked: Sequence[str] = ()
    recorded: Sequence[str] = ()
    bounds: Mapping[str, Any] = field(default_factory=dict)

    def given(self, *names: str) -> dict[str, Any]:
        """Return the outputs, their labels, and some of the rest, as what makes the tables takes them."""
        from comperdial.evaluation.ensembles import output_name
        from comperdial.evaluation.ratios import bounds_of

        found = {"outputs": [output_name(name) for name in self.outputs], "labels": self.labels}
        rest = {name: getattr(self, name) for name in names}
        return found | rest | ({"bounds": bounds_of(self.bounds)} if "bounds" in names else {})


def _read(paths: Sequence[Path], name: str, *, empty: bool = False) -> pd.DataFrame:
    found = pd.concat([schema.read(path, name) for path in paths], ignore_index=True)
    if found.empty and not empty:
        raise SchemaError("the table is empty", where=", ".join(map(str, paths)), expected=f"rows of table `{name}`")
    return found


def _order(folders: Sequence[str]) -> list[str]:
    from comperdial.evaluation.dimensions import RatedSet

    return [RatedSet.read(folder).dataset for folder in folders]


@table(
    "studies/llm_evaluators/tables/llm_evaluators_table_1",
    of=_once,
    inputs=lambda plan: {
        "tables": plan.study_tables(*plan.studied),
        "rounds": f"{_RESULTS}/rounds.parquet",
        "reported": _REPORTED.format("data_sets"),
    },
    settings=_studied,
    caption="The twelve data sets of LLM evaluators: their size, who rated which dimension, and how GPT-4's rounds agree.",
    category=_CATEGORY,
)
def table_1(
    *, tables: Sequence[Path], rounds: Path, reported: Path, folders: Sequence[str], titles: Mapping[str, str]
) -> Document:
    """Show the data sets."""
    from comperdial.report.inputs import read_reported
    from comperdial.studies.llm_evaluators import data_sets

    known = read_reported(reported, data_sets.REPORTED_COLUMNS, data_sets.NUMERIC)
    counted = pd.DataFrame([data_sets.count(Path(folder)) for folder in folders])
    return data_sets.table_1(counted, _read([rounds], "rounds", empty=True), known, titles=titles)


_NUMBERED = ["2", "3", "4", "5", "6"]


@table(
    "studies/llm_evaluators/tables/llm_evaluators_table_{number}",
    of=lambda plan: _NUMBERED if plan.study else [],
    told=Told,
    inputs=lambda plan, number: {
        "correlations": f"{_RESULTS}/correlations.parquet",
        "reported": _REPORTED.format("rankings" if number == "4" else "correlations"),
    },
    settings=lambda plan, number: {**_told(plan), "number": number, "ensembles": plan.study_ensembles()},
    caption=lambda plan, number: (
        f"Table {number} of Zhang et al. 2024: our metrics beside the reported language models."
    ),
    category=_CATEGORY,
)
def numbered(told: Told, *, correlations: Path, reported: Path, number: str, ensembles: Mapping[str, Any]) -> Document:
    """Show Tables 2 to 6, ours beside theirs."""
    from comperdial.evaluation.ensembles import Ensembles
    from comperdial.report.inputs import read_reported
    from comperdial.studies.llm_evaluators import correlations as rendered
    from comperdial.studies.llm_evaluators import ensembles as combined
    from comperdial.studies.llm_evaluators.common import CORRELATION_COLUMNS, RANKING_COLUMNS

    if number not in _NUMBERED:
        raise UnknownNameError("table", number, _NUMBERED)
    known = read_reported(reported, RANKING_COLUMNS if number == "4" else CORRELATION_COLUMNS, ("value",))
    frame = _read([correlations], "dimension_correlations")
    if number in ("2", "3"):
        make = rendered.table_2 if number == "2" else rendered.table_3
        return make(frame, known, **told.given("recorded", "needs", "not_run", "not_asked"))
    if number == "4":
        return rendered.table_4(frame, known, **told.given("recorded", "titles"))
    return (combined.table_5 if number == "5" else combined.table_6)(
        frame, known, ensembles=Ensembles.of(ensembles), **told.given("recorded")
    )


@table(
    "studies/llm_evaluators/tables/llm_evaluators_correlations",
    of=_once,
    told=Told,
    inputs=lambda plan: {
        "tables": plan.study_tables(*plan.studied),
        "correlations": f"{_RESULTS}/correlations.parquet",
    },
    settings=lambda plan: {**_told(plan), "folders": _folders(plan.studied)},
    caption="Every metric on every data set and dimension, with whose ratings it is compared with.",
    category=_CATEGORY,
)
def correlations(told: Told, *, tables: Sequence[Path], correlations: Path, folders: Sequence[str]) -> Document:
    """Show every evaluator on every data set."""
    from comperdial.studies.llm_evaluators.listing import correlations_document
    from comperdial.studies.llm_evaluators.sampling import sampling_notes

    return correlations_document(
        _read([correlations], "dimension_correlations"),
        order=_order(folders),
        sampling=sampling_notes([Path(folder) for folder in folders], told.titles),
        **told.given("recorded", "titles", "needs", "not_run", "not_asked"),
    )


@table(
    "studies/llm_evaluators/tables/llm_evaluators_rounds",
    of=_once,
    inputs=lambda plan: {"tables": plan.study_tables(*plan.studied), "rounds": f"{_RESULTS}/rounds.parquet"},
    settings=_studied,
    caption="How GPT-4's five rounds agree, and people, data set by data set.",
    category=_CATEGORY,
)
def rounds(*, tables: Sequence[Path], rounds: Path, folders: Sequence[str], titles: Mapping[str, str]) -> Document:
    """Show how GPT-4's rounds agree, and people."""
    from comperdial.studies.llm_evaluators import rounds as rendered

    frame = _read([rounds], "rounds", empty=True)
    agreed = rendered.alpha([Path(folder) for folder in folders])
    return rendered.rounds_document(frame, agreed, titles=titles, order=_order(folders))


@table(
    "studies/llm_evaluators/tables/llm_evaluators_table_7",
    of=_once,
    inputs=lambda plan: {
        "tables": plan.study_tables(*plan.recorded_pairs, *plan.perturbed, names=_PAIRS),
        "reported": _REPORTED.format("perturbations"),
    },
    settings=lambda plan: {
        "recorded": _folders(plan.recorded_pairs),
        "made": _folders(plan.perturbed),
        "titles": plan.study_titles([*plan.recorded_pairs, *plan.perturbed]),
    },
    caption="The perturbations: what they do, how many pairs there are, and by how much a score should fall.",
    category=_CATEGORY,
)
def table_7(
    *,
    tables: Sequence[Path],
    reported: Path,
    recorded: Sequence[str],
    made: Sequence[str],
    titles: Mapping[str, str],
) -> Document:
    """Show the perturbations and their pairs."""
    from comperdial.perturbations import PERTURBATIONS
    from comperdial.report.inputs import read_reported
    from comperdial.studies.llm_evaluators import perturbations

    known = read_reported(reported, perturbations.PAIR_COLUMNS, ("pairs", "threshold"))
    theirs, ours = (perturbations.count_pairs([Path(folder) for folder in folders]) for folders in (recorded, made))
    return perturbations.table_7(theirs, ours, known, PERTURBATIONS, titles=titles)


@table(
    "studies/llm_evaluators/tables/llm_evaluators_table_8",
    of=_once,
    told=Told,
    inputs=lambda plan: {
        "ratios": [f"{_RESULTS}/{name}_ratios.parquet" for name in plan.recorded_pairs],
        "reported": _REPORTED.format("robustness"),
    },
    settings=lambda plan: {
        **plan.study_shared(),
        "not_run": plan.study_not_run(plan.recorded_pairs),
        "bounds": plan.study_bounds(*plan.recorded_pairs),
        "needs": plan.study_needs(),
    },
    caption="How often scores fall when a response or dialogue was made worse, ours beside the reported.",
    category=_CATEGORY,
)
def table_8(told: Told, *, ratios: Sequence[Path], reported: Path) -> Document:
    """Show robustness, ours and theirs."""
    from comperdial.perturbations import PERTURBATIONS
    from comperdial.report.inputs import read_reported
    from comperdial.studies.llm_evaluators import robustness

    known = read_reported(reported, robustness.RATIO_COLUMNS, ("ratio",))
    return robustness.table_8(
        _read(ratios, "ratios"),
        known,
        PERTURBATIONS,
        **told.given("not_run", "bounds", "needs"),
    )


def _robustness_page(plan: Plan, dataset: str) -> str:
    """Return where the table is: of the study's data sets among its results, of another among the data set's."""
    studied = perturbed(dataset) in plan.perturbed
    return f"studies/{ALONE}/tables/{dataset}_robustness" if studied else f"{dataset}/tables/robustness"


@table(
    "{page}",
    of=lambda plan: [{"page": _robustness_page(plan, name), "dataset": name} for name in plan.perturbable],
    told=Told,
    inputs=lambda plan, dataset, **_: {"ratios": [f"{_RESULTS}/{perturbed(dataset)}_ratios.parquet"]},
    settings=lambda plan, dataset, **_: {
        **plan.study_shared(),
        "titles": plan.study_titles([perturbed(dataset)]),
        "bounds": plan.study_bounds(perturbed(dataset)),
        "needs": plan.study_needs(),
        "source": "simulated" if dataset in plan.simulated else "human",
    },
    on_request=lambda plan, dataset, **_: perturbed(dataset) not in plan.perturbed,
    caption=lambda plan, dataset, **_: (
        "How often each metric's score falls when responses and dialogues of "
        f"{plan.study_titles([dataset])[dataset]} are made worse by our own strategies."
    ),
    category=_CATEGORY,
)
def robustness_of_dataset(told: Told, *, ratios: Sequence[Path], source: str) -> Document:
    """Show robustness on the pairs that were made of a data set."""
    from comperdial.perturbations import PERTURBATIONS
    from comperdial.studies.llm_evaluators import robustness

    return robustness.robustness_document(
        _read(ratios, "ratios"),
        PERTURBATIONS,
        suffix=rated_by(source),
        **told.given("titles", "bounds", "needs"),
    )


@table(
    "studies/llm_evaluators/tables/llm_evaluators_table_9",
    of=_once,
    inputs=lambda plan: {"questions": "src/comperdial/judges/prompts/questions.yaml"},
    settings=lambda plan: {
        "variants": (plan.config.get("judging") or {}).get("variants", {}),
        "not_asked": plan.study_not_asked(),
    },
    caption="What judges are asked of each dimension, in our words.",
    category=_CATEGORY,
)
def table_9(*, questions: Path, variants: Mapping[str, Any], not_asked: Sequence[str]) -> Document:
    """Show what is asked."""
    from comperdial.studies.llm_evaluators.questions import table_9

    return table_9(variants, not_asked)


# Which data set the paper's figures of dimensions are of.
_FIGURES = {"3": "fed_dial", "4": "fed_turn"}


def _panels(plan: Plan, number: str) -> dict[str, Any]:
    dataset = _FIGURES[number]
    apart = [output.partition(":")[0] for outputs in plan.study_groups(dataset).values() for output in outputs]
    judges = [*plan.panel_judges(dataset), *apart]
    return {
        "tables": plan.study_tables(dataset),
        "scores": [plan.score_file(dataset, name) for name in judges],
    }


def _panel_settings(plan: Plan, number: str) -> dict[str, Any]:
    dataset = _FIGURES[number]
    groups = plan.study_groups(dataset).items()
    return {
        "number": number,
        "title": plan.read[dataset].title,
        "labels": plan.study_labels(),
        "judges": [*plan.panel_judges(dataset), *(f"{name}={','.join(outputs)}" for name, outputs in groups)],
        "missing": [] if dataset == "fed_dial" else ["GPT-4's ratings of this set were not published."],
    }


@figure(
    "studies/llm_evaluators/figures/llm_evaluators_figure_{number}",
    of=lambda plan: [number for number, dataset in _FIGURES.items() if dataset in plan.studied],
    inputs=_panels,
    settings=_panel_settings,
    caption="How the five dimensions go together for people, for GPT-4 and for judges.",
    category=_CATEGORY,
)
def dimensions(
    *,
    tables: Sequence[Path],
    scores: Sequence[Path],
    number: str,
    title: str,
    labels: Mapping[str, str],
    judges: Sequence[str],
    missing: Sequence[str],
) -> tuple[Figure, pd.DataFrame]:
    """Draw how dimensions go together."""
    from comperdial.evaluation.dimensions import RatedSet
    from comperdial.evaluation.interdimensional import interdimensional
    from comperdial.studies.llm_evaluators.figures import interdimensional_figure
    from comperdial.studies.llm_evaluators.notes import has_part

    found = pd.concat([schema.read(path, "scores") for path in scores], ignore_index=True)
    frame = interdimensional(RatedSet.read(tables[0].parent), found, metrics=judges)
    rules = found["signature"].map(lambda signature: has_part(signature, "service:rules"))
    drawn = interdimensional_figure(
        frame,
        title=title,
        labels=labels,
        missing=missing,
        programs=sorted(found.loc[rules.astype(bool), "metric"].unique()),
        name=f"Figure {number}",
    )
    # Each pair once, as drawn.
    order = {name: n for n, name in enumerate(dict.fromkeys(frame["dimension_a"]))}
    return drawn, frame[frame["dimension_a"].map(order) > frame["dimension_b"].map(order)]
