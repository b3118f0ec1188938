"""The study's numbers: exchanges of Hazumi, predictions of the interlocutor's score, metrics in whose eye."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.config import load_yaml
from comperdial.core.artifact import files

if TYPE_CHECKING:
    import pandas as pd

    from comperdial.jobs.plan import Plan

NAME = "continuity"
FOLDER = f"src/comperdial/studies/{NAME}"
RESULTS = f"results/studies/{NAME}"
ROWS = Path(__file__).with_name("rows.yaml")
# Ratings by the people who chatted, of dialogues whose table has those of outsiders alone.
_IEVAL = "ieval"


def rows() -> dict[str, Any]:
    """Return what ``rows.yaml`` says."""
    return load_yaml(ROWS)


def sets(plan: Plan) -> list[str]:
    """Return the study's data sets; none where the configuration's catalogue lacks one."""
    return plan.sets_of.get(NAME, [])


def hazumi(plan: Plan) -> list[str]:
    """Return those that interlocutors and outsiders scored."""
    return [name for name in sets(plan) if plan.public[name].reader == "hazumi"]


def once(plan: Plan) -> list[dict[str, str]]:
    """Return the one instance of what shows the whole study."""
    return [{}] if sets(plan) else []


def drawn(plan: Plan) -> dict[str, Any]:
    """Return the settings of intervals."""
    return {key: plan.config["studies"][NAME][key] for key in ("resamples", "seed")}


def _raw(plan: Plan, dataset: str) -> dict[str, str]:
    from comperdial.data.sources import raw_path

    return {role: str(raw_path(source)) for role, source in plan.catalogue.dataset(dataset).files.items()}


@files(
    {"annotators": "data/tables/{dataset}/annotators.parquet", "exchanges": f"{RESULTS}/{{dataset}}_exchanges.csv"},
    of=hazumi,
    inputs=lambda plan, dataset: {"raw": list(_raw(plan, dataset).values())},
    settings=lambda plan, dataset: {"dataset": dataset},
)
def hazumi_exchanges(*, outputs: Mapping[str, Path], raw: Sequence[Path], dataset: str) -> None:
    """List annotators with their roles, and each exchange's lengths and what scores it lacks."""
    import pandas as pd

    from comperdial import schema
    from comperdial.core.files import write_table
    from comperdial.data.readers.hazumi import Hazumi

    reader = Hazumi(dataset, {path.stem: path for path in raw})
    schema.write(outputs["annotators"], reader.annotators(), "annotators")
    found = [
        {
            "dialogue_id": one.dialogue_id,
            "turn": one.turn,
            "wizard_characters": len(one.wizard),
            "participant_characters": len(one.participant),
            "lacks": "+".join(one.lacks),
        }
        for one in reader.exchanges
    ]
    write_table(outputs["exchanges"], pd.DataFrame(found))


def _tables(plan: Plan, dataset: str, *names: str) -> list[str]:
    return list(plan.tables(dataset, *names).values())


@files(
    {"values": f"{RESULTS}/score_prediction.csv", "differences": f"{RESULTS}/score_prediction_differences.csv"},
    of=lambda plan: [{}] if hazumi(plan) else [],
    inputs=lambda plan: {
        "tables": [
            path
            for dataset in hazumi(plan)
            for path in _tables(plan, dataset, "contexts", "responses", "ratings", "annotators")
        ]
    },
    settings=lambda plan: {**drawn(plan), **rows()["prediction"]},
    libraries=("scikit-learn", "scipy"),
)
def score_prediction(
    *,
    outputs: Mapping[str, Path],
    tables: Sequence[Path],
    encoder: str | None,
    penalties: Sequence[float],
    models: Sequence[Mapping[str, Any]],
    without_text: Sequence[Mapping[str, str]],
    resamples: int,
    seed: int,
) -> None:
    """Predict the score that the interlocutor gives an exchange, and correlate predictions with it."""
    import pandas as pd

    from comperdial.core.files import write_table
    from comperdial.evaluation.continuity import by_person
    from comperdial.training.score_prediction import (
        INTERLOCUTOR,
        OUTSIDERS,
        TEST,
        personal_means,
        predict,
        rated_exchanges,
        text_features,
    )

    parts = [rated_exchanges(*_read(folder)) for folder in dict.fromkeys(path.parent for path in tables)]
    # Two people may have one number in two data sets.
    frame = pd.concat([part.assign(person=part["dataset"] + "/" + part["person"]) for part in parts], ignore_index=True)
    features = text_features(frame, encoder)
    made = {"personal-mean": personal_means(frame), "outsiders-score": frame[OUTSIDERS].to_numpy()}
    penalty = {}
    for model in models:
        fitted = predict(frame, features, target=model["target"], identity=model["identity"], penalties=penalties)
        made[model["name"]], penalty[model["name"]] = fitted.values, fitted.penalty
    test = (frame["split"] == TEST).to_numpy()
    found = by_person(
        {row["name"]: made[row["name"]][test] for row in (*models, *without_text)},
        frame.loc[test, INTERLOCUTOR],
        frame.loc[test, "person"],
        resamples=resamples,
        seed=seed,
    )
    sizes = frame["split"].value_counts()
    values = found.values.assign(penalty=found.values["prediction"].map(penalty), train=int(sizes["train"]))
    write_table(outputs["values"], values.assign(validation=int(sizes["validation"])))
    write_table(outputs["differences"], found.differences)


def _read(folder: Path) -> list[pd.DataFrame]:
    from comperdial import schema

    return [
        schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses", "ratings", "annotators")
    ]


def of_perspective(plan: Plan) -> dict[str, dict[str, str]]:
    """Return how the data sets of whose eye are read."""
    return {name: entry for name, entry in rows()["perspective"].items() if name in sets(plan)}


def _annotated(plan: Plan, dataset: str) -> tuple[str, ...]:
    return ("annotators",) if dataset in hazumi(plan) else ()


@files(
    {"values": f"{RESULTS}/perspective.csv"},
    of=once,
    inputs=lambda plan: {
        "tables": [
            path
            for dataset in of_perspective(plan)
            for path in _tables(plan, dataset, "contexts", "responses", "ratings", *_annotated(plan, dataset))
        ],
        "ieval": list(_raw(plan, _IEVAL).values()),
    },
    settings=lambda plan: {**drawn(plan), "sets": of_perspective(plan)},
    libraries=("scipy",),
)
def perspective(
    *,
    outputs: Mapping[str, Path],
    tables: Sequence[Path],
    ieval: Sequence[Path],
    sets: Mapping[str, Mapping[str, str]],
    resamples: int,
    seed: int,
) -> None:
    """Correlate metrics that need no model with the ratings of interlocutors and of outsiders."""
    import pandas as pd

    from comperdial.core.files import write_table
    from comperdial.evaluation.perspective import in_whose_eye
    from comperdial.studies.continuity.eyes import rated_items

    folders = {path.parent.name: path.parent for path in tables}
    found = []
    for dataset, said in sets.items():
        items = rated_items(folders[dataset], dict(said), ieval[0])
        made = in_whose_eye(items.scores, items.ratings, items.clusters, resamples=resamples, seed=seed)
        found.append(made.assign(dataset=dataset, level=items.level))
    write_table(outputs["values"], pd.concat(found, ignore_index=True))
