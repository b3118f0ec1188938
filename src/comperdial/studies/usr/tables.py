"""The published USR table with its figure, and the agreement of its annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.core.artifact import figure, table
from comperdial.report import few
from comperdial.schema.dimensions import chosen_dimension

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from comperdial.jobs.plan import Plan
    from comperdial.report.document import Document


def _once(plan: Plan) -> list[dict[str, str]]:
    return [{}] if plan.usr else []


def _inputs(plan: Plan) -> dict[str, Any]:
    return {
        "correlations": [f"results/{dataset}/correlations.parquet" for dataset in plan.usr],
        "reported": "src/comperdial/studies/usr/correlations.csv",
        "rows": "src/comperdial/studies/usr/rows.yaml",
        "sources": "src/comperdial/studies/usr/sources.csv",
        **few.inputs(plan, plan.usr),
    }


def _settings(plan: Plan) -> dict[str, Any]:
    return {
        "datasets": plan.usr,
        "titles": plan.titles(plan.usr),
        "main_target": plan.config["evaluation"]["target"],
        "not_run": plan.not_run(plan.usr),
        "recorded": plan.recorded_of(),
    }


def _frame(
    correlations: Sequence[Path],
    reported: Path,
    rows: Path,
    datasets: Sequence[str],
    main_target: str,
    not_run: Mapping[str, str],
    recorded: Mapping[str, str],
    scores: Sequence[Path],
    rated: Sequence[Path],
) -> pd.DataFrame:
    from comperdial.report.inputs import REPORTED_COLUMNS, read_correlations, read_reported
    from comperdial.studies.usr.frame import usr_frame

    found = read_correlations(correlations)
    target = chosen_dimension(None, main_target, found["target"])
    return usr_frame(
        few.with_exact_p(found[found["target"] == target], scores, rated, source="human"),
        read_reported(reported, REPORTED_COLUMNS, given=("value",)),
        rows,
        datasets=datasets,
        target=target,
        not_run=not_run,
        recorded=recorded,
    )


@table(
    "studies/usr/tables/usr",
    of=_once,
    inputs=_inputs,
    settings=_settings,
    caption="Correlation of each metric with the mean human rating on the two USR sets, beside the value that papers report.",
    category="Tables",
)
def usr(*, sources: Path, titles: Mapping[str, str], **said: Any) -> Document:  # noqa: ANN401
    """Show the published USR table, ours beside theirs."""
    from comperdial.report.inputs import read_reported
    from comperdial.studies.usr.frame import usr_document

    cited = read_reported(sources, ("source", "short", "citation"))
    return usr_document(_frame(**said), titles, cited)


@figure(
    "studies/usr/figures/usr",
    of=_once,
    inputs=_inputs,
    settings=_settings,
    caption="The same correlations drawn: marks are ours with their 95 % intervals, hollow where systems are few; black ticks "
    "are the reported values.",
    category="Figures",
)
def usr_figure(*, sources: Path, titles: Mapping[str, str], **said: Any) -> tuple[Figure, pd.DataFrame]:  # noqa: ANN401
    """Draw the published USR table."""
    from comperdial.report.figures import usr_figure

    frame = _frame(**said)
    return usr_figure(frame, titles), frame


@table(
    "studies/usr/tables/usr_agreement",
    of=_once,
    inputs=lambda plan: {
        "ratings": [f"data/tables/{dataset}/ratings.parquet" for dataset in plan.usr],
        "reported": "src/comperdial/studies/usr/agreement.csv",
    },
    settings=lambda plan: {"titles": plan.titles(plan.usr)},
    caption="Mean correlation between the annotators' positions on the two USR sets, beside Table 1 of the USR paper.",
    category="Tables",
)
def usr_agreement(*, ratings: Sequence[Path], reported: Path, titles: Mapping[str, str]) -> Document:
    """Show the agreement between the annotators beside the published one."""
    import pandas as pd

    from comperdial import schema
    from comperdial.core.errors import SchemaError
    from comperdial.evaluation import aggregate
    from comperdial.report import tables
    from comperdial.report.inputs import read_reported

    found = pd.concat([aggregate.agreement(schema.read(path, "ratings")) for path in ratings])
    if found.empty:
        raise SchemaError("no ratings", where=str(ratings[0]), expected="ratings by two annotators or more")
    known = read_reported(reported, ("dataset", "dimension", "coefficient", "note"), given=("value",))
    return tables.agreement_document(found, known, titles)
