"""Write a data set in ComperDial's published format; reading it back gives the same tables.

The dialogue files have the published schema. The field names of the published rated files are unknown to us: the format used
here is our own, documented in docs/comperdial-format.md, and matches the default column map of ``params.yaml``.
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

# Default column maps of ``params.yaml`` for the rated files. ComperDial_systems.json repeats them, so that these files can
# be read whatever map ``params.yaml`` has for others.
COLUMNS: dict[str, dict[str, Any]] = {
    "turn": {name: name for name in ("dialogue_id", "turn", "system_id", "response", "ratings")} | {"first_turn": 0},
    "dialogue": {name: name for name in ("dialogue_id", "system_id", "ratings", "marks")},
}

# What must survive the round trip. Kinds of persona sentences and positions of annotators are not stored.
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
    """Return the published files in a folder, by the reader's names.

    Raises
    ------
    ConfigError
        If one is missing; ``ComperDial_systems.json`` is optional.
    """
    result = {role: Path(folder) / name for role, name in FILES.items() if (Path(folder) / name).is_file()}
    if missing := [name for role, name in FILES.items() if role not in result and role != "systems"]:
        raise ConfigError(f"no {', '.join(missing)}", where=str(folder), expected="ComperDial's four files")
    return result


def export(tables: Mapping[str, pd.DataFrame], folder: str | Path, *, note: str = "") -> None:
    """Write the five files.

    ``tables`` are all tables of one data set by name; the ratings may be empty. ``note`` is a warning to readers of the
    files, such as that they are simulated; it is stored in ``ComperDial_systems.json``.

    Raises
    ------
    SchemaError
        If the files do not read back as the same tables: a dialogue does not alternate A and B with gold history, a rated
        dimension or scale is not ComperDial's, or something without a response was rated.
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
                f"ComperDial's format cannot represent this data set: {problem}",
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
    # By item and system, then by annotator, including those without marks.
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
    """Describe the first difference after the round trip; dialogues without responses may be missing."""
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
