"""GRADE's three sets (Huang et al. 2020): responses to two utterances, each rated by some ten people for coherence.

The ratings of all three sets stand in one file; contexts, responses and references in three files a model, line by
line. What the files do not say is taken as ``docs/reproduction-notes.md`` explains.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json, read_text
from comperdial.data.readers._comp import PERSON, alternating, as_history, context_row, numbered, rating_row, system_row
from comperdial.data.readers.base import Reader, Tables, get

DIMENSION = "coherence"
SCALE = (1.0, 5.0)
_PARTS = ("contexts", "responses", "references")
_FIELDS = ("Dataset", "DialogModel", "Context", "Response", "HumanScores")
_SEPARATOR = "|||"
# A list within a string.
_RATINGS = re.compile(r"\[[1-5](, ?[1-5])*\]")


class _Record(NamedTuple):
    """An entry of the file of ratings; ``where`` names it in messages."""

    context: str
    response: str
    ratings: str
    where: str


class Grade(Reader):
    """Reader of one set: ``ratings``, and for each model ``MODEL_contexts``, ``_responses`` and ``_references``."""

    def read(self) -> Tables:
        """Return systems, contexts, personas, responses and ratings."""
        path = self.files["ratings"]
        rated = _records(path)
        contexts: dict[str, dict[str, Any]] = {}
        dialogues: dict[tuple[str, str], str] = {}
        responses, ratings = [], []
        for model in self._models():
            files = [self.files[f"{model}_{part}"] for part in _PARTS]
            columns = [_lines(file) for file in files]
            records = _of_set(rated, model, columns[0][0], columns[1][0], path)
            for file, column in zip(files, columns, strict=True):
                if len(column) != len(records):
                    raise SchemaError(
                        f"{len(column)} lines", where=str(file), expected=f"{len(records)}, as {path} has of {model!r}"
                    )
            seen: Counter[str] = Counter()
            for number, (record, context, response, reference) in enumerate(zip(records, *columns, strict=True), 1):
                for file, text, known in ((files[0], context, record.context), (files[1], response, record.response)):
                    if text != known:
                        raise SchemaError(
                            f"the text is {text!r}",
                            where=f"{file}, line {number}",
                            expected=f"{known!r}, as {record.where} has",
                        )
                # A context stands in the files of several models, and some twice in those of one, rated anew.
                dialogue_id = dialogues.setdefault((context, reference), numbered(self.dataset, len(dialogues)))
                seen[dialogue_id] += 1
                context_id = dialogue_id if seen[dialogue_id] == 1 else f"{dialogue_id}-{seen[dialogue_id]}"
                history = as_history(alternating(context.split(_SEPARATOR), PERSON))
                contexts[context_id] = context_row(context_id, dialogue_id, 0, history, [reference])
                responses.append({"context_id": context_id, "system_id": model, "response": response})
                key = {"level": "turn", "item_id": context_id, "system_id": model}
                ratings += [key | rating for rating in _ratings(record)]
        return {
            "systems": self.frame("systems", map(system_row, self._models()), path),
            "contexts": self.frame("contexts", contexts.values(), path),
            "personas": self.frame("personas", [], path),
            "responses": self.frame("responses", responses, path),
            "ratings": self.frame("ratings", ratings, path),
        }

    def _models(self) -> list[str]:
        names = [role.removesuffix("_responses") for role in self.files if role.endswith("_responses")]
        wanted = {"ratings", *(f"{name}_{part}" for name in names for part in _PARTS)}
        if not names or wanted != set(self.files):
            raise SchemaError(
                f"the files are {', '.join(self.files)}",
                where=f"data set {self.dataset!r}",
                expected="ratings, and MODEL_contexts, MODEL_responses and MODEL_references for each model",
            )
        return names


def _records(path: Path) -> Mapping[tuple[str, str], list[_Record]]:
    """Return the entries by set and model, in the file's order."""
    entries = read_json(path)
    if not isinstance(entries, list) or not entries:
        raise SchemaError("no list of ratings", where=str(path), expected="a JSON list of rated responses")
    found: dict[tuple[str, str], list[_Record]] = defaultdict(list)
    for number, entry in enumerate(entries):
        where = f"{path}, item {number}"
        of, model, context, response, ratings = (get(entry, field, str, where) for field in _FIELDS)
        found[of, model].append(_Record(context, response, ratings, where))
    return found


def _of_set(
    rated: Mapping[tuple[str, str], list[_Record]], model: str, context: str, response: str, path: Path
) -> list[_Record]:
    """Return the entries of a model in the set that begins with a text: no other file says how the set is called."""
    for (_, name), records in rated.items():
        if name == model and (records[0].context, records[0].response) == (context, response):
            return records
    raise SchemaError(
        f"no set in which the entries of {model!r} begin with the context {context!r} and the response {response!r}",
        where=str(path),
        expected="the set that the model's files are of; it has " + ", ".join(f"{m!r} in {of!r}" for of, m in rated),
    )


def _lines(path: Path) -> list[str]:
    # Not splitlines(): a text may hold other characters that end a line.
    return read_text(path).removesuffix("\n").split("\n")


def _ratings(record: _Record) -> list[dict[str, Any]]:
    if not _RATINGS.fullmatch(record.ratings):
        raise SchemaError(
            f"HumanScores is {record.ratings!r}",
            where=record.where,
            expected="a list of whole numbers from 1 to 5, such as '[3, 5]'",
        )
    return [
        rating_row(f"annotator-{place + 1}", place, DIMENSION, int(digit), SCALE, "human", record.where)
        for place, digit in enumerate(re.findall(r"\d", record.ratings))
    ]
