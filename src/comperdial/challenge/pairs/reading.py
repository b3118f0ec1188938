"""What is compared, read from any of the forms that it comes in: ours, ParlAI's, and a folder of tables."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comperdial.challenge.annotation.source import Source
from comperdial.challenge.pairs.dialogues import Dialogue, read_dialogues
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json, read_jsonl, read_table

log = logging.getLogger(__name__)

CONTROL_COLUMNS = ("better_dialogue_id", "better_system_id", "worse_dialogue_id", "worse_system_id")
_PARLAI = "speakers_to_eval and dialogue_dicts, as ParlAI's pairings.jsonl has them"


@dataclass(frozen=True)
class Pair:
    """Two dialogues that are compared.

    Attributes
    ----------
    first, second
        In the order of their systems and names, so that a pair has one form only: use :func:`pair_of`.
    answer
        ``first`` or ``second``, the better one, where that is known: the pair is a control then.
    """

    first: Dialogue
    second: Dialogue
    answer: str | None = None

    @property
    def id(self) -> str:
        """Return its name, a hash of what the two are called: the same in every design."""
        return _hash([self.first.key, self.second.key])

    @property
    def systems(self) -> tuple[str, str]:
        """Return which systems are compared."""
        return self.first.system_id, self.second.system_id


def pair_of(one: Dialogue, other: Dialogue, better: Dialogue | None = None) -> Pair:
    """Return two dialogues as a pair, in its one form; ``better`` is one of them, or None where that is not known."""
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
        Those that a file of pairs names; empty where any two dialogues may be compared.
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
        if path.is_dir():
            dialogues: Iterable[Dialogue] = _of_tables(path)
        else:
            dialogues = _of_file(path, found)
        for dialogue in dialogues:
            _add(found.dialogues, dialogue, str(path))
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
        Names the record at fault: a control without an answer, or with a dialogue that there is not.
    """
    path = Path(path)
    if path.suffix == ".csv":
        return _controls_of_csv(path, dialogues)
    controls = []
    for where, record in _records(path):
        if record.get("correct_answer") is None:
            raise _no_answer(where)
        controls.append(_parlai_pair(record, where))
    return controls


def _no_answer(where: str) -> SchemaError:
    return SchemaError(
        "a control without an answer", where=where, expected="'correct_answer', the better of the two speakers"
    )


def _controls_of_csv(path: Path, dialogues: Mapping[tuple[str, str], Dialogue]) -> list[Pair]:
    frame = read_table(path)
    if missing := [name for name in CONTROL_COLUMNS if name not in frame]:
        raise SchemaError(f"no column {missing[0]!r}", where=str(path), expected=", ".join(CONTROL_COLUMNS))
    controls = []
    for number, row in enumerate(frame.to_dict("records"), start=1):
        sides = []
        for side in ("better", "worse"):
            key = (row[f"{side}_dialogue_id"], row[f"{side}_system_id"])
            if not all(key):
                raise SchemaError(
                    f"a control without {'an answer' if side == 'better' else 'a worse dialogue'}",
                    where=f"{path}, record {number}",
                    expected=f"{side}_dialogue_id and {side}_system_id",
                )
            if key not in dialogues:
                raise SchemaError(
                    f"dialogue {key[0]!r} of {key[1]!r} does not exist",
                    where=f"{path}, record {number}",
                    expected="a dialogue of the files that are given",
                )
            sides.append(dialogues[key])
        better, worse = sides
        if better.utterances == worse.utterances:
            raise SchemaError("a dialogue is compared with itself", where=f"{path}, record {number}", expected="two")
        controls.append(pair_of(better, worse, better))
    return controls


def _add(found: dict[tuple[str, str], Dialogue], dialogue: Dialogue, where: str) -> None:
    if found.setdefault(dialogue.key, dialogue) != dialogue:
        raise SchemaError(
            f"dialogue {dialogue.dialogue_id!r} of {dialogue.system_id!r} a second time, with other words",
            where=where,
            expected="each dialogue once for each system that is judged in it",
        )


def _of_file(path: Path, found: Material) -> Iterator[Dialogue]:
    """Yield the dialogues of a file; its pairs are added to ``found``."""
    first = next(_records(path), None)
    if first is None:
        raise SchemaError("holds no dialogue", where=str(path), expected="one JSON object a line")
    if "dialogue_dicts" in first[1]:
        for where, record in _records(path):
            pair = _parlai_pair(record, where)
            (found.pairs if pair.answer is None else found.controls).append(pair)
            # A control's dialogues are the control's alone.
            if pair.answer is None:
                yield from (pair.first, pair.second)
    elif "dialog" in first[1]:
        for number, (where, record) in enumerate(_records(path), start=1):
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
        if not isinstance(record, dict):
            raise SchemaError(f"holds {type(record).__name__}", where=where, expected="a JSON object")
        yield where, record


def _parlai_pair(record: Mapping[str, Any], where: str) -> Pair:
    judged, logs = record.get("speakers_to_eval"), record.get("dialogue_dicts")
    if not isinstance(judged, list) or not isinstance(logs, list) or len(judged) != 2 or len(logs) != 2:
        raise SchemaError("not two speakers with two dialogues", where=where, expected=_PARLAI)
    sides = [_parlai_dialogue(logs[i], judged[i], f"{where}, dialogue {i + 1}") for i in (0, 1)]
    if sides[0].key == sides[1].key or sides[0].utterances == sides[1].utterances:
        raise SchemaError("a dialogue is compared with itself", where=where, expected="two dialogues")
    answer = record.get("correct_answer")
    if answer is None:
        if record.get("is_onboarding"):
            raise _no_answer(where)
        return pair_of(sides[0], sides[1])
    right = [side for side in sides if side.system_id == answer]
    if len(right) != 1:
        raise SchemaError(f"the answer is {answer!r}", where=where, expected=f"one of {judged[0]!r} and {judged[1]!r}")
    return pair_of(sides[0], sides[1], right[0])


def _parlai_dialogue(log_: Any, judged: Any, where: str) -> Dialogue:  # noqa: ANN401
    """Read a log of a pair. Ids of crowd workers, which ParlAI has next to it, are not looked at."""
    if not isinstance(log_, dict):
        raise SchemaError(f"holds {type(log_).__name__}", where=where, expected=_PARLAI)
    said = _said(log_.get("dialogue"), where)
    name = log_.get("id")
    if name is None:
        name = _hash([judged, said])
    if not isinstance(name, str | int) or not str(name).strip():
        raise SchemaError(f"'id' is {name!r}", where=where, expected="a name")
    if judged not in {speaker for speaker, _ in said}:
        raise SchemaError(f"the judged speaker {judged!r} says nothing", where=where, expected=_PARLAI)
    return Dialogue(str(name), judged, judged, said)


def _self_chat(record: Mapping[str, Any], system: str, number: int, where: str) -> Dialogue:
    turns = record.get("dialog")
    if not isinstance(turns, list) or not all(isinstance(turn, list) for turn in turns):
        raise SchemaError(f"'dialog' is {turns!r:.80}", where=where, expected="a list of turns of two utterances")
    said = _said([utterance for turn in turns for utterance in turn], where)
    speakers = list(dict.fromkeys(speaker for speaker, _ in said))
    if len(speakers) == 1:
        said = tuple((f"Speaker {i % 2 + 1}", text) for i, (_, text) in enumerate(said))
        speakers = list(dict.fromkeys(speaker for speaker, _ in said))
    if len(speakers) != 2:
        raise SchemaError(f"{len(speakers)} speakers", where=where, expected="two")
    return Dialogue(f"{system}-{number:03d}", system, speakers[1], said)


def _said(value: Any, where: str) -> tuple[tuple[str, str], ...]:  # noqa: ANN401
    if not isinstance(value, list) or not value:
        raise SchemaError("no utterances", where=where, expected="a list of {id, text}")
    for number, one in enumerate(value, start=1):
        if not isinstance(one, dict) or not all(
            isinstance(one.get(key), str) and one[key].strip() for key in ("id", "text")
        ):
            raise SchemaError(f"utterance {number} is {one!r:.80}", where=where, expected="{id, text}, neither empty")
    return tuple((one["id"], one["text"]) for one in value)


def _of_tables(folder: Path) -> list[Dialogue]:
    """Make a dialogue of what each system said in each dialogue: histories and responses, turn by turn."""
    source = Source(folder)
    kinds = source.chosen(None)
    answers: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in source.responses.to_dict("records"):
        if (row["dataset"], row["system_id"]) in kinds:
            context = source.contexts[row["dataset"], row["context_id"]]
            key = (row["dataset"], context["dialogue_id"], row["system_id"])
            answers.setdefault(key, {})[row["context_id"]] = row["response"]
    found, incomplete, foreign = [], [], 0
    for (dataset, name, system), texts in sorted(answers.items()):
        contexts = source.dialogues[dataset, name]
        # A turn has further contexts where a system answered it several times.
        answered = {context["turn"]: context for context in reversed(contexts) if context["context_id"] in texts}
        if set(answered) < {context["turn"] for context in contexts}:
            incomplete.append(f"{name} by {system}")
            continue
        said: list[tuple[str, str]] = []
        before: list[tuple[str, str]] = []
        own = True
        for _, context in sorted(answered.items()):
            history = [(u["speaker"], u["text"]) for u in context["history"]]
            rest, is_own = _rest(said, before, history)
            if rest is None:
                incomplete.append(f"{name} by {system}")
                break
            own &= is_own
            said += [*rest, ("B", texts[context["context_id"]])]
            before = history
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
            "speaker B, and its own responses now stand in that one's place",
            folder,
            foreign,
            len(found),
        )
    if not found:
        raise SchemaError("holds no whole dialogue", where=str(folder), expected="contexts and responses")
    return found


def _rest(
    said: list[tuple[str, str]], before: list[tuple[str, str]], history: list[tuple[str, str]]
) -> tuple[list[tuple[str, str]] | None, bool]:
    """Return what a history adds to what was said, and whether the system's own responses are in it.

    A history holds all that was said, or, as ConTurE's do, the end of it; or all that was said to another speaker B,
    whose words follow those of the history before. It adds None where it is none of these.
    """
    if history[: len(said)] == said:
        return history[len(said) :], True
    if len(history) > len(before) and history[: len(before)] == before:
        return history[len(before) + 1 :], False
    for count in range(min(len(said), len(history)), 0, -1):
        if said[-count:] == history[:count]:
            return history[count:], True
    return None, True


def _hash(value: Any) -> str:  # noqa: ANN401
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]
