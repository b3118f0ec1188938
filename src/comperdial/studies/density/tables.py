"""The study's tables: what each is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from comperdial.core.artifact import table
from comperdial.studies.density.results import (
    DIALOGUES,
    FOLDER,
    RESULTS,
    SCATTERED,
    of_responses,
    rated,
    rows,
    scores,
    sets,
    shown,
)

if TYPE_CHECKING:
    from comperdial.jobs.plan import Plan
    from comperdial.report.document import Document

_CATEGORY = "DEnsity"
_REPORTED = f"{FOLDER}/correlations.csv"


def _once(plan: Plan) -> list[dict[str, str]]:
    return [{}] if sets(plan) else []


def _files(datasets: Sequence[str], end: str = "") -> list[str]:
    return [f"{RESULTS}/{name}{end}.parquet" for name in datasets]


def _settings(plan: Plan, datasets: Sequence[str], outputs: Iterable[str]) -> dict[str, Any]:
    """Return what the tables of correlations are told: titles, which metrics there are, and why some have no scores."""
    named = {name.partition(":")[0] for name in outputs}
    return {
        # A job's JSON keeps the order of lists alone.
        "datasets": list(datasets),
        "titles": plan.titles(datasets),
        "metrics": sorted(named & plan.metrics.keys()),
        "not_run": {name: why for name, why in plan.not_run(datasets).items() if name in named},
    }


def _examples() -> list[str]:
    return [f"{row['metric']}:{row['output']}" for row in rows()["examples"] if "metric" in row]


def _cards(plan: Plan) -> dict[str, Any]:
    """Return the card of each trained model that is here, by the metric that is made with it."""
    from comperdial.training.trained import CARD, folder_of

    trained = {name: getattr(plan.metrics.get(name), "trained", None) for _, name in rows()["ablation"]["metrics"]}
    paths = {name: folder_of(model) / CARD for name, model in trained.items() if model}
    return {name: str(path) for name, path in paths.items() if path.is_file()}


@table(
    "studies/density/tables/density_table_1",
    of=_once,
    inputs=lambda plan: {"correlations": _files(of_responses(plan)), "reported": _REPORTED},
    settings=lambda plan: {
        **_settings(plan, of_responses(plan), shown(SCATTERED)),
        "sections": rows()["responses"],
    },
    caption="DEnsity's Table 1: correlation of metrics with people's ratings of responses, ours next to the reported values.",
    category=_CATEGORY,
)
def table_1(**said: Any) -> Document:  # noqa: ANN401
    """Show how metrics of single responses correlate with ratings."""
    from comperdial.studies.density import documents

    return documents.table_1(**said)


@table(
    "studies/density/tables/density_tests",
    of=_once,
    inputs=lambda plan: {"differences": _files(of_responses(plan), "_differences")},
    settings=lambda plan: {
        "datasets": of_responses(plan),
        "titles": plan.titles(of_responses(plan)),
        "sections": rows()["responses"],
        "why": plan.not_run(of_responses(plan)).get("density"),
    },
    caption="Whether DEnsity correlates better with people's ratings than each other metric: differences with paired tests.",
    category=_CATEGORY,
)
def paired_tests(**said: Any) -> Document:  # noqa: ANN401
    """Show DEnsity's differences from other metrics, with paired tests."""
    from comperdial.studies.density import documents

    return documents.paired_tests(**said)


@table(
    "studies/density/tables/density_table_2",
    of=_once,
    inputs=lambda plan: {
        "correlations": _files(of_responses(plan)),
        "differences": _files(of_responses(plan), "_differences"),
        "reported": _REPORTED,
    },
    settings=lambda plan: {
        **_settings(plan, of_responses(plan), [f"{name}:" for _, name in rows()["ablation"]["metrics"]]),
        "ablation": rows()["ablation"],
    },
    caption="DEnsity's Table 2: what the contrastive loss and the distance do, ours next to the reported values.",
    category=_CATEGORY,
)
def table_2(**said: Any) -> Document:  # noqa: ANN401
    """Show the ablation of loss and distance."""
    from comperdial.studies.density import documents

    return documents.table_2(**said)


@table(
    "studies/density/tables/density_table_3",
    of=_once,
    inputs=lambda plan: {
        **rated(plan, SCATTERED),
        "scores": scores(plan, SCATTERED, _examples()),
        "reported": f"{FOLDER}/examples.csv",
    },
    settings=lambda plan: {
        **plan.rated_by(SCATTERED),
        **plan.target(SCATTERED),
        "rows": rows()["examples"],
        "title": plan.title(SCATTERED),
        **{
            key: value
            for key, value in _settings(plan, [SCATTERED], _examples()).items()
            if key in ("metrics", "not_run")
        },
    },
    caption="DEnsity's Table 3: what metrics say of the paper's four examples, ours next to the reported scores.",
    category=_CATEGORY,
)
def table_3(**said: Any) -> Document:  # noqa: ANN401
    """Show the scores of the paper's examples."""
    from comperdial.studies.density import documents

    return documents.table_3(**said)


@table(
    "studies/density/tables/density_table_4",
    of=_once,
    inputs=lambda plan: {
        "correlations": _files([DIALOGUES]),
        "ceilings": f"{RESULTS}/{DIALOGUES}_ceilings.parquet",
        "reported": _REPORTED,
    },
    settings=lambda plan: {**_settings(plan, [DIALOGUES], shown(DIALOGUES)), "sections": rows()["dialogues"]},
    caption="DEnsity's Table 4: correlation with people's ratings of whole dialogues, ours next to the reported values.",
    category=_CATEGORY,
)
def table_4(**said: Any) -> Document:  # noqa: ANN401
    """Show how metrics correlate with ratings of dialogues."""
    from comperdial.studies.density import documents

    return documents.table_4(**said)


@table(
    "studies/density/tables/density_table_5",
    of=_once,
    inputs=lambda plan: {"reported": f"{FOLDER}/selection.csv", "cards": list(_cards(plan).values())},
    settings=lambda plan: {
        "trained": list(_cards(plan)),
        "losses": rows()["ablation"]["metrics"],
        "not_run": {
            name: plan.unavailable.get(name, "its model has no card here")
            for _, name in rows()["ablation"]["metrics"]
            if name not in _cards(plan)
        },
    },
    caption="DEnsity's Table 5: how well the models select the right response, with and without the contrastive loss.",
    category=_CATEGORY,
)
def table_5(**said: Any) -> Document:  # noqa: ANN401
    """Show how well the models select responses."""
    from comperdial.studies.density import documents

    return documents.table_5(**said)
