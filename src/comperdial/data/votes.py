"""A user's file of votes: which of two systems, or of two answers, was better; it becomes table ``preferences``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.data.files import File
from comperdial.data.own_files import is_missing, number

VOTES = "votes between two, no ratings"
_SIDES = (("a", "b"), ("1", "2"), ("first", "second"), ("left", "right"), ("0", "1"))
_SYSTEM = ("system_id", "system", "model", "model_name", "model_id", "generator", "bot", "agent")
_ANSWER = (
    "response",
    "answer",
    "output",
    "completion",
    "reply",
    "conversation",
    "dialogue",
    "dialogue_id",
    "text",
    "summary",
)
_CHOICE = re.compile(
    r"^(?:human_?)?(?:winner|preference|preferred|choice|vote|verdict|better|label|choice_human)_?(\w+)?$"
)
_TIES = frozenset(
    {
        "tie",
        "ties",
        "both",
        "equal",
        "same",
        "neither",
        "draw",
        "none",
        "bothbad",
        "tie_bothbad",
        "both_good",
        "both_bad",
    }
)
_ITEM = (
    "pair_id",
    "question_id",
    "item_id",
    "prompt_id",
    "context_id",
    "id",
    "question",
    "prompt",
    "instruction",
    "input",
    "query",
)
_RATERS = (
    "annotator_id",
    "annotator",
    "rater",
    "rater_id",
    "worker",
    "worker_id",
    "judge",
    "evaluator",
    "evaluator_id",
)
_JUDGE = re.compile(r"gpt|llm|claude|gemini|llama|qwen|mistral|mixtral|deepseek|gemma|prometheus|alpaca_eval")


def _plain(name: object) -> str:
    return re.sub(r"[\s_.-]+", "_", str(name).strip().lower())


def _pair(names: Sequence[str], stems: Sequence[str]) -> tuple[str, str, tuple[str, str]] | None:
    """Return two columns that are the two sides of something, with what the sides are called."""
    by_name = {_plain(name): name for name in names}
    for stem in stems:
        for sides in _SIDES:
            for form in ("{stem}_{side}", "{side}_{stem}", "{stem}{side}"):
                one, other = (by_name.get(form.format(stem=stem, side=side)) for side in sides)
                if one and other:
                    return one, other, sides
    return None


def _choices(frame: pd.DataFrame, used: Sequence[str]) -> dict[str, str]:
    """Return the columns of votes, and the rater that each names: ``winner1`` is rater 1's."""
    free = [name for name in frame.columns if name not in used and not frame[name].map(is_missing).all()]
    found = {name: match[1] or "" for name in free if (match := _CHOICE.match(_plain(name)))}
    plain = {name: rater for name, rater in found.items() if not rater}
    numbered = {name: rater for name, rater in found.items() if rater.isdigit()}
    return plain or numbered


def are_votes(frame: pd.DataFrame) -> bool:
    """Return whether a file holds votes between two: two systems or answers side by side, and which was better."""
    names = list(map(str, frame.columns))
    sides = [pair for stems in (_SYSTEM, _ANSWER) if (pair := _pair(names, stems))]
    return bool(sides) and bool(_choices(frame, [name for pair in sides for name in pair[:2]]))


def read_votes(file: File, path: Path, labels: Mapping[str, str] | None = None) -> tuple[pd.DataFrame, list[str]]:
    """Return a file's votes as table ``preferences``, and notes on how it was read.

    Parameters
    ----------
    labels
        What a vote is written as -> ``first``, ``second`` or ``tie``, where it is not clear.

    Raises
    ------
    SchemaError
        When there are no votes, or one cannot be read: names the record, and a ``--labels`` to paste.
    """
    frame = file.frame
    names = list(map(str, frame.columns))
    systems, answers = _pair(names, _SYSTEM), _pair(names, _ANSWER)
    sides = systems or answers
    choices = _choices(frame, [name for pair in (systems, answers) if pair for name in pair[:2]])
    if sides is None or not choices:
        expected = "columns such as model_a, model_b and winner"
        raise SchemaError(
            "no votes between two", where=str(path), expected=expected, hint=f"It has: {', '.join(names)}"
        )
    notes = list(file.notes)
    plain = {_plain(name): name for name in names}
    items = [plain[name] for name in _ITEM if name in plain][:1]
    items += [plain["turn"]] if items and "turn" in plain and items[0] != plain["turn"] else []
    item = frame[items].map(str).agg("/".join, axis=1) if items else pd.Series(map(str, file.rows))
    if not items:
        notes.append("no column names what was answered: each row is a pair of its own")
    rater = next((plain[name] for name in _RATERS if name in plain), None)
    given = {str(label).strip().lower(): side for label, side in (labels or {}).items()}
    dialogue = _pair(names, ("dialogue_id", "conversation_id"))
    rows: list[dict[str, Any]] = []
    weighted = 0
    for place, row in enumerate(frame.to_dict("records")):
        one, other = (str(row[sides[side]]).strip() if systems else sides[2][side] for side in (0, 1))
        for column, named in choices.items():
            cell = row[column]
            if is_missing(cell):
                continue
            choice = given.get(str(cell).strip().lower()) or _choice(cell, sides[2], (one, other))
            if choice is None:
                raise _unreadable(path, file.rows[place], column, frame[column], given)
            value = number(cell)
            weighted += isinstance(value, float) and 1 < value < 2
            who = named or (str(row[rater]).strip() if rater else "1")
            ends = [
                row[name] if dialogue else f"{item.iloc[place]}:{system}"
                for name, system in zip((dialogue or sides)[:2], (one, other), strict=True)
            ]
            rows.append(
                {
                    "dataset": str(row.get("dataset") or path.stem) if "dataset" in names and "pair_id" in names else path.stem,
                    "pair_id": f"{item.iloc[place]}|{one}|{other}",
                    "annotator_id": who,
                    "question": "overall",
                    "first_dialogue_id": str(ends[0]), "first_system_id": one,
                    "second_dialogue_id": str(ends[1]), "second_system_id": other,
                    "choice": choice,
                    "source": who if _JUDGE.search(who.lower()) else "human",
                }
            )  # fmt: skip
    if weighted:
        notes.append(
            f"{weighted} weighted votes from 1 to 2: below 1.5 the first one counts as chosen; the weights are not used"
        )
    made = pd.DataFrame(rows)
    if both := int(made.duplicated(["pair_id", "annotator_id"]).sum()):
        notes.append(f"{both} votes repeat a pair and rater: each counts as a pair of its own")
        number_of = made.groupby(["pair_id", "annotator_id"]).cumcount()
        made["pair_id"] += number_of.map(lambda place: f"|{place + 1}" if place else "")
    return made, notes


def _choice(cell: Any, sides: tuple[str, str], systems: tuple[str, str]) -> str | None:  # noqa: ANN401
    text = _plain(cell)
    value = number(cell)
    if text in _TIES:
        return "tie"
    for place, answer in enumerate(("first", "second")):
        side, system = sides[place], _plain(systems[place])
        words = {
            side,
            answer,
            system,
            *(f"{stem}_{side}" for stem in (*_SYSTEM, *_ANSWER)),
            f"{side}_winner",
            f"{side}_wins",
            f"winner_{side}",
        }
        words |= {"a", "left"} if place == 0 else {"b", "right"}
        if text in words:
            return answer
    if isinstance(value, float) and 1 <= value <= 2:
        return "tie" if value == 1.5 else "first" if value < 1.5 else "second"
    return None


def _unreadable(path: Path, row: int, column: str, cells: pd.Series, given: Mapping[str, str]) -> SchemaError:
    import json
    import shlex

    values = sorted({str(cell).strip() for cell in cells if not is_missing(cell)} - {*given})[:8]
    labels = json.dumps(dict.fromkeys(values, "FILL_IN"), ensure_ascii=False)
    return SchemaError(
        f"column {column!r} holds votes that are not clear: {', '.join(values)}",
        where=f"{path}, record {row}",
        expected="the name of a system, or a, b, first, second, tie",
        hint=f"Say which each is (first, second or tie): --labels {shlex.quote(labels)}",
    )
