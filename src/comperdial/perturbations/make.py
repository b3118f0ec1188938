"""Make a data set of pairs, original and perturbed, from another data set's tables."""

from __future__ import annotations

import hashlib
import itertools
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, MissingResourceError, SchemaError, UnknownNameError
from comperdial.perturbations.items import Dialogue, Line, Pool, Turn
from comperdial.perturbations.table import PERTURBATIONS, Perturbation, generated
from comperdial.perturbations.text import same, tidy
from comperdial.schema.evaluated import ORIGINAL, PERTURBED

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""A context or dialogue, and a system."""
Context = dict[Any, Any]
"""A row of table ``contexts``."""
Parts = list[tuple[Context, str]]
"""The responses of one system with their contexts: one, or all of a dialogue in order."""


class Count(NamedTuple):
    """Pairs made by a strategy, items tried that it cannot change, items to draw from."""

    pairs: int
    unchanged: int
    items: int


@dataclass(frozen=True)
class Perturbed:
    """What :func:`perturb` makes.

    Attributes
    ----------
    tables
        ``systems``, ``contexts``, ``responses``, ``personas``, and ``ratings`` without rows.
    pairs
        The source of each pair: ``dialogue_id`` (in the tables), ``perturbation``, ``source_dataset``,
        ``source_dialogue_id``, ``source_context_id`` (turn level), ``source_system_id``.
    counts
        Counts by strategy.
    left_out
        Strategies that cannot run here, and why.
    """

    tables: dict[str, pd.DataFrame]
    pairs: pd.DataFrame
    counts: dict[str, Count]
    left_out: dict[str, str]


def generator(seed: int, strategy: str, *item: str) -> np.random.Generator:
    """Return the generator of one item: another one for each seed, strategy and item, the same in each run."""
    digest = hashlib.sha256("\0".join((strategy, *item)).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


def perturb(
    folder: str | Path,
    dataset: str,
    strategies: Sequence[str] | None = None,
    sample: int = 200,
    seed: int = 0,
    *,
    good: bool = True,
) -> Perturbed:
    """Draw items of a data set, perturb them, and return both versions as the tables of a new data set.

    Parameters
    ----------
    folder
        Holds the data set's tables as Parquet: ``systems``, ``contexts``, ``responses``; ``personas`` and ratings if
        there are any.
    dataset
        The name of the new data set: letters, digits, "_" and "-".
    strategies
        Names of strategies; default: all that can run here (``left_out`` names the others).
    sample
        The number of pairs of each strategy; fewer if the data set has fewer items to change.
    seed
        A whole number of 0 or more, which decides what is drawn and how it is changed.
    good
        Draw only items rated above the median of ``overall``, if there are such ratings; random texts come from such
        responses too, and from histories and references.

    Raises
    ------
    UnknownNameError
        When there is no such strategy.
    MissingResourceError
        When a strategy in ``strategies`` needs something that is not on this machine (``paraphrase``: WordNet).
    ConfigError
        When ``sample``, ``seed`` or the name of the data set is out of range.
    SchemaError
        When a table is empty, a response names a context or system of no table, or no response can be perturbed.
    """
    if not re.fullmatch("[A-Za-z0-9_-]+", dataset):
        raise ConfigError(f"data set name {dataset!r}", expected='letters (a to z), digits, "_" and "-" only')
    if sample < 1 or seed < 0:
        raise ConfigError(f"sample {sample}, seed {seed}", expected="a sample of at least 1, a seed of at least 0")
    chosen, left_out = _runnable(strategies)
    source = _Source(Path(folder))
    best = {level: source.good(level) if good else None for level in ("turn", "dialogue")}
    pool, items = source.pool(best["turn"]), {"turn": source.turns(), "dialogue": source.dialogues()}
    for level, keys in best.items():
        if keys is not None:
            items[level] = {key: parts for key, parts in items[level].items() if key in keys}
    pairs, contexts, responses, counts = [], [], [], {}
    for of in chosen:
        made, counts[of.name] = _made(of, items[of.level], pool, sample, seed)
        for number, (key, new) in enumerate(made, start=1):
            parts, dialogue_id = items[of.level][key], f"{of.name}-{number:04d}"
            first = parts[0][0]
            context_id = first["context_id"] if of.level == "turn" else None
            pairs.append((dialogue_id, of.name, source.dataset, first["dialogue_id"], context_id, key[1]))
            for system_id, context, response in _rows(of, parts, new):
                names = {"dataset": dataset, "context_id": f"{dialogue_id}-{system_id}-{context['turn']}"}
                contexts.append({**context, **names, "dialogue_id": dialogue_id})
                responses.append({**names, "system_id": system_id, "response": response})
    columns = ["dialogue_id", "perturbation", "source_dataset", "source_dialogue_id", "source_context_id"]
    frame = pd.DataFrame(pairs, columns=[*columns, "source_system_id"])
    return Perturbed(_tables(source, dataset, frame, contexts, responses), frame, counts, left_out)


def _runnable(strategies: Sequence[str] | None) -> tuple[list[Perturbation], dict[str, str]]:
    chosen, left_out = [], {}
    for name in dict.fromkeys(strategies or generated()):
        if name not in generated():
            raise UnknownNameError("strategy", name, generated())
        try:
            PERTURBATIONS[name].check()
        except MissingResourceError as error:
            if strategies:
                raise
            log.warning("%s is left out: %s", name, error)
            left_out[name] = str(error)
        else:
            chosen.append(PERTURBATIONS[name])
    return chosen, left_out


def _made(
    of: Perturbation, items: Mapping[Key, Parts], pool: Pool, sample: int, seed: int
) -> tuple[list[tuple[Key, list[str]]], Count]:
    """Try items in random order until enough could be changed; return them sorted, with the new texts."""
    keys = list(items)
    made: list[tuple[Key, list[str]]] = []
    tried = 0
    for place in generator(seed, of.name).permutation(len(keys)):
        if len(made) == sample:
            break
        tried += 1
        new = _changed(of, items[keys[place]], pool, generator(seed, of.name, *keys[place]))
        if new:
            made.append((keys[place], new))
    return sorted(made), Count(len(made), tried - len(made), len(items))


def _changed(of: Perturbation, parts: Parts, pool: Pool, random: np.random.Generator) -> list[str] | None:
    """Return new texts, tidied: the response, or all lines of the dialogue; None if nothing changed."""
    assert of.change is not None  # noqa: S101
    if of.level == "turn":
        context, response = parts[0]
        turn = Turn(context["dialogue_id"], _lines(context["history"]), response)
        text = of.change(turn, random, pool)
        made, old = None if text is None else [text], [response]
    else:
        dialogue = _dialogue(parts)
        made, old = of.change(dialogue, random, pool), [line.text for line in dialogue.lines]
    new = [tidy(text) for text in made or ()]
    return None if not all(new) or all(map(same, new, old)) else new


def _lines(history: Sequence[Mapping[str, str]]) -> tuple[Line, ...]:
    return tuple(Line(utterance["speaker"], utterance["text"]) for utterance in history)


def _dialogue(parts: Parts) -> Dialogue:
    """Return a system's dialogue: its responses in the places of what was said in a recorded dialogue, if there is one."""
    lines: list[Line] = []
    before: tuple[Line, ...] = ()
    fixed = len(parts) < 2
    speaker = _speaker([_lines(context["history"]) for context, _ in parts])
    for place, (context, response) in enumerate(parts):
        history = _lines(context["history"])
        nested = history[: len(before)] == before
        own = len(history) > len(before) and history[len(before)].text.split() == parts[place - 1][1].split()
        fixed = fixed or (place > 0 and not (nested and own))
        lines += history[len(before) + 1 if before else 0 :] if nested else history[-1:]
        lines.append(Line(speaker, response, chatbot=True))
        before = history
    return Dialogue(parts[0][0]["dialogue_id"], tuple(lines), fixed)


def _speaker(histories: list[tuple[Line, ...]]) -> str:
    """Return the name that histories give to the speaker of the responses; else one that nobody has."""
    for history, following in itertools.pairwise(histories):
        if len(following) > len(history):
            return following[len(history)].speaker
    others = {line.speaker for history in histories for line in history[-1:]}
    speakers = [line.speaker for line in histories[-1] if line.speaker not in others]
    return speakers[-1] if speakers else "A" if "A" not in others else "B"


def _rows(of: Perturbation, parts: Parts, new: list[str]) -> Iterator[tuple[str, Context, str]]:
    """Yield the rows of both versions: system, context and response.

    A perturbed dialogue has histories of its own if the original has; of a recorded dialogue, both have its histories.
    Both versions keep references if their histories are the same.
    """
    if of.level == "turn":
        context, response = parts[0]
        yield ORIGINAL, context, tidy(response)
        yield PERTURBED, context, new[0]
        return
    dialogue = _dialogue(parts)
    places = [place for place, line in enumerate(dialogue.lines) if line.chatbot]
    texts = [{"speaker": line.speaker, "text": text} for line, text in zip(dialogue.lines, new, strict=True)]
    for turn, (place, (context, response)) in enumerate(zip(places, parts, strict=True)):
        old = context["history"]
        history = old if dialogue.fixed else texts[:place]
        kept = [line["text"].split() for line in old] == [line["text"].split() for line in history]
        row = {**context, "turn": turn, "references": context["references"] if kept else []}
        yield ORIGINAL, row, tidy(response)
        yield PERTURBED, {**row, "history": history}, new[place]


def _tables(
    source: _Source, dataset: str, pairs: pd.DataFrame, contexts: list[Context], responses: list[Context]
) -> dict[str, pd.DataFrame]:
    about = {ORIGINAL: f"what systems of {source.dataset} said", PERTURBED: "the same, made worse"}
    systems = [
        {"dataset": dataset, "system_id": system_id, "kind": "agent", "track": None, "description": text}
        for system_id, text in about.items()
    ]
    personas = source.table("personas").drop(columns="dataset").rename(columns={"dialogue_id": "source_dialogue_id"})
    known = pairs[["dialogue_id", "source_dialogue_id"]].merge(personas, on="source_dialogue_id")
    frames = {
        "systems": pd.DataFrame(systems),
        "contexts": pd.DataFrame(contexts, columns=schema.table("contexts").columns),
        "responses": pd.DataFrame(responses, columns=schema.table("responses").columns),
        "personas": known.drop(columns="source_dialogue_id").assign(dataset=dataset),
    }
    checked = {name: schema.validate(frame, name) for name, frame in frames.items()}
    return checked | {"ratings": schema.empty("ratings")}


class _Source:
    """The tables of a data set, and the items in them that can be perturbed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        systems, contexts, responses = map(self._filled, ("systems", "contexts", "responses"))
        self.dataset = str(contexts["dataset"].iloc[0])
        self.contexts: dict[str, Context] = {row["context_id"]: row for row in contexts.to_dict("records")}
        where = str(folder / "responses.parquet")
        for column, known in (("context_id", self.contexts), ("system_id", set(systems["system_id"]))):
            if unknown := [name for name in responses[column] if name not in known]:
                raise SchemaError(f"a response names {column} {unknown[0]!r}, which is in no table", where=where)
        kept = responses[~responses["system_id"].isin(systems.loc[systems["kind"] == "reference", "system_id"])]
        if kept.empty:
            expected = "a response of another system"
            raise SchemaError("all responses are of systems of kind 'reference'", where=where, expected=expected)
        keys = zip(kept["context_id"], kept["system_id"], strict=True)
        self.said: dict[Key, str] = dict(zip(keys, kept["response"], strict=True))

    def _filled(self, name: str) -> pd.DataFrame:
        path = self.folder / f"{name}.parquet"
        frame = schema.read(path, name)
        if frame.empty:
            raise SchemaError("the table is empty", where=str(path), expected="at least one row")
        return frame

    def table(self, name: str) -> pd.DataFrame:
        """Return a table, empty if the data set has none."""
        path = self.folder / f"{name}.parquet"
        return schema.read(path, name) if path.is_file() else schema.empty(name)

    def dialogue_of(self, context_id: str) -> str:
        """Return the dialogue of a context."""
        return str(self.contexts[context_id]["dialogue_id"])

    def pool(self, best: set[Key] | None) -> Pool:
        """Return the texts of the data set; responses to draw are those in ``best``, or all."""
        said: dict[str, set[str]] = {}
        for (context_id, _), text in self.said.items():
            said.setdefault(self.dialogue_of(context_id), set()).add(text)
        others: set[str] = set()
        for context in self.contexts.values():
            texts = {line["text"] for line in context["history"]} | {*context["references"]}
            others |= texts
            said.setdefault(context["dialogue_id"], set()).update(texts)
        responses = {text for key, text in self.said.items() if best is None or key in best}
        return Pool(said, sorted(responses), sorted(responses | others))

    def turns(self) -> dict[Key, Parts]:
        """Return all responses by (context, system), sorted."""
        return {key: [(self.contexts[key[0]], text)] for key, text in sorted(self.said.items())}

    def dialogues(self) -> dict[Key, Parts]:
        """Return all dialogues with at least two responses of a system by (dialogue, system), sorted."""
        items: dict[Key, Parts] = {}
        for (context_id, system_id), text in self.said.items():
            items.setdefault((self.dialogue_of(context_id), system_id), []).append((self.contexts[context_id], text))
        for parts in items.values():
            parts.sort(key=lambda part: (part[0]["turn"], len(part[0]["history"]), part[0]["context_id"]))
        return {key: parts for key, parts in sorted(items.items()) if len(parts) > 1}

    def good(self, level: str) -> set[Key] | None:
        """Return the items rated above the median of ``overall``, or None if nobody rated that.

        People's ratings count if there are any, else all. If more than half of the items have the highest rating, these
        are the good ones. Without ratings at a level those of the other count: a turn is as good as its dialogue, a
        dialogue as the mean of its turns.
        """
        means = self._means(level)
        if means.empty and level == "turn":
            other = self._means("dialogue")
            of = {key: (self.dialogue_of(key[0]), key[1]) for key in self.said}
            means = pd.Series({key: other[of[key]] for key in self.said if of[key] in other.index}, dtype=float)
        elif means.empty and len(other := self._means("turn")):
            of_dialogue = other.index.get_level_values(0).map(self.dialogue_of)
            means = other.groupby([of_dialogue, other.index.get_level_values(1)]).mean()
        if means.empty:
            return None
        median = means.median()
        best = means[means > median] if (means > median).any() else means[means >= median]
        return {(str(item), str(system)) for item, system in best.index}

    def _means(self, level: str) -> pd.Series[float]:
        ratings = schema.ratings_in(self.folder)
        ratings = ratings[(ratings["level"] == level) & ratings["dimension"].isin(("overall", "Overall"))]
        if (ratings["source"] == "human").any():
            ratings = ratings[ratings["source"] == "human"]
        ratings = ratings[ratings["system_id"].isin({system for _, system in self.said})]
        return ratings.groupby(["item_id", "system_id"])["rating"].mean()
