"""The ComperDial paper's numbered tables: of the benchmark among the results of the study, of another data set among its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.core.artifact import table
from comperdial.core.errors import NothingToShowError, UnknownNameError
from comperdial.core.files import read_table
from comperdial.metrics.named import ABOUT
from comperdial.report.captions import captioned, rated_by
from comperdial.report.document import Document
from comperdial.report.inputs import REPORTED_COLUMNS, read_correlations, read_ratings, read_reported
from comperdial.schema.dimensions import chosen_dimension

if TYPE_CHECKING:
    from comperdial.jobs.plan import Plan

_CATEGORY = "The paper's tables"
_PAPER = "src/comperdial/studies/comperdial"


def _placed(plan: Plan, datasets: Iterable[str]) -> list[dict[str, str]]:
    """Return each data set with the folder of its tables."""
    return [{"folder": "studies/comperdial" if name == plan.benchmark else name, "dataset": name} for name in datasets]


def _with_dialogues(plan: Plan) -> list[dict[str, str]]:
    chosen = {*plan.challenges, *plan.by_dialogue}
    return _placed(plan, (name for name in plan.datasets if name in chosen))


def _both_levels(plan: Plan) -> list[dict[str, str]]:
    return _placed(plan, (name for name in plan.by_turn if name in plan.by_dialogue))


def _tables(*names: str) -> Callable[..., dict[str, Any]]:
    return lambda plan, dataset, **_: plan.tables(dataset, *names, "ratings")


def _about(plan: Plan, dataset: str, **_: str) -> dict[str, Any]:
    return {"title": plan.title(dataset), **plan.rated_by(dataset)}


@table(
    "studies/comperdial/tables/table_01",
    inputs=lambda plan: {"benchmarks": f"{_PAPER}/benchmarks.csv"},
    caption="Table 1 of the ComperDial paper: benchmarks of dialogue evaluation, in short.",
    category=_CATEGORY,
)
def table_01(*, benchmarks: Path) -> Document:
    """Compare benchmarks in short."""
    from comperdial.studies.comperdial import benchmarks as compared
    from comperdial.studies.comperdial import short

    return short.benchmarks_short(read_reported(benchmarks, compared.BENCHMARK_COLUMNS))


@table(
    "studies/comperdial/tables/table_07",
    inputs=lambda plan: {"benchmarks": f"{_PAPER}/benchmarks.csv"},
    caption="Benchmarks of dialogue evaluation as the ComperDial paper compares them (Tables 1 and 7).",
    category=_CATEGORY,
)
def table_07(*, benchmarks: Path) -> Document:
    """Compare benchmarks."""
    from comperdial.studies.comperdial import benchmarks as compared

    return compared.benchmarks_document(read_reported(benchmarks, compared.BENCHMARK_COLUMNS))


@table(
    "{folder}/tables/table_02",
    of=_with_dialogues,
    inputs=_tables("contexts", "personas"),
    settings=lambda plan, dataset, **_: plan.rated_by(dataset),
    caption=captioned("Table 2 of the ComperDial paper: the beginning of both personas and of a dialogue."),
    category=_CATEGORY,
)
def table_02(*, contexts: Path, personas: Path, source: str, **_: Path) -> Document:
    """Show the beginning of a dialogue."""
    from comperdial.studies.comperdial import short

    found = schema.read(contexts, "contexts")
    first = str(found["dialogue_id"].min())
    return short.example_short(found, schema.read(personas, "personas"), first, rated_by(source))


@table(
    "{folder}/tables/table_12",
    of=_with_dialogues,
    inputs=_tables("contexts", "personas"),
    settings=_about,
    caption=captioned("Two personas and their dialogue from {dataset} (ComperDial, Tables 2 and 12)."),
    category=_CATEGORY,
)
def table_12(*, contexts: Path, personas: Path, title: str, source: str, **_: Path) -> Document:
    """Show two personas and their dialogue."""
    from comperdial.studies.comperdial.personas import example_document

    found = schema.read(contexts, "contexts")
    first = str(found["dialogue_id"].min())
    return example_document(found, schema.read(personas, "personas"), first, rated_by(source))


@table(
    "{folder}/tables/table_08",
    of=lambda plan: _placed(plan, plan.datasets),
    inputs=lambda plan, dataset, **_: {
        **_tables("systems", "contexts", "responses")(plan, dataset),
        "reported": f"{_PAPER}/annotation_counts.csv",
    },
    settings=lambda plan, dataset, **_: {**_about(plan, dataset), "dataset": dataset},
    caption=captioned("What of {dataset} was rated, beside the counts that the ComperDial paper reports (Table 8)."),
    category=_CATEGORY,
)
def table_08(
    *,
    systems: Path,
    contexts: Path,
    responses: Path,
    ratings: Path,
    reported: Path,
    dataset: str,
    title: str,
    source: str,
) -> Document:
    """Count what was rated."""
    from comperdial.studies.comperdial import benchmarks as compared

    counted = compared.count_tables(systems.parent, source=source)
    ours = pd.DataFrame([{"dataset": dataset, "title": title, **counted}])
    return compared.counts_document(read_reported(reported, compared.COUNT_COLUMNS), ours, rated_by(source))


@table(
    "{folder}/tables/table_13",
    of=_both_levels,
    inputs=_tables("systems", "contexts", "responses"),
    settings=lambda plan, dataset, **_: {
        **_about(plan, dataset),
        "count": plan.config["tables"]["level_differences"],
    },
    caption=captioned(
        "Dialogues of {dataset} that are rated lower as a whole than turn by turn (ComperDial, Table 13)."
    ),
    category=_CATEGORY,
)
def table_13(
    *,
    systems: Path,
    contexts: Path,
    responses: Path,
    ratings: Path,
    title: str,
    count: int,
    source: str,
) -> Document:
    """Show dialogues that are rated lower as a whole."""
    from comperdial.evaluation.ratings import table13_cases
    from comperdial.report.ratings import level_difference_document

    found = read_ratings(ratings, source)
    if found["level"].nunique() < 2:
        raise NothingToShowError("it takes ratings of turns and of dialogues")
    tables = schema.read(contexts, "contexts"), schema.read(systems, "systems")
    cases = table13_cases(found, tables[0], count=count, systems=tables[1], source=source)
    said = schema.read(responses, "responses")
    return level_difference_document(
        cases, found, tables[0], said, tables[1], title, suffix=rated_by(source), source=source
    )


_CONSTRAINTS = {"09": "names", "10": "family", "11": "ages"}


@table(
    "studies/comperdial/tables/table_{number}",
    of=lambda plan: list(_CONSTRAINTS),
    inputs=lambda plan, number: {"file": f"{plan.config['personas']['constraints']}/{_CONSTRAINTS[number]}.csv"},
    settings=lambda plan, number: {"constraint": _CONSTRAINTS[number]},
    caption=lambda plan, number: (
        f"Constraints of the fictional personal information: {_CONSTRAINTS[number]} (ComperDial, Tables 9 to 11)."
    ),
    category=_CATEGORY,
)
def constraints(*, file: Path, constraint: str) -> Document:
    """Show constraints of personas."""
    from comperdial.studies.comperdial import personas

    known = {
        "names": personas.names_document,
        "family": personas.family_document,
        "ages": personas.ages_document,
    }
    if constraint not in known:
        raise UnknownNameError("constraint", constraint, known)
    return known[constraint](read_table(file))


def _metric_entries(plan: Plan) -> dict[str, Any]:
    return {
        name: {key: value for key, value in entry.items() if key not in ABOUT}
        for name, entry in plan.config["metrics"].items()
    }


@table(
    "studies/comperdial/tables/table_14",
    inputs=lambda plan: {"reported": f"{_PAPER}/metric_outputs.csv"},
    settings=lambda plan: {"metrics": _metric_entries(plan)},
    code=lambda plan: sorted({f"metrics.{metric.kind}" for metric in plan.metrics.values()}),
    caption="Table 14 of the ComperDial paper: what each metric gives and whether it normalises its texts, beside the metrics "
    "of params.yaml.",
    category=_CATEGORY,
)
def table_14(*, reported: Path, metrics: Mapping[str, Any]) -> Document:
    """Show what metrics give."""
    from comperdial.studies.comperdial import short

    return short.outputs_document(read_reported(reported, short.OUTPUT_COLUMNS), metrics)


_NUMBERED = {
    "03": "Original prompts against CPDScore, one call each (short form)",
    "04": "Metrics against ratings of turns",
    "05": "Metrics against ratings of dialogues",
    "15": "Original prompts against CPDScore, one call each",
}


def _numbered(plan: Plan) -> list[dict[str, str]]:
    def has(dataset: str, number: str) -> bool:
        if number == "05":
            return dataset in plan.by_dialogue
        return dataset in plan.by_turn and (number == "04" or bool(plan.judged_by(dataset)))

    return [
        {**names, "number": number}
        for names in _placed(plan, plan.datasets)
        for number in _NUMBERED
        if has(names["dataset"], number)
    ]


def _correlations(datasets: Sequence[str], number: str) -> dict[str, Any]:
    reported = "studies/usr/reported.csv" if number in ("06", "16") else f"{_PAPER}/correlations.csv"
    return {
        "correlations": [f"results/{dataset}/correlations.parquet" for dataset in datasets],
        "ceilings": [f"results/{dataset}/ceilings.parquet" for dataset in datasets],
        "reported": reported,
        "rows": f"{_PAPER}/rows.yaml",
    }


@cache
def _papers_judges() -> tuple[str, ...]:
    return tuple(load_yaml(f"{_PAPER}/rows.yaml")["judges"])


def _of_datasets(plan: Plan, datasets: Sequence[str], number: str) -> dict[str, Any]:
    return {
        "number": number,
        "titles": plan.titles(datasets),
        "order": list(datasets),
        "not_run": plan.not_run(datasets),
        # The paper's judges have rows whether they are asked or not.
        "judges": plan.judge_metrics(datasets, also=_papers_judges()),
    }


@table(
    "{folder}/tables/table_{number}",
    of=_numbered,
    inputs=lambda plan, dataset, number, **_: _correlations([dataset], number),
    settings=lambda plan, dataset, number, **_: {
        **_of_datasets(plan, [dataset], number),
        **plan.target(dataset),
        **plan.rated_by(dataset),
    },
    caption=lambda plan, dataset, number, **_: (
        f"Table {int(number)} of the ComperDial paper: {_NUMBERED[number]}. Ours, with the 95 % interval and the rank"
        + (". " if plan.source(dataset) == "simulated" else ", beside what the paper reports of its own data. ")
        + rated_by(plan.source(dataset))
    ).strip(),
    category=_CATEGORY,
)
def numbered(
    *,
    correlations: Sequence[Path],
    ceilings: Sequence[Path],
    reported: Path,
    rows: Path,
    number: str,
    titles: Mapping[str, str],
    order: Sequence[str],
    not_run: Mapping[str, str],
    judges: Mapping[str, Any],
    source: str = "human",
    target: str | None = None,
    main_target: str | None = None,
) -> Document:
    """Show metrics and judges against ratings, ours beside the reported values."""
    from comperdial.studies.comperdial.numbered import paper_document, paper_frame, read_layout

    found = read_correlations(correlations)
    wanted = chosen_dimension(target, main_target, found["target"])
    layout = read_layout(rows, number)
    frame = paper_frame(
        layout,
        found,
        pd.concat([schema.read(path, "ceilings") for path in ceilings], ignore_index=True),
        read_reported(reported, [name for name in REPORTED_COLUMNS if name != "target"], given=("value",)).rename(
            columns={"dimension": "target"}
        ),
        datasets=list(order),
        target=wanted,
        not_run=not_run,
        judges=judges,
    )
    return paper_document(frame, layout, titles, wanted, suffix=rated_by(source))


@table(
    "studies/comperdial/tables/table_{number}",
    # Of both sets or none: a table of one alone would be another file under the same name.
    of=lambda plan: ["06", "16"] if plan.usr else [],
    datasets=lambda plan, number: plan.usr,
    inputs=lambda plan, number: _correlations(plan.usr, number),
    settings=lambda plan, number: {
        **_of_datasets(plan, plan.usr, number),
        "main_target": plan.config["evaluation"]["target"],
    },
    caption=lambda plan, number: (
        f"Table {int(number)} of the ComperDial paper: metrics against human ratings of turns on both "
        f"USR sets{' (short form)' if number == '06' else ''}. Ours, with the 95 % interval and the rank, beside the reported "
        "value and the difference."
    ),
    category=_CATEGORY,
)
def numbered_of_usr(**said: Any) -> Document:  # noqa: ANN401
    """Show metrics and judges against the ratings of both USR sets."""
    return numbered(**said)
