"""What makes scores: metrics, shard by shard where a data set has several, and scores computed elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.core.artifact import files

if TYPE_CHECKING:
    from comperdial.jobs.plan import Plan


def metric_modules(*metrics: Any) -> list[str]:  # noqa: ANN401
    """Return the package's modules that metrics are made of, in one order."""
    return sorted({f"metrics.{name}" for metric in metrics for name in metric.modules})


def _scored(plan: Plan, *, sharded: bool) -> Iterator[dict[str, str]]:
    for dataset in plan.datasets:
        if (plan.shards(dataset) > 1) == sharded:
            for metric in plan.here:
                # Scores of a metric that cannot run here are nobody's output: pulled ones are taken as they are.
                if metric not in plan.combined and metric not in plan.unsuited(dataset):
                    yield {"dataset": dataset, "metric": metric}


def _how_scored(plan: Plan, dataset: str, metric: str, shard: str = "1-of-1") -> dict[str, Any]:
    made = plan.metric(dataset, metric)
    return {
        "kind": made.kind,
        "metric": metric,
        "options": plan.options(dataset, metric),
        # The versions of libraries, and of the metric itself.
        "signature": made.signature(),
        "shard": shard,
    }


def _scored_tables(plan: Plan, dataset: str, metric: str, shard: str = "") -> dict[str, Any]:
    return plan.tables(dataset, "systems", "contexts", "responses")


@files(
    {"scores": "results/{dataset}/scores/{metric}.parquet"},
    of=lambda plan: _scored(plan, sharded=False),
    inputs=_scored_tables,
    settings=_how_scored,
    code=lambda plan, dataset, metric: metric_modules(plan.metrics[metric]),
)
def score(
    *,
    outputs: Mapping[str, Path],
    systems: Path,
    contexts: Path,
    responses: Path,
    kind: str,
    metric: str,
    options: Mapping[str, Any],
    signature: str,
    shard: str,
) -> None:
    """Score a data set with a metric."""
    from comperdial.core.sharding import Shard
    from comperdial.metrics import create, scoring

    scoring.write_scores(
        create(kind, **options), metric, responses.parent, outputs["scores"], Shard.parse(shard.replace("-of-", "/"))
    )


@files(
    {"scores": "results/shards/scores/{dataset}/{metric}/{shard}.parquet"},
    of=lambda plan: [
        {**names, "shard": shard} for names in _scored(plan, sharded=True) for shard in _shards(plan, names["dataset"])
    ],
    inputs=_scored_tables,
    settings=_how_scored,
    code=lambda plan, dataset, metric, shard: metric_modules(plan.metrics[metric]),
    temporary=True,
)
def score_shard(**said: Any) -> None:  # noqa: ANN401
    """Score one shard of a data set with a metric."""
    score(**said)


def _shards(plan: Plan, dataset: str) -> list[str]:
    return [f"{number}-of-{plan.shards(dataset)}" for number in range(1, plan.shards(dataset) + 1)]


@files(
    {"scores": "results/{dataset}/scores/{metric}.parquet"},
    of=lambda plan: _scored(plan, sharded=True),
    inputs=lambda plan, dataset, metric: {
        **_scored_tables(plan, dataset, metric),
        "shards": [f"results/shards/scores/{dataset}/{metric}/{shard}.parquet" for shard in _shards(plan, dataset)],
    },
    # Shards are gone once they are merged: what decides their scores is said again, so that a change makes these stale.
    settings=lambda plan, dataset, metric: {"made": _how_scored(plan, dataset, metric)},
    code=lambda plan, dataset, metric: ["jobs.scores:score", *metric_modules(plan.metrics[metric])],
)
def merge_scores(*, outputs: Mapping[str, Path], shards: Sequence[Path], **_: Any) -> None:  # noqa: ANN401
    """Merge the scores of a data set's shards."""
    from comperdial.schema.parquet import merge

    merge(shards, outputs["scores"])


@files(
    {"scores": "results/{dataset}/scores/{metric}.parquet"},
    of=lambda plan: [
        {"dataset": dataset, "metric": metric}
        for dataset in plan.datasets
        for metric in plan.combined
        if metric not in plan.unsuited(dataset)
    ],
    inputs=lambda plan, dataset, metric: {
        **_scored_tables(plan, dataset, metric),
        "parts": [plan.score_file(dataset, part) for part in plan.parts_of(dataset, metric)],
    },
    settings=lambda plan, dataset, metric: {
        **{key: value for key, value in _how_scored(plan, dataset, metric).items() if key not in ("kind", "shard")},
        "names": plan.parts_of(dataset, metric),
    },
    code=lambda plan, dataset, metric: metric_modules(plan.metrics[metric]),
)
def score_from_parts(
    *,
    outputs: Mapping[str, Path],
    systems: Path,
    contexts: Path,
    responses: Path,
    parts: Sequence[Path],
    metric: str,
    options: Mapping[str, Any],
    signature: str,
    names: Sequence[str],
) -> None:
    """Score a data set with a metric that is made of others' scores; what these have scored is not computed again."""
    from comperdial.metrics import local

    local.score_from(
        local.Local(**options), metric, responses.parent, dict(zip(names, parts, strict=True)), outputs["scores"]
    )


def _recorded(plan: Plan, dataset: str, metric: str) -> dict[str, Any]:
    from comperdial.data.sources import raw_path

    file = plan.recorded_scores[f"{dataset}/{metric}"].file
    return {
        **plan.tables(dataset, "systems", "contexts", "responses", "ratings"),
        "scores": str(file if isinstance(file, Path) else raw_path(file)),
    }


def _how_recorded(plan: Plan, dataset: str, metric: str) -> dict[str, Any]:
    entry = plan.recorded_scores[f"{dataset}/{metric}"]
    # The origin stands in the signature.
    told = {"metric": metric, "format": entry.format, "about": entry.about, "origin": entry.origin}
    if isinstance(entry.file, Path):
        return told
    return told | {
        "source": entry.file.name,
        "sha256": entry.file.sha256,
        "catalogue": plan.config["catalogue"],
    }


@files(
    {"scores": "results/{dataset}/scores/{metric}.parquet"},
    of=lambda plan: [{"dataset": entry.dataset, "metric": entry.name} for entry in plan.recorded_scores.values()],
    inputs=_recorded,
    settings=_how_recorded,
    code=lambda plan, dataset, metric: [f"data.recorded.{plan.recorded_scores[f'{dataset}/{metric}'].format}"],
)
def recorded_scores(
    *,
    outputs: Mapping[str, Path],
    systems: Path,
    contexts: Path,
    responses: Path,
    ratings: Path,
    scores: Path,
    metric: str,
    format: str,
    about: str,
    origin: str,
    source: str | None = None,
    sha256: str | None = None,
    catalogue: str | None = None,
) -> None:
    """Take scores that were computed elsewhere."""
    from comperdial import schema
    from comperdial.data.recorded.importing import import_scores

    if source:
        from comperdial.data.catalogue import load_catalogue
        from comperdial.data.sources import require

        scores = require(load_catalogue(str(catalogue)).file(source))
    found = import_scores(
        metric,
        responses.parent,
        scores,
        format=format,
        origin=origin,
        about=about,
        ratings=ratings,
    )
    schema.write(outputs["scores"], found, "scores")


@files(
    {"scores": "results/{dataset}/study_scores.parquet"},
    of=lambda plan: [*plan.studied, *plan.paired],
    inputs=lambda plan, dataset: plan.tables(dataset, "systems", "contexts", "responses"),
    settings=lambda plan, dataset: {
        "metrics": {name: plan.study_options(name) for name in plan.study_here},
        "signatures": [plan.study_metrics[name].signature() for name in plan.study_here],
    },
    code=lambda plan, dataset: metric_modules(*(plan.study_metrics[name] for name in plan.study_here)),
)
def study_scores(
    *,
    outputs: Mapping[str, Path],
    systems: Path,
    contexts: Path,
    responses: Path,
    metrics: Mapping[str, Mapping[str, Any]],
    signatures: Sequence[str],
) -> None:
    """Score a data set with all metrics of the study in one process.

    To start Python with torch for each would take longer than to score.
    """
    from comperdial.metrics import create, scoring

    made = {
        name: create(entry["kind"], **{k: v for k, v in entry.items() if k != "kind"})
        for name, entry in metrics.items()
    }
    scoring.score_all(made, responses.parent, outputs["scores"])
