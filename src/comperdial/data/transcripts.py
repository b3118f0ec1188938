"""Convert dialogues (an utterance per row or a dialogue per cell) to one row per system response with its history."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.core.names import plain_name
from comperdial.data.own_files import is_missing, number, option, plain

RATING = "dialogue_rating"
"""Key in ``columns`` for columns with ratings of whole dialogues."""
SPEAKERS, TEXTS = ("role", "speaker", "from", "sender"), ("content", "text", "utterance", "value")
_USERS = frozenset({"user", "usr", "human", "customer", "client", "seeker"})
_SYSTEMS = frozenset({"system", "sys", "bot", "chatbot", "assistant", "asst", "agent", "ai", "model"})
# Speakers that are neither user nor system.
_OTHERS = frozenset({"tool", "function", "developer"})
_NAMES = {
    "dialogue": "dialogue_id dialog_id conversation_id conv_id session_id chat_id thread_id dialogue dialog conversation "
    "conv session chat dialog_nr dialogue_nr dialog_no dialogue_no conv_no",
    "speaker": "speaker role speaker_role sender speaker_name speaker_id sender_role speaker_type sender_class from",
    "utterance": "utterance text message content utt utterance_text turn_text message_text response reply value",
    "turn": "turn turn_id turn_ind turn_index turn_no turn_nr turn_number utterance_id utterance_index utterance_no utt_id "
    "message_id position",
}
_CELLS = frozenset({
    "dialogue", "dialog", "conversation", "conversations", "utterances", "transcript", "messages", "chat", "chat_log",
    "turns",
})  # fmt: skip
_LINE = re.compile(rf"^[ \t]*({'|'.join([*_USERS, *_SYSTEMS])})(?:[ _]?\d)?[ \t]*:[ \t]*", re.IGNORECASE | re.MULTILINE)
_ANY_LINE = re.compile(r"^[ \t]*([^\W\d_][\w .-]{0,30}?)[ \t]*:[ \t]*\S", re.MULTILINE)
_OF_DIALOGUE = re.compile(r"dialog|conversation|session")
_OF_UTTERANCE = re.compile(r"turn|utterance|response|message")
# In at least this many dialogues, ratings that are constant within each are dialogue ratings.
_SURELY = 5


def expand(
    frame: pd.DataFrame, used: Collection[str], texts: Sequence[str], path: Path
) -> tuple[pd.DataFrame, str] | None:
    """Expand dialogues in cells to one row per utterance; None if no column has dialogues, or another may have responses.

    ``used`` lists columns with a known meaning, ``texts`` the text columns. A cell is a list of ``{role, content}``,
    possibly as JSON text, or a text with lines such as ``User: …``.

    Raises
    ------
    SchemaError
        If it is unclear which speaker is the system.
    """
    names = [name for name in frame.columns if _last(name) in _CELLS and name not in used]
    if len(names) != 1 or any(name not in names for name in texts):
        return None
    column, dialogues, unknown = names[0], [], False
    for cell in frame[column]:
        dialogue = [] if is_missing(cell) else _utterances(cell)
        if dialogue is None and isinstance(cell, str) and len(_ANY_LINE.findall(cell)) > 1:
            unknown, dialogue = True, []
        if dialogue is None:
            return None
        dialogues.append(dialogue)
    if unknown:
        speakers = sorted({name for cell in frame[column] for name in _ANY_LINE.findall(str(cell))})
        raise _unknown(speakers[:6], column, path)
    if not any(dialogues):
        return None
    ids = [name for name in frame.columns if name != column and _last(name) in _NAMES["dialogue"].split()]
    made = frame.drop(columns=column)
    if not ids:
        made["dialogue_id"] = [str(code + 1) for code in pd.factorize(frame[column].map(str))[0]]
    rows = [
        {**record, "speaker": speaker, "utterance": text, "turn": place}
        for record, dialogue in zip(made.to_dict("records"), dialogues, strict=True)
        for place, (speaker, text) in enumerate(dialogue)
    ]
    return pd.DataFrame(rows, dtype=object), f"the dialogues in {column!r} are split into {len(rows)} utterances"


def _last(name: str) -> str:
    return plain(name.rpartition(".")[2])


def _utterances(cell: Any) -> list[tuple[str, str]] | None:  # noqa: ANN401
    """Return speaker and text of each utterance in a cell; None if it has no dialogue."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return None
    if isinstance(cell, list | np.ndarray):
        listed = [tuple(_first(one, names) for names in (SPEAKERS, TEXTS)) for one in cell if isinstance(one, Mapping)]
        right = all(isinstance(who, str) and isinstance(text, str | None) for who, text in listed)
        if len(listed) < len(cell) or not right:
            return None
        return [(who, text) for who, text in listed if text and text.strip()]
    if not isinstance(cell, str) or not _LINE.match(cell.lstrip()):
        return None
    _, *parts = _LINE.split(cell.lstrip())
    pairs = [(who.lower(), text.strip()) for who, text in zip(parts[::2], parts[1::2], strict=True)]
    if {bool(_words(who) & _USERS) for who, _ in pairs} != {True, False}:
        return None
    return [pair for pair in pairs if pair[1]]


def _first(node: Mapping[str, Any], names: Sequence[str]) -> Any:  # noqa: ANN401
    return next((node[name] for name in names if name in node), None)


def _words(speaker: object) -> set[str]:
    if str(speaker).strip().lower() in ("gpt", "chatgpt"):
        return {"bot"}
    return {*re.split(r"[\W\d_]+", str(speaker).strip().lower())}


def _unknown(speakers: Collection[object], column: str, path: Path) -> SchemaError:
    return SchemaError(
        f"it is unclear which speaker in {column!r} is the system: {', '.join(map(str, speakers))}",
        where=str(path),
        expected="speakers named user and assistant, or human and bot",
        hint="Rename the speakers",
    )


@dataclass
class Transcript:
    """A file with one utterance per row: its columns, and what :meth:`prepare` determines for each row.

    ``by_system`` marks utterances of a system; ``unit`` is the dialogue of one system, ``place`` the utterance's position in
    it, ``rater`` the rater and dimension. ``history`` has the utterances of each unit.
    """

    frame: pd.DataFrame
    path: Path
    dialogue: str
    speaker: str
    utterance: str
    turn: str | None
    system: str | None
    annotator: str | None
    dimension: str | None
    by_system: pd.Series[bool] = field(init=False)
    unit: pd.Series[str] = field(init=False)
    place: pd.Series[int] = field(init=False)
    rater: pd.Series[str] = field(init=False)
    history: dict[str, list[dict[str, str]]] = field(init=False)

    @property
    def asked(self) -> list[str]:
        """Return the columns of rater and dimension."""
        return [name for name in (self.annotator, self.dimension) if name]

    def wrong(self, problem: str, expected: str, hint: str | None = None) -> SchemaError:
        """Return an error about the file."""
        return SchemaError(problem, where=str(self.path), expected=expected, hint=hint)

    def prepare(self, rated: Sequence[str]) -> None:
        """Find which speakers are systems, and sort the utterances of each dialogue."""
        frame = self.frame.loc[~self.frame[self.utterance].map(is_missing).astype(bool)].reset_index(drop=True)
        self.frame, self.rated = frame, rated
        systems = self._systems()
        self.by_system = frame[self.speaker].map(lambda cell: str(cell) in systems).astype(bool)
        self.unit = frame[self.dialogue].map(plain_name).map(str)
        if self.system is None and len(systems) > 1:
            self.system, self.frame = "system_id", frame.assign(system_id=frame[self.speaker])
        if self.system is not None:
            self._name_systems(self.system)
        self.rater = (
            self.frame[self.asked].map(str).agg("/".join, axis=1) if self.asked else self.unit.map(lambda _: "")
        )
        self._order()

    def _systems(self) -> set[str]:
        rows = self.frame[self.speaker].map(str)
        names = [name for name in rows.unique() if not _words(name) & _OTHERS]
        users = {name for name in names if _words(name) & _USERS}
        systems = {name for name in names if _words(name) & _SYSTEMS} - users
        others = {*names} - users - systems
        if len(systems) > 1 and (instructed := {name for name in systems if _words(name) <= {"system"}}) != systems:
            # The assistant is the system; the role "system" holds its instructions.
            systems -= instructed
        filled = ~self.frame[[*self.rated]].map(is_missing).all(axis=1) if self.rated else pd.Series(False, rows.index)
        with_ratings = {*rows[filled]}
        named = {*self.frame[self.system].map(str)} if self.system else set()
        if systems and not (users and others):
            return systems
        if users and others and not systems and (with_ratings == others or others <= named):
            return others
        if not users and not systems and len(with_ratings) == 1 and len(others) == 2:
            return with_ratings
        raise _unknown(names, self.speaker, self.path)

    def _name_systems(self, column: str) -> None:
        """Fill in the system in all rows of a dialogue; a dialogue of several systems becomes one unit per system."""
        frame = self.frame
        cells = frame[column].where(self.by_system & ~frame[column].map(is_missing).astype(bool))
        if (cells.map(str).where(cells.notna()).groupby(self.unit).nunique() <= 1).all():
            self.frame = frame.assign(**{column: cells.groupby(self.unit).transform("first")})
            return
        self.unit = self.unit + "/" + frame[column].map(str)
        if self.by_system.groupby(self.unit).all().any() or frame[column].map(is_missing).any():
            problem = f"a value of {self.dialogue!r} has several systems in {column!r}"
            raise self.wrong(problem, "all utterances of a dialogue with one system, or an id per dialogue")

    def _order(self) -> None:
        frame, speakers = self.frame, self.frame[self.speaker].map(str)
        texts = frame[self.utterance].map(str)
        if self.turn is not None:
            turns = frame[self.turn].map(number)
            keys = pd.DataFrame({"unit": self.unit, "turn": turns.astype(float), "speaker": speakers})
            first = keys.reset_index().groupby(["unit", "turn", "speaker"])["index"].transform("min")
            order = keys.assign(first=first).sort_values(["turn", "first"], kind="stable")
            new = ~order.duplicated(["unit", "turn", "speaker"])
            self.place = (new.groupby(order["unit"]).cumsum() - 1).reindex(frame.index)
        elif self.asked and not frame[self.asked].map(is_missing).any(axis=None):
            self.place = frame.groupby([self.unit, self.rater]).cumcount()
        else:
            written = self.unit + "\n" + speakers + "\n" + texts
            same = written.eq(written.groupby(self.unit).shift())
            again = same & ~self.rater.eq(self.rater.groupby(self.unit).shift())
            if (twice := same & ~again).any():
                problem = f"dialogue {self.unit[twice].iloc[0]!r} has an utterance twice in a row: {texts[twice].iloc[0][:60]!r}"
                raise self.wrong(problem, "a column of turns or raters that distinguishes such rows")
            self.place = (~again).groupby(self.unit).cumsum() - 1
        placed: dict[str, dict[int, tuple[str, str]]] = {}
        for unit, place, who, text in zip(self.unit, self.place, speakers, texts, strict=True):
            before = placed.setdefault(unit, {}).setdefault(place, (who, text))
            if before != (who, text):
                shown = " and ".join(repr(f"{who}: {text}"[:60]) for who, text in (before, (who, text)))
                raise self.wrong(
                    f"dialogue {unit!r} has two utterances in one place: {shown}",
                    "the same utterances for each rater, or an id and a turn for each",
                )
        self.history = {
            unit: [{"speaker": who, "text": text} for _, (who, text) in sorted(by_place.items())]
            for unit, by_place in placed.items()
        }

    def level(self, column: str, *, of_utterances: bool) -> str:
        """Return what a rating column rates: ``turn``, ``dialogue``, or empty if unclear.

        Raises
        ------
        SchemaError
            If users' utterances have ratings.
        """
        cells, name = self.frame[column], plain(column)
        there = ~cells.map(is_missing).astype(bool)
        units = pd.MultiIndex.from_arrays([self.unit, self.rater])
        by_unit = cells[there].map(str).groupby(units[there])
        constant = bool((by_unit.nunique() <= 1).all())
        single = bool((self.place[self.by_system].groupby(self.unit).nunique() == 1).all())
        of_users = bool((there & ~self.by_system).any())
        full = there.groupby(units).all()[there.groupby(units).any()].all()
        if constant and single and not of_utterances:
            return "turn"
        if of_users and constant and full:
            return "dialogue"
        if constant and _OF_DIALOGUE.search(name) and not of_utterances:
            return "dialogue"
        if of_users and full:
            by_place = cells.map(str).groupby([self.unit, self.place]).agg(lambda values: " ".join(sorted(values)))
            if (by_place.groupby(level=0).nunique() == 1).all():
                raise self._several(column)
        if of_users:
            hint = self._option(RATING, [column]) if constant else None
            raise self.wrong(
                f"{column!r} has ratings of utterances by users",
                "ratings of the system's utterances, or one per dialogue",
                f"If each rates the whole dialogue, add: {hint}" if hint else None,
            )
        if of_utterances or not constant or _OF_UTTERANCE.search(name):
            return "turn"
        counts = by_unit.size()
        if (counts > 1).any():
            return "dialogue" if (counts > 1).sum() >= _SURELY and cells[there].map(str).nunique() > 1 else ""
        last = self.place[self.by_system].groupby(self.unit[self.by_system]).transform("max")
        return "" if (self.place[there] == last[there]).all() else "turn"

    def _several(self, column: str) -> SchemaError:
        return self.wrong(f"dialogues have several ratings of {column!r} each", "a column with the rater of each")

    def _option(self, ours: str, columns: Sequence[str], **more: str) -> str:
        value = {**more, ours: columns[0] if len(columns) == 1 else list(columns)}
        return option("columns", value)

    def levels(self, columns: Sequence[str], whole: Collection[str], *, of_utterances: bool) -> dict[str, str]:
        """Return the level of each column of ratings."""
        levels = {
            name: "dialogue" if name in whole else self.level(name, of_utterances=of_utterances) for name in columns
        }
        if "turn" in levels.values():
            # Columns filled in the same rows have the same level.
            empty = {name: tuple(self.frame[name].map(is_missing)) for name in columns}
            of_turns = {empty[name] for name, level in levels.items() if level == "turn"}
            levels |= {name: "turn" for name, level in levels.items() if not level and empty[name] in of_turns}
        if unsure := [name for name, level in levels.items() if not level]:
            of_both = self._option("rating", unsure, response=self.utterance)
            raise self.wrong(
                f"{', '.join(map(repr, unsure))}: ratings of utterances or of whole dialogues?",
                "ratings that differ between a dialogue's utterances, or are on all of them",
                f"For utterances, add {of_both} or, for whole dialogues, {self._option(RATING, unsure)}",
            )
        return levels

    def rows(self, levels: Mapping[str, str], scores: Collection[str]) -> pd.DataFrame:
        """Return one row per response, and one per dialogue and rater for ratings of whole dialogues."""
        frame = self.frame
        responses = frame[self.by_system].drop(
            columns=[self.speaker, self.utterance, *([self.turn] if self.turn else [])]
        )
        places, units = self.place[self.by_system], self.unit[self.by_system]
        numbers = [number(cell) for cell in frame[self.turn]] if self.turn else []
        whole_numbers = all(isinstance(one, float) and one >= 0 and one.is_integer() for one in numbers)
        turns = pd.Series(numbers, frame.index)[self.by_system] if numbers and whole_numbers else places
        turns = turns.astype(int)
        responses["response"] = frame[self.utterance][self.by_system]
        responses["history"] = pd.Series(
            [self.history[unit][:place] for unit, place in zip(units, places, strict=True)],
            index=responses.index,
            dtype=object,
        )
        responses["turn"] = turns
        responses["context_id"] = units + "-" + turns.map(str)
        keys = [self.unit, self.rater]
        whole = [name for name, level in levels.items() if level == "dialogue"]
        filled = frame.where(~frame.map(is_missing).astype(bool), None)
        for name in (name for name, level in levels.items() if level == "turn"):
            if filled[name].notna().any() and filled[name][~self.by_system].notna().any():
                # The rating of a dialogue with a single response applies to that response.
                responses[name] = filled.groupby(keys)[name].transform("first")[self.by_system]
        if not whole:
            return responses.reset_index(drop=True)
        for name in whole:
            if (filled[name].map(str).where(filled[name].notna()).groupby(keys).nunique() > 1).any():
                raise self._several(name)
        alike = [name for name in scores if (filled[name].map(str).groupby(self.unit).nunique() <= 1).all()]
        about = [self.dialogue, *([self.system] if self.system else []), *self.asked, *whole, *alike]
        dialogues = filled[about].groupby(keys, sort=False).first()
        responses = responses.assign(**dict.fromkeys([*whole, *alike]))
        return pd.concat([responses, dialogues[dialogues[whole].notna().any(axis=1)]], ignore_index=True).astype(object)


def find(frame: pd.DataFrame, path: Path, given: Mapping[str, Any], roles: Mapping[str, str]) -> Transcript | None:
    """Return a file's columns if it has one utterance per row and a speaker column; otherwise None."""
    ours_of = {"dialogue_id": "dialogue", "response": "utterance", "turn": "turn"}
    columns = {ours: given[name] for name, ours in ours_of.items() if name in given}
    if "history" in given or any(not isinstance(name, str) or name not in frame for name in columns.values()):
        return None
    for ours, several in _NAMES.items():
        names = several.split()
        used = {*columns.values(), roles.get("system_id"), roles.get("annotator_id")}
        # A nested list's own column contains only its empty entries.
        used |= {name.removesuffix("[]") for name in frame.columns if name.endswith("[]")}
        ranked = sorted(
            (names.index(_last(name)), place, name)
            for place, name in enumerate(frame.columns)
            if _last(name) in names and name not in used and _fits(frame[name], ours)
        )
        if ours not in columns and ranked:
            known = [one for one in ranked if ours == "speaker" and _are_known(frame[one[2]])]
            columns[ours] = (known or ranked)[0][2]
    if "turn" not in columns and (place := place_of(frame)):
        columns["turn"] = place
    used = {*columns.values()}
    if (
        not {"dialogue", "speaker", "utterance"} <= {*columns}
        or roles.get("response", columns["utterance"]) not in used
    ):
        return None
    if roles.get("history", columns["utterance"]) not in used:
        return None
    speakers = frame[columns["speaker"]].map(str)
    several = speakers.groupby(frame[columns["dialogue"]].map(str)).nunique() > 1
    if (several.mean() <= 0.5 and not _are_known(speakers)) or speakers.nunique() > 30:
        return None
    annotator = roles.get("annotator_id") or ("raters[]" if "raters[]" in frame else None)
    by = {"system": roles.get("system_id"), "annotator": annotator, "dimension": roles.get("dimension")}
    result = Transcript(frame, path, **{ours: columns.get(ours) for ours in _NAMES}, **by)  # type: ignore[arg-type]
    for name in (result.dialogue, result.speaker):
        spoken = ~frame[result.utterance].map(is_missing).astype(bool)
        if empty := int(frame.loc[spoken, name].map(is_missing).sum()):
            problem = f"{name!r} is empty in {empty} of {len(frame)} rows"
            raise result.wrong(problem, "the dialogue and the speaker of each utterance")
    return result


def place_of(frame: pd.DataFrame) -> str | None:
    """Return the column with the positions of utterances in a nested list."""
    places = [name for name in frame.columns if name.endswith("[]") and _last(name.removesuffix("[]")) in _CELLS]
    return places[-1] if places else None


def _are_known(speakers: pd.Series) -> bool:
    words = [_words(name) for name in speakers.map(str).unique()]
    return any(one & _USERS for one in words) and any(one & _SYSTEMS for one in words)


def _fits(cells: pd.Series, ours: str) -> bool:
    there = [cell for cell in cells if not is_missing(cell)]
    if ours == "turn":
        return len(there) == len(cells) > 0 and all(isinstance(number(cell), float) for cell in there)
    if ours == "utterance":
        return any(isinstance(cell, str) and " " in cell.strip() for cell in there)
    names = {str(cell) for cell in there if isinstance(cell, str | int | float)}
    return len(names) < len(there) and max(map(len, names), default=0) <= 80
