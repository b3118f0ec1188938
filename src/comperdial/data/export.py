"""Write a data set in ComperDial's published form, so that others can load it; reading it back gives the same tables.

The dialogue files have the published schema. The field names of the published rated files are not known to us: the form
here is ours, documented in docs/comperdial-format.md, and is what the default column map of ``params.yaml`` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.challenge.dialogues import SPEAKERS, Dialogue, context_id, to_data
from comperdial.challenge.tables import dialogues_of
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.core.files import write_json
from comperdial.data.readers.comperdial import SOURCE_FIELD
from comperdial.schema.dimensions import AXES, OVERALL

FILES = {
    "data": "ComperDial_data.json",
    "dialogue_data": "ComperDial_dialogue_data.json",
    "turn_level": "ComperDial_turn_level_evaluation.json",
    "dialogue_level": "ComperDial_dialogue_level_evaluation.json",
    "systems": "ComperDial_systems.json",
}

# How the rated files written here call things: the default column maps of ``params.yaml``. ComperDial_systems.json says
# it too, so that these files are read as they are, whatever ``params.yaml`` says of others.
COLUMNS: dict[str, dict[str, Any]] = {
    "turn": {
        "dialogue_id": "dialogue_id",
        "turn": "turn",
        "first_turn": 0,
        "system_id": "system_id",
        "response": "response",
        "ratings": "ratings",
    },
    "dialogue": {"dialogue_id": "dialogue_id", "system_id": "system_id", "ratings": "ratings", "marks": "marks"},
}


_RATED = ["item_id", "system_id"]


def published_files(folder: str | Path) -> dict[str, Path]:
    """Return the published files that a folder holds, by the name that the reader has for each.

    Raises
    ------
    ConfigError
        When one is missing; ``ComperDial_systems.json`` may be.
    """
    found = {role: Path(folder) / name for role, name in FILES.items() if (Path(folder) / name).is_file()}
    if missing := [name for role, name in FILES.items() if role not in found and role != "systems"]:
        raise ConfigError(f"no {', '.join(missing)}", where=str(folder), expected="ComperDial's four files")
    return found


def export(tables: Mapping[str, pd.DataFrame], folder: str | Path, *, note: str = "") -> None:
    """Write the five files.

    Parameters
    ----------
    tables
        All tables of one data set by name, as :mod:`comperdial.schema` has them; the ratings may be empty.
    folder
        Where to write.
    note
        What a reader of the files must know, such as that they are simulated; kept in ``ComperDial_systems.json``.

    Raises
    ------
    SchemaError
        When the data set cannot be told in this form: a dialogue is not A and B in turn with gold history, a rated
        dimension or scale is not ComperDial's, or something is rated that was not answered.
    """
    folder = Path(folder)
    _check_answers(tables)
    dialogues = _dialogues(tables)
    source = _source(tables)
    data = [to_data(dialogue) for dialogue in dialogues]
    ids = {dialogue.dialogue_id: entry["dialogue_id"] for dialogue, entry in zip(dialogues, data, strict=True)}
    systems = tables["systems"].sort_values("system_id")
    records = systems.astype(object).where(systems.notna(), None).drop(columns="dataset").to_dict("records")
    said = {} if source == "human" else {SOURCE_FIELD: source}
    turn_level = [record | said for record in _turn_level(tables, ids)]
    dialogue_level = [record | said for record in _dialogue_level(tables, ids)]
    write_json(folder / FILES["data"], data)
    write_json(folder / FILES["dialogue_data"], data)
    write_json(folder / FILES["turn_level"], turn_level)
    write_json(folder / FILES["dialogue_level"], dialogue_level)
    about = {"source": source, "note": note, "columns": COLUMNS, "systems": records}
    write_json(folder / FILES["systems"], about)


def _check_answers(tables: Mapping[str, pd.DataFrame]) -> None:
    """Check that there are responses, and that every response and rating is of something that the tables hold."""
    responses, contexts = tables["responses"], tables["contexts"]
    where = f"data set {contexts['dataset'].iloc[0]!r}" if len(contexts) else None
    if responses.empty:
        raise SchemaError("no responses", where=where, expected="at least one")
    answered = responses.merge(contexts[["context_id", "dialogue_id"]], on="context_id")
    for name, frame, key, known in (
        ("responses", responses, ["context_id"], contexts),
        ("responses", responses, ["system_id"], tables["systems"]),
        ("ratings", _of_level(tables, "turn", "context_id"), ["context_id", "system_id"], responses),
        ("ratings", _of_level(tables, "dialogue", "dialogue_id"), ["dialogue_id", "system_id"], answered),
    ):
        have = set(known[key].itertuples(index=False, name=None))
        lost = [found for found in frame[key].itertuples(index=False, name=None) if found not in have]
        if lost:
            raise SchemaError(
                f"{len(lost)} records of {name} are of nothing in the tables, the first: {', '.join(lost[0])}",
                where=where,
                expected=f"{' and '.join(key)} of {'a response' if len(key) > 1 else 'the tables'}",
            )


def _of_level(tables: Mapping[str, pd.DataFrame], level: str, item: str = "item_id") -> pd.DataFrame:
    ratings = tables["ratings"]
    return ratings[ratings["level"] == level].rename(columns={"item_id": item})


def _dialogues(tables: Mapping[str, pd.DataFrame]) -> list[Dialogue]:
    contexts = tables["contexts"]
    if bare := [row for row in contexts.to_dict("records") if not row["references"]]:
        raise _untold(bare[0])
    found = dialogues_of(contexts, tables["personas"])
    for dialogue in found:
        rows = contexts[contexts["dialogue_id"] == dialogue.dialogue_id].sort_values("turn")
        for turn, row in enumerate(rows.to_dict("records")):
            same = (
                row["turn"] == turn
                and row["context_id"] == context_id(dialogue.dialogue_id, turn)
                and row["history"] == dialogue.history(turn)
                and row["references"] == [dialogue.reference(turn)]
                and row["facts"] == dialogue.personas["B"]
            )
            if not same or not all(dialogue.personas[s] for s in SPEAKERS):
                raise _untold(row)
    return found


def _untold(row: Mapping[Any, Any]) -> SchemaError:
    return SchemaError(
        f"dialogue {row['dialogue_id']!r}, turn {row['turn']} cannot be told in ComperDial's form",
        where=f"data set {row['dataset']!r}",
        expected="A and B in turn, personas, gold history, one reference, persona B as facts, all turns",
    )


def _source(tables: Mapping[str, pd.DataFrame]) -> str:
    sources = set(tables["ratings"]["source"])
    if len(sources) > 1:
        raise SchemaError(f"ratings by {', '.join(sorted(sources))}", expected="one source of ratings")
    return sources.pop() if sources else "human"


def _checked(ratings: pd.DataFrame, dimensions: tuple[str, ...]) -> pd.DataFrame:
    for dimension, group in ratings.groupby("dimension"):
        scale = (1.0, 5.0) if dimension == OVERALL else (0.0, 1.0)
        if dimension not in dimensions or {*zip(group["scale_min"], group["scale_max"], strict=True)} != {scale}:
            raise SchemaError(
                f"dimension {dimension!r} from {group['scale_min'].min():g} to {group['scale_max'].max():g}",
                expected=f"{', '.join(dimensions)}; {OVERALL} from 1 to 5, the axes 0 or 1",
            )
    return ratings


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value


def _by_annotator(ratings: pd.DataFrame) -> dict[Any, dict[str, float | int]]:
    found: dict[Any, dict[str, float | int]] = {}
    for *names, annotator, rating in ratings[[*_RATED, "annotator_id", "rating"]].itertuples(index=False, name=None):
        found.setdefault(tuple(names), {})[annotator] = _number(rating)
    return found


def _turn_level(tables: Mapping[str, pd.DataFrame], ids: Mapping[str, Any]) -> list[dict[str, Any]]:
    ratings = _by_annotator(_checked(_of_level(tables, "turn"), (OVERALL,)))
    rows = tables["responses"].merge(tables["contexts"][["context_id", "dialogue_id", "turn"]], on="context_id")
    rows = rows.sort_values(["dialogue_id", "turn", "system_id"])
    return [
        {
            "dialogue_id": ids[row["dialogue_id"]],
            "turn": int(row["turn"]),
            "system_id": row["system_id"],
            "response": row["response"],
            "ratings": ratings.get((row["context_id"], row["system_id"]), {}),
        }
        for row in rows.to_dict("records")
    ]


def _check_marks(axes: pd.DataFrame) -> None:
    """Check that they are marks, and that who marked an axis was asked for all: the form says which were marked."""
    for names, group in axes.groupby([*_RATED, "annotator_id"]):
        if set(group["dimension"]) != set(AXES) or not group["rating"].isin([0, 1]).all():
            given = ", ".join(f"{d} {r:g}" for d, r in zip(group["dimension"], group["rating"], strict=True))
            raise SchemaError(
                f"dialogue {names[0]!r}, system {names[1]!r}, annotator {names[2]!r} has {given}",
                expected=f"0 or 1 on each of {', '.join(AXES)}",
            )


def _dialogue_level(tables: Mapping[str, pd.DataFrame], ids: Mapping[str, Any]) -> list[dict[str, Any]]:
    ratings = _checked(_of_level(tables, "dialogue"), (OVERALL, *AXES))
    overall = _by_annotator(ratings[ratings["dimension"] == OVERALL])
    axes = ratings[ratings["dimension"] != OVERALL]
    _check_marks(axes)
    asked = set(axes[[*_RATED, "annotator_id"]].itertuples(index=False, name=None))
    marks: dict[Any, dict[str, list[str]]] = {}
    for *names, annotator in sorted(asked):
        marks.setdefault(tuple(names), {})[annotator] = []
    marked = axes[axes["rating"] == 0]
    for *names, annotator, axis in marked[[*_RATED, "annotator_id", "dimension"]].itertuples(index=False, name=None):
        marks[tuple(names)][annotator].append(axis)
    rows = tables["responses"].merge(tables["contexts"][["context_id", "dialogue_id", "turn"]], on="context_id")
    texts: dict[Any, list[str]] = (
        rows.sort_values("turn").groupby(["dialogue_id", "system_id"])["response"].agg(list).to_dict()
    )
    return [
        {
            "dialogue_id": ids[str(name)],
            "system_id": system,
            "responses": responses,
            "ratings": overall.get((name, system), {}),
            "marks": {who: sorted(found, key=AXES.index) for who, found in marks.get((name, system), {}).items()},
        }
        for (name, system), responses in sorted(texts.items(), key=str)
    ]
