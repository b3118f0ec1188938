"""Ratings in an answer that is JSON, or holds it."""

from __future__ import annotations

import json
import re
from typing import Any

from comperdial.judges._candidates import Kind
from comperdial.judges._labels import Label
from comperdial.judges._numbers import Reading, plain
from comperdial.judges._scan import Scan
from comperdial.judges._values import doubtful, in_words

_START = re.compile(r"^[ \t]{0,40}(?:```\w{0,10}[ \t]{0,10})?(?=[{\[])|(?<=[\s:=])(?=\{)", re.MULTILINE)
_TRIES = 20
_DEPTH = 6
_NAMES = frozenset({"dimension", "name", "metric", "criterion", "aspect", "category"})


class _Pairs(list[tuple[str, Any]]):
    """An object's fields in order; a name may come twice."""


# Numbers stay text: one of a million digits is not worth a conversion.
_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs, parse_float=str, parse_int=str, parse_constant=str)


def take(answer: str, scan: Scan) -> tuple[str, list[str]]:
    """Note the ratings in JSON; return the answer with that JSON blanked out, and the explanations in it."""
    rationales: list[str] = []
    parts: list[str] = []
    last = 0
    for start, _ in zip(_START.finditer(answer), range(_TRIES), strict=False):
        if start.end() < last:
            continue
        try:
            found, end = _DECODER.raw_decode(answer, start.end())
        except (ValueError, RecursionError):
            continue
        before = len(scan.candidates)
        _walk(found, "", scan, rationales, 0)
        if len(scan.candidates) > before:
            blank = "".join("\n" if character == "\n" else " " for character in answer[start.end() : end])
            parts += [answer[last : start.end()], blank]
            last = end
    return "".join([*parts, answer[last:]]), rationales if parts else []


def _walk(found: Any, section: str, scan: Scan, rationales: list[str], depth: int) -> None:  # noqa: ANN401
    if depth > _DEPTH:
        return
    if not isinstance(found, _Pairs):
        if isinstance(found, list):
            for each in found:
                _walk(each, section, scan, rationales, depth + 1)
        return
    for key, value in found:
        if isinstance(value, str) and key.lower() in _NAMES:
            named = scan.names.classify(value)
            section = named.dimension or "other"
    for key, value in found:
        label = scan.names.classify(plain(key[:120]))
        if isinstance(value, list):
            _walk(value, _section(label, section), scan, rationales, depth + 1)
        elif isinstance(value, str):
            _field(label, value, section, scan, rationales)


def _section(label: Label, section: str) -> str:
    if label.kind == "dimension":
        return label.dimension or ""
    return section if label.kind == "rating" else "other"


def _field(label: Label, value: str, section: str, scan: Scan, rationales: list[str]) -> None:
    if label.kind == "rationale":
        rationales.append(value)
    elif label.kind in ("dimension", "rating"):
        dimension = label.dimension or (section if section in scan.names.dimensions else None)
        kind = Kind.WEAK if dimension is None and section == "other" else Kind.NAMED
        text = plain(value[:200])
        reading = scan.read(text, 0) or in_words(text, 0, scan.read)
        if reading and reading.value is not None and (why := doubtful(text, reading.end)):
            reading = Reading(None, why, reading.end)
        scan.add(dimension, kind, reading, label)
