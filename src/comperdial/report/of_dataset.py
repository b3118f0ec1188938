"""Tables and the page of any data set: what was rated, what was scored, how both agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from comperdial import schema
from comperdial.core.artifact import files, page, table
from comperdial.core.errors import NothingToShowError, UnknownNameError
from comperdial.core.files import read_json
from comperdial.report import few
from comperdial.report.captions import SIMULATED, captioned, rated_by
from comperdial.report.document import Document
from comperdial.report.inputs import read_correlations, read_ratings, read_reported
from comperdial.schema.dimensions import chosen_dimension

if TYPE_CHECKING:
    from comperdial.jobs.plan import Plan


@table(
    "{dataset}/tables/systems",
    of=lambda plan: plan.datasets,
    inputs=lambda plan, dataset: {
        "scores": plan.scores(dataset, plan.systems_outputs(dataset)),
        **plan.tables(dataset, "systems", "responses", "ratings"),
        "submissions": [f"data/tables/{dataset}/submissions.json"] if dataset in plan.made else [],
    },
    settings=lambda plan, dataset: {
        **plan.about(dataset),
        "outputs": plan.systems_outputs(dataset),
        "labels": plan.labels_of(dataset, plan.systems_outputs(dataset)),
        "not_run": plan.not_run([dataset]),
    },
    caption=captioned("Every system of {dataset} with its mean rating and mean scores."),
    category="Tables",
)
def systems(
    *,
    scores: Sequence[Path],
    systems: Path,
    responses: Path,
    ratings: Path,
    submissions: Sequence[Path] = (),
    title: str,
    outputs: Sequence[str],
    not_run: Mapping[str, str],
    source: str,
    labels: Mapping[str, str] | None = None,
    target: str | None = None,
    main_target: str | None = None,
) -> Document:
    """Show every system with its ratings and scores."""
    from comperdial.evaluation import aggregate
    from comperdial.report import systems as rendered

    found = read_ratings(ratings, source)
    frame = rendered.systems_frame(
        schema.read(systems, "systems"),
        schema.read(responses, "responses"),
        aggregate.read_scores(scores) if scores else schema.empty("scores"),
        found,
        outputs=outputs,
        dimension=chosen_dimension(target, main_target, found["dimension"]),
    )
    failed = read_json(submissions[0])["failed"] if submissions else {}
    return rendered.systems_document(
        frame, title, failed=failed, not_run=not_run, labels=labels, suffix=rated_by(source)
    )


@table(
    "{dataset}/tables/alpha",
    of=lambda plan: plan.rated,
    inputs=lambda plan, dataset: plan.tables(dataset, "contexts", "ratings"),
    settings=lambda plan, dataset: {
        "title": plan.title(dataset),
        **plan.config["agreement"],
        **plan.rated_by(dataset),
    },
    libraries=("krippendorff",),
    caption=captioned("Krippendorff's alpha on {dataset} with a bootstrap interval, and each rater's bias."),
    category="Tables",
)
def alpha(
    *,
    contexts: Path,
    ratings: Path,
    title: str,
    seed: int,
    resamples: int,
    source: str,
) -> Document:
    """Show how far the raters agree, and how each is biased."""
    from comperdial.evaluation.ratings import alphas, annotator_bias
    from comperdial.report.ratings import agreement_document

    found = read_ratings(ratings, source)
    measured = alphas(found, schema.read(contexts, "contexts"), seed=seed, resamples=resamples, source=source)
    if not measured["items"].any():
        raise NothingToShowError("nothing was rated by two raters or more: no agreement to measure, no human ceiling")
    bias = annotator_bias(found, source=source)
    ending = rated_by(source)
    return agreement_document(measured, bias, title, simulated=ending == SIMULATED, suffix=ending)


@table(
    "{dataset}/tables/correlations",
    of=lambda plan: plan.rated,
    inputs=lambda plan, dataset: {
        "correlations": f"results/{dataset}/correlations.parquet",
        **few.inputs(plan, [dataset]),
    },
    settings=lambda plan, dataset: {
        **plan.about(dataset),
        "labels": plan.labels(dataset),
        "not_run": plan.not_run([dataset]),
    },
    caption=captioned("Correlation of every output of every metric with the mean rating on {dataset}."),
    category="Tables",
)
def correlations(
    *,
    correlations: Path,
    title: str,
    source: str,
    not_run: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    scores: Sequence[Path] = (),
    rated: Sequence[Path] = (),
    target: str | None = None,
    main_target: str | None = None,
) -> Document:
    """Show everything that was computed for a data set; of a few systems with exact p-values, given scores and ratings."""
    from comperdial.report import tables

    found = read_correlations([correlations])
    wanted = chosen_dimension(target, main_target, found["target"])
    found = few.with_exact_p(found[found["target"] == wanted], scores, rated, source=source) if scores else found
    return tables.correlation_document(found, title, wanted, not_run or {}, labels=labels, suffix=rated_by(source))


# The tables of statistics beside the correlations, the file that each is made of, and what the report says of it.
_STATISTICS = {
    "measures": (
        "correlations",
        "Pairwise accuracy (acc_eq), soft pairwise accuracy and correlations by item, beside pooled correlations",
    ),
    "comparisons": ("comparisons", "Which metrics the paired tests tell apart, by each test"),
    "power": ("power", "The chance that a paired test tells two metrics apart, by how much data there is"),
    "curves": ("curves", "How well the ranking of metrics on part of the data agrees with that on all of it"),
}


@table(
    "{dataset}/tables/{kind}",
    of=lambda plan: [{"dataset": dataset, "kind": kind} for dataset in plan.rated for kind in _STATISTICS],
    inputs=lambda plan, dataset, kind: {"found": f"results/{dataset}/{_STATISTICS[kind][0]}.parquet"},
    settings=lambda plan, dataset, kind: {
        "kind": kind,
        **plan.about(dataset),
        **({} if kind == "curves" else {"labels": plan.labels_of(dataset, plan.detailed_outputs(dataset))}),
    },
    caption=lambda plan, dataset, kind: captioned(f"{_STATISTICS[kind][1]}, on {{dataset}}.")(plan, dataset),
    category="The paper's tables",
)
def statistics(
    *,
    found: Path,
    kind: str,
    title: str,
    source: str,
    labels: Mapping[str, str] | None = None,
    target: str | None = None,
    main_target: str | None = None,
) -> Document:
    """Show other measures, paired tests, power or learning curves."""
    from comperdial.report import comparison_tables

    known = {
        "measures": comparison_tables.measures_document,
        "comparisons": comparison_tables.comparisons_document,
        "power": comparison_tables.power_document,
    }
    if kind not in _STATISTICS:
        raise UnknownNameError("kind", kind, _STATISTICS)
    frame = schema.read(found, "correlations" if kind == "measures" else kind)
    if frame.empty:
        raise NothingToShowError("it takes two metrics with scores, and three systems or more")
    wanted = chosen_dimension(target, main_target, frame["target"])
    if kind == "curves":
        return comparison_tables.curves_document(frame, title, wanted, suffix=rated_by(source))
    return known[kind](frame, title, wanted, labels=labels, suffix=rated_by(source))


@table(
    "{dataset}/tables/judges",
    of=lambda plan: [name for name in plan.datasets if plan.judged_by(name)],
    inputs=lambda plan, dataset: {"judgements": plan.judgements(dataset)},
    settings=lambda plan, dataset: {
        "title": plan.title(dataset),
        "labels": plan.judge_labels(dataset),
        "not_run": {name: why for name, why in plan.not_run([dataset]).items() if name not in plan.metrics},
        **plan.rated_by(dataset),
    },
    caption=captioned(
        "What judges were asked on {dataset}, how many answers there were, what could not be read, the cost."
    ),
    category="Tables",
)
def judges(
    *, judgements: Sequence[Path], title: str, labels: Mapping[str, str], not_run: Mapping[str, str], source: str
) -> Document:
    """Show what judges were asked, and what came back."""
    from comperdial.report.judges import judges_document, judges_frame

    return judges_document(judges_frame(judgements), title, labels, not_run, suffix=rated_by(source))


@table(
    "{dataset}/tables/recorded_judges",
    of=lambda plan: [name for name in plan.datasets if plan.recorded_judges_of(name)],
    inputs=lambda plan, dataset: {
        "coverage": [f"results/{dataset}/judgements/{name}.csv" for name in plan.recorded_judges_of(dataset)],
        "reported": "src/comperdial/judges/recorded/chiang2023_reported.csv",
    },
    settings=lambda plan, dataset: {
        "title": plan.title(dataset),
        "prompts": {name: plan.entries[name].prompt for name in plan.recorded_judges_of(dataset)},
        "models": {name: plan.entries[name].model for name in plan.recorded_judges_of(dataset)},
        "labels": plan.labels(dataset),
    },
    caption=lambda plan, dataset: (
        f"Answers of language models on {plan.title(dataset)} that others recorded: how many hold "
        "a rating, and how their means agree with people."
    ),
    category="Tables",
)
def recorded_judges(
    *,
    coverage: Sequence[Path],
    reported: Path,
    title: str,
    prompts: Mapping[str, str],
    models: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
) -> Document:
    """Show recorded answers of judges, beside the reported figures."""
    from comperdial.report.recorded_judges import recorded_judges_document, recorded_judges_frame

    counts, values = ("items", "answers", "unread"), ("pearson", "kendall", "owners_pearson", "owners_kendall")
    texts = ("metric", "dimension", "target", "why")
    found = [read_reported(path, texts, values, given=counts) for path in coverage]
    known = read_reported(reported, ("prompt", "dimension", "coefficient"), given=("value",))
    frame = recorded_judges_frame(pd.concat(found, ignore_index=True), known, prompts)
    return recorded_judges_document(frame, title, models, labels or {})


@files(
    {name: f"results/{{dataset}}/summary/{name}.json" for name in ("metrics", "plot", "environment")},
    of=lambda plan: plan.rated,
    inputs=lambda plan, dataset: {"correlations": f"results/{dataset}/correlations.parquet"},
    settings=lambda plan, dataset: {**plan.target(dataset), **plan.rated_by(dataset)},
)
def summary(
    *,
    outputs: Mapping[str, Path],
    correlations: Path,
    source: str,
    target: str | None = None,
    main_target: str | None = None,
) -> None:
    """Write the numbers that DVC compares between commits."""
    from comperdial.report import summary

    found = read_correlations([correlations])
    wanted = chosen_dimension(target, main_target, found["target"])
    summary.summarise(found, wanted, outputs["metrics"].parent, simulated=source == "simulated")


def _page(plan: Plan, dataset: str) -> str:
    """Return where a data set's page is: one with texts of a fetched data set is not ours to publish, and stays here."""
    return f"local/{dataset}" if plan.is_public(dataset) else f"{dataset}/report"


def _site_inputs(plan: Plan, dataset: str) -> dict[str, Any]:
    found = {
        "scores": plan.scores(dataset),
        **plan.tables(dataset, "systems", "contexts", "responses", "personas", "ratings"),
        "judgements": plan.judgements(dataset),
        "figures": [],
    }
    if dataset in plan.rated:
        from comperdial.report.plots.drawn import plots_of

        found |= {
            **{name: f"results/{dataset}/{name}.parquet" for name in ("correlations", "ceilings", "comparisons")},
            "alpha": f"results/{dataset}/tables/alpha.csv",
            "figures": [f"results/{dataset}/figures/{kind}.png" for kind in plots_of(plan, dataset)],
        }
    return found


@page(
    "{page}",
    of=lambda plan: [{"page": _page(plan, name), "dataset": name} for name in plan.datasets],
    inputs=lambda plan, page, dataset: _site_inputs(plan, dataset),
    settings=lambda plan, page, dataset: {
        **plan.about(dataset),
        "main": plan.systems_outputs(dataset),
        # Of the dialogue browser: those that are evaluated in detail, so that the page stays small.
        "outputs": plan.detailed_outputs(dataset) or None,
        "labels": plan.labels(dataset),
        "not_run": plan.not_run([dataset]),
        "at": f"results/{page}.html",
    },
    # The page's own files that are no modules: its frame, its style, its code.
    code=lambda plan, page, dataset: sorted(
        str(path) for suffix in ("html", "css", "js") for path in Path("src/comperdial/report/site").glob(f"*.{suffix}")
    ),
    caption=lambda plan, page, dataset: captioned(
        "The page of {dataset}: its results in tables that sort, and every response with its ratings, scores and judgements. "
        "It opens without a network."
    )(plan, dataset),
    category="Report",
)
def site(
    *,
    scores: Sequence[Path],
    systems: Path,
    contexts: Path,
    responses: Path,
    personas: Path,
    ratings: Path,
    judgements: Sequence[Path],
    figures: Sequence[Path],
    title: str,
    main: Sequence[str],
    outputs: Sequence[str] | None,
    labels: Mapping[str, str],
    not_run: Mapping[str, str],
    at: str,
    source: str,
    target: str | None = None,
    main_target: str | None = None,
    correlations: Path | None = None,
    ceilings: Path | None = None,
    comparisons: Path | None = None,
    alpha: Path | None = None,
) -> str:
    """Return one page of a data set: its results, and every response with all that was said of it."""
    from comperdial.report.site import contents
    from comperdial.report.site.page import page as rendered

    results = {"correlations": correlations, "ceilings": ceilings, "comparisons": comparisons}
    found = {name: schema.read(path, name) for name, path in results.items() if path}
    if "correlations" in found:
        rated = [contexts, systems, ratings]
        found["correlations"] = few.with_exact_p(found["correlations"], scores, rated, source=source)
    tables = contents.Tables(
        systems=schema.read(systems, "systems"),
        contexts=schema.read(contexts, "contexts"),
        responses=schema.read(responses, "responses"),
        personas=schema.read(personas, "personas"),
        ratings=read_ratings(ratings, source),
        **found,
        # Each file is checked by itself; that no score stands twice was checked when they were correlated.
        scores=pd.concat([schema.read(path, "scores") for path in scores], ignore_index=True),
        judgements=[schema.read(path, "judgements") for path in judgements],
    )
    note = rated_by(source)
    settings = contents.Settings(
        title=title,
        target=chosen_dimension(target, main_target, tables.ratings["dimension"]),
        source=source,
        main=main,
        outputs=outputs,
        not_run=not_run,
        labels=labels,
        figures=[contents.relative(path, Path(at)) for path in figures],
        alpha=alpha,
        note=note,
    )
    return rendered(title, contents.pack(tables, settings), note=note)
