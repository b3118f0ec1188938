"""Hazumi (Komatani and Okada 2021): Wizard-of-Oz dialogues scored by the interlocutor and five outsiders.

One ELAN file per dialogue: tiers with shared time stamps and one annotation per exchange, i.e. the wizard's utterance and the
participant's answer. Scores describe how the participant felt, from 1 to 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables

DIMENSION = "user impression"
SCALE = (1.0, 7.0)
WIZARD = "wizard"
INTERLOCUTOR, OUTSIDER = "interlocutor", "outsider"

_OUTSIDER_TIER = re.compile(r"UI_[FM]\d")
# (F filler), (D fragment), (? unclear); a bar is a pause.
_MARK = re.compile(r"\(\s*[FD?]\s*([^()]*)\)")


class Exchange(NamedTuple):
    """The wizard's utterance, the participant's answer, and the scores by rater, None if missing."""

    dialogue_id: str
    turn: int
    wizard: str
    participant: str
    own: int | None
    outsiders: tuple[int | None, ...]

    @property
    def lacks(self) -> tuple[str, ...]:
        """Return whose scores are missing: any of :data:`INTERLOCUTOR` and :data:`OUTSIDER`."""
        missing = {INTERLOCUTOR: self.own is None, OUTSIDER: None in self.outsiders}
        return tuple(name for name, is_missing in missing.items() if is_missing)

    @property
    def scores(self) -> list[tuple[str, int | None, int | None]]:
        """Return annotator, index among the outsiders, and score."""
        others = [(f"{OUTSIDER}-{place + 1}", place, score) for place, score in enumerate(self.outsiders)]
        return [(f"{INTERLOCUTOR}-{self.dialogue_id.rpartition('-')[2]}", None, self.own), *others]


def exchanges(dataset: str, files: Files) -> list[Exchange]:
    """Return all exchanges of a subset, in order; dialogues are numbered in file order."""
    width = len(str(len(files)))
    numbered = enumerate(files.values(), start=1)
    return [one for number, path in numbered for one in _dialogue(f"{dataset}-{number:0{width}d}", path)]


def read(dataset: str, files: Files) -> Tables:
    """Read one subset: one ELAN file per dialogue; missing scores are skipped."""
    answers, ratings = [], []
    history: list[tuple[str, str]] = []
    for one in exchanges(dataset, files):
        history = history if one.turn else []
        context_id = f"{one.dialogue_id}-{one.turn:03d}"
        answers.append(base.answer(context_id, one.dialogue_id, one.turn, base.as_history(history), WIZARD, one.wizard))
        ratings += [
            base.rating(("turn", context_id, WIZARD), annotator, DIMENSION, score, SCALE, position=position)
            for annotator, position, score in one.scores
            if score is not None
        ]
        history = [*history, (base.CHATBOT, one.wizard), (base.PERSON, one.participant)]
    return base.tables(dataset, files, [base.system(WIZARD, "human", "a person in a system's place")], answers, ratings)


def annotators(dataset: str, result: Iterable[Exchange]) -> pd.DataFrame:
    """Return table ``annotators``: the participant of each dialogue, and the outsiders, who scored all dialogues."""
    roles = {name: INTERLOCUTOR if place is None else OUTSIDER for one in result for name, place, _ in one.scores}
    rows = [{"annotator_id": name, "role": role} for name, role in roles.items()]
    return base.make_tables(dataset, {}, annotators=rows)["annotators"]


def _dialogue(dialogue_id: str, path: Path) -> list[Exchange]:
    tiers = _tiers(path)
    scored = ["UI_self", *sorted(filter(_OUTSIDER_TIER.fullmatch, tiers))]
    result = []
    for turn, span in enumerate(sorted(tiers["sys_utterance"])):
        own, *others = (_score(tiers[name][span]) for name in scored)
        # Remove transcription marks.
        answer = _MARK.sub(r"\1", tiers["user_utterance"][span]).replace("|", "").strip()
        result.append(Exchange(dialogue_id, turn, tiers["sys_utterance"][span].strip(), answer, own, tuple(others)))
    return result


def _tiers(path: Path) -> dict[str, dict[tuple[int, int], str]]:
    """Return the text of each annotation by tier, then by start and end in milliseconds."""
    from defusedxml.ElementTree import parse

    root = parse(path, forbid_dtd=True).getroot()
    times = {slot.get("TIME_SLOT_ID"): int(slot.get("TIME_VALUE")) for slot in root.iter("TIME_SLOT")}
    return {
        tier.get("TIER_ID"): {
            (times[one.get("TIME_SLOT_REF1")], times[one.get("TIME_SLOT_REF2")]): one.findtext("ANNOTATION_VALUE") or ""
            for one in tier.iter("ALIGNABLE_ANNOTATION")
        }
        for tier in root.iter("TIER")
    }


def _score(text: str) -> int | None:
    """Return a score; None for marks of exchanges that could not be scored, or whose score was withdrawn."""
    mark = text.strip()
    return None if mark in ("", "E", "e", "(e)", "6 delete") else int(mark)
