"""Pairs of dialogues for people or judges to compare: dialogues, questions and the assignment to annotators.

The design follows ACUTE-Eval (Li, Weston and Roller 2019). Its rules, by priority: no annotator sees a dialogue twice
(always); comparisons of systems are equally frequent; pairs, and dialogues, are not repeated while unused ones are left; in
each comparison, each system is on the left as often as on the right, within one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel, Field

from comperdial.challenge.records import Filled, checked
from comperdial.config.checking import Expected, Maybe, Strict, Text, read_checked
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.core.files import read_jsonl, read_table, write_table

Utterances = tuple[tuple[str, str], ...]
"""Speaker and text of each utterance, in order."""
Key = tuple[str, str]
"""Dialogue and system."""


@dataclass(frozen=True)
class Dialogue:
    """A dialogue whose speaker ``judged``, the system ``system_id``, is judged.

    A dialogue between two systems gives one object for each.
    """

    dialogue_id: str
    system_id: str
    judged: str
    utterances: Utterances

    @property
    def key(self) -> Key:
        """Return the dialogue and system that identify it."""
        return self.dialogue_id, self.system_id

    def judged_texts(self) -> list[str]:
        """Return the utterances of the judged speaker."""
        return [text for speaker, text in self.utterances if speaker == self.judged]


@dataclass(frozen=True)
class Pair:
    """Two dialogues to compare; for a control, ``answer`` is the known better one, ``first`` or ``second``."""

    first: Dialogue
    second: Dialogue
    answer: str | None = None

    @classmethod
    def of(cls, one: Dialogue, other: Dialogue, better: Dialogue | None = None) -> Pair:
        """Return a pair, sorted by system and dialogue; ``better`` is one of the two, if known."""
        first, second = sorted((one, other), key=lambda dialogue: (dialogue.system_id, dialogue.dialogue_id))
        return cls(first, second, None if better is None else "first" if better.key == first.key else "second")

    @property
    def id(self) -> str:
        """Return the pair's name, a hash of the two names that is the same in every design."""
        return hashlib.sha256(json.dumps([self.first.key, self.second.key]).encode()).hexdigest()[:12]


# Files of dialogues


class _Utterance(BaseModel):
    speaker: Filled
    text: Filled


class _Record(BaseModel):
    dialogue_id: Filled
    system_id: Filled
    judged: Filled
    utterances: Annotated[list[_Utterance], Field(min_length=1)]


def read_dialogues(path: str | Path) -> dict[Key, Dialogue]:
    """Read a JSON Lines file of dialogues; a :class:`SchemaError` gives the invalid line."""
    read: dict[Key, Dialogue] = {}
    for number, record in read_jsonl(path):
        where = f"{path}, line {number}"
        entry = checked(_Record, record, where)
        utterances = tuple((utterance.speaker, utterance.text) for utterance in entry.utterances)
        dialogue = Dialogue(entry.dialogue_id, entry.system_id, entry.judged, utterances)
        if not dialogue.judged_texts():
            expected = f"one of {', '.join(dict.fromkeys(speaker for speaker, _ in utterances))}"
            raise SchemaError(f"the judged speaker {entry.judged!r} has no utterances", where=where, expected=expected)
        if dialogue.key in read:
            problem = f"duplicate dialogue {dialogue.dialogue_id!r} of {dialogue.system_id!r}"
            raise SchemaError(problem, where=where, expected="it once")
        read[dialogue.key] = dialogue
    if not read:
        raise SchemaError("holds no dialogue", where=str(path), expected="one JSON object per line")
    return read


def write_dialogues(path: str | Path, dialogues: Iterable[Dialogue]) -> None:
    """Write dialogues as JSON Lines."""
    rows = [
        (*one.key, one.judged, [{"speaker": speaker, "text": text} for speaker, text in one.utterances])
        for one in dialogues
    ]
    write_table(path, pd.DataFrame(rows, columns=[*_Record.model_fields]))


def read_all(paths: Sequence[str | Path]) -> dict[Key, Dialogue]:
    """Read several files of dialogues."""
    read: dict[Key, Dialogue] = {}
    for path in paths:
        for key, dialogue in read_dialogues(path).items():
            if read.setdefault(key, dialogue) != dialogue:
                problem = f"dialogue {key[0]!r} of {key[1]!r} appears twice with different texts"
                raise SchemaError(problem, where=str(path), expected="each dialogue once per system")
    return read


def read_controls(path: str | Path, dialogues: Mapping[Key, Dialogue]) -> list[Pair]:
    """Read pairs of ``dialogues`` with known answers from a CSV with the ids of the better and the worse one."""
    controls = []
    columns = [f"{side}_{what}_id" for side in ("better", "worse") for what in ("dialogue", "system")]
    for number, row in enumerate(read_table(path).to_dict("records"), start=1):
        where = f"{path}, record {number}"
        ids = [*checked(dict[str, str], {name: row.get(name) for name in columns}, where).values()]
        for key in ((ids[0], ids[1]), (ids[2], ids[3])):
            if key not in dialogues:
                problem = f"dialogue {key[0]!r} of {key[1]!r} does not exist"
                raise SchemaError(problem, where=where, expected="a dialogue in the given files")
        better, worse = dialogues[ids[0], ids[1]], dialogues[ids[2], ids[3]]
        if better.utterances == worse.utterances:
            raise SchemaError("a dialogue is compared with itself", where=where, expected="two dialogues")
        controls.append(Pair.of(better, worse, better))
    return controls


# Questions


class Question(Strict):
    """A question: its name in column ``question``, the texts of the choices, and their source, if known."""

    name: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$"), Expected("letters, digits, - and _")]
    text: Text = Field(alias="question")
    left: Text
    right: Text
    source: Maybe[Literal["paper", "ours"]] = None


def read_questions(path: str | Path | None = None) -> dict[str, Question]:
    """Read a bank of questions by name from a YAML file; default: ``projects/questions.yaml``."""
    path = path or str(resources.files(__package__) / "projects/questions.yaml")
    families = read_checked(dict[str, Annotated[list[Question], Field(min_length=1)]], path)
    bank: dict[str, Question] = {}
    for question in (question for family in families.values() for question in family):
        if bank.setdefault(question.name, question) is not question:
            raise ConfigError(f"duplicate question {question.name!r}", where=str(path), expected="each name once")
    return bank


def chosen(bank: Mapping[str, Question], names: Sequence[str]) -> list[Question]:
    """Return questions by name; raise :class:`UnknownNameError` if one does not exist."""
    for name in names:
        if name not in bank:
            raise UnknownNameError("question", name, bank)
    return [bank[name] for name in dict.fromkeys(names)]


# The design

Systems = tuple[str, str]
"""Two systems, in alphabetical order; twice the same for a comparison of a system with itself."""
_Ints = npt.NDArray[np.int64]
_NEVER = np.iinfo(np.int64).max


class Task(NamedTuple):
    """A pair assigned to an annotator; ``left`` is the side shown on the left: ``first`` or ``second``."""

    annotator: str
    question: Question
    pair: Pair
    left: str


class Design(NamedTuple):
    """The tasks, in order for each annotator, and notes on rules that could not be kept."""

    tasks: list[Task]
    notes: list[str]


def make_design(
    dialogues: Mapping[Key, Dialogue],
    questions: Sequence[Question],
    *,
    annotators: int,
    pairs_each: int,
    controls: Sequence[Pair] = (),
    compare: Sequence[Systems] = (),
    seed: int = 0,
) -> Design:
    """Assign pairs of dialogues to annotators.

    Each question has its own ``annotators`` and uses the same pairs, as in the paper, where a question is an experiment.
    Each annotator gets ``pairs_each`` pairs after a control, if there are ``controls``. ``compare`` lists the systems to
    compare, by default all pairs; a system may be compared with itself.

    Raises a :class:`ConfigError` if there is nothing to compare, or an annotator would see a dialogue twice.
    """
    rng = np.random.default_rng(seed)
    by_system: dict[str, list[Dialogue]] = {}
    for dialogue in dialogues.values():
        by_system.setdefault(dialogue.system_id, []).append(dialogue)
    for name in {name for systems in compare for name in systems} - {*by_system}:
        raise UnknownNameError("system", name, by_system)
    wanted = [(min(systems), max(systems)) for systems in compare] or combinations(sorted(by_system), 2)
    # Dialogues with the same words look the same to readers, so they share a number.
    numbers: dict[Utterances, int] = {}
    texts = {name: _numbers(own, numbers) for name, own in by_system.items()}
    known = [_numbers((control.first, control.second), numbers) for control in controls]
    uses = np.zeros(len(numbers), dtype=np.int64)
    times = {systems: _never_shown(texts, systems) for systems in wanted}
    if not any((table == 0).any() for table in times.values()):
        problem = f"no two dialogues to compare; the systems are {', '.join(sorted(by_system)) or 'none'}"
        raise ConfigError(problem, expected="dialogues of at least two systems")
    shown = Counter[Systems]()
    lefts: Counter[Systems | str] = Counter()
    placed: list[list[tuple[Pair, str]]] = []
    for number in range(annotators):
        mine = [controls[number % len(controls)]] if controls else []
        seen = np.isin(np.arange(len(uses)), known[number % len(controls)] if controls else [])
        for place in range(pairs_each):
            # Take the least shown comparison, and its least shown pair and dialogues.
            for systems in sorted(times, key=lambda two: (shown[two], rng.random())):
                one, other = (texts[name] for name in systems)
                if len(best := _least_shown(times[systems], one, other, uses, seen)):
                    break
            else:
                raise ConfigError(
                    f"after {place} pairs, an annotator has seen a dialogue of every remaining pair",
                    expected=f"at most {place} pairs each, or more dialogues" if place else "more dialogues",
                )
            row, column = divmod(int(rng.choice(best)), len(other))
            both = [one[row], other[column]]
            shown[systems] += 1
            times[systems][row, column] += 1
            uses[both] += 1
            seen[both] = True
            mine.append(Pair.of(by_system[systems[0]][row], by_system[systems[1]][column]))
        order = [*range(len(mine) - pairs_each), *(rng.permutation(pairs_each) + len(mine) - pairs_each)]
        placed.append([])
        for pair in (mine[place] for place in order):
            # For each comparison and control, the first is on the left as often as on the right, within one.
            of = pair.id if pair.answer else (pair.first.system_id, pair.second.system_id)
            balance = lefts[of] or int(rng.choice((-1, 1)))
            lefts[of] += 1 if balance < 0 else -1
            placed[-1].append((pair, "first" if balance < 0 else "second"))
    width = max(2, len(str(annotators * len(questions))))
    tasks = [
        Task(f"a{asked * annotators + number:0{width}d}", question, pair, left)
        for asked, question in enumerate(questions)
        for number, own in enumerate(placed, start=1)
        for pair, left in own
    ]
    often = np.concatenate([table[table > 0] for table in times.values()])
    notes = [
        f"{(counts > 1).sum()} of {len(counts)} {what} are shown more than once, at most {counts.max()} times"
        for what, counts in {"pairs": often, "dialogues": uses[uses > 0]}.items()
        if counts.max() > 1
    ]
    return Design(tasks, notes)


def _numbers(dialogues: Iterable[Dialogue], numbers: dict[Utterances, int]) -> _Ints:
    return np.array([numbers.setdefault(one.utterances, len(numbers)) for one in dialogues], dtype=np.int64)


def _never_shown(texts: Mapping[str, _Ints], systems: Systems) -> _Ints:
    """Return the counts of a comparison's pairs: 0, or -1 for those not to be compared."""
    one, other = (texts[name] for name in systems)
    pairs = np.not_equal.outer(one, other)
    return np.where(np.triu(pairs) if systems[0] == systems[1] else pairs, 0, -1)


def _least_shown(times: _Ints, one: _Ints, other: _Ints, uses: _Ints, seen: npt.NDArray[np.bool_]) -> _Ints:
    """Return the least shown pairs of dialogues not ``seen`` and, of these, those with the least shown dialogues.

    The result has indices into ``times``, whose rows are the texts ``one`` and whose columns are ``other``.
    """
    rows, columns = (np.flatnonzero(~seen[texts]) for texts in (one, other))
    if len(rows) and len(columns):
        # Usually the least shown dialogues still have pairs left, so the others need not be checked.
        few = (uses[one[rows]] == uses[one[rows]].min(), uses[other[columns]] == uses[other[columns]].min())
        for own, others in ((rows[few[0]], columns[few[1]]), (rows, columns)):
            often = times[np.ix_(own, others)]
            fewest = often[often >= 0].min(initial=_NEVER)
            if fewest == 0 or (fewest < _NEVER and own is rows):
                best = often == fewest
                if own is rows:
                    costs = np.where(best, np.add.outer(uses[one[own]], uses[other[others]]), _NEVER)
                    best = costs == costs.min()
                place, at = np.nonzero(best)
                return np.asarray(own[place] * len(other) + others[at])
    return np.array([], dtype=np.int64)
