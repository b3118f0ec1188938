"""The tables of any data set: what was rated, what was scored, how both agree (``dataset.yaml`` declares them)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError
from comperdial.core.files import read_json
from comperdial.report import comparison_tables, tables
from comperdial.report import systems as of_systems
from comperdial.report.about import About
from comperdial.report.captions import SIMULATED, rated_by
from comperdial.report.inputs import read_ratings, read_reported
from comperdial.report.judges import judges_document, judges_frame
from comperdial.report.ratings import agreement_document
from comperdial.report.recorded_judges import recorded_judges_document, recorded_judges_frame
from comperdial.report.render import Table, from_document

Inputs = Mapping[str, Sequence[Path]]
Study = Mapping[str, Any]


def _about(inputs: Inputs) -> Mapping[str, Any]:
    return About.read(inputs["about"]).only


def _of(paths: Sequence[Path], outputs: Sequence[str]) -> list[Path]:
    """Return the files of scores that hold some outputs."""
    metrics = {output.rpartition(":")[0] for output in outputs}
    return [path for path in paths if path.stem in metrics]


def systems(inputs: Inputs, study: Study) -> Table:
    """Show every system with its ratings and scores."""
    from comperdial.evaluation import aggregate

    about = _about(inputs)
    ratings = read_ratings(inputs["ratings"][0], about["source"])
    scores = _of(inputs["scores"], about["systems_outputs"])
    frame = of_systems.systems_frame(
        schema.read(inputs["systems"][0], "systems"),
        schema.read(inputs["responses"][0], "responses"),
        aggregate.read_scores(scores) if scores else schema.empty("scores"),
        ratings,
        outputs=about["systems_outputs"],
        dimension=About.read(inputs["about"]).dimension(about["dataset"], ratings["dimension"]),
    )
    # Beside the tables of a challenge: the submissions that could not be read.
    submissions = inputs["systems"][0].with_name("submissions.json")
    failed = read_json(submissions)["failed"] if submissions.is_file() else {}
    return from_document(
        of_systems.systems_document(
            frame,
            about["title"],
            failed=failed,
            not_run=about["not_run"],
            labels=about["labels"],
            suffix=rated_by(about["source"]),
        )
    )


def alpha(inputs: Inputs, study: Study) -> Table:
    """Show how far the raters agree, and how each is biased."""
    from comperdial.evaluation.ratings import alphas, annotator_bias

    about = _about(inputs)
    source, ending = about["source"], rated_by(about["source"])
    ratings = read_ratings(inputs["ratings"][0], source)
    contexts = schema.read(inputs["contexts"][0], "contexts")
    measured = alphas(ratings, contexts, source=source, **about["agreement"])
    if not measured["items"].any():
        raise NothingToShowError("nothing was rated by two raters or more: no agreement to measure, no human ceiling")
    bias = annotator_bias(ratings, source=source)
    return from_document(
        agreement_document(measured, bias, about["title"], simulated=ending == SIMULATED, suffix=ending)
    )


def correlations(inputs: Inputs, study: Study) -> Table:
    """Show every value of every metric at each level."""
    about, found = _ranked(inputs)
    made = tables.correlation_document(
        found,
        about["title"],
        _target(inputs, found),
        about["not_run"],
        labels=about["labels"],
        suffix=rated_by(about["source"]),
    )
    return from_document(made)


def measures(inputs: Inputs, study: Study) -> Table:
    """Show other measures beside pooled correlations."""
    about, found = _ranked(inputs)
    return from_document(comparison_tables.measures_document(*_shown(inputs, about, found), **_named(about)))


def comparisons(inputs: Inputs, study: Study) -> Table:
    """Show the paired tests."""
    about = _about(inputs)
    _, found = main_results(inputs["pairs"][0].parent, about)
    return from_document(comparison_tables.comparisons_document(*_shown(inputs, about, found), **_named(about)))


def power(inputs: Inputs, study: Study) -> Table:
    """Show how often a test finds a difference."""
    about = _about(inputs)
    found = schema.read(inputs["power"][0], "power")
    return from_document(comparison_tables.power_document(*_shown(inputs, about, found), **_named(about)))


def curves(inputs: Inputs, study: Study) -> Table:
    """Show learning curves."""
    about = _about(inputs)
    shown = _shown(inputs, about, schema.read(inputs["curves"][0], "curves"))
    return from_document(comparison_tables.curves_document(*shown, suffix=rated_by(about["source"])))


def _ranked(inputs: Inputs) -> tuple[Mapping[str, Any], pd.DataFrame]:
    """Return what is known of a data set, and its correlations, ranked."""
    about = _about(inputs)
    found, _ = main_results(inputs["correlations"][0].parent, about)
    if found.empty:
        raise NothingToShowError("there are no ratings that scores could be correlated with")
    return about, found


def main_results(folder: Path, about: Mapping[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a data set's correlations, ranked, and the tests of its main outputs, corrected; none of metrics that are apart."""
    from comperdial.report.ranking import corrected, with_ranks

    found = schema.read(folder / "correlations.parquet", "correlations")
    found = found[~found["metric"].isin(about["apart"])]
    pairs = schema.read(folder / "pairs.parquet", "pairs")
    if outputs := {*about["outputs"]}:
        for side in "ab":
            pairs = pairs[(pairs[f"metric_{side}"] + ":" + pairs[f"output_{side}"]).isin(outputs)]
    return with_ranks(found, pairs), corrected(pairs)


def _target(inputs: Inputs, found: pd.DataFrame) -> str:
    about = About.read(inputs["about"])
    return about.dimension(about.only["dataset"], found["target"])


def _shown(inputs: Inputs, about: Mapping[str, Any], found: pd.DataFrame) -> tuple[pd.DataFrame, str, str]:
    if found.empty:
        raise NothingToShowError("it takes two metrics with scores, and three systems or more")
    return found, about["title"], _target(inputs, found)


def _named(about: Mapping[str, Any]) -> dict[str, Any]:
    return {"labels": about["labels"], "suffix": rated_by(about["source"])}


def judges(inputs: Inputs, study: Study) -> Table:
    """Show what judges were asked, and what came back."""
    about = _about(inputs)
    not_run = {name: why for name, why in about["not_run"].items() if name in about["judges"]}
    labels = {name: one["label"] for name, one in about["judges"].items()}
    frame = judges_frame(inputs["judgements"])
    return from_document(judges_document(frame, about["title"], labels, not_run, suffix=rated_by(about["source"])))


def recorded_judges(inputs: Inputs, study: Study) -> Table:
    """Show recorded answers of judges, beside the reported figures."""
    about = _about(inputs)
    known = {name: about["judges"][name] for name in about["recorded_judges"]}
    counts, values = ("items", "answers", "unread"), ("pearson", "kendall", "owners_pearson", "owners_kendall")
    texts = ("metric", "dimension", "target", "why")
    found = [read_reported(path, texts, values, given=counts) for path in inputs["coverage"]]
    reported = read_reported(inputs["reported"][0], ("prompt", "dimension", "coefficient"), given=("value",))
    prompts = {name: one["prompt"] for name, one in known.items()}
    models = {name: one["model"] for name, one in known.items()}
    frame = recorded_judges_frame(pd.concat(found, ignore_index=True), reported, prompts)
    return from_document(recorded_judges_document(frame, about["title"], models, about["labels"]))
