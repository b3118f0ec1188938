"""The items of a data set's tables that can be perturbed: responses with their history, dialogues with a system."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.perturbations.base import Dialogue, Line, Turn
from comperdial.perturbations.pool import Pool

# The dimension that says which originals are good.
_OVERALL = ("overall", "Overall")
_UNKNOWN = "A"


@dataclass(frozen=True)
class Context:
    """A row of table ``contexts``."""

    context_id: str
    dialogue_id: str
    turn: int
    history: tuple[Line, ...]
    references: tuple[str, ...]
    facts: tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """What one system said: in one context, or in all contexts of a dialogue, in order."""

    system_id: str
    contexts: tuple[Context, ...]
    responses: tuple[str, ...]

    @property
    def dialogue_id(self) -> str:
        """Return the dialogue that it is of."""
        return self.contexts[0].dialogue_id

    @property
    def turn(self) -> Turn:
        """Return it as a turn strategy sees it."""
        return Turn(self.dialogue_id, self.contexts[0].history, self.responses[0])

    @property
    def own_histories(self) -> bool:
        """Say whether each history holds the system's own earlier responses, and not a recorded dialogue's."""
        pairs = zip(self.contexts, self.responses, self.contexts[1:], strict=False)
        for context, response, following in pairs:
            after = len(context.history)
            if following.history[:after] != context.history or len(following.history) <= after:
                return False
            if following.history[after].text.split() != response.split():
                return False
        return len(self.contexts) > 1

    @property
    def dialogue(self) -> Dialogue:
        """Return it as a dialogue strategy sees it: all that was said, the system's responses in their places.

        Where the histories are of a recorded dialogue, the responses stand in the places of what was said there.
        """
        lines: list[Line] = []
        before: tuple[Line, ...] = ()
        speaker = _speaker(self.contexts)
        for context, response in zip(self.contexts, self.responses, strict=True):
            after = len(before) + 1 if before else 0
            nested = context.history[: len(before)] == before
            lines += context.history[after:] if nested else context.history[-1:]
            lines.append(Line(speaker, response, chatbot=True))
            before = context.history
        return Dialogue(self.dialogue_id, tuple(lines), fixed=not self.own_histories)


def _speaker(contexts: tuple[Context, ...]) -> str:
    """Return the name that histories give to who speaks where the responses stand; else one that nobody has."""
    for context, following in itertools.pairwise(contexts):
        if len(following.history) > len(context.history):
            return following.history[len(context.history)].speaker
    others = {line.speaker for context in contexts for line in context.history[-1:]}
    speakers = [line.speaker for line in contexts[-1].history if line.speaker not in others]
    return speakers[-1] if speakers else _UNKNOWN if _UNKNOWN not in others else "B"


class Source:
    """A data set's tables, read once.

    Parameters
    ----------
    folder
        Holds ``systems``, ``contexts`` and ``responses`` as Parquet; ``personas`` and ratings if there are any.

    Raises
    ------
    SchemaError
        When a response names a context or a system that is in no table, a table is empty, or all responses are of
        systems of kind ``reference``.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._good: dict[str, set[tuple[str, str]] | None] = {}
        systems = self._read("systems")
        kinds = dict(zip(systems["system_id"], systems["kind"], strict=True))
        contexts = self._read("contexts")
        self.dataset = str(contexts["dataset"].iloc[0])
        self._contexts = {row["context_id"]: _context(row) for row in contexts.to_dict("records")}
        self._said: dict[tuple[str, str], str] = {}
        responses = self._read("responses")
        for context_id, system_id, text in zip(
            responses["context_id"], responses["system_id"], responses["response"], strict=True
        ):
            for column, name, known in (("context_id", context_id, self._contexts), ("system_id", system_id, kinds)):
                if name not in known:
                    raise SchemaError(
                        f"a response names {column} {name!r}, which is in no table",
                        where=str(self._folder / "responses.parquet"),
                    )
            if kinds[system_id] != "reference":
                self._said[context_id, system_id] = text
        if not self._said:
            raise SchemaError(
                "all responses are of systems of kind 'reference'",
                where=str(self._folder / "responses.parquet"),
                expected="a response of another system",
            )

    def _read(self, name: str) -> pd.DataFrame:
        path = self._folder / f"{name}.parquet"
        frame = schema.read(path, name)
        if frame.empty:
            raise SchemaError("the table is empty", where=str(path), expected="at least one row")
        return frame

    def personas(self) -> pd.DataFrame:
        """Return table ``personas``, empty where the data set has none."""
        path = self._folder / "personas.parquet"
        return schema.read(path, "personas") if path.is_file() else schema.empty("personas")

    def pool(self, *, good: bool) -> Pool:
        """Return what is said in each dialogue; of rated responses those that are good, if only these are wanted."""
        best = self.good("turn") if good else None
        responses: dict[str, set[str]] = {}
        not_drawn: dict[str, set[str]] = {}
        for (context_id, system_id), text in self._said.items():
            kind = responses if best is None or (context_id, system_id) in best else not_drawn
            kind.setdefault(self._contexts[context_id].dialogue_id, set()).add(text)
        others: dict[str, set[str]] = {}
        for context in self._contexts.values():
            said = others.setdefault(context.dialogue_id, set())
            said.update(line.text for line in context.history)
            said.update(context.references)
        return Pool(responses, others, not_drawn)

    def turns(self) -> Mapping[tuple[str, str], Item]:
        """Return all responses by (context, system), sorted."""
        return {key: Item(key[1], (self._contexts[key[0]],), (text,)) for key, text in sorted(self._said.items())}

    def dialogues(self) -> Mapping[tuple[str, str], Item]:
        """Return all dialogues with at least two responses of a system by (dialogue, system), sorted."""
        found: dict[tuple[str, str], list[tuple[Context, str]]] = {}
        for (context_id, system_id), text in self._said.items():
            context = self._contexts[context_id]
            found.setdefault((context.dialogue_id, system_id), []).append((context, text))
        items = {}
        for key, parts in sorted(found.items()):
            if len(parts) > 1:
                parts.sort(key=lambda part: (part[0].turn, len(part[0].history), part[0].context_id))
                items[key] = Item(key[1], tuple(c for c, _ in parts), tuple(text for _, text in parts))
        return items

    def good(self, level: str) -> set[tuple[str, str]] | None:
        """Return the items rated above the median overall, or None when nobody rated that.

        People's ratings count where there are any, else all. When more than half of the items have the highest rating,
        these are the good ones. Without ratings at a level those of the other count: a turn is as good as its dialogue,
        a dialogue as the mean of its turns.
        """
        if level not in self._good:
            self._good[level] = self._rated_well(level)
        return self._good[level]

    def _rated_well(self, level: str) -> set[tuple[str, str]] | None:
        means = self._means(level)
        if means.empty:
            # A turn is as good as its dialogue, a dialogue as its turns.
            other = self._means("dialogue" if level == "turn" else "turn")
            of = {context.context_id: context.dialogue_id for context in self._contexts.values()}
            if level == "turn":
                keys = [key for key in self._said if (of[key[0]], key[1]) in other.index]
                means = pd.Series({key: other[of[key[0]], key[1]] for key in keys}, dtype=float)
            elif len(other):
                means = other.groupby(
                    [other.index.map(lambda key: of[key[0]]), other.index.map(lambda key: key[1])]
                ).mean()
        if means.empty:
            return None
        median = means.median()
        best = means[means > median] if (means > median).any() else means[means >= median]
        return {(str(one), str(other)) for one, other in best.index}

    def _means(self, level: str) -> pd.Series[float]:
        ratings = schema.ratings_in(self._folder)
        ratings = ratings[(ratings["level"] == level) & ratings["dimension"].isin(_OVERALL)]
        if (ratings["source"] == "human").any():
            ratings = ratings[ratings["source"] == "human"]
        ratings = ratings[ratings["system_id"].isin({key[1] for key in self._said})]
        return ratings.groupby(["item_id", "system_id"])["rating"].mean()


def _context(row: Mapping[Any, Any]) -> Context:
    return Context(
        context_id=row["context_id"],
        dialogue_id=row["dialogue_id"],
        turn=int(row["turn"]),
        history=tuple(_lines(row["history"])),
        references=tuple(row["references"]),
        facts=tuple(row["facts"]),
    )


def _lines(history: list[dict[str, str]]) -> Iterator[Line]:
    for utterance in history:
        yield Line(utterance["speaker"], utterance["text"])
