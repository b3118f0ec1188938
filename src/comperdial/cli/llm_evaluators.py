"""Commands that render the tables and figures of the study of LLMs as dialogue evaluators."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import (
    add_kind,
    add_not_run,
    add_paper,
    add_simulated,
    add_titles,
    json_object,
    suffix,
)

if TYPE_CHECKING:
    import pandas as pd

_FILES = "llm_evaluators_{}.csv"
_JSON: dict[str, Any] = {"type": json_object, "default": {}, "metavar": "JSON"}


def add_kinds(kinds: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's kinds."""
    kind = add_kind(kinds, "llm-data-sets", _data_sets, "Zhang et al.'s Table 1: the data sets", inputs="rounds")
    kind.add_argument("--tables", type=Path, nargs="+", required=True, help="the data sets' folders of tables")
    for add in (add_paper, add_titles):
        add(kind)
    kind = add_kind(
        kinds, "llm-table", _table, "Zhang et al.'s Tables 2 to 6, ours beside theirs", inputs="dimension_correlations"
    )
    kind.add_argument("--number", required=True, choices=["2", "3", "4", "5", "6"], help="which table")
    kind.add_argument("--ensembles", **_JSON, help="Table 6: what each ensemble is made of")
    for add in (_shared, _recorded, add_paper, add_not_run, _not_asked, _needs, add_titles):
        add(kind)
    kind = add_kind(
        kinds, "llm-correlations", _correlations, "every evaluator on every data set", inputs="dimension_correlations"
    )
    kind.add_argument(
        "--tables", type=Path, nargs="*", default=[], help="data sets' folders of tables, in order: what was resampled"
    )
    for add in (_shared, _recorded, add_not_run, _not_asked, _needs, add_titles):
        add(kind)
    kind = add_kind(
        kinds, "llm-perturbations", _perturbations, "Zhang et al.'s Table 7: perturbations and their pairs", inputs=None
    )
    kind.add_argument("--recorded", type=Path, nargs="+", required=True, help="folders of tables of recorded pairs")
    kind.add_argument("--made", type=Path, nargs="*", default=[], help="folders of tables of pairs made here")
    for add in (add_paper, add_titles):
        add(kind)
    kind = add_kind(
        kinds, "llm-ratios", _ratios, "Zhang et al.'s Table 8: robustness, ours and theirs", inputs="ratios"
    )
    for add in (_shared, add_paper, add_not_run, _bounds, _needs):
        add(kind)
    kind = add_kind(kinds, "llm-robustness", _robustness, "robustness on any data sets' pairs", inputs="ratios")
    for add in (_shared, add_simulated, _bounds, _needs, add_titles):
        add(kind)
    kind = add_kind(
        kinds, "llm-questions", _questions, "Zhang et al.'s Table 9: what is asked, in our words", inputs=None
    )
    kind.add_argument(
        "--variants", type=json_object, required=True, metavar="JSON", help="judging.variants of params.yaml"
    )
    _not_asked(kind)
    kind = add_kind(kinds, "llm-rounds", _rounds, "how GPT-4's rounds agree, and people", inputs="rounds")
    kind.add_argument("--tables", type=Path, nargs="*", default=[], help="data sets' folders of tables, for alpha")
    add_titles(kind)
    kind = add_kind(
        kinds, "llm-figure", _figure, "Zhang et al.'s Figures 3 and 4: dimensions together", inputs="scores"
    )
    kind.add_argument("--tables", type=Path, required=True, help="the data set's folder of tables")
    kind.add_argument("--metrics", nargs="*", default=[], help="judges with an output for each dimension")
    kind.add_argument("--missing", nargs="*", default=[], help="sentences on who has no panel, and why")
    kind.add_argument("--labels", **_JSON, help="a name for each who rates")
    kind.add_argument("--title", required=True, help="the data set's title")
    kind.add_argument("--number", default="", help="the paper's number of the figure")


def _shared(kind: argparse.ArgumentParser) -> None:
    kind.add_argument(
        "--outputs", nargs="*", default=[], metavar="METRIC:OUTPUT", help="which output stands for a metric of several"
    )
    kind.add_argument("--labels", **_JSON, help="a name for METRIC or METRIC:OUTPUT, in order")


def _recorded(kind: argparse.ArgumentParser) -> None:
    kind.add_argument(
        "--recorded", nargs="*", default=[], metavar="METRIC", help="metrics that are GPT-4's recorded ratings"
    )


def _not_asked(kind: argparse.ArgumentParser) -> None:
    kind.add_argument(
        "--not-asked", nargs="*", default=[], metavar="TEXT", help="what nobody was asked, and why: a note each"
    )


def _bounds(kind: argparse.ArgumentParser) -> None:
    kind.add_argument(
        "--bounds",
        **_JSON,
        help="the lowest and highest score: {METRIC: {OUTPUT: [LOW, HIGH]}}, as `comperdial ratios` takes it",
    )


def _needs(kind: argparse.ArgumentParser) -> None:
    kind.add_argument(
        "--needs",
        **_JSON,
        help='what metrics need of a text, to say of those without scores: {METRIC: ["references", …]}',
    )


def _named(options: argparse.Namespace) -> dict[str, Any]:
    from comperdial.evaluation.ensembles import output_name

    found = {"outputs": [output_name(name) for name in options.outputs], "labels": options.labels}
    return found | ({"recorded": options.recorded} if "recorded" in options else {})


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    return {"not_run": options.not_run, "not_asked": options.not_asked}


def _read(paths: list[Path], table: str, *, empty: bool = False) -> pd.DataFrame:
    import pandas as pd

    from comperdial import schema
    from comperdial.errors import SchemaError

    found = pd.concat([schema.read(path, table) for path in paths], ignore_index=True)
    if found.empty and not empty:
        raise SchemaError("the table is empty", where=", ".join(map(str, paths)), expected=f"rows of table `{table}`")
    return found


def _data_sets(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial.report import document
    from comperdial.report.llm_evaluators import data_sets
    from comperdial.report.tables import read_reported

    path = options.paper / _FILES.format("data_sets")
    reported = read_reported(path, data_sets.REPORTED_COLUMNS, data_sets.NUMERIC)
    counted = pd.DataFrame([data_sets.count(folder) for folder in options.tables])
    made = data_sets.table_1(counted, _read(options.inputs, "rounds", empty=True), reported, titles=options.titles)
    document.write(made, options.output)


def _table(options: argparse.Namespace) -> None:
    from comperdial.evaluation.ensembles import Ensembles
    from comperdial.report import document
    from comperdial.report.llm_evaluators import correlations, ensembles
    from comperdial.report.llm_evaluators.common import CORRELATION_COLUMNS, RANKING_COLUMNS
    from comperdial.report.tables import read_reported

    name, columns = ("rankings", RANKING_COLUMNS) if options.number == "4" else ("correlations", CORRELATION_COLUMNS)
    reported = read_reported(options.paper / _FILES.format(name), columns, ("value",))
    frame, given = _read(options.inputs, "dimension_correlations"), _named(options)
    if options.number == "2":
        made = correlations.table_2(frame, reported, needs=options.needs, **_asked(options), **given)
    elif options.number == "3":
        made = correlations.table_3(frame, reported, needs=options.needs, **_asked(options), **given)
    elif options.number == "4":
        made = correlations.table_4(frame, reported, titles=options.titles, **given)
    elif options.number == "5":
        made = ensembles.table_5(frame, reported, ensembles=Ensembles.of(options.ensembles), **given)
    else:
        made = ensembles.table_6(frame, reported, ensembles=Ensembles.of(options.ensembles), **given)
    document.write(made, options.output)


def _correlations(options: argparse.Namespace) -> None:
    from comperdial.report import document
    from comperdial.report.llm_evaluators.listing import correlations_document
    from comperdial.report.llm_evaluators.sampling import sampling_notes

    frame = _read(options.inputs, "dimension_correlations")
    made = correlations_document(
        frame,
        titles=options.titles,
        order=_order(options.tables),
        sampling=sampling_notes(options.tables, options.titles),
        needs=options.needs,
        **_asked(options),
        **_named(options),
    )
    document.write(made, options.output)


def _perturbations(options: argparse.Namespace) -> None:
    from comperdial.perturbations.registry import PERTURBATIONS
    from comperdial.report import document
    from comperdial.report.llm_evaluators import perturbations
    from comperdial.report.tables import read_reported

    path = options.paper / _FILES.format("perturbations")
    reported = read_reported(path, perturbations.PAIR_COLUMNS, ("pairs", "threshold"))
    recorded = perturbations.count_pairs(options.recorded)
    made_here = perturbations.count_pairs(options.made)
    made = perturbations.table_7(recorded, made_here, reported, PERTURBATIONS, titles=options.titles)
    document.write(made, options.output)


def _ratios(options: argparse.Namespace) -> None:
    from comperdial.evaluation.ratios import bounds_of
    from comperdial.perturbations.registry import PERTURBATIONS
    from comperdial.report import document
    from comperdial.report.llm_evaluators import robustness
    from comperdial.report.tables import read_reported

    path = options.paper / _FILES.format("robustness")
    reported = read_reported(path, robustness.RATIO_COLUMNS, ("ratio",))
    frame = _read(options.inputs, "ratios")
    made = robustness.table_8(
        frame,
        reported,
        PERTURBATIONS,
        not_run=options.not_run,
        bounds=bounds_of(options.bounds),
        needs=options.needs,
        **_named(options),
    )
    document.write(made, options.output)


def _robustness(options: argparse.Namespace) -> None:
    from comperdial.evaluation.ratios import bounds_of
    from comperdial.perturbations.registry import PERTURBATIONS
    from comperdial.report import document
    from comperdial.report.llm_evaluators import robustness

    made = robustness.robustness_document(
        _read(options.inputs, "ratios"),
        PERTURBATIONS,
        titles=options.titles,
        suffix=suffix(options),
        bounds=bounds_of(options.bounds),
        needs=options.needs,
        **_named(options),
    )
    document.write(made, options.output)


def _questions(options: argparse.Namespace) -> None:
    from comperdial.report import document
    from comperdial.report.llm_evaluators.questions import table_9

    document.write(table_9(options.variants, options.not_asked), options.output)


def _rounds(options: argparse.Namespace) -> None:
    from comperdial.report import document
    from comperdial.report.llm_evaluators import rounds

    frame = _read(options.inputs, "rounds", empty=True)
    made = rounds.rounds_document(
        frame, rounds.alpha(options.tables), titles=options.titles, order=_order(options.tables)
    )
    document.write(made, options.output)


def _order(folders: list[Path]) -> list[str]:
    """Return the data sets of folders of tables, in their order."""
    from comperdial.evaluation.dimensions import RatedSet

    return [RatedSet.read(folder).dataset for folder in folders]


def _figure(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import schema
    from comperdial.evaluation.dimensions import RatedSet
    from comperdial.evaluation.interdimensional import interdimensional
    from comperdial.report.llm_evaluators.figures import interdimensional_figure
    from comperdial.report.llm_evaluators.notes import has_part
    from comperdial.report.plots.style import finish

    scores = pd.concat([schema.read(path, "scores") for path in options.inputs], ignore_index=True)
    frame = interdimensional(RatedSet.read(options.tables), scores, metrics=options.metrics)
    rules = scores["signature"].map(lambda signature: has_part(signature, "service:rules"))
    figure = interdimensional_figure(
        frame,
        title=options.title,
        labels=options.labels,
        missing=options.missing,
        programs=sorted(scores.loc[rules.astype(bool), "metric"].unique()),
        name=f"Figure {options.number}" if options.number else "",
    )
    # Each pair once, as drawn.
    order = {name: n for n, name in enumerate(dict.fromkeys(frame["dimension_a"]))}
    once = frame[frame["dimension_a"].map(order) > frame["dimension_b"].map(order)]
    finish(figure, once, options.output)
