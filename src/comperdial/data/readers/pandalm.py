"""PandaLM's test set (Wang et al. 2024): two models' answers to an instruction, compared by three people and two judges.

Pairs with the same instruction and input form a group. They share answers and therefore a dialogue name; a model's second
answer in a group, which is rare, has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from comperdial.challenge.pairs import Dialogue
from comperdial.core.files import read_json
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables, get

USER, MODEL = "user", "model"
GARBAGE = "garbage"
# The files of the judges, and their fields.
JUDGES = {"gpt-3.5-turbo": "gpt_result", "pandalm-7b": "pandalm_result"}
_CHOICES = {"0": "tie", "Tie": "tie", "1": "first", "2": "second", GARBAGE: GARBAGE}


class _Pair(NamedTuple):
    idx: int
    group: str
    prompt: str
    # Dialogue, system and text of each side.
    sides: tuple[tuple[str, str, str], ...]
    # Source, annotator and label.
    labels: list[tuple[str, str, str]]


def read(dataset: str, files: Files) -> Tables:
    """Read ``pairs`` and the files of :data:`JUDGES` into tables ``preferences`` and ``labels``.

    An unreadable judge's answer becomes the label ``garbage`` and no preference.
    """
    votes, labels = [], []
    for pair in _pairs(files):
        (first, one, _), (second, other, _) = pair.sides
        for source, who, label in pair.labels:
            key = {"item_id": str(pair.idx), "cluster": pair.group, "annotator_id": who}
            labels.append({**key, "label": label, "source": source})
            if label != GARBAGE:
                vote = base.vote(str(pair.idx), first, (one, other), who, "overall", 0, source=source)
                votes.append({**vote, "second_dialogue_id": second, "choice": label})
    return base.make_tables(dataset, files, preferences=votes, labels=labels)


def dialogues(files: Files) -> list[Dialogue]:
    """Return each model's answers to each instruction."""
    result = {}
    for pair in _pairs(files):
        for name, system, text in pair.sides:
            one = Dialogue(name, system, MODEL, ((USER, pair.prompt), (MODEL, text.strip() or base.EMPTY)))
            result[one.key] = one
    return list(result.values())


def _pairs(files: Files) -> Iterator[_Pair]:
    judged = {judge: _by_idx(files[judge]) for judge in JUDGES}
    groups: dict[tuple[str, str], str] = {}
    answers: dict[tuple[str, str], list[str]] = {}
    for idx, record in _by_idx(files["pairs"]).items():
        where = f"{files['pairs']}, idx {idx}"
        instruction, given = (get(record, field, str, where) for field in ("instruction", "input"))
        group = groups.setdefault((instruction, given), str(len(groups) + 1))
        sides = []
        for system, field in zip(
            get(record, "cmp_key", str, where).split("_"), ("response1", "response2"), strict=True
        ):
            # A few values are `true` instead of a text.
            text, known = str(get(record, field, object, where)), answers.setdefault((group, system), [])
            known += [text] if text not in known else []
            place = known.index(text)
            sides.append((f"{group}-{place + 1}" if place else group, system, text))
        people = [("human", str(n), _CHOICES[str(get(record, f"annotator{n}", int, where))]) for n in (1, 2, 3)]
        judges = [(judge, judge, _judged(judged[judge], idx, judge, files)) for judge in JUDGES]
        yield _Pair(idx, group, "\n".join(filter(None, (instruction, given))), tuple(sides), people + judges)


def _judged(records: dict[int, Any], idx: int, judge: str, files: Files) -> str:
    return _CHOICES[str(get(records.get(idx, {}), JUDGES[judge], object, f"{files[judge]}, idx {idx}"))]


def _by_idx(path: Path) -> dict[int, Any]:
    return {get(record, "idx", int, f"{path}, item {n}"): record for n, record in enumerate(read_json(path))}
