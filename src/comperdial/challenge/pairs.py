"""Pairs of dialogues for people or judges to compare: the dialogues, the questions, and who is shown what.

The design is that of ACUTE-Eval (Li, Weston and Roller 2019). Its rules, by priority: no annotator sees a dialogue twice
(always); comparisons of systems are shown equally often; a pair of dialogues is shown once, and a dialogue is, while there
are enough of them; of each comparison and for each annotator, each system is left as often as right, to within one.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel, Field

from comperdial import schema
from comperdial.challenge.records import Filled, checked
from comperdial.config.checking import Expected, Maybe, Strict, Text, read_checked
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.core.files import read_jsonl, read_table, write_table

log = logging.getLogger(__name__)

Utterances = tuple[tuple[str, str], ...]
"""Speaker and text of each utterance, in order."""
Key = tuple[str, str]
"""Dialogue and system."""


@dataclass(frozen=True)
class Dialogue:
    """One dialogue of which the speaker ``judged``, who is the system ``system_id``, is judged.

    If two systems talk to each other, there is one for each.
    """

    dialogue_id: str
    system_id: str
    judged: str
    utterances: Utterances

    @property
    def key(self) -> Key:
        """Return dialogue and system, which name it."""
        return self.dialogue_id, self.system_id

    def judged_texts(self) -> list[str]:
        """Return the utterances of the judged speaker."""
        return [text for speaker, text in self.utterances if speaker == self.judged]


@dataclass(frozen=True)
class Pair:
    """Two dialogues that are compared; ``answer`` is the better one, ``first`` or ``second``, if that is known: a control."""

    first: Dialogue
    second: Dialogue
    answer: str | None = None

    @classmethod
    def of(cls, one: Dialogue, other: Dialogue, better: Dialogue | None = None) -> Pair:
        """Return two dialogues in the order of their systems and names; ``better`` is one of them, if that is known."""
        first, second = sorted((one, other), key=lambda dialogue: (dialogue.system_id, dialogue.dialogue_id))
        return cls(first, second, None if better is None else "first" if better.key == first.key else "second")

    @property
    def id(self) -> str:
        """Return its name, a hash of the names of the two: the same in every design."""
        return hashlib.sha256(json.dumps([self.first.key, self.second.key]).encode()).hexdigest()[:12]


# Files of dialogues


class Utterance(BaseModel):
    """One utterance of a record."""

    speaker: Filled
    text: Filled


class _Record(BaseModel):
    dialogue_id: Filled
    system_id: Filled
    judged: Filled
    utterances: Annotated[list[Utterance], Field(min_length=1)]


def read_dialogues(path: str | Path) -> dict[Key, Dialogue]:
    """Read a JSON Lines file of dialogues; a :class:`SchemaError` names the line at fault."""
    read: dict[Key, Dialogue] = {}
    for number, record in read_jsonl(path):
        where = f"{path}, line {number}"
        entry = checked(_Record, record, where)
        utterances = tuple((utterance.speaker, utterance.text) for utterance in entry.utterances)
        dialogue = Dialogue(entry.dialogue_id, entry.system_id, entry.judged, utterances)
        if not dialogue.judged_texts():
            expected = f"one of {', '.join(dict.fromkeys(speaker for speaker, _ in utterances))}"
            raise SchemaError(f"the judged speaker {entry.judged!r} says nothing", where=where, expected=expected)
        if dialogue.key in read:
            problem = f"dialogue {dialogue.dialogue_id!r} of {dialogue.system_id!r} a second time"
            raise SchemaError(problem, where=where, expected="it once")
        read[dialogue.key] = dialogue
    if not read:
        raise SchemaError("holds no dialogue", where=str(path), expected="a JSON object a line")
    return read


def write_dialogues(path: str | Path, dialogues: Iterable[Dialogue]) -> None:
    """Write dialogues as JSON Lines."""
    rows = [
        (*one.key, one.judged, [{"speaker": speaker, "text": text} for speaker, text in one.utterances])
        for one in dialogues
    ]
    write_table(path, pd.DataFrame(rows, columns=[*_Record.model_fields]))


def read_all(paths: Sequence[str | Path]) -> dict[Key, Dialogue]:
    """Read files of dialogues, and folders of tables, whose responses and histories are logs of people and systems."""
    read: dict[Key, Dialogue] = {}
    for path in map(Path, paths):
        for key, dialogue in (_read_tables(path) if path.is_dir() else read_dialogues(path)).items():
            if read.setdefault(key, dialogue) != dialogue:
                problem = f"dialogue {key[0]!r} of {key[1]!r} a second time, with other words"
                raise SchemaError(problem, where=str(path), expected="each dialogue once for each system")
    return read


def read_controls(path: str | Path, dialogues: Mapping[Key, Dialogue]) -> list[Pair]:
    """Read pairs with known answers, each two of ``dialogues``, from a CSV with the ids of the better and the worse one."""
    controls = []
    for number, row in enumerate(read_table(path).to_dict("records"), start=1):
        where = f"{path}, record {number}"
        columns = [f"{side}_{what}_id" for side in ("better", "worse") for what in ("dialogue", "system")]
        ids = checked(dict[str, str], {name: row.get(name) for name in columns}, where)
        keys = [(ids[f"{side}_dialogue_id"], ids[f"{side}_system_id"]) for side in ("better", "worse")]
        if unknown := [key for key in keys if key not in dialogues]:
            problem = f"dialogue {unknown[0][0]!r} of {unknown[0][1]!r} does not exist"
            raise SchemaError(problem, where=where, expected="a dialogue of the files that are given")
        better, worse = (dialogues[key] for key in keys)
        if better.utterances == worse.utterances:
            raise SchemaError("a dialogue is compared with itself", where=where, expected="two dialogues")
        controls.append(Pair.of(better, worse, better))
    return controls


# Folders of tables


def read_responses(folder: Path, systems: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the responses of some systems, by default of all but references, in the order of dialogues, systems and turns.

    Each has ``dialogue_id``, ``turn``, ``history`` and ``facts`` of its context; and ``whole``: whether the system answered all
    turns of the dialogue. An unknown system, and a response whose system or context is in no table are errors.
    """
    known, contexts, responses = (
        schema.read(folder / f"{name}.parquet", name) for name in ("systems", "contexts", "responses")
    )
    for name in systems or ():
        if name not in {*known["system_id"]}:
            raise UnknownNameError("system", name, {*known["system_id"]}, where=str(folder / "systems.parquet"))
    contexts["turns"] = contexts.groupby(["dataset", "dialogue_id"])["turn"].transform("nunique")
    shown = contexts[["dataset", "context_id", "dialogue_id", "turn", "turns", "history", "facts"]]
    joined = responses.merge(shown, how="left").merge(known[["dataset", "system_id", "kind"]], how="left")
    if len(stray := joined[joined[["dialogue_id", "kind"]].isna().any(axis=1)]):
        context, system = stray[["context_id", "system_id"]].iloc[0]
        problem = f"a response names context {context!r} and system {system!r}, of which one is in no table"
        raise SchemaError(problem, where=f"{folder}/responses.parquet", expected="tables that were made together")
    of = ["dataset", "dialogue_id", "system_id"]
    joined["whole"] = joined.groupby(of)["turn"].transform("nunique") == joined["turns"]
    chosen = joined[joined["system_id"].isin(systems) if systems else joined["kind"] != "reference"]
    return chosen.sort_values([*of, "turn", "context_id"], ignore_index=True)


def _read_tables(folder: Path) -> dict[Key, Dialogue]:
    """Make a dialogue of each system's responses in each dialogue, with the histories between them."""
    read: dict[Key, Dialogue] = {}
    left_out, foreign = [], 0
    for (_, name, system), rows in read_responses(folder).groupby(["dataset", "dialogue_id", "system_id"], sort=True):
        lines, own = _joined(rows) if rows["whole"].all() else ([], True)
        if not lines:
            left_out.append(f"{name} by {system}")
            continue
        foreign += not own
        read[str(name), str(system)] = Dialogue(str(name), str(system), "B", tuple(lines))
    if left_out:
        message = "%s: %d dialogues left out, because turns are missing or do not join (the first: %s)"
        log.warning(message, folder, len(left_out), left_out[0])
    if foreign:
        message = (
            "%s: in %d of %d dialogues the partner answers somebody else: the system was given the history of another "
            "speaker B, whose utterances its own responses replace here"
        )
        log.warning(message, folder, foreign, len(read))
    if not read:
        raise SchemaError("holds no whole dialogue", where=str(folder), expected="contexts and responses")
    return read


def _joined(responses: pd.DataFrame) -> tuple[list[tuple[str, str]], bool]:
    """Return the lines of a dialogue, none if its turns do not join; and whether its histories are its own.

    A history holds all lines before it, or, as in ConTurE, the end of them; or all lines of another speaker B, whose
    utterances follow those of the history before.
    """
    lines: list[tuple[str, str]] = []
    before: list[tuple[str, str]] = []
    own = True
    # The first response of each turn, if a system answered it several times.
    first = responses.drop_duplicates("turn")
    for utterances, response in zip(first["history"], first["response"], strict=True):
        history = [(utterance["speaker"], utterance["text"]) for utterance in utterances]
        if history[: len(lines)] == lines:
            lines += history[len(lines) :]
        elif len(history) > len(before) and history[: len(before)] == before:
            own = False
            lines += history[len(before) + 1 :]
        else:
            shared = (n for n in range(min(len(lines), len(history)), 0, -1) if lines[-n:] == history[:n])
            if not (overlap := next(shared, 0)):
                return [], own
            lines += history[overlap:]
        lines.append(("B", response))
        before = history
    return lines, own


# Questions


class Question(Strict):
    """A question; what column ``question`` calls it, the texts of the choices, and whose words they are, if known."""

    name: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$"), Expected("letters, digits, - and _")]
    text: Text = Field(alias="question")
    left: Text
    right: Text
    source: Maybe[Literal["paper", "ours"]] = None


def read_questions(path: str | Path | None = None) -> dict[str, Question]:
    """Read a bank of questions, by name, from a YAML file in the form of the default, ``projects/questions.yaml``."""
    path = path or str(resources.files(__package__) / "projects/questions.yaml")
    families = read_checked(dict[str, Annotated[list[Question], Field(min_length=1)]], path)
    questions = [question for family in families.values() for question in family]
    names = Counter(question.name for question in questions)
    if twice := [name for name, count in names.items() if count > 1]:
        raise ConfigError(f"question {twice[0]!r} is there already", where=str(path), expected="each name once")
    return {question.name: question for question in questions}


def chosen(bank: Mapping[str, Question], names: Sequence[str]) -> list[Question]:
    """Return questions by name, or raise :class:`UnknownNameError`."""
    for name in names:
        if name not in bank:
            raise UnknownNameError("question", name, bank)
    return [bank[name] for name in dict.fromkeys(names)]


# The design

Systems = tuple[str, str]
"""Two systems, in alphabetical order; the same twice for a comparison of a system with itself."""


class Task(NamedTuple):
    """One pair that one annotator is to judge; ``left`` is which of the pair is on the left: ``first`` or ``second``."""

    annotator: str
    question: Question
    pair: Pair
    left: str


class Design(NamedTuple):
    """The tasks, those of each annotator in their order, and notes on the rules that could not be kept."""

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
    """Share out pairs of dialogues among annotators.

    Each question has its own ``annotators`` and is asked of the same pairs, as in the paper, where a question is an
    experiment. Each annotator gets ``pairs_each`` pairs after a control, if there are ``controls``. ``compare`` says which
    systems are compared, by default each with each; a system may be compared with itself.

    If there is nothing to compare, or an annotator would have to see a dialogue twice, that is a :class:`ConfigError`.
    """
    rng = np.random.default_rng(seed)
    board = _Board(dialogues, compare)
    shown: list[list[Pair]] = []
    for number in range(annotators):
        control = [controls[number % len(controls)]] if controls else []
        shown.append(control + board.draw(pairs_each, control, rng))
    edges: list[tuple[Hashable, Hashable]] = [
        (number, pair.id if pair.answer else (pair.first.system_id, pair.second.system_id))
        for number, pairs in enumerate(shown)
        for pair in pairs
    ]
    sides = iter(_split_evenly(edges, rng))
    placed = [[(pair, "first" if next(sides) else "second") for pair in pairs] for pairs in shown]
    width = max(2, len(str(annotators * len(questions))))
    tasks = [
        Task(f"a{asked * annotators + number:0{width}d}", question, pair, left)
        for asked, question in enumerate(questions)
        for number, pairs in enumerate(placed, start=1)
        for pair, left in pairs
    ]
    return Design(tasks, board.notes())


class _Board:
    """The dialogues, what may be compared, and how often each was shown so far."""

    def __init__(self, dialogues: Mapping[Key, Dialogue], compare: Sequence[Systems]) -> None:
        # Dialogues of equal words are one dialogue to readers, whatever their names and whoever is judged.
        self.texts: dict[Utterances, int] = {}
        self.by_system: dict[str, list[Dialogue]] = defaultdict(list)
        for dialogue in dialogues.values():
            self.texts.setdefault(dialogue.utterances, len(self.texts))
            self.by_system[dialogue.system_id].append(dialogue)
        for name in {name for systems in compare for name in systems} - {*self.by_system}:
            raise UnknownNameError("system", name, self.by_system)
        self.text_of = {s: np.array([self.texts[d.utterances] for d in ds]) for s, ds in self.by_system.items()}
        self.uses = np.zeros(len(self.texts), dtype=np.int64)
        # By systems, how often each pair of their dialogues was shown; infinite for pairs that may not be.
        self.pair_uses: dict[Systems, npt.NDArray[np.float64]] = {}
        wanted = [(min(systems), max(systems)) for systems in compare] or combinations(sorted(self.by_system), 2)
        for one, other in dict.fromkeys(wanted):
            excluded = np.equal.outer(self.text_of[one], self.text_of[other])
            if one == other:
                excluded |= np.tri(len(excluded), dtype=np.bool_)
            self.pair_uses[one, other] = np.where(excluded, np.inf, 0)
        if not any(np.isfinite(uses).any() for uses in self.pair_uses.values()):
            systems = ", ".join(sorted(self.by_system)) or "none"
            expected = "dialogues of two systems or more"
            raise ConfigError(f"no two dialogues to compare; the systems are {systems}", expected=expected)
        self.counts = Counter(dict.fromkeys(self.pair_uses, 0))

    def draw(self, count: int, controls: Sequence[Pair], rng: np.random.Generator) -> list[Pair]:
        """Return one annotator's pairs in random order; those least shown so far come first."""
        shown = [self.texts.get(side.utterances) for control in controls for side in (control.first, control.second)]
        seen = np.isin(np.arange(len(self.uses)), [text for text in shown if text is not None])
        mine: Counter[Systems] = Counter()
        pairs = []
        for number in range(count):
            for systems in sorted(self.pair_uses, key=lambda two: (self.counts[two], mine[two], rng.random())):
                costs = self._costs(systems, seen)
                if np.isfinite(least := costs.min()):
                    break
            else:
                raise ConfigError(
                    f"after {number} pairs, an annotator has seen a dialogue of every pair that is left",
                    expected=f"at most {number} pairs each, or more dialogues" if number else "more dialogues",
                )
            places = divmod(int(rng.choice(np.flatnonzero(costs == least))), costs.shape[1])
            self.counts[systems] += 1
            mine[systems] += 1
            self.pair_uses[systems][places] += 1
            for system, place in zip(systems, places, strict=True):
                self.uses[self.text_of[system][place]] += 1
                seen[self.text_of[system][place]] = True
            pairs.append(Pair.of(*(self.by_system[s][place] for s, place in zip(systems, places, strict=True))))
        return [pairs[i] for i in rng.permutation(count)]

    def _costs(self, systems: Systems, seen: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Return a cost of each pair: how often it was shown, then how often its dialogues were; infinite if seen."""
        rows, columns = (self.text_of[system] for system in systems)
        uses = np.add.outer(self.uses[rows], self.uses[columns])
        costs = self.pair_uses[systems] * (uses.max() + 1) + uses
        costs[np.logical_or.outer(seen[rows], seen[columns])] = np.inf
        return costs

    def notes(self) -> list[str]:
        """Return which of the rules that may be broken were."""
        notes = []
        pairs = np.concatenate([uses[np.isfinite(uses)] for uses in self.pair_uses.values()])
        if again := (pairs > 1).sum():
            shown = f"{again} of {(pairs > 0).sum()} pairs are shown"
            notes.append(f"{shown} more than once, at most {pairs.max():.0f} times")
        for system, texts in sorted(self.text_of.items()):
            uses = self.uses[texts]
            if uses.max() > 1:
                often = f"{(uses > 1).sum()} of {len(texts)} dialogues of {system} are shown more than once"
                notes.append(f"{often}, at most {uses.max()} times: {uses.sum()} are needed")
        ranked = self.counts.most_common()
        (most, at_most), (least, at_least) = ranked[0], ranked[-1]
        if at_most > at_least + 1:
            counts = f"{' and '.join(most)} {at_most} times, {' and '.join(least)} {at_least}"
            notes.append(f"comparisons are not shown equally often: {counts}")
        return notes


def _split_evenly(edges: Sequence[tuple[Hashable, Hashable]], rng: np.random.Generator) -> list[bool]:
    """Split the edges of a bipartite graph so that each end has as many of one half as of the other, to within one.

    Ends of odd degree are joined to an extra one on the other side; then every degree is even, each walk ends where it
    began, and an edge's half is the direction in which it is walked (Euler). ``rng`` draws where walks begin.
    """
    walked: list[tuple[Hashable, Hashable]] = [(("left", one), ("right", other)) for one, other in edges]
    lefts, rights = (Counter(edge[side] for edge in walked) for side in (0, 1))
    odd = [end for end, degree in lefts.items() if degree % 2]
    walked += [(end, "extra right") for end in odd]
    walked += [("extra left", end) for end, degree in rights.items() if degree % 2]
    # Both sides have as many edges, so the extra ends are odd together.
    if len(odd) % 2:
        walked.append(("extra left", "extra right"))
    at: dict[Hashable, list[int]] = defaultdict(list)
    for number in rng.permutation(len(walked)).tolist():
        for end in walked[number]:
            at[end].append(number)
    halves: dict[int, bool] = {}
    for here in list(at):
        while True:
            while at[here] and at[here][-1] in halves:
                at[here].pop()
            if not at[here]:
                break
            number = at[here].pop()
            halves[number] = walked[number][0] == here
            here = walked[number][1] if halves[number] else walked[number][0]
    return [halves[number] for number in range(len(edges))]
