"""USR-Persona and USR-Topical (Mehri and Eskenazi 2020): responses to one context each, rated by three people.

What the files do not say is taken as ``docs/reproduction-notes.md`` explains: ``annotators[i]`` is the rater of score
``i``; the speakers alternate and the response is by B.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.readers.base import Reader, Tables, get

REFERENCE = "Original Ground Truth"
HUMAN = "New Human Generated"
SCALES = {
    "Understandable": (0, 1),
    "Natural": (1, 3),
    "Maintains Context": (1, 3),
    "Engaging": (1, 3),
    "Uses Knowledge": (0, 1),
    "Overall": (1, 5),
}
_NO_FACT = "_nofact"
_PERSONA = "your persona:"


class Usr(Reader):
    """Reader of both USR files; a persona dataset is one whose facts are ``your persona:`` lines."""

    def read(self) -> Tables:
        """Return systems, contexts, personas, responses and ratings."""
        path = self.files["ratings"]
        items = read_json(path)
        if not isinstance(items, list) or not items:
            raise SchemaError("no list of contexts", where=str(path), expected="a JSON list of rated contexts")
        contexts, personas, responses, ratings = [], [], [], []
        systems: dict[str, None] = {}
        for number, item in enumerate(items):
            where = f"{path}, item {number}"
            context_id = f"{self.dataset}-{number:03d}"
            answers = get(item, "responses", list, where)
            facts, is_persona = _facts(get(item, "fact", str, where))
            contexts.append(
                {
                    "context_id": context_id,
                    "dialogue_id": context_id,
                    "turn": 0,
                    "history": _history(get(item, "context", str, where)),
                    "references": [_reference(answers, where)],
                    "facts": facts,
                }
            )
            if is_persona:
                personas.append(
                    {
                        "dialogue_id": context_id,
                        "speaker": "B",
                        "sentences": facts,
                        "kinds": ["profile"] * len(facts),
                    }
                )
            annotators = _annotators(item, where)
            for model, text, answer in _responses(answers, where):
                systems.setdefault(model)
                responses.append({"context_id": context_id, "system_id": model, "response": text})
                place = f"{where}, response {model!r}"
                ratings += [
                    {"level": "turn", "item_id": context_id, "system_id": model, **rating}
                    for rating in _ratings(answer, annotators, place)
                ]
        return {
            "systems": self.frame("systems", map(_system, systems), path),
            "contexts": self.frame("contexts", contexts, path),
            "personas": self.frame("personas", personas, path),
            "responses": self.frame("responses", responses, path),
            "ratings": self.frame("ratings", ratings, path),
        }


def _system(name: str) -> dict[str, Any]:
    kind = {REFERENCE: "reference", HUMAN: "human"}.get(name, "agent")
    return {"system_id": name, "kind": kind, "track": None, "description": ""}


def _responses(answers: list[Any], where: str) -> Iterator[tuple[str, str, Any]]:
    for number, answer in enumerate(answers):
        place = f"{where}, response {number}"
        text = get(answer, "response", str, place).strip()
        if not text:
            raise SchemaError("the response is empty", where=place, expected="a text")
        yield get(answer, "model", str, place).strip(), text, answer


def _reference(answers: list[Any], where: str) -> str:
    found = [text for model, text, _ in _responses(answers, where) if model == REFERENCE]
    if len(found) != 1:
        raise SchemaError(f"{len(found)} responses by {REFERENCE!r}", where=where, expected="one: it is the reference")
    return found[0]


def _annotators(item: dict[str, Any], where: str) -> list[str]:
    names = get(item, "annotators", list, where)
    if not names or len(set(map(str, names))) < len(names) or not all(isinstance(n, str) and n.strip() for n in names):
        raise SchemaError(f"annotators are {names!r}", where=where, expected="names, at least one, each once")
    return names


def _history(context: str) -> list[dict[str, str]]:
    texts = [line.strip() for line in context.strip().split("\n")]
    # The last utterance is the one answered, so it is by A and the ones before it alternate.
    return [{"speaker": "AB"[(len(texts) - 1 - i) % 2], "text": text} for i, text in enumerate(texts)]


def _facts(fact: str) -> tuple[list[str], bool]:
    lines = [line.strip() for line in fact.strip().split("\n") if line.strip()]
    if lines == [_NO_FACT]:
        return [], False
    is_persona = bool(lines) and all(line.startswith(_PERSONA) for line in lines)
    return [line.removeprefix(_PERSONA).strip() for line in lines], is_persona


def _ratings(answer: dict[str, Any], annotators: list[str], where: str) -> Iterator[dict[str, Any]]:
    for dimension, (low, high) in SCALES.items():
        values = get(answer, dimension, list, where)
        if len(values) != len(annotators):
            raise SchemaError(
                f"{len(values)} ratings of {dimension!r}", where=where, expected=f"{len(annotators)}, one an annotator"
            )
        for position, (annotator, value) in enumerate(zip(annotators, values, strict=True)):
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise SchemaError(
                    f"rating {value!r} of {dimension!r} by {annotator!r}",
                    where=where,
                    expected=f"a whole number from {low} to {high}",
                )
            yield {
                "annotator_id": annotator,
                "position": position,
                "dimension": dimension,
                "rating": float(value),
                "scale_min": float(low),
                "scale_max": float(high),
                "source": "human",
            }
