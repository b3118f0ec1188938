"""What makes judgements, and scores of them: judges asked here, shard by shard, and answers that others recorded.

Each answer is asked for once and kept in the ledger, a folder that no job owns: Snakemake removes what a job makes before it
runs again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.core.artifact import files
from comperdial.jobs.scores import _shards

if TYPE_CHECKING:
    from comperdial.jobs.plan import Plan

_JUDGED = {
    "scores": "results/{dataset}/scores/{metric}.parquet",
    "judgements": "results/{dataset}/judgements/{metric}.parquet",
}


def _named(judged: str) -> dict[str, str]:
    """Return the wildcards of what a plan calls <data set>/<metric>."""
    return dict(zip(("dataset", "metric"), judged.split("/"), strict=True))


def _asked(plan: Plan, *, sharded: bool) -> list[dict[str, str]]:
    """Return what judges can be asked, of data sets with several shards or with one."""
    asked = map(_named, plan.askable())
    return [names for names in asked if (plan.shards(names["dataset"]) > 1) == sharded]


def _tables(plan: Plan, dataset: str, metric: str, **_: str) -> dict[str, Any]:
    task = plan.judged[f"{dataset}/{metric}"]
    return {
        **plan.tables(dataset, "systems", "contexts", "responses"),
        # The scores of the turns that a judge of dialogues is given.
        "turns": [plan.score_file(dataset, task.turns)] if task.turns else [],
    }


def _how(plan: Plan, dataset: str, metric: str, shard: str = "1-of-1", **_: str) -> dict[str, Any]:
    return {**plan.judge_settings(f"{dataset}/{metric}"), "shard": shard}


def _code(plan: Plan, dataset: str, metric: str, **_: str) -> list[str]:
    return plan.judge_code(f"{dataset}/{metric}")


@files(_JUDGED, of=lambda plan: _asked(plan, sharded=False), inputs=_tables, settings=_how, code=_code)
def judge(
    *,
    outputs: Mapping[str, Path],
    systems: Path,
    contexts: Path,
    responses: Path,
    turns: Sequence[Path],
    dataset: str,
    metric: str,
    sections: Mapping[str, Any],
    signature: str,
    shard: str,
) -> None:
    """Ask a judge what the ledger does not hold, and write scores and judgements."""
    from comperdial.core.sharding import Shard
    from comperdial.judges.scores import write_judged
    from comperdial.judges.tasks import read_sections

    judging = read_sections(sections)
    write_judged(
        judging,
        judging.tasks(dataset)[metric],
        responses.parent,
        outputs["scores"],
        outputs["judgements"],
        dataset=dataset,
        turns=turns[0] if turns else None,
        shard=Shard.parse(shard.replace("-of-", "/")),
    )


@files(
    {
        "scores": "results/shards/judged/{dataset}/{metric}/{shard}.parquet",
        "judgements": "results/shards/judgements/{dataset}/{metric}/{shard}.parquet",
    },
    of=lambda plan: [
        {**names, "shard": shard} for names in _asked(plan, sharded=True) for shard in _shards(plan, names["dataset"])
    ],
    inputs=_tables,
    settings=_how,
    code=_code,
    temporary=True,
)
def judge_shard(**said: Any) -> None:  # noqa: ANN401
    """Ask a judge about one shard."""
    judge(**said)


def _parts(plan: Plan, dataset: str, metric: str) -> dict[str, Any]:
    shards = _shards(plan, dataset)
    return {
        **_tables(plan, dataset, metric),
        "shards": [f"results/shards/judged/{dataset}/{metric}/{shard}.parquet" for shard in shards],
        "parts": [f"results/shards/judgements/{dataset}/{metric}/{shard}.parquet" for shard in shards],
    }


def _merged(plan: Plan, dataset: str, metric: str) -> dict[str, Any]:
    # As for scores: a shard is gone once it is merged, so that what decides it is part of the merging job too.
    return {"made": _how(plan, dataset, metric)}


def _merged_code(plan: Plan, dataset: str, metric: str) -> list[str]:
    return ["jobs.judgements:judge", *_code(plan, dataset, metric)]


@files(
    _JUDGED,
    of=lambda plan: _asked(plan, sharded=True),
    inputs=_parts,
    settings=_merged,
    code=_merged_code,
)
def merge_judged(*, outputs: Mapping[str, Path], shards: Sequence[Path], parts: Sequence[Path], **_: Any) -> None:  # noqa: ANN401
    """Merge what was judged of a data set's shards."""
    from comperdial.judges.scores import merge_judged

    merge_judged(shards, parts, outputs["scores"], outputs["judgements"])


def _answers(plan: Plan, dataset: str, metric: str) -> dict[str, Any]:
    from comperdial.data.sources import raw_path

    entry = plan.recorded_judges[f"{dataset}/{metric}"]
    return {
        **plan.tables(entry.dataset, "systems", "contexts", "responses", "ratings"),
        "files": [str(raw_path(file)) for file in entry.files.values()],
    }


def _how_answered(plan: Plan, dataset: str, metric: str) -> dict[str, Any]:
    entry = plan.recorded_judges[f"{dataset}/{metric}"]
    return {
        "judge": {"name": entry.name, "format": entry.format, "model": entry.model, "prompt": entry.prompt},
        "sources": {dimension: file.name for dimension, file in entry.files.items()},
        "sha256": [file.sha256 for file in entry.files.values()],
        "catalogue": plan.config["catalogue"],
    }


def _answers_code(plan: Plan, dataset: str, metric: str) -> list[str]:
    return [f"judges.recorded.{plan.recorded_judges[f'{dataset}/{metric}'].format}"]


@files(
    {**_JUDGED, "coverage": "results/{dataset}/judgements/{metric}.csv"},
    of=lambda plan: [_named(judged) for judged in plan.recorded_judges],
    inputs=_answers,
    settings=_how_answered,
    code=_answers_code,
)
def recorded_judge(
    *,
    outputs: Mapping[str, Path],
    systems: Path,
    contexts: Path,
    responses: Path,
    ratings: Path,
    files: Sequence[Path],
    judge: Mapping[str, str],
    sources: Mapping[str, str],
    sha256: Sequence[str],
    catalogue: str,
) -> None:
    """Make scores of a judge's answers that others recorded."""
    from comperdial.judges.recorded.taking import take_answers

    take_answers(
        judge,
        sources,
        responses.parent,
        outputs["scores"],
        catalogue=Path(catalogue),
        judgements_to=outputs["judgements"],
        coverage_to=outputs["coverage"],
    )
