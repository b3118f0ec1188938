"""ComperDial's own form: dialogues with personas, and two files of rated records whose fields a column map names.

The published files' field names are not known to us (docs/comperdial-format.md), so nothing is guessed: a map that does
not fit is one message that shows the fields there are and a map to paste.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from comperdial.challenge.dialogues import Dialogue, context_id, read_dialogues
from comperdial.challenge.tables import make_tables
from comperdial.datasets._columns import NOTHING, ColumnMap, read_records
from comperdial.datasets.base import Reader, Tables, get
from comperdial.errors import SchemaError
from comperdial.files import read_json
from comperdial.schema.dimensions import AXES, AXIS_SCALE, OVERALL, OVERALL_SCALE

log = logging.getLogger(__name__)

# What a mark of an axis is written as (A.7.2), in lower case.
_MARKED = {"n", "x", "no", "true", "1"}


class ComperDial(Reader):
    """Reader of the published four files, and of anybody's own set written by ``comperdial export``.

    Files: ``data`` and ``dialogue_data`` (dialogues), ``turn_level`` and ``dialogue_level`` (rated records);
    ``systems`` (ours) when there is one. Options: ``columns`` with a map for ``turn`` and one for ``dialogue``;
    ``counts``, what the paper counts.
    """

    def read(self) -> Tables:
        """Return all seven tables; contexts of the dialogues that were answered."""
        columns = self.options.get("columns", {})
        path = self.files["turn_level"]
        known = {
            d.dialogue_id: d for role in ("data", "dialogue_data") if role in self.files for d in self._dialogues(role)
        }
        turn_map = ColumnMap("turn", columns.get("turn", {}), dialogues=known)
        responses: dict[str, dict[tuple[str, int], str]] = {}
        turn_ratings = []
        for where, record in read_records(path, turn_map):
            dialogue, turn, system = self._item(record, turn_map, known, where)
            answers = responses.setdefault(system, {})
            if (dialogue, turn) in answers:
                raise SchemaError(
                    f"dialogue {dialogue!r}, turn {turn}, system {system!r} twice", where=where, expected="once"
                )
            text = turn_map.text(record, "response", where)
            answers[dialogue, turn] = text
            key = {"context_id": context_id(dialogue, turn), "system_id": system}
            turn_ratings += [key | r for r in self._ratings(turn_map, record, where)]
        dialogue_ratings = list(self._dialogue_ratings(columns.get("dialogue", {}), known))
        answered = {dialogue for answers in responses.values() for dialogue, _ in answers}
        systems = self._systems(responses)
        tables = make_tables(
            self.dataset, [d for n, d in known.items() if n in answered], systems, responses, where=str(path)
        )
        tables["turn_ratings"] = self.frame("turn_ratings", turn_ratings, path)
        tables["dialogue_ratings"] = self.frame("dialogue_ratings", dialogue_ratings, self.files["dialogue_level"])
        self._report_counts(tables)
        return tables

    @cached_property
    def _source(self) -> str:
        """Whose ratings they are; a set that we wrote says it, and simulated ratings must never be read as people's."""
        path = self.files.get("systems")
        return str(get(read_json(path), "source", str, str(path))) if path else "human"

    def _dialogues(self, role: str) -> list[Dialogue]:
        return read_dialogues(self.files[role])

    def _item(
        self, record: Mapping[str, Any], columns: ColumnMap, known: Mapping[str, Dialogue], where: str
    ) -> tuple[str, int, str]:
        dialogue, system = columns.name(record, "dialogue_id", where), columns.name(record, "system_id", where)
        turn = columns.whole(record, "turn", where) - columns.first_turn
        if dialogue not in known or not 0 <= turn < known[dialogue].turns:
            raise SchemaError(
                f"dialogue {dialogue!r}, turn {turn + columns.first_turn}",
                where=where,
                expected=f"a dialogue of the dialogue files and a turn counted from {columns.first_turn}",
                hint="If turns are counted from 1, say so: `first_turn: 1` in the column map",
            )
        return dialogue, turn, system

    def _ratings(self, columns: ColumnMap, record: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
        for position, (annotator, value) in enumerate(columns.by_annotator(record, "ratings", where)):
            yield self._rating(annotator, position, OVERALL, columns.number(value, where), OVERALL_SCALE, columns)

    def _rating(
        self,
        annotator: str,
        position: int,
        dimension: str,
        rating: float,
        scale: tuple[float, float],
        columns: ColumnMap,
    ) -> dict[str, Any]:
        return {
            "annotator_id": annotator,
            "position": None if columns.named_annotators else position,
            "dimension": dimension,
            "rating": rating,
            "scale_min": scale[0],
            "scale_max": scale[1],
            "source": self._source,
        }

    def _dialogue_ratings(self, columns: Mapping[str, Any], known: Mapping[str, Dialogue]) -> Iterator[dict[str, Any]]:
        found = ColumnMap("dialogue", columns, dialogues=known)
        for where, record in read_records(self.files["dialogue_level"], found):
            dialogue = found.name(record, "dialogue_id", where)
            if dialogue not in known:
                raise SchemaError(f"dialogue {dialogue!r}", where=where, expected="a dialogue of the dialogue files")
            key = {"dialogue_id": dialogue, "system_id": found.name(record, "system_id", where)}
            annotators = found.by_annotator(record, "ratings", where)
            for position, (annotator, value) in enumerate(annotators):
                yield key | self._rating(annotator, position, OVERALL, found.number(value, where), OVERALL_SCALE, found)
                for axis, marked in self._marks(found, record, annotator, position, where):
                    yield key | self._rating(annotator, position, axis, 0.0 if marked else 1.0, AXIS_SCALE, found)

    def _marks(
        self, columns: ColumnMap, record: Mapping[str, Any], annotator: str, position: int, where: str
    ) -> Iterator[tuple[str, bool]]:
        """Return of each axis whether an annotator marked it, as far as the file says so."""
        marks = columns.marks
        if marks is None:
            return
        if isinstance(marks, str):
            by_annotator = columns.value(record, marks)
            if by_annotator is NOTHING or not isinstance(by_annotator, dict):
                raise SchemaError(
                    f"marks are {by_annotator!r}", where=where, expected='{"annotator": ["Fluency", …], …}'
                )
            if annotator not in by_annotator:
                return
            found = by_annotator[annotator]
            if unknown := [axis for axis in found if axis not in AXES]:
                raise SchemaError(f"axis {unknown[0]!r}", where=where, expected=", ".join(AXES))
            yield from ((axis, axis in found) for axis in AXES)
            return
        for axis, column in marks.items():
            value = columns.value(record, column)
            if isinstance(value, dict):
                value = value.get(annotator)
            elif isinstance(value, list):
                value = value[position] if position < len(value) else None
            yield axis, str(value).strip().lower() in _MARKED

    def _systems(self, responses: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        systems = {system: {"kind": "agent", "track": None, "description": ""} for system in responses}
        path = self.files.get("systems")
        if path is None:
            return systems
        for number, entry in enumerate(get(read_json(path), "systems", list, str(path)), start=1):
            where = f"{path}, system {number}"
            name = get(entry, "system_id", str, where)
            systems[name] = {
                "kind": get(entry, "kind", str, where),
                "track": entry.get("track"),
                "description": get(entry, "description", str, where),
            }
        return systems

    def _report_counts(self, tables: Tables) -> None:
        """Log how the counts differ from the paper's, if the options say what the paper counts."""
        rated = tables["dialogue_ratings"]
        found = Counter(
            systems=len(tables["systems"]),
            dialogues=tables["contexts"]["dialogue_id"].nunique(),
            turns=len(tables["responses"]),
            rated_dialogues=len(rated[["dialogue_id", "system_id"]].drop_duplicates()),
        )
        for name, expected in self.options.get("counts", {}).items():
            level = logging.INFO if found[name] == expected else logging.WARNING
            log.log(
                level, "%s: %d %s, the paper counts %d", self.dataset, found[name], name.replace("_", " "), expected
            )
