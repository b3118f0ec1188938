"""The overall ranking: its tasks, its numbers and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.config import load_yaml
from comperdial.core.artifact import figure, files, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from comperdial.jobs.plan import Plan
    from comperdial.report.document import Document

_NAME = "overall"
_RESULTS = f"results/studies/{_NAME}"
_TABLES = ("contexts", "systems", "ratings")


def boards() -> dict[str, Any]:
    """Return the boards as ``boards.yaml`` has them."""
    return dict(load_yaml(Path(__file__).with_name("boards.yaml"))["boards"])


def _datasets(plan: Plan, board: str) -> list[str]:
    wanted = {name for task in boards()[board]["tasks"] for name in task["datasets"]}
    return [name for name in plan.sets_of.get(_NAME, []) if name in wanted]


def _here(plan: Plan) -> list[str]:
    return [board for board in boards() if _datasets(plan, board)]


def _scores(plan: Plan, board: str, dataset: str) -> list[str]:
    if boards()[board]["level"] == "dialogue":
        # Scored for the study of LLMs as evaluators, all metrics in one file.
        return plan.study_scores(dataset)[:1] if dataset in plan.studied else []
    return plan.scores(dataset, [f"{row['metric']}:{row['output']}" for row in boards()[board]["outputs"]])


@files(
    {
        "overall": f"{_RESULTS}/{{board}}.parquet",
        "tests": f"{_RESULTS}/{{board}}_comparisons.parquet",
        "pairs": f"{_RESULTS}/{{board}}_pairs.parquet",
    },
    of=lambda plan: [{"board": board} for board in _here(plan)],
    inputs=lambda plan, board: {
        "tables": [path for name in _datasets(plan, board) for path in plan.tables(name, *_TABLES).values()],
        "scores": [path for name in _datasets(plan, board) for path in _scores(plan, board, name)],
    },
    settings=lambda plan, board: {
        **{key: plan.config["studies"][_NAME][key] for key in ("resamples", "seed")},
        "board": {"name": board, **boards()[board]},
        "targets": {name: plan.target(name) for name in _datasets(plan, board)},
    },
    libraries=("scipy",),
)
def overall_ranking(
    *,
    outputs: Mapping[str, Path],
    tables: Sequence[Path],
    scores: Sequence[Path],
    board: Mapping[str, Any],
    targets: Mapping[str, Mapping[str, str | None]],
    resamples: int,
    seed: int,
) -> None:
    """Rank the metrics of a board on each of its tasks, and over all."""
    from comperdial import schema
    from comperdial.evaluation.overall import Board, overall, pairs_of_systems, read_samples

    names = [(row["metric"], row["output"]) for row in board["outputs"]]
    folders = {path.parent.name: path.parent for path in tables}
    found = read_samples(folders, scores, names, level=board["level"], source=board["source"], targets=targets)
    tasks = Board.of(board["name"], board["tasks"])
    frame, tests = overall(tasks, found, names, resamples=resamples, seed=seed, missing=board["missing"])
    schema.write(outputs["overall"], frame, "overall")
    schema.write(outputs["tests"], tests, "overall_comparisons")
    systems = [schema.read(path, "systems") for path in tables if path.stem == "systems"]
    kinds = {
        str(frame["dataset"].iloc[0]): dict(zip(frame["system_id"], frame["kind"], strict=True))
        for frame in systems
        if len(frame)
    }
    schema.write(outputs["pairs"], pairs_of_systems(tasks, found, kinds), "overall_pairs")


def _inputs(plan: Plan) -> dict[str, Any]:
    return {
        "overall": [f"{_RESULTS}/{board}.parquet" for board in _here(plan)],
        "tests": [f"{_RESULTS}/{board}_comparisons.parquet" for board in _here(plan)],
    }


def _settings(plan: Plan) -> dict[str, Any]:
    return {
        "titles": plan.titles(plan.sets_of.get(_NAME, [])),
        "boards": {board: boards()[board] for board in _here(plan)},
    }


def _read(overall: Sequence[Path], tests: Sequence[Path]) -> tuple[pd.DataFrame, pd.DataFrame]:
    import pandas as pd

    from comperdial import schema

    return (
        pd.concat([schema.read(path, "overall") for path in overall], ignore_index=True),
        pd.concat([schema.read(path, "overall_comparisons") for path in tests], ignore_index=True),
    )


def _once(plan: Plan) -> list[dict[str, str]]:
    return [{}] if _here(plan) else []


@table(
    "studies/overall/tables/overall",
    of=_once,
    inputs=lambda plan: {**_inputs(plan), "pairs": [f"{_RESULTS}/{board}_pairs.parquet" for board in _here(plan)]},
    settings=_settings,
    caption="Metrics ranked over all real data sets, as the WMT metrics tasks rank theirs, with both rules of significance.",
    category="Tables",
)
def overall_table(
    *,
    overall: Sequence[Path],
    tests: Sequence[Path],
    titles: Mapping[str, str],
    boards: Mapping[str, Any],
    pairs: Sequence[Path] = (),
) -> Document:
    """Show each board: the overall ranking, and every task."""
    import pandas as pd

    from comperdial import schema
    from comperdial.studies.overall.show import overall_document

    known = [schema.read(path, "overall_pairs") for path in pairs]
    return overall_document(
        *_read(overall, tests), titles, boards, pd.concat(known, ignore_index=True) if known else None
    )


@figure(
    "studies/overall/figures/overall",
    of=_once,
    inputs=_inputs,
    settings=_settings,
    caption="The overall score of metrics on real responses, with 95 % intervals and clusters of rank.",
    category="Figures",
)
def overall_figure(
    *, overall: Sequence[Path], tests: Sequence[Path], titles: Mapping[str, str], boards: Mapping[str, Any]
) -> tuple[Figure, pd.DataFrame]:
    """Draw the overall scores of the boards that people rated."""
    from comperdial.studies.overall.show import draw_overall

    return draw_overall(_read(overall, tests)[0], boards)
