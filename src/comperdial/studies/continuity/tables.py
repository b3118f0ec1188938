"""The study's tables and its figure: what each is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.core.artifact import figure, table
from comperdial.studies.continuity import dcp
from comperdial.studies.continuity.results import FOLDER, NAME, RESULTS, hazumi, of_perspective, once, rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from comperdial.jobs.plan import Plan
    from comperdial.report.document import Document

_CATEGORY = "Whose eye"
_REPORTED = {"reported": f"{FOLDER}/reported.csv"}


def _reported(path: Path) -> pd.DataFrame:
    from comperdial.report.inputs import read_reported

    found = read_reported(path, ("table", "row", "column", "place"), given=("value",))
    return found.assign(table=found["table"].astype(str))


def _of_hazumi(plan: Plan) -> list[dict[str, str]]:
    return [{}] if hazumi(plan) else []


@table(
    f"studies/{NAME}/tables/{NAME}_1",
    of=_of_hazumi,
    inputs=lambda plan: {"exchanges": [f"{RESULTS}/{name}_exchanges.csv" for name in hazumi(plan)], **_REPORTED},
    settings=lambda plan: {"titles": plan.titles(hazumi(plan))},
    caption="Hazumi: exchanges, lengths and what is left out, next to Table 1 of Tsuta et al. 2023.",
    category=_CATEGORY,
)
def table_1(*, exchanges: Sequence[Path], reported: Path, titles: Mapping[str, str]) -> Document:
    """Show what Hazumi holds."""
    from comperdial.report.inputs import read_reported
    from comperdial.studies.continuity import documents

    numbers = ("wizard_characters", "participant_characters")
    found = {
        name: read_reported(path, ("dialogue_id", "turn", "lacks"), given=numbers)
        for path in exchanges
        for name in titles
        if path.name == f"{name}_exchanges.csv"
    }
    return documents.table_1(found, _reported(reported), titles)


def _prediction(path: Path) -> pd.DataFrame:
    from comperdial.report.inputs import read_reported

    numbers = ("value", "low", "high", "n", "persons", "penalty", "train", "validation")
    return read_reported(path, ("prediction", "measure"), numbers)


_VALUES = {"values": f"{RESULTS}/score_prediction.csv"}


@table(
    f"studies/{NAME}/tables/{NAME}_2",
    of=_of_hazumi,
    inputs=lambda plan: {**_VALUES, "differences": f"{RESULTS}/score_prediction_differences.csv", **_REPORTED},
    settings=lambda plan: {"rows": rows()["prediction"]},
    caption="Predicting the interlocutor's score with and without knowing who they are, next to Table 2 of Tsuta et al. 2023.",
    category=_CATEGORY,
)
def table_2(*, values: Path, differences: Path, reported: Path, rows: Mapping[str, Any]) -> Document:
    """Show what predicts the interlocutor's score, over all exchanges and within persons."""
    from comperdial.report.inputs import read_reported
    from comperdial.studies.continuity import documents

    apart = read_reported(differences, ("prediction", "other", "measure"), ("difference", "low", "high", "p"))
    return documents.table_2(_prediction(values), apart, _reported(reported), rows)


@figure(
    f"studies/{NAME}/figures/{NAME}_2",
    of=_of_hazumi,
    inputs=lambda plan: {**_VALUES, **_REPORTED},
    settings=lambda plan: {"rows": rows()["prediction"]},
    caption="Pearson's r with the interlocutor's score, over all exchanges and within persons.",
    category=_CATEGORY,
)
def table_2_figure(*, values: Path, reported: Path, rows: Mapping[str, Any]) -> tuple[Figure, pd.DataFrame]:
    """Draw what predicts the interlocutor's score, with intervals."""
    from comperdial.studies.continuity import documents

    return documents.table_2_figure(_prediction(values), rows, _reported(reported))


@table(
    f"studies/{NAME}/tables/{NAME}_3",
    of=once,
    inputs=lambda plan: _REPORTED,
    caption="The conversations of Table 3 of Tsuta et al. 2023, which cannot be had.",
    category=_CATEGORY,
)
def table_3(*, reported: Path) -> Document:
    """Show the paper's statistics of its conversations on X."""
    from comperdial.studies.continuity import documents

    return documents.table_3(_reported(reported))


def _of_dcp(plan: Plan, name: str) -> list[str]:
    return [f"{RESULTS}/{name}.csv"] if "convai2" in dcp.sets(plan) else []


@table(
    f"studies/{NAME}/tables/{NAME}_4",
    of=once,
    inputs=lambda plan: {"measures": _of_dcp(plan, "dcp"), **_REPORTED},
    caption="Dialogue continuity prediction, next to Table 4 of Tsuta et al. 2023.",
    category=_CATEGORY,
)
def table_4(*, measures: Sequence[Path], reported: Path) -> Document:
    """Show how well it is predicted whether a user goes on."""
    import pandas as pd

    from comperdial.studies.continuity import documents

    return documents.table_4(pd.read_csv(measures[0]) if measures else None, _reported(reported))


@figure(
    f"studies/{NAME}/figures/{NAME}_history",
    of=lambda plan: [{}] if _of_dcp(plan, "dcp") else [],
    inputs=lambda plan: {"measures": f"{RESULTS}/dcp.csv"},
    caption="How well it is predicted whether a user goes on, by how many of their conversations were trained on.",
    category=_CATEGORY,
)
def history_figure(*, measures: Path) -> tuple[Figure, pd.DataFrame]:
    """Draw the accuracy against the amount of the user's history; users without any are apart."""
    import pandas as pd

    from comperdial.studies.continuity.history import draw

    return draw(pd.read_csv(measures))


@table(
    f"studies/{NAME}/tables/{NAME}_5",
    of=once,
    inputs=lambda plan: {"liking": _of_dcp(plan, "dcp_liking"), **_REPORTED},
    caption="Whether continuing means liking, next to Table 5 of Tsuta et al. 2023.",
    category=_CATEGORY,
)
def table_5(*, liking: Sequence[Path], reported: Path) -> Document:
    """Show whether predicted continuing agrees with what interlocutors say."""
    import pandas as pd

    from comperdial.studies.continuity import documents

    return documents.table_5(pd.read_csv(liking[0]) if liking else None, _reported(reported))


@table(
    f"studies/{NAME}/tables/{NAME}_perspective",
    of=once,
    inputs=lambda plan: {"found": f"{RESULTS}/perspective.csv"},
    settings=lambda plan: {
        # A job's JSON keeps the order of lists alone.
        "datasets": list(of_perspective(plan)),
        "titles": {name: plan.public[name].title for name in of_perspective(plan)},
    },
    caption="Metrics that need no model, in the interlocutor's eye and in outsiders'.",
    category=_CATEGORY,
)
def perspective_table(*, found: Path, datasets: Sequence[str], titles: Mapping[str, str]) -> Document:
    """Show how metrics rank in the interlocutor's eye and in outsiders'."""
    from comperdial.report.inputs import read_reported
    from comperdial.studies.continuity.documents import perspective_document

    numbers = ("value", "low", "high", "p", "n", "clusters", "rank")
    known = read_reported(found, ("dataset", "level", "metric", "role"), numbers)
    return perspective_document(known, datasets, titles)
