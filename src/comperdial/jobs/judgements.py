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

_STUDY = "results/llm_evaluators"

# A study's data sets may have texts that are not ours to publish, so what is made of them lies apart.
_JUDGED = {"scores": "{results}/scores/{judged}.parquet", "judgements": "{results}/judgements/{judged}.parquet"}
_RESULTS = "results"


def _dataset(judged: str) -> str:
    return judged.split("/")[0]


def _asked(plan: Plan, *, sharded: bool) -> list[dict[str, str]]:
    """Return what judges can be asked, and where it goes, of data sets with several shards or with one."""
    here = [judged for judged in plan.askable() if (plan.shards(_dataset(judged)) > 1) == sharded]
    studied = [judged for judged in here if _dataset(judged) in [*plan.studied, *plan.paired]]
    return [
        {"results": results, "judged": judged}
        for results, names in ((_RESULTS, here), (_STUDY, studied))
        for judged in names
    ]


def _tables(plan: Plan, judged: str, **_: str) -> dict[str, Any]:
    task = plan.judged[judged]
    return {
        **plan.tables(_dataset(judged), "systems", "contexts", "responses"),
        # The scores of the turns that a judge of dialogues is given.
        "turns": [plan.score_file(_dataset(judged), task.turns)] if task.turns else [],
    }


def _how(plan: Plan, judged: str, shard: str = "1-of-1", **_: str) -> dict[str, Any]:
    return {**plan.judge_settings(judged), "shard": shard}


def _code(plan: Plan, judged: str, **_: str) -> list[str]:
    return plan.judge_code(judged)


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
        "scores": "results/shards/judged/{judged}/{shard}.parquet",
        "judgements": "results/shards/judgements/{judged}/{shard}.parquet",
    },
    of=lambda plan: [
        {"judged": names["judged"], "shard": shard}
        for names in _asked(plan, sharded=True)
        if names["results"] == _RESULTS
        for shard in _shards(plan, _dataset(names["judged"]))
    ],
    inputs=_tables,
    settings=_how,
    code=_code,
    temporary=True,
)
def judge_shard(**said: Any) -> None:  # noqa: ANN401
    """Ask a judge about one shard."""
    judge(**said)


def _parts(plan: Plan, judged: str, **_: str) -> dict[str, Any]:
    shards = _shards(plan, _dataset(judged))
    return {
        **_tables(plan, judged),
        "shards": [f"results/shards/judged/{judged}/{shard}.parquet" for shard in shards],
        "parts": [f"results/shards/judgements/{judged}/{shard}.parquet" for shard in shards],
    }


def _merged(plan: Plan, judged: str, **_: str) -> dict[str, Any]:
    # As for scores: what decides a shard is said again.
    return {"made": _how(plan, judged)}


def _merged_code(plan: Plan, judged: str, **_: str) -> list[str]:
    return ["jobs.judgements:judge", *plan.judge_code(judged)]


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


def _answers(plan: Plan, judged: str, **_: str) -> dict[str, Any]:
    from comperdial.data.sources import raw_path
    from comperdial.judges.recorded import find

    entry = plan.recorded_judges[judged]
    ratings = f"{find(entry.format).level}_ratings"
    return {
        **plan.tables(entry.dataset, "systems", "contexts", "responses"),
        "ratings": plan.tables(entry.dataset, ratings)[ratings],
        "files": [str(raw_path(file)) for file in entry.files.values()],
    }


def _how_answered(plan: Plan, judged: str, **_: str) -> dict[str, Any]:
    entry = plan.recorded_judges[judged]
    return {
        "judge": {"name": entry.name, "format": entry.format, "model": entry.model, "prompt": entry.prompt},
        "sources": {dimension: file.name for dimension, file in entry.files.items()},
        "sha256": [file.sha256 for file in entry.files.values()],
        "catalogue": plan.config["catalogue"],
    }


def _answers_code(plan: Plan, judged: str, **_: str) -> list[str]:
    return [f"judges.recorded.{plan.recorded_judges[judged].format}"]


@files(
    {**_JUDGED, "coverage": "{results}/judgements/{judged}.csv"},
    of=lambda plan: [
        {"results": results, "judged": judged}
        for judged, entry in plan.recorded_judges.items()
        for results in (_RESULTS, _STUDY)
        if results == _RESULTS or entry.dataset in plan.studied
    ],
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
