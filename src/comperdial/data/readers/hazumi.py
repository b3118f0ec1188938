"""Hazumi (Komatani and Okada 2021): a person spoke for a system, and its interlocutor and five outsiders scored it.

One ELAN file a dialogue: tiers of annotations that share their times, one annotation an exchange. An exchange is the
wizard's utterance and the participant's answer; its scores say how the participant felt, from 1 to 7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from comperdial.core.errors import FileError, SchemaError
from comperdial.data.readers._comp import CHATBOT, PERSON, as_history, context_row, rating_row, system_row
from comperdial.data.readers.base import Reader, Tables

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

DIMENSION = "user impression"
SCALE = (1.0, 7.0)
WIZARD = "wizard"
# Whose score an exchange lacks.
INTERLOCUTOR, OUTSIDER = "interlocutor", "outsider"

_WIZARD_TIER, _PARTICIPANT_TIER, _OWN_TIER = "sys_utterance", "user_utterance", "UI_self"
_OUTSIDER_TIER = re.compile(r"UI_[FM]\d")
_OUTSIDERS = 5
_SCORE = re.compile("[1-7]")
# Marks of exchanges that somebody could not score, and of one whose score was taken back.
_NO_SCORE = ("", "E", "e", "(e)", "6 delete")
# (F filler), (D what was broken off), (? what was hard to hear); a bar is a pause.
_MARK = re.compile(r"\(\s*[FD?]\s*([^()]*)\)")

Span = tuple[int, int]


class Exchange(NamedTuple):
    """What the wizard said, what the participant answered, and who scored it how; a score is None where it is missing."""

    dialogue_id: str
    turn: int
    wizard: str
    participant: str
    own: int | None
    outsiders: tuple[int | None, ...]

    @property
    def lacks(self) -> tuple[str, ...]:
        """Return whose score is missing: nothing, :data:`INTERLOCUTOR`, :data:`OUTSIDER` or both."""
        missing = {INTERLOCUTOR: self.own is None, OUTSIDER: None in self.outsiders}
        return tuple(name for name, is_missing in missing.items() if is_missing)


class Hazumi(Reader):
    """Reader of one subset: an ELAN file a dialogue, in the order in which dialogues are numbered."""

    @cached_property
    def exchanges(self) -> list[Exchange]:
        """All exchanges of all dialogues, in order.

        Raises
        ------
        FileError
            When a file is no XML, or has a document type, in which others could be drawn in.
        SchemaError
            When a tier is missing, tiers do not share their times, or an annotation is no score.
        """
        width = len(str(len(self.files)))
        numbered = enumerate(self.files.values(), start=1)
        return [one for n, path in numbered for one in _dialogue(f"{self.dataset}-{n:0{width}d}", path)]

    def read(self) -> Tables:
        """Return systems, contexts, personas, responses and ratings; a score that is missing is no rating."""
        contexts, responses, ratings = [], [], []
        said: list[tuple[str, str]] = []
        for one in self.exchanges:
            if one.turn == 0:
                said = []
            context_id = f"{one.dialogue_id}-{one.turn:03d}"
            key = {"level": "turn", "item_id": context_id, "system_id": WIZARD}
            contexts.append(context_row(context_id, one.dialogue_id, one.turn, as_history(said)))
            responses.append({"context_id": context_id, "system_id": WIZARD, "response": one.wizard})
            for name, position, score in _scores(one):
                if score is not None:
                    ratings.append(
                        key | rating_row(name, position, DIMENSION, score, SCALE, "human", f"{context_id}, {name}")
                    )
            said += [(CHATBOT, one.wizard), (PERSON, one.participant)]
        origin = next(iter(self.files.values()))
        return {
            "systems": self.frame("systems", [system_row(WIZARD, "human", "a person in a system's place")], origin),
            "contexts": self.frame("contexts", contexts, origin),
            "personas": self.frame("personas", [], origin),
            "responses": self.frame("responses", responses, origin),
            "ratings": self.frame("ratings", ratings, origin),
        }

    def annotators(self) -> pd.DataFrame:
        """Return table ``annotators``: the participant of each dialogue, and the outsiders, who scored all of them."""
        roles = {
            name: OUTSIDER if position is not None else INTERLOCUTOR
            for one in self.exchanges
            for name, position, _ in _scores(one)
        }
        rows = [{"annotator_id": name, "role": role} for name, role in roles.items()]
        return self.frame("annotators", rows, next(iter(self.files.values())))


def _scores(one: Exchange) -> list[tuple[str, int | None, int | None]]:
    """Return who scored an exchange, an outsider's place among the outsiders, and the score."""
    others = [(f"{OUTSIDER}-{n + 1}", n, score) for n, score in enumerate(one.outsiders)]
    return [(f"{INTERLOCUTOR}-{one.dialogue_id.rpartition('-')[2]}", None, one.own), *others]


def _dialogue(dialogue_id: str, path: Path) -> list[Exchange]:
    tiers = _tiers(path)
    outsiders = sorted(filter(_OUTSIDER_TIER.fullmatch, tiers))
    if len(outsiders) != _OUTSIDERS:
        raise SchemaError(
            f"{len(outsiders)} outsiders' tiers", where=str(path), expected=f"{_OUTSIDERS}, such as UI_F1 and UI_M2"
        )
    for name in (_WIZARD_TIER, _PARTICIPANT_TIER, _OWN_TIER):
        if name not in tiers:
            raise SchemaError(f"no tier {name!r}", where=str(path), expected="it; there are " + ", ".join(tiers))
    spans = list(tiers[_WIZARD_TIER])
    for name in (_PARTICIPANT_TIER, _OWN_TIER, *outsiders):
        if apart := set(spans) ^ set(tiers[name]):
            start, end = min(apart)
            raise SchemaError(
                f"tiers {_WIZARD_TIER!r} and {name!r} do not both have an annotation from {start} to {end} ms",
                where=str(path),
                expected="an annotation of each tier for each exchange",
            )
    found = []
    for turn, span in enumerate(sorted(spans)):
        where = f"{path}, exchange {turn + 1}"
        wizard = tiers[_WIZARD_TIER][span].strip()
        if not wizard:
            raise SchemaError("the wizard says nothing", where=where, expected="an utterance")
        own, *others = (_score(tiers[name][span], f"{where}, {name}") for name in (_OWN_TIER, *outsiders))
        found.append(Exchange(dialogue_id, turn, wizard, _words(tiers[_PARTICIPANT_TIER][span]), own, tuple(others)))
    return found


def _tiers(path: Path) -> dict[str, dict[Span, str]]:
    """Return the text of each annotation by tier, then by its beginning and end in milliseconds."""
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import parse

    try:
        root: Element = parse(path, forbid_dtd=True).getroot()
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror})", where=str(path), expected="an ELAN file") from error
    except (ParseError, DefusedXmlException) as error:
        raise FileError(f"not valid ELAN XML ({error})", where=str(path), expected="an .eaf file of Hazumi") from error
    times = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE", "") for slot in root.iter("TIME_SLOT")}
    tiers: dict[str, dict[Span, str]] = {}
    for tier in root.iter("TIER"):
        name = tier.get("TIER_ID", "")
        texts: dict[Span, str] = {}
        for number, one in enumerate(tier.iter("ALIGNABLE_ANNOTATION"), start=1):
            where = f"{path}, tier {name!r}, annotation {number}"
            start, end = (_milliseconds(times, one, f"TIME_SLOT_REF{n}", where) for n in (1, 2))
            if (start, end) in texts:
                raise SchemaError(f"a second one from {start} to {end} ms", where=where, expected="one an exchange")
            texts[start, end] = one.findtext("ANNOTATION_VALUE") or ""
        tiers[name] = texts
    return tiers


def _milliseconds(times: Mapping[str | None, str], one: Element, key: str, where: str) -> int:
    value = times.get(one.get(key), "")
    if not value.isdecimal():
        raise SchemaError(f"{key} is {one.get(key)!r}", where=where, expected="a time slot with milliseconds")
    return int(value)


def _score(text: str, where: str) -> int | None:
    mark = text.strip()
    if _SCORE.fullmatch(mark):
        return int(mark)
    if mark in _NO_SCORE:
        return None
    raise SchemaError(
        f"the score is {text!r}",
        where=where,
        expected="1 to 7, or a mark that there is none: " + ", ".join(repr(known) for known in _NO_SCORE),
    )


def _words(text: str) -> str:
    """Return what was said, without the transcript's marks."""
    return _MARK.sub(r"\1", text).replace("|", "").strip()
