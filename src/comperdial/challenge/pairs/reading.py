"""Dialogues and pairs to compare, read from our files, ParlAI's, and folders of tables."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comperdial.challenge.annotation.source import Source
from comperdial.challenge.pairs.dialogues import Dialogue, check, read_dialogues, utterances
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json, read_jsonl, read_table

log = logging.getLogger(__name__)

CONTROL_COLUMNS = ("better_dialogue_id", "better_system_id", "worse_dialogue_id", "worse_system_id")
_PARLAI = "speakers_to_eval and dialogue_dicts, as in ParlAI's pairings.jsonl"
_NO_ANSWER = "a control without an answer", "'correct_answer', the better of the two speakers"

Lines = list[tuple[str, str]]


@dataclass(frozen=True)
class Pair:
    """Two dialogues that are compared.

    Attributes
    ----------
    first, second
        In the order of their systems and names, so that a pair has one form only: use :func:`pair_of`.
    answer
        ``first`` or ``second``, the better one, if that is known: the pair is a control then.
    """

    first: Dialogue
    second: Dialogue
    answer: str | None = None

    @property
    def id(self) -> str:
        """Return its name, a hash of the names of the two: the same in every design."""
        return _hash([self.first.key, self.second.key])

    @property
    def systems(self) -> tuple[str, str]:
        """Return which systems are compared."""
        return self.first.system_id, self.second.system_id


def pair_of(one: Dialogue, other: Dialogue, better: Dialogue | None = None) -> Pair:
    """Return two dialogues as a pair, in its one form; ``better`` is one of them, or None if that is not known."""
    first, second = sorted((one, other), key=lambda dialogue: (dialogue.system_id, dialogue.dialogue_id))
    return Pair(first, second, None if better is None else "first" if better.key == first.key else "second")


@dataclass
class Material:
    """What a design is made of.

    Attributes
    ----------
    dialogues
        By dialogue and system.
    pairs
        Those that a file of pairs names; empty if any two dialogues may be compared.
    controls
        Pairs with a known answer.
    """

    dialogues: dict[tuple[str, str], Dialogue] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)
    controls: list[Pair] = field(default_factory=list)


def read_material(paths: Sequence[str | Path]) -> Material:
    """Read dialogues and pairs of them.

    Parameters
    ----------
    paths
        Each is one of: our file of dialogues (:func:`comperdial.challenge.pairs.dialogues.read_dialogues`); ParlAI's
        ``pairings.jsonl`` (pairs that are shown as they are, onboarding pairs with ``correct_answer`` as controls);
        ParlAI's self-chats (the file's name up to the first point is the system's, the second speaker is judged); a
        folder of tables (contexts and responses: logs of people and systems).

    Raises
    ------
    ComperdialError
        Names file and line at fault.
    """
    found = Material()
    unpaired: list[str] = []
    for path in map(Path, paths):
        before = len(found.pairs) + len(found.controls)
        for dialogue in _of_tables(path) if path.is_dir() else _of_file(path, found):
            check(
                found.dialogues.setdefault(dialogue.key, dialogue) == dialogue,
                f"dialogue {dialogue.dialogue_id!r} of {dialogue.system_id!r} a second time, with other words",
                str(path),
                "each dialogue once for each system that is judged in it",
            )
        if before == len(found.pairs) + len(found.controls):
            unpaired.append(str(path))
    if found.pairs and unpaired:
        raise SchemaError(
            "holds dialogues, and another file holds pairs of them",
            where=unpaired[0],
            expected="files of pairs only, which are shown as they are, or none",
            hint="Give pairs with known answers with --controls",
        )
    return found


def read_controls(path: str | Path, dialogues: Mapping[tuple[str, str], Dialogue]) -> list[Pair]:
    """Read pairs with known answers.

    Parameters
    ----------
    path
        ParlAI's form (``pairings.jsonl``, ``onboarding.json``), each pair with ``correct_answer``; or a CSV with the
        columns of :data:`CONTROL_COLUMNS`, which names two of ``dialogues``.
    dialogues
        By dialogue and system.

    Raises
    ------
    ComperdialError
        Names the record at fault: a control without an answer, or with an unknown dialogue.
    """
    path = Path(path)
    if path.suffix == ".csv":
        return _controls_of_csv(path, dialogues)
    controls = []
    for where, record in _records(path):
        check(record.get("correct_answer") is not None, _NO_ANSWER[0], where, _NO_ANSWER[1])
        controls.append(_parlai_pair(record, where))
    return controls


def _controls_of_csv(path: Path, dialogues: Mapping[tuple[str, str], Dialogue]) -> list[Pair]:
    frame = read_table(path)
    for name in CONTROL_COLUMNS:
        check(name in frame, f"no column {name!r}", str(path), ", ".join(CONTROL_COLUMNS))
    controls = []
    for number, row in enumerate(frame.to_dict("records"), start=1):
        where = f"{path}, record {number}"
        keys = [(row[f"{side}_dialogue_id"], row[f"{side}_system_id"]) for side in ("better", "worse")]
        check(all(keys[0]), "a control without an answer", where, "better_dialogue_id and better_system_id")
        for key in keys:
            problem = f"dialogue {key[0]!r} of {key[1]!r} does not exist"
            check(key in dialogues, problem, where, "a dialogue of the files that are given")
        better, worse = (dialogues[key] for key in keys)
        check(better.utterances != worse.utterances, "a dialogue is compared with itself", where, "two dialogues")
        controls.append(pair_of(better, worse, better))
    return controls


def _of_file(path: Path, found: Material) -> Iterator[Dialogue]:
    """Yield the dialogues of a file; its pairs are added to ``found``."""
    records = list(_records(path))
    check(records, "holds no dialogue", str(path), "one JSON object a line")
    if "dialogue_dicts" in records[0][1]:
        for where, record in records:
            pair = _parlai_pair(record, where)
            (found.pairs if pair.answer is None else found.controls).append(pair)
            # A control's dialogues appear in no other pair.
            if pair.answer is None:
                yield from (pair.first, pair.second)
    elif "dialog" in records[0][1]:
        for number, (where, record) in enumerate(records, start=1):
            yield _self_chat(record, path.name.partition(".")[0], number, where)
    else:
        yield from read_dialogues(path).values()


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object with its place: of JSON Lines, or of a JSON file that holds one object or a list of them."""
    if path.suffix != ".json":
        for number, record in read_jsonl(path):
            yield f"{path}, line {number}", record
        return
    content = read_json(path)
    for number, record in enumerate(content if isinstance(content, list) else [content], start=1):
        where = f"{path}, record {number}"
        check(isinstance(record, dict), f"holds {type(record).__name__}", where, "a JSON object")
        yield where, record


def _parlai_pair(record: Mapping[str, Any], where: str) -> Pair:
    judged: Any = record.get("speakers_to_eval")
    logs: Any = record.get("dialogue_dicts")
    two = isinstance(judged, list) and isinstance(logs, list) and len(judged) == len(logs) == 2
    check(two, "not two speakers with two dialogues", where, _PARLAI)
    sides = [_parlai_dialogue(logs[i], judged[i], f"{where}, dialogue {i + 1}") for i in (0, 1)]
    different = sides[0].key != sides[1].key and sides[0].utterances != sides[1].utterances
    check(different, "a dialogue is compared with itself", where, "two dialogues")
    answer = record.get("correct_answer")
    check(answer is not None or not record.get("is_onboarding"), _NO_ANSWER[0], where, _NO_ANSWER[1])
    right = [side for side in sides if side.system_id == answer]
    expected = f"one of {judged[0]!r} and {judged[1]!r}"
    check(answer is None or len(right) == 1, f"the answer is {answer!r}", where, expected)
    return pair_of(sides[0], sides[1], right[0] if right else None)


def _parlai_dialogue(record: Any, judged: Any, where: str) -> Dialogue:  # noqa: ANN401
    """Read a dialogue of a pair. ParlAI's ids of crowd workers are not read."""
    check(isinstance(record, dict), f"holds {type(record).__name__}", where, _PARLAI)
    said = utterances(record.get("dialogue"), where, "id")
    name = _hash([judged, said]) if record.get("id") is None else record["id"]
    check(isinstance(name, str | int) and str(name).strip(), f"'id' is {name!r}", where, "a name")
    speaks = judged in {speaker for speaker, _ in said}
    check(speaks, f"the judged speaker {judged!r} says nothing", where, _PARLAI)
    return Dialogue(str(name), judged, judged, said)


def _self_chat(record: Mapping[str, Any], system: str, number: int, where: str) -> Dialogue:
    turns = record.get("dialog")
    is_list = isinstance(turns, list) and all(isinstance(turn, list) for turn in turns)
    check(is_list, f"'dialog' is {turns!r:.80}", where, "a list of turns of two utterances")
    said = utterances([utterance for turn in turns or () for utterance in turn], where, "id")
    if len({speaker for speaker, _ in said}) == 1:
        said = tuple((f"Speaker {i % 2 + 1}", text) for i, (_, text) in enumerate(said))
    speakers = list(dict.fromkeys(speaker for speaker, _ in said))
    check(len(speakers) == 2, f"{len(speakers)} speakers", where, "two")
    return Dialogue(f"{system}-{number:03d}", system, speakers[1], said)


def _of_tables(folder: Path) -> list[Dialogue]:
    """Make a dialogue of each system's responses in each dialogue, with the histories between them."""
    source = Source(folder)
    systems = source.chosen(None)
    answers: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in source.responses.to_dict("records"):
        if (row["dataset"], row["system_id"]) in systems:
            context = source.contexts[row["dataset"], row["context_id"]]
            key = (row["dataset"], context["dialogue_id"], row["system_id"])
            answers.setdefault(key, {})[row["context_id"]] = row["response"]
    found, incomplete, foreign = [], [], 0
    for (dataset, name, system), texts in sorted(answers.items()):
        said, own = _joined(source.dialogues[dataset, name], texts)
        if said is None:
            incomplete.append(f"{name} by {system}")
        else:
            foreign += not own
            found.append(Dialogue(name, system, "B", tuple(said)))
    if incomplete:
        log.warning(
            "%s: %d dialogues left out, because turns are missing or do not join (the first: %s)",
            folder,
            len(incomplete),
            incomplete[0],
        )
    if foreign:
        log.warning(
            "%s: in %d of %d dialogues the partner answers somebody else: the system was given the history of another "
            "speaker B, whose utterances its own responses replace here",
            folder,
            foreign,
            len(found),
        )
    check(found, "holds no whole dialogue", str(folder), "contexts and responses")
    return found


def _joined(contexts: Iterable[Mapping[str, Any]], texts: Mapping[str, str]) -> tuple[Lines | None, bool]:
    """Return the lines of a dialogue, None if turns are missing or do not join; and whether its histories are its own.

    A history holds all lines before it, or, as in ConTurE, the end of them; or all lines of another speaker B, whose
    utterances follow those of the history before.
    """
    contexts = list(contexts)
    # A turn has further contexts if a system answered it several times.
    answered = {context["turn"]: context for context in reversed(contexts) if context["context_id"] in texts}
    if set(answered) < {context["turn"] for context in contexts}:
        return None, True
    said: Lines = []
    before: Lines = []
    own = True
    for _, context in sorted(answered.items()):
        history = [(line["speaker"], line["text"]) for line in context["history"]]
        shared = [n for n in range(min(len(said), len(history)), 0, -1) if said[-n:] == history[:n]]
        if history[: len(said)] == said:
            said += history[len(said) :]
        elif len(history) > len(before) and history[: len(before)] == before:
            own = False
            said += history[len(before) + 1 :]
        elif shared:
            said += history[shared[0] :]
        else:
            return None, own
        said.append(("B", texts[context["context_id"]]))
        before = history
    return said, own


def _hash(value: Any) -> str:  # noqa: ANN401
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]
