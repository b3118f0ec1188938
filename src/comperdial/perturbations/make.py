"""Make a data set of pairs, original and perturbed, from another data set's tables."""

from __future__ import annotations

import hashlib
import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.core.errors import MissingResourceError, SchemaError, UnknownNameError
from comperdial.data import wordnet
from comperdial.perturbations import dialogues, turns
from comperdial.perturbations.contradiction import contradiction
from comperdial.perturbations.corpus import Corpus, Dialogue, Line, Turn
from comperdial.perturbations.pronouns import pronouns
from comperdial.perturbations.text import same
from comperdial.schema.evaluated import ORIGINAL, PERTURBED

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""A context or dialogue, and a system."""
Context = dict[Any, Any]
"""A row of table ``contexts``."""
Parts = list[tuple[Context, str]]
"""The responses of one system with their contexts: one, or all of a dialogue in order."""
Items = dict[Key, Parts]


class Perturbation(NamedTuple):
    """One way to make a response or a dialogue worse: an entry of ``strategies.yaml``, which says what the fields mean.

    ``change`` takes a :class:`Turn` or :class:`Dialogue`, a seeded generator and the :class:`Corpus` of the data set, and
    returns the new response or the texts of all lines; None if it cannot change the item. Without a ``change`` there are
    recorded pairs only.
    """

    name: str
    short: str
    title: str
    level: Literal["turn", "dialogue"]
    dimensions: tuple[str, ...]
    threshold: float
    about: str
    change: Callable[..., Any] | None = None
    paper: bool = True


_PAIRS = [
    *("dialogue_id", "perturbation"),
    *("source_dataset", "source_dialogue_id", "source_context_id", "source_system_id"),
]
_CHANGES: dict[str, Callable[..., Any]] = {
    "random_response": turns.random_response,
    "pronouns": pronouns,
    "entities": turns.entities,
    "contradiction": contradiction,
    "repetition": turns.repetition,
    "paraphrase": turns.paraphrase,
    "dullness": turns.dullness,
    "order_shuffle": dialogues.order_shuffle,
    "utterance_replacement": dialogues.utterance_replacement,
    "duplication": dialogues.duplication,
    "repeating_others": dialogues.repeating_others,
    "generic_utterances": dialogues.generic_utterances,
    "content_reduction": dialogues.content_reduction,
}
PERTURBATIONS = {
    name: Perturbation(
        **{**entry, "name": name, "dimensions": tuple(entry["dimensions"]), "change": _CHANGES.get(name)}
    )
    for name, entry in load_yaml(Path(__file__).with_name("strategies.yaml")).items()
}
"""All perturbations by name, in the paper's order."""


def generated() -> tuple[str, ...]:
    """Return the names of the perturbations that can be generated here."""
    return tuple(_CHANGES)


def require(name: str) -> None:
    """Raise :class:`MissingResourceError` if a strategy cannot run on this machine: ``paraphrase`` needs WordNet 3.0."""
    if name == "paraphrase":
        # Another version gives other words.
        wordnet.require("3.0")


def generator(seed: int, strategy: str, *item: str) -> np.random.Generator:
    """Return the generator of one item: another one for each seed, strategy and item, the same in each run."""
    digest = hashlib.sha256("\0".join((strategy, *item)).encode()).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest, dtype="<u4").tolist()])


class Count(NamedTuple):
    """Pairs made by a strategy, items tried that it cannot change, items to draw from."""

    pairs: int
    unchanged: int
    items: int


class Perturbed(NamedTuple):
    """What :func:`perturb` makes.

    ``tables`` are ``systems``, ``contexts``, ``responses``, ``personas`` and ``ratings`` without rows; ``pairs`` has the source
    of each pair, without a ``source_context_id`` at dialogue level; ``counts`` are by strategy; ``left_out`` says which
    strategies cannot run here, and why.
    """

    tables: dict[str, pd.DataFrame]
    pairs: pd.DataFrame
    counts: dict[str, Count]
    left_out: dict[str, str]


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
        Holds the data set's tables as Parquet: ``systems``, ``contexts``, ``responses``; ``personas`` and ``ratings`` if
        there are any.
    dataset
        The name of the new data set.
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
    SchemaError
        When a response names a context of no table, or no response can be perturbed.
    """
    folder = Path(folder)
    chosen, left_out = [], {}
    for name in dict.fromkeys(strategies or generated()):
        if name not in generated():
            raise UnknownNameError("strategy", name, generated())
        try:
            require(name)
            chosen.append(PERTURBATIONS[name])
        except MissingResourceError as error:
            if strategies:
                raise
            log.warning("%s is left out: %s", name, error)
            left_out[name] = str(error)
    contexts, *levels = _items(folder)
    drawn: dict[str, Items] = {}
    for level, items in zip(("turn", "dialogue"), levels, strict=True):
        best = _good(folder, contexts, levels[0], level) if good else None
        drawn[level] = {key: parts for key, parts in items.items() if best is None or key in best}
    corpus = _corpus(contexts, levels[0], drawn["turn"])
    source = next(iter(contexts.values()))["dataset"]
    pairs, rows, counts = [], [], {}
    for of in chosen:
        made, counts[of.name] = _made(of, drawn[of.level], corpus, sample, seed)
        for number, (key, (given, new)) in enumerate(sorted(made.items()), start=1):
            parts, dialogue_id = drawn[of.level][key], f"{of.name}-{number:04d}"
            context_id = key[0] if of.level == "turn" else None
            pairs.append((dialogue_id, of.name, source, given.dialogue_id, context_id, key[1]))
            for system_id, context, response in _versions(given, parts, new):
                names = {"dataset": dataset, "context_id": f"{dialogue_id}-{system_id}-{context['turn']}"}
                texts = {"system_id": system_id, "response": " ".join(response.split())}
                rows.append({**context, **names, "dialogue_id": dialogue_id, **texts})
    frame = pd.DataFrame(pairs, columns=_PAIRS)
    return Perturbed(_tables(folder, source, dataset, frame, rows), frame, counts, left_out)


# The items of a data set


def _items(folder: Path) -> tuple[dict[str, Context], Items, Items]:
    """Return the contexts by name, and what can be perturbed, sorted: responses, and dialogues of at least two."""
    frames = {name: schema.read(folder / f"{name}.parquet", name) for name in ("systems", "contexts", "responses")}
    contexts: dict[str, Context] = {row["context_id"]: row for row in frames["contexts"].to_dict("records")}
    kinds = dict(zip(frames["systems"]["system_id"], frames["systems"]["kind"], strict=True))
    where = str(folder / "responses.parquet")
    turns: Items = {}
    whole: Items = {}
    for _, context_id, system_id, response in frames["responses"].itertuples(index=False):
        if context_id not in contexts or system_id not in kinds:
            problem = f"a response names context {context_id!r} and system {system_id!r}, of which one is in no table"
            raise SchemaError(problem, where=where)
        if kinds[system_id] != "reference":
            context = contexts[context_id]
            turns[context_id, system_id] = [(context, response)]
            whole.setdefault((context["dialogue_id"], system_id), []).append((context, response))
    if not turns:
        raise SchemaError("no response of a system that is no reference", where=where, expected="at least one")
    for parts in whole.values():
        parts.sort(key=lambda part: (part[0]["turn"], len(part[0]["history"]), part[0]["context_id"]))
    several = {key: parts for key, parts in sorted(whole.items()) if len(parts) > 1}
    return contexts, dict(sorted(turns.items())), several


def _corpus(contexts: Mapping[str, Context], items: Items, drawn: Items) -> Corpus:
    """Return the texts of a data set; responses are taken from those that are ``drawn`` from."""
    texts: dict[str, set[str]] = {}
    for context in contexts.values():
        own = {line["text"] for line in context["history"]} | {*context["references"]}
        texts.setdefault(context["dialogue_id"], set()).update(own)
    others = set().union(*texts.values())
    for [(context, response)] in items.values():
        texts[context["dialogue_id"]].add(response)
    responses = {response for [(_, response)] in drawn.values()}
    return Corpus(texts, sorted(responses), sorted(responses | others))


def _good(folder: Path, contexts: Mapping[str, Context], items: Items, level: str) -> set[Key] | None:
    """Return the items rated above the median of ``overall``, or None if nobody rated that.

    People's ratings count if there are any, else all. If more than half of the items have the highest rating, these
    are the good ones. Without ratings at a level those of the other count: a turn is as good as its dialogue, a
    dialogue as the mean of its turns.
    """
    ratings = schema.ratings_in(folder)
    ratings = ratings[ratings["dimension"].isin(("overall", "Overall"))]
    ratings = ratings[ratings["system_id"].isin({system for _, system in items})]

    def means(level: str) -> pd.Series[float]:
        of_level = ratings[ratings["level"] == level]
        people = of_level["source"] == "human"
        rated = of_level[people] if people.any() else of_level
        return rated.groupby(["item_id", "system_id"])["rating"].mean()

    scores = means(level)
    if scores.empty and level == "turn":
        rated = means("dialogue")
        of = {key: (contexts[key[0]]["dialogue_id"], key[1]) for key in items}
        scores = pd.Series({key: rated[of[key]] for key in items if of[key] in rated.index}, dtype=float)
    elif scores.empty:
        own = means("turn").rename(index=lambda name: contexts[name]["dialogue_id"], level="item_id")
        scores = own.groupby(level=[0, 1]).mean()
    median = scores.median()
    best = scores[scores > median] if (scores > median).any() else scores[scores >= median]
    return {(str(item), str(system)) for item, system in best.index} or None


# Pairs


def _made(
    of: Perturbation, items: Items, corpus: Corpus, sample: int, seed: int
) -> tuple[dict[Key, tuple[Turn | Dialogue, list[str]]], Count]:
    """Try items in random order until enough could be changed; return them with their new texts, in single spaces."""
    change: Any = of.change
    made: dict[Key, tuple[Turn | Dialogue, list[str]]] = {}
    tried, keys = 0, list(items)
    for place in generator(seed, of.name).permutation(len(keys)):
        if len(made) == sample:
            break
        tried += 1
        key = keys[place]
        given = _dialogue(items[key]) if of.level == "dialogue" else _turn(*items[key][0])
        texts = change(given, generator(seed, of.name, *key), corpus)
        new = [" ".join(text.split()) for text in ([texts] if isinstance(texts, str) else texts or ())]
        if all(new) and not all(map(same, new, given.texts)):
            made[key] = given, new
    return made, Count(len(made), tried - len(made), len(items))


def _turn(context: Context, response: str) -> Turn:
    return Turn(context["dialogue_id"], _lines(context), response)


def _lines(context: Context) -> tuple[Line, ...]:
    return tuple(Line(utterance["speaker"], utterance["text"]) for utterance in context["history"])


def _dialogue(parts: Parts) -> Dialogue:
    """Return a system's dialogue: its responses in the places of those in a recorded dialogue, if there is one."""
    histories = [_lines(context) for context, _ in parts]
    speaker = _speaker(histories)
    lines: list[Line] = []
    before: tuple[Line, ...] = ()
    fixed = False
    for place, history in enumerate(histories):
        nested = history[: len(before)] == before
        own = len(history) > len(before) and history[len(before)].text.split() == parts[place - 1][1].split()
        fixed = fixed or (place > 0 and not (nested and own))
        lines += history[len(before) + 1 if before else 0 :] if nested else history[-1:]
        lines.append(Line(speaker, parts[place][1], chatbot=True))
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


def _versions(given: Turn | Dialogue, parts: Parts, new: list[str]) -> Iterator[tuple[str, Context, str]]:
    """Yield system, context and response of both versions.

    A perturbed dialogue has histories of its own if the original has; of a recorded dialogue, both have its histories.
    Both versions keep references if their histories are the same.
    """
    if isinstance(given, Turn):
        [(context, response)] = parts
        yield ORIGINAL, context, response
        yield PERTURBED, context, new[0]
        return
    places = [place for place, line in enumerate(given.lines) if line.chatbot]
    texts = [{"speaker": line.speaker, "text": text} for line, text in zip(given.lines, new, strict=True)]
    for turn, (place, (context, response)) in enumerate(zip(places, parts, strict=True)):
        old = context["history"]
        history = old if given.fixed else texts[:place]
        kept = [line["text"].split() for line in old] == [line["text"].split() for line in history]
        row = {**context, "turn": turn, "references": context["references"] if kept else []}
        yield ORIGINAL, row, response
        yield PERTURBED, {**row, "history": history}, new[place]


def _tables(
    folder: Path, source: str, dataset: str, pairs: pd.DataFrame, rows: list[Context]
) -> dict[str, pd.DataFrame]:
    about = {ORIGINAL: f"what systems of {source} said", PERTURBED: "the same, made worse"}
    systems = [
        {"dataset": dataset, "system_id": system_id, "kind": "agent", "track": None, "description": text}
        for system_id, text in about.items()
    ]
    path = folder / "personas.parquet"
    personas = schema.read(path, "personas") if path.is_file() else schema.empty("personas")
    known = pairs[["dialogue_id", "source_dialogue_id"]].merge(
        personas, left_on="source_dialogue_id", right_on="dialogue_id", suffixes=("", "_source")
    )
    tables = {
        "systems": pd.DataFrame(systems),
        "contexts": pd.DataFrame(rows, columns=schema.table("contexts").columns),
        "responses": pd.DataFrame(rows, columns=schema.table("responses").columns),
        "personas": known.assign(dataset=dataset)[schema.table("personas").columns],
    }
    return {name: schema.validate(frame, name) for name, frame in tables.items()} | {"ratings": schema.empty("ratings")}
