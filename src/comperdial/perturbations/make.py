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
from comperdial.challenge.dialogues import read_answers
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
Parts = list[dict[Any, Any]]
"""A system's responses with what table ``contexts`` says of each: one, or all of a dialogue in order."""
Items = dict[Key, Parts]


class Perturbation(NamedTuple):
    """A way to degrade a response or a dialogue: an entry of ``strategies.yaml``, which explains the fields.

    ``change`` takes a :class:`Turn` or :class:`Dialogue`, a seeded generator and the :class:`Corpus` of the data set, and
    returns the new response or the texts of all lines; None if it does not apply. Without ``change`` there are only recorded
    pairs.
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


_CHANGES: dict[str, Callable[..., Any]] = {
    change.__name__: change
    for change in (
        *(turns.random_response, pronouns, turns.entities, contradiction),
        *(turns.repetition, turns.paraphrase, turns.dullness),
        *(dialogues.order_shuffle, dialogues.utterance_replacement, dialogues.duplication),
        *(dialogues.repeating_others, dialogues.generic_utterances, dialogues.content_reduction),
    )
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
        # Other versions give other words.
        wordnet.require("3.0")


def generator(seed: int, strategy: str, *item: str) -> np.random.Generator:
    """Return an item's generator, determined by seed, strategy and item."""
    digest = hashlib.sha256("\0".join((strategy, *item)).encode()).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest, dtype="<u4").tolist()])


class Count(NamedTuple):
    """Numbers of pairs made, of items that the strategy could not change, and of candidate items."""

    pairs: int
    unchanged: int
    items: int


class Perturbed(NamedTuple):
    """The result of :func:`perturb`.

    ``tables`` are ``systems``, ``contexts``, ``responses``, ``personas`` and empty ``ratings``; ``pairs`` gives the source of
    each pair, without ``source_context_id`` at dialogue level; ``counts`` are by strategy; ``left_out`` gives the strategies
    that cannot run here, and why.
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
        Folder with the data set's tables as Parquet: ``systems``, ``contexts``, ``responses``; optionally ``personas`` and
        ``ratings``.
    dataset
        The name of the new data set.
    strategies
        Names of strategies; default: all that can run here (``left_out`` names the others).
    sample
        Number of pairs per strategy; fewer if the data set has fewer suitable items.
    seed
        A non-negative integer, which determines the draws and changes.
    good
        Draw only items rated above the median of ``overall``, if there are such ratings; random texts come from such responses
        too, and from histories and references.

    Raises
    ------
    UnknownNameError
        If a strategy does not exist.
    MissingResourceError
        If a strategy in ``strategies`` needs something that is not on this machine (``paraphrase``: WordNet).
    SchemaError
        If a response's context is in no table, or no response can be perturbed.
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
    answers = read_answers(folder)
    answers = answers[answers["kind"] != "reference"]
    if answers.empty:
        raise SchemaError("no response of a system that is no reference", where=str(folder), expected="at least one")
    drawn: dict[str, Items] = {}
    for level, item in (("turn", "context_id"), ("dialogue", "dialogue_id")):
        items: Items = {}
        for row in answers.to_dict("records"):
            items.setdefault((row[item], row["system_id"]), []).append(row)
        best = _good(folder, answers, level) if good else None
        several = level == "dialogue"
        drawn[level] = {
            key: sorted(parts, key=_place)
            for key, parts in sorted(items.items())
            if len(parts) > several and (best is None or key in best)
        }
    corpus = _corpus(folder, answers, {parts[0]["response"] for parts in drawn["turn"].values()})
    source = answers["dataset"].iloc[0]
    rows: Parts = []
    pairs, counts = [], {}
    for of in chosen:
        made, counts[of.name] = _made(of, drawn[of.level], corpus, sample, seed)
        for number, (key, (given, new)) in enumerate(sorted(made.items()), start=1):
            dialogue_id, context_id = f"{of.name}-{number:04d}", key[0] if of.level == "turn" else None
            pairs.append((dialogue_id, of.name, source, given.dialogue_id, context_id, key[1]))
            for system_id, row, response in _versions(given, drawn[of.level][key], new):
                names = {"dataset": dataset, "context_id": f"{dialogue_id}-{system_id}-{row['turn']}"}
                names |= {"dialogue_id": dialogue_id, "system_id": system_id, "response": " ".join(response.split())}
                rows.append(row | names)
    sources = [f"source_{name}" for name in ("dataset", "dialogue_id", "context_id", "system_id")]
    frame = pd.DataFrame(pairs, columns=["dialogue_id", "perturbation", *sources])
    return Perturbed(_tables(folder, source, dataset, frame, rows), frame, counts, left_out)


def _place(row: Mapping[str, Any]) -> tuple[int, int, str]:
    """Return the sort key of a dialogue's responses."""
    return row["turn"], len(row["history"]), row["context_id"]


def _corpus(folder: Path, answers: pd.DataFrame, responses: set[str]) -> Corpus:
    """Return the texts of a data set, of whose responses some are drawn."""
    texts: dict[str, set[str]] = {}
    for row in schema.read(folder / "contexts.parquet", "contexts").to_dict("records"):
        own = {line["text"] for line in row["history"]} | {*row["references"]}
        texts.setdefault(row["dialogue_id"], set()).update(own)
    utterances = responses.union(*texts.values())
    for dialogue, response in zip(answers["dialogue_id"], answers["response"], strict=True):
        texts[dialogue].add(response)
    return Corpus(texts, sorted(responses), sorted(utterances))


def _good(folder: Path, answers: pd.DataFrame, level: str) -> set[Key] | None:
    """Return the items rated above the median of ``overall``, or None without such ratings.

    Human ratings are used if there are any, otherwise all. If more than half of the items have the highest rating, these are
    used. Without ratings at a level, those of the other are used: a turn is as good as its dialogue, a dialogue as the mean of
    its turns.
    """
    ratings = schema.ratings_in(folder)
    overall = ratings["dimension"].isin(("overall", "Overall")) & ratings["system_id"].isin(answers["system_id"])
    names = {"turn": "context_id", "dialogue": "dialogue_id"}

    def means(level: str) -> pd.Series[float]:
        rated = ratings[overall & (ratings["level"] == level)]
        people = rated["source"] == "human"
        rated = rated[people | (not people.any())].rename(columns={"item_id": names[level]})
        return rated.groupby([names[level], "system_id"])["rating"].mean()

    key, scores = [names[level], "system_id"], means(level)
    if scores.empty:
        other = means("dialogue" if level == "turn" else "turn").reset_index()
        known = answers[["context_id", "dialogue_id", "system_id"]].merge(other)
        scores = known.groupby(key)["rating"].mean()
    median = scores.median()
    best = scores[scores > median] if (scores > median).any() else scores[scores >= median]
    return {(str(item), str(system)) for item, system in best.index} or None


# Pairs


def _made(
    of: Perturbation, items: Items, corpus: Corpus, sample: int, seed: int
) -> tuple[dict[Key, tuple[Turn | Dialogue, list[str]]], Count]:
    """Try items in random order until enough could be changed; return them with their new texts, with single spaces."""
    assert of.change is not None  # noqa: S101 - only those that can be generated are chosen
    made: dict[Key, tuple[Turn | Dialogue, list[str]]] = {}
    tried, keys = 0, list(items)
    for place in generator(seed, of.name).permutation(len(keys)):
        if len(made) == sample:
            break
        tried += 1
        key = keys[place]
        given = _dialogue(items[key]) if of.level == "dialogue" else _turn(items[key][0])
        texts = of.change(given, generator(seed, of.name, *key), corpus)
        new = [" ".join(text.split()) for text in ([texts] if isinstance(texts, str) else texts or ())]
        old = given.texts if isinstance(given, Dialogue) else [given.response]
        if all(new) and not all(map(same, new, old)):
            made[key] = given, new
    return made, Count(len(made), tried - len(made), len(items))


def _turn(row: Mapping[str, Any]) -> Turn:
    return Turn(row["dialogue_id"], _lines(row), row["response"])


def _lines(row: Mapping[str, Any]) -> tuple[Line, ...]:
    return tuple(Line(utterance["speaker"], utterance["text"]) for utterance in row["history"])


def _dialogue(parts: Parts) -> Dialogue:
    """Return a system's dialogue: its responses in the positions of those in a recorded dialogue, if there is one."""
    histories = [_lines(row) for row in parts]
    speaker = _speaker(histories)
    lines: list[Line] = []
    before: tuple[Line, ...] = ()
    fixed = False
    for place, history in enumerate(histories):
        nested = history[: len(before)] == before
        own = len(history) > len(before) and history[len(before)].text.split() == parts[place - 1]["response"].split()
        fixed = fixed or (place > 0 and not (nested and own))
        lines += history[len(before) + 1 if before else 0 :] if nested else history[-1:]
        lines.append(Line(speaker, parts[place]["response"], chatbot=True))
        before = history
    return Dialogue(parts[0]["dialogue_id"], tuple(lines), fixed)


def _speaker(histories: list[tuple[Line, ...]]) -> str:
    """Return the histories' name for the speaker of the responses; otherwise an unused name."""
    for history, following in itertools.pairwise(histories):
        if len(following) > len(history):
            return following[len(history)].speaker
    others = {line.speaker for history in histories for line in history[-1:]}
    speakers = [line.speaker for line in histories[-1] if line.speaker not in others]
    return speakers[-1] if speakers else "A" if "A" not in others else "B"


def _versions(given: Turn | Dialogue, parts: Parts, new: list[str]) -> Iterator[tuple[str, dict[Any, Any], str]]:
    """Yield system, context and response of both versions.

    A perturbed dialogue has its own histories if the original has; for a recorded dialogue, both use its histories. Both
    versions keep references if their histories are the same.
    """
    if isinstance(given, Turn):
        yield ORIGINAL, parts[0], given.response
        yield PERTURBED, parts[0], new[0]
        return
    places = [place for place, line in enumerate(given.lines) if line.chatbot]
    texts = [{"speaker": line.speaker, "text": text} for line, text in zip(given.lines, new, strict=True)]
    for turn, (place, row) in enumerate(zip(places, parts, strict=True)):
        history = row["history"] if given.fixed else texts[:place]
        kept = [line["text"].split() for line in row["history"]] == [line["text"].split() for line in history]
        both = {**row, "turn": turn, "references": row["references"] if kept else []}
        yield ORIGINAL, both, row["response"]
        yield PERTURBED, {**both, "history": history}, new[place]


def _tables(folder: Path, source: str, dataset: str, pairs: pd.DataFrame, rows: Parts) -> dict[str, pd.DataFrame]:
    about = {ORIGINAL: f"what systems of {source} said", PERTURBED: "the same, made worse"}
    systems = pd.DataFrame(about.items(), columns=["system_id", "description"])
    path = folder / "personas.parquet"
    personas = schema.read(path, "personas") if path.is_file() else schema.empty("personas")
    renamed = personas.rename(columns={"dialogue_id": "source_dialogue_id"})
    tables = {
        "systems": systems.assign(dataset=dataset, kind="agent", track=None),
        "contexts": pd.DataFrame(rows, columns=schema.table("contexts").columns),
        "responses": pd.DataFrame(rows, columns=schema.table("responses").columns),
        "personas": pairs[["dialogue_id", "source_dialogue_id"]].merge(renamed).assign(dataset=dataset),
    }
    checked = {name: schema.validate(frame[schema.table(name).columns], name) for name, frame in tables.items()}
    return checked | {"ratings": schema.empty("ratings")}
