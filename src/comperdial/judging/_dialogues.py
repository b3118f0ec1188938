"""What systems said in the dialogues of a data set, one dialogue after the other, in memory for those under way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.metrics.scoring import parts

Key = tuple[str, str, str]
"""Of a response, or of its score: data set, context, system."""

# Scores that are read at once.
_ROWS = 65_536


class Said(NamedTuple):
    """What a system said in one context: which turn of which dialogue that is, and the score of it, if it has one."""

    key: Key
    dialogue_id: str
    turn: int
    history: Sequence[Mapping[str, str]]
    response: str
    score: float | None = None


class Spoken(NamedTuple):
    """All that a system said in a dialogue, by turn, and how many turns the dialogue has."""

    dataset: str
    dialogue_id: str
    system_id: str
    said: list[Said]
    turns: int


def spoken(folder: str | Path, scores: Iterable[tuple[Key, float]] | None = None) -> Iterator[Spoken]:
    """Yield what each system said in each dialogue of a data set's tables; references are left out.

    Parameters
    ----------
    folder
        Holds ``contexts``, ``responses`` and ``systems``.
    scores
        Of the turns, sorted by key, for what was said to have its own; none without.
    """
    columns = ["dataset", "context_id", "dialogue_id", "turn"]
    contexts = schema.read(Path(folder) / "contexts.parquet", "contexts")[columns]
    rows = _rows(folder)
    return gathered(rows if scores is None else _with_scores(rows, iter(scores)), contexts)


def gathered(rows: Iterable[Said], contexts: pd.DataFrame) -> Iterator[Spoken]:
    """Yield dialogues as soon as the last context of each has passed; only those under way are in memory.

    Parameters
    ----------
    rows
        Sorted by data set and context.
    contexts
        Their ``dataset``, ``context_id``, ``dialogue_id`` and ``turn``.
    """
    ordered = contexts.sort_values(["dataset", "context_id"], kind="stable")
    place = {context: number for number, context in enumerate(ordered["context_id"])}
    dialogues = ordered["dialogue_id"].tolist()
    # Not the contexts: a turn has several where a system answered it several times, or each its own history.
    turns = {dialogue: int(count) for dialogue, count in ordered.groupby("dialogue_id")["turn"].nunique().items()}
    last = {dialogue: number for number, dialogue in enumerate(dialogues)}
    held: dict[str, dict[tuple[str, str], list[Said]]] = {}
    passed = 0

    def ended(until: int) -> Iterator[Spoken]:
        for number in range(passed, until):
            dialogue = dialogues[number]
            if last[dialogue] == number:
                for (dataset, system), said in sorted(held.pop(dialogue, {}).items()):
                    said.sort(key=lambda row: row.turn)
                    yield Spoken(dataset, dialogue, system, said, turns[dialogue])

    for row in rows:
        dataset, context, system = row.key
        if place[context] > passed:
            yield from ended(place[context])
            passed = place[context]
        held.setdefault(row.dialogue_id, {}).setdefault((dataset, system), []).append(row)
    yield from ended(len(dialogues))


def turn_scores(turns: pd.DataFrame | str | Path, output: str) -> Iterator[tuple[Key, float]]:
    """Yield the scores of turns that have a certain output, sorted by key.

    Parameters
    ----------
    turns
        Table ``scores``, or a file with it: of a Parquet file only some rows are in memory.
    output
        The output.

    Raises
    ------
    SchemaError
        When there is none, or a turn has two.
    """
    name = "table scores" if isinstance(turns, pd.DataFrame) else str(turns)
    before: Key | None = None
    for part in _score_parts(turns):
        chosen = part[(part["level"] == "turn") & (part["output"] == output)]
        keys = zip(chosen["dataset"], chosen["item_id"], chosen["system_id"], strict=True)
        for key, value in zip(keys, chosen["value"], strict=True):
            if key == before:
                raise _second(name, key, output)
            before = key
            yield key, float(value)
    if before is None:
        raise SchemaError(
            f"no turn scores with output {output!r}", expected="the scores of the variant that `turns` names"
        )


def _score_parts(turns: pd.DataFrame | str | Path) -> Iterable[pd.DataFrame]:
    if not isinstance(turns, pd.DataFrame):
        if Path(turns).suffix == ".parquet":
            return schema.read_parts(turns, "scores", _ROWS)
        turns = schema.read(turns, "scores")
    return [turns.sort_values(["dataset", "item_id", "system_id"], kind="stable")]


def _rows(folder: str | Path) -> Iterator[Said]:
    for responses, contexts in parts(folder):
        keys = zip(responses["dataset"], responses["context_id"], responses["system_id"], strict=True)
        columns = (contexts[name] for name in ("dialogue_id", "turn", "history"))
        yield from map(Said, keys, *columns, responses["response"])


def _with_scores(rows: Iterable[Said], scores: Iterator[tuple[Key, float]]) -> Iterator[Said]:
    """Give what was said its score, from two sorted streams side by side."""
    found = next(scores, None)
    for row in rows:
        while found is not None and found[0] < row.key:
            found = next(scores, None)
        yield row._replace(score=found[1]) if found is not None and found[0] == row.key else row
    # To the end, where it is seen that no turn has two.
    for _ in scores:
        pass


def _second(where: str, key: Key, output: str) -> SchemaError:
    return SchemaError(f"two scores with output {output!r} for {', '.join(key[1:])}", where=where, expected="one")
