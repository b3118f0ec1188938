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
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.readers._columns import NOTHING, ColumnMap, Record, find
from comperdial.data.readers._rated import read_rated
from comperdial.data.readers.base import Reader, Tables, get
from comperdial.schema.dimensions import AXIS_SCALE, OVERALL, OVERALL_SCALE

log = logging.getLogger(__name__)

# In a record of ours: whose ratings it holds, when they are not people's. So simulated ratings say it without the file
# of systems too.
SOURCE_FIELD = "ratings_source"
_LEVELS = {"turn": "turn_level", "dialogue": "dialogue_level"}


class ComperDial(Reader):
    """Reader of the published four files, and of anybody's own set written by ``comperdial export``.

    Files: ``data`` and ``dialogue_data`` (dialogues), ``turn_level`` and ``dialogue_level`` (rated records);
    ``systems`` (ours) when there is one. Options: ``columns`` with a map for ``turn`` and one for ``dialogue``, unless
    ``systems`` names them; ``counts``, what the paper counts.
    """

    def read(self) -> Tables:
        """Return all tables; contexts and personas of the dialogues that were answered."""
        path = self.files["turn_level"]
        known = self._dialogues()
        rated = read_rated(
            {level: self.files[role] for level, role in _LEVELS.items()},
            self._about.get("columns") or self.options.get("columns", {}),
            turns={name: dialogue.turns for name, dialogue in known.items()},
            counts=self.options.get("counts"),
            own="columns" in self._about,
        )
        responses: dict[str, dict[tuple[str, int], str]] = {}
        ratings = list(self._turns(*rated["turn"], known, responses))
        answered = {(dialogue, system) for system, answers in responses.items() for dialogue, _ in answers}
        ratings += self._whole_dialogues(*rated["dialogue"], answered)
        names = {dialogue for dialogue, _ in answered}
        tables = make_tables(
            self.dataset,
            [dialogue for name, dialogue in known.items() if name in names],
            self._systems(responses),
            responses,
            where=str(path),
        )
        tables["ratings"] = self.frame("ratings", ratings, path)
        self._report_counts(tables)
        return tables

    @cached_property
    def _about(self) -> Mapping[str, Any]:
        """What the file of systems says: whose ratings they are, what the rated files call things, the systems."""
        if "systems" not in self.files:
            return {}
        path = self.files["systems"]
        content = read_json(path)
        get(content, "source", str, str(path))
        get(content, "systems", list, str(path))
        if "columns" in content:
            get(content, "columns", dict, str(path))
        about: Mapping[str, Any] = content
        return about

    def _source(self, record: Record, where: str) -> str:
        """Return whose ratings a record holds; simulated ones must never be read as people's."""
        said = find(record, SOURCE_FIELD)
        source = self._about.get("source")
        if said is NOTHING:
            return str(source or "human")
        if not isinstance(said, str) or source not in (None, said):
            raise SchemaError(
                f"{SOURCE_FIELD} is {said!r}", where=where, expected=f"{source!r}, as in the file of systems"
            )
        return said

    def _dialogues(self) -> dict[str, Dialogue]:
        found: dict[str, Dialogue] = {}
        for role in ("data", "dialogue_data"):
            for dialogue in read_dialogues(self.files[role]) if role in self.files else []:
                if found.setdefault(dialogue.dialogue_id, dialogue) != dialogue:
                    log.warning(
                        "%s: dialogue %r is another one than in %s; this one is taken",
                        self.files[role],
                        dialogue.dialogue_id,
                        self.files["data"],
                    )
                found[dialogue.dialogue_id] = dialogue
        return found

    def _turns(
        self,
        columns: ColumnMap,
        records: list[tuple[str, Record]],
        known: Mapping[str, Dialogue],
        responses: dict[str, dict[tuple[str, int], str]],
    ) -> Iterator[dict[str, Any]]:
        """Yield the ratings of the turns, and put the responses into ``responses``."""
        for where, record in records:
            dialogue, system = columns.name(record, "dialogue_id", where), columns.name(record, "system_id", where)
            said = columns.whole(record, "turn", where)
            turn = said - columns.first_turn
            if dialogue not in known or not 0 <= turn < known[dialogue].turns:
                from_one = "If turns are counted from 1, say so: `first_turn: 1` in the column map"
                raise SchemaError(
                    f"dialogue {dialogue!r}, turn {said}",
                    where=where,
                    expected=f"a dialogue of the dialogue files and a turn counted from {columns.first_turn}",
                    hint=from_one if dialogue in known and turn == known[dialogue].turns else None,
                )
            answers = responses.setdefault(system, {})
            if (dialogue, turn) in answers:
                raise SchemaError(
                    f"dialogue {dialogue!r}, turn {said}, system {system!r} twice", where=where, expected="once"
                )
            answers[dialogue, turn] = columns.text(record, "response", where)
            key = {"level": "turn", "item_id": context_id(dialogue, turn), "system_id": system}
            source = self._source(record, where)
            for annotator, position, rating in columns.ratings(record, where):
                yield key | _row(annotator, position, OVERALL, rating, OVERALL_SCALE, source)

    def _whole_dialogues(
        self, columns: ColumnMap, records: list[tuple[str, Record]], answered: set[tuple[str, str]]
    ) -> Iterator[dict[str, Any]]:
        """Yield the ratings of the dialogues, and the marks on axes."""
        seen = set()
        for where, record in records:
            dialogue, system = columns.name(record, "dialogue_id", where), columns.name(record, "system_id", where)
            if (dialogue, system) not in answered:
                raise SchemaError(
                    f"dialogue {dialogue!r}, system {system!r}",
                    where=where,
                    expected=f"one that has responses in {self.files['turn_level'].name}",
                )
            if (dialogue, system) in seen:
                raise SchemaError(f"dialogue {dialogue!r}, system {system!r} twice", where=where, expected="once")
            seen.add((dialogue, system))
            key = {"level": "dialogue", "item_id": dialogue, "system_id": system}
            source = self._source(record, where)
            for annotator, position, rating in columns.ratings(record, where):
                yield key | _row(annotator, position, OVERALL, rating, OVERALL_SCALE, source)
            for annotator, position, axis, marked in columns.marked(record, where):
                yield key | _row(annotator, position, axis, 0.0 if marked else 1.0, AXIS_SCALE, source)

    def _systems(self, responses: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        systems = {system: {"kind": "agent", "track": None, "description": ""} for system in responses}
        for number, entry in enumerate(self._about.get("systems", []), start=1):
            where = f"{self.files['systems']}, system {number}"
            name = get(entry, "system_id", str, where)
            systems[name] = {
                "kind": get(entry, "kind", str, where),
                "track": entry.get("track"),
                "description": get(entry, "description", str, where),
            }
        return systems

    def _report_counts(self, tables: Tables) -> None:
        """Log how the counts differ from the paper's, if the options say what the paper counts."""
        rated = tables["ratings"][tables["ratings"]["level"] == "dialogue"]
        found = Counter(
            systems=len(tables["systems"]),
            dialogues=tables["contexts"]["dialogue_id"].nunique(),
            turns=len(tables["responses"]),
            rated_dialogues=len(rated[["item_id", "system_id"]].drop_duplicates()),
        )
        for name, expected in self.options.get("counts", {}).items():
            level = logging.INFO if found[name] == expected else logging.WARNING
            log.log(
                level, "%s: %d %s, the paper counts %d", self.dataset, found[name], name.replace("_", " "), expected
            )


def _row(
    annotator: str, position: int | None, dimension: str, rating: float, scale: tuple[float, float], source: str
) -> dict[str, Any]:
    return {
        "annotator_id": annotator,
        "position": position,
        "dimension": dimension,
        "rating": rating,
        "scale_min": scale[0],
        "scale_max": scale[1],
        "source": source,
    }
