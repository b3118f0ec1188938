"""Write a data set in ComperDial's published form, so that others can load it; reading it back gives the same tables.

The dialogue files have the published schema. The field names of the published rated files are not known to us: the form
here is ours, documented in docs/comperdial-format.md, and is what the default column map of ``params.yaml`` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from comperdial.challenge.dialogues import dialogues_of, to_data
from comperdial.core.errors import ComperdialError, ConfigError, SchemaError
from comperdial.core.files import write_json, write_text
from comperdial.data.readers import comperdial
from comperdial.schema.dimensions import AXES, OVERALL

FILES = {
    "data": "ComperDial_data.json",
    "dialogue_data": "ComperDial_dialogue_data.json",
    "turn_level": "ComperDial_turn_level_evaluation.json",
    "dialogue_level": "ComperDial_dialogue_level_evaluation.json",
    "systems": "ComperDial_systems.json",
}

# How the rated files written here call things: the default column maps of ``params.yaml``. ComperDial_systems.json has
# them too, so that these files are read as they are, whatever ``params.yaml`` says of others.
COLUMNS: dict[str, dict[str, Any]] = {
    "turn": {name: name for name in ("dialogue_id", "turn", "system_id", "response", "ratings")} | {"first_turn": 0},
    "dialogue": {name: name for name in ("dialogue_id", "system_id", "ratings", "marks")},
}

# What must come back as it was. Kinds of persona sentences and positions of annotators are not in the files.
_COMPARED = {
    "systems": ("system_id", "kind", "track", "description"),
    "contexts": ("context_id", "dialogue_id", "turn", "history", "references", "facts"),
    "personas": ("dialogue_id", "speaker", "sentences"),
    "responses": ("context_id", "system_id", "response"),
    "ratings": (
        "level", "item_id", "system_id", "annotator_id", "dimension", "rating", "scale_min", "scale_max", "source",
    ),
}  # fmt: skip


def published_files(folder: str | Path) -> dict[str, Path]:
    """Return the published files that a folder holds, by the reader's names for them.

    Raises
    ------
    ConfigError
        When one is missing; ``ComperDial_systems.json`` may be.
    """
    result = {role: Path(folder) / name for role, name in FILES.items() if (Path(folder) / name).is_file()}
    if missing := [name for role, name in FILES.items() if role not in result and role != "systems"]:
        raise ConfigError(f"no {', '.join(missing)}", where=str(folder), expected="ComperDial's four files")
    return result


def export(tables: Mapping[str, pd.DataFrame], folder: str | Path, *, note: str = "") -> None:
    """Write the five files.

    ``tables`` are all tables of one data set by name; the ratings may be empty. ``note`` says what a reader of the files must
    know, such as that they are simulated; it is kept in ``ComperDial_systems.json``.

    Raises
    ------
    SchemaError
        When the files, read back, are not the same tables: a dialogue is not A and B in turn with gold history, a rated
        dimension or scale is not ComperDial's, or something is rated that was not answered.
    """
    dataset = str(tables["contexts"]["dataset"].iloc[0]) if len(tables["contexts"]) else ""
    with TemporaryDirectory() as scratch:
        try:
            _write(tables, Path(scratch), note)
            problem = _difference(tables, comperdial.read(dataset, published_files(scratch)))
        except ComperdialError as error:
            problem = error.problem
        except (LookupError, ValueError) as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            raise SchemaError(
                f"ComperDial's form does not hold this data set: {problem}",
                where=f"data set {dataset!r}",
                expected="A and B in turn, personas, gold history, one reference, persona B as facts, all turns; ratings "
                f"of responses by one source, {OVERALL} from 1 to 5, and at dialogue level 0 or 1 on all axes",
            )
        for name in FILES.values():
            write_text(Path(folder) / name, (Path(scratch) / name).read_text(encoding="utf-8"))


def _write(tables: Mapping[str, pd.DataFrame], folder: Path, note: str) -> None:
    data = [to_data(dialogue) for dialogue in dialogues_of(tables["contexts"], tables["personas"])]
    source = min(tables["ratings"]["source"], default="human")
    systems = tables["systems"].sort_values("system_id").drop(columns="dataset")
    about = {"source": source, "note": note, "columns": COLUMNS, "systems": _records(systems)}
    whose = {} if source == "human" else {comperdial.SOURCE_FIELD: source}
    ids = {str(entry["dialogue_id"]): entry["dialogue_id"] for entry in data}
    # By item and system, then by annotator; who marked nothing was asked too.
    overall: dict[tuple[str, str], dict[str, float]] = {}
    marks: dict[tuple[str, str], dict[str, set[str]]] = {}
    columns = ["item_id", "system_id", "annotator_id", "dimension", "rating"]
    for item, system, annotator, dimension, rating in tables["ratings"][columns].itertuples(index=False, name=None):
        if dimension == OVERALL:
            overall.setdefault((item, system), {})[annotator] = int(rating) if rating == int(rating) else rating
        else:
            marked = marks.setdefault((item, system), {}).setdefault(annotator, set())
            marked |= {dimension} if rating == 0 else set()
    rows = tables["responses"].merge(tables["contexts"][["context_id", "dialogue_id", "turn"]], on="context_id")
    rows = rows.sort_values(["dialogue_id", "turn", "system_id"])
    turns, whole = [], []
    for row in rows.to_dict("records"):
        key = {"dialogue_id": ids[row["dialogue_id"]], "turn": int(row["turn"]), "system_id": row["system_id"]}
        rated = {"response": row["response"], "ratings": overall.get((row["context_id"], row["system_id"]), {})}
        turns.append({**key, **rated, **whose})
    dialogues: Iterable[tuple[Any, pd.Series]] = rows.groupby(["dialogue_id", "system_id"])["response"]
    for (dialogue, system), texts in dialogues:
        marked_by = marks.get((dialogue, system), {})
        rated = {
            "responses": texts.tolist(),
            "ratings": overall.get((dialogue, system), {}),
            "marks": {who: sorted(axes, key=AXES.index) for who, axes in marked_by.items()},
        }
        whole.append({"dialogue_id": ids[dialogue], "system_id": system, **rated, **whose})
    for name, content in zip(FILES.values(), [data, data, turns, whole, about], strict=True):
        write_json(folder / name, content)


def _difference(tables: Mapping[str, pd.DataFrame], back: Mapping[str, pd.DataFrame]) -> str | None:
    """Return what was not read back as it was, in words; dialogues that no system answered need not be."""
    contexts = tables["contexts"]
    answered = contexts.loc[contexts["context_id"].isin(tables["responses"]["context_id"]), "dialogue_id"]
    for name, columns in _COMPARED.items():
        frame = tables[name]
        if name in ("contexts", "personas"):
            frame = frame[frame["dialogue_id"].isin(answered)]
        read, given = (set(map(repr, _records(part[[*columns]]))) for part in (back[name], frame))
        if lost := sorted(given ^ read):
            return f"of {name}, {lost[0]}"
    return None


def _records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    return frame.astype(object).where(frame.notna(), None).to_dict("records")
